//! What is created (§5.5), and what is made in code instead of read (§8).

use fak_abi::{Reason, ShareScope, Timestamp};
use fak_sharedtask::{ApprovalRule, BodyRef, Limits, MergeReason, Patch, Record, SharedTaskError};
use serde_json::json;

use crate::support::{World, artifact, body, config, decision, parsed, record, refused, task};

/// §8: what is made in code has the limits of what is read; a record past them could not be loaded from its journal.
#[test]
fn what_is_made_in_code_has_the_limits_of_what_is_read() {
    let mut config = config();
    config.rules.approval = vec![ApprovalRule::Actor(fak_abi::PrincipalKind::Human)];
    config.rules.limits = Limits { envelope: 4096, ops: 2, text: 64, entries: 2, ..Limits::default() };
    let world = World::with(config, |builder| builder);
    let (agent, human) = (world.agent("a"), world.human("h"));
    let at = Timestamp::default();
    let body = BodyRef::of(b"x", ShareScope::Fleet);
    let named = |title: &str| Record::new(task(), agent.principal(), title, body.clone(), at);
    assert!(world.store.create_by(&agent, &named(&"t".repeat(65))).allowed().unwrap().is_err());
    assert!(world.store.create(named(&"t".repeat(65))).is_err());
    assert_eq!(refused(&world.store.create_by(&agent, &named(&"t".repeat(4097)))), Some(Reason::Oversize));
    assert!(world.store.tasks().is_empty());

    world.store.create_by(&agent, &named("title")).allowed().unwrap().unwrap();
    let patch = |who: &fak_abi::AgentHandle| Patch::new(task(), world.rev(), who.principal());
    let many = (0..3).fold(patch(&agent), |patch, n| patch.note(&format!("n{n}"), body.clone(), at));
    assert_eq!(refused(&world.store.patch(&agent, &many, None)), Some(Reason::Oversize));
    let long = patch(&human).title("new").message(&"m".repeat(4097));
    assert_eq!(refused(&world.store.patch(&human, &long, None)), Some(Reason::Oversize));
    assert!(world.store.held(&human, &task()).allowed().unwrap().is_empty());
    assert_eq!(world.store.revision(&task()).unwrap().0, 0);
}

/// §5.5: creating refuses what a patch would: ids that no entry may be given, and decisions without a state.
#[test]
fn creating_refuses_what_a_patch_would() {
    let note = |id: &str| {
        json!({"note_id": id, "kind": "comment", "body_ref": body("tainted", "fleet"),
        "author": {"kind": "agent", "id": "a"}, "created_at": "now"})
    };
    let mut stateless = decision("dec_x");
    stateless["state"] = json!("");
    for (list, entry, at) in [
        ("notes", note("a\nb"), "/notes/0/note_id"),
        (
            "artifacts",
            artifact("a\u{202e}b", "tainted", "fleet")["value"].clone(),
            "/artifacts/0/artifact_id",
        ),
        ("open_decisions", decision("a\u{7}b"), "/open_decisions/0/decision_id"),
        ("open_decisions", stateless, "/open_decisions/0/state"),
    ] {
        let world = World::new();
        let agent = world.agent("a");
        let mut record = record();
        record["updated_by"] = json!({"kind": "agent", "id": "a"});
        record[list] = json!([entry]);
        let refusal = |made: Result<_, SharedTaskError>| match made {
            Err(SharedTaskError::Refused { path, reason }) => (path, reason),
            other => panic!("{other:?}"),
        };
        let expected = (at.to_owned(), MergeReason::UnsupportedPatch);
        assert_eq!(refusal(world.store.create_by(&agent, &parsed(&record)).allowed().unwrap()), expected);
        assert_eq!(refusal(world.store.create(parsed(&record))), expected);
        assert!(world.store.tasks().is_empty());
    }
}
