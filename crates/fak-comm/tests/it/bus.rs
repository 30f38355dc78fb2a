//! The collectives over the bus that moves their bytes (§6.2, §6.3).

use std::sync::Arc;

use fak_a2achan::{Bus, BusConfig, Delivery, Endpoint};
use fak_abi::{CapSet, Id, PrincipalSpec, Reason, Ref, ShareScope};
use fak_adjudicate::Kernel;
use fak_comm::{Comm, Witness};

use crate::support::{denies, group, id, now};

struct World {
    kernel: Arc<Kernel>,
    bus: Bus,
    comm: Arc<Comm>,
}

impl World {
    fn new(capacity: usize) -> Self {
        let bus = Bus::new(BusConfig { capacity, ..BusConfig::default() }).unwrap();
        let comm = Arc::new(Comm::new());
        let kernel = Kernel::builder().driver(bus.driver()).driver(comm.clone()).build().unwrap();
        Self { kernel, bus, comm }
    }

    fn attach(&self, name: &str, fleet: &str) -> Endpoint {
        let spec = PrincipalSpec::agent(id(name)).fleet(id(fleet)).caps(CapSet::ALL);
        self.bus.endpoint(&self.kernel.attach(spec).unwrap())
    }
}

fn shared(by: &Endpoint, text: &str) -> Ref {
    by.agent().widen(&by.agent().mint(text.to_owned()), ShareScope::Fleet).allowed().unwrap()
}

fn received(by: &Endpoint, group: &Id) -> Option<String> {
    let message = by.try_recv_group(group).message()?;
    Some(String::from_utf8(by.agent().read(message.body()).allowed().unwrap().to_vec()).unwrap())
}

#[test]
fn members_receive_in_their_group_inboxes() {
    let world = World::new(8);
    let [a, b, c] = ["a", "b", "c"].map(|name| world.attach(name, "f1"));
    let wave = world.comm.open(group(&["b", "c"]));
    assert!(now(wave.broadcast(a.agent(), &shared(&a, "plan"))).is_allow());
    let goals = [shared(&a, "for b"), shared(&a, "for c")];
    assert!(now(wave.scatter(a.agent(), &goals)).unwrap().is_allow());
    for (member, goal) in [(&b, "for b"), (&c, "for c")] {
        assert_eq!(received(member, &id("g")).as_deref(), Some("plan"));
        assert_eq!(received(member, &id("g")).as_deref(), Some(goal));
        assert_eq!(received(member, &id("g")), None);
    }
    assert_eq!(received(&a, &id("g")), None, "whoever is no member has no inbox there");
    let tally = world.bus.stats();
    assert!(tally.is_conserved());
    assert_eq!((tally.sent, tally.received), (4, 4));
}

#[test]
fn a_pending_hand_over_keeps_a_slot_of_every_inbox() {
    let world = World::new(1);
    let [a, b, _c] = ["a", "b", "c"].map(|name| world.attach(name, "f1"));
    let wave = world.comm.open(group(&["b", "c"]));
    let body = shared(&a, "plan");
    let pending = wave.ibroadcast(a.agent(), &body).allowed().unwrap();
    assert_eq!(received(&b, &id("g")), None, "nothing is there before it is completed");
    let full = wave.ibroadcast(a.agent(), &body);
    assert_eq!((full.refusal().unwrap().rank, full.verdict().reason()), (0, Some(Reason::RateLimited)));
    drop(pending);
    let mut pending = wave.ibroadcast(a.agent(), &body).allowed().unwrap();
    assert_eq!(pending.try_complete().unwrap().delivered, 2);
    assert_eq!(received(&b, &id("g")).as_deref(), Some("plan"));
    let refused = wave.ibroadcast(a.agent(), &body);
    assert_eq!(refused.refusal().unwrap().member.as_str(), "c", "its inbox is full still");
    assert!(world.bus.stats().is_conserved());
}

/// I28 over the bus: nobody receives, nothing is queued, nothing is dead.
#[test]
fn i28_a_refused_broadcast_leaves_no_trace_in_any_inbox() {
    let world = World::new(8);
    let [a, b] = ["a", "b"].map(|name| world.attach(name, "f1"));
    let _c = world.attach("c", "f2");
    let wave = world.comm.open(group(&["a", "b", "c"]));
    let answer = now(wave.broadcast(a.agent(), &shared(&a, "plan")));
    let refusal = answer.refusal().unwrap();
    denies(&refusal.verdict, Reason::TrustViolation);
    assert_eq!(refusal.rank, 2);
    assert!(received(&a, &id("g")).is_none() && received(&b, &id("g")).is_none());
    let tally = world.bus.stats();
    assert_eq!((tally.sent, tally.dead, tally.queued), (0, 0, 0));
}

#[test]
fn a_member_gone_meanwhile_makes_a_dead_letter_that_the_outcome_names() {
    let world = World::new(8);
    let [a, b, _c] = ["a", "b", "c"].map(|name| world.attach(name, "f1"));
    let wave = world.comm.open(group(&["b", "c"]));
    let pending = wave.ibroadcast(a.agent(), &shared(&a, "plan")).allowed().unwrap();
    world.kernel.detach(&id("c")).unwrap();
    let delivery = now(pending.complete());
    assert_eq!((delivery.delivered, delivery.lost.len()), (1, 1));
    assert_eq!((delivery.lost[0].rank, delivery.lost[0].member.as_str()), (1, "c"));
    assert_eq!(denies(delivery.lost[0].verdict.as_ref().unwrap(), Reason::Misroute), "a2achan/member");
    assert_eq!(received(&b, &id("g")).as_deref(), Some("plan"));
    assert_eq!((world.bus.stats().dead, a.dead_letters().len()), (1, 1));
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn arrivals_pass_the_floor_of_both_layers() {
    let world = World::new(8);
    let a = world.attach("a", "f1");
    let barrier = world.comm.barrier(group(&["a"]));
    assert!(barrier.arrive(a.agent(), &Witness::of(barrier.group(), 0).unwrap()).is_allow());
    assert!(barrier.report().complete);
}

#[tokio::test]
async fn a_member_waits_for_what_it_is_handed() {
    let world = World::new(8);
    let [a, b] = ["a", "b"].map(|name| world.attach(name, "f1"));
    let waits = tokio::spawn(async move { matches!(b.recv_group(&id("g")).await, Delivery::Message(_)) });
    tokio::task::yield_now().await;
    let wave = world.comm.open(group(&["b"]));
    assert!(wave.broadcast(a.agent(), &shared(&a, "plan")).await.is_allow());
    assert!(waits.await.unwrap());
}
