//! §3.6 on a whole kernel: one entry for every act, whatever became of it, and none silently lost.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use fak_abi::{
    Act, AgentHandle, Cancel, Digest, EventKind, Gate, Opinion, Reason, Rider, ShareScope, ToolCall, Verdict,
    VerdictKind,
};
use fak_adjudicate::{
    AuditKind, AuditLog, AuditOptions, AuditReader, AuditRecord, Counters, Kernel, KernelBuilder,
    ManualClock, Pool, PoolOptions, Rank, verify_audit,
};

use crate::support::{ByWord, Says, attach, claim, id};

pub(crate) struct World {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) log: AuditLog<Vec<u8>>,
    pub(crate) clock: ManualClock,
    pub(crate) counters: Counters,
}

pub(crate) fn world(capacity: usize, more: impl FnOnce(KernelBuilder) -> KernelBuilder) -> World {
    let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let options = AuditOptions { capacity: NonZeroUsize::new(capacity).unwrap(), share: None };
    let start = fak_abi::Clock::now(&clock);
    let (audit, log, _) = AuditLog::open(&b""[..], Vec::new(), start, options).unwrap();
    let counters = Counters::new();
    let builder = Kernel::builder()
        .time(Arc::new(clock.clone()))
        .tools([id("work"), id("play")])
        .audit(Arc::new(audit))
        .emitter(counters.clone())
        .witness(ByWord)
        .rung(Rank(0), Arc::new(Says::new("open", |_, _| Opinion::Allow).only("work")))
        .rung(Rank(0), Arc::new(Says::new("closed", |_, _| Opinion::Defer).only("play")));
    World { kernel: more(builder).build().unwrap(), log, clock, counters }
}

impl World {
    pub(crate) fn records(&mut self) -> Vec<AuditRecord> {
        self.log.drain().unwrap();
        let end = self.log.checkpoint();
        verify_audit(&self.log.sink()[..], Some(&end)).unwrap();
        let mut reader = AuditReader::new(&self.log.sink()[..]);
        std::iter::from_fn(|| reader.next_record().unwrap()).collect()
    }
}

fn decide(agent: &AgentHandle, tool: &str) -> Verdict {
    let token = agent.gate().tool(&id(tool));
    agent.decide(&ToolCall::new(agent, &token))
}

