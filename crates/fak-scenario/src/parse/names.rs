//! The names a scenario's steps may use: its agents, and what earlier steps kept. A name nobody gave is an error of the file,
//! found before anything is performed.

use std::collections::{BTreeMap, BTreeSet};

use fak_abi::json::{Cursor, Value};

use super::{Parsed, fault};
use crate::{act::Actor, error::Problem, words::meant};

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
    /// `None` if any name will do, because the agents themselves could not be told.
    agents: Option<BTreeSet<String>>,
    kept: BTreeMap<Kept, BTreeSet<String>>,
}

impl Kept {
    const ALL: [Self; 8] = [
        Self::Saved,
        Self::Inbox,
        Self::Request,
        Self::Leased,
        Self::Group,
        Self::Barrier,
        Self::Lease,
        Self::Watch,
    ];

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
    pub(super) fn new(agents: Option<Vec<String>>) -> Self {
        Self { agents: agents.map(|agents| agents.into_iter().collect()), kept: BTreeMap::new() }
    }

    /// Takes every name that a step which could not be read may have given.
    pub(super) fn presume(&mut self, step: Cursor<'_>) {
        for member in ["as", "save", "name"] {
            if let Some(name) = step.value().member(member).and_then(Value::as_str) {
                for kept in Kept::ALL {
                    self.keep(kept, name);
                }
            }
        }
    }

    /// An agent's name.
    pub(super) fn agent(&self, cursor: Cursor<'_>) -> Parsed<String> {
        let name = cursor.string()?;
        match &self.agents {
            Some(agents) if !agents.contains(name) => {
                Err(unknown(cursor, "agent", name, agents.iter().map(String::as_str)))
            }
            _ => Ok(name.to_owned()),
        }
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
            nearest: meant(name, known.clone()).map(str::to_owned),
            known: known.map(str::to_owned).collect(),
        },
    )
}
