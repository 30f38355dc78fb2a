//! A live record: entries that revisions share, and a revision digest that is continued, not recomputed (§5.2, §5.12).
//! How a patch becomes a change is in `merge`; how revisions are written out is in `encode`.

mod encode;
mod entry;
mod hash;

use std::collections::HashMap;
use std::sync::Arc;

use fak_abi::json::Member;
use fak_abi::{Digest, Timestamp};

use crate::envelope::{Actor, Envelope, Hash, Limits, Record, TaskEvent, TaskId};
pub(crate) use entry::{ArtifactEntry, BodyEntry, DecisionEntry, NoteEntry};
use hash::Prefix;

/// One revision: scalars, and how long each list was.
#[derive(Debug, Clone)]
pub(crate) struct Revision {
    pub(crate) rev: Hash,
    pub(crate) state: Arc<str>,
    pub(crate) title: Arc<str>,
    pub(crate) body: Arc<BodyEntry>,
    pub(crate) artifacts: usize,
    pub(crate) notes: usize,
    pub(crate) decisions: usize,
    pub(crate) updated_by: Arc<Actor>,
    pub(crate) updated_at: Box<str>,
    /// What made it; none for the initial one.
    pub(crate) event: Option<Arc<TaskEvent>>,
    /// The digest of that event.
    pub(crate) event_digest: Option<Digest>,
    /// Unknown members of the journal's entry for it, kept.
    pub(crate) entry_rest: Vec<Member>,
}

/// A record and its whole history. Memory per accepted append is proportional to the entry.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) rest: Vec<Member>,
    /// Unknown members of the journal it was loaded from, kept.
    pub(crate) journal_rest: Vec<Member>,
    /// Which empty lists are written `null`: artifacts, notes, decisions.
    pub(crate) nulls: [bool; 3],
    pub(crate) artifacts: Vec<Arc<ArtifactEntry>>,
    pub(crate) notes: Vec<Arc<NoteEntry>>,
    /// Each decision with its former states, oldest first.
    pub(crate) decisions: Vec<Vec<(usize, Arc<DecisionEntry>)>>,
    pub(crate) initial: Arc<Revision>,
    pub(crate) later: Vec<Arc<Revision>>,
    index: HashMap<Hash, usize>,
    ids: Ids,
    prefix: Prefix,
    /// Bytes of the current revision, encoded.
    bytes: usize,
    /// The latest time any revision carries.
    clock: Timestamp,
}

/// Where each id stands.
#[derive(Debug, Clone, Default)]
struct Ids {
    artifacts: HashMap<Box<str>, usize>,
    notes: HashMap<Box<str>, usize>,
    decisions: HashMap<Box<str>, usize>,
}

/// What a merged patch changes. Entries are appended in order; decisions are replaced by index.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) state: Option<Arc<str>>,
    pub(crate) title: Option<Arc<str>>,
    pub(crate) body: Option<Arc<BodyEntry>>,
    pub(crate) artifacts: Vec<Arc<ArtifactEntry>>,
    pub(crate) notes: Vec<Arc<NoteEntry>>,
    pub(crate) decisions: Vec<Arc<DecisionEntry>>,
    pub(crate) settled: Vec<(usize, Arc<DecisionEntry>)>,
}

impl Change {
    fn touches_scalars(&self) -> bool {
        self.state.is_some() || self.title.is_some() || self.body.is_some()
    }
}

/// A change that is digested and ready, and not yet visible.
#[derive(Debug)]
pub(crate) struct Prepared {
    change: Change,
    revision: Revision,
    digest: Digest,
    prefix: Prefix,
    bytes: usize,
    clock: Timestamp,
}

impl Prepared {
    /// The revision it will make.
    pub(crate) fn rev(&self) -> &Hash {
        &self.revision.rev
    }

    /// The same, which this project always makes in full.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Bytes of the record it will make, encoded.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The time it carries.
    pub(crate) fn updated_at(&self) -> &str {
        &self.revision.updated_at
    }

    /// The record's body once it is made.
    pub(crate) fn body(&self) -> &BodyEntry {
        &self.revision.body
    }
}

