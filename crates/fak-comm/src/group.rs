//! Groups: who takes part, in which rank, with which weight and lane. Ranks are a function of the set of ids
//! and of nothing else. Acts over a group live beside this module.

use std::sync::Arc;

use fak_abi::Id;

use crate::error::CommError;

/// One member of a group: its id, the lane it works in, and its weight in votes and means (§6.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    id: Id,
    lane: Option<Id>,
    weight: f64,
}

impl Member {
    /// A member of weight 1 without a lane.
    #[must_use]
    pub const fn new(id: Id) -> Self {
        Self { id, lane: None, weight: 1.0 }
    }

    /// The same member working in `lane`.
    #[must_use]
    pub fn in_lane(mut self, lane: Id) -> Self {
        self.lane = Some(lane);
        self
    }

    /// The same member with another weight.
    #[must_use]
    pub const fn weighing(mut self, weight: f64) -> Self {
        self.weight = weight;
        self
    }

    /// The member's id.
    #[must_use]
    pub const fn id(&self) -> &Id {
        &self.id
    }

    /// The lane it works in, if any.
    #[must_use]
    pub const fn lane(&self) -> Option<&Id> {
        self.lane.as_ref()
    }

    /// Its weight, finite and above zero once it is in a group.
    #[must_use]
    pub const fn weight(&self) -> f64 {
        self.weight
    }
}

/// What a group is made of (§6.1).
#[derive(Clone, Debug)]
pub struct GroupSpec {
    /// The group's name: its address is `group:name`.
    pub name: Id,
    /// The wave it belongs to.
    pub wave: Id,
    /// Trace id of whoever spawned it, if anybody did.
    pub parent: Option<Id>,
    /// The members in any order.
    pub members: Vec<Member>,
}

impl GroupSpec {
    /// A group whose wave is its own name and that has no parent.
    #[must_use]
    pub fn new(name: Id, members: Vec<Member>) -> Self {
        Self { wave: name.clone(), name, parent: None, members }
    }

    /// The same group in another wave.
    #[must_use]
    pub fn in_wave(mut self, wave: Id) -> Self {
        self.wave = wave;
        self
    }

    /// The same group with the trace id of its parent.
    #[must_use]
    pub fn under(mut self, parent: Id) -> Self {
        self.parent = Some(parent);
        self
    }
}

#[derive(Debug)]
struct Inner {
    name: Id,
    wave: Id,
    parent: Option<Id>,
    /// Sorted by id, byte-wise: the index is the rank.
    members: Vec<Member>,
}

/// A set of members, ranked by the byte-wise order of their ids (§6.1). Immutable; cloning shares it.
///
/// ```
/// use fak_abi::Id;
/// use fak_comm::{Group, GroupSpec, Member};
///
/// let member = |id| Id::new(id).map(Member::new);
/// let group = Group::new(GroupSpec::new(Id::new("wave")?, vec![member("bob")?, member("ann")?]))?;
/// // A rank is the place among the sorted ids, whoever came first.
/// assert_eq!((group.rank("ann"), group.rank("bob"), group.rank("cy")), (Some(0), Some(1), None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    inner: Arc<Inner>,
}

impl Group {
    /// Ranks the members of `spec`.
    ///
    /// # Errors
    ///
    /// [`CommError::Empty`] without members, [`CommError::Duplicate`] for an id listed twice, [`CommError::Weight`] for a weight that is
    /// not finite and above zero.
    ///
    /// # Complexity
    ///
    /// One sort of the members.
    pub fn new(spec: GroupSpec) -> Result<Self, CommError> {
        let GroupSpec { name, wave, parent, mut members } = spec;
        if members.is_empty() {
            return Err(CommError::Empty { what: "group" });
        }
        for member in &members {
            if !(member.weight.is_finite() && member.weight > 0.0) {
                return Err(CommError::Weight { member: member.id.clone(), weight: member.weight });
            }
        }
        members.sort_unstable_by(|a, b| a.id.as_bytes().cmp(b.id.as_bytes()));
        let mut before: Option<&Member> = None;
        for member in &members {
            if before.is_some_and(|b| b.id == member.id) {
                return Err(CommError::Duplicate { id: member.id.clone() });
            }
            before = Some(member);
        }
        Ok(Self { inner: Arc::new(Inner { name, wave, parent, members }) })
    }

