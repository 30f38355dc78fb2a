//! §4.7, §4.8, §4.13: request and reply, windows, idempotency.

use std::sync::Arc;
use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, End, Endpoint, RequestOptions, SendOptions};
use fak_abi::{
    Act, Adjudicator, ChannelKey, Desk, Locale, Opinion, PrincipalSpec, Reason, Rider, RungName, ShareScope,
    ToolCall,
};
use fak_adjudicate::{Kernel, Rank};

use crate::support::*;

#[test]
fn a_request_is_answered_once() {
    let world = World::new();
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let at = key("in_kernel:bravo");
    let mut pending = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    assert!(pending.try_take().is_empty());
    let request = message(bravo.try_recv(&at));
    assert!(request.is_request());
    denied(&carol.reply(&request, &shared(&carol, "!")), Reason::TrustViolation, "a2achan/request-other");
    let mut wait = Hand::new(pending.wait());
    wait.pending();
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
    assert_eq!(wait.wakes(), 1);
    let answer = message(wait.ready());
    drop(wait);
    assert_eq!((text(&alpha, answer.body()), answer.in_reply_to()), ("!".to_owned(), Some(request.seq())));
    denied(&bravo.reply(&request, &shared(&bravo, "!")), Reason::Misroute, "a2achan/no-request");
    refused(pending.try_take(), Reason::Misroute, "a2achan/await-spent");
    allowed(&alpha.send(&at, &shared(&alpha, "plain")));
    let plain = message(bravo.try_recv(&at));
    denied(&bravo.reply(&plain, &shared(&bravo, "!")), Reason::Misroute, "a2achan/no-request");
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received), (3, 3));
    assert!(stats.is_conserved());
}

#[test]
fn an_answer_is_adjudicated_like_any_send() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:bravo");
    let _pending = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    let request = message(bravo.try_recv(&at));
    denied(&bravo.reply(&request, &private(&bravo, "!")), Reason::TrustViolation, "a2achan/private");
    denied(
        &bravo.reply(&request, &world.quarantined(&bravo, "!")),
        Reason::TrustViolation,
        "a2achan/quarantined",
    );
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
}

#[test]
fn a_late_answer_is_a_dead_letter() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:bravo");
    let rider = Rider { deadline: Some(world.bus_now().after(Duration::from_millis(5))), ..Rider::default() };
    let options = RequestOptions { rider: Some(&rider), ..RequestOptions::default() };
    let mut pending = alpha.request(&at, &shared(&alpha, "?"), &options).allowed().unwrap();
    let request = message(bravo.try_recv(&at));
    let mut wait = Hand::new(pending.wait());
    wait.pending();
    world.clock.advance(Duration::from_millis(5));
    assert!(matches!(wait.ready(), Delivery::End(End::Timeout)));
    drop(wait);
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "late");

    let dropped = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    let request = message(bravo.try_recv(&at));
    drop(dropped);
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
    assert_eq!(world.bus.dead_letters().len(), 2);
    assert!(world.bus.stats().is_conserved());
}

/// §2.3, §4.7: a detach ends a blocking wait.
#[test]
fn who_is_detached_waits_for_nobody() {
    let world = World::new();
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let blocking = RequestOptions { blocking: true, ..RequestOptions::default() };
    let ask = |from: &Endpoint, to: &str| from.request(&key(to), &shared(from, "?"), &blocking);
    let _a = ask(&alpha, "session:trace-bravo").allowed().unwrap();
    // Kept: it is the detach that ends it.
    let _b = ask(&bravo, "session:trace-carol").allowed().unwrap();
    denied(&ask(&carol, "in_kernel:alpha").verdict(), Reason::LeaseHeld, "a2achan/ring");
    world.kernel.detach(&id("bravo")).unwrap();
    assert!(ask(&carol, "in_kernel:alpha").is_allow());
}

/// §4.3, §4.7: what the send itself would be refused comes before the ring.
#[test]
fn a_request_that_closes_a_ring_is_folded_as_the_send_it_is() {
    let world = World::with(BusConfig { max_body_bytes: 4, ..BusConfig::default() }, |b| b);
    let alpha = world.agent("alpha");
    let own = key("in_kernel:room");
    alpha.bind(&own).allowed().unwrap().keep();
    let blocking = RequestOptions { blocking: true, ..RequestOptions::default() };
    denied(
        &alpha.request(&own, &private(&alpha, "small"), &blocking).verdict(),
        Reason::Oversize,
        "a2achan/oversize",
    );
    denied(
        &alpha.request(&own, &private(&alpha, "tiny"), &blocking).verdict(),
        Reason::LeaseHeld,
        "a2achan/ring",
    );
}

