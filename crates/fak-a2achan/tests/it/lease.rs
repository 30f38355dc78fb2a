//! §4.4: leased receive; I29.

use std::time::Duration;

use std::sync::Arc;

use fak_a2achan::{BusConfig, Delivery, Endpoint, LeasedMessage, Limits, Subscription};
use fak_abi::{Act, Adjudicator, Desk, Opinion, Reason, Rider, RungName, ToolCall};

use crate::support::*;

fn leased(delivery: Delivery<LeasedMessage>) -> LeasedMessage {
    match delivery {
        Delivery::Message(message) => message,
        other => panic!("expected a leased message, got {other:?}"),
    }
}

/// What leased receives are folded as.
#[derive(Default)]
struct Listens(parking_lot::Mutex<Vec<String>>);

impl Adjudicator for Listens {
    fn name(&self) -> RungName {
        "listens"
    }
    fn judge(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        if let Some(act @ (Act::Recv | Act::RecvLeased | Act::ReceiveCorrection)) = call.tool().act() {
            let rider = if call.has_rider() { " with a rider" } else { "" };
            self.0.lock().push(format!("{} {}{rider}", act.name(), call.target()));
        }
        Opinion::Defer
    }
}

/// §4.4: a leased receive is an act of its own, at the address it is made at, with what rides along.
#[test]
fn a_leased_receive_is_folded_as_what_it_is() {
    let listens = Arc::new(Listens::default());
    let rung = Arc::clone(&listens) as _;
    let world = crate::group::with(BusConfig::default(), |b| b.rung(fak_adjudicate::Rank(0), rung));
    let (alpha, bravo) = (crate::group::collective(&world, "alpha"), world.agent("bravo"));
    let sender = world.agent("sender");
    let (at, topic, team) = (key("in_kernel:w"), key("in_kernel:news"), id("team"));
    let ticket =
        crate::group::submit_to(alpha.agent(), Some(bravo.agent().principal()), &shared(&alpha, "x"));
    crate::group::reap(alpha.agent(), &ticket);
    allowed(&sender.send(&at, &shared(&sender, "x")));
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let rider = Rider::default();
    let said = |expected: &str| assert_eq!(std::mem::take(&mut *listens.0.lock()), [expected]);
    drop(leased(bravo.try_recv_leased(&at, None)));
    said("a2a.recv_leased in_kernel:\"w\"");
    drop(leased(Hand::new(bravo.recv_leased(&at, None, Some(&rider))).ready()));
    said("a2a.recv_leased in_kernel:\"w\" with a rider");
    drop(leased(bravo.try_recv_group_leased(&team, None)));
    said("a2a.recv_leased group:\"team\"#0");
    drop(leased(Hand::new(bravo.recv_group_leased(&team, None, Some(&rider))).ready()));
    said("a2a.recv_leased group:\"team\"#0 with a rider");
    assert!(news.try_recv_leased(None).is_empty());
    said("a2a.recv_leased in_kernel:\"news\"");
    Hand::new(news.recv_leased(None, Some(&rider))).pending();
    said("a2a.recv_leased in_kernel:\"news\" with a rider");
    assert!(matches!(bravo.try_receive_correction(), Delivery::Empty));
    said("a2a.receive_correction in_kernel:\"correction:bravo\"");
    Hand::new(bravo.receive_correction()).pending();
    said("a2a.receive_correction in_kernel:\"correction:bravo\"");
}

#[test]
fn a_dropped_guard_puts_the_message_back_at_its_place() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:jobs");
    for job in ["1", "2", "3"] {
        allowed(&alpha.send(&at, &shared(&alpha, job)));
    }
    let one = leased(bravo.try_recv_leased(&at, None));
    let two = leased(bravo.try_recv_leased(&at, None));
    assert_eq!(world.bus.stats().queued, 3, "leased ones count as queued");
    drop(two);
    drop(one);
    let jobs: Vec<_> = (0..3).map(|_| text(&bravo, message(bravo.try_recv(&at)).body())).collect();
    assert_eq!(jobs, ["1", "2", "3"]);
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn ack_consumes_once_and_not_after_the_deadline() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:jobs");
    allowed(&alpha.send(&at, &shared(&alpha, "job")));
    let job = leased(bravo.try_recv_leased(&at, Some(Duration::from_millis(10))));
    world.clock.advance(Duration::from_millis(10));
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    let job = leased(bravo.try_recv_leased(&at, None));
    assert_eq!(job.message().redeliveries(), 1);
    allowed(&job.ack());
    assert!(bravo.try_recv(&at).is_empty());
    let stats = world.bus.stats();
    assert_eq!((stats.received, stats.queued), (1, 0));
    assert!(stats.is_conserved());
}

