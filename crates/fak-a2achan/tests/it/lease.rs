//! §4.4: leased receive; I29.

use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, LeasedMessage, Limits};
use fak_abi::Reason;

use crate::support::*;

fn leased(delivery: Delivery<LeasedMessage>) -> LeasedMessage {
    match delivery {
        Delivery::Message(message) => message,
        other => panic!("expected a leased message, got {other:?}"),
    }
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
struct Untimed(fak_adjudicate::ManualClock);

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
    let untimed = std::sync::Arc::new(Untimed(clock.clone()));
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
