//! Who may receive here (§4.6): binding, reservation for an attached principal, and the end.
//! Whatever can no longer be delivered comes back as a purge, for the caller to make dead letters
//! of once the locks are released.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use fak_abi::{Principal, Sequence, ShareScope, Timestamp};

use super::{Input, Mailbox, Output, Wakes};
use crate::delivery::End;
use crate::entry::Entry;
use crate::request::Return;
use crate::sync::{Lock as _, Locks};

/// What came out of a mailbox undelivered, and whom to wake.
#[derive(Debug, Default)]
pub(crate) struct Purge {
    pub(crate) entries: Vec<Entry>,
    /// What could not go back, because whoever alone may receive there by now may not read it.
    pub(crate) bound: Vec<Entry>,
    /// Requests that were leased and are not any more, with who had them.
    pub(crate) unleased: Vec<(Return, Arc<Principal>)>,
    pub(crate) wakes: Wakes,
}

impl Purge {
    pub(crate) fn wake(&mut self) {
        self.wakes.drain(..).for_each(Waker::wake);
    }
}

/// What an attempt to bind answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bind {
    /// Bound; the number tells this binding from later ones.
    Bound(u64),
    /// Somebody else has bound it.
    Held,
    /// It is reserved for somebody else.
    Reserved,
    /// Somebody else waits there.
    Waiting,
    /// The mailbox is no more.
    End,
}

impl<L: Locks> Mailbox<L> {
    fn sync_guard(&self, input: &Input, out: &mut Output) {
        out.only = input.only().cloned();
        self.bound.store(input.binder.is_some(), Ordering::Release);
    }

    /// Takes out what `unwanted` names. Both locks are held; everything is on the output side.
    fn purge(&self, out: &mut Output, unwanted: impl Fn(&Entry) -> bool, purge: &mut Purge) {
        let before = purge.entries.len();
        if out.queue.iter().any(&unwanted) {
            let (dead, kept): (VecDeque<_>, _) =
                std::mem::take(&mut out.queue).into_iter().partition(|entry| unwanted(entry));
            out.queue = kept;
            purge.entries.extend(dead);
        }
        self.bury(out, before, purge);
    }

    fn bury(&self, out: &mut Output, before: usize, purge: &mut Purge) {
        let dead = purge.entries.get(before..).unwrap_or_default();
        dead.iter().for_each(|entry| entry.route.leave(entry.body.len()));
        let count = dead.len() as u64;
        out.tally.dead += count;
        if count > 0 {
            self.add_gone(out, count, &mut purge.wakes);
        }
    }

    fn purge_all(&self, out: &mut Output, purge: &mut Purge) {
        let before = purge.entries.len();
        purge.entries.extend(out.queue.drain(..));
        purge.entries.extend(out.leased.drain(..).map(|leased| leased.end(&mut purge.unleased)));
        self.bury(out, before, purge);
        // Only now: what was purged before, and is booked already, is sorted in among the rest.
        purge.entries.sort_by_key(|entry| entry.seq);
    }

    /// Takes out what has had its time.
    pub(crate) fn expire(&self, now: Timestamp) -> Purge {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        self.drain(&mut input, &mut out);
        self.purge(&mut out, |entry| entry.is_expired(now), &mut purge);
        purge
    }

