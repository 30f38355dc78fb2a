//! §4.4: receiving, waiting, holding.

use std::sync::Arc;
use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, End, SendOptions};
use fak_abi::{Act, Cancel, Capability, Edges, Principal, PrincipalSpec, Reason, Rider};
use fak_adjudicate::Rank;

use crate::support::*;

/// I31: the oldest that may flow to the receiver; others keep their place.
#[test]
fn others_messages_do_not_wedge_the_queue() {
    let world = World::new();
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let at = key("in_kernel:w");
    allowed(&zulu.send(&at, &shared(&zulu, "z1")));
    refused(alpha.try_recv(&at), Reason::TrustViolation, "a2achan/only-others");
    for n in ["a1", "a2"] {
        allowed(&alpha.send(&at, &shared(&alpha, n)));
    }
    allowed(&zulu.send(&at, &shared(&zulu, "z2")));
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "a1");
    assert_eq!(text(&zulu, message(zulu.try_recv(&at)).body()), "z1");
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "a2");
    refused(alpha.try_recv(&at), Reason::TrustViolation, "a2achan/only-others");
    // A receive that would wait is told at once as well.
    refused(Hand::new(alpha.recv(&at)).ready(), Reason::TrustViolation, "a2achan/only-others");
    assert_eq!(text(&zulu, message(zulu.try_recv(&at)).body()), "z2");
}

#[test]
fn a_waiter_is_woken_only_by_what_is_for_it() {
    let world = World::new();
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let at = key("in_kernel:w");
    let mut a = Hand::new(alpha.recv(&at));
    let mut z = Hand::new(zulu.recv(&at));
    a.pending();
    z.pending();
    allowed(&zulu.send(&at, &shared(&zulu, "z")));
    assert_eq!((a.wakes(), z.wakes()), (0, 1));
    a.pending();
    assert_eq!(text(&zulu, message(z.ready()).body()), "z");
    allowed(&alpha.send(&at, &shared(&alpha, "a")));
    assert_eq!(a.wakes(), 1);
    assert_eq!(text(&alpha, message(a.ready()).body()), "a");
}

#[test]
fn a_dropped_wait_loses_nothing_and_wakes_the_next() {
    let world = World::new();
    let alpha = world.agent("alpha");
    let at = key("in_kernel:w");
    let mut first = Hand::new(alpha.recv(&at));
    let mut second = Hand::new(alpha.recv(&at));
    first.pending();
    second.pending();
    allowed(&alpha.send(&at, &shared(&alpha, "x")));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    message(second.ready());
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn what_an_admitter_stops_is_held() {
    let world = World::with(BusConfig::default(), |b| b.admitter(Rank(10), Arc::new(Hold("poison"))));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let body = shared(&alpha, "poison!");
    allowed(&alpha.send(&at, &body));
    allowed(&alpha.send(&at, &shared(&alpha, "fine")));
    let Delivery::Hold(notice) = bravo.try_recv(&at) else { panic!("not held") };
    assert_eq!((notice.digest, notice.len, notice.verdict.by()), (body.digest(), 7, "hold"));
    assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "fine");
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.held), (2, 1, 1));
    assert!(stats.is_conserved());

    assert_eq!(bravo.held().verdict().reason(), Some(Reason::DefaultDeny));
    let forensic = |name: &str, fleet: &str| {
        world.spec(PrincipalSpec::agent(id(name)).fleet(id(fleet)).caps([Capability::ForensicsRead]))
    };
    let held = forensic("carol", "f1").held().allowed().unwrap();
    assert_eq!(held.len(), 1);
    let carol = world.bus.endpoint(forensic("carla", "f1").agent());
    assert_eq!(&carol.read_held(&held[0]).allowed().unwrap()[..], b"poison!");
    let outsider = forensic("oscar", "f2");
    assert!(outsider.held().allowed().unwrap().is_empty());
    denied(&outsider.read_held(&held[0]).verdict(), Reason::TrustViolation, "a2achan/held-unreadable");
}

