//! Events as `tracing` events, for hosts that have a subscriber. What they count is in `counters`.
//!
//! | target | events | level |
//! |---|---|---|
//! | `fak::decide` | `decide` | `DEBUG`; `INFO` for what is not allowed |
//! | `fak::value` | `widen`, `trust`, `raise` | `INFO` |
//! | `fak::agent` | `attach`, `detach` | `INFO` |
//! | `fak::message` | `hold`, `dead_letter`; `withdraw` | `WARN`; `DEBUG` |
//! | `fak::kernel` | `panic`; `audit_gap`; `reload` | `ERROR`; `WARN`; `INFO` |
//!
//! Fields, where they apply: `kind` (as in the table), `at` (RFC 3339, the kernel's clock), `seq`,
//! `agent` (its id, quoted), `incarnation`, `tool`, `address` (its id quoted), `digest`, `taint`,
//! `scope`, `verdict`, `reason`, `by`, `site`, `retry_after_ms`, `cause`. Never a byte of a body.
//! The names are stable: members may be added, none is renamed.

use fak_abi::{Address, Emitter, Event, EventKind, EventKinds, Verdict};

/// The targets that events are sent to, for filters.
pub const TRACE_TARGETS: &[&str] =
    &["fak::decide", "fak::value", "fak::agent", "fak::message", "fak::kernel"];

/// Sends the kernel's events to whatever `tracing` subscriber is current on the acting thread (§2.9).
///
/// Without it, and for kinds it does not want, the kernel builds no event. With it, a target or level that the
/// subscriber disabled costs one load.
///
/// ```
/// use fak_abi::{EventKind, EventKinds};
/// use fak_adjudicate::{Kernel, TraceEmitter};
///
/// // By default every kind but `decide`; here what a person has to look at.
/// let kinds = EventKinds::of(&[EventKind::Panic, EventKind::Hold, EventKind::DeadLetter]);
/// let kernel = Kernel::builder().emitter(TraceEmitter::new(kinds)).build()?;
/// # drop(kernel);
/// # Ok::<(), fak_adjudicate::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TraceEmitter(EventKinds);

impl TraceEmitter {
    /// Of these kinds.
    #[must_use]
    pub const fn new(kinds: EventKinds) -> Self {
        Self(kinds)
    }
}

impl Default for TraceEmitter {
    /// Of every kind but decisions, of which there is one for every act.
    fn default() -> Self {
        let rare: Vec<_> = EventKind::ALL.iter().copied().filter(|kind| *kind != EventKind::Decide).collect();
        Self(EventKinds::of(&rare))
    }
}

/// One `tracing` event with every field there can be; a target and a level must be constants.
macro_rules! tell {
    ($target:literal, $level:ident, $event:expr) => {{
        let event: &Event<'_> = $event;
        let refusal = event.verdict.and_then(Verdict::refusal);
        tracing::event!(
            target: $target,
            tracing::Level::$level,
            kind = event.kind.name(),
            at = display(event.at),
            seq = (event.seq > 0).then_some(event.seq),
            agent = event.principal.map(|principal| debug(principal.id())),
            incarnation = event.principal.map(|principal| principal.incarnation()),
            tool = event.tool.map(|tool| debug(tool.name())),
            address = (event.address != Address::None).then(|| display(event.address)),
            digest = event.digest.map(display),
            taint = event.label.map(|(taint, _)| taint.name()),
            scope = event.label.map(|(_, scope)| scope.name()),
            verdict = event.verdict.map(|verdict| verdict.kind().name()),
            reason = refusal.map(|refusal| refusal.reason.name()),
            by = event.verdict.map(Verdict::by),
            site = refusal.map(|refusal| display(refusal.site)),
            retry_after_ms = refusal.and_then(|refusal| refusal.retry_after_ms),
            cause = (!event.cause.is_empty()).then_some(event.cause),
        );
    }};
}

impl Emitter for TraceEmitter {
    fn kinds(&self) -> EventKinds {
        self.0
    }

    fn emit(&self, event: &Event<'_>) {
        match event.kind {
            EventKind::Decide if event.verdict.is_some_and(Verdict::is_allow) => {
                tell!("fak::decide", DEBUG, event);
            }
            EventKind::Decide => tell!("fak::decide", INFO, event),
            EventKind::Widen | EventKind::Trust | EventKind::Raise => tell!("fak::value", INFO, event),
            EventKind::Attach | EventKind::Detach => tell!("fak::agent", INFO, event),
            EventKind::Hold | EventKind::DeadLetter => tell!("fak::message", WARN, event),
            EventKind::Withdraw => tell!("fak::message", DEBUG, event),
            EventKind::Panic => tell!("fak::kernel", ERROR, event),
            EventKind::AuditGap => tell!("fak::kernel", WARN, event),
            EventKind::Reload => tell!("fak::kernel", INFO, event),
        }
    }
}