#[test]
fn an_expired_lease_wakes_a_waiter() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:jobs");
    allowed(&alpha.send(&at, &shared(&alpha, "job")));
    let job = leased(bravo.try_recv_leased(&at, None));
    let mut wait = Hand::new(alpha.recv_leased(&at, None, None));
    wait.pending();
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(wait.wakes(), 1);
    let again = leased(wait.ready());
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    allowed(&again.ack());
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn put_back_too_often_it_is_a_dead_letter() {
    let world = World::with(BusConfig { redeliveries: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:jobs");
    allowed(&alpha.send(&at, &shared(&alpha, "job")));
    (0..3).for_each(|_| drop(leased(bravo.try_recv_leased(&at, None))));
    assert!(matches!(bravo.try_recv_leased(&at, None), Delivery::Empty));
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "redelivered");
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn a_detached_holder_loses_its_leases() {
    let limits = Limits { leases: 1, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:jobs");
    allowed(&alpha.send(&at, &shared(&alpha, "1")));
    allowed(&alpha.send(&at, &shared(&alpha, "2")));
    let job = leased(bravo.try_recv_leased(&at, None));
    let Delivery::Refuse(verdict) = bravo.try_recv_leased(&at, None) else { panic!("not refused") };
    denied(&verdict, Reason::RateLimited, "a2achan/leases");
    let other = leased(alpha.try_recv_leased(&at, None));
    world.kernel.detach(&id("bravo")).unwrap();
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    drop(other);
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "1");
    assert!(world.bus.stats().is_conserved());
}

/// A clock without a timer: nothing happens when an instant comes, only when somebody looks.
pub(crate) struct Untimed(pub(crate) fak_adjudicate::ManualClock);

impl fak_abi::Clock for Untimed {
    fn now(&self) -> fak_abi::Timestamp {
        self.0.now()
    }
}

impl fak_abi::Timer for Untimed {
    fn wake_at(&self, _: fak_abi::Timestamp, _: std::task::Waker) -> fak_abi::WakeUp {
        fak_abi::WakeUp::done()
    }
}

/// §4.4: now ≥ receipt + deadline, whatever the timer does.
#[test]
fn a_late_ack_is_refused_without_any_timer() {
    let clock = fak_adjudicate::ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let untimed = Arc::new(Untimed(clock.clone()));
    let world = World::with(BusConfig::default(), |b| b.time(untimed));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:jobs");
    allowed(&alpha.send(&at, &shared(&alpha, "job")));
    let job = leased(bravo.try_recv_leased(&at, Some(Duration::from_millis(1))));
    clock.advance(Duration::from_millis(1));
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    // Whoever looks puts back what is due.
    let job = leased(bravo.try_recv_leased(&at, Some(Duration::from_millis(1))));
    clock.advance(Duration::from_millis(1));
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "job");
    drop(job);
    assert!(world.bus.stats().is_conserved());
}

/// A subscription's inbox, and what is published to it.
fn news(world: &World) -> (Endpoint, Endpoint, Subscription) {
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let subscription = bravo.subscribe(&key("in_kernel:news")).allowed().unwrap();
    (alpha, bravo, subscription)
}

fn publish(by: &Endpoint, text: &str) -> u64 {
    let out = by.publish(&key("in_kernel:news"), &shared(by, text));
    allowed(&out.verdict);
    out.fanout
}

/// §4.4 of a subscription's inbox: the copy keeps its slot, goes back to its place, and is consumed
/// once.
#[test]
fn a_leased_copy_keeps_its_slot_and_its_place() {
    let world = World::with(BusConfig { capacity: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo, mut news) = news(&world);
    assert_eq!((publish(&alpha, "1"), publish(&alpha, "2")), (1, 1));
    let one = leased(news.try_recv_leased(None));
    assert_eq!(world.bus.stats().queued, 2, "a leased one counts as queued");
    assert_eq!(publish(&alpha, "3"), 0, "and keeps its slot");
    let two = leased(news.try_recv_leased(None));
    assert_eq!((two.message().missed(), two.message().redeliveries()), (1, 0));
    assert!(news.try_recv().is_empty());
    drop(two);
    drop(one);
    let again = leased(news.try_recv_leased(None));
    assert_eq!(text(&bravo, again.message().body()), "1");
    assert_eq!((again.message().missed(), again.message().redeliveries()), (0, 1));
    allowed(&again.ack());
    assert_eq!(publish(&alpha, "4"), 1);
    let rest: Vec<_> = (0..2).map(|_| text(&bravo, message(news.try_recv()).body())).collect();
    assert_eq!(rest, ["2", "4"]);
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.dropped), (4, 3, 1));
    assert!(stats.is_conserved());
}

