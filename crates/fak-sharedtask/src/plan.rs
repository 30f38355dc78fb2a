//! A patch read into typed steps, before any lock is taken (§5.3). Whether a step fits the record is in `merge`.

use std::sync::Arc;

use fak_abi::json::{Cursor, Value};
use fak_abi::{Digest, Id, Taint};

use crate::envelope::{ArtifactRef, BodyRef, Decision, Envelope as _, Hash, Limits, Note, Op, OpKind, Patch};

/// What one op asks for.
#[derive(Debug)]
pub(crate) enum Step {
    Note(Note),
    Artifact(ArtifactRef),
    Decision(Decision),
    Title(Arc<str>),
    State(Arc<str>),
    Body(BodyRef),
    Settle {
        decision: Box<str>,
        state: Box<str>,
    },
    /// Well formed, but larger than a limit (§8).
    Oversize,
    /// Nothing the merge knows.
    Unsupported,
}

impl Step {
    fn of(op: &Op, limits: &Limits) -> Self {
        let path = &*op.path;
        let Some(value) = &op.value else { return Self::Unsupported };
        let step = match (op.kind, path) {
            (OpKind::Append, "/notes") => Note::read(Cursor::bare(value), limits)
                .ok()
                .filter(|note| is_new_id(&note.note_id))
                .map(Self::Note),
            (OpKind::Append, "/artifacts") => ArtifactRef::read_entry(Cursor::bare(value), limits)
                .ok()
                .filter(|artifact| is_new_id(&artifact.artifact_id))
                .map(Self::Artifact),
            (OpKind::Append, "/open_decisions") => Decision::read(Cursor::bare(value), limits)
                .ok()
                .filter(|decision| is_new_id(&decision.decision_id) && !decision.state.is_empty())
                .map(Self::Decision),
            (OpKind::Replace, "/title") => text(value, limits, |text| Self::Title(text.into())),
            (OpKind::Replace, "/state") => text(value, limits, |text| Self::State(text.into())),
            (OpKind::Replace, "/body_ref") => BodyRef::read(Cursor::bare(value), limits).ok().map(Self::Body),
            (OpKind::Replace, _) => path
                .strip_prefix("/open_decisions/")
                .and_then(|path| path.strip_suffix("/state"))
                .filter(|id| !id.is_empty())
                .and_then(|id| {
                    text(value, limits, |state| Self::Settle { decision: id.into(), state: state.into() })
                }),
            _ => None,
        };
        step.unwrap_or(Self::Unsupported)
    }

    /// The body it brings, if it brings one.
    pub(crate) fn body(&self) -> Option<&BodyRef> {
        match self {
            Self::Note(note) => Some(&note.body_ref),
            Self::Body(body) => Some(body),
            _ => None,
        }
    }

    /// Taint of the ref it brings, if it brings one.
    pub(crate) fn taint(&self) -> Option<Taint> {
        match self {
            Self::Artifact(artifact) => Some(artifact.taint),
            other => other.body().map(|body| body.taint),
        }
    }

    /// Whether it changes what everybody the store admits sees: title, state, decisions.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self, Self::Title(_) | Self::State(_) | Self::Decision(_) | Self::Settle { .. })
    }

    /// What a witness would have to confirm for it (§5.5): that what it brings deserves its label.
    fn claim(&self) -> Option<&Hash> {
        match self {
            Self::Artifact(artifact) if artifact.taint == Taint::Trusted => Some(&artifact.reference),
            Self::Note(note) if note.body_ref.taint == Taint::Trusted => Some(&note.body_ref.digest),
            // Whether it is less tainted than the one it replaces is known only under the lock.
            Self::Body(body) if body.taint < Taint::Quarantined => Some(&body.digest),
            _ => None,
        }
    }
}

/// An id that may be given to a new entry: as channel ids are (§4.1, §8).
fn is_new_id(text: &str) -> bool {
    Id::new(text).is_ok()
}

fn text(value: &Value, limits: &Limits, step: impl FnOnce(&str) -> Step) -> Option<Step> {
    match value.as_str() {
        None | Some("") => None,
        Some(text) if text.len() > limits.text => Some(Step::Oversize),
        Some(text) => Some(step(text)),
    }
}

/// A patch, read and digested.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) digest: Digest,
    /// Per step: whether a witness confirmed its label.
    confirmed: Vec<bool>,
}

impl Plan {
    /// Reads the ops and asks `witness` about each ref whose label may need one. The witness is foreign code, so it is
    /// asked here, outside every lock.
    pub(crate) fn new(patch: &Patch, limits: &Limits, witness: &dyn Fn(&Hash) -> bool) -> Self {
        let steps: Vec<Step> = patch.ops.items.iter().map(|op| Step::of(op, limits)).collect();
        let confirmed = steps.iter().map(|step| step.claim().is_some_and(witness)).collect();
        Self { steps, digest: patch.digest(), confirmed }
    }

    /// Whether the label of what a step brings was confirmed.
    pub(crate) fn is_confirmed(&self, step: usize) -> bool {
        self.confirmed.get(step).copied().unwrap_or_default()
    }
}
