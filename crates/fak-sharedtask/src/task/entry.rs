//! The entries of a live record: shared between revisions and views, each with its canonical bytes.

use std::sync::Arc;

use fak_abi::json;

use crate::envelope::{Actor, ArtifactRef, BodyRef, Decision, Note};

/// A note of a record.
#[derive(Debug, PartialEq)]
pub(crate) struct NoteEntry {
    pub(crate) note: Note,
    pub(crate) encoded: Box<[u8]>,
}

impl NoteEntry {
    pub(crate) fn new(note: Note) -> Self {
        let mut encoded = Vec::with_capacity(384);
        json::object(&mut encoded, |o| note.members(o));
        Self { note, encoded: encoded.into() }
    }
}

/// An artifact of a record, and who brought it: an artifact names no author itself.
#[derive(Debug, PartialEq)]
pub(crate) struct ArtifactEntry {
    pub(crate) artifact: ArtifactRef,
    pub(crate) by: Arc<Actor>,
    pub(crate) encoded: Box<[u8]>,
}

impl ArtifactEntry {
    pub(crate) fn new(artifact: ArtifactRef, by: Arc<Actor>) -> Self {
        let mut encoded = Vec::with_capacity(256);
        json::object(&mut encoded, |o| artifact.members(o));
        Self { encoded: encoded.into(), artifact, by }
    }
}

/// A decision of a record, in one of its states.
#[derive(Debug, PartialEq)]
pub(crate) struct DecisionEntry {
    pub(crate) decision: Decision,
    pub(crate) encoded: Box<[u8]>,
}

impl DecisionEntry {
    pub(crate) fn new(decision: Decision) -> Self {
        let mut encoded = Vec::with_capacity(128);
        json::object(&mut encoded, |o| decision.members(o));
        Self { encoded: encoded.into(), decision }
    }
}

impl DecisionEntry {
    /// The entry without unknown members, which nobody labelled; shared if it has none.
    pub(crate) fn labelled(entry: &Arc<Self>) -> Arc<Self> {
        if entry.decision.rest.is_empty() {
            return Arc::clone(entry);
        }
        Arc::new(Self::new(Decision { rest: Vec::new(), ..entry.decision.clone() }))
    }
}

/// The body of a record, and who set it.
#[derive(Debug, PartialEq)]
pub(crate) struct BodyEntry {
    pub(crate) body: BodyRef,
    pub(crate) by: Arc<Actor>,
}
