//! §6.2, §6.3: what collectives hand over, from the engine's side.

use std::sync::Arc;
use std::task::Context;

use fak_a2achan::{BusConfig, Delivery};
use fak_abi::{
    Act, Address, AgentHandle, CapSet, Capability, Principal, PrincipalSpec, Reason, Status, Ticket,
    ToolCall, ToolResult,
};
use fak_adjudicate::{KernelBuilder, Rank};

use crate::support::*;

pub(crate) fn collective(world: &World, name: &str) -> fak_a2achan::Endpoint {
    let caps: CapSet = [Capability::CommCollective, Capability::RefWiden].into();
    world.spec(PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(caps))
}

/// Stands in for the layer of groups, which registers the capability and allows its acts.
fn world(capacity: usize) -> World {
    of(BusConfig { capacity, ..BusConfig::default() })
}

pub(crate) fn of(config: BusConfig) -> World {
    with(config, |b| b)
}

pub(crate) fn with(config: BusConfig, more: impl FnOnce(KernelBuilder) -> KernelBuilder) -> World {
    World::with(config, |b| {
        more(b).driver(Arc::new(Groups)).rung(
            Rank(10),
            Arc::new(Rule { tools: vec!["comm.collective"], opinion: |_, _| fak_abi::Opinion::Allow }),
        )
    })
}

struct Groups;

impl fak_abi::Driver for Groups {
    fn name(&self) -> fak_abi::RungName {
        "groups"
    }
    fn capabilities(&self) -> CapSet {
        [Capability::CommCollective].into()
    }
    fn floor(&self) -> Vec<Arc<dyn fak_abi::Adjudicator>> {
        Vec::new()
    }
    fn install(&self, _: fak_abi::DriverLink) -> Result<(), fak_abi::InstallError> {
        Ok(())
    }
}

fn submit(world: &World, lead: &AgentHandle, member: &str, body: &fak_abi::Ref) -> Ticket {
    submit_to(lead, world.kernel.principal(&id(member)).as_ref(), body)
}

pub(crate) fn submit_to(lead: &AgentHandle, member: Option<&Arc<Principal>>, body: &fak_abi::Ref) -> Ticket {
    let group = id("team");
    let call = ToolCall::new(lead, Act::Broadcast).args(body).address(Address::Group(&group, 0));
    lead.submit(&call.recipient(member))
}

pub(crate) fn reap(lead: &AgentHandle, ticket: &Ticket) -> ToolResult {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match lead.gate().poll_reap(lead, ticket, &mut cx) {
        std::task::Poll::Ready(result) => result.unwrap(),
        std::task::Poll::Pending => panic!("pending"),
    }
}

#[test]
fn what_is_reaped_is_in_the_members_inbox() {
    let world = world(1);
    let (lead, bravo) = (collective(&world, "lead"), world.agent("bravo"));
    let body = shared(&lead, "go");
    let team = id("team");
    let mut wait = Hand::new(bravo.recv_group(&team));
    wait.pending();
    let ticket = submit(&world, lead.agent(), "bravo", &body);
    assert!(ticket.verdict().is_allow(), "{}", ticket.verdict());
    assert_eq!(wait.wakes(), 0, "nothing is delivered at submit");
    // The slot is taken: capacity one.
    let second = submit(&world, lead.agent(), "bravo", &body);
    denied(second.verdict(), Reason::RateLimited, "a2achan/full");
    assert_eq!(reap(lead.agent(), &ticket).status, Status::Ok);
    assert_eq!(wait.wakes(), 1);
    let got = message(wait.ready());
    assert_eq!((text(&bravo, got.body()), got.to().to_string()), ("go".into(), "group:\"team\"#0".into()));
    assert!(bravo.try_recv_group(&id("team")).is_empty());
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn withdrawing_gives_the_slot_back() {
    let world = world(1);
    let (lead, bravo) = (collective(&world, "lead"), world.agent("bravo"));
    let body = shared(&lead, "go");
    let ticket = submit(&world, lead.agent(), "bravo", &body);
    lead.agent().withdraw(&ticket).unwrap();
    let ticket = submit(&world, lead.agent(), "bravo", &body);
    assert_eq!(reap(lead.agent(), &ticket).status, Status::Ok);
    message(bravo.try_recv_group(&id("team")));
}

#[test]
fn a_member_that_is_gone_makes_a_dead_letter() {
    let world = world(4);
    let (lead, _bravo) = (collective(&world, "lead"), world.agent("bravo"));
    let body = shared(&lead, "go");
    denied(submit(&world, lead.agent(), "nobody", &body).verdict(), Reason::Misroute, "a2achan/member");
    let _zulu = world.stranger("zulu", "f2");
    let refused = submit(&world, lead.agent(), "zulu", &body);
    denied(refused.verdict(), Reason::TrustViolation, "a2achan/member-unreadable");
    let ticket = submit(&world, lead.agent(), "bravo", &body);
    world.kernel.detach(&id("bravo")).unwrap();
    let result = reap(lead.agent(), &ticket);
    assert_eq!(result.refused.and_then(|verdict| verdict.reason()), Some(Reason::Misroute));
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "gone");
    assert!(world.bus.stats().is_conserved());
}