/// A body that a transform quarantined on its way is refused by row 3; one in a subscription is held.
#[test]
fn held_copies_of_a_publication_count() {
    let world = World::with(BusConfig::default(), |b| b.admitter(Rank(10), Arc::new(Hold("poison"))));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let mut topic = bravo.subscribe(&key("in_kernel:t")).allowed().unwrap();
    allowed(&alpha.publish(&key("in_kernel:t"), &shared(&alpha, "poison")).verdict);
    assert!(matches!(topic.try_recv(), Delivery::Hold(_)));
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.held), (1, 1));
    assert!(stats.is_conserved());
}

/// §4.10, §4.12: from its deadline on a message counts for nothing, wherever it is queued and whether or not anybody has
/// looked there since.
#[test]
fn what_has_had_its_time_takes_none_of_its_senders_bytes() {
    let config = BusConfig {
        limits: fak_a2achan::Limits { queued_bytes: 100, ..fak_a2achan::Limits::default() },
        ..BusConfig::default()
    };
    for counted in [false, true] {
        let meter = Arc::new(Meter { limit: 100, ..Meter::default() });
        let world = World::with(
            config.clone(),
            |builder| {
                if counted { builder.rung(Rank(0), meter) } else { builder }
            },
        );
        let (alpha, _bravo) = (world.agent("alpha"), world.agent("bravo"));
        let (body, small) = (shared(&alpha, &"x".repeat(50)), shared(&alpha, "y"));
        let options = SendOptions { ttl: Some(Duration::from_millis(5)), ..SendOptions::default() };
        let [one, two, three] = ["in_kernel:one", "in_kernel:two", "in_kernel:three"].map(key);
        allowed(&alpha.send_with(&one, &body, &options));
        allowed(&alpha.send(&two, &body));
        allowed(&alpha.send(&three, &shared(&alpha, "")));
        world.clock.advance(Duration::from_millis(4));
        denied(&alpha.send(&three, &small), Reason::RateLimited, "a2achan/bytes");
        world.clock.advance(Duration::from_millis(1));
        // Explaining says so too; without it, the send itself finds out.
        assert!(!counted || alpha.explain(Act::Send, &three, Some(&small)).verdict.is_allow());
        allowed(&alpha.send(&three, &body));
        denied(&alpha.send(&three, &small), Reason::RateLimited, "a2achan/bytes");
        let stats = world.bus.stats();
        assert_eq!((stats.sent, stats.dead, stats.queued), (4, 1, 3));
        assert!(stats.is_conserved());
    }
}

/// §4.3, §4.10: whoever waits for room is woken when what takes it has had its time.
#[test]
fn a_wait_for_room_ends_when_what_is_in_the_way_expires() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |builder| builder);
    let alpha = world.agent("alpha");
    let at = key("in_kernel:w");
    let options = SendOptions { ttl: Some(Duration::from_millis(5)), ..SendOptions::default() };
    allowed(&alpha.send_with(&at, &shared(&alpha, "short"), &options));
    let body = shared(&alpha, "next");
    let until = world.bus_now().after(Duration::from_millis(9));
    let mut patient = Hand::new(alpha.send_wait(&at, &body, None));
    let mut hasty = Hand::new(alpha.send_wait(&at, &body, Some(until)));
    patient.pending();
    hasty.pending();
    world.clock.advance(Duration::from_millis(5));
    assert_eq!((patient.wakes(), hasty.wakes()), (1, 1));
    allowed(&patient.ready());
    hasty.pending();
    world.clock.advance(Duration::from_millis(4));
    denied(&hasty.ready(), Reason::RateLimited, "a2achan/full");
}

