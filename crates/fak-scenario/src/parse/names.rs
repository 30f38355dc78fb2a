//! The names a scenario's steps may use: its agents, and what earlier steps kept. A name nobody gave is an error of the file,
//! found before anything is performed.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use fak_abi::json::{Cursor, Value};

use super::{Fault, Parsed, fault, faults::KEPT, rule};
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
    /// How many unknown ones were compared with the known.
    compared: Cell<usize>,
}

/// So many unknown names are compared with all known ones: more than are shown, as one may be met more than once.
const COMPARED: usize = 3 * KEPT;

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

    /// Where such a name is given.
    fn given(self) -> &'static str {
        match self {
            Self::Saved => "the \"save\" of an earlier step",
            Self::Inbox => {
                "the \"as\" of an earlier \"subscribe\" or \"request\", or the \"name\" of a \"group\""
            }
            Self::Request => "the \"as\" of an earlier \"request\"",
            Self::Leased => "the \"as\" of an earlier \"recv_leased\"",
            Self::Group => "the \"name\" of an earlier \"group\"",
            Self::Barrier => "the \"as\" of an earlier \"barrier\"",
            Self::Lease => "the \"as\" of an earlier \"lease\"",
            Self::Watch => "the \"as\" of an earlier \"watch\"",
        }
    }

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
        let agents = agents.map(|agents| agents.into_iter().collect());
        Self { agents, kept: BTreeMap::new(), compared: Cell::new(0) }
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
                Err(self.unknown(cursor, "agent", name, agents.iter().map(String::as_str)))
            }
            _ => Ok(name.to_owned()),
        }
    }

    /// Whether an agent has this name.
    pub(super) fn has_agent(&self, name: &str) -> bool {
        self.agents.as_ref().is_some_and(|agents| agents.contains(name))
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
        let given = kinds.first().map_or("", |kind| kind.given());
        if kinds.contains(&Kept::Inbox) && name.contains(':') {
            return Err(rule(
                cursor,
                format!("{name:?} is a channel: name it with \"at\"; an inbox is {given}"),
            ));
        }
        // Requests and groups are inboxes besides.
        let others = || self.kept.iter().filter(|(_, names)| names.contains(name)).map(|(other, _)| *other);
        let other = others().find(|other| *other != Kept::Inbox).or_else(|| others().next());
        if let Some(other) = other {
            let other = other.what();
            return Err(rule(
                cursor,
                format!("{name:?} names the {other}; expected a {what}, which is {given}"),
            ));
        }
        if known.clone().next().is_none() {
            return Err(rule(cursor, format!("unknown {what} {name:?}: it is {given}")));
        }
        Err(self.unknown(cursor, what, name, known))
    }

    fn unknown<'k>(
        &self,
        cursor: Cursor<'_>,
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Fault {
        let compared = self.compared.get();
        self.compared.set(compared.saturating_add(1));
        let known: Vec<&str> = if compared < COMPARED { known.collect() } else { Vec::new() };
        fault(
            cursor,
            Problem::UnknownName {
                what,
                name: name.to_owned(),
                nearest: meant(name, known.iter().copied()).map(str::to_owned),
                known: known.into_iter().map(str::to_owned).collect(),
            },
        )
    }
}
