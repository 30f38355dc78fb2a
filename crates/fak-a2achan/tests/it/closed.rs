//! §4.11: a closed bus takes nothing more and keeps nobody waiting, also at inboxes that were never used.

use std::sync::{Arc, OnceLock};

use fak_a2achan::{Bus, BusConfig, Delivery};
use fak_abi::{Adjudicator, Desk, Opinion, Reason, RungName, ToolCall};

use crate::correction::{request, status};
use crate::group::{collective, of, submit_to};
use crate::support::*;

#[test]
fn no_inbox_is_made_on_a_closed_bus() {
    let world = of(BusConfig::default());
    let (lead, hand, worker) = (world.agent("lead"), collective(&world, "hand"), world.agent("worker"));
    allowed(&worker.post_status(&status(1)).verdict);
    let mine = key("in_kernel:mine");
    lead.bind(&mine).allowed().unwrap().keep();
    world.bus.close();
    denied(&worker.post_status(&status(2)).verdict, Reason::Misroute, "a2achan/closed");
    denied(&lead.unbind(&mine), Reason::Misroute, "a2achan/closed");
    denied(&lead.correct(&request(&status(1), "stop")).verdict, Reason::Misroute, "a2achan/closed");
    let body = shared(&hand, "go");
    let ticket = submit_to(hand.agent(), Some(worker.agent().principal()), &body);
    assert_eq!(ticket.verdict().reason(), Some(Reason::Misroute), "{}", ticket.verdict());
    let team = id("team");
    refused(worker.try_recv_group(&team), Reason::Misroute, "a2achan/closed");
    refused(Hand::new(worker.recv_group(&team)).ready(), Reason::Misroute, "a2achan/closed");
    for delivery in [worker.try_receive_correction(), Hand::new(worker.receive_correction()).ready()] {
        match delivery {
            Delivery::Refuse(verdict) => denied(&verdict, Reason::Misroute, "a2achan/closed"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.bus.stats().sent, 0);
}

/// Closes the bus while an act is on the way.
#[derive(Default)]
struct Closes(OnceLock<Bus>);

impl Adjudicator for Closes {
    fn name(&self) -> RungName {
        "closes"
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }
    fn commit(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        if call.tool().name() != "ref.widen"
            && let Some(bus) = self.0.get()
        {
            bus.close();
        }
        Opinion::Defer
    }
}

/// What a close overtakes is refused, and waits for nothing.
#[test]
fn an_act_that_a_close_overtakes_is_refused() {
    let acts: [fn(&fak_a2achan::Endpoint) -> fak_abi::Verdict; 6] = [
        |agent| agent.subscribe(&key("in_kernel:news")).verdict(),
        |agent| agent.bind(&key("in_kernel:w")).verdict(),
        |agent| agent.send(&key("in_kernel:w"), &shared(agent, "x")),
        |agent| agent.request(&key("in_kernel:w"), &shared(agent, "x"), &Default::default()).verdict(),
        |agent| agent.compact(&private(agent, "x"), &[]).verdict(),
        |agent| agent.correct(&request(&status(1), "stop")).verdict,
    ];
    for (at, act) in acts.into_iter().enumerate() {
        let closes = Arc::new(Closes::default());
        let world = World::with(BusConfig::default(), |b| b.rung(fak_adjudicate::Rank(0), closes.clone()));
        let (lead, worker) = (world.agent("lead"), world.agent("worker"));
        allowed(&worker.post_status(&status(1)).verdict);
        let _ = closes.0.set(world.bus.clone());
        let verdict = act(&lead);
        assert_eq!(verdict.reason(), Some(Reason::Misroute), "{at}: {verdict}");
        let stats = world.bus.stats();
        assert_eq!(stats.queued, 0, "{at}");
        assert!(stats.is_conserved());
    }
}
