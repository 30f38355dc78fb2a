//! Rules at their margins: what nothing but one comparison decides (§5.3 to §5.6, §8).

use std::sync::Arc;

use fak_abi::{Claim, PrincipalKind, Reason, Testimony, ToolCall, WitnessResolver};
use fak_sharedtask::{MergeReason, SharedTaskError};
use serde_json::{Value, json};

use crate::support::{
    World, answer, append_decision, artifact, body, config, note, note_of, parsed, patch, record, refused,
    replace, task,
};

/// Confirms what its digest begins with.
struct Confirms(&'static str);

impl WitnessResolver for Confirms {
    fn resolve(&self, claim: &Claim, _: &ToolCall<'_>) -> Testimony {
        let known = claim.subject.is_some_and(|digest| digest.hex().starts_with(self.0));
        if known { Testimony::Confirm } else { Testimony::Abstain }
    }
}

fn digest(digit: &str) -> String {
    format!("sha256:{}", digit.repeat(64))
}

/// A record of agent `a` with one artifact, changed.
fn with_artifact(change: impl FnOnce(&mut Value)) -> Value {
    let mut record = record();
    record["updated_by"] = json!({"kind": "agent", "id": "a"});
    let mut one = artifact("x", "tainted", "fleet")["value"].clone();
    change(&mut one);
    record["artifacts"] = json!([one]);
    record
}

/// §5.5: an artifact that a record is created with is held to what holds for one that a patch appends; the host's own are
/// exempt from scope and witnesses, and from nothing else (§5.6).
#[test]
fn a_created_records_artifacts_are_held_to_the_rules_of_patches() {
    let mut config = config();
    config.witnesses = vec![Arc::new(Confirms("77"))];
    let world = World::with(config, |builder| builder);
    let agent = world.agent("a");
    let of_fleet = world.attach("f", PrincipalKind::Agent, true, false);
    let mut rows: Vec<(Value, Option<MergeReason>, bool)> = Vec::new();
    let mut row =
        |reason, host, change: &dyn Fn(&mut Value)| rows.push((with_artifact(change), reason, host));
    row(None, true, &|_| ());
    row(None, true, &|it| it["scope"] = json!("tenant"));
    row(Some(MergeReason::ScopeWidenForbidden), true, &|it| it["scope"] = json!("public"));
    row(Some(MergeReason::ArtifactQuarantined), true, &|it| it["taint"] = json!("quarantined"));
    row(Some(MergeReason::ArtifactWitnessMissing), true, &|it| it["taint"] = json!("trusted"));
    row(None, true, &|it| {
        it["taint"] = json!("trusted");
        it["ref"] = json!(digest("7"));
    });
    row(Some(MergeReason::ArtifactWitnessMissing), false, &|it| it["store"] = json!("s3"));
    row(None, true, &|it| {
        it["store"] = json!("s3");
        it["deletion_certificate"] = json!(digest("c"));
    });
    for (number, (record, reason, host)) in rows.into_iter().enumerate() {
        let named = |prefix: &str, mut record: Value| {
            record["task_id"] = json!(format!("task_{prefix}{number}"));
            record
        };
        let by_agent = world.store.create_by(&agent, &parsed(&named("a", record.clone()))).allowed().unwrap();
        match (reason, by_agent) {
            (None, Ok(_)) => {}
            (Some(reason), Err(SharedTaskError::Refused { path, reason: found })) => {
                assert_eq!((&*path, found), ("/artifacts/0", reason), "{record}");
            }
            (reason, found) => panic!("expected {reason:?}, got {found:?} for {record}"),
        }
        let by_host = world.store.create_json(named("h", record.clone()).to_string().as_bytes());
        assert_eq!(by_host.is_ok(), host, "{record}");
    }
    // A scope within the store's that the creator does not have is wider than it.
    let mut record = with_artifact(|it| it["scope"] = json!("tenant"));
    record["updated_by"]["id"] = json!("f");
    let refused = world.store.create_by(&of_fleet, &parsed(&record)).allowed().unwrap().unwrap_err();
    assert!(refused.to_string().contains("SCOPE_WIDEN_FORBIDDEN"), "{refused}");
}

/// §5.5: the bodies of a created record, and of its notes, may be as wide as the store allows and not wider.
#[test]
fn a_created_records_bodies_reach_the_stores_limit_and_no_further() {
    let world = World::new();
    let agent = world.agent("a");
    for (number, scope, fits) in
        [(0, "agent", true), (1, "fleet", true), (2, "tenant", true), (3, "public", false)]
    {
        for (part, path) in [("b", "/body_ref"), ("n", "/notes/0/body_ref")] {
            let mut record = record();
            record["task_id"] = json!(format!("task_{part}{number}"));
            record["updated_by"] = json!({"kind": "agent", "id": "a"});
            record["notes"] = json!([note(&agent, "n1", "fleet")["value"]]);
            *record.pointer_mut(path).unwrap() = body("tainted", scope);
            match world.store.create_by(&agent, &parsed(&record)).allowed().unwrap() {
                Ok(_) => assert!(fits, "{scope} at {path}"),
                Err(SharedTaskError::Refused { path: found, reason }) => {
                    assert_eq!(
                        (&*found, reason, fits),
                        (path, MergeReason::ScopeWidenForbidden, false),
                        "{scope}"
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// §3.4, §5.5: a witness of the kernel counts for a record as one of the store does.
#[test]
fn a_witness_of_the_kernel_counts_for_records() {
    let trusted = |digit| {
        let mut body = body("trusted", "fleet");
        body["digest"] = json!(digest(digit));
        replace("/body_ref", body)
    };
    let world = World::with(config(), |builder| builder.witness(Confirms("77")));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    for (digit, expected) in [("8", "quarantined BODY_WITNESS_MISSING"), ("7", "accepted")] {
        assert_eq!(answer(&world.patch(&agent, "fleet", json!([trusted(digit)]))), expected);
    }
}

/// §5.5: a body that is less tainted than the one it replaces needs a witness; one that is as tainted, or more, does not.
#[test]
fn only_a_taint_that_falls_needs_a_witness() {
    for (standing, brought, expected) in [
        ("quarantined", "tainted", "quarantined BODY_WITNESS_MISSING"),
        ("tainted", "tainted", "accepted"),
        ("trusted", "tainted", "accepted"),
    ] {
        let world = World::new();
        let mut record = record();
        record["body_ref"]["taint"] = json!(standing);
        world.store.create_json(record.to_string().as_bytes()).unwrap();
        let agent = world.agent("a");
        let told = world.patch(&agent, "fleet", json!([replace("/body_ref", body(brought, "fleet"))]));
        assert_eq!(answer(&told), expected, "{brought} for {standing}");
    }
}

/// §5.3: a conflict shows the value that stood in the base the writer saw, and nothing where there was none yet.
#[test]
fn a_duplicate_shows_the_base_value_only_if_the_base_had_it() {
    let world = World::with_task();
    let agent = world.agent("a");
    let first = world.rev();
    world.patch(
        &agent,
        "fleet",
        json!([note(&agent, "n", "fleet"), artifact("x", "tainted", "fleet"), append_decision("dec_n")]),
    );
    let second = world.rev();
    world.patch(
        &agent,
        "fleet",
        json!([note(&agent, "m", "fleet"), artifact("y", "tainted", "fleet"), append_decision("dec_m")]),
    );
    for (op, there) in [
        (note(&agent, "n", "fleet"), [false, true]),
        (note(&agent, "m", "fleet"), [false, false]),
        (artifact("x", "tainted", "fleet"), [false, true]),
        (artifact("y", "tainted", "fleet"), [false, false]),
        (append_decision("dec_n"), [false, true]),
        (append_decision("dec_m"), [false, false]),
        (append_decision("dec_a"), [true, true]),
        (replace("/open_decisions/dec_n/state", "closed"), [false, true]),
        (replace("/open_decisions/dec_m/state", "closed"), [false, false]),
    ] {
        for (base, there) in [&first, &second].into_iter().zip(there) {
            let conflict = world.patch_on(&agent, base, "fleet", json!([op])).result.conflict.unwrap();
            assert_eq!(!conflict.base_value.is_null(), there, "{op}");
            assert!(!conflict.current_value.is_null(), "{op}");
        }
    }
}

/// §5.3: ops of one patch build on each other: a decision that it appends can be settled by it, and settled again.
#[test]
fn a_patch_may_settle_what_it_appends() {
    let world = World::with_task();
    let agent = world.agent("a");
    let settle = |state: &str| replace("/open_decisions/dec_n/state", state);
    let last = replace("/open_decisions/dec_o/state", "soon");
    let other = replace("/open_decisions/dec_b/state", "later");
    let told = world.patch(
        &agent,
        "fleet",
        json!([
            append_decision("dec_n"),
            settle("half"),
            other,
            settle("closed"),
            append_decision("dec_o"),
            last
        ]),
    );
    assert_eq!(answer(&told), "accepted");
    let states: Vec<_> = world
        .store
        .record(&task())
        .unwrap()
        .open_decisions
        .items
        .iter()
        .map(|decision| {
            (decision.decision_id.to_string(), decision.state.to_string(), decision.reason.to_string())
        })
        .collect();
    let why = "who decides";
    let expected = [("dec_a", "open"), ("dec_b", "later"), ("dec_n", "closed"), ("dec_o", "soon")];
    assert_eq!(states, expected.map(|(id, state)| (id.to_owned(), state.to_owned(), why.to_owned())));
    assert_eq!(world.store.recomputed_rev(&task()), Some(world.rev()));
    // What a patch settled is what it would append again.
    let twice = json!([
        append_decision("dec_p"),
        replace("/open_decisions/dec_p/state", "shut"),
        append_decision("dec_p")
    ]);
    let conflict = world.patch(&agent, "fleet", twice).result.conflict.unwrap();
    assert_eq!(conflict.current_value.member("state").and_then(|state| state.as_str()), Some("shut"));
}

/// §5.4: a quarantine says of what kind its subject is, and why it is held out.
#[test]
fn a_quarantine_says_what_of() {
    let world = World::with_task();
    let agent = world.agent("a");
    let mut elsewhere = artifact("z", "tainted", "fleet");
    elsewhere["value"]["store"] = json!("s3");
    for (op, kind, subject, artifact, summary) in [
        (artifact("x", "quarantined", "fleet"), "artifact", "x", "x", "a quarantined ref"),
        (elsewhere, "artifact", "z", "z", "deletion certificate"),
        (replace("/body_ref", body("quarantined", "fleet")), "body", "body_ref", "", "a quarantined ref"),
        (replace("/body_ref", body("trusted", "fleet")), "body", "body_ref", "", "confirmed witness"),
    ] {
        let quarantine = world.patch(&agent, "fleet", json!([op])).result.quarantine.unwrap();
        assert_eq!((&*quarantine.subject_kind, &*quarantine.subject_id), (kind, subject));
        assert_eq!(&*quarantine.artifact_id, artifact);
        assert!(quarantine.safe_summary.contains(summary), "{}", quarantine.safe_summary);
    }
}

/// §8: a record may be as large as the limit, and not a byte larger.
#[test]
fn a_record_grows_to_the_limit_and_not_past_it() {
    let size = |world: &World| fak_sharedtask::Envelope::to_json(&world.store.record(&task()).unwrap()).len();
    let grown = {
        let world = World::with_task();
        let agent = world.agent("a");
        world.patch(&agent, "fleet", json!([replace("/title", "grown")]));
        size(&world)
    };
    for (limit, expected) in [(grown, None), (grown - 1, Some(Reason::Oversize))] {
        let mut config = config();
        config.rules.limits.envelope = limit;
        let world = World::with(config, |builder| builder);
        let mut small = record();
        small["title"] = json!("-");
        world.store.create_json(small.to_string().as_bytes()).unwrap();
        let agent = world.agent("a");
        let patch = patch(&agent, &world.rev(), "fleet", json!([replace("/title", "grown")]));
        assert_eq!(refused(&world.store.patch(&agent, &patch, None)), expected, "{limit} of {grown}");
    }
}

/// Writes down what it is asked about, by the first digit, and confirms it.
#[derive(Default)]
struct Asked(std::sync::Mutex<String>);

impl WitnessResolver for Asked {
    fn resolve(&self, claim: &Claim, _: &ToolCall<'_>) -> Testimony {
        let subject = claim.subject.map(|digest| digest.hex()).unwrap_or_default();
        self.0.lock().unwrap().extend(subject.chars().next());
        Testimony::Confirm
    }
}

/// A body of that digest.
fn body_of(taint: &str, digit: &str) -> Value {
    let mut body = body(taint, "fleet");
    body["digest"] = json!(digest(digit));
    body
}

/// §5.5: what a patch brings as trusted is taken where a witness confirms it, and a witness is asked about nothing but what a
/// label may rest on.
#[test]
fn a_witness_is_asked_about_what_a_label_rests_on() {
    let asked = Arc::new(Asked::default());
    let mut config = config();
    config.witnesses = vec![asked.clone()];
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let artifact_of = |name, taint, digit| {
        let mut op = artifact(name, taint, "fleet");
        op["value"]["ref"] = json!(digest(digit));
        op
    };
    for (op, expected, about) in [
        (note_of(&agent, "n", body_of("trusted", "1")), "accepted", "1"),
        (note_of(&agent, "m", body_of("tainted", "2")), "accepted", ""),
        (artifact_of("x", "trusted", "3"), "accepted", "3"),
        (artifact_of("y", "tainted", "4"), "accepted", ""),
        (replace("/body_ref", body_of("trusted", "5")), "accepted", "5"),
        // Whether it is less tainted than what stands is known later.
        (replace("/body_ref", body_of("tainted", "6")), "accepted", "6"),
        (replace("/body_ref", body_of("quarantined", "7")), "quarantined BODY_QUARANTINED", ""),
        (replace("/title", "second"), "accepted", ""),
    ] {
        asked.0.lock().unwrap().clear();
        assert_eq!(answer(&world.patch(&agent, "fleet", json!([op]))), expected, "{op}");
        assert_eq!(*asked.0.lock().unwrap(), about, "{op}");
    }
}

/// §5.5: so is what a record is created with.
#[test]
fn a_witness_is_asked_about_what_a_created_record_claims() {
    let asked = Arc::new(Asked::default());
    let mut config = config();
    config.witnesses = vec![asked.clone()];
    let world = World::with(config, |builder| builder);
    let agent = world.agent("a");
    let mut record = with_artifact(|it| {
        it["taint"] = json!("trusted");
        it["ref"] = json!(digest("1"));
    });
    let written = note_of(&agent, "n", body_of("trusted", "2"))["value"].clone();
    let plain = note_of(&agent, "m", body_of("tainted", "3"))["value"].clone();
    record["notes"] = json!([written, plain]);
    record["body_ref"] = body_of("trusted", "4");
    world.store.create_by(&agent, &parsed(&record)).allowed().unwrap().unwrap();
    let mut about: Vec<char> = asked.0.lock().unwrap().chars().collect();
    about.sort_unstable();
    assert_eq!(about, ['1', '2', '4']);
}

/// §5.4: a patch for its actor alone brings what its actor alone sees: a note, an artifact or a body, but nothing that
/// everybody sees.
#[test]
fn a_private_patch_changes_nothing_that_everybody_sees() {
    let world = World::with_task();
    let agent = world.agent("a");
    let forbidden = "denied SCOPE_WIDEN_FORBIDDEN";
    for (op, expected) in [
        (note(&agent, "n", "agent"), "accepted"),
        (artifact("x", "tainted", "agent"), "accepted"),
        (replace("/body_ref", body("tainted", "agent")), "accepted"),
        (replace("/title", "second"), forbidden),
        (replace("/state", "closed"), forbidden),
        (replace("/open_decisions/dec_a/state", "closed"), forbidden),
        (append_decision("dec_n"), forbidden),
        (json!({"op": "remove", "path": "/title"}), "denied UNSUPPORTED_PATCH"),
    ] {
        assert_eq!(answer(&world.patch(&agent, "agent", json!([op]))), expected, "{op}");
    }
}

/// §8: a text is as long as the limit allows, and no longer.
#[test]
fn a_replaced_text_reaches_the_limit_and_no_further() {
    let mut config = config();
    config.rules.limits.text = 64;
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    for (length, expected) in [(64, None), (65, Some(Reason::Oversize))] {
        let titled = patch(&agent, &world.rev(), "fleet", json!([replace("/title", "t".repeat(length))]));
        assert_eq!(refused(&world.store.patch(&agent, &titled, None)), expected, "{length}");
    }
}