/// §2.5, §4.2: what a deadline or a cancellation ends, and what a time to live does.
#[test]
fn time_to_live_and_deadlines() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let options = SendOptions { ttl: Some(Duration::from_millis(5)), ..SendOptions::default() };
    allowed(&alpha.send_with(&at, &shared(&alpha, "short"), &options));
    allowed(&alpha.send(&at, &shared(&alpha, "long")));
    world.clock.advance(Duration::from_millis(5));
    assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "long");
    let dead = world.bus.dead_letters();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].cause.name(), "expired");
    assert_eq!(alpha.dead_letters().len(), 1);
    assert!(bravo.dead_letters().is_empty(), "only one's own");
    assert!(world.bus.stats().is_conserved());

    let until = world.bus_now().after(Duration::from_millis(3));
    let rider = Rider { deadline: Some(until), ..Rider::default() };
    let mut wait = Hand::new(bravo.recv_with(&at, &rider));
    wait.pending();
    world.clock.advance(Duration::from_millis(2));
    assert_eq!(wait.wakes(), 0);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(wait.wakes(), 1);
    assert!(matches!(wait.ready(), Delivery::End(End::Timeout)));
    assert_eq!(world.clock.waiting(), 0);

    let rider = Rider { cancel: Some(Cancel::new()), ..Rider::default() };
    let mut wait = Hand::new(bravo.recv_with(&at, &rider));
    wait.pending();
    rider.cancel.as_ref().unwrap().cancel();
    assert!(matches!(wait.ready(), Delivery::End(End::Cancel)));
    // What a deadline starts ends with it.
    let rider = Rider { deadline: Some(world.bus_now().after(Duration::from_millis(1))), ..Rider::default() };
    let options = SendOptions { rider: Some(&rider), ..SendOptions::default() };
    allowed(&alpha.send_with(&at, &shared(&alpha, "soon"), &options));
    world.clock.advance(Duration::from_millis(1));
    assert!(bravo.try_recv(&at).is_empty());
}

#[test]
fn waits_end_with_a_distinct_outcome() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let binding = alpha.bind(&at).allowed().unwrap();
    let mut wait = Hand::new(alpha.recv(&at));
    wait.pending();
    drop(binding);
    assert!(matches!(wait.ready(), Delivery::End(End::Unbind)));

    let coming = key("in_kernel:carol");
    let mut wait = Hand::new(bravo.recv(&coming));
    wait.pending();
    let carol = world.agent("carol");
    assert_eq!(wait.wakes(), 1);
    assert!(matches!(wait.ready(), Delivery::End(End::Displace)));
    refused(bravo.try_recv(&coming), Reason::TrustViolation, "a2achan/not-receiver");
    assert!(carol.try_recv(&coming).is_empty());

    let mut topic = carol.subscribe(&key("in_kernel:t")).allowed().unwrap();
    let mut wait = Hand::new(carol.recv(&at));
    wait.pending();
    let mut copies = Hand::new(topic.recv());
    copies.pending();
    world.kernel.detach(&id("carol")).unwrap();
    assert_eq!((wait.wakes(), copies.wakes()), (1, 1));
    assert!(matches!(wait.ready(), Delivery::End(End::Detach)));
    assert!(matches!(copies.ready(), Delivery::End(End::Detach)));
    drop(copies);

    let mut wait = Hand::new(alpha.recv(&at));
    let mut topic = alpha.subscribe(&key("in_kernel:t")).allowed().unwrap();
    let mut copies = Hand::new(topic.recv());
    wait.pending();
    copies.pending();
    world.bus.close();
    assert!(matches!(wait.ready(), Delivery::End(End::Close)));
    assert!(matches!(copies.ready(), Delivery::End(End::Close)));
    denied(&alpha.send(&at, &shared(&alpha, "x")), Reason::Misroute, "a2achan/closed");
    refused(alpha.try_recv(&at), Reason::Misroute, "a2achan/closed");
    assert!(world.bus.stats().is_conserved());
}

/// §4.3: not an act, and nobody is woken in vain.
#[test]
fn ready_waits_for_room() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let body = shared(&alpha, "x");
    Hand::new(alpha.ready(&at)).ready();
    allowed(&alpha.send(&at, &body));
    let mut first = Hand::new(alpha.ready(&at));
    let mut second = Hand::new(bravo.send_wait(&at, &body, None));
    first.pending();
    second.pending();
    message(bravo.try_recv(&at));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    first.ready();
    drop(first);
    assert_eq!(second.wakes(), 1, "the room was not used up");
    allowed(&second.ready());
    let until = world.bus_now().after(Duration::from_millis(1));
    let mut third = Hand::new(alpha.send_wait(&at, &body, Some(until)));
    third.pending();
    world.clock.advance(Duration::from_millis(1));
    denied(&third.ready(), Reason::RateLimited, "a2achan/full");
}

struct OneWay;

impl Edges for OneWay {
    fn may_hand(&self, from: &Principal, to: &Principal) -> bool {
        from.id() < to.id()
    }
}

