//! §3.5, §4.10: explanations, statistics, dead channels.

use std::sync::Arc;
use std::time::Duration;

use fak_a2achan::{Addressing, BusConfig, SendOptions};
use fak_abi::{Act, Event, EventKind, EventKinds, Reason};

use crate::support::*;

/// I01: the nearest known name, for those who may know it.
#[test]
fn explain_names_the_nearest_key_within_the_askers_domain() {
    let config = BusConfig { addressing: Addressing::Declared, ..BusConfig::default() };
    let world = World::with(config, |b| b);
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let _engineer = world.agent("engineer");
    let at = key("in_kernel:enginer");
    let explained = alpha.explain(Act::Send, &at, Some(&shared(&alpha, "x")));
    assert_eq!(explained.verdict.reason(), Some(Reason::Misroute));
    assert!(explained.next.contains("in_kernel:\"engineer\""), "{}", explained.next);
    assert_eq!(explained.rungs.first().map(|rung| rung.by), Some("a2achan/gate"));
    let explained = zulu.explain(Act::Send, &at, Some(&shared(&zulu, "x")));
    assert!(!explained.next.contains("engineer"), "{}", explained.next);
    world.bus.open(&key("in_kernel:enginex"));
    let explained = zulu.explain(Act::Send, &at, Some(&shared(&zulu, "x")));
    assert!(explained.next.contains("enginex"), "{}", explained.next);
    assert_eq!(world.bus.stats().denied, 0, "no side effects");
}

/// §3.5, §4.4: a receive in front of others' messages only is explained as it would be answered, and takes nothing.
#[test]
fn explain_knows_when_only_others_messages_are_queued() {
    let world = World::new();
    let (alpha, bravo, zulu) = (world.agent("alpha"), world.agent("bravo"), world.stranger("zulu", "f2"));
    let at = key("in_kernel:w");
    let check = |who: &fak_a2achan::Endpoint| who.explain(Act::Recv, &at, None).site.map(|site| site.check);
    assert_eq!((check(&zulu), check(&bravo)), (None, None));
    for _ in 0..2 {
        allowed(&alpha.send(&at, &shared(&alpha, "x")));
        assert_eq!((check(&zulu), check(&bravo)), (Some("a2achan/only-others"), None));
    }
    assert_eq!(zulu.try_recv(&at).refusal().and_then(fak_abi::Verdict::reason), Some(Reason::TrustViolation));
    assert!(bravo.try_recv(&at).message().is_some() && bravo.try_recv(&at).message().is_some());
    assert_eq!(check(&zulu), None);
}

#[test]
fn explain_covers_the_rows_after_the_rungs() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let at = key("in_kernel:w");
    let body = shared(&alpha, "x");
    let secret = private(&alpha, "x");
    let check = |act, at: &_, body| alpha.explain(act, at, body).site.map(|site| site.check);
    assert_eq!(check(Act::Send, &at, Some(&body)), None);
    allowed(&alpha.send(&at, &body));
    assert_eq!(check(Act::Send, &at, Some(&body)), Some("a2achan/full"));
    assert_eq!(check(Act::Send, &at, Some(&secret)), Some("a2achan/private"));
    assert_eq!(check(Act::Send, &key("session:trace-zulu"), Some(&body)), Some("a2achan/binder"));
    zulu.bind(&key("in_kernel:z")).allowed().unwrap().keep();
    assert_eq!(check(Act::Bind, &key("in_kernel:z"), None), Some("a2achan/bind-held"));
    assert_eq!(check(Act::Recv, &key("in_kernel:z"), None), Some("a2achan/not-receiver"));
    // As the act itself answers, also where nothing was ever sent.
    assert_eq!(check(Act::Recv, &key("in_kernel:zulu"), None), Some("a2achan/not-receiver"));
    assert_eq!(check(Act::Recv, &key("in_kernel:ack:zulu"), None), Some("a2achan/act-only"));
    assert_eq!(check(Act::Recv, &key("in_kernel:free"), None), None);
}

/// I14.
#[test]
fn a_channel_nobody_reads_is_bounded_and_shows() {
    let world = World::new();
    let alpha = world.agent("alpha");
    let at = key("in_kernel:void");
    let body = shared(&alpha, "x");
    let denied = (0..10_000).filter(|_| !alpha.send(&at, &body).is_allow()).count();
    assert_eq!(denied, 10_000 - 768);
    let depths = world.bus.depths();
    assert_eq!((depths.len(), depths[0].queued, depths[0].is_dead()), (1, 768, true));
}

/// I17.
#[test]
fn equal_texts_are_two_messages() {
    let world = World::new();
    let alpha = world.agent("alpha");
    let at = key("in_kernel:w");
    let body = shared(&alpha, "same");
    allowed(&alpha.send(&at, &body));
    allowed(&alpha.send(&at, &body));
    let (one, two) = (message(alpha.try_recv(&at)), message(alpha.try_recv(&at)));
    assert!(one.seq() < two.seq());
}

