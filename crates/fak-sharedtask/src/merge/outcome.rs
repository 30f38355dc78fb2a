//! Outcomes that change nothing, kept as they are and redacted for each reader who is told (§5.4, §5.8).

use std::sync::Arc;

use fak_abi::json::{self, Document, Kind, Value};
use fak_abi::{Digest, ShareScope};

use super::PatchFault;
use crate::envelope::{
    Actor, Approval, Conflict, Denial, Hash, HeldPatch, HeldState, MergeReason, Patch, PatchResult,
    Quarantine, TaskId,
};
use crate::sight::Sight;
use crate::task::{ArtifactEntry, BodyEntry, DecisionEntry, NoteEntry};

/// A former or standing value, not yet shown to anybody.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    Nothing,
    /// Title, state, or a decision's state: seen by everyone the store admits.
    Text(Arc<str>),
    Decision(Arc<DecisionEntry>),
    Note(Arc<NoteEntry>),
    Artifact(Arc<ArtifactEntry>),
    Body(Arc<BodyEntry>),
}

impl Shown {
    /// The value as `sight` may see it: hidden entries are `null`, a hidden body is its redacted form.
    fn value(&self, sight: &Sight) -> Value {
        let encoded = match self {
            Self::Nothing => return Value::new(Kind::Null),
            Self::Text(text) => return (&**text).into(),
            Self::Decision(entry) => DecisionEntry::labelled(entry).encoded.to_vec(),
            Self::Note(entry) => {
                let body = &entry.note.body_ref;
                if !sight.sees(body.taint, body.scope, &entry.note.author) {
                    return Value::new(Kind::Null);
                }
                entry.encoded.to_vec()
            }
            Self::Artifact(entry) => {
                let artifact = &entry.artifact;
                if !sight.sees(artifact.taint, artifact.scope, &entry.by) {
                    return Value::new(Kind::Null);
                }
                entry.encoded.to_vec()
            }
            Self::Body(entry) => {
                let mut out = Vec::new();
                json::object(&mut out, |o| entry.shown(sight).members(o));
                out
            }
        };
        let limits = json::Limits { bytes: usize::MAX, nesting: json::Limits::MAX_NESTING };
        Document::parse(&encoded, &limits).map_or_else(|_| Value::new(Kind::Null), Document::into_value)
    }
}

impl BodyEntry {
    /// The body as `sight` may see it.
    pub(crate) fn shown(&self, sight: &Sight) -> crate::envelope::BodyRef {
        if sight.sees(self.body.taint, self.body.scope, &self.by) {
            self.body.clone()
        } else {
            self.body.redacted()
        }
    }
}

/// A merge that changed nothing.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) reason: MergeReason,
    pub(crate) detail: Detail,
}

/// What goes with the reason.
#[derive(Debug, Clone)]
pub(crate) enum Detail {
    /// The op of the patch that it is about: what that proposes is not kept, for whoever is told has the patch.
    Conflict {
        op: usize,
        base: Shown,
        current: Shown,
    },
    Denied {
        required: Option<ShareScope>,
        fault: PatchFault,
    },
    Quarantined {
        kind: &'static str,
        id: Box<str>,
    },
    Held {
        decision: Box<str>,
        state: HeldState,
    },
}

/// What stands for a revision where there is none to name.
pub(crate) fn unknown_rev() -> Hash {
    Hash::Opaque("sha256:none".into())
}

impl Stop {
    /// No merge does what the patch says there.
    pub(crate) fn unsupported(fault: PatchFault) -> Self {
        Self { reason: MergeReason::UnsupportedPatch, detail: Detail::Denied { required: None, fault } }
    }

    /// It would show something to more than it may.
    pub(crate) fn widens(required: ShareScope, fault: PatchFault) -> Self {
        let detail = Detail::Denied { required: Some(required), fault };
        Self { reason: MergeReason::ScopeWidenForbidden, detail }
    }

    /// For what of the patch it is denied.
    pub(crate) fn fault(&self) -> Option<&PatchFault> {
        match &self.detail {
            Detail::Denied { fault, .. } => Some(fault),
            _ => None,
        }
    }

    pub(crate) fn quarantined(reason: MergeReason, kind: &'static str, id: &str) -> Self {
        Self { reason, detail: Detail::Quarantined { kind, id: id.into() } }
    }

    pub(crate) fn held(digest: Digest) -> Self {
        Self::decided(HeldPatch::decision_of(digest), HeldState::InputRequired)
    }

    pub(crate) fn decided(decision: Box<str>, state: HeldState) -> Self {
        Self { reason: MergeReason::ApprovalRequired, detail: Detail::Held { decision, state } }
    }

    /// The result of `patch` as `sight` may see it.
    pub(crate) fn result(
        &self,
        patch: &Patch,
        task_id: &TaskId,
        actor: &Actor,
        base: Option<&Hash>,
        current: Option<&Hash>,
        sight: &Sight,
    ) -> PatchResult {
        let mut result = PatchResult {
            task_id: task_id.clone(),
            base_rev: base.cloned().unwrap_or_else(unknown_rev),
            current_rev: current.or(base).cloned().unwrap_or_else(unknown_rev),
            verdict: self.reason.verdict(),
            reason: self.reason.name().into(),
            event_id: Box::default(),
            record_ref: Box::default(),
            approval: None,
            denial: None,
            quarantine: None,
            conflict: None,
            rest: Vec::new(),
        };
        match &self.detail {
            Detail::Conflict { op, base, current } => {
                let op = patch.ops.items.get(*op);
                let hint =
                    if self.reason == MergeReason::StaleBase { "rebase_or_human_decide" } else { "manual" };
                result.conflict = Some(Box::new(Conflict {
                    path: op.map(|op| op.path.clone()).unwrap_or_default(),
                    base_value: base.value(sight),
                    current_value: current.value(sight),
                    proposed_value: op.and_then(|op| op.value.clone()).unwrap_or(Value::new(Kind::Null)),
                    resolution: hint.into(),
                    rest: Vec::new(),
                }));
            }
            Detail::Denied { required, .. } => {
                let policy = match required {
                    Some(_) => "shared-task.write.scope",
                    None => "shared-task.write.patch",
                };
                result.denial = Some(Denial {
                    policy: policy.into(),
                    actor: Actor::new(&actor.kind, &actor.id),
                    required_scope: required.map(ShareScope::name).unwrap_or_default().into(),
                    rest: Vec::new(),
                });
            }
            Detail::Quarantined { kind, id } => {
                let summary = match self.reason {
                    MergeReason::ArtifactQuarantined | MergeReason::BodyQuarantined => {
                        "a quarantined ref is held out of the record"
                    }
                    _ => {
                        "a ref is held out of the record until a deletion certificate or a confirmed witness exists"
                    }
                };
                result.quarantine = Some(Quarantine {
                    quarantine_id: format!("q_{id}").into(),
                    artifact_id: if *kind == "artifact" { id.clone() } else { Box::default() },
                    subject_kind: (*kind).into(),
                    subject_id: id.clone(),
                    safe_summary: summary.into(),
                    rest: Vec::new(),
                });
            }
            Detail::Held { decision, state } => {
                let reason = match state {
                    HeldState::InputRequired => "the patch is held until a human approves or rejects it",
                    HeldState::Approved => "the patch was approved",
                    HeldState::Rejected => "a human rejected the patch",
                    HeldState::Withdrawn => "the patch was withdrawn with its actor",
                };
                result.approval = Some(Approval {
                    decision_id: decision.clone(),
                    state: state.name().into(),
                    reason: reason.into(),
                    rest: Vec::new(),
                });
            }
        }
        result
    }
}