/// §4.4: its deadline, a late acknowledgement, and a wait that its return ends.
#[test]
fn a_leased_copy_whose_time_is_over_goes_back() {
    let world = World::new();
    let (alpha, _bravo, mut news) = news(&world);
    publish(&alpha, "job");
    let job = leased(news.try_recv_leased(Some(Duration::from_millis(10))));
    let mut wait = Hand::new(news.recv_leased(None, None));
    wait.pending();
    world.clock.advance(Duration::from_millis(10));
    assert_eq!(wait.wakes(), 1);
    let again = leased(wait.ready());
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    allowed(&again.ack());
    drop(wait);
    // The default of the bus.
    publish(&alpha, "next");
    let next = leased(news.try_recv_leased(None));
    world.clock.advance(Duration::from_secs(30));
    denied(&next.ack(), Reason::Misroute, "a2achan/lease-over");
    message(news.try_recv());
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn a_late_ack_of_a_copy_is_refused_without_any_timer() {
    let clock = fak_adjudicate::ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let untimed = Arc::new(Untimed(clock.clone()));
    let world = World::with(BusConfig::default(), |b| b.time(untimed));
    let (alpha, bravo, mut news) = news(&world);
    publish(&alpha, "job");
    let job = leased(news.try_recv_leased(Some(Duration::from_millis(1))));
    clock.advance(Duration::from_millis(1));
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    let job = leased(news.try_recv_leased(Some(Duration::from_millis(1))));
    clock.advance(Duration::from_millis(1));
    assert_eq!(text(&bravo, message(news.try_recv()).body()), "job", "whoever looks puts back what is due");
    drop(job);
    assert!(world.bus.stats().is_conserved());
}

/// §4.4: put back more than N times, a copy is a dead letter; of that subscriber alone.
#[test]
fn a_copy_put_back_too_often_is_a_dead_letter() {
    let world = World::with(BusConfig { redeliveries: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo, mut news) = news(&world);
    let mut other = bravo.subscribe(&key("in_kernel:news")).allowed().unwrap();
    assert_eq!(publish(&alpha, "job"), 2);
    (0..3).for_each(|_| drop(leased(news.try_recv_leased(None))));
    assert!(matches!(news.try_recv_leased(None), Delivery::Empty));
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "redelivered");
    assert_eq!(message(other.try_recv()).redeliveries(), 0);
    assert!(world.bus.stats().is_conserved());
}

/// §4.11: when its subscription ends, a leased copy is a dead letter and its guard is worth nothing.
#[test]
fn a_leased_copy_ends_with_its_subscription() {
    let limits = Limits { leases: 1, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo, mut news) = news(&world);
    (0..2).for_each(|_| assert_eq!(publish(&alpha, "job"), 1));
    let job = leased(news.try_recv_leased(None));
    let Delivery::Refuse(verdict) = news.try_recv_leased(None) else { panic!("not refused") };
    denied(&verdict, Reason::RateLimited, "a2achan/leases");
    assert_eq!(world.bus.stats().queued, 2, "what was refused is where it was");
    allowed(&news.unsubscribe());
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    let stats = world.bus.stats();
    assert_eq!((stats.dead, stats.queued), (2, 0));
    assert!(stats.is_conserved());
    // The guard gave its place back; a detach takes leases with it as well.
    let mut news = bravo.subscribe(&key("in_kernel:news")).allowed().unwrap();
    publish(&alpha, "job");
    let job = leased(news.try_recv_leased(None));
    world.kernel.detach(&id("bravo")).unwrap();
    denied(&job.ack(), Reason::Misroute, "a2achan/lease-over");
    assert!(world.bus.stats().is_conserved());
}

/// A leased receive is adjudicated, screened and counted like any.
#[test]
fn a_leased_copy_is_screened_and_counted() {
    let meter = Arc::new(Meter { limit: 1, ..Meter::default() });
    // What is held or refused gives its place among the leases back.
    let limits = Limits { leases: 2, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| {
        b.rung(fak_adjudicate::Rank(0), Arc::clone(&meter) as _)
            .admitter(fak_adjudicate::Rank(0), Arc::new(Hold("poison")))
    });
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let mut news = bravo.subscribe(&key("in_kernel:news")).allowed().unwrap();
    let publish = |text| {
        meter.counts.lock().clear();
        publish(&alpha, text)
    };
    publish("poison");
    let Delivery::Hold(notice) = news.try_recv_leased(None) else { panic!("not held") };
    assert_eq!(notice.verdict.by(), "hold");
    publish("one");
    publish("two");
    let one = leased(news.try_recv_leased(None));
    let Delivery::Refuse(verdict) = news.try_recv_leased(None) else { panic!("not refused") };
    denied(&verdict, Reason::RateLimited, "meter");
    meter.counts.lock().clear();
    let two = leased(news.try_recv_leased(None));
    assert_eq!((text(&bravo, two.message().body()), two.message().redeliveries()), ("two".to_owned(), 0));
    allowed(&one.ack());
    allowed(&two.ack());
    let stats = world.bus.stats();
    assert_eq!((stats.received, stats.held, stats.queued), (2, 1, 0));
    assert!(stats.is_conserved());
}

/// Dropped while it waits, a leased receive has taken nothing; so has one whose deadline passes.
#[test]
fn a_wait_for_a_leased_copy_is_cancel_safe() {
    let world = World::new();
    let (alpha, bravo, mut news) = news(&world);
    let mut wait = Hand::new(news.recv_leased(None, None));
    wait.pending();
    publish(&alpha, "job");
    assert_eq!(wait.wakes(), 1);
    drop(wait);
    let job = leased(Hand::new(news.recv_leased(None, None)).ready());
    assert_eq!(text(&bravo, job.message().body()), "job");
    allowed(&job.ack());
    let deadline = Some(world.bus_now().after(Duration::from_millis(5)));
    let rider = Rider { deadline, ..Default::default() };
    let mut wait = Hand::new(news.recv_leased(None, Some(&rider)));
    wait.pending();
    world.clock.advance(Duration::from_millis(5));
    assert!(matches!(wait.ready(), Delivery::End(fak_a2achan::End::Timeout)));
}

/// §4.4 of the inbox of an answer: back in its place when the guard is dropped, consumed once.
#[test]
fn an_answer_can_be_taken_under_a_guard() {
    let world = World::with(BusConfig { redeliveries: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:desk");
    let ask = |world: &World| {
        let mut pending = alpha.request(&at, &shared(&alpha, "?"), &Default::default()).allowed().unwrap();
        assert!(matches!(pending.try_take_leased(None), Delivery::Empty));
        allowed(&bravo.reply(&message(bravo.try_recv(&at)), &shared(&bravo, "!")));
        assert!(world.bus.stats().is_conserved());
        pending
    };
    let mut pending = ask(&world);
    drop(leased(pending.try_take_leased(None)));
    let late = leased(pending.try_take_leased(Some(Duration::from_millis(5))));
    assert_eq!(late.message().redeliveries(), 1);
    assert!(pending.try_take().is_empty(), "it is with its holder");
    world.clock.advance(Duration::from_millis(5));
    denied(&late.ack(), Reason::Misroute, "a2achan/lease-over");
    let answer = leased(pending.try_take_leased(None));
    assert_eq!((text(&alpha, answer.message().body()), answer.message().redeliveries()), ("!".to_owned(), 2));
    assert!(answer.message().in_reply_to().is_some());
    allowed(&answer.ack());
    let Delivery::Refuse(verdict) = pending.try_take_leased(None) else { panic!("not spent") };
    denied(&verdict, Reason::Misroute, "a2achan/await-spent");
    let mut pending = ask(&world);
    (0..3).for_each(|_| drop(leased(pending.try_take_leased(None))));
    assert!(matches!(pending.try_take_leased(None), Delivery::Refuse(_)));
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "redelivered");
    // A request that is given up takes its answer with it, leased or not.
    let mut pending = ask(&world);
    let answer = leased(pending.try_take_leased(None));
    drop(pending);
    denied(&answer.ack(), Reason::Misroute, "a2achan/lease-over");
    let stats = world.bus.stats();
    assert_eq!((stats.dead, stats.queued), (2, 0));
    assert!(stats.is_conserved());
}

/// §4.10, §4.12: a binder leaves with a message that is worn out and an older one queued: each is a dead letter once,
/// and both of them stop counting for whoever sent them.
#[test]
fn a_leaving_binder_frees_what_it_held_and_what_it_left_queued() {
    let limits = Limits { queued_bytes: 10, ..Limits::default() };
    let world = World::with(BusConfig { limits, redeliveries: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:desk");
    let _binding = bravo.bind(&at).allowed().unwrap();
    allowed(&alpha.send(&at, &shared(&alpha, "123456")));
    allowed(&alpha.send(&at, &shared(&alpha, "1234")));
    let older = leased(bravo.try_recv_leased(&at, None));
    drop(leased(bravo.try_recv_leased(&at, None)));
    let _worn = leased(bravo.try_recv_leased(&at, None));
    drop(older);
    world.kernel.detach(&id("bravo")).unwrap();
    assert_eq!(world.bus.stats().dead, 2);
    assert!(world.bus.stats().is_conserved());
    allowed(&alpha.send(&at, &shared(&alpha, "1234567890")));
    denied(&alpha.send(&at, &shared(&alpha, "1")), Reason::RateLimited, "a2achan/bytes");
}
