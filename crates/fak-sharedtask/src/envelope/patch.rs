//! Patches as they are submitted: parsed, not yet judged (§5.3). An op's value stays open until the merge reads it.

use fak_abi::ShareScope;
use fak_abi::json::{self, Cursor, Member, Sink, Value};

use super::{Actor, Durability, Envelope, Hash, Limits, List, SCOPES, TaskId, named, schema};

named! {
    /// What an op does (§5.3).
    pub enum OpKind {
        /// Adds an entry to a list.
        Append = "append",
        /// Replaces a value.
        Replace = "replace",
        /// Removes; well formed, and always denied (§5.3).
        Remove = "remove",
    }
}

/// One op of a patch. Its members are closed (§8).
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Where: starts with `/`.
    pub path: Box<str>,
    /// With what; absent and `null` are the same.
    pub value: Option<Value>,
}

impl Op {
    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        let kind = fields.required("op").and_then(|op| op.one_of(OpKind::NAMES));
        let path = fields.required("path");
        let value = fields.optional("value").map(Cursor::value).filter(|value| !value.is_null()).cloned();
        // A mistyped name explains a missing member better than its absence does.
        fields.finish()?;
        let path = path?;
        let text = limits.long(path)?;
        if !text.starts_with('/') {
            return Err(path.invalid("a path that starts with \"/\""));
        }
        Ok(Self { kind: kind?, path: text.into(), value })
    }
}

/// A patch: `fak.shared-patch.v1`. Made in code by [`Patch::new`], or read with [`Envelope::parse`].
///
/// ```
/// use fak_sharedtask::{Envelope, Limits, Patch};
///
/// let text = br#"{"schema": "fak.shared-patch.v1", "task_id": "task_notes", "base_rev": "sha256:seen",
///     "actor": {"kind": "agent", "id": "dev"}, "scope": "fleet", "durability": "session",
///     "ops": [{"op": "replace", "path": "/title", "vlaue": "Notes"}], "message": "shorter"}"#;
/// let error = Patch::parse(text, &Limits::default()).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"line 3, column 58, at "/ops/0/vlaue": unknown member "vlaue", did you mean "value"?"#,
/// );
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The record it is for.
    pub task_id: TaskId,
    /// The revision its writer saw; `None` if empty, which is always denied (§5.5).
    pub base_rev: Option<Hash>,
    /// Who writes it; must be the principal that submits it (§5.2).
    pub actor: Actor,
    /// The widest scope it brings.
    pub scope: ShareScope,
    /// How long it is meant to last.
    pub durability: Durability,
    /// What it does, in order; all or nothing.
    pub ops: List<Op>,
    /// Why, in words.
    pub message: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl Envelope for Patch {
    const SCHEMA: &'static str = "fak.shared-patch.v1";

    fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        schema(&mut fields, Self::SCHEMA)?;
        let base = fields.required("base_rev")?;
        let base_rev = if base.string()?.is_empty() { None } else { Some(limits.hash(base)?) };
        Ok(Self {
            task_id: TaskId::read(fields.required("task_id")?)?,
            base_rev,
            actor: Actor::read(fields.required("actor")?, limits)?,
            scope: fields.required("scope")?.one_of(SCOPES)?,
            durability: fields.required("durability")?.one_of(Durability::NAMES)?,
            ops: List::read(fields.required("ops")?, limits.ops, |cursor| Op::read(cursor, limits))?,
            message: limits.long(fields.required("message")?)?.into(),
            rest: fields.rest(),
        })
    }

    fn write<S: Sink>(&self, sink: &mut S) {
        json::object(sink, |o| {
            o.string("schema", Self::SCHEMA)
                .string("task_id", self.task_id.as_str())
                .string("base_rev", &self.base_rev.as_ref().map(Hash::to_string).unwrap_or_default())
                .object("actor", |o| self.actor.members(o))
                .string("scope", self.scope.name())
                .string("durability", self.durability.name());
            self.ops.write(o, "ops", |a, op| {
                a.object(|o| {
                    o.string("op", op.kind.name()).string("path", &op.path);
                    if let Some(value) = &op.value {
                        o.value("value", value);
                    }
                });
            });
            o.string("message", &self.message).rest(&self.rest);
        });
    }
}
