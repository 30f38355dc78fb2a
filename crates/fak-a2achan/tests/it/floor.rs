//! §4.3, row by row.

use std::sync::Arc;

use fak_a2achan::{Addressing, BusConfig, Endpoint, Limits, RequestOptions};
use fak_abi::{Act, Capability, Opinion, PrincipalSpec, Reason};

use fak_adjudicate::Rank;

use crate::support::*;

#[test]
fn a_shared_body_arrives_with_its_provenance() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:work");
    let body = shared(&alpha, "build it");
    allowed(&alpha.send(&at, &body));
    let got = message(bravo.try_recv(&at));
    assert_eq!(text(&bravo, got.body()), "build it");
    assert_eq!(got.body().digest(), body.digest());
    assert_eq!((got.body().taint(), got.body().scope()), (body.taint(), body.scope()));
    assert!(Arc::ptr_eq(got.from(), alpha.agent().principal()));
    assert_eq!(got.to().to_string(), "in_kernel:\"work\"");
    assert!(bravo.try_recv(&at).is_empty());
}

#[test]
fn row_0_detached_and_foreign_handles() {
    let (world, other) = (World::new(), World::new());
    let alpha = world.agent("alpha");
    let body = shared(&alpha, "x");
    let before = alpha.clone();
    let mallory = world.bus.endpoint(other.agent("alpha").agent());
    denied(&mallory.send(&key("in_kernel:w"), &body), Reason::TrustViolation, "kernel/foreign");
    world.kernel.detach(&id("alpha")).unwrap();
    assert_eq!(before.send(&key("in_kernel:w"), &body).reason(), Some(Reason::DefaultDeny));
    let late = world.bus.endpoint(before.agent());
    assert_eq!(late.send(&key("in_kernel:w"), &body).reason(), Some(Reason::DefaultDeny));
    assert_eq!(
        late.try_recv(&key("in_kernel:w")).refusal().and_then(fak_abi::Verdict::reason),
        Some(Reason::DefaultDeny)
    );
    assert_eq!(world.bus.stats().denied, 4);
    assert_eq!(world.bus.stats().sent, 0);
}

#[test]
fn row_1_malformed_is_audited_and_refused() {
    let world = World::new();
    let alpha = world.agent("alpha");
    denied(&alpha.malformed(Act::Send, Some(&shared(&alpha, "x"))), Reason::Malformed, "a2achan/malformed");
    denied(&alpha.malformed(Act::Recv, None), Reason::Malformed, "a2achan/malformed");
    // Before the capability (row 2).
    let mute = world.spec(PrincipalSpec::agent(id("mute")));
    denied(&mute.malformed(Act::Send, None), Reason::Malformed, "a2achan/malformed");
    denied(&mute.malformed(Act::Recv, None), Reason::Malformed, "a2achan/malformed");
}

#[test]
fn row_2_without_the_capability() {
    let world = World::new();
    let mute = world.spec(PrincipalSpec::agent(id("mute")).fleet(id("f1")).caps([Capability::RefWiden]));
    let body = shared(&mute, "x");
    denied(&mute.send(&key("in_kernel:w"), &body), Reason::DefaultDeny, "a2achan/no-send");
    denied(&mute.publish(&key("in_kernel:w"), &body).verdict, Reason::DefaultDeny, "a2achan/no-send");
    refused(mute.try_recv(&key("in_kernel:w")), Reason::DefaultDeny, "a2achan/no-recv");
    let read = fak_abi::ToolCall::new(mute.agent(), Act::Forensics);
    denied(&mute.agent().decide(&read), Reason::DefaultDeny, "refs/capability");
}

#[test]
fn rows_3_to_5_quarantined_unreadable_private() {
    let world = World::new();
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let at = key("in_kernel:w");
    denied(&alpha.send(&at, &world.quarantined(&alpha, "x")), Reason::TrustViolation, "a2achan/quarantined");
    denied(&alpha.send(&at, &shared(&zulu, "x")), Reason::TrustViolation, "a2achan/unreadable");
    denied(&alpha.send(&at, &private(&alpha, "x")), Reason::TrustViolation, "a2achan/private");
}

