//! Topologies (§6.8, §6.9): which edges make one, and who may hand to whom along them.

use super::channels::Key;
use super::{Model, Who};

/// Those whom edges are drawn between, in the order of their ids.
pub(crate) const NAMES: [&str; 6] = ["a0", "a1", "a2", "a3", "a4", "h0"];

/// An edge, as places in [`NAMES`].
pub(crate) type Edge = (usize, usize);

/// Where an episode with a topology begins.
pub(crate) const FIRST: [Edge; 4] = [(0, 1), (0, 2), (1, 2), (2, 3)];

/// Why edges are no topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Nothing,
    ToItself,
    Twice,
    Round,
}

/// §6.8: the waves of a topology of these edges, each in the order of its members' ids; or what is wrong with them.
pub(crate) fn waves(edges: &[Edge]) -> Result<Vec<Vec<&'static str>>, Wrong> {
    if edges.is_empty() {
        return Err(Wrong::Nothing);
    }
    if edges.iter().any(|(from, to)| from == to) {
        return Err(Wrong::ToItself);
    }
    if (0..edges.len()).any(|at| edges.iter().take(at).any(|edge| Some(edge) == edges.get(at))) {
        return Err(Wrong::Twice);
    }
    let is_member = |at: &usize| edges.iter().any(|(from, to)| from == at || to == at);
    let mut left: Vec<usize> = (0..NAMES.len()).filter(is_member).collect();
    let mut waves = Vec::new();
    while !left.is_empty() {
        let follows = |at: &usize| edges.iter().any(|(from, to)| to == at && left.contains(from));
        let (later, wave): (Vec<usize>, Vec<usize>) = left.iter().partition(|at| follows(at));
        if wave.is_empty() {
            return Err(Wrong::Round);
        }
        waves.push(wave.iter().filter_map(|at| NAMES.get(*at).copied()).collect());
        left = later;
    }
    Ok(waves)
}

impl Model {
    /// §6.9: whether one may hand to another; `answers`: what it hands answers what came the other way.
    pub(super) fn has_way(&self, from: Who, to: Who, answers: bool) -> bool {
        let Some(edges) = &self.topology else { return true };
        let name = |who: Who| self.agent(who).map(|agent| agent.id.as_str()).unwrap_or_default();
        let (from, to) = (name(from), name(to));
        let place = |id: &str| {
            let at = NAMES.iter().position(|name| *name == id)?;
            edges.iter().any(|(from, to)| *from == at || *to == at).then_some(at)
        };
        match (place(from), place(to)) {
            _ if from == to => true,
            (None, _) => true,
            (Some(_), None) => false,
            (Some(from), Some(to)) if answers => edges.contains(&(to, from)),
            (Some(from), Some(to)) => edges.contains(&(from, to)),
        }
    }

    /// Whether a message at a key may be handed to whoever looks for one there. What is in an inbox was judged when it
    /// was put there.
    pub(crate) fn is_linked(&self, key: &Key, from: Who, to: Who) -> bool {
        key.locale == "inbox" || self.has_way(from, to, false)
    }

    /// Whom a key resolves to (§2.5).
    pub(super) fn resolved(&self, key: &Key) -> Option<Who> {
        match self.boxes.get(key) {
            Some(mailbox) => mailbox.binder,
            None if key.locale == "session" => self.session(&key.id),
            None => None,
        }
    }
}
