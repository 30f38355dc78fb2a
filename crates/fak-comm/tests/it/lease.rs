//! Leases as acts: admitted or refused, fenced, freed (§6.7, I11, I12, I13).

use std::time::Duration;

use fak_abi::{Capability, Reason, Verdict};
use fak_comm::{Group, GroupSpec, LaneRequest, Lease, Leased, Member, Why};

use crate::support::{World, denies, id};

const TTL: Duration = Duration::from_secs(3);

fn lane(world: &World, agent: &fak_abi::AgentHandle, name: &str) -> Leased<Lease> {
    world.lanes.lease(agent, LaneRequest::Lane(name), TTL)
}

fn taken(leased: Leased<Lease>) -> Lease {
    leased.allowed().unwrap()
}

/// I13: a conflict is refused, never granted with a warning; the refusal names what is in the way.
#[test]
fn i13_a_conflict_is_refused_and_named_once() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let stranger = world.attach("s", "f2");
    let docs = taken(lane(&world, &a, "docs"));
    let refused = lane(&world, &b, "guide");
    let refusal = refused.refusal().unwrap();
    assert_eq!(denies(&refusal.verdict, Reason::LeaseHeld), "lanes/held");
    assert_eq!(refusal.verdict.refusal().unwrap().retry_after_ms, Some(3_000));
    assert_eq!(refusal.conflicts.len(), 1);
    assert_eq!(
        (refusal.conflicts[0].fence, refusal.conflicts[0].holder.clone()),
        (docs.fence(), Some(id("a")))
    );
    assert!(matches!(refusal.conflicts[0].why, Why::Overlap { .. }));
    let both = world.lanes.lease(&b, LaneRequest::Tree(&["docs/a", "docs/b", "docs/guide/x"]), TTL);
    assert_eq!(both.refusal().unwrap().conflicts.len(), 1);
    denies(&lane(&world, &a, "docs").verdict(), Reason::LeaseHeld);
    denies(&lane(&world, &b, "abi").verdict(), Reason::LeaseHeld);
    assert_eq!(lane(&world, &stranger, "docs").refusal().unwrap().conflicts[0].holder, None);
    assert_eq!(world.lanes.live().len(), 1);
    assert_eq!(taken(lane(&world, &b, "src")).fence(), docs.fence() + 1, "refusals consume no fence");
}

/// I11: an expired lease is not honoured, and its token is stale once another holds the region.
#[test]
fn i11_the_first_holder_cannot_write_after_the_second_was_granted() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let first = taken(lane(&world, &a, "docs"));
    assert!(world.lanes.check(&a, &first, "docs/x").is_allow());
    world.advance(600_000);
    denies(&world.lanes.check(&a, &first, "docs/x").verdict(), Reason::Misroute);
    let second = taken(lane(&world, &b, "docs"));
    assert!(second.fence() > first.fence());
    let stale = world.lanes.check(&a, &first, "docs/x");
    assert_eq!(denies(&stale.verdict(), Reason::LeaseHeld), "lanes/stale");
    assert_eq!(stale.refusal().unwrap().conflicts[0].fence, second.fence());
    denies(&world.lanes.renew(&a, &first, TTL).verdict(), Reason::LeaseHeld);
    denies(&world.lanes.release(&a, &first).verdict(), Reason::LeaseHeld);
    assert!(world.lanes.check(&b, &second, "docs/x").is_allow());
}

/// I12: two grants in one tick have two fences.
#[test]
fn i12_fences_rise_within_one_tick() {
    let world = World::new();
    let [a] = world.attach_all(["a"]);
    let fences = ["docs", "src"].map(|name| taken(lane(&world, &a, name)).fence());
    assert_eq!(fences, [1, 2]);
}

