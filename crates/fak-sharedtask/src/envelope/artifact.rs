//! Artifact refs: what a task has produced, by reference (§5.6).

use fak_abi::json::{self, Cursor, Member, ObjectWriter, Sink};
use fak_abi::{ShareScope, Taint};

use super::{Envelope, Hash, LOCAL_STORE, Limits, SCOPES, TAINTS, schema};

/// A reference to an artifact (§5.6). Stands in a record's list without, and alone with, its `schema` member.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactRef {
    /// Its name within the record.
    pub artifact_id: Box<str>,
    /// Digest of the bytes (`ref`).
    pub reference: Hash,
    /// Their media type.
    pub media_type: Box<str>,
    /// How far it is trusted.
    pub taint: Taint,
    /// Whom it may reach.
    pub scope: ShareScope,
    /// The store that holds it.
    pub store: Box<str>,
    /// Proof that a disaggregated store deletes on request; empty is none.
    pub deletion_certificate: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl ArtifactRef {
    /// Whether it may be kept as far as certificates go: local, or with a certificate of digest form (§5.6).
    #[must_use]
    pub fn is_certified(&self) -> bool {
        &*self.store == LOCAL_STORE || Hash::parse(&self.deletion_certificate).is_some()
    }

    /// Reads it as it stands in a record, where a `schema` member is as unknown as any other.
    pub(crate) fn read_entry(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        Self::fields(cursor.object()?, limits)
    }

    fn fields(mut fields: json::Fields<'_>, limits: &Limits) -> Result<Self, json::Error> {
        Ok(Self {
            artifact_id: limits.short(fields.required("artifact_id")?)?.into(),
            reference: limits.hash(fields.required("ref")?)?,
            media_type: limits.short(fields.required("media_type")?)?.into(),
            taint: fields.required("taint")?.one_of(TAINTS)?,
            scope: fields.required("scope")?.one_of(SCOPES)?,
            store: limits.short(fields.required("store")?)?.into(),
            deletion_certificate: limits.short_or_empty(fields.optional("deletion_certificate"))?,
            rest: fields.rest(),
        })
    }

    pub(crate) fn members<S: Sink>(&self, o: &mut ObjectWriter<'_, S>) {
        o.string("artifact_id", &self.artifact_id)
            .string("ref", &self.reference.to_string())
            .string("media_type", &self.media_type)
            .string("taint", self.taint.name())
            .string("scope", self.scope.name())
            .string("store", &self.store)
            .string_unless_empty("deletion_certificate", &self.deletion_certificate)
            .rest(&self.rest);
    }
}

impl Envelope for ArtifactRef {
    const SCHEMA: &'static str = "fak.shared-artifact-ref.v1";

    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        schema(&mut fields, Self::SCHEMA)?;
        Self::fields(fields, limits)
    }

    fn write<S: Sink>(&self, sink: &mut S) {
        json::object(sink, |o| {
            o.string("schema", Self::SCHEMA);
            self.members(o);
        });
    }
}
