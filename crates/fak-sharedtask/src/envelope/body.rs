//! Body refs: where the text of a task or note lives, and how far it may travel (§5.6).

use fak_abi::json::{self, Cursor, Member, ObjectWriter, Sink};
use fak_abi::{ShareScope, Taint};

use super::{Durability, Hash, LOCAL_STORE, Limits, SCOPES, TAINTS};

/// A reference to a body; the body itself never enters a record (§5.6).
#[derive(Debug, Clone, PartialEq)]
pub struct BodyRef {
    /// `cas`, `external`, or another kind.
    pub kind: Box<str>,
    /// Digest of the bytes.
    pub digest: Hash,
    /// Their number.
    pub bytes: u64,
    /// How far it is trusted.
    pub taint: Taint,
    /// Whom it may reach.
    pub scope: ShareScope,
    /// How long it is meant to last.
    pub durability: Durability,
    /// The store that holds it; empty is the local one.
    pub store: Box<str>,
    /// Proof that a disaggregated store deletes on request; empty is none.
    pub deletion_certificate: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl BodyRef {
    /// Whether it lives outside the local store, and so needs a deletion certificate (§5.6).
    #[must_use]
    pub fn is_disaggregated(&self) -> bool {
        &*self.kind == "external" || !(self.store.is_empty() || &*self.store == LOCAL_STORE)
    }

    /// Whether it may be kept as far as certificates go: local, or with a certificate of digest form.
    #[must_use]
    pub fn is_certified(&self) -> bool {
        !self.is_disaggregated() || Hash::parse(&self.deletion_certificate).is_some()
    }

    /// What a reader who may not see a body sees instead (§5.8).
    #[must_use]
    pub fn redacted(&self) -> Self {
        Self {
            kind: "external".into(),
            digest: Hash::Opaque("sha256:redacted".into()),
            bytes: 0,
            taint: Taint::Quarantined,
            scope: self.scope,
            durability: self.durability,
            store: Box::default(),
            deletion_certificate: Box::default(),
            rest: Vec::new(),
        }
    }

    pub(crate) fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        Ok(Self {
            kind: limits.short(fields.required("kind")?)?.into(),
            digest: limits.hash(fields.required("digest")?)?,
            bytes: fields.required("bytes")?.u64()?,
            taint: fields.required("taint")?.one_of(TAINTS)?,
            scope: fields.required("scope")?.one_of(SCOPES)?,
            durability: fields.required("durability")?.one_of(Durability::NAMES)?,
            store: limits.short_or_empty(fields.optional("store"))?,
            deletion_certificate: limits.short_or_empty(fields.optional("deletion_certificate"))?,
            rest: fields.rest(),
        })
    }

    pub(crate) fn members<S: Sink>(&self, o: &mut ObjectWriter<'_, S>) {
        o.string("kind", &self.kind)
            .string("digest", &self.digest.to_string())
            .u64("bytes", self.bytes)
            .string("taint", self.taint.name())
            .string("scope", self.scope.name())
            .string("durability", self.durability.name())
            .string_unless_empty("store", &self.store)
            .string_unless_empty("deletion_certificate", &self.deletion_certificate)
            .rest(&self.rest);
    }
}