#[test]
fn every_act_has_one_entry_in_the_order_it_was_decided() {
    let mut w = world(64, |builder| builder);
    let (alpha, bravo) = (attach(&w.kernel, "alpha"), attach(&w.kernel, "bravo"));
    let body = alpha.mint("the body");
    let token = w.kernel.tool(&id("work"));
    assert!(alpha.decide(&ToolCall::new(&alpha, &token).args(&body)).is_allow());
    w.clock.advance(Duration::from_millis(1500));
    assert!(!decide(&bravo, "play").is_allow());
    assert!(!decide(&bravo, "unheard-of").is_allow());
    assert!(!alpha.decide(&ToolCall::new(&alpha, Act::Send)).is_allow());
    let widened = alpha.widen(&body, ShareScope::Fleet).allowed().unwrap();
    assert!(!bravo.widen(&widened, ShareScope::Tenant).is_allow());
    assert!(!alpha.trust(&body, claim("refuted")).is_allow());
    let _ticket = w.kernel.submit(&ToolCall::new(&alpha, &token));
    let gone = w.kernel.submit(&ToolCall::new(&alpha, &token));
    w.kernel.withdraw(&alpha, &gone).unwrap();
    w.kernel.detach(&id("bravo")).unwrap();
    assert!(!decide(&bravo, "work").is_allow());
    let cancel = Cancel::new();
    cancel.cancel();
    let rider = Rider { cancel: Some(cancel), ..Rider::default() };
    assert!(!alpha.decide(&ToolCall::new(&alpha, &token).rider(Some(&rider))).is_allow());

    let found: Vec<_> = w
        .records()
        .iter()
        .map(|r| {
            let verdict = r.verdict.map_or("", VerdictKind::name);
            let who = r.principal.clone().unwrap();
            (
                r.kind.name(),
                who,
                r.act.clone().unwrap(),
                verdict,
                r.reason.map_or("", Reason::name),
                r.by.clone(),
            )
        })
        .collect();
    let row = |kind, who: &str, act: &str, verdict, reason, by: &str| {
        let by = (!by.is_empty()).then(|| by.to_owned());
        (kind, who.to_owned(), act.to_owned(), verdict, reason, by)
    };
    assert_eq!(
        found,
        [
            row("act", "alpha", "work", "allow", "", "open"),
            row("act", "bravo", "play", "deny", "DEFAULT_DENY", "all-defer"),
            row("act", "bravo", "unheard-of", "deny", "UNKNOWN_TOOL", "kernel"),
            row("act", "alpha", "a2a.send", "deny", "DEFAULT_DENY", "empty-policy"),
            row("act", "alpha", "ref.widen", "allow", "", "refs"),
            row("act", "bravo", "ref.widen", "deny", "TRUST_VIOLATION", "refs"),
            row("act", "alpha", "ref.trust", "deny", "TRUST_VIOLATION", "refs"),
            row("act", "alpha", "work", "allow", "", "open"),
            row("act", "alpha", "work", "allow", "", "open"),
            row("withdraw", "alpha", "work", "", "", ""),
            row("act", "bravo", "work", "deny", "DEFAULT_DENY", "detached"),
            row("act", "alpha", "work", "deny", "MISROUTE", "kernel"),
        ]
    );
    let records = w.records();
    assert_eq!(records[0].digest, Some(Digest::of(b"the body")));
    assert_eq!(records[0].at.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(records[1].at.to_string(), "2026-01-01T00:00:01.500000Z");
    assert_eq!(records[9].seq, records[8].seq, "a withdrawal cites the submission");
    assert!(records.windows(2).all(|pair| pair[0].seq <= pair[1].seq));
    let total = w.counters.total();
    assert_eq!((total.allowed, total.denied(), total.decided()), (4, 7, 11));
    assert_eq!(w.counters.of(Act::Widen).denied_for(Reason::TrustViolation), 1);
    assert_eq!(w.counters.outside().allowed, 3);
    assert_eq!(w.counters.events(EventKind::Withdraw), 1);
}

#[test]
fn a_full_queue_refuses_every_act_until_it_is_drained() {
    let mut w = world(2, |builder| builder);
    let alpha = attach(&w.kernel, "alpha");
    assert!(decide(&alpha, "work").is_allow() && decide(&alpha, "work").is_allow());
    for _ in 0..3 {
        let verdict = decide(&alpha, "work");
        assert_eq!((verdict.reason(), verdict.by()), (Some(Reason::RateLimited), "audit"));
    }
    assert_eq!(w.counters.events(EventKind::AuditGap), 3);
    assert_eq!(w.counters.outside().denied_for(Reason::RateLimited), 3);
    let kinds: Vec<_> = w.records().iter().map(|r| (r.kind, r.count)).collect();
    assert_eq!(kinds, [(AuditKind::Act, None), (AuditKind::Act, None), (AuditKind::Gap, Some(3))]);
    assert!(decide(&alpha, "work").is_allow());
}

/// A sink that fails for as long as it is told to.
#[derive(Debug)]
struct Faulty {
    held: Vec<u8>,
    fails: Arc<std::sync::atomic::AtomicBool>,
}

impl std::io::Write for Faulty {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.fails.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.held.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl fak_adjudicate::AuditSink for Faulty {
    fn length(&mut self) -> std::io::Result<u64> {
        Ok(self.held.len() as u64)
    }
    fn truncate(&mut self, length: u64) -> std::io::Result<()> {
        self.held.truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

#[test]
fn a_log_that_cannot_be_written_denies_every_act_until_it_can() {
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let sink = Faulty { held: Vec::new(), fails: Arc::clone(&fails) };
    let (audit, mut log, _) =
        AuditLog::open(&b""[..], sink, fak_abi::Timestamp::default(), AuditOptions::default()).unwrap();
    let open = Says::new("open", |_, _| Opinion::Allow);
    let kernel = Kernel::builder().audit(Arc::new(audit)).rung(Rank(0), Arc::new(open)).build().unwrap();
    let alpha = attach(&kernel, "alpha");
    assert!(decide(&alpha, "work").is_allow());
    assert!(log.drain().is_err());
    let verdict = decide(&alpha, "work");
    assert_eq!((verdict.reason(), verdict.by()), (Some(Reason::DefaultDeny), "audit"));
    assert!(verdict.to_string().contains("audit/failed"));
    fails.store(false, std::sync::atomic::Ordering::SeqCst);
    log.drain().unwrap();
    assert!(decide(&alpha, "work").is_allow());
    log.drain().unwrap();
    let verified = verify_audit(&log.sink().held[..], Some(&log.checkpoint())).unwrap();
    assert_eq!((verified.end.count, verified.missed), (3, 1));
}

/// §3.3, §3.6: the entry of a submission carries the number its ticket shows, whatever became of it.
#[test]
fn a_ticket_and_its_entry_have_one_number() {
    let limits = fak_adjudicate::KernelLimits { pending: 1, pending_each: 1 };
    let mut w = world(64, |builder| builder.limits(limits));
    let alpha = attach(&w.kernel, "alpha");
    let tickets = ["work", "play", "work"].map(|tool| {
        let token = alpha.gate().tool(&id(tool));
        alpha.submit(&ToolCall::new(&alpha, &token))
    });
    let reasons = tickets.each_ref().map(|ticket| ticket.verdict().reason());
    assert_eq!(reasons, [None, Some(Reason::DefaultDeny), Some(Reason::RateLimited)]);
    let entries: Vec<_> = w.records().iter().map(|record| (record.seq, record.reason)).collect();
    let shown: Vec<_> = tickets.iter().zip(reasons).map(|(ticket, reason)| (ticket.seq(), reason)).collect();
    assert_eq!(entries, shown);
}

/// Giving an act up, or being refused by its layer, leaves no slot taken.
#[test]
fn slots_are_neither_leaked_nor_shared() {
    let pool = Arc::new(Pool::new(PoolOptions::default()));
    let mut w = world(4, |builder| builder.driver(Arc::clone(&pool) as _));
    let alpha = attach(&w.kernel, "alpha");
    let token = w.kernel.tool(&id("work"));
    for _ in 0..100 {
        let call = ToolCall::new(&alpha, &token);
        match fak_abi::Host::admit_any(&*w.kernel, &call) {
            fak_abi::Admission::Permit(permit) => drop(permit),
            fak_abi::Admission::Refuse(verdict) => panic!("{verdict}"),
        }
    }
    assert!(!pool.get(&alpha, Digest::of(b"x")).is_allow());
    assert!(pool.put(&alpha, &alpha.mint("x")).is_allow());
    assert!(pool.get(&alpha, Digest::of(b"x")).is_allow());
    let records = w.records();
    let acts: Vec<_> = records.iter().map(|r| (r.act.as_deref().unwrap(), r.reason, r.digest)).collect();
    let digest = Some(Digest::of(b"x"));
    let refused = ("pool.get", Some(Reason::Misroute), None);
    assert_eq!(acts, [refused, ("pool.put", None, digest), ("pool.get", None, digest)]);
}

/// §3.1, §4.12: whoever mints handles may name any incarnation; that takes nothing of the share of
/// the one whose incarnation it is.
#[test]
fn strangers_share_one_allowance() {
    let w = world(64, |builder| builder);
    let alpha = attach(&w.kernel, "alpha");
    let foreign = Kernel::builder().build().unwrap();
    let stranger = attach(&foreign, "alpha");
    assert_eq!(stranger.principal().incarnation(), alpha.principal().incarnation());
    for _ in 0..60 {
        let call = ToolCall::new(&stranger, Act::PoolGet);
        assert!(matches!(fak_abi::Host::admit_any(&*w.kernel, &call), fak_abi::Admission::Refuse(_)));
    }
    assert!(decide(&alpha, "work").is_allow());
}