#[test]
fn row_5_own_keys_take_private_bodies() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    for own in ["session:trace-alpha", "window:alpha", "in_kernel:alpha"] {
        allowed(&alpha.send(&key(own), &private(&alpha, own)));
        denied(&bravo.send(&key(own), &private(&bravo, "x")), Reason::TrustViolation, "a2achan/private");
        assert_eq!(text(&alpha, message(alpha.try_recv(&key(own))).body()), own);
    }
    let bound = key("in_kernel:desk");
    denied(&alpha.send(&bound, &private(&alpha, "x")), Reason::TrustViolation, "a2achan/private");
    let binding = alpha.bind(&bound).allowed().unwrap();
    allowed(&alpha.send(&bound, &private(&alpha, "x")));
    drop(binding);
    denied(&alpha.send(&bound, &private(&alpha, "x")), Reason::TrustViolation, "a2achan/private");
}

#[test]
fn row_6_oversize() {
    let world = World::with(BusConfig { max_body_bytes: 4, ..BusConfig::default() }, |b| b);
    let alpha = world.agent("alpha");
    allowed(&alpha.send(&key("in_kernel:w"), &shared(&alpha, "1234")));
    denied(&alpha.send(&key("in_kernel:w"), &shared(&alpha, "12345")), Reason::Oversize, "a2achan/oversize");
}

/// §1.4, I30: a rule on the capability's tool stops every act it opens.
#[test]
fn row_7_a_rule_on_sending_stops_publishing() {
    let rule = |tools| Arc::new(Rule { tools, opinion: block });
    let world = World::with(BusConfig::default(), |b| b.rung(Rank(10), rule(vec!["a2a.send"])));
    let alpha = world.agent("alpha");
    let body = shared(&alpha, "x");
    denied(&alpha.send(&key("in_kernel:w"), &body), Reason::PolicyBlock, "rule");
    denied(&alpha.publish(&key("in_kernel:w"), &body).verdict, Reason::PolicyBlock, "rule");
    assert!(alpha.try_recv(&key("in_kernel:w")).is_empty());

    let world = World::with(BusConfig::default(), |b| b.rung(Rank(10), rule(vec!["a2a.publish"])));
    let alpha = world.agent("alpha");
    let body = shared(&alpha, "x");
    allowed(&alpha.send(&key("in_kernel:w"), &body));
    denied(&alpha.publish(&key("in_kernel:w"), &body).verdict, Reason::PolicyBlock, "rule");
}

#[test]
fn row_7_a_transform_replaces_the_body() {
    let rule = Rule {
        tools: vec!["a2a.send"],
        opinion: |call, desk| match call.body() {
            Some(body) => Opinion::Transform(desk.resolver.rewrite(body, "redacted".into()).unwrap()),
            None => Opinion::Defer,
        },
    };
    let world = World::with(BusConfig::default(), |b| b.rung(Rank(10), Arc::new(rule)));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    assert!(alpha.send(&key("in_kernel:w"), &shared(&alpha, "secret")).is_allow());
    assert_eq!(text(&bravo, message(bravo.try_recv(&key("in_kernel:w"))).body()), "redacted");
    let mut topic = bravo.subscribe(&key("in_kernel:t")).allowed().unwrap();
    assert!(alpha.publish(&key("in_kernel:t"), &shared(&alpha, "secret")).verdict.is_allow());
    assert_eq!(text(&bravo, message(topic.try_recv()).body()), "redacted");
}

#[test]
fn row_8_the_binder_must_be_able_to_read() {
    let world = World::new();
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let _binding = zulu.bind(&key("in_kernel:w")).allowed().unwrap();
    denied(&alpha.send(&key("in_kernel:w"), &shared(&alpha, "x")), Reason::TrustViolation, "a2achan/binder");
    // A session is bound from attachment, also before it has a mailbox.
    let session = key("session:trace-zulu");
    denied(&alpha.send(&session, &shared(&alpha, "x")), Reason::TrustViolation, "a2achan/binder");
}