#[test]
fn renewing_checking_and_releasing() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let lease = taken(lane(&world, &a, "docs"));
    world.advance(2_999);
    let renewed = world.lanes.renew(&a, &lease, TTL).allowed().unwrap();
    assert_eq!(renewed.fence(), lease.fence());
    assert!(renewed.expires() > lease.expires());
    world.advance(2_999);
    assert!(world.lanes.check(&a, &lease, "docs/x").is_allow(), "either token shows the same fence");
    let site = |leased: &Leased<()>, reason| denies(&leased.verdict(), reason);
    assert_eq!(site(&world.lanes.check(&a, &lease, "src/x"), Reason::TrustViolation), "lanes/outside");
    assert_eq!(site(&world.lanes.check(&a, &lease, "docs/../src"), Reason::Malformed), "lanes/path");
    assert_eq!(site(&world.lanes.check(&b, &lease, "docs/x"), Reason::TrustViolation), "lanes/holder");
    assert_eq!(site(&world.lanes.release(&b, &lease), Reason::TrustViolation), "lanes/holder");
    denies(&world.lanes.renew(&a, &lease, Duration::ZERO).verdict(), Reason::Malformed);
    assert!(world.lanes.release(&a, &lease).is_allow());
    assert_eq!(site(&world.lanes.release(&a, &lease), Reason::Misroute), "lanes/gone");
    assert_eq!(site(&world.lanes.check(&a, &lease, "docs/x"), Reason::Misroute), "lanes/gone");
}

#[test]
fn a_lease_is_in_the_way_until_its_expiry() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let _lease = taken(lane(&world, &a, "docs"));
    world.advance(2_999);
    denies(&lane(&world, &b, "docs").verdict(), Reason::LeaseHeld);
    world.advance(1);
    assert!(lane(&world, &b, "docs").is_allow());
}

#[test]
fn what_is_wrong_with_a_request_comes_before_what_is_in_its_way() {
    let world = World::new();
    let [a] = world.attach_all(["a"]);
    let _abi = taken(lane(&world, &a, "abi"));
    let unknown = lane(&world, &a, "dcos");
    assert_eq!(denies(&unknown.verdict(), Reason::Misroute), "lanes/unknown");
    assert_eq!(unknown.refusal().unwrap().nearest, Some(id("docs")));
    let tree = world.lanes.lease(&a, LaneRequest::Tree(&["docs", "/etc"]), TTL);
    assert_eq!(denies(&tree.verdict(), Reason::Malformed), "lanes/path");
    assert_eq!(denies(&lane(&world, &a, "a\u{202e}b").verdict(), Reason::Malformed), "lanes/name");
    let zero = world.lanes.lease(&a, LaneRequest::Lane("docs"), Duration::ZERO);
    assert_eq!(denies(&zero.verdict(), Reason::Malformed), "lanes/ttl");
    let poor = world.attach_with("poor", &[Capability::A2aSend]);
    assert_eq!(denies(&lane(&world, &poor, "docs").verdict(), Reason::DefaultDeny), "lanes/capability");
}

#[test]
fn one_principal_has_a_share_and_a_detach_frees_it() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    for at in 0..3 {
        assert!(world.lanes.lease(&a, LaneRequest::Tree(&[&format!("t{at}")]), TTL).is_allow());
    }
    let fourth = world.lanes.lease(&a, LaneRequest::Tree(&["t3"]), TTL);
    assert_eq!(denies(&fourth.verdict(), Reason::RateLimited), "lanes/limit");
    denies(&world.lanes.lease(&b, LaneRequest::Tree(&["t0"]), TTL).verdict(), Reason::LeaseHeld);
    world.kernel.detach(&id("a")).unwrap();
    assert!(world.lanes.live().is_empty());
    assert!(world.lanes.lease(&b, LaneRequest::Tree(&["t0"]), TTL).is_allow());
}

#[test]
fn a_token_of_another_arbiter_or_incarnation_is_refused() {
    let (world, elsewhere) = (World::new(), World::new());
    let [a] = world.attach_all(["a"]);
    let [foreign] = elsewhere.attach_all(["a"]);
    let lease = taken(lane(&world, &a, "docs"));
    denies(&world.lanes.check(&foreign, &lease, "docs/x").verdict(), Reason::TrustViolation);
    denies(&elsewhere.lanes.check(&foreign, &lease, "docs/x").verdict(), Reason::TrustViolation);
    denies(&lane(&world, &foreign, "src").verdict(), Reason::TrustViolation);
    world.kernel.detach(&id("a")).unwrap();
    let again = world.attach("a", "f1");
    denies(&world.lanes.check(&again, &lease, "docs/x").verdict(), Reason::TrustViolation);
}

