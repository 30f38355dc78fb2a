//! §4.5, §4.12: what becomes of the copies of a publication, case by case.

use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, Endpoint, Limits};
use fak_abi::{PrincipalSpec, Reason, Rider};

use crate::support::*;

/// §4.5: more subscribers than share a log, some of them slow; all of one fleet.
#[test]
fn forty_subscribers_each_lose_their_own() {
    let world = World::with(BusConfig { capacity: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut all: Vec<_> = (0..40).map(|_| bravo.subscribe(&topic).allowed().unwrap()).collect();
    for n in 0..5_u64 {
        let out = alpha.publish(&topic, &shared(&alpha, &n.to_string()));
        let slow = if n < 2 { 0 } else { 20 };
        assert_eq!((out.fanout, out.dropped), (40 - slow, slow));
        for fast in all.iter_mut().step_by(2) {
            assert_eq!(text(&bravo, message(fast.try_recv()).body()), n.to_string());
        }
    }
    for slow in all.iter_mut().skip(1).step_by(2) {
        let one = message(slow.try_recv());
        assert_eq!((text(&bravo, one.body()), one.missed()), ("0".to_owned(), 3));
        assert_eq!(message(slow.try_recv()).missed(), 0);
        assert!(slow.try_recv().is_empty());
    }
    assert!(world.bus.stats().is_conserved());
}

/// §4.5: those who wait are woken in the order in which they subscribed, whatever their fleets.
#[test]
fn waiters_are_woken_in_subscription_order() {
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake, Waker};

    struct Mark(usize, Arc<Mutex<Vec<usize>>>);
    impl Wake for Mark {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let world = World::new();
    let of = |name, tenant: Option<&str>| {
        let spec = PrincipalSpec::agent(id(name)).fleet(id("f")).caps(caps());
        world.spec(match tenant {
            Some(tenant) => spec.tenant(id(tenant)),
            None => spec,
        })
    };
    let readers = [of("r0", None), of("r1", Some("t")), of("r2", None), of("r3", Some("t"))];
    let topic = key("in_kernel:news");
    let mut all: Vec<_> = readers.iter().map(|reader| reader.subscribe(&topic).allowed().unwrap()).collect();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waits: Vec<_> = all.iter_mut().map(|subscription| Box::pin(subscription.recv())).collect();
    for (n, wait) in waits.iter_mut().enumerate() {
        let waker = Waker::from(Arc::new(Mark(n, Arc::clone(&order))));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let alpha = of("alpha", None);
    assert_eq!(alpha.publish(&topic, &shared(&alpha, "x")).fanout, 4);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
}

/// §4.5: a copy whose receive a counting rung refuses keeps its slot: an inbox never holds more than
/// its capacity.
#[test]
fn a_copy_that_is_put_back_keeps_its_slot() {
    let meter = std::sync::Arc::new(Publishing::default());
    let config = BusConfig { capacity: 2, ..BusConfig::default() };
    let world = World::with(config, |builder| {
        builder.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
    });
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let body = shared(&alpha, "x");
    let fanouts: Vec<_> = (0..3).map(|_| alpha.publish(&topic, &body).fanout).collect();
    assert_eq!(fanouts, [1, 1, 0]);
    // While the rung counts the receive, another copy comes in.
    let (publisher, at, copy) = (alpha.clone(), topic.clone(), body.clone());
    *meter.act.lock() = Some(Box::new(move || {
        let out = publisher.publish(&at, &copy);
        assert_eq!((out.fanout, out.dropped), (0, 1), "the copy that is out keeps its slot");
    }));
    refused(news.try_recv(), Reason::RateLimited, "publishing");
    assert_eq!(world.bus.stats().queued, 2);
    // What was lost before it and meanwhile is told by the receive that hands something over.
    assert_eq!(message(news.try_recv()).missed(), 2);
    assert_eq!(message(news.try_recv()).missed(), 0);
    assert!(news.try_recv().is_empty());
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.dropped), (4, 2, 2));
    assert!(stats.is_conserved());
}

/// A copy that is held tells nobody what was lost before it: the next that is handed over does.
#[test]
fn a_held_copy_does_not_swallow_what_was_missed() {
    let config = BusConfig { capacity: 1, ..BusConfig::default() };
    let world =
        World::with(config, |b| b.admitter(fak_adjudicate::Rank(0), std::sync::Arc::new(Hold("poison"))));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    for body in ["poison", "lost"] {
        allowed(&alpha.publish(&topic, &shared(&alpha, body)).verdict);
    }
    assert!(matches!(news.try_recv(), Delivery::Hold(_)));
    allowed(&alpha.publish(&topic, &shared(&alpha, "x")).verdict);
    assert_eq!(message(news.try_recv()).missed(), 1);
    let stats = world.bus.stats();
    assert_eq!((stats.held, stats.dropped, stats.received), (1, 1, 1));
    assert!(stats.is_conserved());
}

/// §4.12: what has had its time takes none of its publisher's bytes.
#[test]
fn expired_publications_make_room() {
    let limits = Limits { queued_bytes: 10, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let deadline = Some(world.bus_now().after(Duration::from_millis(5)));
    let rider = Rider { deadline, ..Rider::default() };
    let body = shared(&alpha, "sixsix");
    allowed(&alpha.publish_with(&topic, &body, Some(&rider)).verdict);
    denied(&alpha.publish(&topic, &body).verdict, Reason::RateLimited, "a2achan/bytes");
    world.clock.advance(Duration::from_millis(5));
    allowed(&alpha.publish(&topic, &body).verdict);
    message(news.try_recv());
    let stats = world.bus.stats();
    assert_eq!((stats.received, stats.dead, stats.queued), (1, 1, 0));
}

/// A rung that does something while it counts a receive, and then refuses that, or not.
#[derive(Default)]
struct Publishing {
    act: parking_lot::Mutex<Option<Box<dyn FnOnce() + Send>>>,
    allows: bool,
}

impl fak_abi::Adjudicator for Publishing {
    fn name(&self) -> fak_abi::RungName {
        "publishing"
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        fak_abi::Opinion::Defer
    }
    fn commit(&self, call: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        if call.tool().name() != "a2a.recv" {
            return fak_abi::Opinion::Defer;
        }
        let Some(act) = self.act.lock().take() else { return fak_abi::Opinion::Defer };
        act();
        if self.allows {
            return fak_abi::Opinion::Defer;
        }
        fak_abi::Opinion::deny(Reason::RateLimited, fak_abi::Site::new("publishing"))
    }
}

/// A subscription that ends while a rung counts its receive: the copy is a dead letter, and is not
/// handed over as well.
#[test]
fn an_end_while_counting_is_not_delivered() {
    for allows in [false, true] {
        let meter = std::sync::Arc::new(Publishing { allows, ..Publishing::default() });
        let world = World::with(BusConfig::default(), |builder| {
            builder.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
        });
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let topic = key("in_kernel:news");
        let mut news = bravo.subscribe(&topic).allowed().unwrap();
        assert_eq!(alpha.publish(&topic, &shared(&alpha, "x")).fanout, 1);
        let kernel = std::sync::Arc::clone(&world.kernel);
        *meter.act.lock() = Some(Box::new(move || kernel.detach(&id("bravo")).unwrap()));
        let site = if allows { "a2achan/closed" } else { "publishing" };
        let Delivery::Refuse(verdict) = news.try_recv() else { panic!("not refused") };
        assert_eq!(verdict.refusal().unwrap().site.check(), site);
        let stats = world.bus.stats();
        assert_eq!((stats.sent, stats.received, stats.dead), (1, 0, 1));
        assert!(stats.is_conserved());
    }
}

/// §4.12: what is published counts in the publisher's queued bytes: once, until the last copy was
/// taken, however slow the slowest subscriber.
#[test]
fn published_bytes_count_once_until_the_last_copy_is_taken() {
    let limits = Limits { queued_bytes: 10, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let topic = key("in_kernel:news");
    let publish = |by: &Endpoint| by.publish(&topic, &shared(by, "four")).verdict;
    // To nobody: nothing is queued.
    (0..9).for_each(|_| allowed(&publish(&alpha)));
    let mut fast = bravo.subscribe(&topic).allowed().unwrap();
    let mut slow = carol.subscribe(&topic).allowed().unwrap();
    (0..2).for_each(|_| allowed(&publish(&alpha)));
    denied(&publish(&alpha), Reason::RateLimited, "a2achan/bytes");
    denied(&alpha.send(&key("in_kernel:w"), &shared(&alpha, "four")), Reason::RateLimited, "a2achan/bytes");
    allowed(&publish(&bravo));
    (0..3).for_each(|_| drop(message(fast.try_recv())));
    denied(&publish(&alpha), Reason::RateLimited, "a2achan/bytes");
    // Received, it is the receiver's: it may keep the message for as long as it likes.
    let _kept = message(slow.try_recv());
    allowed(&publish(&alpha));
    denied(&publish(&alpha), Reason::RateLimited, "a2achan/bytes");
    // Ended, the copies are dead letters, which have a limit of their own.
    drop(slow);
    drop(fast);
    (0..9).for_each(|_| allowed(&publish(&alpha)));
    assert!(world.bus.stats().is_conserved());
}

/// §4.12, where rungs count: reserved before they do, given back if they refuse.
#[test]
fn published_bytes_are_reserved_while_rungs_count() {
    let meter = std::sync::Arc::new(Meter { limit: 2, ..Meter::default() });
    let limits = Limits { queued_bytes: 10, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |builder| {
        builder.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
    });
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let body = shared(&alpha, "sixsix");
    allowed(&alpha.publish(&topic, &body).verdict);
    denied(&alpha.publish(&topic, &body).verdict, Reason::RateLimited, "a2achan/bytes");
    assert_eq!(meter.counts.lock()["a2a.publish"], 1, "what has no room is not counted");
    message(news.try_recv());
    allowed(&alpha.publish(&topic, &body).verdict);
    message(news.try_recv());
    for _ in 0..3 {
        denied(&alpha.publish(&topic, &body).verdict, Reason::RateLimited, "meter");
    }
    meter.counts.lock().clear();
    allowed(&alpha.publish(&topic, &body).verdict);
    assert!(world.bus.stats().is_conserved());
}

/// §2.5: what is published with a deadline is worth receiving until then.
#[test]
fn a_publication_lives_until_its_deadline() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let deadline = Some(world.bus_now().after(Duration::from_millis(5)));
    let rider = Rider { deadline, ..Rider::default() };
    allowed(&alpha.publish_with(&topic, &shared(&alpha, "short"), Some(&rider)).verdict);
    allowed(&alpha.publish(&topic, &shared(&alpha, "long")).verdict);
    world.clock.advance(Duration::from_millis(5));
    assert_eq!(world.bus.stats().dead, 1, "what the host is told is as of now");
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "expired");
    assert_eq!(text(&bravo, message(news.try_recv()).body()), "long");
    assert!(world.bus.stats().is_conserved());
}

fn texts(by: &Endpoint, batch: &[Delivery]) -> Vec<String> {
    let text_of = |delivery: &Delivery| match delivery {
        Delivery::Message(message) => text(by, message.body()),
        other => panic!("no message: {other:?}"),
    };
    batch.iter().map(text_of).collect()
}

/// A batch is what receiving one by one would have handed over, losses told with the first; it reads
/// on from a log and from a queue of the subscriber's own alike.
#[test]
fn a_batch_takes_what_is_there_in_order() {
    let world = World::with(BusConfig { capacity: 3, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let mut other = bravo.subscribe(&topic).allowed().unwrap();
    let publish = |n: usize| alpha.publish(&topic, &shared(&alpha, &n.to_string()));
    let mut batch = Vec::new();
    assert_eq!(news.try_recv_batch(4, &mut batch), 0);
    assert_eq!(news.try_recv_batch(0, &mut batch), 0);
    (1..=2).for_each(|n| assert_eq!(publish(n).fanout, 2));
    assert_eq!((news.try_recv_batch(1, &mut batch), news.try_recv_batch(9, &mut batch)), (1, 1));
    assert_eq!(texts(&bravo, &batch), ["1", "2"]);
    // The other is full now, and loses two.
    let fanouts: Vec<_> = (3..=5).map(|n| publish(n).fanout).collect();
    assert_eq!(fanouts, [2, 1, 1]);
    batch.clear();
    assert_eq!(other.try_recv_batch(9, &mut batch), 3);
    assert_eq!(texts(&bravo, &batch), ["1", "2", "3"]);
    let missed: Vec<_> = batch.into_iter().map(|got| got.message().unwrap().missed()).collect();
    assert_eq!(missed, [2, 0, 0]);
    batch = Vec::new();
    assert_eq!(news.try_recv_batch(9, &mut batch), 3);
    assert_eq!(texts(&bravo, &batch), ["3", "4", "5"]);
    assert!(world.bus.stats().is_conserved());
}

/// Where somebody counts or holds, a batch is act by act: each is counted, held or refused alone.
#[test]
fn a_batch_is_counted_and_screened_copy_by_copy() {
    let meter = std::sync::Arc::new(Meter { limit: 3, ..Meter::default() });
    let world = World::with(BusConfig::default(), |b| {
        b.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
            .admitter(fak_adjudicate::Rank(0), std::sync::Arc::new(Hold("poison")))
    });
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let publish = |text| {
        meter.counts.lock().clear();
        allowed(&alpha.publish(&topic, &shared(&alpha, text)).verdict);
    };
    ["1", "poison", "2", "3", "4", "5"].into_iter().for_each(publish);
    let mut batch = Vec::new();
    assert_eq!(news.try_recv_batch(9, &mut batch), 5);
    assert!(matches!(batch.remove(1), Delivery::Hold(_)));
    let Some(Delivery::Refuse(verdict)) = batch.pop() else { panic!("not refused") };
    denied(&verdict, Reason::RateLimited, "meter");
    assert_eq!(texts(&bravo, &batch), ["1", "2", "3"]);
    assert_eq!(meter.counts.lock()["a2a.recv"], 3);
    let stats = world.bus.stats();
    assert_eq!((stats.received, stats.held, stats.queued), (3, 1, 2));
    assert!(stats.is_conserved());
}

/// A batch that waits takes nothing before it is ready.
#[test]
fn a_waiting_batch_is_cancel_safe() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let mut wait = Hand::new(news.recv_batch(3));
    wait.pending();
    for n in ["1", "2", "3", "4"] {
        allowed(&alpha.publish(&topic, &shared(&alpha, n)).verdict);
    }
    assert_eq!(wait.wakes(), 1);
    drop(wait);
    assert_eq!(texts(&bravo, &Hand::new(news.recv_batch(3)).ready()), ["1", "2", "3"]);
    assert_eq!(texts(&bravo, &Hand::new(news.recv_batch(3)).ready()), ["4"]);
    assert!(Hand::new(news.recv_batch(0)).ready().is_empty());
    assert!(world.bus.stats().is_conserved());
}
