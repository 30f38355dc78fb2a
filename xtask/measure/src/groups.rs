//! Groups, barriers and topologies, and what they are compared with: a sort, a bare graph.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use fak_abi::{AgentHandle, CapSet, Id, PrincipalSpec};
use fak_adjudicate::Kernel;
use fak_agenttopo::Topology;
use fak_comm::{Comm, Group, GroupSpec, Member, Witness};
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::path::Run;
use crate::world::id;

/// Ids in an order that no sort finds half done: a full-period walk over their numbers.
fn scattered(count: u64) -> Vec<Id> {
    // A prime, so that it shares no factor with a count that is a power of ten or of two.
    (0..count).map(|n| id(&format!("agent-{:07}", n * 7_919 % count))).collect()
}

fn ranked(count: u64) -> Group {
    Group::new(GroupSpec::new(id("g"), scattered(count).into_iter().map(Member::new).collect())).unwrap()
}

pub(crate) fn group(members: u64) -> Run {
    let members: Vec<Member> = scattered(members).into_iter().map(Member::new).collect();
    Run::each(move || drop(black_box(Group::new(GroupSpec::new(id("g"), members.clone())).unwrap())))
}

/// The same ids, sorted.
pub(crate) fn sort(members: u64) -> Run {
    let ids = scattered(members);
    Run::each(move || {
        let mut ids = ids.clone();
        ids.sort();
        drop(black_box(ids));
    })
}

/// Every rank arrives.
pub(crate) fn barrier(ranks: u64) -> Run {
    let comm = Arc::new(Comm::new());
    let kernel = Kernel::builder().driver(comm.clone()).build().unwrap();
    let group = ranked(ranks);
    let attach = |member: &Member| {
        let spec = PrincipalSpec::agent(member.id().clone()).fleet(id("f1")).caps(CapSet::ALL);
        kernel.attach(spec).unwrap()
    };
    let agents: Vec<AgentHandle> = group.members().iter().map(attach).collect();
    Run::each(move || {
        let _ = &kernel;
        let barrier = comm.barrier(group.clone());
        for (rank, agent) in agents.iter().enumerate() {
            let _ = black_box(barrier.arrive(agent, &Witness::of(&group, rank).unwrap()));
        }
        assert!(barrier.report().complete);
    })
}

/// Edges to higher ranks, five a member, spread over the graph, none twice.
fn edges(count: u64) -> (Group, Vec<(Id, Id)>) {
    let group = ranked((count / 5).max(100));
    let ids: Vec<Id> = group.members().iter().map(|member| member.id().clone()).collect();
    let mut edges = Vec::new();
    for step in (1..ids.len()).step_by(ids.len() / 16) {
        let pairs = ids.iter().zip(ids.iter().skip(step));
        edges.extend(pairs.map(|(from, to)| (from.clone(), to.clone())).take(count as usize - edges.len()));
    }
    assert_eq!(edges.len() as u64, count);
    (group, edges)
}

pub(crate) fn declare(count: u64) -> Run {
    let (group, edges) = edges(count);
    Run::each(move || {
        let named = edges.iter().map(|(from, to)| (from, to));
        drop(black_box(Topology::declare(id("t"), group.clone(), named).unwrap()));
    })
}

/// The same members and edges as a bare graph, sorted topologically.
pub(crate) fn petgraph(count: u64) -> Run {
    let (group, edges) = edges(count);
    Run::each(move || {
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(group.members().len(), edges.len());
        let nodes: HashMap<&str, NodeIndex> =
            group.members().iter().map(|member| (member.id().as_str(), graph.add_node(()))).collect();
        for (from, to) in &edges {
            let node = |id: &Id| nodes.get(id.as_str()).copied().unwrap();
            graph.add_edge(node(from), node(to), ());
        }
        drop(black_box(toposort(&graph, None).unwrap()));
    })
}
