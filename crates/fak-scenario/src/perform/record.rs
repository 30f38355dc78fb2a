//! The acts on the shared record, and the watches on records and cells (§5). Those on cells are in `cell`.

use std::collections::HashMap;

use fak_abi::{Act as Verb, Address, AgentHandle, Gate as _, Id, Outcome, ToolCall};
use fak_sharedtask::{
    CellWatch, Conflict, Domain, Hash, Patch, Patched, Record, Rules, SharedTaskError, Space, SpaceConfig,
    StoreConfig, TaskId, TaskStore, TaskView, TaskWatch, VerifyOptions, Watched as Seen, verify_journal,
};
use serde_json::{Value, json};

use super::{
    cell::cell_address,
    done::{Done, Stop},
    world::{Kept, World},
};
use crate::{
    act::{Actor, Base, JournalSource, RawJson, RecordAct, Watched},
    model::StoreSpec,
    render::counted,
};

/// The store, the space, and the watches that steps have kept.
pub(super) struct Records {
    pub(super) store: TaskStore,
    pub(super) space: Space,
    pub(super) watches: HashMap<String, Watch>,
}

/// A watch on a record or on cells.
pub(super) enum Watch {
    Task(Box<TaskWatch>),
    Cells(CellWatch),
}

impl Records {
    pub(super) fn new(spec: &StoreSpec) -> Self {
        let defaults = Rules::default();
        Self {
            store: TaskStore::new(StoreConfig {
                domain: Domain { fleet: spec.fleet.clone(), tenant: spec.tenant.clone() },
                rules: Rules {
                    max_scope: spec.max_scope.unwrap_or(defaults.max_scope),
                    approval: spec.approval.clone(),
                    ..defaults
                },
                ..StoreConfig::default()
            }),
            space: Space::new(SpaceConfig::default()),
            watches: HashMap::new(),
        }
    }
}

impl World {
    pub(super) fn record(&mut self, by: &Actor, act: &RecordAct) -> Done {
        match act {
            RecordAct::Create { record } => self.create(by, record),
            RecordAct::Patch { patch, base, key } => self.patch(by, patch, *base, key.as_deref()),
            RecordAct::Approve { task, decision } => self.decide_held(by, task, decision, true),
            RecordAct::Reject { task, decision } => self.decide_held(by, task, decision, false),
            RecordAct::View { task } => self.view(by, task),
            RecordAct::Events { task } => self.events(by, task),
            RecordAct::Watch { what: Watched::Task(task), name } => self.watch_task(by, task, name),
            RecordAct::Watch { what: Watched::Prefix(prefix), name } => self.watch_cells(by, prefix, name),
            RecordAct::Next { name } => self.next(name),
            RecordAct::Journal { task } => self.journal(by, task),
            RecordAct::Load { journal } => self.load(journal),
            RecordAct::Put { key, body } => self.put(by, key, body),
            RecordAct::Cas { key, body, version, scope } => self.cas(by, key, body, (*version, *scope)),
            RecordAct::Get { key, scope } => self.get(by, key, *scope),
            RecordAct::Delete { key, version, scope } => self.delete(by, key, *version, *scope),
            RecordAct::List { prefix, scope } => self.list(by, prefix, *scope),
        }
        .unwrap_or_else(Done::from)
    }

    fn create(&mut self, by: &Actor, record: &RawJson) -> Result<Done, Stop> {
        let store = self.records.store.clone();
        let text = record.text.as_bytes();
        if *by == Actor::Host {
            let mut done = Done::host();
            made(&mut done, record.line, store.create_json(text).map(drop));
            return Ok(done);
        }
        let handle = self.handle(by)?;
        let line = record.line;
        let record = match Record::draft(text, &store.config().rules.limits) {
            Ok(record) => record,
            Err(error) => {
                let mut done = Done::default();
                made(&mut done, line, Err(error.into()));
                return Ok(done);
            }
        };
        let outcome = store.create_by(&handle, &record);
        let mut done = both(&outcome.verdict()).at(task_address(record.task_id.as_str()));
        if let Some(created) = outcome.allowed() {
            made(&mut done, line, created.map(drop));
        }
        Ok(done)
    }

