//! §3.6 on the shortest way an audited act can take: the audit log is all that is told of it.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, SendOptions};
use fak_abi::{Act, Digest, Opinion, Reason, Timestamp, Verdict, VerdictKind};
use fak_adjudicate::{
    Audit, AuditKind, AuditLog, AuditOptions, AuditReader, AuditRecord, Rank, verify_audit,
};

use crate::support::*;

struct Audited {
    world: World,
    audit: Arc<Audit>,
    log: AuditLog<Vec<u8>>,
}

impl Audited {
    fn new(queue: usize, config: BusConfig, rule: fn(&fak_abi::ToolCall<'_>) -> Opinion) -> Self {
        struct Host(fn(&fak_abi::ToolCall<'_>) -> Opinion);
        impl fak_abi::Adjudicator for Host {
            fn name(&self) -> fak_abi::RungName {
                "host"
            }
            fn judge(&self, call: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> Opinion {
                (self.0)(call)
            }
        }
        let options = AuditOptions { capacity: NonZeroUsize::new(queue).unwrap(), share: None };
        let (audit, log, _) = AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), options).unwrap();
        let audit = Arc::new(audit);
        let booked = Arc::clone(&audit);
        let world = World::with(config, |b| b.audit(booked).rung(Rank(0), Arc::new(Host(rule))));
        Self { world, audit, log }
    }

    /// What was written since the last time.
    fn records(&mut self) -> Vec<AuditRecord> {
        let before = self.log.checkpoint().count;
        self.log.drain().unwrap();
        verify_audit(&self.log.sink()[..], Some(&self.log.checkpoint())).unwrap();
        assert_eq!(self.audit.pending(), 0, "every slot was used or given back");
        let mut reader = AuditReader::new(&self.log.sink()[..]);
        let all = std::iter::from_fn(|| reader.next_record().unwrap());
        all.filter(|record| record.n > before).collect()
    }
}

fn by_audit(verdict: &Verdict) -> Option<Reason> {
    (verdict.by() == "audit").then(|| verdict.reason()).flatten()
}

/// An act, its verdict, its reason, the digest of its body.
type Line = (String, VerdictKind, Option<Reason>, Option<Digest>);

fn lines(records: &[AuditRecord]) -> Vec<Line> {
    let line = |it: &AuditRecord| (it.act.clone().unwrap(), it.verdict.unwrap(), it.reason, it.digest);
    records.iter().map(line).collect()
}

#[test]
fn every_send_and_receive_has_one_entry() {
    let config = BusConfig { capacity: 2, ..BusConfig::default() };
    let mut w = Audited::new(64, config, |_| Opinion::Allow);
    let (alpha, bravo) = (w.world.agent("alpha"), w.world.agent("bravo"));
    let at = key("in_kernel:w");
    let (out, into) = (alpha.channel(&at), bravo.channel(&at));
    let (body, secret) = (shared(&alpha, "x"), private(&alpha, "mine"));
    allowed(&out.send(&body));
    message(into.try_recv());
    let _ = w.records();

    allowed(&out.send(&body));
    allowed(&alpha.send(&at, &body));
    denied(&out.send(&body), Reason::RateLimited, "a2achan/full");
    denied(&alpha.send(&at, &secret), Reason::TrustViolation, "a2achan/private");
    denied(&out.send(&secret), Reason::TrustViolation, "a2achan/private");
    let received = [message(into.try_recv()), message(bravo.try_recv(&at))];
    assert!(matches!(into.try_recv(), Delivery::Empty));
    let records = w.records();
    let (x, mine) = (Some(Digest::of(b"x")), Some(Digest::of(b"mine")));
    let line = |act: &str, reason: Option<Reason>, digest| {
        let kind = if reason.is_none() { VerdictKind::Allow } else { VerdictKind::Deny };
        (act.to_owned(), kind, reason, digest)
    };
    let refused = Some(Reason::TrustViolation);
    // In the order of their numbers: a receive has its message's.
    let expected = [
        line("a2a.send", None, x),
        line("a2a.recv", None, None),
        line("a2a.send", None, x),
        line("a2a.recv", None, None),
        line("a2a.send", Some(Reason::RateLimited), x),
        line("a2a.send", refused, mine),
        line("a2a.send", refused, mine),
        line("a2a.recv", None, None),
    ];
    assert_eq!(lines(&records), expected);
    let seqs: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert_eq!([seqs[0], seqs[1], seqs[2], seqs[3]], [0, 0, 1, 1].map(|n| received[n].seq()));
    assert!(seqs[4..].windows(2).all(|pair| pair[0] < pair[1]));
    let who: Vec<_> = records.iter().map(|record| record.principal.as_deref().unwrap()).collect();
    assert_eq!(who, ["alpha", "bravo", "alpha", "bravo", "alpha", "alpha", "alpha", "bravo"]);
    assert!(records.iter().all(|record| record.address.as_deref() == Some("in_kernel:w")));
    assert!(records[..4].iter().all(|record| record.by.as_deref() == Some("a2achan/gate")));
    let stats = w.world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.denied), (3, 3, 3));
}