    /// True if they are clones of one group.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &Id {
        &self.inner.name
    }

    /// The wave it belongs to.
    #[must_use]
    pub fn wave(&self) -> &Id {
        &self.inner.wave
    }

    /// Trace id of its parent, if it has one.
    #[must_use]
    pub fn parent(&self) -> Option<&Id> {
        self.inner.parent.as_ref()
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
    pub fn lanes(&self) -> Vec<Id> {
        let mut lanes: Vec<_> = self.inner.members.iter().filter_map(|m| m.lane.clone()).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    fn group(ids: &[&str]) -> Result<Group, CommError> {
        Group::new(GroupSpec::new(id("g"), ids.iter().map(|member| Member::new(id(member))).collect()))
    }

    #[test]
    fn ranks_follow_the_bytes_of_the_ids_not_a_collation() {
        let g = group(&["é", "b", "B", "a", "Z"]).unwrap();
        let ids: Vec<&str> = g.members().iter().map(|m| m.id().as_str()).collect();
        assert_eq!(ids, ["B", "Z", "a", "b", "é"]);
        assert_eq!(g.rank("a"), Some(2));
        assert_eq!(g.rank("c"), None);
    }

    #[test]
    fn a_group_of_nothing_and_a_repeated_id_are_errors() {
        assert_eq!(group(&[]).unwrap_err().kind(), "empty");
        assert_eq!(group(&["b", "a", "b"]).unwrap_err(), CommError::Duplicate { id: id("b") });
    }

    #[test]
    fn a_weight_is_finite_and_above_zero() {
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let members = vec![Member::new(id("a")).weighing(weight)];
            assert_eq!(Group::new(GroupSpec::new(id("g"), members)).unwrap_err().kind(), "weight");
        }
    }

    #[test]
    fn lanes_are_listed_once() {
        let members = vec![
            Member::new(id("a")).in_lane(id("docs")),
            Member::new(id("b")).in_lane(id("ci")),
            Member::new(id("c")).in_lane(id("docs")),
            Member::new(id("d")),
        ];
        let g = Group::new(GroupSpec::new(id("g"), members)).unwrap();
        assert_eq!(g.lanes(), [id("ci"), id("docs")]);
    }

    /// Every order of the items, by insertion.
    fn permutations(items: &[&'static str]) -> Vec<Vec<&'static str>> {
        items.iter().fold(vec![vec![]], |orders, item| {
            let insert = |order: &Vec<&'static str>, at: usize| {
                let mut order = order.clone();
                order.insert(at, *item);
                order
            };
            orders.iter().flat_map(|order| (0..=order.len()).map(|at| insert(order, at))).collect()
        })
    }

    #[test]
    fn every_permutation_ranks_alike() {
        let orders = permutations(&["b", "a", "aa", "B", "é", "z"]);
        assert_eq!(orders.len(), 720);
        for order in orders {
            let g = group(&order).unwrap();
            assert_eq!(g.rank("B"), Some(0));
            assert_eq!(g.rank("a"), Some(1));
            assert_eq!(g.rank("aa"), Some(2));
            assert_eq!(g.rank("é"), Some(5));
        }
    }

    proptest! {
        /// A rank is the number of ids that are smaller, whatever the order they came in.
        #[test]
        fn a_rank_counts_the_smaller_ids(ids in proptest::collection::hash_set("\\PC{1,6}", 1..12)) {
            let ids: Vec<Id> = ids.iter().filter_map(|text| Id::new(text).ok()).collect();
            prop_assume!(!ids.is_empty());
            let g = Group::new(GroupSpec::new(id("g"), ids.iter().cloned().map(Member::new).collect())).unwrap();
            for one in &ids {
                let smaller = ids.iter().filter(|other| other.as_bytes() < one.as_bytes()).count();
                prop_assert_eq!(g.rank(one), Some(smaller));
                prop_assert_eq!(g.member(smaller).unwrap().id(), one);
            }
        }
    }
}
