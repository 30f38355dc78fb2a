//! Row 17, the groups' half: ranking 100,000 members against sorting their ids, and a barrier of 1,000 against the
//! bare decisions of its arrivals.
//!
//! `cargo bench -p fak-comm --bench waves`

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fak_abi::{Act, Address, AgentHandle, CapSet, Id, PrincipalSpec, ToolCall};
use fak_adjudicate::Kernel;
use fak_comm::{Comm, Group, GroupSpec, Member, Witness};

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// Ids in an order that no sort finds half done: a full-period walk over their numbers.
fn scattered(count: u64) -> Vec<Id> {
    (0..count).map(|n| id(&format!("agent-{:06}", n * 7_919 % count))).collect()
}

fn ranks(c: &mut Criterion) {
    let mut group = c.benchmark_group("row17_group_100000");
    group.sample_size(20);
    let ids = scattered(100_000);
    let members: Vec<Member> = ids.iter().cloned().map(Member::new).collect();
    group.bench_function("sort", |b| {
        let sort = |mut ids: Vec<Id>| {
            ids.sort();
            ids
        };
        b.iter_batched(|| ids.clone(), sort, BatchSize::LargeInput);
    });
    group.bench_function("group", |b| {
        let rank = |members| Group::new(GroupSpec::new(id("g"), members)).unwrap();
        b.iter_batched(|| members.clone(), rank, BatchSize::LargeInput);
    });
    group.finish();
}

fn barrier(c: &mut Criterion) {
    const RANKS: u64 = 1_000;
    let mut bench = c.benchmark_group("row17_barrier_1000");
    bench.throughput(Throughput::Elements(RANKS));
    let comm = Arc::new(Comm::new());
    let kernel = Kernel::builder().driver(comm.clone()).build().unwrap();
    let group =
        Group::new(GroupSpec::new(id("g"), scattered(RANKS).into_iter().map(Member::new).collect())).unwrap();
    let attach = |member: &Member| {
        kernel.attach(PrincipalSpec::agent(member.id().clone()).fleet(id("f1")).caps(CapSet::ALL)).unwrap()
    };
    let agents: Vec<AgentHandle> = group.members().iter().map(attach).collect();
    bench.bench_function("decide", |b| {
        b.iter(|| {
            let mut allowed = 0;
            for (rank, agent) in (0..).zip(&agents) {
                let call = ToolCall::new(agent, Act::Arrive).address(Address::Group(group.name(), rank));
                allowed += u64::from(agent.decide(black_box(&call)).is_allow());
            }
            assert_eq!(allowed, RANKS);
        });
    });
    bench.bench_function("barrier", |b| {
        b.iter(|| {
            let barrier = comm.barrier(group.clone());
            for (rank, agent) in agents.iter().enumerate() {
                let witness = Witness::of(&group, rank).unwrap();
                let _ = black_box(barrier.arrive(agent, &witness));
            }
            assert!(barrier.report().complete);
        });
    });
    bench.finish();
}

criterion_group!(benches, ranks, barrier);
criterion_main!(benches);
