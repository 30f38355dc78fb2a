//! Idempotency keys: a retry is answered and not done again (§4.13).

use std::sync::Arc;

use fak_abi::Reason;
use serde_json::json;

use crate::support::{
    World, answer, config, decision_of, id, note, patch, record, refused, replace, task, with_approval,
};

#[test]
fn a_retry_with_a_key_is_answered_and_not_done_again() {
    let world = World::with_task();
    let agent = world.agent("a");
    let key = id("retry-1");
    let base = world.rev();
    let patch = patch(&agent, &base, "fleet", json!([note(&agent, "n", "fleet")]));
    let first = world.store.patch(&agent, &patch, Some(&key)).allowed().unwrap();
    assert_eq!(answer(&first), "accepted");
    let replay = world.store.patch(&agent, &patch, Some(&key)).allowed().unwrap();
    assert_eq!(replay, first);
    // Without the key it is another act.
    let other = world.store.patch(&agent, &patch, None).allowed().unwrap();
    assert_eq!(answer(&other), "conflict DUPLICATE_NOTE");
    let changed = crate::support::patch(&agent, &base, "fleet", json!([note(&agent, "m", "fleet")]));
    assert_eq!(refused(&world.store.patch(&agent, &changed, Some(&key))), Some(Reason::Malformed));
    // Another principal's key is its own.
    let b = world.agent("b");
    let theirs = crate::support::patch(&b, &base, "fleet", json!([note(&b, "m", "fleet")]));
    assert_eq!(answer(&world.store.patch(&b, &theirs, Some(&key)).allowed().unwrap()), "accepted");
    // Refusals are not remembered.
    let forged = crate::support::patch(&b, &base, "fleet", json!([note(&b, "o", "fleet")]));
    assert_eq!(refused(&world.store.patch(&agent, &forged, Some(&id("k2")))), Some(Reason::TrustViolation));
    assert_eq!(
        answer(&world.store.patch(&agent, &changed, Some(&id("k2"))).allowed().unwrap()),
        "conflict DUPLICATE_NOTE"
    );
}

/// Writes down the causes of what it is told.
#[derive(Clone, Default)]
struct Causes(Arc<std::sync::Mutex<Vec<&'static str>>>);

impl fak_abi::Emitter for Causes {
    fn kinds(&self) -> fak_abi::EventKinds {
        fak_abi::EventKinds::ALL
    }

    fn emit(&self, event: &fak_abi::Event<'_>) {
        self.0.lock().unwrap().push(event.cause);
    }
}

#[test]
fn a_replay_is_told_as_one() {
    let causes = Causes::default();
    let world = World::with(config(), |builder| builder.emitter(causes.clone()));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let patch = patch(&agent, &world.rev(), "fleet", json!([note(&agent, "n", "fleet")]));
    for replays in 0..3 {
        world.store.patch(&agent, &patch, Some(&id("k"))).allowed().unwrap();
        let told = causes.0.lock().unwrap().iter().filter(|cause| **cause == "replay").count();
        assert_eq!(told, replays);
    }
}

/// A patch that is held was let in: its key is taken, and a retry is told what became of it.
#[test]
fn the_key_of_a_held_patch_is_taken() {
    let world = with_approval(fak_sharedtask::ApprovalRule::Always);
    let (agent, boss) = (world.agent("a"), world.human("boss"));
    let (key, base) = (id("k"), world.rev());
    let made = |title: &str| patch(&agent, &base, "fleet", json!([replace("/title", title)]));
    let sent = |title: &str| world.store.patch(&agent, &made(title), Some(&key));
    let held = sent("pay 10").allowed().unwrap();
    assert_eq!(answer(&held), "needs_approval APPROVAL_REQUIRED");
    assert_eq!(refused(&sent("pay 10000")), Some(Reason::Malformed));
    assert_eq!(sent("pay 10").allowed().unwrap(), held);
    assert_eq!(world.store.held(&boss, &task()).allowed().unwrap().len(), 1);
    assert!(world.store.approve(&boss, &task(), &decision_of(&held)).is_allow());
    assert_eq!(answer(&sent("pay 10").allowed().unwrap()), "accepted");
    assert_eq!(refused(&sent("pay 10000")), Some(Reason::Malformed));
    assert_eq!(world.store.revision(&task()).unwrap().0, 1);
}

/// Writes down the numbers of the acts it is told of.
#[derive(Clone, Default)]
struct Numbers(Arc<std::sync::Mutex<Vec<u64>>>);

impl fak_abi::Emitter for Numbers {
    fn kinds(&self) -> fak_abi::EventKinds {
        fak_abi::EventKinds::ALL
    }

    fn emit(&self, event: &fak_abi::Event<'_>) {
        self.0.lock().unwrap().push(event.seq);
    }
}

/// §3.6: acts on records are numbered as they happen; the repetition of one has the number of the first.
#[test]
fn acts_on_records_are_numbered() {
    let numbers = Numbers::default();
    let world = World::with(config(), |builder| builder.emitter(numbers.clone()));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let last = || numbers.0.lock().unwrap().last().copied().unwrap();
    let mut seen = Vec::new();
    let base = world.rev();
    for name in ["n", "m", "n"] {
        let noted = patch(&agent, &base, "fleet", json!([note(&agent, name, "fleet")]));
        world.store.patch(&agent, &noted, Some(&id(name))).allowed().unwrap();
        seen.push(last());
        world.store.view(&agent, &task()).allowed().unwrap();
        seen.push(last());
    }
    let repeated = seen.remove(4);
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    assert_eq!(seen.first(), Some(&repeated), "{seen:?}");
}

/// §4.13: so many keys of one principal are remembered, and the oldest is forgotten for one more.
#[test]
fn a_thousand_and_twenty_four_keys_are_remembered() {
    let world = World::with_task();
    let agent = world.agent("a");
    let patch = patch(&agent, &world.rev(), "fleet", json!([note(&agent, "n", "fleet")]));
    let told = |key: usize| {
        let told = world.store.patch(&agent, &patch, Some(&id(&format!("k{key}")))).allowed().unwrap();
        answer(&told)
    };
    assert_eq!(told(0), "accepted");
    for key in 1..1024 {
        assert_eq!(told(key), "conflict DUPLICATE_NOTE");
    }
    assert_eq!(told(0), "accepted", "it is answered as it was");
    told(1024);
    assert_eq!(told(0), "conflict DUPLICATE_NOTE", "it is done again");
}
