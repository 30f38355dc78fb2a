//! Rows 1 to 3: the cost of deciding, against a bare loop of the same calls through `dyn`.
//!
//! `cargo bench -p fak-adjudicate --bench decide`

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fak_abi::{
    Adjudicator, AgentHandle, Desk, Id, Opinion, PrincipalSpec, RungName, ToolCall, ToolScope, ToolToken,
};
use fak_adjudicate::{Kernel, Rank, SystemClock};

/// Looks at the call the way a real rung does: principal, body, address.
struct Looks(ToolScope);

impl Adjudicator for Looks {
    fn name(&self) -> RungName {
        "looks"
    }
    fn tools(&self) -> ToolScope {
        self.0.clone()
    }
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let private = call.body().is_some_and(fak_abi::Ref::is_empty);
        if private || call.principal().id().is_empty() { Opinion::Indeterminate } else { Opinion::Allow }
    }
}

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn kernel(rungs: usize, scoped_elsewhere: usize) -> (Arc<Kernel>, AgentHandle, ToolToken) {
    let mut builder = Kernel::builder().tools([id("work")]);
    for n in 0..scoped_elsewhere {
        builder = builder.rung(Rank(0), Arc::new(Looks(ToolScope::only([format!("other-{n}")]))));
    }
    for _ in 0..rungs {
        builder = builder.rung(Rank(0), Arc::new(Looks(ToolScope::Every)));
    }
    let kernel = builder.build().unwrap();
    let agent = kernel.attach(PrincipalSpec::agent(id("alpha")).fleet(id("f1"))).unwrap();
    let token = fak_abi::Gate::tool(&*kernel, &id("work"));
    (kernel, agent, token)
}

fn row1(c: &mut Criterion) {
    for rungs in [1, 8] {
        let mut group = c.benchmark_group(format!("row1_decide_{rungs}"));
        let (kernel, agent, token) = kernel(rungs, 0);
        let body = agent.mint(&b"a body"[..]);
        let bare: Vec<Arc<dyn Adjudicator>> =
            (0..rungs).map(|_| Arc::new(Looks(ToolScope::Every)) as _).collect();
        let clock = SystemClock;
        let desk = Desk { resolver: &*kernel, clock: &clock };
        group.bench_function("bare", |b| {
            b.iter(|| {
                let call = ToolCall::new(&agent, &token).args(&body);
                let mut allowed = false;
                for rung in &bare {
                    allowed |= matches!(rung.judge(black_box(&call), &desk), Opinion::Allow);
                }
                allowed
            });
        });
        group.bench_function("decide", |b| {
            b.iter(|| agent.decide(black_box(&ToolCall::new(&agent, &token).args(&body))).is_allow());
        });
        group.finish();
    }
}

fn row2(c: &mut Criterion) {
    let mut group = c.benchmark_group("row2_scoped_elsewhere");
    for elsewhere in [0, 1_000] {
        let (_kernel, agent, token) = kernel(1, elsewhere);
        let body = agent.mint(&b"a body"[..]);
        group.bench_function(format!("elsewhere_{elsewhere}"), |b| {
            b.iter(|| agent.decide(black_box(&ToolCall::new(&agent, &token).args(&body))).is_allow());
        });
    }
    group.finish();
}

/// The wall time in which each of `threads` makes `each` decisions of its own agent.
fn race(kernel: &Arc<Kernel>, token: &ToolToken, agents: &[AgentHandle], each: u64) -> Duration {
    let _ = kernel;
    let start = Barrier::new(agents.len() + 1);
    std::thread::scope(|scope| {
        let running: Vec<_> = agents
            .iter()
            .map(|agent| {
                scope.spawn(|| {
                    let body = agent.mint(&b"a body"[..]);
                    start.wait();
                    for _ in 0..each {
                        let call = ToolCall::new(agent, token).args(&body);
                        black_box(agent.decide(black_box(&call)).is_allow());
                    }
                })
            })
            .collect();
        start.wait();
        let begun = Instant::now();
        running.into_iter().for_each(|thread| thread.join().unwrap());
        begun.elapsed()
    })
}

fn row3(c: &mut Criterion) {
    let mut group = c.benchmark_group("row3_threads");
    group.throughput(Throughput::Elements(1));
    let (kernel, first, token) = kernel(1, 0);
    let second = kernel.attach(PrincipalSpec::agent(id("bravo")).fleet(id("f1"))).unwrap();
    let agents = [first, second];
    for threads in [1_usize, 2] {
        // Both report the time per decision of one thread; the throughput of two is twice that.
        group.bench_function(format!("threads_{threads}"), |b| {
            b.iter_custom(|each| race(&kernel, &token, agents.get(..threads).unwrap_or_default(), each));
        });
    }
    group.finish();
}

criterion_group!(benches, row1, row2, row3);
criterion_main!(benches);
