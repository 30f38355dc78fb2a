//! Notes: what agents and humans have said about a task, by reference.

use fak_abi::json::{self, Cursor, Member, ObjectWriter, Sink};

use super::{Actor, BodyRef, Limits, named};

named! {
    /// What a note is (§5.3).
    pub enum NoteKind {
        /// A remark.
        Comment = "comment",
        /// A report of progress.
        Progress = "progress",
    }
}

/// One note (§5.3).
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Its name within the record.
    pub note_id: Box<str>,
    /// What it is.
    pub kind: NoteKind,
    /// Where its text lives.
    pub body_ref: BodyRef,
    /// Who wrote it.
    pub author: Actor,
    /// When, as its author wrote it.
    pub created_at: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl Note {
    pub(crate) fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        Ok(Self {
            note_id: limits.short(fields.required("note_id")?)?.into(),
            kind: fields.required("kind")?.one_of(NoteKind::NAMES)?,
            body_ref: BodyRef::read(fields.required("body_ref")?, limits)?,
            author: Actor::read(fields.required("author")?, limits)?,
            created_at: limits.short(fields.required("created_at")?)?.into(),
            rest: fields.rest(),
        })
    }

    pub(crate) fn members<S: Sink>(&self, o: &mut ObjectWriter<'_, S>) {
        o.string("note_id", &self.note_id)
            .string("kind", self.kind.name())
            .object("body_ref", |o| self.body_ref.members(o))
            .object("author", |o| self.author.members(o))
            .string("created_at", &self.created_at)
            .rest(&self.rest);
    }
}
