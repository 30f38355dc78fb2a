//! What became of a message meanwhile, that an act took and was then refused; and of a request whose
//! lease was over: as if it had been queued all the time (§4.4, §4.6, §4.7, §4.10, §4.11).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fak_a2achan::{BusConfig, Cause, Delivery, End, RequestOptions, SendOptions};
use fak_abi::{Act, Adjudicator, Desk, Opinion, Reason, Ref, ResultAdmitter, RungName, Timestamp, ToolCall};
use fak_adjudicate::{AuditLog, AuditOptions, ManualClock, Rank};

use crate::lease::Untimed;
use crate::review::{Deed, meddled};
use crate::support::*;

fn causes(world: &World) -> Vec<Cause> {
    world.bus.dead_letters().iter().map(|letter| letter.cause).collect()
}

/// §2.3, §4.6, §4.11: freeing a key makes dead letters of what is queued there, and of what is on trial.
#[test]
fn what_comes_back_to_a_key_that_was_freed_meanwhile_is_a_dead_letter() {
    for (how, cause) in [("unbind", End::Unbind), ("detach", End::Detach), ("bind and unbind", End::Unbind)] {
        let (world, what) = meddled(BusConfig::default(), Act::Recv, true);
        let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
        let at = key("in_kernel:w");
        if how != "bind and unbind" {
            bravo.bind(&at).allowed().unwrap().keep();
        }
        for text in ["on trial", "queued"] {
            allowed(&alpha.send(&at, &shared(&alpha, text)));
        }
        let (kernel, binder, other, place) =
            (Arc::clone(&world.kernel), bravo.clone(), carol.clone(), at.clone());
        let deed: Deed = match how {
            "unbind" => Box::new(move || allowed(&binder.unbind(&place))),
            "detach" => Box::new(move || kernel.detach(&id("bravo")).unwrap()),
            _ => Box::new(move || drop(other.bind(&place).allowed().unwrap())),
        };
        assert!(what.set(deed).is_ok());
        refused(bravo.try_recv(&at), Reason::RateLimited, "meddler");
        let stats = world.bus.stats();
        assert!(stats.is_conserved() && (stats.dead, stats.queued) == (2, 0), "{how}: {stats:?}");
        assert_eq!(causes(&world), [Cause::End(cause); 2], "{how}");
        assert!(carol.bind(&at).is_allow(), "{how}");
    }
}

/// What comes in after that is queued as ever.
#[test]
fn what_came_after_a_key_was_freed_goes_back_to_its_place() {
    let (world, what) = meddled(BusConfig::default(), Act::Recv, true);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    allowed(&alpha.send(&at, &shared(&alpha, "before")));
    drop(bravo.bind(&at).allowed().unwrap());
    allowed(&alpha.send(&at, &shared(&alpha, "after")));
    assert!(what.set(Box::new(|| {})).is_ok());
    refused(bravo.try_recv(&at), Reason::RateLimited, "meddler");
    let stats = world.bus.stats();
    assert_eq!((stats.dead, stats.queued), (1, 1), "{stats:?}");
}

/// §2.3: so is what may flow to nobody but whoever was detached.
#[test]
fn what_only_the_detached_could_read_does_not_come_back() {
    let (world, what) = meddled(BusConfig::default(), Act::Recv, true);
    let alpha = world.agent("alpha");
    let at = key("in_kernel:alpha");
    allowed(&alpha.send(&at, &private(&alpha, "mine")));
    let kernel = Arc::clone(&world.kernel);
    assert!(what.set(Box::new(move || kernel.detach(&id("alpha")).unwrap())).is_ok());
    refused(alpha.try_recv(&at), Reason::RateLimited, "meddler");
    assert_eq!(causes(&world), [Cause::End(End::Detach)]);
    let stats = world.bus.stats();
    assert!(stats.is_conserved() && (stats.dead, stats.queued) == (1, 0), "{stats:?}");
}

/// §4.7, §4.10: an answer counts as received once it is handed over, and as dead if its requester was
/// gone before that.
#[test]
fn an_answer_that_ends_while_rungs_count_is_a_dead_letter() {
    let detach = |world: &World| -> Deed {
        let kernel = Arc::clone(&world.kernel);
        Box::new(move || drop(kernel.detach(&id("alpha"))))
    };
    let close = |world: &World| -> Deed {
        let bus = world.bus.clone();
        Box::new(move || bus.close())
    };
    for refuses in [true, false] {
        for (deed, end) in [(detach as fn(&World) -> Deed, End::Detach), (close, End::Close)] {
            let (world, what) = meddled(BusConfig::default(), Act::Await, refuses);
            let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
            let at = key("in_kernel:w");
            let mut asked =
                alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
            let request = message(bravo.try_recv(&at));
            allowed(&bravo.reply(&request, &shared(&bravo, "!")));
            assert!(what.set(deed(&world)).is_ok());
            let (reason, site) =
                if refuses { (Reason::RateLimited, "meddler") } else { (Reason::Misroute, "a2achan/closed") };
            refused(asked.try_take(), reason, site);
            assert!(matches!(asked.try_take(), Delivery::End(_) | Delivery::Refuse(_)));
            drop(asked);
            let stats = world.bus.stats();
            assert!(stats.is_conserved(), "{stats:?}");
            assert_eq!((stats.received, stats.dead, stats.queued), (1, 1, 0), "{end:?}: {stats:?}");
            assert_eq!(causes(&world), [Cause::End(end)]);
        }
    }
}

