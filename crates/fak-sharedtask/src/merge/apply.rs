//! Op by op, in order, against the current revision and the base the writer saw (§5.3).

use std::sync::Arc;

use fak_abi::Taint;

use super::{ActRefusal, Detail, PatchFault, Shown, Stop, Terms};
use crate::envelope::{Actor, Decision, MergeReason, Patch};
use crate::plan::{Plan, Step};
use crate::task::{ArtifactEntry, BodyEntry, Change, DecisionEntry, NoteEntry, Task};

/// Why an op ends the merge.
pub(super) enum Halt {
    Stop(Stop),
    Refuse(ActRefusal),
}

impl Halt {
    /// With the op that a conflict is about.
    fn at(mut self, index: usize) -> Self {
        if let Self::Stop(Stop { detail: Detail::Conflict { op, .. }, .. }) = &mut self {
            *op = index;
        }
        self
    }
}

/// One patch being applied.
struct Applying<'a> {
    task: &'a Task,
    /// The number of the base; none if the task never had it.
    base: Option<usize>,
    actor: Arc<Actor>,
    change: Change,
}

pub(super) fn apply(task: &Task, patch: &Patch, plan: &Plan, terms: &Terms<'_>) -> Result<Change, Halt> {
    let base = patch.base_rev.as_ref().and_then(|rev| task.number_of(rev));
    let actor = Arc::new(patch.actor.clone());
    let mut applying = Applying { task, base, actor, change: Change::default() };
    for (index, step) in plan.steps.iter().enumerate() {
        let stepped = applying.step(index, step, || plan.is_confirmed(index), terms);
        stepped.map_err(|halt| halt.at(index))?;
    }
    Ok(applying.change)
}

