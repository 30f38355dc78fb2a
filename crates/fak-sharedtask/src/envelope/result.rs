//! What a merge answers (§5.4). An outcome of the merge; whether the act was permitted is a kernel verdict.

use fak_abi::json::{self, Cursor, Kind, Member, Sink, Value};

use super::{Actor, Envelope, Hash, Limits, TaskId, named, schema};

named! {
    /// How a merge ended (§5.4). Only an accepted patch advances the revision.
    pub enum MergeVerdict {
        /// The record has a new revision.
        Accepted = "accepted",
        /// Somebody else was first, or the entry is there already.
        Conflict = "conflict",
        /// A ref it brings is held out of the record.
        Quarantined = "quarantined",
        /// The store does not do this.
        Denied = "denied",
        /// A human has to approve it first.
        NeedsApproval = "needs_approval",
    }
}

named! {
    /// Why a merge ended as it did; accepted has none (§5.4).
    pub enum MergeReason {
        /// The base is not the current revision, or never was one.
        StaleBase = "STALE_BASE",
        /// No such decision.
        MissingDecision = "MISSING_DECISION",
        /// A note of that id is there.
        DuplicateNote = "DUPLICATE_NOTE",
        /// An artifact of that id is there.
        DuplicateArtifact = "DUPLICATE_ARTIFACT",
        /// A decision of that id is there.
        DuplicateDecision = "DUPLICATE_DECISION",
        /// The artifact is quarantined.
        ArtifactQuarantined = "ARTIFACT_QUARANTINED",
        /// The artifact lacks a certificate or a confirmed witness.
        ArtifactWitnessMissing = "ARTIFACT_WITNESS_MISSING",
        /// The body is quarantined.
        BodyQuarantined = "BODY_QUARANTINED",
        /// The body lacks a certificate or a confirmed witness.
        BodyWitnessMissing = "BODY_WITNESS_MISSING",
        /// It brings a scope it may not.
        ScopeWidenForbidden = "SCOPE_WIDEN_FORBIDDEN",
        /// The merge knows no such change.
        UnsupportedPatch = "UNSUPPORTED_PATCH",
        /// A policy asks for a human.
        ApprovalRequired = "APPROVAL_REQUIRED",
    }
}

impl MergeReason {
    /// The verdict it belongs to.
    #[must_use]
    pub const fn verdict(self) -> MergeVerdict {
        match self {
            Self::StaleBase
            | Self::MissingDecision
            | Self::DuplicateNote
            | Self::DuplicateArtifact
            | Self::DuplicateDecision => MergeVerdict::Conflict,
            Self::ArtifactQuarantined
            | Self::ArtifactWitnessMissing
            | Self::BodyQuarantined
            | Self::BodyWitnessMissing => MergeVerdict::Quarantined,
            Self::ScopeWidenForbidden | Self::UnsupportedPatch => MergeVerdict::Denied,
            Self::ApprovalRequired => MergeVerdict::NeedsApproval,
        }
    }
}

/// What a merge that needs approval waits for (§5.7).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Approval {
    /// Under which the patch is held: `dec_` and 64 hex digits.
    pub decision_id: Box<str>,
    /// `input_required`, `rejected` or `withdrawn` where this project writes it.
    pub state: Box<str>,
    /// Why.
    pub reason: Box<str>,
    /// Unknown members, kept.
    pub rest: Vec<Member>,
}

/// Which rule denied (§5.4).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Denial {
    /// The rule.
    pub policy: Box<str>,
    /// Who was denied.
    pub actor: Actor,
    /// The scope it would have taken; empty if none would do.
    pub required_scope: Box<str>,
    /// Unknown members, kept.
    pub rest: Vec<Member>,
}

/// What is held out of the record (§5.6).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Quarantine {
    /// The name of the quarantine: `q_` and the subject.
    pub quarantine_id: Box<str>,
    /// The artifact, if it is one.
    pub artifact_id: Box<str>,
    /// `artifact`, `note` or `body`.
    pub subject_kind: Box<str>,
    /// Which.
    pub subject_id: Box<str>,
    /// Why, in words that quote nothing.
    pub safe_summary: Box<str>,
    /// Unknown members, kept.
    pub rest: Vec<Member>,
}

/// Where a patch and the record disagree. Values that the reader may not see are `null` or redacted (§5.8).
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// The path.
    pub path: Box<str>,
    /// The value as of the base the writer saw.
    pub base_value: Value,
    /// The value now.
    pub current_value: Value,
    /// The value the patch brings.
    pub proposed_value: Value,
    /// A hint: `rebase_or_human_decide` or `manual`.
    pub resolution: Box<str>,
    /// Unknown members, kept.
    pub rest: Vec<Member>,
}

/// What a merge answers: `fak.shared-patch-result.v1` (§5.4).
#[derive(Debug, Clone, PartialEq)]
pub struct PatchResult {
    /// The record.
    pub task_id: TaskId,
    /// The base the patch named.
    pub base_rev: Hash,
    /// The revision after the merge.
    pub current_rev: Hash,
    /// How it ended.
    pub verdict: MergeVerdict,
    /// Why; empty if accepted. Reasons that are not this project's are read and kept.
    pub reason: Box<str>,
    /// The event that was published, if accepted.
    pub event_id: Box<str>,
    /// The digest of the record that resulted, if accepted.
    pub record_ref: Box<str>,
    /// If it needs approval.
    pub approval: Option<Approval>,
    /// If denied.
    pub denial: Option<Denial>,
    /// If quarantined.
    pub quarantine: Option<Quarantine>,
    /// If in conflict.
    pub conflict: Option<Box<Conflict>>,
    /// Unknown members, kept.
    pub rest: Vec<Member>,
}