/// As above, where what is handed over is screened: what ended before it was held is not held.
#[test]
fn an_answer_that_ends_while_it_is_screened_is_not_held() {
    struct Leaves(OnceLock<Deed>);
    impl ResultAdmitter for Leaves {
        fn name(&self) -> RungName {
            "leaves"
        }
        fn screen(&self, call: &ToolCall<'_>, _: &Ref, _: &Desk<'_>) -> Opinion {
            if call.tool().act() != Some(Act::Await) {
                return Opinion::Defer;
            }
            self.0.get().unwrap()();
            Opinion::Quarantine
        }
    }
    let leaves = Arc::new(Leaves(OnceLock::new()));
    let world = World::with(BusConfig::default(), |b| b.admitter(Rank(0), Arc::clone(&leaves) as _));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let mut asked = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    let request = message(bravo.try_recv(&at));
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
    let kernel = Arc::clone(&world.kernel);
    assert!(leaves.0.set(Box::new(move || kernel.detach(&id("alpha")).unwrap())).is_ok());
    refused(asked.try_take(), Reason::Misroute, "a2achan/closed");
    drop(asked);
    let stats = world.bus.stats();
    assert!(stats.is_conserved(), "{stats:?}");
    assert_eq!((stats.received, stats.held, stats.dead), (1, 0, 1), "{stats:?}");
    assert_eq!(causes(&world), [Cause::End(End::Detach)]);
}

/// §4.4, §4.7: whose time with a request is over may not answer it, whether or not anybody looked since;
/// until then it may.
#[test]
fn a_lapsed_request_is_not_answered_without_any_timer() {
    let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let world = World::with(BusConfig::default(), |b| b.time(Arc::new(Untimed(clock.clone()))));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let mut asked = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    let lease = |ms| bravo.try_recv_leased(&at, Some(Duration::from_millis(ms))).message().unwrap();
    let first = lease(2);
    clock.advance(Duration::from_millis(2));
    denied(&bravo.reply(first.message(), &shared(&bravo, "!")), Reason::Misroute, "a2achan/lease-over");
    let second = lease(2);
    clock.advance(Duration::from_millis(1));
    denied(&bravo.reply(first.message(), &shared(&bravo, "!")), Reason::Misroute, "a2achan/lease-over");
    allowed(&bravo.reply(second.message(), &shared(&bravo, "!")));
    message(asked.try_take());

    // Received for good after a lease, it may be answered at any time.
    let mut asked = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    drop(second);
    message(bravo.try_recv(&at));
    drop(lease(2));
    let request = message(bravo.try_recv(&at));
    clock.advance(Duration::from_secs(60));
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
    message(asked.try_take());
}

/// §4.7, §4.11: a leased request that became a dead letter is nobody's to answer, and nobody is waited
/// for.
#[test]
fn a_leased_request_that_is_dead_is_not_answered() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, hers) = (key("in_kernel:w"), key("in_kernel:alpha"));
    let blocking = RequestOptions { blocking: true, ..RequestOptions::default() };
    let asked = alpha.request(&at, &shared(&alpha, "?"), &blocking).allowed().unwrap();
    let binding = bravo.bind(&at).allowed().unwrap();
    let guard = bravo.try_recv_leased(&at, None).message().unwrap();
    let ask = || bravo.request(&hers, &shared(&bravo, "?"), &blocking).verdict();
    denied(&ask(), Reason::LeaseHeld, "a2achan/ring");
    drop(binding);
    assert_eq!(causes(&world), [Cause::End(End::Unbind)]);
    allowed(&ask());
    denied(&bravo.reply(guard.message(), &shared(&bravo, "!")), Reason::Misroute, "a2achan/lease-over");
    denied(&guard.ack(), Reason::Misroute, "a2achan/lease-over");
    drop(asked);
    assert!(world.bus.stats().is_conserved());
}

/// A rung that does something while an act is decided.
#[derive(Default)]
struct Meanwhile(OnceLock<Deed>);

impl Adjudicator for Meanwhile {
    fn name(&self) -> RungName {
        "meanwhile"
    }
    fn judge(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        if let (Some(Act::Send | Act::Request), Some(deed)) = (call.tool().act(), self.0.get()) {
            deed();
        }
        Opinion::Defer
    }
}

/// §2.3: what its sender alone could read is a dead letter, though its sender was detached while the send
/// was decided, whichever way it goes.
#[test]
fn what_is_sent_to_oneself_while_one_is_detached_is_a_dead_letter() {
    for how in 0..4 {
        for audited in [false, true] {
            let meanwhile = Arc::new(Meanwhile::default());
            let (audit, _log, _) =
                AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), AuditOptions::default()).unwrap();
            let world = World::with(BusConfig::default(), |b| {
                let b = b.rung(Rank(50), Arc::clone(&meanwhile) as _);
                if audited { b.audit(Arc::new(audit)) } else { b }
            });
            let (alpha, kernel) = (world.agent("alpha"), Arc::clone(&world.kernel));
            let at = key("in_kernel:alpha");
            world.bus.open(&at);
            let channel = alpha.channel(&at);
            allowed(&channel.send(&private(&alpha, "first")));
            message(channel.try_recv());
            assert!(meanwhile.0.set(Box::new(move || drop(kernel.detach(&id("alpha"))))).is_ok());
            let body = private(&alpha, "mine");
            let verdict = match how {
                0 => alpha.send(&at, &body),
                1 => channel.send(&body),
                2 => alpha.send_with(&at, &body, &SendOptions::default()),
                _ => channel.request(&body, &RequestOptions::default()).verdict(),
            };
            let stats = world.bus.stats();
            assert!(stats.is_conserved() && stats.queued == 0, "{how}, audited {audited}: {stats:?}");
            // It was sent before the detach, or not at all.
            let dead = if verdict.is_allow() { vec![Cause::End(End::Detach)] } else { Vec::new() };
            assert_eq!(causes(&world), dead, "{how}, audited {audited}: {verdict}");
        }
    }
}
