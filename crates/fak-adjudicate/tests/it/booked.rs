//! The short way to an audited act (§3.6): what needs nothing but its entry.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fak_abi::{
    Act, Address, Booking, Digest, Event, Gate, KernelSeal, Opinion, Principal, Reason, Refusal, Site,
    ToolCall, VerdictKind,
};
use fak_adjudicate::{AuditLog, AuditOptions, AuditReader, AuditRecord, Auditor, Rank, Reservation};

use crate::layers::world;
use crate::support::{Says, attach, id, quiet};

/// §3.6: what needs nothing but its entry has the entry it would have had the long way; what needs more is neither counted nor written.
#[test]
fn what_is_only_due_its_entry_is_written_the_same() {
    quiet();
    let options = AuditOptions { capacity: NonZeroUsize::new(4).unwrap(), share: None };
    let (audit, mut log, _) =
        AuditLog::open(&b""[..], Vec::new(), fak_abi::Timestamp::default(), options).unwrap();
    let (kernel, layer, _) = world(|builder| {
        builder
            .audit(Arc::new(audit))
            .rung(Rank(0), Arc::new(Says::new("post", |_, _| Opinion::Allow).only("a2a.send")))
    });
    let (agent, link) = (attach(&kernel, "a"), layer.link.get().unwrap());
    let mut entries = move || {
        log.drain().unwrap();
        let mut reader = AuditReader::new(&log.sink()[..]);
        std::iter::from_fn(|| reader.next_record().unwrap()).collect::<Vec<_>>()
    };
    let (yes, key) = (kernel.tool(&id("yes")), "in_kernel:w".parse().unwrap());
    let (small, large) = (agent.mint("small"), agent.mint(vec![b'x'; 10_000]));
    let mut written = 0;
    for call in [
        ToolCall::new(&agent, Act::Send).args(&small).address(Address::Channel(&key)),
        ToolCall::new(&agent, Act::Send).args(&large),
        ToolCall::new(&agent, Act::Send),
        ToolCall::new(&agent, &yes).args(&small),
    ] {
        assert!(agent.decide(&call).is_allow());
        let Booking::Allow(due) = kernel.book(&call, link.key()) else { panic!("more than its entry") };
        assert!(due.allow(0).is_allow());
        let all = entries();
        let [long, short] = &all[written..] else { panic!("{all:?}") };
        assert_eq!((long.verdict, short.seq), (Some(VerdictKind::Allow), long.seq + 1));
        let told = |it: &AuditRecord| {
            (
                it.kind,
                it.at,
                it.principal.clone(),
                it.act.clone(),
                it.address.clone(),
                it.verdict,
                it.by.clone(),
                it.digest,
            )
        };
        assert_eq!(told(short), told(long));
        written += 2;
    }
    let booked = |tool: &str, key: &fak_abi::LayerKey| {
        let token = kernel.tool(&id(tool));
        match kernel.book(&ToolCall::new(&agent, &token), key) {
            Booking::Allow(due) => {
                drop(due);
                "due".to_owned()
            }
            Booking::Refuse(verdict) => format!("{} by {}", verdict.reason().unwrap(), verdict.by()),
            Booking::Closely => "closely".to_owned(),
        }
    };
    // More often than there are places: none is kept by what wrote nothing.
    for _ in 0..8 {
        for tool in ["yes", "unsure", "silent", "counts"] {
            assert_eq!(booked(tool, link.key()), if tool == "yes" { "due" } else { "closely" });
            assert_eq!(booked(tool, &KernelSeal::new().layer_key()), "closely");
        }
    }
    assert_eq!(entries().len(), written, "given up, or left to a closer look");
    assert_eq!(
        ["no", "broken"].map(|tool| booked(tool, link.key())),
        ["SECRET_EXFIL by no", "DEFAULT_DENY by broken"]
    );
    let refused: Vec<_> =
        entries()[written..].iter().map(|it| (it.verdict, it.by.clone().unwrap())).collect();
    assert_eq!(refused, ["no", "broken"].map(|by| (Some(VerdictKind::Deny), by.to_owned())));
    let call = ToolCall::new(&agent, &yes);
    let Booking::Allow(due) = kernel.book(&call, link.key()) else { panic!("not due") };
    assert_eq!(due.refuse(Refusal::new(Reason::LeaseHeld, Site::new("x/y")), "layer").by(), "layer");
    assert_eq!(
        entries()[written + 2..].iter().map(|it| it.reason).collect::<Vec<_>>(),
        [Some(Reason::LeaseHeld)]
    );
    // Where there is no audit there is nothing to write: the other short way is for that.
    let (plain, layer, _) = world(|builder| builder);
    let agent = attach(&plain, "a");
    let token = plain.tool(&id("yes"));
    let call = ToolCall::new(&agent, &token);
    assert!(matches!(plain.book(&call, layer.link.get().unwrap().key()), Booking::Closely));
}

