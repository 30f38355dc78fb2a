//! Watching cells: every change under a prefix, in order and once; a watcher that is too slow is told what it missed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fak_abi::{AgentHandle, Id, Outcome, Reason, Refusal, ShareScope};
use parking_lot::Mutex;

use super::Core;
use super::driver::{DETACHED, SPACE};
use super::room::{Change, Room};

/// What happened to a cell (§5.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellChange {
    /// It was made.
    Put,
    /// Its body was replaced.
    Cas,
    /// It was deleted.
    Delete,
}

impl CellChange {
    /// The verb that makes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Cas => "cas",
            Self::Delete => "delete",
        }
    }
}

/// One change of one cell (§5.11). The body is read with `get`, which is an act of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellEvent {
    /// The cell.
    pub key: Id,
    /// The version the change made.
    pub version: u64,
    /// What happened.
    pub change: CellChange,
    /// Who did it.
    pub writer: Id,
    /// How many changes before this one were lost because the watcher was too slow.
    pub missed: u64,
}

impl CellEvent {
    pub(super) fn new(key: Id, version: u64, change: Change, writer: Id) -> Self {
        let change = match change {
            Change::Made => CellChange::Put,
            Change::Replaced => CellChange::Cas,
            Change::Deleted => CellChange::Delete,
        };
        Self { key, version, change, writer, missed: 0 }
    }
}

/// The queue between a room and one watch.
pub(super) struct Queue {
    prefix: Option<Id>,
    backlog: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<CellEvent>,
    /// Lost since the last event that was kept.
    missed: u64,
    waker: Option<Waker>,
}

impl Queue {
    pub(super) fn prefix(&self) -> Option<&Id> {
        self.prefix.as_ref()
    }

    /// Keeps the newest: the oldest kept event gives way and is counted.
    pub(super) fn push(&self, event: CellEvent) -> Option<Waker> {
        let mut inner = self.inner.lock();
        if inner.events.len() >= self.backlog {
            inner.missed += 1 + inner.events.pop_front().map_or(0, |lost| lost.missed);
            // The loss is told with the next event, which now is the oldest kept, or this one.
            let missed = std::mem::take(&mut inner.missed);
            match inner.events.front_mut() {
                Some(next) => next.missed += missed,
                None => inner.missed = missed,
            }
        }
        let missed = std::mem::take(&mut inner.missed);
        inner.events.push_back(CellEvent { missed, ..event });
        inner.waker.take()
    }

    pub(super) fn waker(&self) -> Option<Waker> {
        self.inner.lock().waker.take()
    }

    fn take(&self, cx: Option<&mut Context<'_>>) -> Option<CellEvent> {
        // Dropped once the lock is: the last waker of a task may drop the task.
        let _stale;
        let mut inner = self.inner.lock();
        let event = inner.events.pop_front();
        if event.is_none() {
            _stale = std::mem::replace(&mut inner.waker, cx.map(|cx| cx.waker().clone()));
        }
        event
    }
}

/// A watch on the cells under a prefix (§5.11). Dropping it ends it.
pub struct CellWatch {
    core: Arc<Core>,
    agent: AgentHandle,
    queue: Arc<Queue>,
    scope: ShareScope,
    /// Keeps the room while it is watched.
    _room: Arc<Mutex<Room>>,
}

impl CellWatch {
    pub(super) fn new(
        core: Arc<Core>,
        agent: AgentHandle,
        room: Arc<Mutex<Room>>,
        prefix: Option<&Id>,
        scope: ShareScope,
        backlog: usize,
    ) -> Self {
        let queue =
            Arc::new(Queue { prefix: prefix.cloned(), backlog: backlog.max(1), inner: Mutex::default() });
        room.lock().join(&queue);
        Self { core, agent, queue, scope, _room: room }
    }

    /// The scope it watches.
    #[must_use]
    pub fn scope(&self) -> ShareScope {
        self.scope
    }

    /// The next change, if there is one. Once the watcher is detached: DEFAULT_DENY.
    pub fn try_next(&mut self) -> Outcome<Option<CellEvent>> {
        self.step(None)
    }

    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the change is handed over by the next call.
    pub async fn next(&mut self) -> Outcome<CellEvent> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`CellWatch::next`], for hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<CellEvent>> {
        match self.step(Some(cx)) {
            Outcome::Allow { value: Some(value), by } => Poll::Ready(Outcome::Allow { value, by }),
            Outcome::Allow { value: None, .. } => Poll::Pending,
            Outcome::Refuse(verdict) => Poll::Ready(Outcome::Refuse(verdict)),
        }
    }

    fn step(&mut self, cx: Option<&mut Context<'_>>) -> Outcome<Option<CellEvent>> {
        let gone = |agent: &AgentHandle| !agent.principal().is_attached();
        let deny = || Outcome::deny(Refusal::new(Reason::DefaultDeny, DETACHED.site()), SPACE);
        if gone(&self.agent) {
            return deny();
        }
        let event = self.queue.take(cx);
        // Detached while the waker was being left: whoever detaches wakes those who had left theirs by then.
        if event.is_none() && gone(&self.agent) {
            return deny();
        }
        Outcome::Allow { value: event, by: SPACE }
    }
}

impl Drop for CellWatch {
    fn drop(&mut self) {
        self.core.give_watch_back(self.agent.principal().id());
    }
}

impl std::fmt::Debug for CellWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CellWatch")
            .field("prefix", &self.queue.prefix)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_keeps_the_newest_and_says_what_it_lost() {
        let queue = Queue { prefix: None, backlog: 2, inner: Mutex::default() };
        for version in 1..=5 {
            queue.push(CellEvent::new(Id::new("k").unwrap(), version, Change::Made, Id::new("w").unwrap()));
        }
        let got: Vec<_> = std::iter::from_fn(|| queue.take(None)).map(|e| (e.version, e.missed)).collect();
        assert_eq!(got, [(4, 3), (5, 0)]);
        let one = Queue { prefix: None, backlog: 1, inner: Mutex::default() };
        for version in 1..=3 {
            one.push(CellEvent::new(Id::new("k").unwrap(), version, Change::Made, Id::new("w").unwrap()));
        }
        assert_eq!(one.take(None).map(|e| (e.version, e.missed)), Some((3, 2)));
    }
}
