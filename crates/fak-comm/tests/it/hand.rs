//! Broadcast and scatter: all or none, into the members' inboxes, provenance unchanged (§6.2, §6.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fak_abi::{
    Act, Address, Adjudicator, AgentHandle, Capability, Desk, Emitter, Event, EventKind, EventKinds, Opinion,
    Reason, RungName, ShareScope, Site, Taint, ToolCall,
};
use fak_adjudicate::Rank;
use proptest::prelude::*;

use crate::support::{World, denies, group, id, now, shared, text};

#[test]
fn a_broadcast_hands_one_value_to_every_member() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let body = shared(&a, "plan");
    let wave = world.comm.open(group(&["c", "a", "b"]));
    let delivery = now(wave.broadcast(&a, &body)).allowed().unwrap();
    assert_eq!((delivery.delivered, delivery.lost.len()), (3, 0));
    for member in [&a, &b, &c] {
        let got = world.inboxes.of(member.principal().id());
        assert_eq!(got.len(), 1);
        assert_eq!(text(member, &got[0]), "plan");
        assert_eq!((got[0].taint(), got[0].scope()), (Taint::Tainted, ShareScope::Fleet));
        assert!(got[0].is_owned_by(a.principal()), "provenance rides the value");
    }
}

#[test]
fn a_scatter_hands_goal_r_to_rank_r() {
    let world = World::new();
    let [a, ..] = world.attach_all(["a", "b", "c"]);
    let goals = ["for a", "for b", "for c"].map(|goal| shared(&a, goal));
    let wave = world.comm.open(group(&["c", "a", "b"]));
    assert!(now(wave.scatter(&a, &goals)).unwrap().is_allow());
    for (member, goal) in ["a", "b", "c"].iter().zip(&goals) {
        assert_eq!(world.inboxes.of(member)[0].digest(), goal.digest());
    }
    let err = now(wave.scatter(&a, &goals[..2])).unwrap_err();
    assert_eq!(err.kind(), "arity");
    assert_eq!(world.inboxes.queued(), 3, "an error submits nothing");
}

/// I28: a broadcast must not reach half of a group before one member refuses it.
#[test]
fn i28_one_member_of_another_fleet_and_nobody_receives() {
    let world = World::new();
    let [a, ..] = world.attach_all(["a", "b", "d"]);
    let _c = world.attach("c", "f2");
    let wave = world.comm.open(group(&["a", "b", "c", "d"]));
    let answer = now(wave.broadcast(&a, &shared(&a, "plan")));
    let refusal = answer.refusal().unwrap();
    assert_eq!((refusal.rank, refusal.member.as_str()), (2, "c"));
    assert_eq!(denies(&refusal.verdict, Reason::TrustViolation), "comm/member");
    assert_eq!(refusal.verdict.by(), "comm/floor");
    assert_eq!((world.inboxes.queued(), world.inboxes.claimed()), (0, 0));
    assert_eq!(world.kernel.pending(), 0);
}

#[test]
fn the_floor_of_hand_overs() {
    let world = World::new();
    let [a, _b] = world.attach_all(["a", "b"]);
    let poor = world.attach_with("poor", &[Capability::A2aSend]);
    let other = world.attach("other", "f2");
    let refused = |agent, wave: &[&str], body| {
        let answer = now(world.comm.open(group(wave)).broadcast(agent, body));
        let refusal = answer.refusal().unwrap_or_else(|| panic!("allowed")).clone();
        (refusal.rank, refusal.verdict)
    };
    let body = shared(&a, "x");
    assert_eq!(denies(&refused(&poor, &["a", "b"], &body).1, Reason::DefaultDeny), "comm/capability");
    let (rank, verdict) = refused(&a, &["a", "b", "nobody"], &body);
    assert_eq!((rank, denies(&verdict, Reason::Misroute)), (2, "comm/absent"));
    let private = a.mint("private");
    let (rank, verdict) = refused(&a, &["a", "b"], &private);
    assert_eq!((rank, denies(&verdict, Reason::TrustViolation)), (1, "comm/member"));
    let held = a.raise(&body, Taint::Quarantined);
    assert_eq!(denies(&refused(&a, &["a", "b"], &held).1, Reason::TrustViolation), "comm/quarantined");
    assert_eq!(denies(&refused(&other, &["a", "b"], &body).1, Reason::TrustViolation), "comm/sender");
    assert_eq!(world.inboxes.queued(), 0);
    // To oneself alone a private value may go.
    assert!(now(world.comm.open(group(&["a"])).broadcast(&a, &a.mint("private"))).is_allow());
}

