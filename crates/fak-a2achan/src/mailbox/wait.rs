//! Who waits at a mailbox, for a message or for room, and how a wake-up is passed on (§4.4).
//!
//! An arrival wakes one waiter: the first that it may flow to. Whoever was woken and does not use
//! the wake-up up (it may not take what came, somebody was faster, its future was dropped) passes
//! it on to a waiter that has not seen that arrival. Each waiter sees each arrival at most once,
//! so this ends.
//!
//! A waker is called and dropped without a lock: the last one of a task may drop that task's future,
//! which leaves its place here.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use fak_abi::{Principal, Ref, WakeUp};

use super::{Input, Mailbox, Output, Wakes};
use crate::account::Account;
use crate::route::Route;
use crate::sync::{Lock as _, Locks};

/// A receiver that found nothing.
pub(crate) struct Waiter {
    pub(super) id: u64,
    pub(super) principal: Arc<Principal>,
    /// The arrivals it has seen.
    pub(super) seen: u64,
    pub(super) waker: Waker,
}

/// A receiver's side of its wait.
#[derive(Default)]
pub(crate) struct WaitState {
    pub(super) id: Option<u64>,
    /// It was woken and has not answered for that yet.
    pub(super) woken: bool,
    /// Who could receive here when it began.
    pub(super) epoch: Option<u32>,
    /// It is counted against its principal (§4.12).
    pub(crate) counted: bool,
    /// Wakes it at its deadline.
    pub(crate) timer: Option<WakeUp>,
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiter({})", self.id)
    }
}

impl WaitState {
    /// True once it waits, or has waited.
    pub(crate) const fn is_begun(&self) -> bool {
        self.epoch.is_some()
    }
}

impl Input {
    /// Under the lock, before `body` is queued: the waiter it wakes.
    #[inline]
    pub(super) fn rouse(&mut self, body: &Ref) -> Option<Waker> {
        if self.waiters.is_empty() {
            return None;
        }
        let waiter = match self.waiters.pop_front_if(|first| body.would_flow_to(&first.principal)) {
            Some(waiter) => waiter,
            None => {
                let at = self.waiters.iter().position(|waiter| body.would_flow_to(&waiter.principal))?;
                self.waiters.remove(at)?
            }
        };
        self.spare = Some(waiter.principal);
        Some(waiter.waker)
    }

    /// A wake-up that was not used up goes to somebody who has not seen the newest arrival.
    pub(super) fn pass_on(&mut self) -> Option<Waker> {
        let at = self.waiters.iter().position(|waiter| waiter.seen < self.version)?;
        self.waiters.remove(at).map(|waiter| waiter.waker)
    }

    /// Takes a waiter off the list, if its wait has begun and it was not woken: then that is noted.
    pub(super) fn unlist(&mut self, state: &mut WaitState) -> Option<Waiter> {
        let id = state.id.take()?;
        let at = self.waiters.iter().position(|waiter| waiter.id == id);
        let waiter = at.and_then(|at| self.waiters.remove(at));
        state.woken |= waiter.is_none();
        waiter
    }

    #[inline]
    pub(super) fn enlist(&mut self, reader: &Arc<Principal>, state: &mut WaitState, waker: &Waker) {
        let id = self.next_waiter;
        self.next_waiter += 1;
        // Who waits again and again is seldom anybody else.
        let principal =
            self.spare.take_if(|spare| Arc::ptr_eq(spare, reader)).unwrap_or_else(|| Arc::clone(reader));
        let waiter = Waiter { id, principal, seen: self.version, waker: waker.clone() };
        self.waiters.push_back(waiter);
        state.id = Some(id);
        state.epoch = Some(self.epoch);
    }

    /// Wakes everybody, because who may receive here has changed.
    pub(super) fn rouse_all(&mut self, wakes: &mut Wakes) {
        wakes.extend(self.waiters.drain(..).map(|waiter| waiter.waker));
    }
}

