//! Waiting for a barrier: a future that nobody's death can hang, and that dropping leaves no trace of (§6.5).

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use fak_abi::{AgentHandle, Id, Outcome, Principal, Reason, Refusal, Timestamp, WakeUp};

use super::fold::BarrierFold;
use super::{Barrier, DETACHED, NAME, WAITS};

/// Most waits one principal may have at the barriers of a kernel at once (§4.12).
const MAX_WAITS: usize = 1_024;

/// How a barrier stands (§6.5).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct BarrierReport {
    /// Whether every rank has arrived or is gone.
    pub complete: bool,
    /// Ids of those who are missing, in rank order.
    pub missing: Vec<Id>,
    /// Ids of those declared gone, in rank order.
    pub gone: Vec<Id>,
}

impl BarrierReport {
    pub(super) fn of(fold: &BarrierFold) -> Self {
        Self {
            complete: fold.is_complete(),
            missing: fold.missing().cloned().collect(),
            gone: fold.gone().cloned().collect(),
        }
    }
}

/// Who waits at one barrier.
#[derive(Default)]
pub(super) struct Waiters {
    next: u64,
    waiting: HashMap<u64, (Waker, Arc<Principal>)>,
}

impl Waiters {
    pub(super) fn all(&self) -> Vec<Waker> {
        self.waiting.values().map(|(waker, _)| waker.clone()).collect()
    }

    pub(super) fn of(&self, principal: &Arc<Principal>) -> Vec<Waker> {
        let theirs = self.waiting.values().filter(|(_, waiter)| Arc::ptr_eq(waiter, principal));
        theirs.map(|(waker, _)| waker.clone()).collect()
    }
}

/// How many waits each principal has, by incarnation.
#[derive(Clone, Default)]
pub(crate) struct Waits {
    held: Arc<Mutex<HashMap<u64, usize>>>,
}

impl Waits {
    fn take(&self, incarnation: u64) -> Option<Share> {
        let mut held = self.held.lock();
        let count = held.entry(incarnation).or_default();
        if *count >= MAX_WAITS {
            return None;
        }
        *count += 1;
        Some(Share { waits: self.clone(), incarnation })
    }
}

/// One wait of a principal's share; dropping it gives it back.
struct Share {
    waits: Waits,
    incarnation: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.waits.held.lock();
        if let Some(count) = held.get_mut(&self.incarnation) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.incarnation);
            }
        }
    }
}

/// A wait for a barrier; see [`Barrier::wait`] (§6.5).
#[must_use]
pub struct BarrierWait {
    barrier: Barrier,
    agent: AgentHandle,
    deadline: Option<Timestamp>,
    /// This wait among the barrier's, and its share of the principal's, once it waits.
    place: Option<(u64, Share)>,
    alarm: Option<WakeUp>,
}

impl Barrier {
    /// Waits until every rank has arrived or is gone, or until `deadline`, whose report names the missing. Not an
    /// act: it counts as no arrival and needs no capability.
    ///
    /// `Allow` says that the wait was permitted: whether it ended because all have arrived is
    /// [`complete`](BarrierReport::complete) in the report.
    ///
    /// Refused DEFAULT_DENY once `agent` is detached, RATE_LIMITED beyond its share of waits,
    /// TRUST_VIOLATION for a handle of another kernel.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: who is missing is still missing.
    pub fn wait(&self, agent: &AgentHandle, deadline: Option<Timestamp>) -> BarrierWait {
        BarrierWait { barrier: self.clone(), agent: agent.clone(), deadline, place: None, alarm: None }
    }
}

impl Future for BarrierWait {
    type Output = Outcome<BarrierReport>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let deny = |reason, site| Poll::Ready(Outcome::deny(Refusal::new(reason, site), NAME));
        let principal = this.agent.principal();
        if !principal.is_attached() {
            return deny(Reason::DefaultDeny, DETACHED.site());
        }
        let inner = &this.barrier.core.inner;
        let Some(link) = inner.tie.link().filter(|link| link.tag() == principal.tag()) else {
            return deny(Reason::TrustViolation, crate::tie::FOREIGN_SITE.site());
        };
        let mut state = this.barrier.core.state.lock();
        let late = this.deadline.is_some_and(|deadline| link.clock().now() >= deadline);
        if state.fold.is_complete() || late {
            let value = BarrierReport::of(&state.fold);
            return Poll::Ready(Outcome::Allow { value, by: NAME });
        }
        let place = match &this.place {
            Some((place, _)) => *place,
            None => {
                let Some(share) = inner.barriers.waits.take(principal.incarnation()) else {
                    return deny(Reason::RateLimited, WAITS.site());
                };
                let place = state.waiters.next;
                state.waiters.next += 1;
                this.place = Some((place, share));
                place
            }
        };
        let entry = (cx.waker().clone(), Arc::clone(principal));
        let before = state.waiters.waiting.insert(place, entry);
        drop(state);
        // A detach between the first look and the registration had nobody to wake.
        if !principal.is_attached() {
            return deny(Reason::DefaultDeny, DETACHED.site());
        }
        let moved = before.is_none_or(|(waker, _)| !waker.will_wake(cx.waker()));
        if let Some(deadline) = this.deadline.filter(|_| moved) {
            this.alarm = Some(link.timer().wake_at(deadline, cx.waker().clone()));
        }
        Poll::Pending
    }
}

impl Drop for BarrierWait {
    fn drop(&mut self) {
        if let Some((place, _)) = self.place.take() {
            // Dropped once the lock is: the last waker of a task may drop the task.
            let left = self.barrier.core.state.lock().waiters.waiting.remove(&place);
            drop(left);
        }
    }
}
