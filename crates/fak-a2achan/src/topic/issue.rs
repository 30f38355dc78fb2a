//! One publication while it is queued: kept once, however many have yet to take it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::entry::Entry;

/// What was published. Receivers hold it as well, so it outlives the queues it was in.
#[derive(Debug)]
pub(crate) struct Issue {
    entry: Entry,
    /// The queues it is in. Its bytes are the publisher's until it is in none (§4.12): once, as
    /// they are stored once.
    queues: AtomicU32,
}

impl Issue {
    pub(crate) const fn entry(&self) -> &Entry {
        &self.entry
    }
}

/// A publication's place in one queue. Has to [leave](Queued::leave) it.
#[derive(Debug)]
#[must_use]
pub(super) struct Queued(Arc<Issue>);

impl Queued {
    /// In the first queue. Its bytes have been charged to its route.
    pub(super) fn first(entry: Entry) -> Self {
        Self(Arc::new(Issue { entry, queues: AtomicU32::new(1) }))
    }

    /// In one more.
    pub(super) fn another(&self) -> Self {
        self.0.queues.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.0.entry
    }

    /// What a receiver gets that leaves it in the queue for others.
    #[inline]
    pub(super) fn share(&self) -> Arc<Issue> {
        Arc::clone(&self.0)
    }

    /// Out of this queue; out of the last, its bytes are the publisher's no more.
    pub(super) fn leave(self) -> Arc<Issue> {
        if self.0.queues.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.entry.route.leave_shared(self.0.entry.body.len());
        }
        self.0
    }
}
