//! Who follows whom, in declaration order: one flat list and where each member's share of it begins. Members are
//! ranks here; ids are the topology's.

/// Neighbours of every rank in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Adjacency {
    /// One more entry than there are ranks; rank `r` owns `starts[r]..starts[r + 1]`.
    starts: Vec<usize>,
    /// Neighbour and place of the edge in the declaration.
    ends: Vec<(u32, u32)>,
}

impl Adjacency {
    /// Sorts `edges` by their first end, keeping their order: linear, no comparison.
    pub(crate) fn new(size: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0; size + 1];
        for (from, _) in edges.clone() {
            if let Some(count) = starts.get_mut(from as usize + 1) {
                *count += 1;
            }
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let mut next = starts.clone();
        let mut ends = vec![(0, 0); total];
        for (place, (from, to)) in (0..).zip(edges) {
            if let Some(at) = next.get_mut(from as usize) {
                if let Some(end) = ends.get_mut(*at) {
                    *end = (to, place);
                }
                *at += 1;
            }
        }
        Self { starts, ends }
    }

    /// The neighbours of `rank` with the place of each edge, in declaration order.
    pub(crate) fn of(&self, rank: u32) -> &[(u32, u32)] {
        let from = self.starts.get(rank as usize).copied();
        let to = self.starts.get(rank as usize + 1).copied();
        from.zip(to).and_then(|(from, to)| self.ends.get(from..to)).unwrap_or_default()
    }

    /// The neighbours of `rank` in declaration order.
    pub(crate) fn ranks(&self, rank: u32) -> impl ExactSizeIterator<Item = u32> {
        self.of(rank).iter().map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_keep_the_order_they_were_declared_in() {
        let edges = [(0, 2), (1, 0), (0, 1), (3, 0)];
        let out = Adjacency::new(4, edges.into_iter());
        assert_eq!(out.of(0), [(2, 0), (1, 2)]);
        assert_eq!(out.ranks(1).collect::<Vec<_>>(), [0]);
        assert!(out.of(2).is_empty() && out.of(9).is_empty());
        let into = Adjacency::new(4, edges.into_iter().map(|(from, to)| (to, from)));
        assert_eq!(into.ranks(0).collect::<Vec<_>>(), [1, 3]);
    }
}
