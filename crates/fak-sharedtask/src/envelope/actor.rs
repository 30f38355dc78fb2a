//! Who did something to a record, as records know it: by kind and id (§2.3).

use fak_abi::Principal;
use fak_abi::json::{self, Cursor, Member, ObjectWriter, Sink};

use super::Limits;

/// An actor: `kind` and `id` (§2.3). Not an incarnation; records outlive those.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Actor {
    /// `agent` or `human` where this project writes it; other kinds are read and kept.
    pub kind: Box<str>,
    /// The principal's id.
    pub id: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl Actor {
    /// The actor a principal is.
    #[must_use]
    pub fn of(principal: &Principal) -> Self {
        Self::new(principal.kind().name(), principal.id())
    }

    /// An actor of this kind and id.
    #[must_use]
    pub fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.into(), id: id.into(), rest: Vec::new() }
    }

    /// Whether both name the same principal: kind and id, whatever else was written.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && self.id == other.id
    }

    pub(crate) fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        let kind = limits.short(fields.required("kind")?)?.into();
        let id = fields.required("id")?;
        id.non_empty()?;
        let id = limits.short(id)?.into();
        Ok(Self { kind, id, rest: fields.rest() })
    }

    /// Where an actor may be blank: what is missing is empty, and is written so (§7.1).
    pub(crate) fn read_or_blank(cursor: Option<Cursor<'_>>, limits: &Limits) -> Result<Self, json::Error> {
        let Some(cursor) = cursor else { return Ok(Self::default()) };
        let mut fields = cursor.object()?;
        let kind = limits.short_or_empty(fields.optional("kind"))?;
        let id = limits.short_or_empty(fields.optional("id"))?;
        Ok(Self { kind, id, rest: fields.rest() })
    }

    pub(crate) fn members<S: Sink>(&self, o: &mut ObjectWriter<'_, S>) {
        o.string("kind", &self.kind).string("id", &self.id).rest(&self.rest);
    }
}
