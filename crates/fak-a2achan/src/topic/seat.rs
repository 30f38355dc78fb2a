//! A subscription's private inbox (§4.5), as its subscription holds it: a seat in a cohort, and how what is there is taken.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use fak_abi::{Principal, Timestamp};

use super::cohort::{Cohort, Keep, Pulled};
use super::issue::Issue;
use crate::delivery::End;
use crate::sync::{Locks, Native};

/// See the module. Reached only through its subscription.
pub(crate) struct Inbox<L: Locks = Native> {
    cohort: Arc<Cohort<L>>,
    subscriber: Arc<Principal>,
    /// Which subscription of its topic this is, from 1 on.
    number: u64,
    /// Which of the cohort's seats.
    pub(super) place: usize,
    /// Its subscription has leased copies.
    pub(super) leases: AtomicBool,
    /// Set under the cohort's lock, together with the seat being left.
    pub(super) ended: OnceLock<End>,
}

impl<L: Locks> Inbox<L> {
    pub(super) fn new(cohort: Arc<Cohort<L>>, subscriber: Arc<Principal>, number: u64, place: usize) -> Self {
        let (leases, ended) = (AtomicBool::new(false), OnceLock::new());
        Self { cohort, subscriber, number, place, leases, ended }
    }

    pub(crate) const fn subscriber(&self) -> &Arc<Principal> {
        &self.subscriber
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    pub(super) const fn cohort(&self) -> &Arc<Cohort<L>> {
        &self.cohort
    }
}

impl<L: Locks> Inbox<L> {
    /// The next copy, where it reads the log and nothing depends on the time: the common case.
    /// `None` says only that a closer look is needed.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Arc<Issue>, u64)> {
        if self.cohort().is_timed() {
            return None;
        }
        let mut state = self.cohort().lock();
        let member = state.member(self)?;
        let next = member.next?;
        let copy = state.pass(next)?;
        state.tally.received += 1;
        let member = state.member(self)?;
        member.next = Some(next + 1);
        Some((copy, std::mem::take(&mut member.missed)))
    }

    /// As [`Inbox::next`], for everything up to `limit` at once, whether or not it reads the log. What
    /// `made` makes of each copy, of how many were lost before it, and of how often it was put back
    /// goes behind what is in `into`; how many.
    #[inline]
    pub(crate) fn next_batch<T>(
        &self,
        limit: usize,
        into: &mut Vec<T>,
        made: impl Fn(Arc<Issue>, u64, u32) -> T,
    ) -> usize {
        if self.is_timed() {
            return 0;
        }
        let mut guard = self.cohort().lock();
        let state = &mut *guard;
        let Some(member) = state.members.get_mut(self.place).and_then(Option::as_mut) else { return 0 };
        if !std::ptr::eq(Arc::as_ptr(&member.inbox), self) {
            return 0;
        }
        let mut missed = std::mem::take(&mut member.missed);
        let mut told = || std::mem::take(&mut missed);
        let before = into.len();
        if let Some(next) = member.next {
            let read = usize::try_from(next.wrapping_sub(state.first)).unwrap_or(usize::MAX);
            // Of a known length, so that each is made where it will be.
            let there = state.log.len().saturating_sub(read).min(limit);
            into.reserve(there);
            let from = read.min(state.log.len());
            into.extend(state.log.range_mut(from..).take(there).map(|logged| {
                logged.left -= 1;
                made(logged.copy.share(), told(), 0)
            }));
            member.next = Some(next + there as u64);
            state.trim();
        } else {
            while into.len() - before < limit
                && let Some(lot) = member.own.as_mut().and_then(|own| own.pop())
            {
                let (copy, returns) = lot.leave();
                into.push(made(copy, told(), returns));
            }
            state.rejoin(self.place, self.cohort().apart());
        }
        let taken = into.len() - before;
        state.tally.received += taken as u64;
        if missed > 0
            && let Some(member) = state.member(self)
        {
            member.missed = missed;
        }
        taken
    }

    /// True if nothing is queued.
    pub(crate) fn is_empty(&self) -> bool {
        let mut state = self.cohort().lock();
        let end = state.first + state.log.len() as u64;
        state.member(self).is_none_or(|member| match member.next {
            Some(next) => next == end,
            None => !member.has_own(),
        })
    }

    /// The next copy; with `waker`, it is called once there is one. Copies whose time is over are
    /// put into `expired`, worn out ones into `worn`.
    pub(crate) fn pull(
        &self,
        keep: Keep,
        now: Option<Timestamp>,
        waker: Option<&Waker>,
        (expired, worn): (&mut Vec<Arc<Issue>>, &mut Vec<Arc<Issue>>),
    ) -> Pulled {
        if let Some(now) = now {
            expired.append(&mut self.cohort().expire(now));
        }
        // Dropped once the lock is: the last waker of a task may drop the task.
        let _stale;
        let mut state = self.cohort().lock();
        if let Some(end) = self.ended.get() {
            return Pulled::End(*end);
        }
        if let Some(now) = now {
            worn.append(&mut state.return_due(self, now));
        }
        if let Some(taken) = state.take(self, keep, self.cohort().apart()) {
            _stale = state.take_waker(self);
            return Pulled::Copy(taken);
        }
        if let Some(waker) = waker
            && let Some(member) = state.member(self)
            && member.waker.as_ref().is_none_or(|known| !known.will_wake(waker))
        {
            _stale = member.waker.replace(waker.clone());
            state.waiting += u32::from(_stale.is_none());
        }
        Pulled::Nothing
    }

    /// The wait is given up.
    pub(crate) fn stop_waiting(&self) {
        let waker = self.cohort().lock().take_waker(self);
        drop(waker);
    }

    /// Nothing comes in or out from here on. What was queued; `None` if that was so before.
    pub(super) fn end(&self, end: End) -> Option<(Vec<Arc<Issue>>, Option<Waker>)> {
        let mut state = self.cohort().lock();
        self.ended.set(end).ok()?;
        Some(state.leave(self))
    }
}
