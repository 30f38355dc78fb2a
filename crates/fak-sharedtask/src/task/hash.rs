//! The revision digest, continued from saved SHA-256 states (§5.12): an append hashes the new entry and the tail behind it.

use fak_abi::Digest;
use fak_abi::json::Sink;
use sha2::{Digest as _, Sha256};

use super::encode::{AFTER_ARTIFACTS, AFTER_NOTES};
use super::{Change, Revision, Task};

/// The hash as it stood inside each list, before its closing bracket, with `rev` empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix {
    artifacts: List,
    notes: List,
    decisions: List,
}

/// The hash within an open list, and whether anything is in it.
#[derive(Debug, Clone, Default)]
struct List {
    hash: Sha256,
    filled: bool,
}

impl List {
    /// The hash before the list's value.
    fn before(hash: Sha256) -> Self {
        Self { hash, filled: false }
    }

    fn push(&mut self, entry: &[u8]) {
        self.hash.put(if std::mem::replace(&mut self.filled, true) { b"," } else { b"[" });
        self.hash.put(entry);
    }

    /// The hash behind the list: closed, or `[]`, or `null`.
    fn closed(&self, null: bool) -> Sha256 {
        let mut hash = self.hash.clone();
        hash.put(match (self.filled, null) {
            (true, _) => b"]",
            (false, false) => b"[]",
            (false, true) => b"null",
        });
        hash
    }
}

impl Prefix {
    /// Hashes everything of `task` up to the open decisions list, with the scalars of `revision` and `change` on top.
    pub(super) fn from_scalars(task: &Task, revision: &Revision, change: &Change) -> Self {
        let mut hash = Sha256::new();
        task.write_head(&mut hash, revision, "");
        let mut artifacts = List::before(hash);
        task.artifacts.iter().chain(&change.artifacts).for_each(|entry| artifacts.push(&entry.encoded));
        Self::from_artifacts(task, artifacts, change)
    }

    fn from_artifacts(task: &Task, artifacts: List, change: &Change) -> Self {
        let mut hash = artifacts.closed(task.nulls[0]);
        hash.put(AFTER_ARTIFACTS);
        let mut notes = List::before(hash);
        task.notes.iter().chain(&change.notes).for_each(|entry| notes.push(&entry.encoded));
        Self::from_notes(task, artifacts, notes, change)
    }

    fn from_notes(task: &Task, artifacts: List, notes: List, change: &Change) -> Self {
        let mut hash = notes.closed(task.nulls[1]);
        hash.put(AFTER_NOTES);
        let mut decisions = List::before(hash);
        let settled = |at: usize| change.settled.iter().rev().find(|(index, _)| *index == at);
        let standing = task.decisions.iter().filter_map(|states| states.last()).map(|(_, entry)| entry);
        for (at, entry) in standing.chain(&change.decisions).enumerate() {
            decisions.push(&settled(at).map_or(entry, |(_, entry)| entry).encoded);
        }
        Self { artifacts, notes, decisions }
    }

    /// The states after `change`, resumed as late in the encoding as it allows.
    pub(super) fn extended(&self, task: &Task, revision: &Revision, change: &Change) -> Self {
        if change.touches_scalars() {
            return Self::from_scalars(task, revision, change);
        }
        let mut next = self.clone();
        if !change.artifacts.is_empty() {
            change.artifacts.iter().for_each(|entry| next.artifacts.push(&entry.encoded));
            return Self::from_artifacts(task, next.artifacts, change);
        }
        if !change.notes.is_empty() || !change.settled.is_empty() {
            change.notes.iter().for_each(|entry| next.notes.push(&entry.encoded));
            return Self::from_notes(task, next.artifacts, next.notes, change);
        }
        change.decisions.iter().for_each(|entry| next.decisions.push(&entry.encoded));
        next
    }

    /// The revision digest: the open states and the tail.
    pub(super) fn finish(&self, task: &Task, revision: &Revision) -> Digest {
        let mut hash = self.decisions.closed(task.nulls[2]);
        task.write_tail(&mut hash, revision);
        Digest::from_bytes(hash.finalize().into())
    }
}