struct Deaths(Arc<parking_lot::Mutex<Vec<(u64, &'static str)>>>);

impl fak_abi::Emitter for Deaths {
    fn kinds(&self) -> EventKinds {
        EventKinds::of(&[EventKind::DeadLetter])
    }
    fn emit(&self, event: &Event<'_>) {
        self.0.lock().push((event.seq, event.cause));
    }
}

#[test]
fn dead_letters_are_announced() {
    let seen = Arc::new(parking_lot::Mutex::default());
    let world = World::with(BusConfig::default(), |b| b.emitter(Deaths(Arc::clone(&seen))));
    let alpha = world.agent("alpha");
    allowed(&alpha.send(&key("in_kernel:w"), &shared(&alpha, "x")));
    world.bus.close();
    assert_eq!(seen.lock().iter().map(|(_, cause)| *cause).collect::<Vec<_>>(), ["closed"]);
    assert!(world.bus.stats().is_conserved());
}

/// §4.10: what has had its time keeps no mailbox of somebody who is gone.
#[test]
fn an_expired_message_does_not_keep_its_makers_mailbox() {
    let world = World::new();
    let alpha = world.agent("alpha");
    let options = SendOptions { ttl: Some(Duration::from_millis(5)), ..SendOptions::default() };
    allowed(&alpha.send_with(&key("in_kernel:w"), &shared(&alpha, "x"), &options));
    world.clock.advance(Duration::from_millis(5));
    world.kernel.detach(&id("alpha")).unwrap();
    assert!(world.bus.depths().is_empty());
    assert_eq!(world.bus.dead_letters().first().map(|letter| letter.cause.name()), Some("expired"));
}

/// What a principal made and nobody uses goes with it; handles at hand find the new mailbox.
#[test]
fn unused_mailboxes_are_retired_with_their_maker() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let body = shared(&bravo, "x");
    allowed(&alpha.send(&at, &shared(&alpha, "x")));
    let channel = bravo.channel(&at);
    message(channel.try_recv());
    world.kernel.detach(&id("alpha")).unwrap();
    assert!(world.bus.depths().is_empty());
    assert!(channel.try_recv().is_empty());
    allowed(&channel.send(&body));
    message(channel.try_recv());
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received), (2, 2));
    assert!(stats.is_conserved());
}

/// I14: a million sends, no receiver.
#[test]
fn a_million_sends_without_a_reader_take_bounded_memory() {
    let world = World::new();
    let alpha = world.agent("alpha");
    let channel = alpha.channel(&key("in_kernel:void"));
    let body = shared(&alpha, "x");
    let memory = allocation_counter::measure(|| {
        let refused = (0..1_000_000).filter(|_| !channel.send(&body).is_allow()).count();
        assert_eq!(refused, 1_000_000 - 768);
    });
    assert!(memory.bytes_max < 4 << 20, "{memory:?}");
    let refusal = channel.send(&body);
    assert_eq!(refusal.reason(), Some(Reason::RateLimited));
    assert!(world.bus.depths().iter().any(fak_a2achan::Depth::is_dead));
}

/// A rung that detaches somebody while it counts a send, and then refuses that or not.
struct Overtaking {
    kernel: std::sync::OnceLock<std::sync::Weak<fak_adjudicate::Kernel>>,
    refuses: bool,
}

impl fak_abi::Adjudicator for Overtaking {
    fn name(&self) -> fak_abi::RungName {
        "overtaking"
    }
    fn tools(&self) -> fak_abi::ToolScope {
        fak_abi::ToolScope::only(["a2a.send"])
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        fak_abi::Opinion::Defer
    }
    fn commit(&self, call: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        let kernel = self.kernel.get().and_then(std::sync::Weak::upgrade);
        if let Some(kernel) = kernel
            && call.principal().id() == &id("alpha")
        {
            kernel.detach(call.principal().id()).unwrap();
        }
        if self.refuses {
            fak_abi::Opinion::deny(Reason::RateLimited, fak_abi::Site::new("overtaking"))
        } else {
            fak_abi::Opinion::Defer
        }
    }
}

fn overtaken(refuses: bool) -> World {
    let rung = Arc::new(Overtaking { kernel: std::sync::OnceLock::new(), refuses });
    let world =
        World::with(BusConfig::default(), |b| b.rung(fak_adjudicate::Rank(0), Arc::clone(&rung) as _));
    rung.kernel.set(Arc::downgrade(&world.kernel)).unwrap();
    world
}

/// A send that a detach overtakes leaves no mailbox behind that nobody counts for: not when it is
/// refused, and not once its message was received.
#[test]
fn a_send_that_a_detach_overtakes_leaves_no_mailbox() {
    let world = overtaken(true);
    let alpha = world.agent("alpha");
    let body = shared(&alpha, "x");
    assert!(!alpha.send(&key("in_kernel:w"), &body).is_allow());
    assert_eq!(world.bus.depths(), []);

    let world = overtaken(false);
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let body = shared(&alpha, "x");
    allowed(&alpha.send(&key("in_kernel:w"), &body));
    message(bravo.try_recv(&key("in_kernel:w")));
    world.kernel.detach(carol.agent().principal().id()).unwrap();
    assert_eq!(world.bus.depths(), []);
    assert!(world.bus.stats().is_conserved());
}
