//! §4.6: binding and reserved keys.

use std::sync::{Arc, Barrier};

use fak_abi::{PrincipalSpec, Reason};

use crate::support::*;

#[test]
fn only_the_binder_receives() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:desk");
    let binding = alpha.bind(&at).allowed().unwrap();
    denied(&bravo.bind(&at).verdict(), Reason::LeaseHeld, "a2achan/bind-held");
    refused(bravo.try_recv(&at), Reason::TrustViolation, "a2achan/not-receiver");
    denied(&bravo.unbind(&at), Reason::TrustViolation, "a2achan/unbind-other");
    allowed(&bravo.send(&at, &shared(&bravo, "x")));
    message(alpha.try_recv(&at));
    drop(binding);
    denied(&alpha.unbind(&at), Reason::Misroute, "a2achan/unbind-free");
    let again = bravo.bind(&at).allowed().unwrap();
    again.keep();
    denied(&alpha.bind(&at).verdict(), Reason::LeaseHeld, "a2achan/bind-held");
    allowed(&bravo.unbind(&at));
    drop(alpha.bind(&at).allowed().unwrap());
}

/// A guard of an earlier binding ends nothing of a later one.
#[test]
fn an_old_guard_does_not_end_a_new_binding() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:desk");
    let old = alpha.bind(&at).allowed().unwrap();
    allowed(&alpha.unbind(&at));
    let _new = alpha.bind(&at).allowed().unwrap();
    drop(old);
    denied(&bravo.bind(&at).verdict(), Reason::LeaseHeld, "a2achan/bind-held");
}

#[test]
fn binding_dead_letters_what_the_binder_may_not_read() {
    let world = World::new();
    let (alpha, zulu) = (world.agent("alpha"), world.stranger("zulu", "f2"));
    let at = key("in_kernel:desk");
    allowed(&zulu.send(&at, &shared(&zulu, "z")));
    allowed(&alpha.send(&at, &shared(&alpha, "a")));
    let binding = alpha.bind(&at).allowed().unwrap();
    let dead = world.bus.dead_letters();
    assert_eq!(dead.iter().map(|letter| letter.cause.name()).collect::<Vec<_>>(), ["bound"]);
    assert_eq!(text(&alpha, message(alpha.try_recv(&at)).body()), "a");
    allowed(&alpha.send(&at, &shared(&alpha, "b")));
    drop(binding);
    assert_eq!(world.bus.dead_letters()[1].cause.name(), "unbound");
    assert!(world.bus.stats().is_conserved());
}

#[test]
fn a_key_where_another_waits_cannot_be_bound() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:desk");
    let mut wait = Hand::new(bravo.recv(&at));
    wait.pending();
    denied(&alpha.bind(&at).verdict(), Reason::TrustViolation, "a2achan/bind-waiting");
    let _own = bravo.bind(&at).allowed().unwrap();
    allowed(&alpha.send(&at, &shared(&alpha, "x")));
    message(wait.ready());
}

#[test]
fn reserved_keys_are_their_owners() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    for own in ["session:trace-alpha", "in_kernel:alpha", "window:alpha"] {
        denied(&bravo.bind(&key(own)).verdict(), Reason::TrustViolation, "a2achan/bind-reserved");
        allowed(&bravo.send(&key(own), &shared(&bravo, "x")));
        refused(bravo.try_recv(&key(own)), Reason::TrustViolation, "a2achan/not-receiver");
        message(alpha.try_recv(&key(own)));
    }
    for only in ["in_kernel:correction:alpha", "in_kernel:ack:alpha", "in_kernel:status:alpha"] {
        let body = shared(&bravo, "x");
        denied(&bravo.send(&key(only), &body), Reason::TrustViolation, "a2achan/act-only");
        denied(&bravo.publish(&key(only), &body).verdict, Reason::TrustViolation, "a2achan/act-only");
        denied(&bravo.bind(&key(only)).verdict(), Reason::TrustViolation, "a2achan/act-only");
        assert!(bravo.subscribe(&key(only)).is_allow(), "subscribing is free");
    }
}

#[test]
fn attaching_ends_what_others_had_on_its_keys() {
    let world = World::new();
    let (bravo, zulu) = (world.agent("bravo"), world.stranger("zulu", "f2"));
    let at = key("in_kernel:alpha");
    let old = zulu.bind(&at).allowed().unwrap();
    allowed(&zulu.send(&at, &shared(&zulu, "z")));
    allowed(&zulu.send(&key("session:trace-alpha"), &shared(&zulu, "z")));
    allowed(&bravo.send(&key("session:trace-alpha"), &shared(&bravo, "b")));
    let alpha = world.agent("alpha");
    assert_eq!(world.bus.dead_letters().len(), 2);
    drop(old);
    allowed(&bravo.send(&at, &shared(&bravo, "b")));
    message(alpha.try_recv(&at));
    message(alpha.try_recv(&key("session:trace-alpha")));
    refused(zulu.try_recv(&at), Reason::TrustViolation, "a2achan/not-receiver");
}

#[test]
fn detaching_frees_and_buries() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:desk");
    alpha.bind(&at).allowed().unwrap().keep();
    allowed(&bravo.send(&at, &shared(&bravo, "queued")));
    allowed(&alpha.send(&key("window:alpha"), &private(&alpha, "mine alone")));
    allowed(&alpha.send(&key("in_kernel:lobby"), &shared(&alpha, "for all")));
    world.kernel.detach(&id("alpha")).unwrap();
    let dead: Vec<_> = world.bus.dead_letters().iter().map(|letter| letter.cause.name()).collect();
    assert_eq!(dead, ["detached", "detached"]);
    message(bravo.try_recv(&key("in_kernel:lobby")));
    drop(bravo.bind(&at).allowed().unwrap());
    // A new incarnation is not the old owner.
    let again = world.spec(PrincipalSpec::agent(id("alpha")).fleet(id("f1")).caps(caps()));
    assert!(again.try_recv(&key("window:alpha")).is_empty());
    assert!(world.bus.stats().is_conserved());
}

/// I04: 8 bind one key.
#[test]
fn exactly_one_of_many_wins_a_key() {
    for _ in 0..50 {
        let world = World::new();
        let start = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (agent, start) = (world.agent(&format!("agent-{n}")), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    agent.bind(&key("in_kernel:prize")).allowed().map(fak_a2achan::Binding::keep).is_some()
                })
            })
            .collect();
        let wins = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won);
        assert_eq!(wins.count(), 1);
    }
}

/// §4.9: nobody fills an act-only inbox, also while its owner waits there.
#[test]
fn an_act_only_key_takes_no_send_even_with_a_mailbox() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:correction:alpha");
    let mut wait = Hand::new(alpha.recv(&at));
    wait.pending();
    let body = shared(&bravo, "x");
    let channel = bravo.channel(&at);
    for _ in 0..2 {
        denied(&bravo.send(&at, &body), Reason::TrustViolation, "a2achan/act-only");
        denied(&channel.send(&body), Reason::TrustViolation, "a2achan/act-only");
    }
    assert_eq!(wait.wakes(), 0);
    refused(bravo.try_recv(&at), Reason::TrustViolation, "a2achan/not-receiver");
}
