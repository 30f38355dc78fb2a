//! Rules at their margins: what nothing but one check keeps (§3.2, §4.3).

use std::sync::Arc;

use fak_a2achan::BusConfig;
use fak_abi::{Opinion, Reason};
use fak_adjudicate::Rank;

use crate::support::{Rule, World, allowed, denied, key, message, refused, shared, text};

/// §3.2, §4.3 row 7: what a rung makes of a body is held to the floor as the body was.
#[test]
fn a_transformed_body_is_held_to_the_floor() {
    let config = BusConfig { max_body_bytes: 8, ..BusConfig::default() };
    let world = World::with(config, |builder| {
        let rule = Rule {
            tools: vec!["a2a.send"],
            opinion: |call, desk| match call.body() {
                Some(body) => {
                    let twice = desk.resolver.bytes(body).unwrap().repeat(2);
                    Opinion::Transform(desk.resolver.rewrite(body, twice.into()).unwrap())
                }
                None => Opinion::Defer,
            },
        };
        builder.rung(Rank(5), Arc::new(rule))
    });
    let alpha = world.agent("alpha");
    let at = key("in_kernel:w");
    allowed(&alpha.send(&at, &shared(&alpha, "four")));
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "fourfour");
    denied(&alpha.send(&at, &shared(&alpha, "fives")), Reason::Oversize, "a2achan/oversize");
    assert_eq!(world.bus.stats().queued, 0);
}

/// §4.11: on a closed bus there is nothing to receive, also where nothing was ever sent.
#[test]
fn a_closed_bus_says_so_where_no_mailbox_was() {
    let world = World::new();
    let alpha = world.agent("alpha");
    assert!(alpha.try_recv(&key("in_kernel:w")).is_empty());
    world.bus.close();
    refused(alpha.try_recv(&key("in_kernel:w")), Reason::Misroute, "a2achan/closed");
}
