//! Margins of the hot paths: what happens between two looks, to one message that is the only one, and to
//! a wait that was woken and has not come round yet.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fak_a2achan::{BusConfig, Cause, Delivery, Limits, RequestOptions, SendOptions};
use fak_abi::{
    Act, Adjudicator, Desk, Edges, Emitter, Event, EventKind, EventKinds, Opinion, Principal, Reason, Rider,
    RungName, Site, ToolCall, ToolScope,
};

use crate::group;
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

/// A rung that panics the first time it is asked.
#[derive(Default)]
struct Once(AtomicUsize);

impl Adjudicator for Once {
    fn name(&self) -> RungName {
        "once"
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only(["a2a.send"])
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "a defect");
        Opinion::Defer
    }
}

struct Panics(Arc<AtomicUsize>);

impl Emitter for Panics {
    fn kinds(&self) -> EventKinds {
        EventKinds::of(&[EventKind::Panic])
    }
    fn emit(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// §3.2: a rung that panics counts as deny and is reported, though it may not panic when asked again.
#[test]
fn a_rung_that_panics_once_denies_the_act_it_was_asked_about() {
    for at_hand in [false, true] {
        let seen = Arc::new(AtomicUsize::new(0));
        let emitter = Panics(Arc::clone(&seen));
        let world = World::with(BusConfig::default(), |b| {
            b.emitter(emitter).rung(fak_adjudicate::Rank(50), Arc::new(Once::default()))
        });
        let alpha = world.agent("alpha");
        let at = key("in_kernel:w");
        world.bus.open(&at);
        let body = shared(&alpha, "x");
        let send = || if at_hand { alpha.channel(&at).send(&body) } else { alpha.send(&at, &body) };
        let verdict = send();
        assert_eq!((verdict.reason(), verdict.by()), (Some(Reason::DefaultDeny), "once"), "{at_hand}");
        assert_eq!((seen.load(Ordering::SeqCst), world.bus.stats().denied), (1, 1), "{at_hand}");
        allowed(&send());
    }
}

/// A rung that counts: it does something once, where an act is charged, and then refuses it or not.
struct Meddler {
    act: Act,
    refuses: bool,
    what: What,
}

impl Adjudicator for Meddler {
    fn name(&self) -> RungName {
        "meddler"
    }
    fn counts(&self) -> bool {
        true
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only([self.act.tool()])
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }
    fn commit(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        // The name of a capability stands for every act it opens.
        if call.tool().act() != Some(self.act) {
            return Opinion::Defer;
        }
        if let Some(what) = self.what.get() {
            what();
        }
        if self.refuses { Opinion::deny(Reason::RateLimited, Site::new("meddler")) } else { Opinion::Defer }
    }
}

pub(crate) type Deed = Box<dyn Fn() + Send + Sync>;
pub(crate) type What = Arc<OnceLock<Deed>>;

pub(crate) fn meddled(config: BusConfig, act: Act, refuses: bool) -> (World, What) {
    let what = What::default();
    let rung = Meddler { act, refuses, what: Arc::clone(&what) };
    (World::with(config, |b| b.rung(fak_adjudicate::Rank(50), Arc::new(rung))), what)
}

/// §4.10, §4.11: a message that cannot go back, because there is nothing any more to go back to, is a
/// dead letter. One whose mailbox only its maker was counted for keeps it.
#[test]
fn what_is_put_back_where_all_has_ended_is_a_dead_letter() {
    let close = |world: &World| -> Deed {
        let bus = world.bus.clone();
        Box::new(move || bus.close())
    };
    let detach = |world: &World| -> Deed {
        let kernel = Arc::clone(&world.kernel);
        Box::new(move || drop(kernel.detach(&id("alpha"))))
    };
    for refuses in [true, false] {
        for (end, dead) in [(close as fn(&World) -> Deed, 1), (detach, 0)] {
            let (world, what) = meddled(BusConfig::default(), Act::Recv, refuses);
            let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
            let at = key("in_kernel:w");
            allowed(&alpha.send(&at, &shared(&alpha, "x")));
            assert!(what.set(end(&world)).is_ok());
            let delivery = bravo.try_recv(&at);
            let stats = world.bus.stats();
            assert!(stats.is_conserved(), "{stats:?}");
            if refuses {
                refused(delivery, Reason::RateLimited, "meddler");
                let queued = 1 - dead;
                assert_eq!((stats.sent, stats.queued, stats.dead, stats.received), (1, queued, dead, 0));
                assert_eq!(world.bus.dead_letters().len() as u64, dead);
            } else {
                // It was taken before the end.
                message(delivery);
                assert_eq!((stats.sent, stats.queued, stats.dead, stats.received), (1, 0, 0, 1));
            }
        }
    }
}

/// §4.10, §4.11: so is what a rung counts while its inbox is forgotten with whoever had it, unless it
/// was received.
#[test]
fn what_a_forgotten_inbox_had_out_is_accounted_for() {
    for refuses in [true, false] {
        let what = What::default();
        let rung = Meddler { act: Act::Recv, refuses, what: Arc::clone(&what) };
        let world = group::with(BusConfig::default(), |b| b.rung(fak_adjudicate::Rank(50), Arc::new(rung)));
        let (alpha, bravo) = (group::collective(&world, "alpha"), world.agent("bravo"));
        let ticket = group::submit_to(alpha.agent(), Some(bravo.agent().principal()), &shared(&alpha, "x"));
        group::reap(alpha.agent(), &ticket);
        let (kernel, bus) = (Arc::clone(&world.kernel), world.bus.clone());
        let leave = move || {
            kernel.detach(&id("bravo")).unwrap();
            assert!(bus.stats().is_conserved());
        };
        assert!(what.set(Box::new(leave)).is_ok());
        let delivery = bravo.try_recv_group(&id("team"));
        let stats = world.bus.stats();
        assert!(stats.is_conserved(), "{stats:?}");
        if refuses {
            refused(delivery, Reason::RateLimited, "meddler");
            assert_eq!((stats.sent, stats.queued, stats.dead, stats.received), (1, 0, 1, 0));
            assert_eq!(world.bus.dead_letters().len(), 1);
        } else {
            message(delivery);
            assert_eq!((stats.sent, stats.queued, stats.dead, stats.received), (1, 0, 0, 1));
        }
    }
}

/// §4.4, §4.10: what a rung counts keeps its slot meanwhile, and so does a request of which it is not
/// yet known whether this agent may have it: a mailbox never holds more than its capacity.
#[test]
fn what_a_rung_counts_keeps_its_slot() {
    for waits in [false, true] {
        let config = BusConfig { capacity: 1, ..BusConfig::default() };
        let (world, what) = meddled(config, Act::Recv, true);
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let (at, body) = (key("in_kernel:w"), shared(&alpha, "x"));
        allowed(&alpha.send(&at, &body));
        let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let (seeing, sender, place) = (Arc::clone(&seen), alpha.clone(), at.clone());
        let more = move || seeing.lock().push(sender.send(&place, &body));
        assert!(what.set(Box::new(more)).is_ok());
        let delivery = if waits {
            Hand::new(Box::pin(async move { bravo.recv(&at).await })).ready()
        } else {
            bravo.try_recv(&at)
        };
        refused(delivery, Reason::RateLimited, "meddler");
        let [verdict] = &seen.lock()[..] else { panic!("not one") };
        denied(verdict, Reason::RateLimited, "a2achan/full");
        let stats = world.bus.stats();
        assert_eq!((stats.sent, stats.queued), (1, 1), "{stats:?}");
    }
}

/// §4.3: a slot that was promised and is not used goes to whoever waits for room.
#[test]
fn a_promised_slot_that_the_key_moved_away_from_wakes_who_waits_for_room() {
    let (world, what) = meddled(BusConfig { capacity: 1, ..BusConfig::default() }, Act::Send, false);
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let at = key("in_kernel:w");
    world.bus.open(&at);
    let wakes = Arc::new(parking_lot::Mutex::new(None));
    let (waits, sender, binder, place) = (Arc::clone(&wakes), bravo.clone(), carol, at.clone());
    let meddle = move || {
        if waits.lock().is_some() {
            return;
        }
        let (sender, place) = (sender.clone(), place.clone());
        let mut wait = Hand::new(Box::pin(async move { sender.ready(&place).await }));
        wait.pending();
        *waits.lock() = Some(Box::new(wait));
        binder.bind(&at).allowed().unwrap().keep();
    };
    assert!(what.set(Box::new(meddle)).is_ok());
    let at = key("in_kernel:w");
    denied(&alpha.send(&at, &shared(&alpha, "x")), Reason::Misroute, "a2achan/moved");
    assert_eq!(wakes.lock().as_ref().unwrap().wakes(), 1);
}

/// §4.4, §4.7, §4.10: an answer that came in time and is leased stays its holder's past the request's
/// deadline; what is given up later is a dead letter.
#[test]
fn a_leased_answer_outlasts_the_deadline_of_its_request() {
    for acked in [true, false] {
        let world = World::new();
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let at = key("in_kernel:w");
        let deadline = Some(world.bus_now().after(Duration::from_millis(5)));
        let rider = Rider { deadline, ..Rider::default() };
        let options = RequestOptions { rider: Some(&rider), ..RequestOptions::default() };
        let mut asked = alpha.request(&at, &shared(&alpha, "?"), &options).allowed().unwrap();
        let request = message(bravo.try_recv(&at));
        allowed(&bravo.reply(&request, &shared(&bravo, "!")));
        let guard = asked.try_take_leased(None).message().unwrap();
        world.clock.advance(Duration::from_millis(5));
        assert!(matches!(asked.try_take(), Delivery::End(_)));
        if acked {
            allowed(&guard.ack());
        } else {
            drop(guard);
        }
        drop(asked);
        let (stats, dead) = (world.bus.stats(), world.bus.dead_letters());
        assert!(stats.is_conserved() && stats.queued == 0, "{stats:?}");
        assert_eq!(dead.len() as u64, stats.dead, "{stats:?}");
        assert_eq!(
            dead.iter().map(|letter| letter.cause).collect::<Vec<_>>(),
            [Cause::Late][usize::from(acked)..]
        );
    }
}

/// §4.3, §4.4, §4.10: what was leased while somebody began to wait for room has its time as well, once it is back.
#[test]
fn a_patient_sender_is_woken_when_what_was_leased_has_had_its_time() {
    for early in [true, false] {
        let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let at = key("in_kernel:w");
        let brief = SendOptions { ttl: Some(Duration::from_millis(5)), ..SendOptions::default() };
        allowed(&alpha.send_with(&at, &shared(&alpha, "brief"), &brief));
        let guard = bravo.try_recv_leased(&at, None).message().unwrap();
        let body = shared(&alpha, "patient");
        let mut wait = Hand::new(alpha.send_wait(&at, &body, None));
        wait.pending();
        if early {
            drop(guard);
            wait.pending();
            let before = wait.wakes();
            world.clock.advance(Duration::from_millis(5));
            assert!(wait.wakes() > before);
        } else {
            world.clock.advance(Duration::from_millis(5));
            let before = wait.wakes();
            drop(guard);
            assert!(wait.wakes() > before);
        }
        allowed(&wait.ready());
    }
}

/// §4.3: who gives a wait for room up leaves it to the next to see when there will be some.
#[test]
fn a_wait_for_room_that_is_given_up_passes_on_that_it_knew_when() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    allowed(&alpha.send(&at, &shared(&alpha, "plain")));
    let body = shared(&alpha, "patient");
    let (mut first, mut second) =
        (Hand::new(alpha.send_wait(&at, &body, None)), Hand::new(alpha.send_wait(&at, &body, None)));
    first.pending();
    second.pending();
    message(bravo.try_recv(&at));
    let brief = SendOptions { ttl: Some(Duration::from_millis(5)), ..SendOptions::default() };
    allowed(&alpha.send_with(&at, &shared(&alpha, "brief"), &brief));
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    first.pending();
    drop(first);
    if second.wakes() > 0 {
        second.pending();
    }
    let before = second.wakes();
    world.clock.advance(Duration::from_millis(5));
    assert!(second.wakes() > before);
    allowed(&second.ready());
}

/// §4.12: waiting for room is a wait: nobody lists so many that all others look through them.
#[test]
fn waits_for_room_are_bounded() {
    let limits = Limits { waits: 1, ..Limits::default() };
    let world = World::with(BusConfig { capacity: 1, limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, body) = (key("in_kernel:w"), shared(&alpha, "x"));
    allowed(&alpha.send(&at, &body));
    let mut wait = Hand::new(alpha.send_wait(&at, &body, None));
    wait.pending();
    wait.pending();
    let channel = alpha.channel(&at);
    denied(&Hand::new(alpha.send_wait(&at, &body, None)).ready(), Reason::RateLimited, "a2achan/full");
    denied(&Hand::new(channel.send_wait(&body, None)).ready(), Reason::RateLimited, "a2achan/full");
    Hand::new(alpha.ready(&at)).ready();
    drop(wait);
    let mut wait = Hand::new(channel.send_wait(&body, None));
    wait.pending();
    message(bravo.try_recv(&at));
    allowed(&wait.ready());
    Hand::new(alpha.recv(&key("in_kernel:other"))).pending();
}

/// §4.6: what comes back to a key that was bound meanwhile, and may not flow to the binder, is a dead letter.
#[test]
fn what_comes_back_to_a_key_that_is_anothers_by_now_is_a_dead_letter() {
    for leased in [true, false] {
        let (world, what) = meddled(BusConfig::default(), Act::Recv, true);
        let (alpha, bravo, zed) = (world.agent("alpha"), world.agent("bravo"), world.stranger("zed", "f2"));
        let at = key("in_kernel:w");
        allowed(&alpha.send(&at, &shared(&alpha, "x")));
        if leased {
            let guard = bravo.try_recv_leased(&at, None);
            zed.bind(&at).allowed().unwrap().keep();
            drop(guard.message().unwrap());
        } else {
            let (binder, bound) = (zed.clone(), at.clone());
            assert!(what.set(Box::new(move || binder.bind(&bound).allowed().unwrap().keep())).is_ok());
            refused(bravo.try_recv(&at), Reason::RateLimited, "meddler");
        }
        let dead = world.bus.dead_letters();
        assert_eq!(
            dead.iter().map(|letter| letter.cause).collect::<Vec<_>>(),
            [Cause::Bind],
            "leased {leased}"
        );
        let stats = world.bus.stats();
        assert!(stats.is_conserved() && (stats.dead, stats.queued) == (1, 0), "{stats:?}");
    }
}

/// §3.5, §4.4: what lacks an edge is said to, whatever else is queued behind it; and so it is explained.
#[test]
fn a_missing_edge_is_said_before_what_is_for_others() {
    let world = World::with(BusConfig::default(), |b| b.edges(Arc::new(NotFromCarol)));
    let (bravo, carol, zed) = (world.agent("bravo"), world.agent("carol"), world.stranger("zed", "f2"));
    let at = key("in_kernel:w");
    allowed(&carol.send(&at, &shared(&carol, "x")));
    allowed(&zed.send(&at, &shared(&zed, "y")));
    let explained = bravo.explain(Act::Recv, &at, None);
    assert_eq!(explained.site.map(|site| site.check), Some("a2achan/no-edge"));
    refused(bravo.try_recv(&at), Reason::PolicyBlock, "a2achan/no-edge");
}

/// §4.7: whoever has bound a key is waited for by who asks there, also if a rung refused it the request once.
#[test]
fn a_refused_receipt_does_not_hide_a_ring() {
    let (world, what) = meddled(BusConfig::default(), Act::Recv, true);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (hers, his) = (key("in_kernel:alpha"), key("in_kernel:bravo"));
    assert!(what.set(Box::new(|| {})).is_ok());
    let options = RequestOptions { blocking: true, ..RequestOptions::default() };
    let asked = alpha.request(&his, &shared(&alpha, "?"), &options).allowed().unwrap();
    refused(bravo.try_recv(&his), Reason::RateLimited, "meddler");
    let ring = bravo.request(&hers, &shared(&bravo, "?"), &options);
    denied(&ring.verdict(), Reason::LeaseHeld, "a2achan/ring");
    drop(asked);
}

/// §4.4, §4.7: who gave a leased request back is not waited for any more.
#[test]
fn a_request_that_was_given_back_closes_no_ring() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, hers) = (key("in_kernel:w"), key("in_kernel:alpha"));
    let options = RequestOptions { blocking: true, ..RequestOptions::default() };
    let asked = alpha.request(&at, &shared(&alpha, "?"), &options).allowed().unwrap();
    let held = bravo.try_recv_leased(&at, None).message().unwrap();
    let ask = || bravo.request(&hers, &shared(&bravo, "?"), &options);
    denied(&ask().verdict(), Reason::LeaseHeld, "a2achan/ring");
    drop(held);
    drop(ask().allowed().unwrap());
    // The next to have it is waited for, whenever the guard of one before it is dropped.
    let late = bravo.try_recv_leased(&at, Some(Duration::from_millis(1))).message().unwrap();
    world.clock.advance(Duration::from_millis(1));
    let held = bravo.try_recv_leased(&at, None).message().unwrap();
    denied(&bravo.reply(late.message(), &shared(&bravo, "!")), Reason::Misroute, "a2achan/lease-over");
    denied(&late.ack(), Reason::Misroute, "a2achan/lease-over");
    allowed(&held.ack());
    denied(&ask().verdict(), Reason::LeaseHeld, "a2achan/ring");
    drop(asked);
}