impl Task {
    /// A task whose first revision is this record, as it stands. Linear in it.
    pub(crate) fn new(record: Record) -> Self {
        let owner = Arc::new(record.updated_by);
        let nulls = [record.artifacts.null, record.notes.null, record.open_decisions.null];
        let artifacts: Vec<_> = record
            .artifacts
            .items
            .into_iter()
            .map(|a| Arc::new(ArtifactEntry::new(a, Arc::clone(&owner))))
            .collect();
        let notes: Vec<_> = record.notes.items.into_iter().map(|n| Arc::new(NoteEntry::new(n))).collect();
        let decisions: Vec<_> = record
            .open_decisions
            .items
            .into_iter()
            .map(|d| vec![(0, Arc::new(DecisionEntry::new(d)))])
            .collect();
        let initial = Arc::new(Revision {
            rev: record.rev.clone(),
            state: record.state,
            title: record.title,
            body: Arc::new(BodyEntry { body: record.body_ref, by: Arc::clone(&owner) }),
            artifacts: artifacts.len(),
            notes: notes.len(),
            decisions: decisions.len(),
            updated_by: owner,
            updated_at: record.updated_at,
            event: None,
            event_digest: None,
            entry_rest: Vec::new(),
        });
        let mut task = Self {
            id: record.task_id,
            rest: record.rest,
            journal_rest: Vec::new(),
            nulls,
            artifacts,
            notes,
            decisions,
            index: HashMap::from([(record.rev, 0)]),
            ids: Ids::default(),
            clock: initial.updated_at.parse().unwrap_or_default(),
            initial,
            later: Vec::new(),
            prefix: Prefix::default(),
            bytes: 0,
        };
        for (at, entry) in task.artifacts.iter().enumerate() {
            task.ids.artifacts.insert(entry.artifact.artifact_id.clone(), at);
        }
        for (at, entry) in task.notes.iter().enumerate() {
            task.ids.notes.insert(entry.note.note_id.clone(), at);
        }
        for (at, states) in task.decisions.iter().enumerate() {
            if let Some((_, entry)) = states.last() {
                task.ids.decisions.insert(entry.decision.decision_id.clone(), at);
            }
        }
        let none = Change::default();
        task.prefix = Prefix::from_scalars(&task, &task.initial, &none);
        task.bytes = task.encoded_len(task.current());
        task
    }

    /// The revision in force.
    pub(crate) fn current(&self) -> &Arc<Revision> {
        self.later.last().unwrap_or(&self.initial)
    }

    /// Its number, from 0.
    pub(crate) fn number(&self) -> usize {
        self.later.len()
    }

    /// The revision of that number.
    pub(crate) fn revision(&self, number: usize) -> Option<&Arc<Revision>> {
        match number.checked_sub(1) {
            None => Some(&self.initial),
            Some(at) => self.later.get(at),
        }
    }

    /// The number of the revision of that digest; of the latest, if it recurs (§5.10).
    pub(crate) fn number_of(&self, rev: &Hash) -> Option<usize> {
        self.index.get(rev).copied()
    }

    pub(crate) fn artifact(&self, id: &str) -> Option<(usize, &Arc<ArtifactEntry>)> {
        let at = *self.ids.artifacts.get(id)?;
        self.artifacts.get(at).map(|entry| (at, entry))
    }

    pub(crate) fn note(&self, id: &str) -> Option<(usize, &Arc<NoteEntry>)> {
        let at = *self.ids.notes.get(id)?;
        self.notes.get(at).map(|entry| (at, entry))
    }

    pub(crate) fn decision(&self, id: &str) -> Option<(usize, &Arc<DecisionEntry>)> {
        let at = *self.ids.decisions.get(id)?;
        self.decision_at(at, self.number()).map(|entry| (at, entry))
    }

    /// A decision as it stood at a revision.
    pub(crate) fn decision_at(&self, at: usize, number: usize) -> Option<&Arc<DecisionEntry>> {
        let states = self.decisions.get(at)?;
        let after = states.partition_point(|(since, _)| *since <= number);
        states.get(after.checked_sub(1)?).map(|(_, entry)| entry)
    }

    /// The decisions as they stood at a revision.
    pub(crate) fn decisions_at(&self, number: usize) -> impl Iterator<Item = &Arc<DecisionEntry>> {
        let count = self.revision(number).map_or(0, |revision| revision.decisions);
        (0..count).filter_map(move |at| self.decision_at(at, number))
    }

    /// Digests a change on top of the current revision, at `now` or just after the last revision, whichever is later.
    /// Costs the new entries and what follows them in the encoding: decisions for a note, notes for an artifact,
    /// everything for a scalar. None at the end of time: what was written at the same instant could be what was there before.
    pub(crate) fn prepare(&self, change: Change, by: Arc<Actor>, now: Timestamp) -> Option<Prepared> {
        let next = Timestamp::from_micros(self.clock.as_micros().saturating_add(1));
        let clock = (next > self.clock).then(|| now.max(next))?;
        Some(self.prepare_as(change, by, clock.to_string().into(), clock))
    }

