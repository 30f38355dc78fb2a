//! A patch read into typed steps, before any lock is taken (§5.3). Whether a step fits the record is in `merge`.

use std::sync::Arc;

use fak_abi::json::{self, Cursor, Value};
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
    /// Nothing the merge knows, and why.
    Unsupported(Unfit),
}

/// Why an op is nothing a merge does.
#[derive(Debug)]
pub(crate) struct Unfit {
    /// Where in the op: `/path`, `/value`, or deeper.
    pub(crate) member: String,
    /// What was expected there.
    pub(crate) expected: String,
}

/// The lists that entries are appended to.
const LISTS: [&str; 3] = ["/notes", "/artifacts", "/open_decisions"];
/// The values that are replaced; of `/open_decisions/<id>/state` there is one each decision.
const VALUES: [&str; 3] = ["/title", "/state", "/body_ref"];

impl Unfit {
    fn new(member: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { member: member.into(), expected: expected.into() }
    }

    /// What a value is not.
    fn value(error: &json::Error) -> Self {
        Self::new(format!("/value{}", error.path()), error.problem().to_string())
    }

    /// A path that such an op does not change.
    fn path(kind: OpKind, path: &str) -> Self {
        let known = if kind == OpKind::Append { &LISTS } else { &VALUES };
        let other = match kind {
            OpKind::Append => VALUES.contains(&path) || settled(path).is_some(),
            OpKind::Replace | OpKind::Remove => LISTS.contains(&path),
        };
        let expected = match (kind, json::nearest(path, known.iter().copied())) {
            (OpKind::Remove, _) => {
                return Self::new("/op", "expected append or replace: nothing is removed from a record");
            }
            (OpKind::Append, _) if other => return Self::new("/op", "expected replace at this path"),
            (OpKind::Replace, _) if other => return Self::new("/op", "expected append at this path"),
            (_, Some(near)) => format!("no such path, did you mean {near:?}?"),
            (OpKind::Append, None) => "expected \"/notes\", \"/artifacts\" or \"/open_decisions\"".to_owned(),
            (OpKind::Replace, None) => {
                "expected \"/title\", \"/state\", \"/body_ref\" or \"/open_decisions/<id>/state\"".to_owned()
            }
        };
        Self::new("/path", expected)
    }
}

/// The decision whose state a path names.
fn settled(path: &str) -> Option<&str> {
    path.strip_prefix("/open_decisions/")?.strip_suffix("/state").filter(|id| !id.is_empty())
}

impl Step {
    fn of(op: &Op, limits: &Limits) -> Self {
        Self::read(op, limits).unwrap_or_else(Self::Unsupported)
    }

    fn read(op: &Op, limits: &Limits) -> Result<Self, Unfit> {
        let path = &*op.path;
        let known = match op.kind {
            OpKind::Append => LISTS.contains(&path),
            OpKind::Replace => VALUES.contains(&path) || settled(path).is_some(),
            OpKind::Remove => false,
        };
        if !known {
            return Err(Unfit::path(op.kind, path));
        }
        let Some(value) = &op.value else { return Err(Unfit::new("/value", "expected a value")) };
        let at = Cursor::bare(value);
        let wrong = |error: json::Error| Unfit::value(&error);
        Ok(match (op.kind, path) {
            (OpKind::Append, "/notes") => {
                let note = Note::read(at, limits).map_err(wrong)?;
                new_id("/value/note_id", &note.note_id)?;
                Self::Note(note)
            }
            (OpKind::Append, "/artifacts") => {
                let artifact = ArtifactRef::read_entry(at, limits).map_err(wrong)?;
                new_id("/value/artifact_id", &artifact.artifact_id)?;
                Self::Artifact(artifact)
            }
            (OpKind::Append, _) => {
                let decision = Decision::read(at, limits).map_err(wrong)?;
                new_id("/value/decision_id", &decision.decision_id)?;
                if decision.state.is_empty() {
                    return Err(Unfit::new("/value/state", "expected a state, which is not empty"));
                }
                Self::Decision(decision)
            }
            (_, "/title") => text(value, limits, |text| Self::Title(text.into()))?,
            (_, "/state") => text(value, limits, |text| Self::State(text.into()))?,
            (_, "/body_ref") => BodyRef::read(at, limits).map(Self::Body).map_err(wrong)?,
            (_, path) => {
                let decision = settled(path).unwrap_or_default().into();
                text(value, limits, |state| Self::Settle { decision, state: state.into() })?
            }
        })
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
fn new_id(member: &str, id: &str) -> Result<(), Unfit> {
    Id::new(id).map(drop).map_err(|error| Unfit::new(member, error.to_string()))
}

fn text(value: &Value, limits: &Limits, step: impl FnOnce(&str) -> Step) -> Result<Step, Unfit> {
    match value.as_str() {
        None | Some("") => Err(Unfit::new("/value", "expected a text, which is not empty")),
        Some(text) if text.len() > limits.text => Ok(Step::Oversize),
        Some(text) => Ok(step(text)),
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
