//! What a subscriber has for itself: copies in order, and those that it keeps until they are
//! acknowledged (§4.4). All of them take a slot.

use std::collections::VecDeque;
use std::sync::Arc;

use fak_abi::Timestamp;

use super::cohort::Taken;
use super::issue::{Issue, Queued};
use crate::mailbox::Terms;

/// One copy, and how often it was put back.
pub(super) struct Lot {
    copy: Queued,
    returns: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct Own {
    queue: VecDeque<Lot>,
    kept: Vec<Kept>,
    tokens: u64,
}

/// A copy that its subscriber keeps.
pub(super) struct Kept {
    token: u64,
    /// `None` while it is not known whether it may be handed over.
    terms: Option<Terms>,
    lot: Lot,
    /// What was told with it.
    pub(super) missed: u64,
}

/// More room than this is given back once it is not needed.
const SPARE: usize = 32;

impl Lot {
    pub(super) const fn new(copy: Queued) -> Self {
        Self { copy, returns: 0 }
    }

    pub(super) fn leave(self) -> (Arc<Issue>, u32) {
        (self.copy.leave(), self.returns)
    }
}

impl Kept {
    /// True if its time with the subscriber is over.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.terms.is_some_and(|terms| now >= terms.until)
    }

    pub(super) fn into_issue(self) -> Arc<Issue> {
        self.lot.copy.leave()
    }
}

impl Own {
    /// Slots taken.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.kept.len()
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn push(&mut self, lot: Lot) {
        self.queue.push_back(lot);
    }

    pub(super) fn pop(&mut self) -> Option<Lot> {
        self.queue.pop_front()
    }

    /// Takes the oldest copy out but keeps its slot.
    pub(super) fn keep(&mut self, terms: Option<Terms>, missed: u64) -> Option<Taken> {
        let lot = self.queue.pop_front()?;
        self.tokens += 1;
        let taken = Taken { copy: lot.copy.share(), missed, returns: lot.returns, token: self.tokens };
        self.kept.push(Kept { token: self.tokens, terms, lot, missed });
        Some(taken)
    }

    /// The copy that is kept under `token`.
    pub(super) fn take_kept(&mut self, token: u64) -> Option<Kept> {
        let at = self.kept.iter().position(|kept| kept.token == token)?;
        Some(self.kept.swap_remove(at))
    }

    /// A copy whose time with the subscriber is over.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<Kept> {
        let at = self.kept.iter().position(|kept| kept.is_due(now))?;
        Some(self.kept.swap_remove(at))
    }

    /// Back to its place; counted, unless it was not the subscriber's doing. Worn out, it comes
    /// back instead.
    pub(super) fn put_back(&mut self, kept: Kept, counted: bool) -> Option<Arc<Issue>> {
        let Kept { terms, mut lot, .. } = kept;
        if counted {
            lot.returns = lot.returns.saturating_add(1);
            if terms.is_some_and(|terms| lot.returns > terms.redeliveries) {
                return Some(lot.copy.leave());
            }
        }
        let at = self.queue.partition_point(|other| other.copy.entry().seq < lot.copy.entry().seq);
        self.queue.insert(at, lot);
        None
    }

    /// Takes out what has had its time, but for what is kept.
    pub(super) fn expire(&mut self, now: Timestamp, expired: &mut Vec<Arc<Issue>>) {
        if !self.queue.iter().any(|lot| lot.copy.entry().is_expired(now)) {
            return;
        }
        for lot in std::mem::take(&mut self.queue) {
            if lot.copy.entry().is_expired(now) {
                expired.push(lot.copy.leave());
            } else {
                self.queue.push_back(lot);
            }
        }
    }

    /// Gives room back that is not needed any more.
    pub(super) fn shrink(&mut self) {
        if self.queue.capacity() > SPARE {
            self.queue = VecDeque::new();
        }
    }

    /// Everything, in order.
    pub(super) fn into_issues(self) -> Vec<Arc<Issue>> {
        let mut issues: Vec<_> = self.queue.into_iter().map(|lot| lot.copy.leave()).collect();
        issues.extend(self.kept.into_iter().map(Kept::into_issue));
        issues.sort_by_key(|issue| issue.entry().seq);
        issues
    }
}
