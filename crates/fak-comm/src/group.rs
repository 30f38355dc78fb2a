//! Groups: who takes part, in which rank, with which weight and lane. Ranks are a function of the set of ids
//! and of nothing else. Acts over a group live beside this module.

use std::sync::Arc;

use crate::error::CommError;
use crate::id::check_id;

/// One member of a group: its id, the lane it works in, and its weight in votes and means (§6.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    id: Arc<str>,
    lane: Option<Arc<str>>,
    weight: f64,
}

impl Member {
    /// A member of weight 1 without a lane. The id is checked when a group is made of it.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), lane: None, weight: 1.0 }
    }

    /// The same member working in `lane`.
    #[must_use]
    pub fn in_lane(mut self, lane: impl Into<Arc<str>>) -> Self {
        self.lane = Some(lane.into());
        self
    }

    /// The same member with another weight.
    #[must_use]
    pub fn weighing(mut self, weight: f64) -> Self {
        self.weight = weight;
        self
    }

    /// The member's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The member's id, shared.
    #[must_use]
    pub fn shared_id(&self) -> &Arc<str> {
        &self.id
    }

    /// The lane it works in, if any.
    #[must_use]
    pub fn lane(&self) -> Option<&str> {
        self.lane.as_deref()
    }

    /// Its weight, finite and above zero once it is in a group.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.weight
    }
}

/// What a group is made of (§6.1).
#[derive(Clone, Debug)]
pub struct GroupSpec {
    /// The group's name: its address is `group:name`.
    pub name: Arc<str>,
    /// The wave it belongs to.
    pub wave: Arc<str>,
    /// Trace id of whoever spawned it; may be empty.
    pub parent: Arc<str>,
    /// The members in any order.
    pub members: Vec<Member>,
}

impl GroupSpec {
    /// A group whose wave is its own name and that has no parent.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, members: Vec<Member>) -> Self {
        let name = name.into();
        Self { wave: Arc::clone(&name), name, parent: Arc::from(""), members }
    }

    /// The same group in another wave.
    #[must_use]
    pub fn in_wave(mut self, wave: impl Into<Arc<str>>) -> Self {
        self.wave = wave.into();
        self
    }

    /// The same group with the trace id of its parent.
    #[must_use]
    pub fn under(mut self, parent: impl Into<Arc<str>>) -> Self {
        self.parent = parent.into();
        self
    }
}

#[derive(Debug)]
struct Inner {
    name: Arc<str>,
    wave: Arc<str>,
    parent: Arc<str>,
    /// Sorted by id, byte-wise: the index is the rank.
    members: Vec<Member>,
}

/// A set of members, ranked by the byte-wise order of their ids (§6.1). Immutable; cloning shares it.
#[derive(Clone, Debug)]
pub struct Group {
    inner: Arc<Inner>,
}

impl Group {
    /// Ranks the members of `spec`.
    ///
    /// # Errors
    ///
    /// [`CommError::Empty`] without members, [`CommError::Id`] for an id that is none (member, group or
    /// wave), [`CommError::Duplicate`] for one listed twice, [`CommError::Weight`] for a weight that is
    /// not finite and above zero.
    ///
    /// # Complexity
    ///
    /// One sort of the members.
    pub fn new(spec: GroupSpec) -> Result<Self, CommError> {
        let GroupSpec { name, wave, parent, mut members } = spec;
        check_id("group name", 0, &name)?;
        check_id("wave", 0, &wave)?;
        if members.is_empty() {
            return Err(CommError::Empty { what: "group" });
        }
        for (at, member) in members.iter().enumerate() {
            check_id("member", at, &member.id)?;
            if !(member.weight.is_finite() && member.weight > 0.0) {
                return Err(CommError::Weight { member: member.id.to_string(), weight: member.weight });
            }
        }
        members.sort_unstable_by(|a, b| a.id.as_bytes().cmp(b.id.as_bytes()));
        let mut before: Option<&Member> = None;
        for member in &members {
            if before.is_some_and(|b| b.id == member.id) {
                return Err(CommError::Duplicate { id: member.id.to_string() });
            }
            before = Some(member);
        }
        Ok(Self { inner: Arc::new(Inner { name, wave, parent, members }) })
    }

    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.inner.name
    }

    /// The wave it belongs to.
    #[must_use]
    pub fn wave(&self) -> &Arc<str> {
        &self.inner.wave
    }

    /// Trace id of its parent; empty if it has none.
    #[must_use]
    pub fn parent(&self) -> &Arc<str> {
        &self.inner.parent
    }

    /// How many members it has, at least 1.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.members.len()
    }

    /// The members in rank order.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.inner.members
    }

    /// The member at `rank`.
    #[must_use]
    pub fn member(&self, rank: usize) -> Option<&Member> {
        self.inner.members.get(rank)
    }

    /// The rank of `id`, by binary search.
    #[must_use]
    pub fn rank(&self, id: &str) -> Option<usize> {
        self.inner.members.binary_search_by(|m| m.id.as_bytes().cmp(id.as_bytes())).ok()
    }

    /// The distinct lanes of its members, sorted.
    #[must_use]
    pub fn lanes(&self) -> Vec<Arc<str>> {
        let mut lanes: Vec<_> = self.inner.members.iter().filter_map(|m| m.lane.clone()).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(ids: &[&str]) -> Result<Group, CommError> {
        Group::new(GroupSpec::new("g", ids.iter().map(|id| Member::new(*id)).collect()))
    }

    #[test]
    fn ranks_follow_the_bytes_of_the_ids_not_a_collation() {
        let g = group(&["é", "b", "B", "a", "Z"]).unwrap();
        let ids: Vec<_> = g.members().iter().map(Member::id).collect();
        assert_eq!(ids, ["B", "Z", "a", "b", "é"]);
        assert_eq!(g.rank("a"), Some(2));
        assert_eq!(g.rank("c"), None);
    }

    #[test]
    fn a_group_of_nothing_a_blank_id_and_a_repeated_id_are_errors() {
        assert_eq!(group(&[]).unwrap_err().kind(), "empty");
        assert_eq!(group(&["a", ""]).unwrap_err().kind(), "id");
        assert_eq!(group(&["a", "b\n"]).unwrap_err().kind(), "id");
        assert_eq!(group(&["b", "a", "b"]).unwrap_err(), CommError::Duplicate { id: "b".into() });
    }

    #[test]
    fn a_weight_is_finite_and_above_zero() {
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let err = Group::new(GroupSpec::new("g", vec![Member::new("a").weighing(weight)])).unwrap_err();
            assert_eq!(err.kind(), "weight");
        }
    }

    #[test]
    fn lanes_are_listed_once() {
        let members = vec![
            Member::new("a").in_lane("docs"),
            Member::new("b").in_lane("ci"),
            Member::new("c").in_lane("docs"),
            Member::new("d"),
        ];
        let g = Group::new(GroupSpec::new("g", members)).unwrap();
        assert_eq!(g.lanes().iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["ci", "docs"]);
    }
}
