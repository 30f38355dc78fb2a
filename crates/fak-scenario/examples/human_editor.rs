//! A shared record with a human editor (§5): agents append and change it by patch, a change of the state waits for a human, and
//! each reader sees what may flow to them.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::{error::Error, sync::Arc};

use fak_abi::{AgentHandle, Capability::*, Id, Outcome, PrincipalKind, PrincipalSpec};
use fak_adjudicate::{Kernel, ManualClock};
use fak_sharedtask::{ApprovalRule, Domain, Patched, Rules, StoreConfig, TaskId, TaskStore};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";
const TASK: &str = "task_notes";
const BODY: &str = "sha256:7743ce348d9284d677a185f33295b92266cc435a5b5f775029b300066d26693a";

fn main() -> Result<(), Box<dyn Error>> {
    let fleet = Id::new("docs")?;
    let store = TaskStore::new(StoreConfig {
        domain: Domain { fleet: Some(fleet.clone()), tenant: None },
        rules: Rules { approval: vec![ApprovalRule::Path("/state".to_owned())], ..Rules::default() },
        ..StoreConfig::default()
    });
    let time = Arc::new(ManualClock::at(NOW.parse()?));
    let kernel = Kernel::builder().driver(store.driver()).time(time).build()?;
    let attach = |name, kind| -> Result<AgentHandle, Box<dyn Error>> {
        let caps = [SharedtaskWrite, SharedtaskRead, SharedtaskApprove].into();
        let spec = PrincipalSpec { kind, caps, ..PrincipalSpec::agent(Id::new(name)?) };
        Ok(kernel.attach(spec.fleet(fleet.clone()))?)
    };
    let writer = attach("writer", PrincipalKind::Agent)?;
    let checker = attach("checker", PrincipalKind::Agent)?;
    let editor = attach("ed", PrincipalKind::Human)?;

    let task = TaskId::new(TASK).ok_or("an id of a task begins with task_")?;
    let body = json!({"kind": "cas", "digest": BODY, "bytes": 5, "taint": "tainted", "scope": "fleet", "durability": "session"});
    store.create_json(&serde_json::to_vec(&json!({
        "schema": "fak.shared-task.v1", "task_id": TASK, "rev": BODY, "state": "draft", "title": "Release notes",
        "body_ref": body, "artifacts": [], "notes": [], "open_decisions": [],
        "updated_by": {"kind": "human", "id": "ed"}, "updated_at": NOW,
    }))?)?;
    let base = store.revision(&task).ok_or("no such task")?.1.to_string();

    // Two agents edit the same revision. Notes merge on any base; a title needs the current one.
    let note = |by: &AgentHandle, id: &str, scope: &str| {
        let body = json!({"kind": "cas", "digest": BODY, "bytes": 5, "taint": "tainted", "scope": scope, "durability": "session"});
        let author = json!({"kind": "agent", "id": by.principal().id().as_str()});
        json!({"op": "append", "path": "/notes", "value": {"note_id": id, "author": author, "kind": "comment", "body_ref": body, "created_at": NOW}})
    };
    let title = json!({"op": "replace", "path": "/title", "value": "Release notes 2.0"});
    let other = json!({"op": "replace", "path": "/title", "value": "What is new"});
    tell("writer retitles", &edit(&store, &writer, &base, "fleet", title)?);
    tell("checker retitles, same base", &edit(&store, &checker, &base, "fleet", other)?);
    tell(
        "checker notes, same base",
        &edit(&store, &checker, &base, "fleet", note(&checker, "note_1", "fleet"))?,
    );
    tell("writer notes privately", &edit(&store, &writer, &base, "agent", note(&writer, "note_2", "agent"))?);

    // The state is for a human to release.
    let now = store.revision(&task).ok_or("no such task")?.1.to_string();
    let state = json!({"op": "replace", "path": "/state", "value": "released"});
    let held = edit(&store, &writer, &now, "fleet", state)?;
    tell("writer releases", &held);
    let approval = held.allowed().and_then(|patched| patched.result.approval).ok_or("nothing is held")?;
    tell("checker approves", &store.approve(&checker, &task, &approval.decision_id));
    tell("ed approves", &store.approve(&editor, &task, &approval.decision_id));
    tell("ed approves again", &store.approve(&editor, &task, &approval.decision_id));

    for reader in [&writer, &checker] {
        let view = store.view(reader, &task).ok()?;
        let notes: Vec<_> = view.notes().map(|note| &*note.note_id).collect();
        println!("{} sees {:?}, {}, notes {notes:?}", reader.principal().id(), view.title, view.state);
    }
    Ok(())
}

fn edit(
    store: &TaskStore,
    by: &AgentHandle,
    base: &str,
    scope: &str,
    op: Value,
) -> Result<Outcome<Patched>, Box<dyn Error>> {
    let patch = json!({
        "schema": "fak.shared-patch.v1", "task_id": TASK, "base_rev": base, "scope": scope, "durability": "session",
        "actor": {"kind": by.principal().kind().name(), "id": by.principal().id().as_str()}, "ops": [op], "message": "",
    });
    Ok(store.patch_json(by, &serde_json::to_vec(&patch)?, None)?)
}

fn tell(what: &str, outcome: &Outcome<Patched>) {
    match outcome {
        Outcome::Refuse(verdict) => println!("{what}: the act is refused: {verdict}"),
        Outcome::Allow { value, .. } => {
            let result = &value.result;
            let why = if result.reason.is_empty() { "" } else { ", " };
            println!("{what}: {}{why}{}; revision {}", result.verdict.name(), result.reason, value.revision);
            if let Some(conflict) = &result.conflict {
                let [base, current, proposed] =
                    [&conflict.base_value, &conflict.current_value, &conflict.proposed_value]
                        .map(|value| value.as_str().unwrap_or("nothing"));
                println!("  {}: base {base:?}, current {current:?}, proposed {proposed:?}", conflict.path);
            }
        }
    }
}