    fn patch(&mut self, by: &Actor, patch: &Patch, base: Base, key: Option<&str>) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let patch = self.based(patch, base);
        let key = match key {
            Some(key) => Some(Id::new(key).map_err(|error| Stop::missing(format!("a key: {error}")))?),
            None => None,
        };
        let outcome = self.records.store.patch(&handle, &patch, key.as_ref());
        Ok(patched(outcome).at(task_address(patch.task_id.as_str())))
    }

    /// A patch on the base that the step names.
    pub(super) fn based(&self, patch: &Patch, base: Base) -> Patch {
        let store = &self.records.store;
        let mut patch = patch.clone();
        patch.base_rev = match base {
            Base::Written => patch.base_rev,
            Base::Current => store.revision(&patch.task_id).map(|(_, rev)| rev),
            // A revision that never was is one the task never had; that of a task that is not there is none.
            Base::Number(number) => store
                .revision(&patch.task_id)
                .and_then(|_| store.revision_at(&patch.task_id, number).or_else(|| Hash::parse(NO_REVISION))),
        };
        patch
    }

    /// The id of a decision, by the name it was saved under or by itself.
    pub(super) fn decision(&self, decision: &str) -> Result<String, Stop> {
        match self.kept(decision) {
            Ok(Kept::Decision(id)) => Ok(id.clone()),
            _ if decision.starts_with("dec_") => Ok(decision.to_owned()),
            _ => Err(Stop::missing(format!("no decision was kept as \"{decision}\""))),
        }
    }

    /// `approve` and `reject`: the decision by the name it was saved under, or by its id.
    fn decide_held(&mut self, by: &Actor, task: &str, decision: &str, approve: bool) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let decision = self.decision(decision)?;
        let verb = if approve { Verb::TaskApprove } else { Verb::TaskReject };
        let task = self.task(&handle, verb, task)?;
        let store = &self.records.store;
        let outcome = if approve {
            store.approve(&handle, &task, &decision)
        } else {
            store.reject(&handle, &task, &decision)
        };
        Ok(patched(outcome).at(task_address(task.as_str())))
    }

    /// A task's id; one that is none is refused and audited.
    fn task(&self, handle: &AgentHandle, verb: Verb, task: &str) -> Result<TaskId, Stop> {
        TaskId::new(task).ok_or_else(|| {
            let call = ToolCall::new(handle, verb).address(Address::Malformed);
            Stop::Refused(self.kernel.decide(&call))
        })
    }

    fn view(&mut self, by: &Actor, task: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let task = self.task(&handle, Verb::TaskView, task)?;
        let outcome = self.records.store.view(&handle, &task);
        let mut done = both(&outcome.verdict()).at(task_address(task.as_str()));
        if let Some(view) = outcome.allowed() {
            show(&mut done, &view);
        }
        Ok(done)
    }

    fn events(&mut self, by: &Actor, task: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let task = self.task(&handle, Verb::TaskEvents, task)?;
        let outcome = self.records.store.events(&handle, &task);
        let mut done = Done::decided(&outcome.verdict()).at(task_address(task.as_str()));
        if let Some(view) = outcome.allowed() {
            done.note = Some(format!(
                "{}, {} redacted",
                counted(view.events.len(), "event", "events"),
                view.redacted
            ));
            done.answers.set("count", view.events.len());
            done.answers.set("redacted", view.redacted);
            done.answers.set("verifies", view.verifies());
        }
        Ok(done)
    }

    fn watch_task(&mut self, by: &Actor, task: &str, name: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let task = self.task(&handle, Verb::TaskWatch, task)?;
        let outcome = self.records.store.watch(&handle, &task);
        let done = Done::decided(&outcome.verdict()).at(task_address(task.as_str()));
        if let Some((_, watch)) = outcome.allowed() {
            self.records.watches.insert(name.to_owned(), Watch::Task(Box::new(watch)));
        }
        Ok(done)
    }

    fn next(&mut self, name: &str) -> Result<Done, Stop> {
        let Some(watch) = self.records.watches.get_mut(name) else {
            return Err(Stop::missing(format!(
                "there is no watch \"{name}\": the step that makes it did not succeed"
            )));
        };
        Ok(match watch {
            Watch::Task(watch) => {
                let outcome = watch.try_next();
                let mut done = Done::decided(&outcome.verdict()).at(task_address(watch.task().as_str()));
                match outcome.allowed() {
                    None => {}
                    Some(None) => empty(&mut done),
                    Some(Some(Seen::Event { event, revision })) => {
                        done.note = Some(format!("{} by {:?}", event.event_kind, event.actor.id));
                        done.answers.set("event_kind", &*event.event_kind);
                        done.answers.set("actor", &*event.actor.id);
                        done.answers.set("version", revision);
                        done.answers.set("empty", false);
                        done.answers.set("missed", 0_u64);
                    }
                    Some(Some(Seen::Lagged { missed, revision })) => {
                        done.note = Some(format!("{missed} missed"));
                        done.answers.set("missed", missed);
                        done.answers.set("version", revision);
                        done.answers.set("empty", false);
                    }
                }
                done
            }
            Watch::Cells(watch) => {
                let outcome = watch.try_next();
                let mut done = Done::decided(&outcome.verdict());
                match outcome.allowed() {
                    None => {}
                    Some(None) => empty(&mut done),
                    Some(Some(event)) => {
                        done.note = Some(format!("{} by {:?}", event.change.name(), event.writer.as_str()));
                        done.answers.set("event_kind", event.change.name());
                        done.answers.set("actor", event.writer.as_str());
                        done.answers.set("key", event.key.as_str());
                        done.answers.set("version", event.version);
                        done.answers.set("empty", false);
                        done.answers.set("missed", event.missed);
                        done = done.at(cell_address(&event.key));
                    }
                }
                done
            }
        })
    }

    /// The host's journal is whole; an agent's is an act of its own.
    fn journal(&mut self, by: &Actor, task: &str) -> Result<Done, Stop> {
        let mut bytes = Vec::new();
        let (mut done, written) = match by {
            Actor::Host => {
                let task = TaskId::new(task).ok_or_else(|| Stop::missing("no task can have that id"))?;
                (Done::host(), Some(self.records.store.journal(&task, &mut bytes)))
            }
            by => {
                let handle = self.handle(by)?;
                let task = self.task(&handle, Verb::TaskJournal, task)?;
                let outcome = self.records.store.journal_by(&handle, &task, &mut bytes);
                (Done::decided(&outcome.verdict()), outcome.allowed())
            }
        };
        match written {
            None => {}
            Some(Err(error)) => return Err(Stop::missing(error.to_string())),
            Some(Ok(_)) => {
                let verified = verify_journal(&bytes[..], &VerifyOptions::default());
                done.answers.set("verifies", verified.is_ok());
                if let Ok(summary) = verified {
                    done.note = Some(counted(summary.entries, "entry", "entries"));
                    done.answers.set("entries", summary.entries);
                }
                done.yields = Some(Kept::Journal(bytes));
            }
        }
        Ok(done.at(task_address(task)))
    }

    /// Loads into the store; the journal of a record that is there is loaded beside it, because nothing replaces a record.
    fn load(&mut self, journal: &JournalSource) -> Result<Done, Stop> {
        let bytes = match journal {
            JournalSource::Text(json) => json.text.clone().into_bytes(),
            JournalSource::Saved(name) => match self.kept(name).map_err(Stop::missing)? {
                Kept::Journal(bytes) => bytes.clone(),
                _ => return Err(Stop::missing(format!("\"{name}\" is no journal"))),
            },
        };
        let mut done = Done::host();
        let loaded = match self.records.store.load(&bytes[..]) {
            Err(SharedTaskError::Exists(_)) => {
                TaskStore::new(self.records.store.config().clone()).load(&bytes[..])
            }
            loaded => loaded,
        };
        if let Err(SharedTaskError::Journal(error)) = &loaded
            && let Some(entry) = error.entry()
        {
            done.answers.set("at_entry", entry);
        }
        made(&mut done, 1, loaded.map(drop));
        Ok(done)
    }
}

