//! The small words envelopes are made of: identifiers, digests as written, closed vocabularies, and the limits (§5.6, §8).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use fak_abi::json::{self, Cursor};
use fak_abi::{Digest, Id, ShareScope, Taint};

/// The one store whose bytes need no deletion certificate (§5.6).
pub const LOCAL_STORE: &str = "local-cas";

/// How large a record and what belongs to it may be (§8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one envelope; default 4 MiB.
    pub envelope: usize,
    /// Nesting of one envelope; default 64.
    pub nesting: usize,
    /// Ops of one patch; default 1,024.
    pub ops: usize,
    /// Bytes of an id, a digest, a kind or a time; default 256.
    pub id: usize,
    /// Bytes of a title or a state; default 64 KiB.
    pub text: usize,
    /// Artifacts of one record, and open decisions of one; default 1,024 each.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { envelope: 4 << 20, nesting: 64, ops: 1024, id: 256, text: 64 << 10, entries: 1024 }
    }
}

impl Limits {
    /// The limits of the JSON reader.
    #[must_use]
    pub const fn json(&self) -> json::Limits {
        json::Limits { bytes: self.envelope, nesting: self.nesting }
    }

    /// A string of at most [`Limits::id`] bytes.
    pub(crate) fn short<'d>(&self, cursor: Cursor<'d>) -> Result<&'d str, json::Error> {
        bounded(cursor, self.id)
    }

    /// A string of at most [`Limits::text`] bytes.
    pub(crate) fn long<'d>(&self, cursor: Cursor<'d>) -> Result<&'d str, json::Error> {
        bounded(cursor, self.text)
    }

    /// The same of a member that may be absent, which reads as empty.
    pub(crate) fn short_or_empty(&self, cursor: Option<Cursor<'_>>) -> Result<Box<str>, json::Error> {
        cursor.map_or_else(|| Ok(Box::default()), |cursor| self.short(cursor).map(Into::into))
    }

    /// A digest as written.
    pub(crate) fn hash(&self, cursor: Cursor<'_>) -> Result<Hash, json::Error> {
        let text = self.short(cursor)?;
        Hash::parse(text).ok_or_else(|| cursor.invalid("\"sha256:\" and at least one character"))
    }
}

fn bounded(cursor: Cursor<'_>, limit: usize) -> Result<&str, json::Error> {
    let text = cursor.string()?;
    if text.len() > limit {
        return Err(cursor.error(json::Problem::TooLarge { limit }));
    }
    Ok(text)
}

/// A digest as an envelope writes it (§5.6). Public fixtures carry short placeholders; those are kept as they are and
/// make a journal *opaque* where they stand in its chain (§5.10).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hash {
    /// `sha256:` and 64 lower-case hex digits.
    Full(Digest),
    /// Anything else that was found in its place.
    Opaque(Arc<str>),
}

impl Hash {
    /// Reads `sha256:` and at least one character; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("sha256:") {
            None | Some("") => None,
            Some(_) => Some(Self::lenient(text)),
        }
    }

    /// Keeps any text: for links that the schemas leave open.
    pub(crate) fn lenient(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Opaque(text.into()), Self::Full)
    }

    /// The digest, unless it is opaque.
    #[must_use]
    pub const fn full(&self) -> Option<Digest> {
        match self {
            Self::Full(digest) => Some(*digest),
            Self::Opaque(_) => None,
        }
    }
}

impl FromStr for Hash {
    type Err = HashFormError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or(HashFormError)
    }
}

/// Text that is no digest, not even a short one (§5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: expected \"sha256:\" and at least one character")]
pub struct HashFormError;