impl Applying<'_> {
    fn step(
        &mut self,
        index: usize,
        step: &Step,
        confirmed: impl Fn() -> bool,
        terms: &Terms<'_>,
    ) -> Result<(), Halt> {
        match step {
            Step::Unsupported(unfit) => {
                return Err(unsupported(PatchFault::op(index, &unfit.member, unfit.expected.clone())));
            }
            Step::Oversize => return Err(Halt::Refuse(ActRefusal::Oversize)),
            Step::Note(note) => {
                if !note.author.is(&self.actor) {
                    let expected = "expected the patch's actor";
                    return Err(unsupported(PatchFault::op(index, "/value/author", expected)));
                }
                self.known_base(Shown::Nothing)?;
                let fresh = self.change.notes.iter().find(|entry| entry.note.note_id == note.note_id);
                let there = self.task.note(&note.note_id);
                if let Some(entry) = fresh.or(there.map(|(_, entry)| entry)) {
                    let before = there.is_some_and(|(at, _)| at < self.base_len(|revision| revision.notes));
                    return Err(duplicate(
                        MergeReason::DuplicateNote,
                        before,
                        Shown::Note(Arc::clone(entry)),
                    ));
                }
                self.change.notes.push(Arc::new(NoteEntry::new(note.clone())));
            }
            Step::Artifact(artifact) => {
                self.known_base(Shown::Nothing)?;
                let id = &artifact.artifact_id;
                let fresh = self.change.artifacts.iter().find(|entry| entry.artifact.artifact_id == *id);
                let there = self.task.artifact(id);
                if let Some(entry) = fresh.or(there.map(|(_, entry)| entry)) {
                    let before =
                        there.is_some_and(|(at, _)| at < self.base_len(|revision| revision.artifacts));
                    let shown = Shown::Artifact(Arc::clone(entry));
                    return Err(duplicate(MergeReason::DuplicateArtifact, before, shown));
                }
                self.change
                    .artifacts
                    .push(Arc::new(ArtifactEntry::new(artifact.clone(), Arc::clone(&self.actor))));
            }
            Step::Decision(decision) => {
                self.known_base(Shown::Nothing)?;
                if let Some((at, entry)) = self.decision(&decision.decision_id) {
                    let before = at < self.base_len(|revision| revision.decisions);
                    let shown = Shown::Decision(entry);
                    return Err(duplicate(MergeReason::DuplicateDecision, before, shown));
                }
                self.change.decisions.push(Arc::new(DecisionEntry::new(decision.clone())));
            }
            Step::Title(title) => {
                let at = |number| self.task.revision(number).map(|revision| Arc::clone(&revision.title));
                self.current_base(|number| at(number).map_or(Shown::Nothing, Shown::Text))?;
                self.change.title = Some(Arc::clone(title));
            }
            Step::State(state) => {
                let at = |number| self.task.revision(number).map(|revision| Arc::clone(&revision.state));
                self.current_base(|number| at(number).map_or(Shown::Nothing, Shown::Text))?;
                self.change.state = Some(Arc::clone(state));
            }
            Step::Body(body) => {
                let standing = &self.task.current().body;
                // Quarantine hides a body from readers; whoever could read it otherwise may replace it.
                if !terms.sight.sees(Taint::Tainted, standing.body.scope, &standing.by) {
                    return Err(Halt::Refuse(ActRefusal::HiddenBody));
                }
                let at = |number| self.task.revision(number).map(|revision| Arc::clone(&revision.body));
                self.current_base(|number| at(number).map_or(Shown::Nothing, Shown::Body))?;
                if body.taint < standing.body.taint && !confirmed() {
                    return Err(Halt::Stop(Stop::quarantined(
                        MergeReason::BodyWitnessMissing,
                        "body",
                        "body_ref",
                    )));
                }
                let entry = BodyEntry { body: body.clone(), by: Arc::clone(&self.actor) };
                self.change.body = Some(Arc::new(entry));
            }
            Step::Settle { decision, state } => {
                let task = self.task;
                let state_at = |number| {
                    let (at, _) = task.decision(decision)?;
                    let count = task.revision(number)?.decisions;
                    let entry = task.decision_at(at, number).filter(|_| at < count)?;
                    Some(Shown::Text((&*entry.decision.state).into()))
                };
                let Some((at, standing)) = self.decision(decision) else {
                    self.known_base(Shown::Nothing)?;
                    return Err(conflict(MergeReason::MissingDecision, Shown::Nothing, Shown::Nothing));
                };
                self.current_base(|number| state_at(number).unwrap_or(Shown::Nothing))?;
                let settled = Decision { state: state.clone(), ..standing.decision.clone() };
                self.change.settled.push((at, Arc::new(DecisionEntry::new(settled))));
            }
        }
        Ok(())
    }

    /// A decision by id, as this patch has left it so far, and its place in the list.
    fn decision(&self, id: &str) -> Option<(usize, Arc<DecisionEntry>)> {
        let fresh = self.change.decisions.iter().position(|entry| *entry.decision.decision_id == *id);
        let (at, entry) = match (fresh, self.task.decision(id)) {
            (Some(at), _) => (self.task.decisions.len() + at, self.change.decisions.get(at)?),
            (None, found) => found?,
        };
        let settled = self.change.settled.iter().rev().find(|(index, _)| *index == at);
        Some((at, Arc::clone(settled.map_or(entry, |(_, entry)| entry))))
    }

    fn base_len(&self, len: impl Fn(&crate::task::Revision) -> usize) -> usize {
        self.base.and_then(|number| self.task.revision(number)).map_or(0, |revision| len(revision))
    }

    /// Appends merge on any base, but it must be one the task had.
    fn known_base(&self, current: Shown) -> Result<(), Halt> {
        match self.base {
            Some(_) => Ok(()),
            None => Err(conflict(MergeReason::StaleBase, Shown::Nothing, current)),
        }
    }

    /// Replacing needs the current revision as its base.
    fn current_base(&self, value: impl Fn(usize) -> Shown) -> Result<(), Halt> {
        let now = self.task.number();
        if self.base == Some(now) {
            return Ok(());
        }
        let before = self.base.map_or(Shown::Nothing, &value);
        Err(conflict(MergeReason::StaleBase, before, value(now)))
    }
}

fn unsupported(fault: PatchFault) -> Halt {
    Halt::Stop(Stop::unsupported(fault))
}

fn duplicate(reason: MergeReason, in_base: bool, entry: Shown) -> Halt {
    let base = if in_base { entry.clone() } else { Shown::Nothing };
    conflict(reason, base, entry)
}

fn conflict(reason: MergeReason, base: Shown, current: Shown) -> Halt {
    Halt::Stop(Stop { reason, detail: Detail::Conflict { op: 0, base, current } })
}
