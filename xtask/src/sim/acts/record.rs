//! One shared record: patches on bases that may be stale, and what each may see of it (§5).

use fak_abi::VerdictKind;
use fak_sharedtask::{Envelope as _, Hash, Limits, Patch, TaskId};
use serde_json::{Value, json};

use super::Sim;
use super::compare::outcome;
use crate::sim::MARK;
use crate::sim::fault::{Fault, Step, ensure, same};
use crate::sim::model::host::Door;
use crate::sim::model::layers::Change;
use crate::sim::model::{Scope, Who};
use crate::sim::real::broken;

/// The one record.
pub(crate) fn task() -> Result<TaskId, Fault> {
    TaskId::new("task_t").ok_or_else(|| broken("no task id"))
}

fn body(scope: &str) -> Value {
    json!({"kind": "cas", "digest": "sha256:body001", "bytes": 5, "taint": "tainted", "scope": scope,
        "durability": "session"})
}

const fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Agent => "agent",
        Scope::Fleet => "fleet",
        Scope::Tenant => "tenant",
    }
}

impl Sim {
    /// The record that every episode begins with.
    pub(super) fn create_record(&mut self) -> Step {
        let title = format!("{MARK}title");
        let record = json!({
            "schema": "fak.shared-task.v1", "task_id": "task_t", "rev": "sha256:ignored", "state": "working",
            "title": title, "body_ref": body("fleet"), "artifacts": [], "notes": [], "open_decisions": [],
            "updated_by": {"kind": "agent", "id": "host"}, "updated_at": "2026-01-01T00:00:00Z"
        });
        self.real.store.create_json(record.to_string().as_bytes()).map_err(broken)?;
        self.model.record.title = title;
        Ok(())
    }

    pub(super) fn patch(&mut self, agent: u8, scope: u8, base: u8, what: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let scope = match scope % 8 {
            0..5 => Scope::Fleet,
            5..7 => Scope::Tenant,
            _ => Scope::Agent,
        };
        let task = task()?;
        let Some((number, current)) = self.real.store.revision(&task) else {
            return Err(broken("no record"));
        };
        let back = if base % 4 == 3 { usize::from(base / 4) % (number + 1) } else { 0 };
        let base = self.real.store.revision_at(&task, number - back).unwrap_or_else(|| current.clone());
        let change = if what.is_multiple_of(4) {
            self.model.marks += 1;
            Change::Title(format!("{MARK}title-{}", self.model.marks))
        } else if what % 16 == 1 {
            let known = self.model.record.notes.first().map(|note| note.id.clone());
            Change::Note(known.unwrap_or_else(|| format!("{MARK}note-0")))
        } else {
            self.model.marks += 1;
            Change::Note(format!("{MARK}note-{}", self.model.marks))
        };
        let patch = self.written(who, scope, &base, &change)?;
        let before = self.model.record.accepted;
        let model = self.model.patch(who, scope, back, &change);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.store.patch(endpoint.agent(), &patch, None);
        let permitted = outcome(&format!("§5.2: patch by {who}"), product, model)?;
        let Some((patched, reason)) = permitted else {
            let after = self.real.store.revision(&task).map(|(number, _)| number);
            return same("§5.4: revisions after a refused patch", &after, &Some(before));
        };
        let said = patched.result.reason.to_string();
        ensure!(
            said == reason && patched.result.is_accepted() == reason.is_empty(),
            "§5.5: {change:?} of scope {scope:?} by {who}, {back} revisions back: the product says {} {said}, the model {reason:?}",
            patched.result.verdict
        );
        if let Some(approval) = &patched.result.approval {
            self.real.held.push((patch, approval.decision_id.to_string()));
        }
        let after = self.real.store.revision(&task).map(|(number, _)| number);
        same("§5.4: revisions", &after, &Some(self.model.record.accepted))
    }

    fn written(&self, who: Who, scope: Scope, base: &Hash, change: &Change) -> Result<Patch, Fault> {
        let agent = self.model.agent(who).ok_or_else(|| broken("nobody"))?;
        let kind = if agent.human { "human" } else { "agent" };
        let author = json!({"kind": kind, "id": agent.id});
        let op = match change {
            Change::Title(title) => json!({"op": "replace", "path": "/title", "value": title}),
            Change::Note(id) => json!({"op": "append", "path": "/notes", "value": {
                "note_id": id, "kind": "comment", "body_ref": body(name(scope)), "author": author,
                "created_at": "2026-01-01T00:00:00Z"}}),
        };
        let text = json!({
            "schema": "fak.shared-patch.v1", "task_id": "task_t", "base_rev": base.to_string(), "actor": author,
            "scope": name(scope), "durability": "session", "ops": [op], "message": "why"
        });
        Patch::parse(text.to_string().as_bytes(), &Limits::default()).map_err(broken)
    }

    /// A view by one that is there.
    pub(super) fn view_as(&mut self, who: Who) -> Step {
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let _ = self.real.store.view(endpoint.agent(), &task()?);
        Ok(())
    }

    /// §5.8: what a view and the events show is what may be seen, and no more.
    pub(super) fn view(&mut self, agent: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let model = self.model.view(who);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.store.view(endpoint.agent(), &task()?);
        // The admitter is shown the view's text, whose length is nobody's to say.
        if self.model.host.door != Door::Open && product.verdict().kind() == VerdictKind::Quarantine {
            return Ok(());
        }
        if let Some((view, notes)) = outcome(&format!("§5.8: view by {who}"), product, model)? {
            let seen: Vec<String> = view.notes().map(|note| note.note_id.to_string()).collect();
            same("§5.8: the notes in a view", &seen, &notes)?;
            let hidden = self.model.record.notes.iter().filter(|note| !notes.contains(&note.id));
            let text = format!("{view:?}");
            for note in hidden {
                ensure!(!text.contains(&format!("{}\"", note.id)), "§5.8: {who} sees of the hidden {note:?}");
            }
        }
        Ok(())
    }
}