impl From<Digest> for Hash {
    fn from(digest: Digest) -> Self {
        Self::Full(digest)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(digest) => fmt::Display::fmt(digest, f),
            Self::Opaque(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is no id of this kind. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id: expected {prefix:?} and up to 256 bytes of letters, digits, \"_\", \".\" or \"-\"")]
pub struct IdFormError {
    /// What it would have to start with.
    pub prefix: &'static str,
}

macro_rules! prefixed_id {
    ($(#[$meta:meta])* $name:ident($inner:ty), $prefix:literal, $make:expr) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            /// Checks the form: the prefix, then at least one of `A-Z a-z 0-9 _ . -`, 256 bytes at most.
            #[must_use]
            pub fn new(text: &str) -> Option<Self> {
                let rest = text.strip_prefix($prefix)?;
                let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
                if rest.is_empty() || text.len() > 256 || !rest.bytes().all(good) {
                    return None;
                }
                let make: fn(&str) -> Option<$inner> = $make;
                make(text).map(Self)
            }

            pub(crate) fn read(cursor: Cursor<'_>) -> Result<Self, json::Error> {
                Self::new(cursor.string()?).ok_or_else(|| {
                    cursor.invalid(concat!("\"", $prefix, "\" and up to 256 bytes of letters, digits, \"_\", \".\" or \"-\""))
                })
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdFormError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text).ok_or(IdFormError { prefix: $prefix })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

prefixed_id! {
    /// The address of a record (§5.2): `task_` and a name.
    TaskId(Id), "task_", |text| Id::new(text).ok()
}

impl TaskId {
    /// The same, as the protocol's identifier: what an act's address carries.
    #[must_use]
    pub const fn id(&self) -> &Id {
        &self.0
    }
}

prefixed_id! {
    /// The name of an event: `evt_` and a name.
    EventId(Arc<str>), "evt_", |text| Some(text.into())
}

impl EventId {
    /// The name of the event that makes a revision. Revisions never recur, so neither do these.
    pub(crate) fn of_revision(rev: Digest) -> Self {
        let hex = rev.hex();
        Self(format!("evt_{}", hex.get(..32).unwrap_or(&hex)).into())
    }
}

/// A closed vocabulary: each member has one written name.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal, )+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[$vmeta])* $variant, )+ }

        impl $name {
            pub(crate) const NAMES: &'static [(&'static str, Self)] = &[$(($text, Self::$variant)),+];

            /// The name, as written in data.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use named;

named! {
    /// How long what a patch brings is meant to last.
    pub enum Durability {
        /// One turn.
        Turn = "turn",
        /// One session.
        Session = "session",
        /// A bounded time.
        Bounded = "bounded",
        /// For good.
        Durable = "durable",
    }
}

pub(crate) const TAINTS: &[(&str, Taint)] = &[
    (Taint::Trusted.name(), Taint::Trusted),
    (Taint::Tainted.name(), Taint::Tainted),
    (Taint::Quarantined.name(), Taint::Quarantined),
];

pub(crate) const SCOPES: &[(&str, ShareScope)] = &[
    (ShareScope::Agent.name(), ShareScope::Agent),
    (ShareScope::Fleet.name(), ShareScope::Fleet),
    (ShareScope::Tenant.name(), ShareScope::Tenant),
    (ShareScope::Public.name(), ShareScope::Public),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_short_and_told_apart() {
        assert_eq!(Hash::parse("sha256:"), None);
        assert_eq!(Hash::parse("md5:00"), None);
        assert_eq!(Hash::parse("sha256:body001").unwrap().full(), None);
        let digest = Digest::of(b"x");
        assert_eq!(Hash::parse(&digest.to_string()).unwrap().full(), Some(digest));
        assert_eq!(
            Hash::parse(&digest.to_string().to_uppercase().replace("SHA", "sha")).unwrap().full(),
            None
        );
    }

    #[test]
    fn ids_have_their_prefix_and_alphabet() {
        assert!(TaskId::new("task_a.B-9_").is_some());
        for bad in
            ["", "task_", "tasks_a", "task_é", "task_a b", "task_a/b", &format!("task_{}", "x".repeat(252))]
        {
            assert!(TaskId::new(bad).is_none(), "{bad}");
        }
        assert!(EventId::new("evt_42aa69ddaf8c750e").is_some());
    }
}