/// §4.12: a group inbox is a mailbox of which one sender may take three quarters.
#[test]
fn one_sender_leaves_room_in_a_group_inbox() {
    let world = world(64);
    let (lead, bravo) = (collective(&world, "lead"), world.agent("bravo"));
    let body = shared(&lead, "go");
    for _ in 0..48 {
        let ticket = submit(&world, lead.agent(), "bravo", &body);
        assert_eq!(reap(lead.agent(), &ticket).status, Status::Ok);
    }
    denied(submit(&world, lead.agent(), "bravo", &body).verdict(), Reason::RateLimited, "a2achan/full");
    message(bravo.try_recv_group(&id("team")));
    assert!(submit(&world, lead.agent(), "bravo", &body).verdict().is_allow());
}

/// §4.12: what is reserved and not yet reaped counts, so that nobody holds an inbox by submitting.
#[test]
fn reservations_take_the_senders_share() {
    let world = world(64);
    let (lead, bravo) = (collective(&world, "lead"), world.agent("bravo"));
    let body = shared(&lead, "go");
    let tickets: Vec<_> = (0..48).map(|_| submit(&world, lead.agent(), "bravo", &body)).collect();
    assert!(tickets.iter().all(|ticket| ticket.verdict().is_allow()));
    denied(submit(&world, lead.agent(), "bravo", &body).verdict(), Reason::RateLimited, "a2achan/full");
    lead.agent().withdraw(&tickets[0]).unwrap();
    let again = submit(&world, lead.agent(), "bravo", &body);
    assert_eq!(reap(lead.agent(), &again).status, Status::Ok);
    for ticket in &tickets[1..] {
        assert_eq!(reap(lead.agent(), ticket).status, Status::Ok);
    }
    denied(submit(&world, lead.agent(), "bravo", &body).verdict(), Reason::RateLimited, "a2achan/full");
    for _ in 0..48 {
        message(bravo.try_recv_group(&id("team")));
    }
    assert!(submit(&world, lead.agent(), "bravo", &body).verdict().is_allow());
    assert!(world.bus.stats().is_conserved());
}

/// §4.4 of a group inbox: what was handed over goes back to its place when its guard is dropped.
#[test]
fn a_group_inbox_can_be_received_from_under_a_guard() {
    let world = World::with(BusConfig { redeliveries: 1, ..BusConfig::default() }, |b| {
        b.driver(Arc::new(Groups)).rung(
            Rank(10),
            Arc::new(Rule { tools: vec!["comm.collective"], opinion: |_, _| fak_abi::Opinion::Allow }),
        )
    });
    let (lead, bravo) = (collective(&world, "lead"), world.agent("bravo"));
    let team = id("team");
    assert!(bravo.try_recv_group_leased(&team, None).is_empty());
    let mut wait = Hand::new(bravo.recv_group_leased(&team, None, None));
    wait.pending();
    for job in ["1", "2"] {
        let ticket = submit(&world, lead.agent(), "bravo", &shared(&lead, job));
        assert_eq!(reap(lead.agent(), &ticket).status, Status::Ok);
    }
    let Delivery::Message(one) = wait.ready() else { panic!("no message") };
    assert_eq!(text(&bravo, one.message().body()), "1");
    assert_eq!(world.bus.stats().queued, 2, "a leased one counts as queued");
    drop(one);
    let one = bravo.try_recv_group_leased(&team, None).message().unwrap();
    assert_eq!((text(&bravo, one.message().body()), one.message().redeliveries()), ("1".to_owned(), 1));
    allowed(&one.ack());
    (0..2).for_each(|_| drop(bravo.try_recv_group_leased(&team, None).message().unwrap()));
    assert!(bravo.try_recv_group(&team).is_empty());
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "redelivered");
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.dead), (2, 1, 1));
    assert!(stats.is_conserved());
}
