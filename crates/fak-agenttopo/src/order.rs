//! What the order of a topology says: its waves and its longest chain.

use fak_comm::Member;

use crate::topology::Topology;

impl Topology {
    /// The members in waves: each as early as all it takes from allow, in rank order within a wave.
    ///
    /// # Complexity
    ///
    /// Linear in members and edges.
    #[must_use]
    pub fn waves(&self) -> Vec<Vec<&Member>> {
        let mut level = vec![0usize; self.group().size()];
        let mut last = 0;
        for rank in self.order() {
            let before = self.incoming().ranks(*rank).filter_map(|r| level.get(r as usize)).max();
            let own = before.map_or(0, |before| before + 1);
            last = last.max(own);
            if let Some(slot) = level.get_mut(*rank as usize) {
                *slot = own;
            }
        }
        let mut waves = vec![Vec::new(); last + 1];
        for (member, level) in self.group().members().iter().zip(level) {
            if let Some(wave) = waves.get_mut(level) {
                wave.push(member);
            }
        }
        waves
    }

    /// The longest chain of members, each handing to the next; of several, the one whose ids are smallest from
    /// the start.
    ///
    /// # Complexity
    ///
    /// Linear in members and edges.
    #[must_use]
    pub fn critical_path(&self) -> Vec<&Member> {
        // How many members the longest chain from here has.
        let mut tail = vec![0usize; self.group().size()];
        for rank in self.order().iter().rev() {
            let after = self.out().ranks(*rank).filter_map(|r| tail.get(r as usize)).max();
            let own = after.map_or(1, |after| after + 1);
            if let Some(slot) = tail.get_mut(*rank as usize) {
                *slot = own;
            }
        }
        let longest = tail.iter().max().copied().unwrap_or(0);
        let mut path = Vec::with_capacity(longest);
        let mut at = (0u32..).zip(&tail).find(|(_, own)| **own == longest).map(|(rank, _)| rank);
        while let Some(rank) = at {
            path.extend(self.member(rank));
            let rest = longest.saturating_sub(path.len());
            at = self.out().ranks(rank).filter(|r| rest > 0 && tail.get(*r as usize) == Some(&rest)).min();
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use fak_abi::Id;
    use fak_comm::{Group, GroupSpec};
    use proptest::prelude::*;

    use super::*;

    fn id(n: usize) -> Id {
        Id::new(&format!("n{n:07}")).unwrap()
    }

    fn topology(size: usize, edges: Vec<(u32, u32)>) -> Topology {
        let group =
            Group::new(GroupSpec::new(id(0), (0..size).map(|n| Member::new(id(n))).collect())).unwrap();
        Topology::of_ranks(id(0), group, edges).unwrap()
    }

    fn numbers(members: &[&Member]) -> Vec<usize> {
        members.iter().map(|m| m.id().trim_start_matches('n').parse().unwrap()).collect()
    }

    /// §6.8.
    #[test]
    fn waves_are_as_early_as_their_inputs_allow() {
        let t = topology(6, vec![(5, 1), (1, 0), (5, 0), (2, 0), (0, 3)]);
        let waves: Vec<_> = t.waves().iter().map(|wave| numbers(wave)).collect();
        assert_eq!(waves, [vec![2, 4, 5], vec![1], vec![0], vec![3]]);
        assert_eq!(numbers(&t.critical_path()), [5, 1, 0, 3]);
    }

    #[test]
    fn of_equal_chains_the_smallest_ids_are_named() {
        let t = topology(6, vec![(3, 5), (0, 4), (0, 2), (1, 2)]);
        assert_eq!(numbers(&t.critical_path()), [0, 2]);
        assert_eq!(numbers(&topology(3, vec![]).critical_path()), [0]);
    }

    #[test]
    fn a_chain_of_a_million_works() {
        let size = 1_000_000;
        let members = (0..size).map(|n| Member::new(id(n))).collect();
        let t = Topology::linear(id(0), Group::new(GroupSpec::new(id(0), members)).unwrap()).unwrap();
        assert_eq!(t.waves().len(), size);
        assert_eq!(t.critical_path().len(), size);
    }

    proptest! {
        /// Against the longest chain found by trying every start, on graphs whose edges point to higher ranks.
        #[test]
        fn the_critical_path_is_a_longest_chain(pairs in proptest::collection::btree_set((0u32..7, 0u32..7), 0..16)) {
            let edges: Vec<_> = pairs.into_iter().filter(|(from, to)| from < to).collect();
            let t = topology(7, edges.clone());
            let mut longest = [1usize; 7];
            for (from, to) in edges.iter().rev() {
                longest[*from as usize] = longest[*from as usize].max(longest[*to as usize] + 1);
            }
            let path = numbers(&t.critical_path());
            prop_assert_eq!(path.len(), *longest.iter().max().unwrap());
            prop_assert_eq!(t.waves().len(), path.len());
            for step in path.windows(2) {
                prop_assert!(edges.contains(&(step[0] as u32, step[1] as u32)));
            }
            let waves = t.waves();
            let level = |n: u32| waves.iter().position(|w| numbers(w).contains(&(n as usize))).unwrap();
            for (from, to) in edges {
                prop_assert!(level(from) < level(to));
            }
        }
    }
}