/// A digest that no revision has.
const NO_REVISION: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

pub(super) fn task_address(task: &str) -> String {
    format!("task:{task:?}")
}

/// Nothing was there.
pub(super) fn empty(done: &mut Done) {
    done.note = Some("empty".to_owned());
    done.answers.set("empty", true);
}

/// An act whose permission may be asked for as `act` or as `verdict`.
fn both(verdict: &fak_abi::Verdict) -> Done {
    let mut done = Done::decided(verdict);
    done.answers.set("act", verdict.kind().name());
    done
}

/// Whether the host or an agent could make something, which begins on `line`, and why not.
fn made(done: &mut Done, line: usize, made: Result<(), SharedTaskError>) {
    done.answers.set("ok", made.is_ok());
    if let Err(error) = made {
        // A place counted from the start of the record would be taken for one in the scenario.
        if let SharedTaskError::Json(fault) = &error {
            let line = line + fault.place().line - 1;
            let text = match fault.path() {
                "" => format!("json: {}", fault.problem()),
                path => format!("json: line {line}, at {path:?}: {}", fault.problem()),
            };
            return unmade(done, text);
        }
        let kind = match &error {
            SharedTaskError::Json(_) => "json",
            SharedTaskError::Journal(_) => "journal",
            SharedTaskError::Exists(_) => "exists",
            SharedTaskError::Unknown(_) => "unknown",
            SharedTaskError::Refused { reason, .. } => reason.name(),
            _ => "error",
        };
        unmade(done, format!("{kind}: {error}"));
    }
}

