//! What readers are handed: a record as far as they may see it, and its events so that the chain still verifies (§5.8).

use std::sync::Arc;

use fak_abi::json::{self, Sink};
use fak_abi::{Digest, Taint};

use crate::envelope::{
    Actor, ArtifactRef, BodyRef, Decision, Envelope as _, Hash, List, Note, Record, TaskEvent, TaskId,
};
use crate::sight::Sight;
use crate::task::{ArtifactEntry, DecisionEntry, NoteEntry, Task};

/// A record as one reader may see it (§5.8). Entries are shared with the store, not copied.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// The record.
    pub task_id: TaskId,
    /// Its revision; the digest of the whole record, which the reader need not be able to recompute.
    pub rev: Hash,
    /// The number of the revision.
    pub revision: usize,
    /// How far the task has come.
    pub state: Arc<str>,
    /// What the task is.
    pub title: Arc<str>,
    /// Its body; redacted if the reader may not see it.
    pub body_ref: BodyRef,
    /// Whether the body is shown.
    pub body_visible: bool,
    /// Who made the revision: kind and id.
    pub updated_by: Actor,
    /// When.
    pub updated_at: Box<str>,
    /// Notes the reader may not see.
    pub redacted_notes: usize,
    /// Artifacts the reader may not see.
    pub redacted_artifacts: usize,
    notes: Vec<Arc<NoteEntry>>,
    artifacts: Vec<Arc<ArtifactEntry>>,
    decisions: Vec<Arc<DecisionEntry>>,
    taint: Taint,
}

impl TaskView {
    /// The current revision of a task, for one reader. Linear in its entries; copies none.
    pub(super) fn of(task: &Task, sight: &Sight) -> Self {
        let now = task.current();
        let body_visible = sight.sees(now.body.body.taint, now.body.body.scope, &now.body.by);
        let mut taint = if body_visible { now.body.body.taint } else { Taint::Trusted };
        let mut notes = Vec::with_capacity(task.notes.len());
        for entry in &task.notes {
            let body = &entry.note.body_ref;
            if sight.sees(body.taint, body.scope, &entry.note.author) {
                taint = taint.join(body.taint);
                notes.push(Arc::clone(entry));
            }
        }
        let mut artifacts = Vec::with_capacity(task.artifacts.len());
        for entry in &task.artifacts {
            if sight.sees(entry.artifact.taint, entry.artifact.scope, &entry.by) {
                taint = taint.join(entry.artifact.taint);
                artifacts.push(Arc::clone(entry));
            }
        }
        Self {
            task_id: task.id.clone(),
            rev: now.rev.clone(),
            revision: task.number(),
            state: Arc::clone(&now.state),
            title: Arc::clone(&now.title),
            body_ref: now.body.shown(sight),
            body_visible,
            updated_by: Actor::new(&now.updated_by.kind, &now.updated_by.id),
            updated_at: now.updated_at.clone(),
            redacted_notes: task.notes.len() - notes.len(),
            redacted_artifacts: task.artifacts.len() - artifacts.len(),
            notes,
            artifacts,
            decisions: task.decisions_at(task.number()).map(DecisionEntry::labelled).collect(),
            taint: taint.join(Taint::Tainted),
        }
    }

    /// The notes the reader may see, in record order.
    pub fn notes(&self) -> impl ExactSizeIterator<Item = &Note> {
        self.notes.iter().map(|entry| &entry.note)
    }

    /// The artifacts the reader may see, in record order.
    pub fn artifacts(&self) -> impl ExactSizeIterator<Item = &ArtifactRef> {
        self.artifacts.iter().map(|entry| &entry.artifact)
    }

    /// The decisions, in record order.
    pub fn open_decisions(&self) -> impl ExactSizeIterator<Item = &Decision> {
        self.decisions.iter().map(|entry| &entry.decision)
    }

    /// The join of everything shown; never less than tainted.
    #[must_use]
    pub fn taint(&self) -> Taint {
        self.taint
    }

    /// The view as a record: a deep copy without what is redacted. Its `rev` is that of the whole record, so it does not
    /// digest to it when anything is hidden. Unknown members, which nobody labelled, are left out.
    #[must_use]
    pub fn to_record(&self) -> Record {
        Record {
            task_id: self.task_id.clone(),
            rev: self.rev.clone(),
            state: Arc::clone(&self.state),
            title: Arc::clone(&self.title),
            body_ref: self.body_ref.clone(),
            artifacts: List::from(self.artifacts().cloned().collect::<Vec<_>>()),
            notes: List::from(self.notes().cloned().collect::<Vec<_>>()),
            open_decisions: List::from(self.open_decisions().cloned().collect::<Vec<_>>()),
            updated_by: self.updated_by.clone(),
            updated_at: self.updated_at.clone(),
            rest: Vec::new(),
        }
    }
}

/// One event as one reader may see it (§5.8).
#[derive(Debug, Clone)]
pub enum EventView {
    /// Shown whole.
    Shown(Arc<TaskEvent>),
    /// Hidden: only what the chain needs.
    Hidden {
        /// The digest of the event.
        digest: Digest,
        /// The digest of the event before.
        prev_event: Option<Digest>,
    },
}

/// The events of a record as one reader may see them, oldest first (§5.8).
#[derive(Debug, Clone)]
pub struct EventsView {
    /// The record.
    pub task_id: TaskId,
    /// One for each accepted patch.
    pub events: Vec<EventView>,
    /// How many are hidden.
    pub redacted: usize,
}

impl EventsView {
    pub(super) fn of(task: &Task, sight: &Sight) -> Self {
        let mut redacted = 0;
        let mut before = None;
        let events = task
            .later
            .iter()
            .filter_map(|revision| {
                let event = revision.event.as_ref()?;
                let digest = revision.event_digest?;
                let prev_event = before.replace(digest);
                Some(if sight.sees(event.taint, event.scope, &event.actor) {
                    EventView::Shown(Arc::clone(event))
                } else {
                    redacted += 1;
                    EventView::Hidden { digest, prev_event }
                })
            })
            .collect();
        Self { task_id: task.id.clone(), events, redacted }
    }

    /// Whether each event names the digest of the one before: recomputed where it is shown, as given where it is hidden.
    #[must_use]
    pub fn verifies(&self) -> bool {
        let mut before: Option<Digest> = None;
        self.events.iter().all(|event| {
            let (link, digest) = match event {
                EventView::Shown(event) => (event.prev_event.clone(), event.digest()),
                EventView::Hidden { digest, prev_event } => (prev_event.map(Hash::Full), *digest),
            };
            let holds = link == before.map(Hash::Full);
            before = Some(digest);
            holds
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        json::array(&mut out, |a| {
            for event in &self.events {
                match event {
                    EventView::Shown(event) => event.write(a.element()),
                    EventView::Hidden { digest, .. } => a.element().put(format!("\"{digest}\"").as_bytes()),
                }
            }
        });
        out
    }
}
