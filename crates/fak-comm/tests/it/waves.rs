//! Spawning and splitting (§6.1, §6.6), and what a layer belongs to (§3.1).

use std::sync::Arc;

use fak_abi::{Capability, Reason};
use fak_adjudicate::{BuildError, Kernel};
use fak_comm::{Group, GroupSpec, Member};

use crate::support::{World, denies, group, id};

#[test]
fn an_id_alive_in_the_wave_is_held_until_it_ends_or_is_detached() {
    let world = World::new();
    let [_a] = world.attach_all(["a"]);
    let minted = world.comm.spawn(&group(&["a", "b"])).allowed().unwrap();
    assert_eq!(
        minted.iter().map(|m| (m.id.as_str(), m.rank, m.size)).collect::<Vec<_>>(),
        [("a", 0, 2), ("b", 1, 2)]
    );
    assert_eq!(denies(&world.comm.spawn(&group(&["a", "c"])).verdict(), Reason::LeaseHeld), "comm/alive");
    world.kernel.detach(&id("a")).unwrap();
    assert!(world.comm.spawn(&group(&["a", "c"])).is_allow());
    assert!(world.comm.waves().end("g", "b"));
}

#[test]
fn a_split_is_an_act_and_its_parts_rank_from_zero() {
    let world = World::new();
    let [a] = world.attach_all(["a"]);
    let poor = world.attach_with("poor", &[Capability::LaneLease]);
    let members =
        ["a", "b", "c"].map(|m| Member::new(id(m)).in_lane(id(if m == "b" { "docs" } else { "src" })));
    let wave = world.comm.open(Group::new(GroupSpec::new(id("g"), members.to_vec())).unwrap());
    let parts = wave.split(&a, Member::lane).unwrap().allowed().unwrap();
    let seen: Vec<_> = parts.iter().map(|p| (p.colour.as_str(), p.group.size(), p.group.rank("c"))).collect();
    assert_eq!(seen, [("docs", 1, None), ("src", 2, Some(1))]);
    let refused = wave.split(&poor, Member::lane).unwrap();
    assert_eq!(denies(&refused.verdict(), Reason::DefaultDeny), "comm/capability");
}

#[test]
fn a_layer_belongs_to_one_kernel() {
    let world = World::new();
    let comm = Kernel::builder().driver(world.comm.clone()).build();
    assert!(matches!(comm, Err(BuildError::Install(_))));
    let lanes = Kernel::builder().driver(world.lanes.clone()).build();
    assert!(matches!(lanes, Err(BuildError::Install(_))));
}

#[test]
fn layer_and_kernel_are_both_dropped() {
    let world = World::new();
    let [a] = world.attach_all(["a"]);
    let _pending = world.comm.open(group(&["a"])).ibroadcast(&a, &a.mint("x"));
    let (kernel, comm) = (Arc::downgrade(&world.kernel), Arc::downgrade(&world.comm));
    drop((world, a, _pending));
    assert!(kernel.upgrade().is_none() && comm.upgrade().is_none());
}
