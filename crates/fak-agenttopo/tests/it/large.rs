//! Sizes (§6.10): nothing recurses on the input's depth.

use fak_abi::Id;
use fak_agenttopo::{TopoError, Topology};
use fak_comm::{Group, GroupSpec, Member};

fn id(n: u32) -> Id {
    Id::new(&format!("n{n:07}")).unwrap()
}

fn group(size: u32) -> Group {
    Group::new(GroupSpec::new(id(0), (0..size).map(|n| Member::new(id(n))).collect())).unwrap()
}

/// §6.10.
#[test]
fn a_hundred_thousand_members_and_a_million_edges() {
    let size = 100_000;
    let edges: Vec<(u32, u32)> = (1..=10)
        .flat_map(|step| (0..size - 10).map(move |from| (from, from + step)))
        .take(1_000_000)
        .collect();
    let mut cyclic = edges.clone();
    let topology = Topology::of_ranks(id(0), group(size), edges).unwrap();
    assert_eq!(topology.critical_path().len(), size as usize - 9, "the last nine follow nobody");
    assert_eq!(topology.neighbors(&id(500)).unwrap().from.len(), 10);
    assert!(topology.to_dot().lines().count() > 1_000_000);
    cyclic.push((size - 1, 0));
    let Err(TopoError::Cycle { members }) = Topology::of_ranks(id(0), group(size), cyclic) else {
        panic!("no cycle")
    };
    assert!(members.len() >= 10_000 && members[0] == id(0));
    assert!(TopoError::Cycle { members }.to_string().len() < 2_000);
}

/// §6.8, §6.10: a cycle is named in order, however long.
#[test]
fn a_chain_of_a_million_closed_into_a_ring_names_all_of_it() {
    let size = 1_000_000;
    let ring = (0..size).map(|from| (from, (from + 1) % size)).collect();
    let Err(TopoError::Cycle { members }) = Topology::of_ranks(id(0), group(size), ring) else {
        panic!("no cycle")
    };
    assert_eq!(members.len(), size as usize);
}