/// I08.
#[test]
fn a_ring_of_blocking_requests_is_refused() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let blocking = RequestOptions { blocking: true, ..RequestOptions::default() };
    let (to_a, to_b) = (key("in_kernel:alpha"), key("session:trace-bravo"));
    let mut a = alpha.request(&to_b, &shared(&alpha, "?"), &blocking).allowed().unwrap();
    let refused = bravo.request(&to_a, &shared(&bravo, "?"), &blocking);
    denied(&refused.verdict(), Reason::LeaseHeld, "a2achan/ring");
    let explained = bravo.explain_blocking(&to_a, Some(&shared(&bravo, "?")));
    assert!(
        explained.next.contains("\"bravo\" waits for \"alpha\" waits for \"bravo\""),
        "{}",
        explained.next
    );
    // A call-back that does not block is fine.
    drop(bravo.request(&to_a, &shared(&bravo, "?"), &RequestOptions::default()).allowed().unwrap());
    let request = message(bravo.try_recv(&to_b));
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
    drop(bravo.request(&to_a, &shared(&bravo, "?"), &blocking).allowed().unwrap());
    message(a.try_take());
    // On a key of nobody the edge is known once somebody has received.
    let lobby = key("in_kernel:lobby");
    let _a = alpha.request(&lobby, &shared(&alpha, "?"), &blocking).allowed().unwrap();
    drop(bravo.request(&to_a, &shared(&bravo, "?"), &blocking).allowed().unwrap());
    message(bravo.try_recv(&lobby));
    let refused = bravo.request(&to_a, &shared(&bravo, "?"), &blocking);
    denied(&refused.verdict(), Reason::LeaseHeld, "a2achan/ring");
    // Oneself.
    assert!(!alpha.request(&to_a, &shared(&alpha, "?"), &blocking).is_allow());
}

/// §4.7: a ring that only receiving would close, at a key of nobody, is refused there: the request
/// keeps its place for somebody who does not wait for its requester.
#[test]
fn a_ring_that_a_receipt_would_close_is_refused() {
    let world = World::new();
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let blocking = RequestOptions { blocking: true, ..RequestOptions::default() };
    let (lobby, to_a) = (key("in_kernel:lobby"), key("in_kernel:alpha"));
    let a = alpha.request(&lobby, &shared(&alpha, "?"), &blocking).allowed().unwrap();
    let b = bravo.request(&to_a, &shared(&bravo, "?"), &blocking).allowed().unwrap();
    refused(bravo.try_recv(&lobby), Reason::LeaseHeld, "a2achan/ring");
    let Delivery::Refuse(verdict) = bravo.try_recv_leased(&lobby, None) else { panic!("not refused") };
    denied(&verdict, Reason::LeaseHeld, "a2achan/ring");
    let mut wait = Hand::new(bravo.recv(&lobby));
    refused(wait.ready(), Reason::LeaseHeld, "a2achan/ring");
    drop(wait);
    let stats = world.bus.stats();
    assert_eq!((stats.received, stats.queued), (0, 2));
    // Whoever waits there gets it.
    let mut other = Hand::new(carol.recv(&lobby));
    let got = message(other.ready());
    drop(other);
    let back = carol.request(&to_a, &shared(&carol, "?"), &blocking);
    denied(&back.verdict(), Reason::LeaseHeld, "a2achan/ring");
    allowed(&carol.reply(&got, &shared(&carol, "!")));
    drop((a, b));
    // One that waits for nobody any more may receive.
    let _a = alpha.request(&lobby, &shared(&alpha, "?"), &blocking).allowed().unwrap();
    let b = bravo.request(&to_a, &shared(&bravo, "?"), &blocking).allowed().unwrap();
    refused(bravo.try_recv(&lobby), Reason::LeaseHeld, "a2achan/ring");
    drop(b);
    message(bravo.try_recv(&lobby));
    assert!(world.bus.stats().is_conserved());
}

