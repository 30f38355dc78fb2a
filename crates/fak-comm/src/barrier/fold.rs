//! The fold itself: who has arrived, who is gone, who is missing. Pure state; the acts that feed it, and waiting for
//! it, are beside this file.

use fak_abi::{Digest, Id};

use crate::group::Group;

/// What a member shows on arriving (§6.5).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Witness {
    /// The wave it believes to be in.
    pub wave: Id,
    /// Its rank.
    pub rank: usize,
    /// The size of the group it believes to be in.
    pub size: usize,
    /// Its id.
    pub id: Id,
    /// The lane it works in.
    pub lane: Option<Id>,
    /// Digest of the evidence of its work, if it has any.
    pub evidence: Option<Digest>,
}

impl Witness {
    /// What the member at `rank` of `group` shows.
    #[must_use]
    pub fn of(group: &Group, rank: usize) -> Option<Self> {
        let member = group.member(rank)?;
        Some(Self {
            wave: group.wave().clone(),
            rank,
            size: group.size(),
            id: member.id().clone(),
            lane: member.lane().cloned(),
            evidence: None,
        })
    }

    /// The same with the digest of some evidence.
    #[must_use]
    pub const fn showing(mut self, evidence: Digest) -> Self {
        self.evidence = Some(evidence);
        self
    }
}

/// What an arrival comes to (§6.5). Everything but `Count` is a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Arrival {
    /// It counts.
    Count,
    /// From another wave: MISROUTE.
    OtherWave,
    /// For another's rank, or from no member: TRUST_VIOLATION.
    NotYours,
    /// After being declared gone: TRUST_VIOLATION.
    Gone,
    /// A second time: MALFORMED.
    Twice,
    /// Size or lane are not the group's: MALFORMED.
    Mismatch,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Slot {
    Missing,
    Arrived(Option<Digest>),
    Gone,
}

/// Who of a group has arrived at a barrier, and who is gone (§6.5).
#[derive(Clone, Debug)]
pub struct BarrierFold {
    group: Group,
    slots: Vec<Slot>,
    missing: usize,
}

