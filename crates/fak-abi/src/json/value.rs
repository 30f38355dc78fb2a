//! A JSON value as read: members in the order written, integers exact, every value knowing where it stood.

use super::number::Number;

/// A JSON value. Equality is of content; where a value stood does not count, the order of members does.
#[derive(Debug, Clone)]
pub struct Value {
    kind: Kind,
    at: usize,
}

/// What a [`Value`] is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(Box<str>),
    /// An array.
    Array(Vec<Value>),
    /// An object, its members in the order written.
    Object(Vec<Member>),
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: Box<str>,
    /// Its value.
    pub value: Value,
}

impl Value {
    /// A value that was not read from anywhere.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { kind, at: 0 }
    }

    pub(super) fn read(kind: Kind, at: usize) -> Self {
        Self { kind, at }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The same, owned.
    #[must_use]
    pub fn into_kind(self) -> Kind {
        self.kind
    }

    /// The byte offset it was read at; 0 if it was made.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match &self.kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members, if it is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member of that name, if it is an object that has one. Linear in the members.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.as_object()?.iter().find(|member| &*member.name == name).map(|member| &member.value)
    }

    /// The name of its type, with an article, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::String(_) => "a string",
            Kind::Array(_) => "an array",
            Kind::Object(_) => "an object",
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::new(Kind::String(text.into()))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::new(Kind::Bool(value))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::new(Kind::Number(Number::U64(number)))
    }
}