/// A blocking request that is over, by its deadline or because its requester is gone, is in no ring.
#[test]
fn what_is_over_closes_no_ring() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (to_a, to_b) = (key("in_kernel:alpha"), key("in_kernel:bravo"));
    let deadline = Some(world.bus_now().after(Duration::from_millis(5)));
    let rider = Rider { deadline, ..Rider::default() };
    let blocking = RequestOptions { blocking: true, rider: None };
    let brief = RequestOptions { rider: Some(&rider), ..blocking };
    let _a = alpha.request(&to_b, &shared(&alpha, "?"), &brief).allowed().unwrap();
    assert!(!bravo.request(&to_a, &shared(&bravo, "?"), &blocking).is_allow());
    world.clock.advance(Duration::from_millis(5));
    let _b = bravo.request(&to_a, &shared(&bravo, "?"), &blocking).allowed().unwrap();
    assert!(!alpha.request(&to_b, &shared(&alpha, "?"), &blocking).is_allow());
    world.kernel.detach(&id("bravo")).unwrap();
    let _bravo = world.agent("bravo");
    let _a = alpha.request(&to_b, &shared(&alpha, "?"), &blocking).allowed().unwrap();
}

#[test]
fn a_window_is_resumed_once_by_its_own() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let task = private(&alpha, "open task");
    let window = alpha.compact(&private(&alpha, "summary"), std::slice::from_ref(&task)).allowed().unwrap();
    let other = alpha.compact(&private(&alpha, "summary"), &[]).allowed().unwrap();
    assert_ne!(window, other);
    refused(bravo.resume(&window), Reason::TrustViolation, "a2achan/window-other");
    let at = ChannelKey::with_id(Locale::Window, window.clone());
    denied(&bravo.bind(&at).verdict(), Reason::TrustViolation, "a2achan/bind-reserved");
    refused(bravo.try_recv(&at), Reason::TrustViolation, "a2achan/not-receiver");
    let handed = message(alpha.resume(&window));
    assert_eq!(text(&alpha, handed.body()), "summary");
    assert_eq!(text(&alpha, &handed.parts()[0]), "open task");
    refused(alpha.resume(&window), Reason::Misroute, "a2achan/window-unknown");
    refused(alpha.resume(&id("window-nobody")), Reason::Misroute, "a2achan/window-unknown");
    let poison = world.quarantined(&alpha, "x");
    denied(&alpha.compact(&poison, &[]).verdict(), Reason::TrustViolation, "a2achan/quarantined");
    let verdict = alpha.compact(&task, &[poison]).verdict();
    denied(&verdict, Reason::TrustViolation, "a2achan/quarantined");
    world.kernel.detach(&id("alpha")).unwrap();
    assert!(world.bus.stats().is_conserved());
}

/// Detaches the actor of a compaction while it is being judged.
#[derive(Default)]
struct Late(std::sync::OnceLock<std::sync::Weak<Kernel>>);

impl Adjudicator for Late {
    fn name(&self) -> RungName {
        "late"
    }
    fn judge(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        if call.tool().act() == Some(Act::Compact) {
            let kernel = self.0.get().and_then(std::sync::Weak::upgrade).unwrap();
            kernel.detach(call.principal().id()).unwrap();
        }
        Opinion::Allow
    }
}

/// §2.3: a hand-off that is overtaken by the detaching of its principal is not left behind.
#[test]
fn a_hand_off_that_a_detach_overtakes_is_a_dead_letter() {
    let late = Arc::new(Late::default());
    let world = World::with(BusConfig::default(), |b| b.rung(Rank(10), late.clone()));
    late.0.set(Arc::downgrade(&world.kernel)).unwrap();
    let alpha = world.agent("alpha");
    let _window = alpha.compact(&private(&alpha, "summary"), &[]);
    let dead: Vec<_> = world.bus.dead_letters().iter().map(|letter| letter.cause.name()).collect();
    assert_eq!((dead, world.bus.stats().queued), (vec!["detached"], 0));
    assert!(world.bus.stats().is_conserved());
}