#[test]
fn a_detached_handle_and_one_of_another_kernel_are_refused() {
    let (world, elsewhere) = (World::new(), World::new());
    let [a, b] = world.attach_all(["a", "b"]);
    let [stranger, _] = elsewhere.attach_all(["a", "b"]);
    let wave = world.comm.open(group(&["a", "b"]));
    let verdict = now(wave.broadcast(&stranger, &shared(&stranger, "x"))).verdict();
    denies(&verdict, Reason::TrustViolation);
    denies(&wave.barrier(&stranger).verdict(), Reason::TrustViolation);
    let body = shared(&b, "x");
    world.kernel.detach(&id("b")).unwrap();
    denies(&now(wave.broadcast(&b, &body)).verdict(), Reason::DefaultDeny);
    assert_eq!(world.inboxes.queued() + elsewhere.inboxes.queued(), 0);
    drop(a);
    let loose = fak_comm::Comm::new();
    denies(
        &now(loose.open(group(&["a", "b"])).broadcast(&stranger, &shared(&stranger, "x"))).verdict(),
        Reason::TrustViolation,
    );
}

#[test]
fn a_pending_hand_over_has_its_slots_and_gives_them_back() {
    let world = World::new();
    let [a, ..] = world.attach_all(["a", "b"]);
    let wave = world.comm.open(group(&["a", "b"]));
    let body = shared(&a, "x");
    let first = wave.ibroadcast(&a, &body).allowed().unwrap();
    let mut second = wave.ibroadcast(&a, &body).allowed().unwrap();
    assert_eq!((world.inboxes.queued(), world.inboxes.claimed()), (0, 4));
    let full = wave.ibroadcast(&a, &body);
    assert_eq!(denies(&full.verdict(), Reason::RateLimited), "test/full");
    assert_eq!(full.refusal().unwrap().rank, 0);
    assert_eq!(first.seqs().len(), 2);
    drop(first);
    assert_eq!(world.inboxes.claimed(), 2);
    assert_eq!(second.try_complete().unwrap().delivered, 2);
    assert_eq!((world.inboxes.queued(), world.inboxes.claimed()), (2, 0));
    drop(second);
    assert_eq!(world.inboxes.queued(), 2, "what was handed over stays");
    drop(wave.broadcast(&a, &body));
    assert_eq!(world.inboxes.queued(), 2, "a future that was never polled hands over nothing");
}

#[test]
fn a_member_gone_meanwhile_is_named() {
    let world = World::new();
    let [a, ..] = world.attach_all(["a", "b", "c"]);
    let wave = world.comm.open(group(&["a", "b", "c"]));
    let pending = wave.ibroadcast(&a, &shared(&a, "x")).allowed().unwrap();
    world.kernel.detach(&id("b")).unwrap();
    let delivery = now(pending.complete());
    assert_eq!(delivery.delivered, 2);
    assert_eq!(
        delivery.lost.iter().map(|lost| (lost.rank, lost.member.as_str())).collect::<Vec<_>>(),
        [(1, "b")]
    );
}

