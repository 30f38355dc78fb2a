//! The names a scenario's steps may use: its agents, and what earlier steps kept. A name nobody gave is an error of the file,
//! found before anything is performed.

use std::collections::{BTreeMap, BTreeSet};

use fak_abi::json::{Cursor, nearest};

use super::{Parsed, fault};
use crate::{act::Actor, error::Problem};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    /// Anything `save` kept.
    Saved,
    /// A subscription's, request's or group's inbox.
    Inbox,
    /// A request.
    Request,
    /// A leased message.
    Leased,
    /// A group.
    Group,
    /// A barrier.
    Barrier,
    /// A lane lease.
    Lease,
    /// A watch.
    Watch,
}

/// The names known so far.
pub(super) struct Names {
    agents: BTreeSet<String>,
    kept: BTreeMap<Kept, BTreeSet<String>>,
}

impl Kept {
    fn what(self) -> &'static str {
        match self {
            Self::Saved => "saved value",
            Self::Inbox => "inbox",
            Self::Request => "request",
            Self::Leased => "leased message",
            Self::Group => "group",
            Self::Barrier => "barrier",
            Self::Lease => "lease",
            Self::Watch => "watch",
        }
    }
}

impl Names {
    pub(super) fn new(agents: impl Iterator<Item = String>) -> Self {
        Self { agents: agents.collect(), kept: BTreeMap::new() }
    }

    /// An agent's name.
    pub(super) fn agent(&self, cursor: Cursor<'_>) -> Parsed<String> {
        let name = cursor.string()?;
        if self.agents.contains(name) {
            return Ok(name.to_owned());
        }
        Err(unknown(cursor, "agent", name, self.agents.iter().map(String::as_str)))
    }

    /// Who acts: an agent, or `?name` for a stranger.
    pub(super) fn actor(&self, cursor: Cursor<'_>) -> Parsed<Actor> {
        match cursor.string()?.strip_prefix('?') {
            Some("") => Err(cursor.invalid("a name after the \"?\"").into()),
            Some(name) => Ok(Actor::Stranger(name.to_owned())),
            None => Ok(Actor::Agent(self.agent(cursor)?)),
        }
    }

    /// Gives a name.
    pub(super) fn keep(&mut self, kept: Kept, name: &str) {
        self.kept.entry(kept).or_default().insert(name.to_owned());
    }

    /// Gives the name that stands here.
    pub(super) fn give(&mut self, kept: Kept, cursor: Cursor<'_>) -> Parsed<String> {
        let name = cursor.non_empty()?;
        self.keep(kept, name);
        Ok(name.to_owned())
    }

    /// A name an earlier step gave.
    pub(super) fn kept(&self, kept: Kept, cursor: Cursor<'_>) -> Parsed<String> {
        self.kept_as(&[kept], kept.what(), cursor)
    }

    /// A message that was received: saved, or leased.
    pub(super) fn message(&self, cursor: Cursor<'_>) -> Parsed<String> {
        self.kept_as(&[Kept::Saved, Kept::Leased], "saved or leased message", cursor)
    }

    fn kept_as(&self, kinds: &[Kept], what: &'static str, cursor: Cursor<'_>) -> Parsed<String> {
        let name = cursor.string()?;
        let known = kinds.iter().filter_map(|kept| self.kept.get(kept)).flatten().map(String::as_str);
        if known.clone().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        Err(unknown(cursor, what, name, known))
    }
}

fn unknown<'k>(
    cursor: Cursor<'_>,
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> super::Fault {
    fault(
        cursor,
        Problem::UnknownName {
            what,
            name: name.to_owned(),
            nearest: nearest(name, known.clone()).map(str::to_owned),
            known: known.map(str::to_owned).collect(),
        },
    )
}
