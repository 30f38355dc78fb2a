//! §4.11: a closed bus takes nothing more and keeps nobody waiting, also at inboxes that were never used.

use fak_a2achan::{BusConfig, Delivery};
use fak_abi::Reason;

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