/// A full queue allows nothing, and what it refused is not lost silently.
#[test]
fn a_full_queue_stops_sends_and_receives() {
    let mut w = Audited::new(16, BusConfig::default(), |_| Opinion::Allow);
    let alpha = w.world.agent("alpha");
    let at = key("in_kernel:w");
    let (channel, body) = (alpha.channel(&at), shared(&alpha, "x"));
    allowed(&channel.send(&body));
    let _ = w.records();
    for _ in 0..16 {
        allowed(&channel.send(&body));
    }
    assert_eq!(by_audit(&channel.send(&body)), Some(Reason::RateLimited));
    assert_eq!(by_audit(&alpha.send(&at, &body)), Some(Reason::RateLimited));
    let refused = channel.try_recv();
    assert_eq!(refused.refusal().and_then(by_audit), Some(Reason::RateLimited));
    assert_eq!(w.world.bus.stats().queued, 17, "nothing happened");
    let records = w.records();
    let gap = records.iter().find(|record| record.kind == AuditKind::Gap).and_then(|gap| gap.count);
    assert_eq!((records.len(), gap), (17, Some(3)));
    message(channel.try_recv());
    assert_eq!(w.records().len(), 1);
}

/// §3.2: a rung that panics refuses, under its name, once.
#[test]
fn a_panicking_rung_refuses_and_is_booked() {
    let mut w = Audited::new(16, BusConfig::default(), |call| {
        let sends = call.tool().act() == Some(Act::Send);
        assert!(!sends || call.body().is_none_or(|body| body.len() != 4), "on purpose");
        Opinion::Defer
    });
    let alpha = w.world.agent("alpha");
    let channel = alpha.channel(&key("in_kernel:w"));
    allowed(&channel.send(&shared(&alpha, "x")));
    let fatal = shared(&alpha, "four");
    let _ = w.records();
    denied(&channel.send(&fatal), Reason::DefaultDeny, "kernel/panic");
    let records = w.records();
    assert_eq!(lines(&records).len(), 1);
    assert_eq!((records[0].by.as_deref(), records[0].reason), (Some("host"), Some(Reason::DefaultDeny)));
    message(channel.try_recv());
}

/// A body too large to be kept is hashed at once, and says the same.
#[test]
fn a_large_body_is_not_kept_for_its_digest() {
    let mut w = Audited::new(16, BusConfig::default(), |_| Opinion::Allow);
    let alpha = w.world.agent("alpha");
    let channel = alpha.channel(&key("in_kernel:w"));
    for len in [1, 4096, 4097] {
        let text = "x".repeat(len);
        let body = shared(&alpha, &text);
        allowed(&channel.send(&body));
        message(channel.try_recv());
        let records = w.records();
        let sent = records.iter().find(|record| record.act.as_deref() == Some("a2a.send")).unwrap();
        assert_eq!(sent.digest, Some(Digest::of(text.as_bytes())));
    }
}

