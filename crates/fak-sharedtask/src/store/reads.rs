//! The acts that read a record: view, events, journal, and the list of held patches (§5.8).

use std::io::Write;

use fak_abi::{Act, Address, AgentHandle, Digest, Outcome, Permit, Reason, Taint};

use super::acts::sees_all;
use super::admit::{Acting, allow, charge, refuse};
use super::driver::{UNKNOWN_TASK, WHOLE};
use super::view::{EventsView, TaskView};
use super::{Core, TaskStore};
use crate::envelope::{Envelope as _, HeldPatch, TaskId};
use crate::error::SharedTaskError;
use crate::journal::{self, JournalError};
use crate::plan::Plan;
use crate::sight::Sight;
use crate::task::Task;

impl TaskStore {
    /// The record as the agent may see it: an act (`sharedtask.view`). An unknown record is MISROUTE.
    pub fn view(&self, agent: &AgentHandle, task: &TaskId) -> Outcome<TaskView> {
        self.read(agent, Act::TaskView, task, TaskView::of, |view| (view.taint(), view.to_record().to_json()))
    }

    /// The events as the agent may see them: an act (`sharedtask.events`). What is hidden is there as digest and link, so
    /// that the chain still verifies.
    pub fn events(&self, agent: &AgentHandle, task: &TaskId) -> Outcome<EventsView> {
        self.read(agent, Act::TaskEvents, task, EventsView::of, |events| (Taint::Tainted, events.encode()))
    }

    /// The held patches that wait beside a record and may flow whole to the agent, by decision id: an act
    /// (`sharedtask.view`).
    pub fn held(&self, agent: &AgentHandle, task: &TaskId) -> Outcome<Vec<HeldPatch>> {
        let core = &*self.core;
        self.act(agent, Act::TaskView, Address::Task(task.id()), None, |acting, permit| {
            let Some(slot) = core.slot(task) else { return refuse(permit, Reason::Misroute, UNKNOWN_TASK) };
            let sight = Sight::of(&core.config.domain, agent.principal());
            let limits = &core.config.rules.limits;
            let mut held: Vec<HeldPatch> = {
                let slot = slot.lock();
                let waiting = slot.held.iter().filter(|(_, held)| held.waits());
                waiting.filter_map(|(decision, held)| held.envelope(decision)).collect()
            };
            held.retain(|held| sees_all(&sight, &held.patch, &Plan::new(&held.patch, limits, &|_| false)));
            held.sort_unstable_by(|a, b| a.decision_id.cmp(&b.decision_id));
            let encode = || held.iter().flat_map(crate::envelope::Envelope::to_json).collect();
            finish(core, &acting, permit, Taint::Tainted, encode).map(|()| held)
        })
    }

    /// Writes the journal for an agent: an act (`sharedtask.journal`). A journal is whole or it proves nothing, so one with
    /// anything that may not flow to the agent is refused TRUST_VIOLATION; nothing is written then.
    pub fn journal_by<W: Write>(
        &self,
        agent: &AgentHandle,
        task: &TaskId,
        out: W,
    ) -> Outcome<Result<Digest, SharedTaskError>> {
        let core = &*self.core;
        self.act(agent, Act::TaskJournal, Address::Task(task.id()), None, |acting, permit| {
            let Some(slot) = core.slot(task) else { return refuse(permit, Reason::Misroute, UNKNOWN_TASK) };
            let snapshot = slot.lock().task.clone();
            if !is_open(&snapshot, &Sight::of(&core.config.domain, agent.principal())) {
                return refuse(permit, Reason::TrustViolation, WHOLE);
            }
            let encode = || {
                let mut bytes = Vec::new();
                // A buffer takes whatever is written.
                let _ = journal::write(&snapshot, &mut bytes);
                bytes
            };
            finish(core, &acting, permit, Taint::Tainted, encode)
                .map(|()| journal::write(&snapshot, out).map_err(|error| JournalError::Write(error).into()))
        })
    }
}

/// Whether everything a task has ever held may flow to a reader.
pub(super) fn is_open(task: &Task, sight: &Sight) -> bool {
    let notes = task.notes.iter().all(|entry| {
        let body = &entry.note.body_ref;
        sight.sees(body.taint, body.scope, &entry.note.author)
    });
    let artifacts =
        task.artifacts.iter().all(|entry| sight.sees(entry.artifact.taint, entry.artifact.scope, &entry.by));
    let revisions = std::iter::once(&task.initial).chain(&task.later).all(|revision| {
        let body = &revision.body;
        sight.sees(body.body.taint, body.body.scope, &body.by)
            && revision.event.as_ref().is_none_or(|event| sight.sees(event.taint, event.scope, &event.actor))
    });
    // Unknown members are labelled by nobody, and so are the host's alone.
    let labelled = task.rest.is_empty()
        && task.journal_rest.is_empty()
        && task.later.iter().all(|revision| revision.entry_rest.is_empty())
        && task.decisions.iter().flatten().all(|(_, entry)| entry.decision.rest.is_empty());
    notes && artifacts && revisions && labelled
}

/// Screens what is about to be handed over and settles the act.
fn finish(
    core: &Core,
    acting: &Acting<'_>,
    permit: Permit<'_>,
    taint: Taint,
    bytes: impl FnOnce() -> Vec<u8>,
) -> Outcome<()> {
    let permit = match acting.screen(permit, taint, bytes) {
        Ok(permit) => permit,
        Err(verdict) => return Outcome::Refuse(verdict),
    };
    match charge(permit) {
        Ok(cleared) => allow(cleared, core.next_seq(), ()),
        Err(verdict) => Outcome::Refuse(verdict),
    }
}

impl TaskStore {
    /// Reads under the record's lock, screens what was read, and hands it over.
    fn read<T>(
        &self,
        agent: &AgentHandle,
        act: Act,
        task: &TaskId,
        read: impl FnOnce(&Task, &Sight) -> T,
        shown: impl FnOnce(&T) -> (Taint, Vec<u8>),
    ) -> Outcome<T> {
        self.act(agent, act, Address::Task(task.id()), None, |acting, permit| {
            let Some(slot) = self.core.slot(task) else {
                return refuse(permit, Reason::Misroute, UNKNOWN_TASK);
            };
            let sight = Sight::of(&self.core.config.domain, agent.principal());
            let value = read(&slot.lock().task, &sight);
            if !acting.host.screens(acting.call.tool()) {
                return finish(&self.core, &acting, permit, Taint::Tainted, Vec::new).map(|()| value);
            }
            let (taint, bytes) = shown(&value);
            finish(&self.core, &acting, permit, taint, || bytes).map(|()| value)
        })
    }
}
