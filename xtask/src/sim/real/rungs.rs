//! What the host of an episode registers: rungs that change their minds, one that counts, an admitter, a witness and an
//! observer that looks for bodies where none may be.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fak_abi::{
    Adjudicator, Claim, Desk, Emitter, Event, EventKinds, Id, Opinion, Reason, Ref, ResultAdmitter, RungName,
    Site, Testimony, ToolCall, ToolScope, WitnessResolver,
};

use fak_adjudicate::AuditSink;

use crate::sim::model::host::{Door, FICKLE, Mood};
use crate::sim::{MARK, PANIC, TRANSFORMED};

/// What the episode last told its rungs.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) moods: [AtomicU8; FICKLE.len()],
    pub(crate) door: AtomicU8,
    pub(crate) sends: AtomicU32,
    pub(crate) recvs: AtomicU32,
    /// The audit log cannot be written.
    pub(crate) disk_full: AtomicBool,
    /// The observer panics.
    pub(crate) shaky: AtomicBool,
}

/// The doors, by code.
pub(crate) const DOORS: [Door; 4] = [Door::Open, Door::Hold, Door::Deny, Door::Panic];

/// A rung that says what it was told to say.
pub(crate) struct Fickle {
    pub(crate) at: usize,
    pub(crate) tool: &'static str,
    pub(crate) state: Arc<State>,
}

#[expect(clippy::panic, reason = "a rung that panics is one of the things that must be survived (§3.2)")]
fn fall_over() -> ! {
    panic!("{PANIC}")
}

fn claim(statement: &str) -> Opinion {
    Id::new(statement).map_or(Opinion::Indeterminate, |statement| {
        Opinion::RequireWitness(Box::new(Claim { statement, subject: None, evidence: None }))
    })
}

impl Adjudicator for Fickle {
    fn name(&self) -> RungName {
        "fickle"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([self.tool])
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        let code = self.state.moods.get(self.at).map_or(0, |mood| mood.load(Ordering::Relaxed));
        match Mood::of(code) {
            Mood::Defer => Opinion::Defer,
            Mood::Allow => Opinion::Allow,
            Mood::Block => Opinion::deny(Reason::PolicyBlock, Site::new("fickle/block")),
            Mood::Exfil => Opinion::deny(Reason::SecretExfil, Site::new("fickle/exfil")),
            Mood::Panic => fall_over(),
            Mood::Indeterminate => Opinion::Indeterminate,
            Mood::Quarantine => Opinion::Quarantine,
            Mood::Confirmed => claim("confirmed"),
            Mood::Refuted => claim("refuted"),
            Mood::Unknown => claim("unknown"),
            Mood::Transform => transformed(call, desk),
        }
    }
}

/// Other bytes under the same label; without a body, a value of nobody's that has to be refused.
fn transformed(call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
    let Some(body) = call.body() else {
        return Opinion::deny(Reason::TrustViolation, Site::new("fickle/no-body"));
    };
    let Ok(bytes) = desk.resolver.bytes(body) else { return Opinion::Indeterminate };
    let bytes = [TRANSFORMED.as_bytes(), bytes.as_ref()].concat();
    desk.resolver.rewrite(body, bytes.into()).map_or(Opinion::Indeterminate, Opinion::Transform)
}

/// A rung that counts: so many sends, so many receives.
pub(crate) struct Meter(pub(crate) Arc<State>);

impl Meter {
    fn left(&self, call: &ToolCall<'_>) -> Option<&AtomicU32> {
        let capability = call.tool().act()?.capability();
        match capability {
            fak_abi::Capability::A2aSend => Some(&self.0.sends),
            fak_abi::Capability::A2aRecv => Some(&self.0.recvs),
            _ => None,
        }
    }
}

impl Adjudicator for Meter {
    fn name(&self) -> RungName {
        "meter"
    }

    fn counts(&self) -> bool {
        true
    }

    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }

    fn commit(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        let Some(left) = self.left(call) else { return Opinion::Defer };
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_ok() {
            return Opinion::Defer;
        }
        Opinion::deny(Reason::RateLimited, Site::new("meter/empty"))
    }

    fn revert(&self, call: &ToolCall<'_>, _: &Desk<'_>) {
        if let Some(left) = self.left(call) {
            left.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Keeps bodies whose length is a multiple of three out of contexts, when told to.
pub(crate) struct Admitter(pub(crate) Arc<State>);

impl ResultAdmitter for Admitter {
    fn name(&self) -> RungName {
        "door"
    }

    fn screen(&self, _: &ToolCall<'_>, body: &Ref, _: &Desk<'_>) -> Opinion {
        let door = DOORS.get(usize::from(self.0.door.load(Ordering::Relaxed))).copied().unwrap_or(Door::Open);
        match door {
            _ if !body.len().is_multiple_of(3) => Opinion::Defer,
            Door::Open => Opinion::Defer,
            Door::Hold => Opinion::Quarantine,
            Door::Deny => Opinion::deny(Reason::PolicyBlock, Site::new("door/deny")),
            Door::Panic => fall_over(),
        }
    }
}

/// Where the audit log goes: memory that is sometimes full in the middle of a line.
pub(crate) struct Disk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) state: Arc<State>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.state.disk_full.load(Ordering::Relaxed) {
            self.bytes.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        // The first half of a line still fits.
        let part =
            if self.bytes.last() == Some(&b'\n') || self.bytes.is_empty() { bytes.len() / 2 } else { 0 };
        if part == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend(bytes.iter().take(part));
        Ok(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AuditSink for Disk {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// Knows of three claims.
pub(crate) struct Oracle;

impl WitnessResolver for Oracle {
    fn resolve(&self, claim: &Claim, _: &ToolCall<'_>) -> Testimony {
        match claim.statement.as_str() {
            "confirmed" => Testimony::Confirm,
            "refuted" => Testimony::Refute,
            _ => Testimony::Abstain,
        }
    }
}

/// The first text that showed a body's bytes where none may be; and, in runs that are compared, everything shown.
#[derive(Debug, Default)]
pub(crate) struct Leak(Mutex<Option<String>>, Mutex<Vec<String>>);

impl Leak {
    /// Looks for a body's mark in text that anybody may read.
    pub(crate) fn look(&self, place: &str, text: &str) {
        if text.contains(MARK) {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| format!("{place}: {text}"));
        }
    }

    /// Keeps what an agent was shown.
    pub(crate) fn keep(&self, to: &str, text: &str) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{to}: {text}"));
    }

    /// Everything that was kept, in order.
    pub(crate) fn kept(&self) -> Vec<String> {
        std::mem::take(&mut *self.1.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was found.
    pub(crate) fn found(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Observes every event, looks for bodies in it, and falls over when told to.
pub(crate) struct Watcher {
    pub(crate) leak: Arc<Leak>,
    pub(crate) state: Arc<State>,
}

impl Emitter for Watcher {
    fn kinds(&self) -> EventKinds {
        EventKinds::ALL
    }

    fn emit(&self, event: &Event<'_>) {
        let mut text = String::new();
        if write!(text, "{event:?}").is_ok() {
            self.leak.look("an event", &text);
        }
        if self.state.shaky.load(Ordering::Relaxed) {
            fall_over();
        }
    }
}