    /// As [`Task::prepare`], at a time that was written by somebody else.
    pub(crate) fn prepare_as(
        &self,
        change: Change,
        by: Arc<Actor>,
        updated_at: Box<str>,
        clock: Timestamp,
    ) -> Prepared {
        let now = self.current();
        let mut revision = Revision {
            rev: now.rev.clone(),
            state: change.state.clone().unwrap_or_else(|| Arc::clone(&now.state)),
            title: change.title.clone().unwrap_or_else(|| Arc::clone(&now.title)),
            body: change.body.clone().unwrap_or_else(|| Arc::clone(&now.body)),
            artifacts: now.artifacts + change.artifacts.len(),
            notes: now.notes + change.notes.len(),
            decisions: now.decisions + change.decisions.len(),
            updated_by: by,
            updated_at,
            event: None,
            event_digest: None,
            entry_rest: Vec::new(),
        };
        let prefix = self.prefix.extended(self, &revision, &change);
        let digest = prefix.finish(self, &revision);
        revision.rev = Hash::Full(digest);
        let bytes = self.len_after(&revision, &change);
        Prepared { change, revision, digest, prefix, bytes, clock: clock.max(self.clock) }
    }

    /// Makes a prepared change the current revision, with its event. The only way a task advances.
    pub(crate) fn commit(&mut self, prepared: Prepared, event: TaskEvent) -> &Arc<Revision> {
        let digest = event.digest();
        self.commit_as(prepared, event, digest, Vec::new())
    }

    pub(crate) fn commit_as(
        &mut self,
        prepared: Prepared,
        event: TaskEvent,
        digest: Digest,
        entry_rest: Vec<Member>,
    ) -> &Arc<Revision> {
        let Prepared { change, mut revision, prefix, bytes, clock, .. } = prepared;
        let number = self.number() + 1;
        for entry in change.artifacts {
            self.ids.artifacts.insert(entry.artifact.artifact_id.clone(), self.artifacts.len());
            self.artifacts.push(entry);
        }
        for entry in change.notes {
            self.ids.notes.insert(entry.note.note_id.clone(), self.notes.len());
            self.notes.push(entry);
        }
        for entry in change.decisions {
            self.ids.decisions.insert(entry.decision.decision_id.clone(), self.decisions.len());
            self.decisions.push(vec![(number, entry)]);
        }
        for (at, entry) in change.settled {
            if let Some(states) = self.decisions.get_mut(at) {
                match states.last_mut() {
                    // Appended and settled by one patch: it never stood otherwise.
                    Some((since, last)) if *since == number => *last = entry,
                    _ => states.push((number, entry)),
                }
            }
        }
        revision.event = Some(Arc::new(event));
        revision.event_digest = Some(digest);
        revision.entry_rest = entry_rest;
        self.index.insert(revision.rev.clone(), number);
        self.prefix = prefix;
        self.bytes = bytes;
        self.clock = clock;
        self.later.push(Arc::new(revision));
        self.current()
    }

    /// The current revision as an envelope: a deep copy, linear in it.
    pub(crate) fn record(&self) -> Record {
        self.record_at(self.number()).unwrap_or_else(|| self.record_of(&self.initial, 0))
    }

    /// A revision as an envelope: a deep copy, linear in it.
    pub(crate) fn record_at(&self, number: usize) -> Option<Record> {
        self.revision(number).map(|revision| self.record_of(revision, number))
    }

    fn record_of(&self, revision: &Revision, number: usize) -> Record {
        Record {
            task_id: self.id.clone(),
            rev: revision.rev.clone(),
            state: Arc::clone(&revision.state),
            title: Arc::clone(&revision.title),
            body_ref: revision.body.body.clone(),
            artifacts: crate::envelope::List {
                items: self.artifacts.iter().take(revision.artifacts).map(|e| e.artifact.clone()).collect(),
                null: self.nulls[0],
            },
            notes: crate::envelope::List {
                items: self.notes.iter().take(revision.notes).map(|e| e.note.clone()).collect(),
                null: self.nulls[1],
            },
            open_decisions: crate::envelope::List {
                items: self.decisions_at(number).map(|e| e.decision.clone()).collect(),
                null: self.nulls[2],
            },
            updated_by: Actor::clone(&revision.updated_by),
            updated_at: revision.updated_at.clone(),
            rest: self.rest.clone(),
        }
    }

    /// Whether the lists are within their bounds once a change is made (§8).
    pub(crate) fn fits(&self, change: &Change, limits: &Limits) -> bool {
        let now = self.current();
        now.artifacts + change.artifacts.len() <= limits.entries
            && now.decisions + change.decisions.len() <= limits.entries
    }
}