/// Many principals and addresses on one thread, and many threads: each entry is its own act's.
#[test]
fn entries_are_not_mixed_up() {
    let mut w = Audited::new(1 << 14, BusConfig::default(), |_| Opinion::Allow);
    let agents: Vec<_> = (0..100).map(|n| w.world.agent(&format!("agent-{n}"))).collect();
    let sent = |round: u64| {
        std::thread::scope(|scope| {
            for half in agents.chunks(50) {
                scope.spawn(move || {
                    for agent in half {
                        let name = agent.agent().principal().id().to_string();
                        let at = key(&format!("in_kernel:of-{name}"));
                        let body = shared(agent, &format!("{name} {round}"));
                        let channel = agent.channel(&at);
                        for _ in 0..3 {
                            allowed(&channel.send(&body));
                            message(channel.try_recv());
                        }
                    }
                });
            }
        });
    };
    for round in 0..3 {
        sent(round);
        let mut counts = BTreeMap::new();
        let records = w.records();
        for record in records.iter().filter(|record| record.act.as_deref() != Some("ref.widen")) {
            let who = record.principal.clone().unwrap();
            assert_eq!(record.address.clone().unwrap(), format!("in_kernel:of-{who}"));
            if record.act.as_deref() == Some("a2a.send") {
                assert_eq!(record.digest, Some(Digest::of(format!("{who} {round}").as_bytes())));
            }
            *counts.entry(who).or_insert(0) += 1;
        }
        assert_eq!((counts.len(), counts.values().all(|count| *count == 6)), (100, true), "{counts:?}");
    }
}

/// §3.8: a rung that counts is charged, audit or not.
#[test]
fn what_counts_is_counted() {
    let (audit, _log, _) =
        AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), AuditOptions::default()).unwrap();
    let meter = Arc::new(Meter { limit: 2, ..Meter::default() });
    let rung = Arc::clone(&meter);
    let world = World::with(BusConfig::default(), |b| b.audit(Arc::new(audit)).rung(Rank(0), rung as _));
    let alpha = world.agent("alpha");
    let channel = alpha.channel(&key("in_kernel:w"));
    let body = shared(&alpha, "x");
    allowed(&channel.send(&body));
    allowed(&channel.send(&body));
    denied(&channel.send(&body), Reason::RateLimited, "meter");
    message(channel.try_recv());
    let counts = meter.counts.lock();
    assert_eq!((counts.get("a2a.send"), counts.get("a2a.recv")), (Some(&2), Some(&1)));
}

/// §3.6: while the log is drained, short entries and whole ones are each
/// there once, or in a gap; no slot is lost.
#[test]
fn entries_and_gaps_add_up_while_the_log_is_drained() {
    let mut w = Audited::new(24, BusConfig { capacity: 64, ..BusConfig::default() }, |_| Opinion::Allow);
    let agents: Vec<_> = (0..4).map(|n| w.world.agent(&format!("agent-{n}"))).collect();
    let bodies: Vec<_> = agents.iter().map(|agent| shared(agent, "x")).collect();
    let (busy, at) = (std::sync::atomic::AtomicUsize::new(agents.len()), key("in_kernel:w"));
    let _ = w.records();
    let before = w.log.checkpoint().count;
    let (mut acts, mut missed) = (0, 0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = agents
            .iter()
            .zip(&bodies)
            .map(|(agent, body)| {
                let (busy, at) = (&busy, &at);
                scope.spawn(move || {
                    let channel = agent.channel(at);
                    let brief = SendOptions { ttl: Some(Duration::from_secs(1)), ..SendOptions::default() };
                    let (mut acts, mut missed) = (0_u64, 0_u64);
                    for round in 0..2000 {
                        let refused = match round % 5 {
                            0 => channel.send(body),
                            1 => agent.send(at, &private(agent, "mine")),
                            2 => agent.send_with(&key("in_kernel:timed"), body, &brief),
                            3 => agent.send(at, body),
                            _ => match channel.try_recv() {
                                Delivery::Refuse(verdict) => verdict,
                                _ => Verdict::allow("received"),
                            },
                        };
                        if by_audit(&refused).is_some() { missed += 1 } else { acts += 1 }
                    }
                    busy.fetch_sub(1, Ordering::SeqCst);
                    (acts, missed)
                })
            })
            .collect();
        while busy.load(Ordering::SeqCst) > 0 {
            w.log.drain().unwrap();
        }
        for thread in threads {
            let counted = thread.join().unwrap();
            (acts, missed) = (acts + counted.0, missed + counted.1);
        }
    });
    let _ = w.records();
    let mut reader = AuditReader::new(&w.log.sink()[..]);
    let records: Vec<_> =
        std::iter::from_fn(|| reader.next_record().unwrap()).filter(|record| record.n > before).collect();
    let (gaps, entries): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.kind == AuditKind::Gap);
    assert_eq!(entries.len() as u64, acts);
    assert_eq!(gaps.iter().filter_map(|gap| gap.count).sum::<u64>(), missed);
    assert!(entries.iter().all(|entry| entry.kind == AuditKind::Act));
    // The whole queue is free again.
    for _ in 0..24 {
        let _ = agents[0].send(&at, &bodies[0]);
    }
    assert_eq!(w.audit.pending(), 24);
}