/// I01.
#[test]
fn row_9_declared_addressing_refuses_a_mistyped_name() {
    let config = BusConfig { addressing: Addressing::Declared, ..BusConfig::default() };
    let world = World::with(config, |b| b);
    let (alpha, engineer) = (world.agent("alpha"), world.agent("engineer"));
    let body = shared(&alpha, "x");
    denied(&alpha.send(&key("in_kernel:enginer"), &body), Reason::Misroute, "a2achan/undeclared");
    denied(&alpha.publish(&key("in_kernel:news"), &body).verdict, Reason::Misroute, "a2achan/undeclared");
    assert!(world.bus.depths().is_empty(), "no mailbox is made");
    allowed(&alpha.send(&key("in_kernel:engineer"), &body));
    allowed(&alpha.send(&key("session:trace-engineer"), &body));
    world.bus.open(&key("in_kernel:lobby"));
    allowed(&alpha.send(&key("in_kernel:lobby"), &body));
    let _bound = engineer.bind(&key("in_kernel:desk")).allowed().unwrap();
    allowed(&alpha.send(&key("in_kernel:desk"), &body));
    let _topic = engineer.subscribe(&key("in_kernel:news")).allowed().unwrap();
    allowed(&alpha.publish(&key("in_kernel:news"), &body).verdict);
    allowed(&alpha.send(&key("in_kernel:news"), &body));
}

/// I16: capacity one, and sending to oneself.
#[test]
fn row_10_a_full_mailbox_refuses() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let alpha = world.agent("alpha");
    let at = key("in_kernel:alpha");
    allowed(&alpha.send(&at, &private(&alpha, "1")));
    denied(&alpha.send(&at, &private(&alpha, "2")), Reason::RateLimited, "a2achan/full");
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "1");
    allowed(&alpha.send(&at, &private(&alpha, "3")));
}

