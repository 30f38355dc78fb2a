//! The cells one audience shares, and who watches them: what stands under one lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::task::Waker;

use fak_abi::{Id, Ref};

use super::CellView;
use super::watch::{CellEvent, Queue};

/// What happened to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Made,
    Replaced,
    Deleted,
}

/// One cell.
pub(super) struct Cell {
    pub(super) body: Ref,
    pub(super) version: u64,
    pub(super) writer: Id,
    /// Whose count it is on: who made it.
    pub(super) owner: Id,
}

/// Cells by key, and the queues of those who watch.
#[derive(Default)]
pub(super) struct Room {
    pub(super) cells: BTreeMap<Id, Cell>,
    queues: Vec<Weak<Queue>>,
}

impl Room {
    pub(super) fn version(&self, key: &Id) -> Option<u64> {
        self.cells.get(key).map(|cell| cell.version)
    }

    pub(super) fn owner(&self, key: &Id) -> Option<Id> {
        self.cells.get(key).map(|cell| cell.owner.clone())
    }

    pub(super) fn view(&self, key: &Id) -> Option<CellView> {
        let cell = self.cells.get(key)?;
        Some(CellView { body: cell.body.clone(), version: cell.version, writer: cell.writer.clone() })
    }

    /// The keys under a prefix, in order, with their versions.
    pub(super) fn under(&self, prefix: Option<&Id>) -> Vec<(Id, u64)> {
        self.cells
            .iter()
            .filter(|(key, _)| is_under(key, prefix))
            .map(|(key, cell)| (key.clone(), cell.version))
            .collect()
    }

    pub(super) fn join(&mut self, queue: &Arc<Queue>) {
        self.queues.retain(|queue| queue.strong_count() > 0);
        self.queues.push(Arc::downgrade(queue));
    }

    /// Tells the watchers, under the lock that orders the changes; they are woken without it.
    pub(super) fn publish(&mut self, key: &Id, version: u64, change: Change, writer: &Id) -> Vec<Waker> {
        let mut waiting = Vec::new();
        self.queues.retain(|queue| match queue.upgrade() {
            None => false,
            Some(queue) => {
                if is_under(key, queue.prefix()) {
                    let event = CellEvent::new(key.clone(), version, change, writer.clone());
                    waiting.extend(queue.push(event));
                }
                true
            }
        });
        waiting
    }

    /// Wakes everybody who waits for a change here.
    pub(super) fn wakers(&self) -> Vec<Waker> {
        self.queues.iter().filter_map(Weak::upgrade).filter_map(|queue| queue.waker()).collect()
    }
}

/// Whether a key is a prefix or lies under it, by whole components.
pub(super) fn is_under(key: &str, prefix: Option<&Id>) -> bool {
    let Some(prefix) = prefix else { return true };
    key.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_count_whole_components() {
        let plan = Id::new("plan").unwrap();
        for (key, under) in [("plan", true), ("plan/a", true), ("planner", false), ("a/plan", false)] {
            assert_eq!(is_under(key, Some(&plan)), under, "{key}");
            assert!(is_under(key, None));
        }
    }
}