/// Writes the log out when it is woken, and counts what is in it.
struct Reads {
    log: parking_lot::Mutex<AuditLog<Vec<u8>>>,
    entries: std::sync::atomic::AtomicU64,
}

impl std::task::Wake for Reads {
    fn wake(self: Arc<Self>) {
        let mut log = self.log.lock();
        log.drain().unwrap();
        self.entries.store(log.checkpoint().count, Ordering::Relaxed);
    }
}

/// §3.6: whoever is woken by an act finds its entry in the log, however short the way it took.
#[test]
fn an_act_has_its_entry_before_anybody_is_woken() {
    let Audited { world, log, .. } = Audited::new(64, BusConfig::default(), |_| Opinion::Allow);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, topic) = (key("in_kernel:w"), key("in_kernel:news"));
    let (out, body) = (alpha.channel(&at), shared(&alpha, "x"));
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let reads = Arc::new(Reads { log: parking_lot::Mutex::new(log), entries: Default::default() });
    let waker = std::task::Waker::from(Arc::clone(&reads));
    // The entry of `act` is there when it ends the wait.
    let wakes = |wait: &mut dyn FnMut(&mut std::task::Context<'_>) -> bool, act: &dyn Fn()| {
        assert!(wait(&mut std::task::Context::from_waker(&waker)), "it waits");
        let before = {
            let mut log = reads.log.lock();
            log.drain().unwrap();
            log.checkpoint().count
        };
        reads.entries.store(before, Ordering::Relaxed);
        act();
        assert_eq!(reads.entries.load(Ordering::Relaxed), before + 1);
    };
    let keyed = SendOptions { ttl: Some(Duration::from_secs(1)), ..SendOptions::default() };
    let sends: [&dyn Fn(); 4] = [
        &|| allowed(&out.send(&body)),
        &|| allowed(&alpha.send(&at, &body)),
        &|| allowed(&alpha.send_with(&at, &body, &keyed)),
        &|| drop(alpha.request(&at, &body, &Default::default()).allowed().unwrap()),
    ];
    for send in sends {
        let mut wait = Box::pin(bravo.recv(&at));
        wakes(&mut |cx| wait.as_mut().poll(cx).is_pending(), send);
        drop(wait);
        message(bravo.try_recv(&at));
    }
    let mine = key("in_kernel:mine");
    bravo.bind(&mine).allowed().unwrap().keep();
    {
        let mut wait = Box::pin(bravo.recv(&mine));
        wakes(&mut |cx| wait.as_mut().poll(cx).is_pending(), &|| allowed(&bravo.unbind(&mine)));
    }
    {
        let mut wait = Box::pin(news.recv());
        wakes(&mut |cx| wait.as_mut().poll(cx).is_pending(), &|| {
            allowed(&alpha.publish(&topic, &body).verdict);
        });
    }
}
