//! §4.5: publish and subscribe.

use std::sync::Arc;
use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, End, Limits, SendOptions};
use fak_abi::{Reason, Rider};
use fak_adjudicate::Rank;

use crate::support::*;

#[test]
fn one_copy_to_each_whom_it_may_flow_to() {
    let world = World::new();
    let (alpha, bravo, zulu) = (world.agent("alpha"), world.agent("bravo"), world.stranger("zulu", "f2"));
    let topic = key("in_kernel:news");
    let mut a = alpha.subscribe(&topic).allowed().unwrap();
    let mut b = bravo.subscribe(&topic).allowed().unwrap();
    let mut z = zulu.subscribe(&topic).allowed().unwrap();
    let out = alpha.publish(&topic, &shared(&alpha, "hello"));
    allowed(&out.verdict);
    assert_eq!((out.fanout, out.skipped, out.dropped), (2, 1, 0));
    for (agent, subscription) in [(&alpha, &mut a), (&bravo, &mut b)] {
        let got = message(subscription.try_recv());
        assert_eq!((text(agent, got.body()), got.seq()), ("hello".to_owned(), out.seq));
    }
    assert!(z.try_recv().is_empty());
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.skipped), (2, 2, 1));
    assert!(stats.is_conserved());
}

#[test]
fn a_private_body_is_never_publishable() {
    let world = World::new();
    let alpha = world.agent("alpha");
    for own in ["in_kernel:alpha", "session:trace-alpha"] {
        let out = alpha.publish(&key(own), &private(&alpha, "x"));
        denied(&out.verdict, Reason::TrustViolation, "a2achan/private");
    }
}

/// I15: what is lost to a full inbox is counted and told.
#[test]
fn a_slow_subscriber_is_told_what_it_missed() {
    let world = World::with(BusConfig { capacity: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut slow = bravo.subscribe(&topic).allowed().unwrap();
    let body = shared(&alpha, "x");
    let dropped: Vec<_> = (0..4).map(|_| alpha.publish(&topic, &body).dropped).collect();
    assert_eq!(dropped, [0, 0, 1, 1]);
    assert_eq!(message(slow.try_recv()).missed(), 2);
    assert_eq!(message(slow.try_recv()).missed(), 0);
    assert_eq!(alpha.publish(&topic, &body).fanout, 1);
    assert_eq!(message(slow.try_recv()).missed(), 0);
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.dropped), (5, 3, 2));
    assert!(stats.is_conserved());
}

#[test]
fn unsubscribing_ends_the_inbox() {
    let world = World::new();
    let alpha = world.agent("alpha");
    let topic = key("in_kernel:news");
    let mut one = alpha.subscribe(&topic).allowed().unwrap();
    let two = alpha.subscribe(&topic).allowed().unwrap();
    assert_eq!(alpha.publish(&topic, &shared(&alpha, "x")).fanout, 2);
    allowed(&one.unsubscribe());
    denied(&one.unsubscribe(), Reason::Misroute, "a2achan/closed");
    refused(one.try_recv(), Reason::Misroute, "a2achan/closed");
    drop(two);
    assert_eq!(alpha.publish(&topic, &shared(&alpha, "x")).fanout, 0);
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.dead), (2, 2));
    assert!(stats.is_conserved());
    assert!(world.bus.dead_letters().iter().all(|letter| letter.cause.name() == "unsubscribed"));
}

#[test]
fn a_waiting_subscriber_is_woken() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let mut wait = Hand::new(news.recv());
    wait.pending();
    wait.pending();
    allowed(&alpha.publish(&topic, &shared(&alpha, "x")).verdict);
    assert_eq!(wait.wakes(), 1);
    message(wait.ready());
    drop(wait);
    // A wait that is dropped takes nothing with it.
    let mut wait = Hand::new(news.recv());
    wait.pending();
    allowed(&alpha.publish(&topic, &shared(&alpha, "y")).verdict);
    drop(wait);
    assert_eq!(text(&bravo, message(news.try_recv()).body()), "y");
    let mut wait = Hand::new(news.recv());
    wait.pending();
    world.kernel.detach(&id("bravo")).unwrap();
    assert!(matches!(wait.ready(), Delivery::End(End::Detach)));
}