/// I32.
#[test]
fn a_key_makes_a_send_happen_once() {
    let world = World::with(BusConfig { capacity: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, once) = (key("in_kernel:w"), id("order-1"));
    let options = SendOptions { idempotency: Some(&once), ..SendOptions::default() };
    let body = shared(&alpha, "pay");
    denied(
        &alpha.send_with(&at, &private(&alpha, "pay"), &options),
        Reason::TrustViolation,
        "a2achan/private",
    );
    allowed(&alpha.send_with(&at, &body, &options));
    allowed(&alpha.send_with(&at, &shared(&alpha, "pay"), &options));
    denied(
        &alpha.send_with(&at, &shared(&alpha, "pay more"), &options),
        Reason::Malformed,
        "a2achan/key-reused",
    );
    denied(&alpha.send_with(&key("in_kernel:v"), &body, &options), Reason::Malformed, "a2achan/key-reused");
    // Keys are one's own.
    allowed(&bravo.send_with(&at, &shared(&bravo, "mine"), &options));
    // The first outcome, whatever the mailbox says by now.
    allowed(&alpha.send_with(&at, &body, &options));
    assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "pay");
    assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "mine");
    assert!(bravo.try_recv(&at).is_empty());
    assert_eq!(world.bus.stats().sent, 2);
    // A restart does not forget.
    world.kernel.detach(&id("alpha")).unwrap();
    let alpha = world.agent("alpha");
    allowed(&alpha.send_with(&at, &shared(&alpha, "pay"), &options));
    assert!(bravo.try_recv(&at).is_empty());
}

/// I30: a rule on the capability's tool stops every form of sending.
#[test]
fn a_rule_against_sending_cannot_be_passed_by() {
    let rule = Rule { tools: vec!["a2a.send"], opinion: block };
    let world = World::with(BusConfig::default(), |b| b.rung(Rank(10), Arc::new(rule)));
    let alpha = world.agent("alpha");
    let at = key("in_kernel:alpha");
    let body = private(&alpha, "x");
    denied(&alpha.request(&at, &body, &RequestOptions::default()).verdict(), Reason::PolicyBlock, "rule");
    denied(&alpha.compact(&body, &[]).verdict(), Reason::PolicyBlock, "rule");
}

/// §4.3 row 8: a reply inbox is bound to its requester.
#[test]
fn an_answer_must_be_readable_by_the_requester() {
    let world = World::new();
    let alpha = world.agent("alpha");
    let both = PrincipalSpec::agent(id("bravo")).fleet(id("f1")).tenant(id("acme")).caps(caps());
    let bravo = world.spec(both);
    let at = key("in_kernel:bravo");
    let _pending = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    let request = message(bravo.try_recv(&at));
    let tenants = bravo.agent().widen(&private(&bravo, "!"), ShareScope::Tenant).allowed().unwrap();
    denied(&bravo.reply(&request, &tenants), Reason::TrustViolation, "a2achan/reply-unreadable");
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
}

/// §2.3: detaching ends the wait for an answer and buries what came.
#[test]
fn detaching_ends_requests() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:bravo");
    let ask = || alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    let (mut waiting, answered) = (ask(), ask());
    let requests = [message(bravo.try_recv(&at)), message(bravo.try_recv(&at))];
    allowed(&bravo.reply(&requests[1], &shared(&bravo, "!")));
    let mut wait = Hand::new(waiting.wait());
    wait.pending();
    world.kernel.detach(&id("alpha")).unwrap();
    assert_eq!(wait.wakes(), 1);
    assert!(matches!(wait.ready(), Delivery::End(End::Detach)));
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "detached");
    allowed(&bravo.reply(&requests[0], &shared(&bravo, "!")));
    assert_eq!(world.bus.dead_letters()[1].cause.name(), "late");
    drop(answered);
    assert!(world.bus.stats().is_conserved());
}

/// §4.7, §4.10: an answer that comes after its requester was detached is a dead letter, and counted as one.
#[test]
fn an_answer_to_a_requester_that_is_gone_is_in_the_books() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let asked = alpha.request(&at, &shared(&alpha, "?"), &RequestOptions::default()).allowed().unwrap();
    let request = message(bravo.try_recv(&at));
    world.kernel.detach(&id("alpha")).unwrap();
    allowed(&bravo.reply(&request, &shared(&bravo, "!")));
    let tally = world.bus.stats();
    assert_eq!((tally.sent, tally.received, tally.dead), (2, 1, 1));
    assert_eq!(world.bus.dead_letters().len(), 1);
    drop(asked);
}