/// A host rung that refuses what goes to one member.
struct Not(&'static str);

impl Adjudicator for Not {
    fn name(&self) -> RungName {
        "test/not"
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        if call.resolved().is_some_and(|member| member.id().as_str() == self.0) {
            Opinion::deny(Reason::PolicyBlock, Site::new("test/not"))
        } else {
            Opinion::Defer
        }
    }
}

/// Counts withdrawals.
struct Withdrawn(Arc<AtomicUsize>);

impl Emitter for Withdrawn {
    fn kinds(&self) -> EventKinds {
        EventKinds::of(&[EventKind::Withdraw])
    }

    fn emit(&self, _event: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn what_was_admitted_before_the_refusal_is_withdrawn_one_by_one() {
    let withdrawn = Arc::new(AtomicUsize::new(0));
    let count = Withdrawn(withdrawn.clone());
    let world = World::with(|builder| builder.rung(Rank::default(), Arc::new(Not("c"))).emitter(count));
    let [a, ..] = world.attach_all(["a", "b", "c", "d"]);
    let wave = world.comm.open(group(&["a", "b", "c", "d"]));
    let answer = now(wave.broadcast(&a, &shared(&a, "x")));
    assert_eq!(answer.refusal().unwrap().rank, 2);
    assert_eq!(answer.verdict().by(), "test/not");
    assert_eq!(withdrawn.load(Ordering::SeqCst), 2);
    assert_eq!((world.inboxes.queued(), world.inboxes.claimed()), (0, 0));
}

#[test]
fn a_recipient_that_was_detached_is_absent() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let (body, name) = (shared(&a, "x"), id("g"));
    let _wave = world.comm.open(group(&["b"]));
    let call = ToolCall::new(&a, Act::Broadcast).args(&body).address(Address::Group(&name, 0));
    let call = call.recipient(Some(b.principal()));
    assert!(a.decide(&call).is_allow());
    world.kernel.detach(&id("b")).unwrap();
    assert_eq!(denies(&a.decide(&call), Reason::Misroute), "comm/absent");
    let nowhere = ToolCall::new(&a, Act::Broadcast).args(&body).recipient(Some(a.principal()));
    assert_eq!(denies(&a.decide(&nowhere), Reason::Malformed), "comm/malformed");
}

/// §6.3: an address that an agent writes itself hands nothing to anybody who is not in that rank of an open group.
#[test]
fn an_address_alone_hands_over_nothing() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let (body, name) = (shared(&a, "x"), id("g"));
    let refused = |act, rank, to: Option<&AgentHandle>, reason| {
        let call = ToolCall::new(&a, act).args(&body).address(Address::Group(&name, rank));
        let ticket = a.submit(&call.recipient(to.map(AgentHandle::principal)));
        denies(ticket.verdict(), reason)
    };
    for act in [Act::Broadcast, Act::Scatter, Act::Gather, Act::Barrier, Act::Split] {
        assert_eq!(refused(act, 0, Some(&b), Reason::Misroute), "comm/group");
    }
    // Of two groups of one name, either gives its seats; clones keep a group open, and the last one closes it.
    let (wave, twin) = (world.comm.open(group(&["a", "b"])), world.comm.open(group(&["b"])));
    let (again, clone) = (world.comm.open(twin.group().clone()), twin.clone());
    for act in [Act::Broadcast, Act::Scatter] {
        assert_eq!(refused(act, 0, Some(&c), Reason::TrustViolation), "comm/seat");
        assert_eq!(refused(act, 2, Some(&b), Reason::TrustViolation), "comm/seat");
        assert_eq!(refused(act, 9, None, Reason::Misroute), "comm/group");
    }
    assert_eq!(refused(Act::Gather, 2, None, Reason::Misroute), "comm/group");
    let is_seated = |rank, to: &AgentHandle| {
        let call = ToolCall::new(&a, Act::Broadcast).args(&body).address(Address::Group(&name, rank));
        a.decide(&call.recipient(Some(to.principal()))).is_allow()
    };
    assert!(is_seated(0, &a) && is_seated(1, &b) && is_seated(0, &b));
    drop((twin, clone));
    assert!(is_seated(0, &b));
    drop(again);
    assert!(!is_seated(0, &b) && is_seated(1, &b));
    drop(wave);
    assert_eq!(refused(Act::Broadcast, 1, Some(&b), Reason::Misroute), "comm/group");
    assert_eq!((world.inboxes.queued(), world.inboxes.claimed()), (0, 0));
}

#[test]
fn explain_says_which_check_refuses_a_rank() {
    let world = World::new();
    let [a, _b] = world.attach_all(["a", "b"]);
    let wave = world.comm.open(group(&["a", "b"]));
    let private = a.mint("private");
    let why = wave.explain(&a, Act::Broadcast, 1, Some(&private));
    assert_eq!(denies(&why.verdict, Reason::TrustViolation), "comm/member");
    assert_eq!(why.site.unwrap().clause, "§6.3");
    assert!(wave.explain(&a, Act::Broadcast, 0, Some(&private)).verdict.is_allow());
    assert_eq!(world.inboxes.claimed(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Members of several fleets, some absent, inboxes that may be full: either everybody has the value, or nobody
    /// has and nothing is set aside.
    #[test]
    fn a_refused_collective_delivers_nothing(members in proptest::collection::vec((0u8..4, 0usize..3), 1..6)) {
        let world = World::new();
        let root = world.attach("root", "f1");
        let names: Vec<String> = (0..members.len()).map(|n| format!("m{n}")).collect();
        let mut expected = true;
        for (name, (kind, queued)) in names.iter().zip(&members) {
            match kind {
                0 => expected = false,
                1 => { world.attach(name, "f2"); expected = false; }
                _ => {
                    world.attach(name, "f1");
                    let alone = world.comm.open(group(&[name]));
                    for _ in 0..*queued {
                        prop_assert!(now(alone.broadcast(&root, &shared(&root, "before"))).is_allow());
                    }
                    expected &= *queued < 2;
                }
            }
        }
        let before = world.inboxes.queued();
        let wave = world.comm.open(group(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        let answer = now(wave.broadcast(&root, &shared(&root, "plan")));
        prop_assert_eq!(answer.is_allow(), expected);
        prop_assert_eq!(world.inboxes.queued(), before + if expected { members.len() } else { 0 });
        prop_assert_eq!(world.inboxes.claimed(), 0);
        prop_assert_eq!(world.kernel.pending(), 0);
    }
}
