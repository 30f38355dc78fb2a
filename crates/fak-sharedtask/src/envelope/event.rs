//! Events: one for each accepted patch, each naming the digest of the one before (§5.10).

use fak_abi::json::{self, Cursor, Member, Sink};
use fak_abi::{ShareScope, Taint};

use super::{
    Actor, Durability, Envelope, EventId, Hash, Limits, MergeVerdict, SCOPES, TAINTS, TaskId, schema,
};

/// The kind of event this project writes.
pub(crate) const PATCH_ACCEPTED: &str = "patch_accepted";

/// An event: `fak.shared-event.v1` (§5.10).
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEvent {
    /// Its name; never repeats where this project writes it.
    pub event_id: EventId,
    /// The record.
    pub task_id: TaskId,
    /// Digest of the event before; `None` for the first.
    pub prev_event: Option<Hash>,
    /// `patch_accepted`, or another kind.
    pub event_kind: Box<str>,
    /// Who wrote the patch.
    pub actor: Actor,
    /// The base the patch named.
    pub base_rev: Hash,
    /// The revision it made.
    pub next_rev: Hash,
    /// The patch's scope: who may see the event.
    pub scope: ShareScope,
    /// The patch's durability.
    pub durability: Durability,
    /// The join of the record's body and the patch's refs (§5.9).
    pub taint: Taint,
    /// Digest of the patch in wire form.
    pub patch_digest: Hash,
    /// Accepted where this project writes it.
    pub verdict: MergeVerdict,
    /// Empty where this project writes it.
    pub reason: Box<str>,
    /// When; RFC 3339 where this project writes it.
    pub ts: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl Envelope for TaskEvent {
    const SCHEMA: &'static str = "fak.shared-event.v1";

    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        schema(&mut fields, Self::SCHEMA)?;
        let prev_event = limits.short_or_empty(fields.optional("prev_event"))?;
        Ok(Self {
            event_id: EventId::read(fields.required("event_id")?)?,
            task_id: TaskId::read(fields.required("task_id")?)?,
            prev_event: (!prev_event.is_empty()).then(|| Hash::lenient(&prev_event)),
            event_kind: limits.short(fields.required("event_kind")?)?.into(),
            actor: Actor::read(fields.required("actor")?, limits)?,
            base_rev: limits.hash(fields.required("base_rev")?)?,
            next_rev: limits.hash(fields.required("next_rev")?)?,
            scope: fields.required("scope")?.one_of(SCOPES)?,
            durability: fields.required("durability")?.one_of(Durability::NAMES)?,
            taint: fields.required("taint")?.one_of(TAINTS)?,
            patch_digest: limits.hash(fields.required("patch_digest")?)?,
            verdict: fields.required("verdict")?.one_of(MergeVerdict::NAMES)?,
            reason: limits.short_or_empty(fields.optional("reason"))?,
            ts: limits.short(fields.required("ts")?)?.into(),
            rest: fields.rest(),
        })
    }

    fn write<S: Sink>(&self, sink: &mut S) {
        json::object(sink, |o| {
            o.string("schema", Self::SCHEMA)
                .string("event_id", self.event_id.as_str())
                .string("task_id", self.task_id.as_str())
                .string("prev_event", &self.prev_event.as_ref().map(Hash::to_string).unwrap_or_default())
                .string("event_kind", &self.event_kind)
                .object("actor", |o| self.actor.members(o))
                .string("base_rev", &self.base_rev.to_string())
                .string("next_rev", &self.next_rev.to_string())
                .string("scope", self.scope.name())
                .string("durability", self.durability.name())
                .string("taint", self.taint.name())
                .string("patch_digest", &self.patch_digest.to_string())
                .string("verdict", self.verdict.name())
                .string("reason", &self.reason)
                .string("ts", &self.ts)
                .rest(&self.rest);
        });
    }
}
