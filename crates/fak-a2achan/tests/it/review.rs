//! Margins of the hot paths: what happens between two looks, to one message that is the only one, and to
//! a wait that was woken and has not come round yet.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fak_a2achan::{BusConfig, Cause, Delivery, Endpoint, RequestOptions};
use fak_abi::{
    Adjudicator, Desk, Edges, Emitter, Event, EventKind, EventKinds, Opinion, Principal, Reason, Rider,
    RungName, Site, ToolCall, ToolScope,
};

use crate::support::*;

struct NotFromCarol;

impl Edges for NotFromCarol {
    fn may_hand(&self, from: &Principal, _: &Principal) -> bool {
        from.id().as_str() != "carol"
    }
}

/// §4.4: what was put back once does not make a later look begin again for ever.
#[test]
fn a_look_ends_where_something_was_put_back_before() {
    let world = World::with(BusConfig::default(), |b| b.edges(Arc::new(NotFromCarol)));
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let at = key("in_kernel:w");
    allowed(&carol.send(&at, &shared(&carol, "from carol")));
    allowed(&alpha.send(&at, &shared(&alpha, "from alpha")));
    drop(bravo.try_recv_leased(&at, None).message().unwrap());
    assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "from alpha");
    refused(bravo.try_recv(&at), Reason::PolicyBlock, "a2achan/no-edge");
}

/// §4.6: once a key is bound, only its binder receives there; whoever was woken before is told so.
#[test]
fn a_waiter_that_was_woken_does_not_receive_from_a_key_bound_since() {
    for straight in [true, false] {
        let world = World::new();
        let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
        let at = key("in_kernel:w");
        let mut wait = Hand::new(bravo.recv(&at));
        wait.pending();
        allowed(&alpha.send(&at, &shared(&alpha, "before")));
        assert_eq!(wait.wakes(), 1);
        let bound = carol.bind(&at);
        if bound.is_allow() {
            if straight {
                message(carol.try_recv(&at));
                allowed(&alpha.send(&at, &shared(&alpha, "for carol")));
            }
            assert!(!matches!(wait.ready(), Delivery::Message(_)), "straight {straight}");
        } else {
            assert_eq!(text(&bravo, message(wait.ready()).body()), "before");
        }
    }
}