    /// When the next of what is queued has had its time. Linear in what is queued, if any of it has one.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        if !self.is_timed() {
            return None;
        }
        let out = self.output.lock.lock();
        let input = self.input.lock();
        out.queue.iter().chain(&input.queue).chain(&input.single).filter_map(Entry::expires).min()
    }

    /// Binds it to `who`. What `who` may not read is purged.
    pub(crate) fn bind(&self, who: &Arc<Principal>) -> (Bind, Purge) {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        let is_other = |other: &Arc<Principal>| !Arc::ptr_eq(other, who);
        let refusal = if input.end.is_some() {
            Some(Bind::End)
        } else if input.reserved_for.as_ref().is_some_and(is_other) {
            Some(Bind::Reserved)
        } else if input.binder.as_ref().is_some_and(is_other) {
            Some(Bind::Held)
        } else if input.waiters.iter().any(|waiter| is_other(&waiter.principal)) {
            Some(Bind::Waiting)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return (refusal, purge);
        }
        input.binder = Some(Arc::clone(who));
        input.binding += 1;
        self.sync_guard(&input, &mut out);
        self.drain(&mut input, &mut out);
        self.purge(&mut out, |entry| !entry.body.would_flow_to(who), &mut purge);
        (Bind::Bound(input.binding), purge)
    }

    /// Frees it, if `who` has bound it, by this very binding if one is named. Everything queued is
    /// purged, its waits are over. `Err(true)`: somebody else has bound it.
    pub(crate) fn unbind(
        &self,
        who: &Principal,
        binding: Option<u64>,
        numbers: &Sequence,
    ) -> Result<Purge, bool> {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        match &input.binder {
            None => return Err(false),
            Some(binder) if !std::ptr::eq(Arc::as_ptr(binder), who) => return Err(true),
            Some(_) if binding.is_some_and(|binding| binding != input.binding) => return Err(false),
            Some(_) => {}
        }
        input.binder = None;
        input.epoch += 1;
        input.rouse_all(&mut purge.wakes);
        self.sync_guard(&input, &mut out);
        self.drain(&mut input, &mut out);
        self.purge_all(&mut out, &mut purge);
        // Whatever is in here was numbered under a lock that is held.
        out.purged = Some((numbers.last(), End::Unbind));
        Ok(purge)
    }

    /// It is `who`'s from now on: others' binding and waits are over, what `who` may not read is
    /// purged. With `bind`, it is bound as well.
    pub(crate) fn reserve_for(&self, who: &Arc<Principal>, bind: bool) -> Purge {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        if input.end.is_some() {
            return purge;
        }
        input.reserved_for = Some(Arc::clone(who));
        input.binder = bind.then(|| Arc::clone(who));
        input.binding += 1;
        input.epoch += 1;
        input.rouse_all(&mut purge.wakes);
        self.sync_guard(&input, &mut out);
        self.drain(&mut input, &mut out);
        self.purge(&mut out, |entry| !entry.body.would_flow_to(who), &mut purge);
        purge
    }

    /// `who` is gone: what it bound or held is free, what only it could read is purged.
    pub(crate) fn release(&self, who: &Principal, numbers: &Sequence) -> Purge {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        self.return_all_of(&mut out, who, &mut purge);
        let mut input = self.input.lock();
        let is_who = |other: &Option<Arc<Principal>>| {
            other.as_ref().is_some_and(|other| std::ptr::eq(Arc::as_ptr(other), who))
        };
        let bound = is_who(&input.binder);
        if bound {
            input.binder = None;
        }
        if is_who(&input.reserved_for) {
            input.reserved_for = None;
        }
        self.sync_guard(&input, &mut out);
        self.drain(&mut input, &mut out);
        if bound {
            self.purge_all(&mut out, &mut purge);
            out.purged = Some((numbers.last(), End::Detach));
        } else {
            let alone =
                |entry: &Entry| entry.body.scope() == ShareScope::Agent && entry.body.is_owned_by(who);
            self.purge(&mut out, alone, &mut purge);
        }
        // Its own waits; each of them may have been the one that was to be woken.
        let mut kept = VecDeque::new();
        for waiter in input.waiters.drain(..) {
            if std::ptr::eq(Arc::as_ptr(&waiter.principal), who) {
                purge.wakes.push(waiter.waker);
            } else {
                kept.push_back(waiter);
            }
        }
        input.waiters = kept;
        out.rouse_space_of(who, &mut purge.wakes);
        input.routes.remove(&who.incarnation());
        (input.recent, input.spare) = (None, None);
        purge
    }

    /// Nothing comes in or out from here on.
    pub(crate) fn end(&self, end: End) -> Purge {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        if input.end.is_some() {
            return purge;
        }
        input.end = Some(end);
        input.rouse_all(&mut purge.wakes);
        self.drain(&mut input, &mut out);
        self.purge_all(&mut out, &mut purge);
        while let Some(waiter) = out.space.pop_front() {
            purge.wakes.push(waiter.into_waker());
        }
        purge
    }

    /// Ends it if nothing would be lost; true if it ended.
    pub(crate) fn retire(&self) -> bool {
        let out = self.output.lock.lock();
        let mut input = self.input.lock();
        let idle = input.accepted == self.gone()
            && input.reserved == 0
            && input.waiters.is_empty()
            && input.binder.is_none()
            && input.reserved_for.is_none()
            && !self.is_kept()
            && out.space.is_empty();
        if idle && input.end.is_none() {
            input.end = Some(End::Close);
        }
        idle
    }

    /// Who has bound it.
    pub(crate) fn binder(&self) -> Option<Arc<Principal>> {
        self.input.lock().binder.clone()
    }

    /// Who alone may receive here, bound or reserved.
    pub(crate) fn only(&self) -> Option<Arc<Principal>> {
        self.input.lock().only().cloned()
    }
}
