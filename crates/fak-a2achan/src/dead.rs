//! What is kept for the host to look at: dead letters and held messages (§4.4, §4.10). Bounded,
//! and bounded per sender, so that one sender's cannot push out another's.

use std::collections::{BTreeMap, VecDeque};

use fak_abi::Id;

/// A bounded record of things that belong to senders. Full: the oldest of the same sender goes;
/// if the sender has none, the oldest of whoever has most.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    items: VecDeque<(Id, T)>,
    counts: BTreeMap<Id, usize>,
    limit: usize,
    per_sender: usize,
}

impl<T> Shelf<T> {
    pub(crate) fn new(limit: usize, per_sender: usize) -> Self {
        Self { items: VecDeque::new(), counts: BTreeMap::new(), limit, per_sender }
    }

    pub(crate) fn put(&mut self, sender: &Id, item: T) {
        if self.limit == 0 || self.per_sender == 0 {
            return;
        }
        let own = self.counts.get(sender).copied().unwrap_or(0);
        if own >= self.per_sender || (self.items.len() >= self.limit && own > 0) {
            self.evict(&sender.clone());
        } else if self.items.len() >= self.limit
            && let Some(most) = self.counts.iter().max_by_key(|(_, count)| **count).map(|(id, _)| id.clone())
        {
            self.evict(&most);
        }
        *self.counts.entry(sender.clone()).or_default() += 1;
        self.items.push_back((sender.clone(), item));
    }

    fn evict(&mut self, sender: &Id) {
        let Some(at) = self.items.iter().position(|(id, _)| id == sender) else { return };
        self.items.remove(at);
        if let Some(count) = self.counts.get_mut(sender) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(sender);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_same_sender_goes() {
        let [a, b] = ["a", "b"].map(|id| Id::new(id).unwrap());
        let mut shelf = Shelf::new(4, 3);
        shelf.put(&b, 0);
        (1..=5).for_each(|n| shelf.put(&a, n));
        assert_eq!(shelf.iter().copied().collect::<Vec<_>>(), [0, 3, 4, 5]);
        // Full: whoever has none makes room at the expense of whoever has most.
        let c = Id::new("c").unwrap();
        shelf.put(&c, 9);
        assert_eq!(shelf.iter().copied().collect::<Vec<_>>(), [0, 4, 5, 9]);
    }
}
