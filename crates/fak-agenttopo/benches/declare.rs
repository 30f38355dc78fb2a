//! Row 17, the topologies' half: declaring 20,000 members and 100,000 edges against building the same petgraph from the
//! same ids and sorting it topologically.
//!
//! `cargo bench -p fak-agenttopo --bench declare`

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark")]

use std::collections::HashMap;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fak_abi::Id;
use fak_agenttopo::Topology;
use fak_comm::{Group, GroupSpec, Member};
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

const NODES: u32 = 20_000;
const EDGES: usize = 100_000;

/// Edges to higher ranks, spread over the graph, none twice.
fn edges() -> Vec<(u32, u32)> {
    let mut edges = Vec::with_capacity(EDGES);
    let mut step = 1;
    while edges.len() < EDGES {
        let more = (0..NODES - step).map(|from| (from, from + step)).take(EDGES - edges.len());
        edges.extend(more);
        step = step * 3 + 1;
    }
    edges
}

fn declare(c: &mut Criterion) {
    let ids: Vec<Id> = (0..NODES).map(|n| Id::new(&format!("agent-{n:06}")).unwrap()).collect();
    let name = Id::new("t").unwrap();
    let members = ids.iter().cloned().map(Member::new).collect();
    let group = Group::new(GroupSpec::new(name.clone(), members)).unwrap();
    let edges = edges();
    let named: Vec<(&Id, &Id)> =
        edges.iter().map(|(from, to)| (&ids[*from as usize], &ids[*to as usize])).collect();

    let mut bench = c.benchmark_group("row17_declare_100000");
    bench.sample_size(20);
    bench.bench_function("petgraph", |b| {
        b.iter(|| {
            let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(ids.len(), named.len());
            let nodes: HashMap<&str, NodeIndex> =
                ids.iter().map(|id| (id.as_str(), graph.add_node(()))).collect();
            for (from, to) in &named {
                graph.add_edge(nodes[from.as_str()], nodes[to.as_str()], ());
            }
            toposort(&graph, None).unwrap()
        });
    });
    bench.bench_function("declare", |b| {
        b.iter(|| Topology::declare(name.clone(), group.clone(), named.iter().copied()).unwrap());
    });
    bench.finish();

    let mut bench = c.benchmark_group("row17_declare_ranks_100000");
    bench.sample_size(20);
    bench.bench_function("petgraph", |b| {
        b.iter(|| {
            let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(ids.len(), edges.len());
            for _ in 0..NODES {
                graph.add_node(());
            }
            for (from, to) in &edges {
                graph.add_edge(NodeIndex::from(*from), NodeIndex::from(*to), ());
            }
            toposort(&graph, None).unwrap()
        });
    });
    bench.bench_function("declare", |b| {
        b.iter_batched(
            || edges.clone(),
            |edges| Topology::of_ranks(name.clone(), group.clone(), edges).unwrap(),
            BatchSize::LargeInput,
        );
    });
    bench.finish();
}

criterion_group!(benches, declare);
criterion_main!(benches);
