//! Spawning: the membership each member of a wave carries, and who is alive in which wave. A spawn starts no
//! process; it mints identities.

use fak_abi::Id;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

use crate::group::Group;

/// A member's place in a wave, minted by [`Waves::spawn`] (§6.1).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Membership {
    /// The wave.
    pub wave: Id,
    /// Trace id of the parent, if there is one.
    pub parent: Option<Id>,
    /// The member.
    pub id: Id,
    /// Its rank, from 0.
    pub rank: usize,
    /// How many members the group has.
    pub size: usize,
    /// The lane it works in.
    pub lane: Option<Id>,
}

/// What a spawn came to: every membership, or none (§6.1).
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
pub enum Spawn {
    /// The memberships in rank order.
    Mint(Vec<Membership>),
    /// A member is alive in the wave already: LEASE_HELD, and nobody was spawned.
    Held {
        /// The lowest rank that is alive.
        rank: usize,
        /// Its id.
        member: Id,
    },
}

/// Who is alive in which wave (§6.1). One a host; no global state.
#[derive(Debug, Default)]
pub struct Waves {
    alive: Mutex<HashMap<Id, HashSet<Id>>>,
}

impl Waves {
    /// No wave at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns every member of `group` into its wave, or nobody if one of them is alive there.
    pub fn spawn(&self, group: &Group) -> Spawn {
        let mut alive = self.alive.lock();
        let wave = alive.entry(group.wave().clone()).or_default();
        if let Some((rank, held)) = group.members().iter().enumerate().find(|(_, m)| wave.contains(m.id())) {
            return Spawn::Held { rank, member: held.id().clone() };
        }
        wave.extend(group.members().iter().map(|m| m.id().clone()));
        let mint = |(rank, member): (usize, &crate::group::Member)| Membership {
            wave: group.wave().clone(),
            parent: group.parent().cloned(),
            id: member.id().clone(),
            rank,
            size: group.size(),
            lane: member.lane().cloned(),
        };
        Spawn::Mint(group.members().iter().enumerate().map(mint).collect())
    }

    /// Ends `id` in `wave`: it may be spawned there again. False if it was not alive there.
    pub fn end(&self, wave: &str, id: &str) -> bool {
        let mut alive = self.alive.lock();
        let Some(members) = alive.get_mut(wave) else {
            return false;
        };
        let ended = members.remove(id);
        if members.is_empty() {
            alive.remove(wave);
        }
        ended
    }

    /// Ends `id` in every wave, as when it is detached (§2.3).
    pub fn end_everywhere(&self, id: &str) {
        self.alive.lock().retain(|_, members| {
            members.remove(id);
            !members.is_empty()
        });
    }

    /// Whether `id` is alive in `wave`.
    #[must_use]
    pub fn is_alive(&self, wave: &str, id: &str) -> bool {
        self.alive.lock().get(wave).is_some_and(|members| members.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{GroupSpec, Member};

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    fn group(ids: &[&str]) -> Group {
        let members = ids.iter().map(|m| Member::new(id(m)).in_lane(id("docs"))).collect();
        Group::new(GroupSpec::new(id("g"), members).in_wave(id("w1")).under(id("trace-p"))).unwrap()
    }

    #[test]
    fn every_membership_names_wave_parent_rank_size_and_lane() {
        let Spawn::Mint(minted) = Waves::new().spawn(&group(&["b", "a"])) else { panic!("refused") };
        let expected = |member: &str, rank| Membership {
            wave: id("w1"),
            parent: Some(id("trace-p")),
            id: id(member),
            rank,
            size: 2,
            lane: Some(id("docs")),
        };
        assert_eq!(minted, [expected("a", 0), expected("b", 1)]);
    }

    #[test]
    fn an_id_alive_in_the_wave_is_held_and_nobody_is_spawned() {
        let waves = Waves::new();
        let _ = waves.spawn(&group(&["b"]));
        assert_eq!(waves.spawn(&group(&["a", "b", "c"])), Spawn::Held { rank: 1, member: id("b") });
        assert!(!waves.is_alive("w1", "a"));
        assert!(waves.end("w1", "b"));
        assert!(!waves.end("w1", "b"));
        assert!(matches!(waves.spawn(&group(&["a", "b", "c"])), Spawn::Mint(_)));
        waves.end_everywhere("a");
        assert!(!waves.is_alive("w1", "a") && waves.is_alive("w1", "b"));
    }
}
