//! Loading: a verified journal becomes a live task that continues its chain, numbering and clock (§5.10).

use std::io::Read;
use std::sync::Arc;

use fak_abi::Timestamp;
use fak_abi::json::StreamError;

use super::check::{Entry, Walk};
use super::{JournalError, JournalPlace};
use crate::envelope::{ArtifactRef, Decision, Envelope as _, Hash, Limits, Note, Record};
use crate::task::{ArtifactEntry, BodyEntry, Change, DecisionEntry, NoteEntry, Task};

/// Where a torn journal was torn (§5.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tear {
    /// Whole entries before the tear: all of them were verified and loaded.
    pub entries: usize,
    /// Bytes up to the end of the last whole entry.
    pub bytes: usize,
}

/// Loads a journal. With `torn`, one that ends too early is loaded up to its last whole entry, and says so.
pub(crate) fn load<R: Read>(
    input: R,
    limits: &Limits,
    torn: bool,
) -> Result<(Task, Option<Tear>), JournalError> {
    let mut walk = Walk::new(input, limits);
    walk.start()?;
    opaque(&walk)?;
    let mut task: Option<Task> = None;
    let outcome = loop {
        if task.is_none() {
            // The walk has read the initial record once it stands before the entries.
            let record = parse(walk.record_text(), limits)?;
            task = Some(Task::new(record));
        }
        match walk.next_entry() {
            Ok(Some(entry)) => {
                opaque(&walk)?;
                let at = walk.entries().saturating_sub(1);
                let record = parse(walk.record_text(), limits)?;
                if let Some(task) = &mut task {
                    advance(task, at, record, entry)?;
                }
            }
            Ok(None) => break walk.finish().map(|_| ()),
            Err(error) => break Err(error),
        }
    };
    let tear = match outcome {
        Ok(()) => None,
        Err(error) if torn && error.is_torn() => Some(Tear { entries: walk.entries(), bytes: walk.intact() }),
        Err(error) => return Err(error),
    };
    opaque(&walk)?;
    if let Some(task) = &mut task {
        task.journal_rest = walk.rest();
    }
    task.map(|task| (task, tear)).ok_or_else(|| no_history(None, "initial", "a record"))
}

fn opaque<R: Read>(walk: &Walk<'_, R>) -> Result<(), JournalError> {
    match walk.opaque() {
        Some(place) => Err(JournalError::Opaque { place: place.clone() }),
        None => Ok(()),
    }
}

fn parse(text: &[u8], limits: &Limits) -> Result<Record, JournalError> {
    Record::parse(text, limits).map_err(|error| JournalError::Read(StreamError::Json(error)))
}

fn no_history(entry: Option<usize>, member: &'static str, expected: &'static str) -> JournalError {
    JournalError::NoHistory { place: JournalPlace { entry, member }, expected }
}

/// Advances a task by what a record adds to the one before.
fn advance(task: &mut Task, at: usize, record: Record, entry: Entry) -> Result<(), JournalError> {
    let Entry { event, event_digest: digest, rest } = entry;
    let by = Arc::new(event.actor.clone());
    let now = Arc::clone(task.current());
    let entry = Some(at);
    let nulls = [
        (record.artifacts.null, record.artifacts.items.is_empty()),
        (record.notes.null, record.notes.items.is_empty()),
        (record.open_decisions.null, record.open_decisions.items.is_empty()),
    ];
    if nulls.iter().zip(task.nulls).any(|((null, empty), before)| *empty && *null != before) {
        return Err(no_history(entry, "record", "an empty list written as before"));
    }
    if record.rest != task.rest {
        return Err(no_history(entry, "record", "the unknown members of the record before"));
    }
    let mut change = Change::default();
    if record.title != now.title {
        change.title = Some(record.title);
    }
    if record.state != now.state {
        change.state = Some(record.state);
    }
    if record.body_ref != now.body.body {
        change.body = Some(Arc::new(BodyEntry { body: record.body_ref, by: Arc::clone(&by) }));
    }
    let artifacts = task.artifacts.iter().map(|entry| &entry.artifact);
    for artifact in added::<ArtifactRef>(record.artifacts.items, artifacts)
        .ok_or_else(|| no_history(entry, "record.artifacts", "the artifacts of the record before"))?
    {
        change.artifacts.push(Arc::new(ArtifactEntry::new(artifact, Arc::clone(&by))));
    }
    let notes = task.notes.iter().map(|entry| &entry.note);
    for note in added::<Note>(record.notes.items, notes)
        .ok_or_else(|| no_history(entry, "record.notes", "the notes of the record before"))?
    {
        change.notes.push(Arc::new(NoteEntry::new(note)));
    }
    decisions(task, record.open_decisions.items, &mut change)
        .ok_or_else(|| no_history(entry, "record.open_decisions", "the decisions of the record before"))?;
    // Times that are no times (`logical:1`, blanks) do not move the clock.
    let clock = |text: &str| text.parse::<Timestamp>().unwrap_or_default();
    let time = clock(&record.updated_at).max(clock(&event.ts));
    let prepared = task.prepare_as(change, Arc::new(record.updated_by), record.updated_at, time);
    if *prepared.rev() != record.rev {
        return Err(no_history(entry, "record.rev", "the revision that its changes make"));
    }
    task.commit_as(prepared, event, digest, rest);
    Ok(())
}

/// What a list has beyond the one before; none if that is no prefix of it.
fn added<'a, T: PartialEq + 'a>(
    items: Vec<T>,
    mut before: impl Iterator<Item = &'a T>,
) -> Option<impl Iterator<Item = T>> {
    let mut items = items.into_iter().peekable();
    for standing in before.by_ref() {
        if items.next().as_ref() != Some(standing) {
            return None;
        }
    }
    Some(items)
}

/// Decisions keep their place; their states may have changed, and new ones follow.
fn decisions(task: &Task, items: Vec<Decision>, change: &mut Change) -> Option<()> {
    let mut items = items.into_iter();
    for (at, standing) in task.decisions_at(task.number()).enumerate() {
        let decision = items.next()?;
        if decision.decision_id != standing.decision.decision_id {
            return None;
        }
        if decision != standing.decision {
            change.settled.push((at, Arc::new(DecisionEntry::new(decision))));
        }
    }
    change.decisions.extend(items.map(|decision| Arc::new(DecisionEntry::new(decision))));
    Some(())
}

/// The revision a journal's head stands for, for error messages and checkpoints.
pub(crate) fn head(task: &Task) -> Option<fak_abi::Digest> {
    task.current().event_digest.or_else(|| match &task.initial.rev {
        Hash::Full(digest) => Some(*digest),
        Hash::Opaque(_) => None,
    })
}