/// §6.9: on an unbound key the edge is judged while choosing the message.
#[test]
fn a_message_without_an_edge_keeps_its_place() {
    let world = World::with(BusConfig::default(), |b| b.edges(Arc::new(OneWay)));
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let at = key("in_kernel:w");
    allowed(&bravo.send(&at, &shared(&bravo, "from bravo")));
    refused(alpha.try_recv(&at), Reason::PolicyBlock, "a2achan/no-edge");
    allowed(&alpha.send(&at, &shared(&alpha, "from alpha")));
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "from alpha");
    let mut wait = Hand::new(alpha.recv(&at));
    refused(wait.ready(), Reason::PolicyBlock, "a2achan/no-edge");
    assert_eq!(text(&carol, message(carol.try_recv(&at)).body()), "from bravo");
    // A waiter woken by what it may not take passes the wake-up on.
    let (mut a, mut c) = (Hand::new(alpha.recv(&at)), Hand::new(carol.recv(&at)));
    a.pending();
    c.pending();
    allowed(&bravo.send(&at, &shared(&bravo, "again")));
    assert_eq!((a.wakes(), c.wakes()), (1, 0));
    a.pending();
    assert_eq!(c.wakes(), 1);
    assert_eq!(text(&carol, message(c.ready()).body()), "again");
}

/// §4.4, §4.5, §4.7: a deadline wakes the task that waits, not the one that began to.
#[test]
fn a_deadline_follows_its_future_to_another_task() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:work");
    let rider = Rider { deadline: Some(world.bus_now().after(Duration::from_millis(5))), ..Rider::default() };
    let mut news = alpha.subscribe(&at).allowed().unwrap();
    let options = fak_a2achan::RequestOptions { rider: Some(&rider), ..Default::default() };
    let mut asked = bravo.request(&key("in_kernel:ask"), &shared(&bravo, "?"), &options).allowed().unwrap();
    let mut waits: [Hand<std::pin::Pin<Box<dyn Future<Output = Delivery> + '_>>>; 3] = [
        Hand::new(Box::pin(alpha.recv_with(&at, &rider))),
        Hand::new(Box::pin(news.recv_with(&rider))),
        Hand::new(Box::pin(asked.wait())),
    ];
    waits.iter_mut().for_each(Hand::pending);
    let mut waits = waits.map(Hand::moved);
    waits.iter_mut().for_each(Hand::pending);
    world.clock.advance(Duration::from_millis(5));
    for wait in &mut waits {
        assert_eq!(wait.wakes(), 1);
        assert!(matches!(wait.ready(), Delivery::End(End::Timeout)));
    }
}

/// What has had its time takes no room.
#[test]
fn expired_messages_make_room() {
    let world = World::with(BusConfig { capacity: 2, ..BusConfig::default() }, |b| b);
    let alpha = world.agent("alpha");
    let at = key("in_kernel:w");
    let body = shared(&alpha, "x");
    let options = SendOptions { ttl: Some(Duration::from_millis(1)), ..SendOptions::default() };
    (0..2).for_each(|_| allowed(&alpha.send_with(&at, &body, &options)));
    denied(&alpha.send(&at, &body), Reason::RateLimited, "a2achan/full");
    world.clock.advance(Duration::from_millis(1));
    allowed(&alpha.send(&at, &body));
    assert_eq!(world.bus.dead_letters().len(), 2);
    assert!(world.bus.stats().is_conserved());
}

/// §2.3: detaching wakes every wait of its principal, for room too.
#[test]
fn detaching_ends_a_wait_for_room() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    allowed(&bravo.send(&at, &shared(&bravo, "x")));
    let body = shared(&alpha, "x");
    let mut wait = Hand::new(alpha.send_wait(&at, &body, None));
    wait.pending();
    world.kernel.detach(&id("alpha")).unwrap();
    assert_eq!(wait.wakes(), 1);
    assert_eq!(wait.ready().reason(), Some(Reason::DefaultDeny));
}