impl BarrierFold {
    /// A barrier of `group` at which nobody has arrived.
    #[must_use]
    pub fn new(group: Group) -> Self {
        Self { slots: vec![Slot::Missing; group.size()], missing: group.size(), group }
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// What an arrival of `actor` with this witness would come to.
    pub fn judge(&self, actor: &str, witness: &Witness) -> Arrival {
        if witness.wave != *self.group.wave() {
            return Arrival::OtherWave;
        }
        let Some(member) =
            self.group.member(witness.rank).filter(|m| **m.id() == *actor && *witness.id == *actor)
        else {
            return Arrival::NotYours;
        };
        match self.slots.get(witness.rank) {
            Some(Slot::Gone) | None => Arrival::Gone,
            Some(Slot::Arrived(_)) => Arrival::Twice,
            Some(Slot::Missing)
                if witness.size != self.group.size() || witness.lane.as_ref() != member.lane() =>
            {
                Arrival::Mismatch
            }
            Some(Slot::Missing) => Arrival::Count,
        }
    }

    /// Judges an arrival and counts it if it counts.
    pub fn arrive(&mut self, actor: &str, witness: &Witness) -> Arrival {
        let arrival = self.judge(actor, witness);
        if arrival == Arrival::Count
            && let Some(slot) = self.slots.get_mut(witness.rank)
        {
            *slot = Slot::Arrived(witness.evidence);
            self.missing -= 1;
        }
        arrival
    }

    /// Declares the member at `rank` gone. One that has arrived stays arrived. False if nothing changed.
    pub fn depart(&mut self, rank: usize) -> bool {
        match self.slots.get_mut(rank) {
            Some(slot @ Slot::Missing) => {
                *slot = Slot::Gone;
                self.missing -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether every rank has arrived or is gone.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Ids of those who have neither arrived nor gone, in rank order.
    pub fn missing(&self) -> impl Iterator<Item = &Id> {
        self.ids(|slot| *slot == Slot::Missing)
    }

    /// Ids of those declared gone, in rank order.
    pub fn gone(&self) -> impl Iterator<Item = &Id> {
        self.ids(|slot| *slot == Slot::Gone)
    }

    /// Ids of those who have arrived, in rank order, each with the digest it showed.
    pub fn arrived(&self) -> impl Iterator<Item = (&Id, Option<Digest>)> {
        self.group.members().iter().zip(&self.slots).filter_map(|(member, slot)| match slot {
            Slot::Arrived(evidence) => Some((member.id(), *evidence)),
            Slot::Missing | Slot::Gone => None,
        })
    }

    fn ids(&self, pick: impl Fn(&Slot) -> bool) -> impl Iterator<Item = &Id> {
        let picked = self.group.members().iter().zip(&self.slots).filter(move |(_, slot)| pick(slot));
        picked.map(|(member, _)| member.id())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::group::{GroupSpec, Member};

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    fn group(size: usize) -> Group {
        let members = (0..size).map(|n| Member::new(id(&format!("m{n}"))).in_lane(id("docs"))).collect();
        Group::new(GroupSpec::new(id("g"), members)).unwrap()
    }

    #[test]
    fn who_may_not_arrive_and_why() {
        let mut barrier = BarrierFold::new(group(3));
        let own = |rank| Witness::of(&group(3), rank).unwrap();
        let mut other = own(0);
        other.wave = id("w2");
        assert_eq!(barrier.arrive("m0", &other), Arrival::OtherWave);
        assert_eq!(barrier.arrive("m1", &own(0)), Arrival::NotYours);
        assert_eq!(barrier.arrive("zz", &own(0)), Arrival::NotYours);
        let mut borrowed = own(0);
        borrowed.rank = 1;
        assert_eq!(barrier.arrive("m0", &borrowed), Arrival::NotYours);
        borrowed.rank = 99;
        assert_eq!(barrier.arrive("m0", &borrowed), Arrival::NotYours);
        let mut wrong = own(0);
        wrong.size = 4;
        assert_eq!(barrier.arrive("m0", &wrong), Arrival::Mismatch);
        wrong = own(0);
        wrong.lane = None;
        assert_eq!(barrier.arrive("m0", &wrong), Arrival::Mismatch);
        assert_eq!(barrier.arrive("m0", &own(0).showing(Digest::of(b"evidence"))), Arrival::Count);
        assert_eq!(barrier.arrive("m0", &own(0)), Arrival::Twice);
        assert!(barrier.depart(1));
        assert_eq!(barrier.arrive("m1", &own(1)), Arrival::Gone);
        assert_eq!(barrier.missing().map(Id::as_str).collect::<Vec<_>>(), ["m2"]);
        assert!(!barrier.is_complete());
        assert_eq!(barrier.arrive("m2", &own(2)), Arrival::Count);
        assert!(barrier.is_complete());
        assert_eq!(barrier.gone().map(Id::as_str).collect::<Vec<_>>(), ["m1"]);
        assert_eq!(barrier.arrived().count(), 2);
    }

    #[test]
    fn one_that_arrived_stays_arrived_and_departs_once() {
        let mut barrier = BarrierFold::new(group(2));
        assert_eq!(barrier.arrive("m0", &Witness::of(&group(2), 0).unwrap()), Arrival::Count);
        assert!(!barrier.depart(0) && barrier.depart(1) && !barrier.depart(1) && !barrier.depart(7));
        assert!(barrier.is_complete());
        assert_eq!(barrier.gone().count(), 1);
    }

    proptest! {
        /// Complete exactly when every rank is in the set of those that arrived or departed.
        #[test]
        fn complete_means_everybody(size in 1usize..6, acts in proptest::collection::vec((0usize..6, 0usize..6, any::<bool>()), 0..24)) {
            let group = group(size);
            let mut barrier = BarrierFold::new(group.clone());
            let (mut arrived, mut gone) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
            for (actor, rank, departs) in acts {
                if departs {
                    if rank < size && !arrived.contains(&rank) {
                        gone.insert(rank);
                    }
                    barrier.depart(rank);
                } else if let Some(witness) = Witness::of(&group, rank) {
                    let counts = actor == rank && !arrived.contains(&rank) && !gone.contains(&rank);
                    prop_assert_eq!(barrier.arrive(&format!("m{actor}"), &witness) == Arrival::Count, counts);
                    if counts {
                        arrived.insert(rank);
                    }
                }
                prop_assert_eq!(barrier.is_complete(), arrived.len() + gone.len() == size);
                prop_assert_eq!(barrier.missing().count(), size - arrived.len() - gone.len());
                prop_assert_eq!(barrier.gone().count(), gone.len());
            }
        }
    }
}