#[test]
fn binding_and_capacity_of_the_topic_key_do_not_matter() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo, zulu) = (world.agent("alpha"), world.agent("bravo"), world.stranger("zulu", "f2"));
    let topic = key("in_kernel:news");
    let _bound = zulu.bind(&topic).allowed().unwrap();
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    allowed(&alpha.publish(&topic, &shared(&alpha, "x")).verdict);
    message(news.try_recv());
}

/// §4.12: where addressing is declared, a topic is known for ever, so one principal makes no more
/// of them than mailboxes.
#[test]
fn declared_topics_are_bounded() {
    let limits = Limits { mailboxes: 2, ..Default::default() };
    let config = BusConfig { addressing: fak_a2achan::Addressing::Declared, limits, ..BusConfig::default() };
    let world = World::with(config, |builder| builder);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    for topic in ["in_kernel:t1", "in_kernel:t2", "in_kernel:t1"] {
        drop(alpha.subscribe(&key(topic)).allowed().unwrap());
    }
    denied(&alpha.subscribe(&key("in_kernel:t3")).verdict(), Reason::RateLimited, "a2achan/mailboxes");
    let _known = alpha.subscribe(&key("in_kernel:t2")).allowed().unwrap();
    assert!(bravo.subscribe(&key("in_kernel:t3")).is_allow());
}

/// §4.10, §4.12: what has had its time takes none of a publisher's bytes, be it a message or a copy.
#[test]
fn a_publication_is_not_refused_for_what_has_had_its_time() {
    for counted in [false, true] {
        let limits = Limits { queued_bytes: 100, ..Limits::default() };
        let meter = Arc::new(Meter { limit: 100, ..Meter::default() });
        let world = World::with(BusConfig { limits, ..BusConfig::default() }, |builder| {
            if counted { builder.rung(Rank(0), meter) } else { builder }
        });
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let topic = key("in_kernel:news");
        let _kept = bravo.subscribe(&topic).allowed().unwrap();
        let (half, small) = (shared(&alpha, &"x".repeat(50)), shared(&alpha, "y"));
        let until = world.bus_now().after(Duration::from_millis(5));
        let rider = Rider { deadline: Some(until), ..Rider::default() };
        let options = SendOptions { ttl: Some(Duration::from_millis(5)), ..SendOptions::default() };
        allowed(&alpha.send_with(&key("in_kernel:w"), &half, &options));
        allowed(&alpha.publish_with(&topic, &half, Some(&rider)).verdict);
        denied(&alpha.publish(&topic, &small).verdict, Reason::RateLimited, "a2achan/bytes");
        world.clock.advance(Duration::from_millis(5));
        allowed(&alpha.publish(&topic, &half).verdict);
        allowed(&alpha.publish(&topic, &half).verdict);
        denied(&alpha.publish(&topic, &small).verdict, Reason::RateLimited, "a2achan/bytes");
        let stats = world.bus.stats();
        assert_eq!((stats.sent, stats.dead, stats.queued), (4, 2, 2));
    }
}

/// §4.12: a subscription that a closing bus ended gives its place back once, not again when it is
/// dropped.
#[test]
fn a_subscription_gives_its_place_back_once() {
    let limits = Limits { subscriptions: 1, ..Default::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |builder| builder);
    let bravo = world.agent("bravo");
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    allowed(&news.unsubscribe());
    drop(news);
    let _one = bravo.subscribe(&topic).allowed().unwrap();
    denied(&bravo.subscribe(&topic).verdict(), Reason::RateLimited, "a2achan/subscriptions");
    world.bus.close();
}
