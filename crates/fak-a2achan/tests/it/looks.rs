//! What a look at a mailbox comes to when something happened since the last: order, ends, and how many
//! acts it takes (§4.4).

use std::sync::Arc;

use std::time::Duration;

use fak_a2achan::{BusConfig, Cause, Delivery, End, LeasedMessage, Limits, RequestOptions};
use fak_abi::{Edges, Principal, Reason};
use fak_adjudicate::{ManualClock, Rank};

use crate::support::*;

fn texts(by: &fak_a2achan::Endpoint, at: &fak_abi::ChannelKey) -> Vec<String> {
    std::iter::from_fn(|| by.try_recv(at).message()).map(|message| text(by, message.body())).collect()
}

/// What came later waits for what came first, on whichever side of the mailbox either is.
#[test]
fn a_later_message_does_not_overtake() {
    for books in [false, true] {
        let meter = Arc::new(Meter { limit: 100, ..Meter::default() });
        let world = World::with(BusConfig::default(), |b| match books {
            true => b.rung(Rank(0), Arc::clone(&meter) as _),
            false => b,
        });
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let at = key("in_kernel:w");
        let send = |what: &str| allowed(&alpha.send(&at, &shared(&alpha, what)));
        send("1");
        send("2");
        // Taking the first moves both; the third is alone on the senders' side then.
        assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "1");
        send("3");
        assert_eq!(texts(&bravo, &at), ["2", "3"]);
        send("4");
        assert_eq!(texts(&bravo, &at), ["4"]);
    }
}

/// A batch makes an act for each message and none to find that there are no more (§4.4).
#[test]
fn a_batch_makes_no_attempt_that_can_find_nothing() {
    let meter = Arc::new(Meter { limit: 100, ..Meter::default() });
    let world = World::with(BusConfig::default(), |b| b.rung(Rank(0), Arc::clone(&meter) as _));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    for _ in 0..2 {
        allowed(&alpha.send(&at, &shared(&alpha, "x")));
    }
    assert_eq!(Hand::new(bravo.recv_batch(&at, 5)).ready().len(), 2);
    assert_eq!(meter.counts.lock()["a2a.recv"], 2);
}

/// A wait is over when who may receive there changed, even if by now it might again (§4.4, §4.6): also for
/// who was woken by a message before that and comes round after.
#[test]
fn a_wait_that_was_interrupted_does_not_go_on() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let binding = bravo.bind(&at).allowed().unwrap();
    let mut wait = Hand::new(bravo.recv(&at));
    wait.pending();
    allowed(&alpha.send(&at, &shared(&alpha, "x")));
    assert_eq!(wait.wakes(), 1);
    drop(binding);
    let _again = bravo.bind(&at).allowed().unwrap();
    allowed(&alpha.send(&at, &shared(&alpha, "y")));
    assert!(matches!(wait.ready(), Delivery::End(End::Unbind)));
    drop(wait);
    assert_eq!(texts(&bravo, &at).len(), 1, "what was bound before is a dead letter");
}

/// Who waited for room over a channel at hand goes on where the key leads by now: it does not spin.
#[test]
fn a_wait_for_room_goes_on_at_the_next_mailbox() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (maker, alpha, bravo) = (world.agent("maker"), world.agent("alpha"), world.agent("bravo"));
    let dave = world.agent("dave");
    let at = key("in_kernel:w");
    let (mine, other) = (shared(&alpha, "mine"), shared(&dave, "other"));
    allowed(&maker.send(&at, &shared(&maker, "first")));
    let channel = alpha.channel(&at);
    denied(&channel.send(&mine), Reason::RateLimited, "a2achan/full");
    let mut wait = Hand::new(channel.send_wait(&mine, None));
    wait.pending();
    // Its maker leaves, and what it held is taken: with nobody waiting any more it is retired.
    world.kernel.detach(&id("maker")).unwrap();
    assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "first");
    assert_eq!(wait.wakes(), 1);
    drop(world.agent("passer"));
    world.kernel.detach(&id("passer")).unwrap();
    assert_eq!(world.bus.depths(), []);
    allowed(&dave.send(&at, &other));
    wait.pending();
    assert_eq!(texts(&bravo, &at), ["other"]);
    allowed(&wait.ready());
    assert_eq!(texts(&bravo, &at), ["mine"]);
}

/// Edges that nobody from carol has; the first that is asked about gives up what it holds.
#[derive(Default)]
struct GivesUp(parking_lot::Mutex<Option<LeasedMessage>>);

impl Edges for GivesUp {
    fn may_hand(&self, from: &Principal, _: &Principal) -> bool {
        drop(self.0.lock().take());
        from.id().as_str() != "carol"
    }
}

/// What is put back while a topology is asked about what comes after it is found all the same (§4.4, §6.9).
#[test]
fn what_comes_back_between_two_looks_is_found() {
    for waits in [false, true] {
        let edges = Arc::new(GivesUp::default());
        let world = World::with(BusConfig::default(), |b| b.edges(Arc::clone(&edges) as _));
        let (alpha, carol) = (world.agent("alpha"), world.agent("carol"));
        let (bravo, dave) = (world.agent("bravo"), world.agent("dave"));
        let at = key("in_kernel:w");
        allowed(&alpha.send(&at, &shared(&alpha, "first")));
        allowed(&carol.send(&at, &shared(&carol, "second")));
        let held = dave.try_recv_leased(&at, None).message().unwrap();
        *edges.0.lock() = Some(held);
        let got = if waits { Hand::new(bravo.recv(&at)).ready() } else { bravo.try_recv(&at) };
        assert_eq!(text(&bravo, message(got).body()), "first", "waits: {waits}");
    }
}

