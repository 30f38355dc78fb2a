//! The six public envelopes and the held patch as types (§5.1, §7): read strictly, written canonically, unknown members
//! kept. What patches do to a record is not here.

mod actor;
mod artifact;
mod body;
mod decision;
mod event;
mod held;
mod made;
mod note;
mod patch;
mod record;
mod result;
mod text;

pub use actor::Actor;
pub use artifact::ArtifactRef;
pub use body::BodyRef;
pub use decision::Decision;
pub(crate) use event::PATCH_ACCEPTED;
pub use event::TaskEvent;
pub use held::{HeldPatch, HeldState};
pub use note::{Note, NoteKind};
pub use patch::{Op, OpKind, Patch};
pub use record::{List, Record};
pub use result::{Approval, Conflict, Denial, MergeReason, MergeVerdict, PatchResult, Quarantine};
pub use text::{Durability, EventId, Hash, HashFormError, IdFormError, LOCAL_STORE, Limits, TaskId};
pub(crate) use text::{SCOPES, TAINTS, named};

use fak_abi::Digest;
use fak_abi::json::{self, Cursor, Document, Sink};
use sha2::{Digest as _, Sha256};

/// A versioned JSON envelope (§5.1).
pub trait Envelope: Sized {
    /// The value of its `schema` member.
    const SCHEMA: &'static str;

    /// Reads the envelope from a value in a document.
    ///
    /// # Errors
    /// What is wrong, where, and what was expected; never what a value says (§8).
    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error>;

    /// Writes the canonical bytes (§7.1).
    fn write<S: Sink>(&self, sink: &mut S);

    /// Reads the envelope from a whole text. Linear in it.
    ///
    /// # Errors
    /// As [`Envelope::read`].
    fn parse(text: &[u8], limits: &Limits) -> Result<Self, json::Error> {
        Self::read(Document::parse(text, &limits.json())?.root(), limits)
    }

    /// The SHA-256 of the canonical bytes, which are not allocated.
    fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        self.write(&mut hash);
        Digest::from_bytes(hash.finalize().into())
    }

    /// The canonical bytes.
    fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// Checks the `schema` member of an envelope.
fn schema(fields: &mut json::Fields<'_>, expected: &'static str) -> Result<(), json::Error> {
    let cursor = fields.required("schema")?;
    if cursor.string()? == expected {
        Ok(())
    } else {
        Err(cursor.invalid(format!("the schema {expected:?}")))
    }
}
