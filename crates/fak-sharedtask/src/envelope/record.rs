//! The record as it is exchanged: one whole revision (§5.2). The live form, which shares its entries, is in `task`.

use std::sync::Arc;

use fak_abi::json::{self, ArrayWriter, Cursor, Member, ObjectWriter, Sink};

use super::{Actor, ArtifactRef, BodyRef, Decision, Envelope, Hash, Limits, Note, TaskId, schema};

/// A list that may have been written as `null`: Go writes that for a list it never touched, and digests it so (§7.1).
#[derive(Debug, Clone, PartialEq)]
pub struct List<T> {
    /// The entries.
    pub items: Vec<T>,
    /// Whether an empty list is written `null`.
    pub null: bool,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), null: false }
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, null: false }
    }
}

impl<T> List<T> {
    pub(crate) fn read(
        cursor: Cursor<'_>,
        limit: usize,
        mut item: impl FnMut(Cursor<'_>) -> Result<T, json::Error>,
    ) -> Result<Self, json::Error> {
        if cursor.value().is_null() {
            return Ok(Self { items: Vec::new(), null: true });
        }
        let elements = cursor.array()?;
        if elements.len() > limit {
            return Err(cursor.invalid(format!("at most {limit} entries")));
        }
        let items = elements.map(&mut item).collect::<Result<_, _>>()?;
        Ok(Self { items, null: false })
    }

    pub(crate) fn write<S: Sink>(
        &self,
        o: &mut ObjectWriter<'_, S>,
        name: &str,
        mut item: impl FnMut(&mut ArrayWriter<'_, S>, &T),
    ) {
        if self.null && self.items.is_empty() {
            o.null(name);
        } else {
            o.array(name, |a| self.items.iter().for_each(|i| item(a, i)));
        }
    }
}

/// A record: `fak.shared-task.v1`. Made in code by [`Record::new`]; read with [`Envelope::parse`], or with [`Record::draft`] if it
/// is to be created.
///
/// ```
/// use fak_sharedtask::{Limits, Record};
///
/// let text = br#"{"schema": "fak.shared-task.v1", "task_id": "task_notes", "state": "open", "title": "Notes",
///     "body_ref": {"kind": "cas", "digest": "sha256:2cf24", "bytes": 5, "taint": "tainted", "scope": "fleet",
///         "durability": "session"},
///     "artifacts": [], "notes": [], "open_decisions": [], "x_team": "docs",
///     "updated_by": {"kind": "agent", "id": "dev"}, "updated_at": "2026-01-01T00:00:00Z"}"#;
/// let record = Record::draft(text, &Limits::default())?;
/// assert_eq!(record.rev, record.computed_rev());
/// // What this project does not know is kept.
/// assert_eq!(&*record.rest.first().ok_or("kept")?.name, "x_team");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its address.
    pub task_id: TaskId,
    /// The digest of this revision, over the record with an empty `rev`.
    pub rev: Hash,
    /// How far the task has come; never empty where this project writes it.
    pub state: Arc<str>,
    /// What the task is; never empty.
    pub title: Arc<str>,
    /// Where its description lives.
    pub body_ref: BodyRef,
    /// What it has produced.
    pub artifacts: List<ArtifactRef>,
    /// What was said about it.
    pub notes: List<Note>,
    /// What has to be settled.
    pub open_decisions: List<Decision>,
    /// Who made this revision.
    pub updated_by: Actor,
    /// When; RFC 3339 where this project writes it.
    pub updated_at: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl Record {
    /// Reads a record that is to be created: its `rev` is ignored, whatever it is, and computed (§5.5).
    ///
    /// # Errors
    /// As [`Envelope::parse`].
    pub fn draft(text: &[u8], limits: &Limits) -> Result<Self, json::Error> {
        Self::read_draft(json::Document::parse(text, &limits.json())?.root(), limits)
    }

    /// As [`Record::draft`], from a value in a document.
    ///
    /// # Errors
    /// As [`Envelope::read`].
    pub fn read_draft(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut record = Self::read_any(cursor, limits, |_, _| Ok(Hash::Opaque("".into())))?;
        record.rev = record.computed_rev();
        Ok(record)
    }

    fn read_any(
        cursor: Cursor<'_>,
        limits: &Limits,
        rev: impl FnOnce(&mut json::Fields<'_>, &Limits) -> Result<Hash, json::Error>,
    ) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        schema(&mut fields, Self::SCHEMA)?;
        // Asked for in any case, so that it is no unknown member.
        let _ = fields.optional("rev");
        let title = fields.required("title")?;
        title.non_empty()?;
        Ok(Self {
            task_id: TaskId::read(fields.required("task_id")?)?,
            rev: rev(&mut fields, limits)?,
            state: limits.long(fields.required("state")?)?.into(),
            title: limits.long(title)?.into(),
            body_ref: BodyRef::read(fields.required("body_ref")?, limits)?,
            artifacts: List::read(fields.required("artifacts")?, limits.entries, |c| {
                ArtifactRef::read_entry(c, limits)
            })?,
            notes: List::read(fields.required("notes")?, usize::MAX, |c| Note::read(c, limits))?,
            open_decisions: List::read(fields.required("open_decisions")?, limits.entries, |c| {
                Decision::read(c, limits)
            })?,
            updated_by: Actor::read(fields.required("updated_by")?, limits)?,
            updated_at: limits.short(fields.required("updated_at")?)?.into(),
            rest: fields.rest(),
        })
    }

    /// The digest of this revision (§7.1). Linear in the record; a live task keeps it incrementally.
    #[must_use]
    pub fn computed_rev(&self) -> Hash {
        use sha2::Digest as _;
        let mut hash = sha2::Sha256::new();
        self.write_with_rev(&mut hash, "");
        Hash::Full(fak_abi::Digest::from_bytes(hash.finalize().into()))
    }

    fn write_with_rev<S: Sink>(&self, sink: &mut S, rev: &str) {
        json::object(sink, |o| {
            o.string("schema", Self::SCHEMA)
                .string("task_id", self.task_id.as_str())
                .string("rev", rev)
                .string("state", &self.state)
                .string("title", &self.title)
                .object("body_ref", |o| self.body_ref.members(o));
            self.artifacts.write(o, "artifacts", |a, item| {
                a.object(|o| item.members(o));
            });
            self.notes.write(o, "notes", |a, item| {
                a.object(|o| item.members(o));
            });
            self.open_decisions.write(o, "open_decisions", |a, item| {
                a.object(|o| item.members(o));
            });
            o.object("updated_by", |o| self.updated_by.members(o))
                .string("updated_at", &self.updated_at)
                .rest(&self.rest);
        });
    }
}

impl Envelope for Record {
    const SCHEMA: &'static str = "fak.shared-task.v1";

    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        Self::read_any(cursor, limits, |fields, limits| limits.hash(fields.required("rev")?))
    }

    fn write<S: Sink>(&self, sink: &mut S) {
        self.write_with_rev(sink, &self.rev.to_string());
    }
}