/// §4.12: one sender cannot take more than three quarters of a mailbox for many.
#[test]
fn row_10_a_share_leaves_room_for_others() {
    let world = World::with(BusConfig { capacity: 64, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let body = shared(&alpha, "x");
    (0..48).for_each(|_| allowed(&alpha.send(&at, &body)));
    denied(&alpha.send(&at, &body), Reason::RateLimited, "a2achan/share");
    (0..16).for_each(|_| allowed(&bravo.send(&at, &body)));
    denied(&bravo.send(&at, &body), Reason::RateLimited, "a2achan/full");
    message(bravo.try_recv(&at));
    allowed(&alpha.send(&at, &body));
}

#[test]
fn limits_of_one_principal_leave_others_alone() {
    let limits = Limits { mailboxes: 2, queued_bytes: 10, subscriptions: 1, waits: 1, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let body = shared(&alpha, "12345");
    allowed(&alpha.send(&key("in_kernel:1"), &body));
    allowed(&alpha.send(&key("in_kernel:2"), &body));
    denied(&alpha.send(&key("in_kernel:3"), &body), Reason::RateLimited, "a2achan/mailboxes");
    denied(&alpha.send(&key("in_kernel:1"), &body), Reason::RateLimited, "a2achan/bytes");
    allowed(&bravo.send(&key("in_kernel:3"), &body));
    message(bravo.try_recv(&key("in_kernel:2")));
    allowed(&alpha.send(&key("in_kernel:1"), &body));

    let _one = alpha.subscribe(&key("in_kernel:t")).allowed().unwrap();
    let two = alpha.subscribe(&key("in_kernel:t"));
    denied(&two.verdict(), Reason::RateLimited, "a2achan/subscriptions");
    let _other = bravo.subscribe(&key("in_kernel:t")).allowed().unwrap();

    let at = key("in_kernel:3");
    message(bravo.try_recv(&at));
    let mut first = Hand::new(alpha.recv(&at));
    first.pending();
    let mut second = Hand::new(alpha.recv(&at));
    refused(second.ready(), Reason::RateLimited, "a2achan/waits");
    Hand::new(bravo.recv(&at)).pending();
    drop(first);
    Hand::new(alpha.recv(&at)).pending();
}

/// §4.12: open requests and minted windows, each given back when it is over; refused, they leave
/// nothing behind.
#[test]
fn requests_and_windows_of_one_principal_leave_others_alone() {
    let limits = Limits { requests: 1, windows: 1, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, plain) = (key("in_kernel:desk"), RequestOptions::default());
    let ask = |by: &Endpoint| by.request(&at, &shared(by, "?"), &plain);
    let first = ask(&alpha).allowed().unwrap();
    denied(&ask(&alpha).verdict(), Reason::RateLimited, "a2achan/requests");
    let _other = ask(&bravo).allowed().unwrap();
    drop(first);
    drop(ask(&alpha).allowed().unwrap());
    assert_eq!(world.bus.stats().queued, 3, "what was refused was not sent");

    let compact = |by: &Endpoint| by.compact(&private(by, "so far"), &[]);
    let window = compact(&alpha).allowed().unwrap();
    denied(&compact(&alpha).verdict(), Reason::RateLimited, "a2achan/windows");
    assert!(compact(&bravo).is_allow());
    message(alpha.resume(&window));
    assert!(compact(&alpha).is_allow());
    assert!(world.bus.stats().is_conserved());
}

/// §4.12: what one principal may queue is the limit to the byte, over however many mailboxes, also after they were used and
/// emptied.
#[test]
fn many_mailboxes_share_the_limit_to_the_byte() {
    const KEYS: usize = 600;
    let limits = Limits { queued_bytes: 10_000, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let body = shared(&alpha, "1234567");
    let keys: Vec<_> = (0..KEYS).map(|n| key(&format!("in_kernel:{n}"))).collect();
    for _ in 0..2 {
        let sent = keys.iter().cycle().take(4 * KEYS).filter(|key| alpha.send(key, &body).is_allow()).count();
        assert_eq!(sent, 10_000 / 7);
        let received =
            keys.iter().cycle().take(4 * KEYS).filter_map(|key| bravo.try_recv(key).message()).count();
        assert_eq!(received, sent);
    }
}

/// Rungs that count see each act once, and what does not happen is taken back.
#[test]
fn counting_rungs_count_what_happens() {
    let meter = Arc::new(Meter { limit: 3, ..Meter::default() });
    let world =
        World::with(BusConfig { capacity: 2, ..BusConfig::default() }, |b| b.rung(Rank(10), meter.clone()));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:w");
    let body = shared(&alpha, "x");
    let count = |tool: &str| meter.counts.lock().get(tool).copied().unwrap_or(0);
    (0..2).for_each(|_| allowed(&alpha.send(&at, &body)));
    denied(&alpha.send(&at, &body), Reason::RateLimited, "a2achan/full");
    assert_eq!(count("a2a.send"), 2);
    message(bravo.try_recv(&at));
    allowed(&alpha.send(&at, &body));
    message(bravo.try_recv(&at));
    denied(&alpha.send(&at, &body), Reason::RateLimited, "meter");
    assert!(world.bus.stats().is_conserved());
    message(bravo.try_recv(&at));
    // The receive that is refused by the meter puts the message back.
    *meter.counts.lock().get_mut("a2a.send").unwrap() = 0;
    allowed(&alpha.send(&at, &body));
    refused(bravo.try_recv(&at), Reason::RateLimited, "meter");
    *meter.counts.lock().get_mut("a2a.recv").unwrap() = 0;
    message(bravo.try_recv(&at));
    assert!(world.bus.stats().is_conserved());
}

/// §4.3 row 9: what was ever opened, bound, attached or subscribed to stays known, whatever becomes
/// of whoever made it known.
#[test]
fn declared_names_outlive_those_who_declared_them() {
    let config = BusConfig { addressing: Addressing::Declared, ..BusConfig::default() };
    let world = World::with(config, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let body = shared(&alpha, "x");
    let send = |at: &str| alpha.send(&key(at), &body);
    drop(bravo.bind(&key("in_kernel:jobs")).allowed().unwrap());
    drop(bravo.subscribe(&key("in_kernel:news")).allowed().unwrap());
    world.kernel.detach(&id("bravo")).unwrap();
    for known in ["in_kernel:jobs", "in_kernel:news", "in_kernel:bravo", "session:trace-bravo"] {
        allowed(&send(known));
    }
    for unknown in ["in_kernel:job", "in_kernel:new", "session:bravo"] {
        denied(&send(unknown), Reason::Misroute, "a2achan/undeclared");
    }
    assert_eq!(alpha.publish(&key("in_kernel:news"), &body).fanout, 0);
    assert!(world.bus.stats().is_conserved());
}
