//! Row 18: gated send and receive with the audit on, in bursts within its queue, against the same
//! with the audit off. The log is drained between bursts, off the clock.
//!
//! `cargo bench -p fak-a2achan --bench audit`

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use fak_a2achan::{Bus, BusConfig, Channel, Delivery};
use fak_abi::{
    Adjudicator, CapSet, Desk, Id, Opinion, PrincipalSpec, Ref, RungName, ShareScope, Timestamp, ToolCall,
};
use fak_adjudicate::{AuditLog, AuditOptions, Kernel, Rank};

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
    _kernel: Arc<Kernel>,
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
        Self { _kernel: kernel, log, channel, body }
    }

    /// The time that `count` messages take in bursts.
    fn run(&mut self, count: u64) -> Duration {
        let mut spent = Duration::ZERO;
        let mut left = count;
        while left > 0 {
            let burst = left.min(BURST);
            let begun = Instant::now();
            for _ in 0..burst {
                assert!(self.channel.send(black_box(&self.body)).is_allow());
                assert!(matches!(black_box(self.channel.try_recv()), Delivery::Message(_)));
            }
            spent += begun.elapsed();
            left -= burst;
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

fn row18(c: &mut Criterion) {
    let mut group = c.benchmark_group("row18_audit");
    for (name, audited) in [("off", false), ("on", true)] {
        let mut world = World::new(audited);
        group.bench_function(name, |b| b.iter_custom(|count| world.run(count)));
    }
    group.finish();
}

criterion_group!(benches, row18);
criterion_main!(benches);
