//! Row 18: gated send and receive with the audit on, in bursts within its queue, against the same
//! with the audit off. The log is drained between bursts, off the clock. Beside it stands a floor: the
//! least channel on which each act is folded over two rungs and noted in a bounded queue.
//!
//! `cargo bench -p fak-a2achan --bench audit`

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use fak_a2achan::{Bus, BusConfig, Channel, Delivery};
use fak_abi::{
    Act, Address, Adjudicator, AgentHandle, CapSet, ChannelKey, Clock, Desk, Digest, Id, Opinion, Principal,
    PrincipalSpec, Ref, RungName, ShareScope, Timestamp, ToolCall,
};
use fak_adjudicate::{AuditLog, AuditOptions, Kernel, Rank, SystemClock};
use parking_lot::Mutex;

/// A host's rung beside the floor, so that two are folded.
struct Looks;

impl Adjudicator for Looks {
    fn name(&self) -> RungName {
        "looks"
    }
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        if call.principal().id().is_empty() { Opinion::Indeterminate } else { Opinion::Allow }
    }
}

/// Messages in one burst: two entries each, far within the queue's 16,384 slots.
const BURST: u64 = 1000;

struct World {
    kernel: Arc<Kernel>,
    log: Option<AuditLog<Vec<u8>>>,
    channel: Channel,
    body: Ref,
}

impl World {
    fn new(audited: bool) -> Self {
        let bus = Bus::new(BusConfig::default()).unwrap();
        let mut builder = Kernel::builder().driver(bus.driver()).rung(Rank(0), Arc::new(Looks));
        let mut log = None;
        if audited {
            let (audit, opened, _) =
                AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), AuditOptions::default()).unwrap();
            builder = builder.audit(Arc::new(audit));
            log = Some(opened);
        }
        let kernel = builder.build().unwrap();
        let spec =
            PrincipalSpec::agent(Id::new("alpha").unwrap()).fleet(Id::new("f1").unwrap()).caps(CapSet::ALL);
        let agent = kernel.attach(spec).unwrap();
        let body = agent.widen(&agent.mint(&b"a body"[..]), ShareScope::Fleet).allowed().unwrap();
        let channel = bus.endpoint(&agent).channel(&"in_kernel:work".parse().unwrap());
        Self { kernel, log, channel, body }
    }

    /// The time that `count` messages take in bursts.
    fn run(&mut self, count: u64) -> Duration {
        let mut spent = Duration::ZERO;
        for burst in bursts(count) {
            let begun = Instant::now();
            for _ in 0..burst {
                assert!(self.channel.send(black_box(&self.body)).is_allow());
                assert!(matches!(black_box(self.channel.try_recv()), Delivery::Message(_)));
            }
            spent += begun.elapsed();
            if let Some(log) = &mut self.log {
                log.drain().unwrap();
                // The log of a benchmark is not kept.
                if log.sink().len() > 64 << 20 {
                    *self = Self::new(true);
                }
            }
        }
        spent
    }
}

fn bursts(count: u64) -> impl Iterator<Item = u64> {
    (0..count.div_ceil(BURST)).map(move |n| (count - n * BURST).min(BURST))
}

/// What is noted of an act.
struct Note {
    who: Arc<Principal>,
    key: ChannelKey,
    body: Option<Ref>,
    at: Timestamp,
    act: Act,
}

/// The floor: a ring behind a lock, two rungs behind `dyn`, a list of notes behind another, and the time.
struct Least {
    world: World,
    rungs: [Arc<dyn Adjudicator>; 2],
    ring: Mutex<VecDeque<(Arc<Principal>, Ref)>>,
    notes: Mutex<Vec<Note>>,
    head: Digest,
}

impl Least {
    fn new() -> Self {
        Self {
            world: World::new(false),
            rungs: [Arc::new(Looks), Arc::new(Looks)],
            ring: Mutex::default(),
            notes: Mutex::new(Vec::with_capacity(2 * BURST as usize)),
            head: Digest::of(b""),
        }
    }

    fn agent(&self) -> &AgentHandle {
        self.world.channel.endpoint().agent()
    }

    /// Folded, done, noted. Nothing is done that could not be noted.
    fn act<T>(&self, act: Act, body: Option<&Ref>, done: impl FnOnce() -> T) -> Option<T> {
        let key = self.world.channel.key();
        let mut call = ToolCall::new(self.agent(), act).address(Address::Channel(key));
        if let Some(body) = body {
            call = call.args(body);
        }
        let desk = Desk { resolver: &*self.world.kernel, clock: &SystemClock };
        let allow =
            |rung: &Arc<dyn Adjudicator>| matches!(rung.judge(black_box(&call), &desk), Opinion::Allow);
        if !self.rungs.iter().all(allow) {
            return None;
        }
        let mut notes = self.notes.lock();
        if notes.len() == notes.capacity() {
            return None;
        }
        let done = done();
        let who = Arc::clone(self.agent().principal());
        notes.push(Note { who, key: key.clone(), body: body.cloned(), at: SystemClock.now(), act });
        Some(done)
    }

    fn drain(&mut self) {
        for Note { who, key, body, at, act } in self.notes.get_mut().drain(..) {
            let digest = body.map(|body| body.digest());
            let line = format!("{at} {} {} {key} {digest:?} {}", who.id(), act.tool(), self.head);
            self.head = Digest::of(line.as_bytes());
        }
    }

    fn run(&mut self, count: u64) -> Duration {
        let mut spent = Duration::ZERO;
        for burst in bursts(count) {
            let begun = Instant::now();
            for _ in 0..burst {
                let body = black_box(&self.world.body);
                let message = || (Arc::clone(self.agent().principal()), body.clone());
                assert!(self.act(Act::Send, Some(body), || self.ring.lock().push_back(message())).is_some());
                assert!(
                    black_box(self.act(Act::Recv, None, || self.ring.lock().pop_front())).flatten().is_some()
                );
            }
            spent += begun.elapsed();
            self.drain();
        }
        spent
    }
}

fn row18(c: &mut Criterion) {
    let mut group = c.benchmark_group("row18_audit");
    for (name, audited) in [("off", false), ("on", true)] {
        let mut world = World::new(audited);
        group.bench_function(name, |b| b.iter_custom(|count| world.run(count)));
    }
    let mut least = Least::new();
    group.bench_function("floor", |b| b.iter_custom(|count| least.run(count)));
    group.finish();
}

criterion_group!(benches, row18);
criterion_main!(benches);