/// §4.3: a channel at hand waits for room as any send does: while it waits nothing is folded, a
/// deadline yields the last refusal, and a bus that is closed ends it.
#[test]
fn a_channel_at_hand_waits_for_room() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let (out, body) = (alpha.channel(&at), shared(&alpha, "x"));
    allowed(&alpha.send(&at, &body));
    let mut wait = Hand::new(out.send_wait(&body, None));
    let refused = world.bus.stats().denied;
    (0..3).for_each(|_| wait.pending());
    assert_eq!(world.bus.stats().denied, refused + 1, "the first attempt alone was folded");
    message(bravo.try_recv(&at));
    assert_eq!(wait.wakes(), 1);
    allowed(&wait.ready());
    drop(wait);

    let until = world.bus_now().after(Duration::from_millis(1));
    let mut wait = Hand::new(out.send_wait(&body, Some(until)));
    wait.pending();
    world.clock.advance(Duration::from_millis(1));
    denied(&wait.ready(), Reason::RateLimited, "a2achan/full");
    drop(wait);

    let mut wait = Hand::new(out.send_wait(&body, None));
    wait.pending();
    world.bus.close();
    assert_eq!(wait.wakes(), 1);
    denied(&wait.ready(), Reason::Misroute, "a2achan/closed");
}

/// §4.4, §4.11: a wait ends for reasons of its own. Whoever made the mailbox may go meanwhile.
#[test]
fn a_wait_outlives_whoever_made_the_mailbox() {
    let world = World::new();
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let at = key("in_kernel:w");
    allowed(&alpha.send(&at, &shared(&alpha, "x")));
    drop(message(carol.try_recv(&at)));
    let mut wait = Hand::new(bravo.recv(&at));
    wait.pending();
    // Woken, but somebody else is faster; then the mailbox has no use and no maker.
    allowed(&alpha.send(&at, &shared(&alpha, "y")));
    assert_eq!(wait.wakes(), 1);
    drop(message(carol.try_recv(&at)));
    world.kernel.detach(&id("alpha")).unwrap();
    wait.pending();
    allowed(&carol.send(&at, &shared(&carol, "z")));
    assert_eq!(text(&bravo, message(wait.ready()).body()), "z");
}

/// Detaches the actor while its act is being judged.
#[derive(Default)]
struct Late(std::sync::OnceLock<std::sync::Weak<fak_adjudicate::Kernel>>);

impl fak_abi::Adjudicator for Late {
    fn name(&self) -> fak_abi::RungName {
        "late"
    }
    fn tools(&self) -> fak_abi::ToolScope {
        fak_abi::ToolScope::only(["a2a.recv"])
    }
    fn judge(&self, call: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        let kernel = self.0.get().and_then(std::sync::Weak::upgrade).unwrap();
        kernel.detach(call.principal().id()).unwrap();
        fak_abi::Opinion::Defer
    }
}

/// §2.3: a wait that begins while its principal is being detached does not hang.
#[test]
fn a_wait_that_begins_too_late_ends() {
    let late = Arc::new(Late::default());
    let world = World::with(BusConfig::default(), |b| b.rung(Rank(0), late.clone()));
    late.0.set(Arc::downgrade(&world.kernel)).unwrap();
    let alpha = world.agent("alpha");
    let at = key("in_kernel:work");
    world.bus.open(&at);
    assert!(matches!(Hand::new(alpha.recv(&at)).ready(), Delivery::End(End::Detach)));
}

/// §4.4: a wake-up that nobody can use comes to an end: each who waits looks at an arrival once.
#[test]
fn a_wake_up_that_nobody_uses_comes_to_an_end() {
    let world = World::new();
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let zulu = world.stranger("zulu", "f2");
    let at = key("in_kernel:w");
    let (mut a, mut b) = (Hand::new(alpha.recv(&at)), Hand::new(bravo.recv(&at)));
    a.pending();
    b.pending();
    // One that is for nobody who waits, and one that somebody takes who does not.
    allowed(&zulu.send(&at, &shared(&zulu, "for others")));
    allowed(&carol.send(&at, &shared(&carol, "taken")));
    assert_eq!((a.wakes(), b.wakes()), (1, 0));
    assert_eq!(text(&carol, message(carol.try_recv(&at)).body()), "taken");
    a.pending();
    assert_eq!((a.wakes(), b.wakes()), (1, 1));
    b.pending();
    assert_eq!((a.wakes(), b.wakes()), (1, 1), "both have looked");
}
