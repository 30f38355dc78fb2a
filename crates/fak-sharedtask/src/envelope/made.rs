//! Envelopes made in code, with what a writer rarely chooses filled in; each field can be set afterwards. What arrives as text is
//! read in the modules of its types.

use fak_abi::json::{self, Document, Kind, ObjectWriter, Value};
use fak_abi::{Digest, Principal, ShareScope, Taint, Timestamp};

use super::{
    Actor, ArtifactRef, BodyRef, Decision, Durability, Hash, List, Note, NoteKind, Op, OpKind, Patch, Record,
    TaskId,
};

impl BodyRef {
    /// A reference to these bytes: of kind `cas`, tainted, for the session. The bytes go nowhere: a record refers to its bodies,
    /// and whoever is to read them gets them by a store of its own, such as a pool (§3.9). Linear in them, which are hashed.
    ///
    /// ```
    /// use fak_abi::ShareScope;
    /// use fak_sharedtask::BodyRef;
    ///
    /// let body = BodyRef::of(b"hello", ShareScope::Fleet);
    /// assert_eq!(body.bytes, 5);
    /// assert!(body.digest.to_string().starts_with("sha256:2cf24dba"));
    /// ```
    #[must_use]
    pub fn of(bytes: &[u8], scope: ShareScope) -> Self {
        Self {
            kind: "cas".into(),
            digest: Hash::Full(Digest::of(bytes)),
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            taint: Taint::Tainted,
            scope,
            durability: Durability::Session,
            store: Box::default(),
            deletion_certificate: Box::default(),
            rest: Vec::new(),
        }
    }
}

impl Record {
    /// A record as `by` begins it: in the state `open`, without entries. Its `rev` is computed when it is created; `at` counts only
    /// where the host creates it (§5.5).
    #[must_use]
    pub fn new(task_id: TaskId, by: &Principal, title: &str, body_ref: BodyRef, at: Timestamp) -> Self {
        Self {
            task_id,
            rev: Hash::lenient(""),
            state: "open".into(),
            title: title.into(),
            body_ref,
            artifacts: List::default(),
            notes: List::default(),
            open_decisions: List::default(),
            updated_by: Actor::of(by),
            updated_at: at.to_string().into(),
            rest: Vec::new(),
        }
    }
}

impl Patch {
    /// A patch without ops by the principal that will submit it, of scope `fleet`, for the session. `base` is the revision that its
    /// writer has seen.
    #[must_use]
    pub fn new(task_id: TaskId, base: Hash, by: &Principal) -> Self {
        Self {
            task_id,
            base_rev: Some(base),
            actor: Actor::of(by),
            scope: ShareScope::Fleet,
            durability: Durability::Session,
            ops: List::default(),
            message: Box::default(),
            rest: Vec::new(),
        }
    }

    /// Of this scope: the widest that it brings.
    #[must_use]
    pub fn scope(self, scope: ShareScope) -> Self {
        Self { scope, ..self }
    }

    /// With these words about why.
    #[must_use]
    pub fn message(self, message: &str) -> Self {
        Self { message: message.into(), ..self }
    }

    /// And replaces the title; needs the current base (§5.3).
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        self.op(OpKind::Replace, "/title", title.into())
    }

    /// And replaces the state; needs the current base (§5.3).
    #[must_use]
    pub fn state(self, state: &str) -> Self {
        self.op(OpKind::Replace, "/state", state.into())
    }

    /// And replaces the body; needs the current base (§5.3).
    #[must_use]
    pub fn body(self, body: &BodyRef) -> Self {
        self.op(OpKind::Replace, "/body_ref", value(|o| body.members(o)))
    }

    /// And appends a comment by its actor; merges on any base the record had (§5.3).
    #[must_use]
    pub fn note(self, note_id: &str, body_ref: BodyRef, at: Timestamp) -> Self {
        let note = Note {
            note_id: note_id.into(),
            kind: NoteKind::Comment,
            body_ref,
            author: self.actor.clone(),
            created_at: at.to_string().into(),
            rest: Vec::new(),
        };
        self.append_note(&note)
    }

    /// And appends this note, whose author has to be the patch's actor (§5.2).
    #[must_use]
    pub fn append_note(self, note: &Note) -> Self {
        self.op(OpKind::Append, "/notes", value(|o| note.members(o)))
    }

    /// And appends an artifact; merges on any base the record had (§5.3).
    #[must_use]
    pub fn artifact(self, artifact: &ArtifactRef) -> Self {
        self.op(OpKind::Append, "/artifacts", value(|o| artifact.members(o)))
    }

    /// And asks for a decision, in the state `open`; merges on any base the record had (§5.3).
    #[must_use]
    pub fn decision(self, decision_id: &str, reason: &str) -> Self {
        let decision = Decision {
            decision_id: decision_id.into(),
            state: "open".into(),
            reason: reason.into(),
            rest: Vec::new(),
        };
        self.op(OpKind::Append, "/open_decisions", value(|o| decision.members(o)))
    }

    /// And replaces the state of a decision; needs the current base (§5.3).
    #[must_use]
    pub fn settle(self, decision_id: &str, state: &str) -> Self {
        self.op(OpKind::Replace, &format!("/open_decisions/{decision_id}/state"), state.into())
    }

    fn op(mut self, kind: OpKind, path: &str, value: Value) -> Self {
        self.ops.items.push(Op { kind, path: path.into(), value: Some(value) });
        self
    }
}

/// The value that a type writes.
fn value(members: impl FnOnce(&mut ObjectWriter<'_, Vec<u8>>)) -> Value {
    let mut bytes = Vec::new();
    json::object(&mut bytes, members);
    // What was written here can be read here.
    let limits = json::Limits { bytes: usize::MAX, nesting: json::Limits::MAX_NESTING };
    Document::parse(&bytes, &limits).map_or_else(|_| Value::new(Kind::Null), Document::into_value)
}