#[test]
fn two_arbiters_of_one_kernel_do_not_know_each_others_tokens() {
    let other = std::sync::Arc::new(fak_comm::LaneArbiter::new(crate::support::LANES.parse().unwrap()));
    let driver = other.clone();
    let world = World::with(|builder| builder.driver(driver));
    let [a] = world.attach_all(["a"]);
    let ours = taken(lane(&world, &a, "docs"));
    let theirs = taken(other.lease(&a, LaneRequest::Lane("docs"), TTL));
    assert_eq!(ours.fence(), theirs.fence());
    assert!(other.check(&a, &theirs, "docs/x").is_allow());
    assert_eq!(denies(&other.check(&a, &ours, "docs/x").verdict(), Reason::TrustViolation), "lanes/holder");
}

#[test]
fn a_split_is_leased_whole_or_not_at_all() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let members = |pairs: &[(&str, &str)]| {
        let members = pairs.iter().map(|(m, lane)| Member::new(id(m)).in_lane(id(lane))).collect();
        Group::new(GroupSpec::new(id("g"), members)).unwrap().split_lane().unwrap()
    };
    let parts = members(&[("x", "docs"), ("y", "src"), ("z", "docs")]);
    let held = taken(lane(&world, &b, "src"));
    let refused = world.lanes.lease_split(&a, &parts, TTL);
    let refusal = refused.refusal().unwrap();
    assert_eq!((refusal.at, refusal.conflicts[0].fence), (Some(1), held.fence()));
    assert_eq!(world.lanes.live().len(), 1, "the first colour was not leased either");
    assert!(world.lanes.release(&b, &held).is_allow());
    let leases = world.lanes.lease_split(&a, &parts, TTL).allowed().unwrap();
    let seen: Vec<_> = leases.iter().map(|lease| (lease.lane().unwrap().as_str(), lease.fence())).collect();
    assert_eq!(seen, [("docs", 2), ("src", 3)]);
    // Colours that overlap each other cannot be leased together.
    leases.iter().for_each(|lease| assert!(world.lanes.release(&a, lease).is_allow()));
    let overlapping = members(&[("x", "docs"), ("y", "guide")]);
    denies(&world.lanes.lease_split(&a, &overlapping, TTL).verdict(), Reason::LeaseHeld);
    assert!(world.lanes.live().is_empty());
}

#[test]
fn explain_names_who_is_in_the_way_to_those_who_may_know() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let stranger = world.attach("s", "f2");
    let _docs = taken(lane(&world, &a, "docs"));
    let why = |agent| world.lanes.explain(agent, LaneRequest::Lane("docs"), TTL);
    assert!(matches!(why(&b).verdict, Verdict::Deny { by: "lanes/arbiter", .. }));
    assert!(why(&b).next.contains("\"a\" holds lane \"docs\" under fence 1"), "{}", why(&b).next);
    assert!(why(&stranger).next.contains("somebody holds lane \"docs\""));
    assert!(world.lanes.explain(&b, LaneRequest::Lane("dcos"), TTL).next.contains("\"docs\""));
    assert!(world.lanes.explain(&b, LaneRequest::Lane("src"), TTL).verdict.is_allow());
    assert_eq!(world.lanes.live().len(), 1, "explaining grants nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_that_race_for_one_lane_exactly_one_wins() {
    for _ in 0..20 {
        let world = World::new();
        let mut tasks = Vec::new();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let (agent, lanes) = (world.attach(name, "f1"), world.lanes.clone());
            tasks.push(tokio::spawn(async move {
                lanes.lease(&agent, LaneRequest::Lane("docs"), TTL).is_allow()
            }));
        }
        let mut won = 0;
        for task in tasks {
            won += usize::from(task.await.unwrap());
        }
        assert_eq!(won, 1);
    }
}