fn unmade(done: &mut Done, text: String) {
    done.note = Some(text.clone());
    done.answers.set("error", text);
}

/// Whether the act was permitted, and what the merge made of it.
fn patched(outcome: Outcome<Patched>) -> Done {
    let mut done = both(&outcome.verdict());
    let Some(Patched { result, revision, fault }) = outcome.allowed() else {
        return done;
    };
    done.answers.set("verdict", result.verdict.name());
    if !result.reason.is_empty() {
        done.answers.set("reason", &*result.reason);
    }
    done.answers.set("revision", revision);
    done.note = Some(format!("revision {revision}"));
    if let Some(fault) = fault {
        done.note = Some(fault.to_string());
    }
    if let Some(conflict) = &result.conflict {
        done.note = Some(format!("at {}", conflict.path));
        done.answers.set("conflict", conflict_json(conflict));
    }
    if let Some(approval) = &result.approval {
        done.answers.set("decision", &*approval.decision_id);
        done.yields = Some(Kept::Decision(approval.decision_id.to_string()));
    }
    done
}

fn conflict_json(conflict: &Conflict) -> Value {
    let value = |value| crate::parse::to_serde(value);
    json!({
        "path": &*conflict.path,
        "base_value": value(&conflict.base_value),
        "current_value": value(&conflict.current_value),
        "proposed_value": value(&conflict.proposed_value),
        "resolution": &*conflict.resolution,
    })
}

/// What a reader sees of a record.
fn show(done: &mut Done, view: &TaskView) {
    let ids = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let notes = ids(view.notes().map(|note| &*note.note_id).collect());
    let artifacts = ids(view.artifacts().map(|artifact| &*artifact.artifact_id).collect());
    let decisions = ids(view.open_decisions().map(|decision| &*decision.decision_id).collect());
    done.note = Some(format!(
        "{:?}, {:?}, {} ({} redacted), {} ({} redacted)",
        view.title,
        view.state,
        counted(notes.len(), "note", "notes"),
        view.redacted_notes,
        counted(artifacts.len(), "artifact", "artifacts"),
        view.redacted_artifacts
    ));
    done.answers.set("title", &*view.title);
    done.answers.set("state", &*view.state);
    done.answers.set("body_visible", view.body_visible);
    done.answers.set("notes", notes);
    done.answers.set("artifacts", artifacts);
    done.answers.set("open_decisions", decisions);
    done.answers.set("redacted_notes", view.redacted_notes);
    done.answers.set("redacted_artifacts", view.redacted_artifacts);
}