impl<L: Locks> Mailbox<L> {
    /// The wait is given up: its place is freed and a wake-up it got is passed on.
    pub(crate) fn leave(&self, state: &mut WaitState) {
        state.timer = None;
        if state.id.is_none() && !state.woken {
            return;
        }
        let _stale;
        let wake = {
            let out = self.output.lock.lock();
            let mut input = self.input.lock();
            _stale = input.unlist(state);
            let queued = !out.queue.is_empty() || !input.is_empty();
            if std::mem::take(&mut state.woken) && queued { input.pass_on() } else { None }
        };
        if let Some(waker) = wake {
            waker.wake();
        }
    }

    /// True if `sender` has room here; otherwise `waker` is called once it may have.
    ///
    /// A wait that ends passes its wake-up on (`pass_space`) unless it used the room up.
    pub(crate) fn has_space_or(&self, wait: &mut SpaceState, from: &Arc<Account>, waker: &Waker) -> bool {
        let _stale;
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        _stale = out.leave_space(wait);
        let route = self.route_of(&mut input, from);
        let free = input.end.is_some() || (self.has_room(&mut input) && route.has_share(self.share));
        if !free {
            let id = out.next_token;
            out.next_token += 1;
            input.crowded = true;
            out.space.push_back(SpaceWaiter { id, route, waker: waker.clone() });
            wait.id = Some(id);
            wait.begun = true;
        }
        free
    }

    /// Wakes the next that waits for room, if there is any.
    pub(crate) fn pass_space(&self) {
        let wake = {
            let mut out = self.output.lock.lock();
            let mut input = self.input.lock();
            if self.has_room(&mut input) { out.rouse_space(self.share) } else { None }
        };
        if let Some(waker) = wake {
            waker.wake();
        }
    }

    /// A wait for room is over. The wake-up it may have got is passed on if there is room still, or if
    /// there will be: the next has to look when.
    pub(crate) fn leave_space(&self, wait: &mut SpaceState) {
        if !std::mem::take(&mut wait.begun) {
            return;
        }
        let _stale;
        let wake = {
            let mut out = self.output.lock.lock();
            _stale = out.leave_space(wait);
            let mut input = self.input.lock();
            let next = if self.has_room(&mut input) { out.rouse_space(self.share) } else { None };
            let mut first = || self.is_timed().then(|| out.space.pop_front()).flatten();
            next.or_else(|| first().map(SpaceWaiter::into_waker))
        };
        if let Some(waker) = wake {
            waker.wake();
        }
    }
}

/// A sender that found no room.
pub(super) struct SpaceWaiter {
    id: u64,
    route: Arc<Route>,
    waker: Waker,
}

impl SpaceWaiter {
    pub(super) fn into_waker(self) -> Waker {
        self.waker
    }
}

/// A sender's side of its wait for room.
#[derive(Default)]
pub(crate) struct SpaceState {
    id: Option<u64>,
    begun: bool,
    /// Wakes it at its deadline.
    pub(crate) timer: Option<WakeUp>,
}

impl Output {
    /// Takes a waiter for room off the list, if it is there.
    fn leave_space(&mut self, wait: &mut SpaceState) -> Option<SpaceWaiter> {
        let id = wait.id.take()?;
        let at = self.space.iter().position(|other| other.id == id)?;
        self.space.remove(at)
    }

    /// Wakes those of one principal that wait for room.
    pub(super) fn rouse_space_of(&mut self, who: &Principal, wakes: &mut Wakes) {
        let is_its = |waiter: &SpaceWaiter| std::ptr::eq(Arc::as_ptr(waiter.route.from()), who);
        if !self.space.iter().any(is_its) {
            return;
        }
        let (its, others): (VecDeque<_>, _) = std::mem::take(&mut self.space).into_iter().partition(is_its);
        self.space = others;
        wakes.extend(its.into_iter().map(SpaceWaiter::into_waker));
    }

    /// The first waiter for room that would get some.
    pub(super) fn rouse_space(&mut self, share: u64) -> Option<Waker> {
        let at = self.space.iter().position(|waiter| waiter.route.queued() < share)?;
        self.space.remove(at).map(|waiter| waiter.waker)
    }
}
