//! Held patches: what waits beside a record for a human (§5.7).

use fak_abi::Digest;
use fak_abi::json::{self, Cursor, Member, Sink};

use super::{Envelope, Limits, Patch, named, schema};

named! {
    /// How far a held patch has come (§5.7).
    pub enum HeldState {
        /// It waits.
        InputRequired = "input_required",
        /// It was approved, and merged or not as its outcome says.
        Approved = "approved",
        /// A human rejected it.
        Rejected = "rejected",
        /// Its actor was detached.
        Withdrawn = "withdrawn",
    }
}

/// A patch that waits for a human: `fak.shared-held.v1`, this project's own envelope (§5.7).
#[derive(Debug, Clone, PartialEq)]
pub struct HeldPatch {
    /// `dec_` and the 64 hex digits of the patch's digest.
    pub decision_id: Box<str>,
    /// How far it has come.
    pub state: HeldState,
    /// When it was held, RFC 3339.
    pub held_at: Box<str>,
    /// Exactly what was submitted.
    pub patch: Patch,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl HeldPatch {
    /// The decision a patch of that digest is held under.
    #[must_use]
    pub fn decision_of(patch: Digest) -> Box<str> {
        format!("dec_{}", patch.hex()).into()
    }
}

impl Envelope for HeldPatch {
    const SCHEMA: &'static str = "fak.shared-held.v1";

    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        schema(&mut fields, Self::SCHEMA)?;
        let decision = fields.required("decision_id")?;
        let held = Self {
            decision_id: limits.short(decision)?.into(),
            state: fields.required("state")?.one_of(HeldState::NAMES)?,
            held_at: limits.short(fields.required("held_at")?)?.into(),
            patch: Patch::read(fields.required("patch")?, limits)?,
            rest: fields.rest(),
        };
        if held.decision_id != Self::decision_of(held.patch.digest()) {
            return Err(decision.invalid("\"dec_\" and the digest of the patch"));
        }
        Ok(held)
    }

    fn write<S: Sink>(&self, sink: &mut S) {
        json::object(sink, |o| {
            o.string("schema", Self::SCHEMA)
                .string("decision_id", &self.decision_id)
                .string("state", self.state.name())
                .string("held_at", &self.held_at);
            self.patch.write(o.member("patch"));
            o.rest(&self.rest);
        });
    }
}