/// An auditor of the host's own, which leaves out what may be left out.
#[derive(Default)]
struct Plain(Mutex<Vec<String>>);

impl Auditor for Plain {
    fn reserve(&self, _: &Principal) -> Reservation {
        Reservation::Reserved
    }
    fn release(&self) {}
    fn record(&self, event: &Event<'_>) {
        let verdict = event.verdict.map(ToString::to_string);
        self.0.lock().unwrap().push(format!("{} {} {verdict:?}", event.kind, event.seq));
    }
    fn note(&self, _: &Event<'_>) {}
    fn miss(&self, _: fak_abi::Timestamp, _: u64) {}
}

/// §3.6: an auditor that knows no short way is told of the act as of every other.
#[test]
fn a_plain_auditor_is_told_the_whole_of_it() {
    let plain = Arc::new(Plain::default());
    let (kernel, layer, _) = world(|builder| builder.audit(Arc::clone(&plain) as _));
    let (agent, token) = (attach(&kernel, "a"), kernel.tool(&id("yes")));
    let call = ToolCall::new(&agent, &token);
    let Booking::Allow(due) = kernel.book(&call, layer.link.get().unwrap().key()) else { panic!("not due") };
    assert!(due.allow(7).is_allow());
    assert_eq!(*plain.0.lock().unwrap(), [r#"decide 7 Some("allow by yes")"#]);
}

/// Bytes that say when nobody holds them any more.
struct Watched(Vec<u8>, Arc<AtomicBool>);

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.1.store(true, Ordering::SeqCst);
    }
}

/// §3.6, §8: an entry that waits to be written keeps no large body alive, whichever way the act came.
#[test]
fn a_waiting_entry_keeps_no_large_body() {
    let options = AuditOptions { capacity: NonZeroUsize::new(8).unwrap(), share: None };
    let (audit, mut log, _) =
        AuditLog::open(&b""[..], Vec::new(), fak_abi::Timestamp::default(), options).unwrap();
    let (kernel, layer, _) = world(|builder| {
        builder
            .audit(Arc::new(audit))
            .rung(Rank(0), Arc::new(Says::new("post", |_, _| Opinion::Allow).only("a2a.send")))
    });
    let (agent, link) = (attach(&kernel, "a"), layer.link.get().unwrap());
    for short in [true, false] {
        let gone = Arc::new(AtomicBool::new(false));
        let body = agent.mint(bytes::Bytes::from_owner(Watched(vec![7; 100_000], Arc::clone(&gone))));
        let digest = Digest::of(&[7; 100_000]);
        let call = ToolCall::new(&agent, Act::Send).args(&body);
        if short {
            let Booking::Allow(due) = kernel.book(&call, link.key()) else { panic!("not due") };
            assert!(due.allow(0).is_allow());
        } else {
            assert!(agent.decide(&call).is_allow());
        }
        drop(body);
        assert!(gone.load(Ordering::SeqCst));
        log.drain().unwrap();
        let mut reader = AuditReader::new(&log.sink()[..]);
        let last = std::iter::from_fn(|| reader.next_record().unwrap()).last().unwrap();
        assert_eq!(last.digest, Some(digest));
    }
}