impl PatchResult {
    /// Whether the record has a new revision.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.verdict == MergeVerdict::Accepted
    }

    /// The reason, if it is one of this project's.
    #[must_use]
    pub fn reason(&self) -> Option<MergeReason> {
        MergeReason::NAMES.iter().find(|(name, _)| **name == *self.reason).map(|(_, reason)| *reason)
    }
}

/// Reads an optional sub-object; an empty one is none.
fn part<'d, T>(
    cursor: Option<Cursor<'d>>,
    read: impl FnOnce(json::Fields<'d>) -> Result<T, json::Error>,
) -> Result<Option<T>, json::Error> {
    match cursor {
        Some(cursor) if cursor.value().as_object() != Some(&[]) => read(cursor.object()?).map(Some),
        Some(_) | None => Ok(None),
    }
}

impl Envelope for PatchResult {
    const SCHEMA: &'static str = "fak.shared-patch-result.v1";

    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        schema(&mut fields, Self::SCHEMA)?;
        let long = |cursor: Option<Cursor<'_>>| match cursor {
            Some(cursor) => limits.long(cursor).map(Box::from),
            None => Ok(Box::default()),
        };
        let open = |cursor: Option<Cursor<'_>>| cursor.map_or(Value::new(Kind::Null), |c| c.value().clone());
        Ok(Self {
            task_id: TaskId::read(fields.required("task_id")?)?,
            base_rev: limits.hash(fields.required("base_rev")?)?,
            current_rev: limits.hash(fields.required("current_rev")?)?,
            verdict: fields.required("verdict")?.one_of(MergeVerdict::NAMES)?,
            reason: limits.short(fields.required("reason")?)?.into(),
            event_id: limits.short_or_empty(fields.optional("event_id"))?,
            record_ref: limits.short_or_empty(fields.optional("record_ref"))?,
            approval: part(fields.optional("approval"), |mut f| {
                Ok(Approval {
                    decision_id: limits.short_or_empty(f.optional("decision_id"))?,
                    state: long(f.optional("state"))?,
                    reason: long(f.optional("reason"))?,
                    rest: f.rest(),
                })
            })?,
            denial: part(fields.optional("denial"), |mut f| {
                Ok(Denial {
                    policy: limits.short_or_empty(f.optional("policy"))?,
                    actor: Actor::read_or_blank(f.optional("actor"), limits)?,
                    required_scope: limits.short_or_empty(f.optional("required_scope"))?,
                    rest: f.rest(),
                })
            })?,
            quarantine: part(fields.optional("quarantine"), |mut f| {
                Ok(Quarantine {
                    quarantine_id: long(f.optional("quarantine_id"))?,
                    artifact_id: limits.short_or_empty(f.optional("artifact_id"))?,
                    subject_kind: limits.short_or_empty(f.optional("subject_kind"))?,
                    subject_id: limits.short_or_empty(f.optional("subject_id"))?,
                    safe_summary: long(f.optional("safe_summary"))?,
                    rest: f.rest(),
                })
            })?,
            conflict: part(fields.optional("conflict"), |mut f| {
                Ok(Box::new(Conflict {
                    path: long(f.optional("path"))?,
                    base_value: open(f.optional("base_value")),
                    current_value: open(f.optional("current_value")),
                    proposed_value: open(f.optional("proposed_value")),
                    resolution: limits.short_or_empty(f.optional("resolution"))?,
                    rest: f.rest(),
                }))
            })?,
            rest: fields.rest(),
        })
    }

    fn write<S: Sink>(&self, sink: &mut S) {
        json::object(sink, |o| {
            o.string("schema", Self::SCHEMA)
                .string("task_id", self.task_id.as_str())
                .string("base_rev", &self.base_rev.to_string())
                .string("current_rev", &self.current_rev.to_string())
                .string("verdict", self.verdict.name())
                .string("reason", &self.reason)
                .string_unless_empty("event_id", &self.event_id)
                .string_unless_empty("record_ref", &self.record_ref);
            if let Some(approval) = &self.approval {
                o.object("approval", |o| {
                    o.string("decision_id", &approval.decision_id)
                        .string("state", &approval.state)
                        .string("reason", &approval.reason)
                        .rest(&approval.rest);
                });
            }
            if let Some(denial) = &self.denial {
                o.object("denial", |o| {
                    o.string("policy", &denial.policy)
                        .object("actor", |o| denial.actor.members(o))
                        .string("required_scope", &denial.required_scope)
                        .rest(&denial.rest);
                });
            }
            if let Some(quarantine) = &self.quarantine {
                o.object("quarantine", |o| {
                    o.string("quarantine_id", &quarantine.quarantine_id)
                        .string("artifact_id", &quarantine.artifact_id)
                        .string_unless_empty("subject_kind", &quarantine.subject_kind)
                        .string_unless_empty("subject_id", &quarantine.subject_id)
                        .string("safe_summary", &quarantine.safe_summary)
                        .rest(&quarantine.rest);
                });
            }
            if let Some(conflict) = &self.conflict {
                o.object("conflict", |o| {
                    o.string("path", &conflict.path)
                        .value("base_value", &conflict.base_value)
                        .value("current_value", &conflict.current_value)
                        .value("proposed_value", &conflict.proposed_value)
                        .string("resolution", &conflict.resolution)
                        .rest(&conflict.rest);
                });
            }
            o.rest(&self.rest);
        });
    }
}
