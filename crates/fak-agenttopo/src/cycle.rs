//! Naming a cycle: which members close it, in order. Only run once it is known that there is one.

use crate::adjacency::Adjacency;

/// The members of one cycle in the order of its edges, the smallest rank first; empty if there is none.
/// Iterative and linear.
pub(crate) fn find_cycle(size: usize, out: &Adjacency, into: &Adjacency) -> Vec<u32> {
    // Peel off, again and again, whoever follows nobody that is left. Who remains has somebody before it, so that
    // walking backwards from any of them must come round.
    let mut left: Vec<usize> = (0..).zip(0..size).map(|(rank, _)| into.of(rank).len()).collect();
    let mut ready: Vec<u32> =
        (0..).zip(&left).filter(|(_, before)| **before == 0).map(|(rank, _)| rank).collect();
    while let Some(rank) = ready.pop() {
        for next in out.ranks(rank) {
            if let Some(before) = left.get_mut(next as usize) {
                *before -= 1;
                if *before == 0 {
                    ready.push(next);
                }
            }
        }
    }
    let remains = |rank: u32| left.get(rank as usize).is_some_and(|before| *before > 0);
    let Some(mut at) = (0..).zip(&left).find(|(_, before)| **before > 0).map(|(rank, _)| rank) else {
        return Vec::new();
    };
    let mut walked = Vec::new();
    let mut place = vec![None; size];
    let back = loop {
        match place.get_mut(at as usize) {
            Some(Some(first)) => break *first,
            Some(unseen) => *unseen = Some(walked.len()),
            None => return Vec::new(),
        }
        walked.push(at);
        let Some(before) = into.ranks(at).filter(|rank| remains(*rank)).min() else { return Vec::new() };
        at = before;
    };
    let mut cycle = walked.split_off(back);
    cycle.reverse();
    let smallest = (0..).zip(&cycle).min_by_key(|(_, rank)| **rank).map_or(0, |(at, _)| at);
    cycle.rotate_left(smallest);
    cycle
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sides(size: usize, edges: &[(u32, u32)]) -> (Adjacency, Adjacency) {
        let out = Adjacency::new(size, edges.iter().copied());
        (out, Adjacency::new(size, edges.iter().map(|(from, to)| (*to, *from))))
    }

    /// §6.8.
    #[test]
    fn the_cycle_is_named_in_the_order_of_its_edges() {
        // 4 leads into the cycle 1 -> 3 -> 2 -> 1, which leads to 0.
        let (out, into) = sides(5, &[(4, 3), (3, 2), (2, 1), (1, 3), (1, 0)]);
        assert_eq!(find_cycle(5, &out, &into), [1, 3, 2]);
    }

    #[test]
    fn a_cycle_of_a_million_is_found_without_recursion() {
        let size = 1_000_000;
        let edges: Vec<(u32, u32)> = (0..size).map(|n| (n, (n + 1) % size)).collect();
        let (out, into) = sides(size as usize, &edges);
        let cycle = find_cycle(size as usize, &out, &into);
        assert_eq!(cycle.len(), size as usize);
        assert_eq!(cycle.get(..3), Some(&[0, 1, 2][..]));
    }

    proptest! {
        /// What is found closes by edges; nothing is found exactly where every edge can point forward.
        #[test]
        fn what_is_found_is_a_cycle(edges in proptest::collection::vec((0u32..7, 0u32..7), 0..14)) {
            let edges: Vec<_> = edges.into_iter().filter(|(from, to)| from != to).collect();
            let (out, into) = sides(7, &edges);
            let cycle = find_cycle(7, &out, &into);
            // Reachability by seven rounds of relaxing, the slow way.
            let mut reach = edges.clone();
            for _ in 0..7 {
                let longer: Vec<_> = reach.iter()
                    .flat_map(|(a, b)| edges.iter().filter(move |(c, _)| b == c).map(move |(_, d)| (*a, *d)))
                    .collect();
                reach.extend(longer);
                reach.sort_unstable();
                reach.dedup();
            }
            prop_assert_eq!(cycle.is_empty(), !reach.iter().any(|(a, b)| a == b));
            for (at, from) in cycle.iter().enumerate() {
                prop_assert!(edges.contains(&(*from, cycle[(at + 1) % cycle.len()])));
            }
            prop_assert!(cycle.first() == cycle.iter().min());
        }
    }
}