/// A leased request that a look finds overdue is with nobody any more (§4.7): whoever had it is not waited
/// for.
#[test]
fn a_request_that_a_look_takes_back_is_waited_for_elsewhere() {
    let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let untimed = Arc::new(crate::lease::Untimed(clock.clone()));
    let world = World::with(BusConfig::default(), |b| b.time(untimed));
    let (alpha, bravo, zulu) = (world.agent("alpha"), world.agent("bravo"), world.stranger("zulu", "f2"));
    let (at, hers) = (key("in_kernel:w"), key("in_kernel:alpha"));
    let options = RequestOptions { blocking: true, ..RequestOptions::default() };
    let asked = alpha.request(&at, &shared(&alpha, "?"), &options).allowed().unwrap();
    let _late = bravo.try_recv_leased(&at, Some(Duration::from_millis(1))).message().unwrap();
    let ask = || bravo.request(&hers, &shared(&bravo, "?"), &options).verdict();
    denied(&ask(), Reason::LeaseHeld, "a2achan/ring");
    clock.advance(Duration::from_millis(1));
    // It may not flow to who looks; it is taken back all the same.
    refused(zulu.try_recv(&at), Reason::TrustViolation, "a2achan/only-others");
    allowed(&ask());
    drop(asked);
}

/// Where no timer says so, a look finds what was put back too often, and what cannot go back because the
/// key is somebody's by now who may not read it: dead letters, each with its cause (§4.4, §4.6, §4.10).
#[test]
fn what_a_look_cannot_put_back_is_a_dead_letter() {
    let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let untimed = Arc::new(crate::lease::Untimed(clock.clone()));
    let world = World::with(BusConfig { redeliveries: 0, ..BusConfig::default() }, |b| b.time(untimed));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    allowed(&alpha.send(&at, &shared(&alpha, "x")));
    let _late = bravo.try_recv_leased(&at, Some(Duration::from_millis(1))).message().unwrap();
    clock.advance(Duration::from_millis(1));
    assert!(bravo.try_recv(&at).is_empty());
    let dead = world.bus.dead_letters();
    assert_eq!((dead.len(), dead[0].cause), (1, Cause::Wear));

    let world = World::with(BusConfig::default(), |b| b.time(Arc::new(crate::lease::Untimed(clock.clone()))));
    let (alpha, bravo, zulu) = (world.agent("alpha"), world.agent("bravo"), world.stranger("zulu", "f2"));
    allowed(&alpha.send(&at, &shared(&alpha, "x")));
    let _late = bravo.try_recv_leased(&at, Some(Duration::from_millis(1))).message().unwrap();
    let _binding = zulu.bind(&at).allowed().unwrap();
    clock.advance(Duration::from_millis(1));
    assert!(zulu.try_recv(&at).is_empty());
    let dead = world.bus.dead_letters();
    assert_eq!((dead.len(), dead[0].cause), (1, Cause::Bind));
    assert!(world.bus.stats().is_conserved());
}

/// A key that is somebody's is nobody else's to receive at, before anything was ever sent there (§4.6).
#[test]
fn a_key_of_another_is_refused_before_there_is_a_mailbox() {
    let world = World::new();
    let (bravo, _carol) = (world.agent("bravo"), world.agent("carol"));
    assert!(bravo.try_recv(&key("in_kernel:nobody")).is_empty());
    refused(bravo.try_recv(&key("in_kernel:carol")), Reason::TrustViolation, "a2achan/not-receiver");
    refused(bravo.try_recv(&key("in_kernel:correction:carol")), Reason::TrustViolation, "a2achan/act-only");
}

/// §4.12: an agent holds so many leases and no more; what it could not lease is back at its place, and
/// receiving for good is not limited.
#[test]
fn leases_are_counted_and_given_back() {
    let limits = Limits { leases: 1, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let sends = ["1", "2", "3", "4"];
    sends.iter().for_each(|what| allowed(&alpha.send(&at, &shared(&alpha, what))));
    for _ in 0..2 {
        let held = bravo.try_recv_leased(&at, None).message().unwrap();
        for waits in [false, true] {
            let second = match waits {
                false => bravo.try_recv_leased(&at, None),
                true => Hand::new(bravo.recv_leased(&at, None, None)).ready(),
            };
            let Delivery::Refuse(verdict) = second else { panic!("not refused") };
            denied(&verdict, Reason::RateLimited, "a2achan/leases");
        }
        drop(held);
    }
    assert_eq!(texts(&bravo, &at), sends);
    assert!(world.bus.stats().is_conserved());
}

/// §4.7: a receive that a rung refuses leaves nobody waited for.
#[test]
fn a_refused_receive_closes_no_ring() {
    let meter = Arc::new(Meter { limit: 100, ..Meter::default() });
    let world = World::with(BusConfig::default(), |b| b.rung(Rank(0), Arc::clone(&meter) as _));
    meter.counts.lock().insert("a2a.recv".to_owned(), 100);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, hers) = (key("in_kernel:w"), key("in_kernel:alpha"));
    let options = RequestOptions { blocking: true, ..RequestOptions::default() };
    let asked = alpha.request(&at, &shared(&alpha, "?"), &options).allowed().unwrap();
    refused(bravo.try_recv(&at), Reason::RateLimited, "meter");
    allowed(&bravo.request(&hers, &shared(&bravo, "?"), &options).verdict());
    drop(asked);
}
