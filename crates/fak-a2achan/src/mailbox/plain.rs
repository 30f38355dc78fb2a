//! The common cases of a receive: nothing depends on the time, nobody has to be asked, and what is
//! in front is for whoever comes. Everything else is a closer look, in `seek`.
//!
//! A receiver that finds the other side empty and one message on the senders' side takes it from
//! there, under one lock. Where more are queued it moves them all at once, so that it meets the
//! senders once for many messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use fak_abi::Principal;

use super::{Input, Mailbox, Output, WaitState};
use crate::entry::Entry;
use crate::sync::{Lock as _, Locks};

/// When a message that is taken keeps its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    /// Where it is a request: it may turn out that this receiver is not to have it (§4.7).
    Requests,
    /// Always: the act may still be refused.
    All,
}

/// What a first glance finds.
#[derive(Debug)]
pub(crate) enum Quick {
    /// The oldest message, and who waits for the room it leaves.
    Entry(Entry, Option<Waker>),
    /// The oldest message, which keeps its slot until the act is settled.
    Trial(Entry),
    /// Nothing is queued; a receiver that would wait is on the list.
    Empty,
    /// A closer look is needed.
    Look,
}

impl<L: Locks> Mailbox<L> {
    /// A glance at the senders' side alone.
    #[inline(always)]
    fn glance(&self, input: &mut Input, reader: &Arc<Principal>, tries: Try) -> Quick {
        // Looked at again: under the lock it is no hint.
        if self.is_ahead() || input.crowded || input.end.is_some() || input.is_others(reader) {
            return Quick::Look;
        }
        match &input.single {
            Some(entry) if entry.is_plain_for(reader) => input.take_single(tries),
            None if input.queue.is_empty() => Quick::Empty,
            _ => Quick::Look,
        }
    }

    #[inline]
    fn is_ahead(&self) -> bool {
        self.output.ahead.load(Ordering::Relaxed)
    }

    /// The oldest message, if it is plainly for the reader.
    #[inline]
    pub(crate) fn pop(&self, reader: &Arc<Principal>, tries: Try) -> Quick {
        if !self.is_ahead() {
            match self.glance(&mut self.input.lock(), reader, tries) {
                Quick::Look => {}
                found => return found,
            }
        }
        let mut out = self.output.lock.lock();
        if out.only.as_ref().is_some_and(|only| !Arc::ptr_eq(only, reader)) {
            return Quick::Look;
        }
        if !out.queue.is_empty() {
            return self.pop_front(&mut out, reader, tries);
        }
        self.drain(&mut self.input.lock(), &mut out);
        self.pop_front(&mut out, reader, tries)
    }

    /// As [`Self::pop`], for a receiver that will wait: with nothing there it is put on the list of
    /// those who wait, under the same lock.
    #[inline]
    pub(crate) fn pop_or_wait(
        &self,
        reader: &Arc<Principal>,
        tries: Try,
        state: &mut WaitState,
        waker: &Waker,
    ) -> Quick {
        if !self.is_ahead() {
            let mut input = self.input.lock();
            match self.glance(&mut input, reader, tries) {
                Quick::Look => {}
                Quick::Empty => {
                    input.enlist(reader, state, waker);
                    return Quick::Empty;
                }
                found => return found,
            }
        }
        let mut out = self.output.lock.lock();
        if out.only.as_ref().is_some_and(|only| !Arc::ptr_eq(only, reader)) {
            return Quick::Look;
        }
        if out.queue.is_empty() {
            let mut input = self.input.lock();
            if input.end.is_some() {
                return Quick::Look;
            }
            if input.is_empty() {
                input.enlist(reader, state, waker);
                return Quick::Empty;
            }
            self.drain(&mut input, &mut out);
        }
        self.pop_front(&mut out, reader, tries)
    }

    #[inline]
    fn pop_front(&self, out: &mut Output, reader: &Arc<Principal>, tries: Try) -> Quick {
        let Some(entry) = out.queue.pop_front_if(|entry| entry.is_plain_for(reader)) else {
            return Quick::Look;
        };
        if tries.keep(&entry) {
            return Quick::Trial(entry);
        }
        entry.route.leave(entry.body.len());
        out.tally.received += 1;
        let gone = self.output.gone.load(Ordering::Relaxed);
        self.output.gone.store(gone.wrapping_add(1), Ordering::Release);
        let wake = if out.space.is_empty() { None } else { out.rouse_space(self.share) };
        Quick::Entry(entry, wake)
    }

    /// As [`Self::pop`], for a receiver that waited: its wait is over if it gets something.
    #[inline]
    pub(crate) fn pop_woken(&self, reader: &Arc<Principal>, tries: Try, state: &mut WaitState) -> Quick {
        if !self.is_ahead()
            && let Some(found) = self.pop_woken_straight(reader, tries, state)
        {
            return found;
        }
        let _stale;
        let (found, passed) = {
            let mut out = self.output.lock.lock();
            let mut input = self.input.lock();
            if !input.is_waited_at(reader, state) {
                return Quick::Look;
            }
            if out.queue.is_empty() {
                self.drain(&mut input, &mut out);
            }
            let found = self.pop_front(&mut out, reader, tries);
            if matches!(found, Quick::Look) {
                return found;
            }
            _stale = input.unlist(state);
            let queued = !out.queue.is_empty() || !input.is_empty();
            let passed = if std::mem::take(&mut state.woken) && queued { input.pass_on() } else { None };
            (found, passed)
        };
        if let Some(waker) = passed {
            waker.wake();
        }
        found
    }

    /// The one message there is. Nothing is left that a wake-up would have to be passed on for.
    #[inline(always)]
    fn pop_woken_straight(
        &self,
        reader: &Arc<Principal>,
        tries: Try,
        state: &mut WaitState,
    ) -> Option<Quick> {
        let _stale;
        let mut input = self.input.lock();
        if self.is_ahead() || input.crowded || !input.is_waited_at(reader, state) {
            return None;
        }
        if !input.single.as_ref()?.is_plain_for(reader) {
            return None;
        }
        if !input.waiters.is_empty() {
            _stale = input.unlist(state);
        }
        (state.id, state.woken) = (None, false);
        Some(input.take_single(tries))
    }
}

impl Input {
    /// Takes the message that is the only one on this side, where nothing is before it.
    #[inline(always)]
    fn take_single(&mut self, tries: Try) -> Quick {
        let Some(entry) = self.single.take() else { return Quick::Look };
        if tries.keep(&entry) {
            return Quick::Trial(entry);
        }
        entry.route.unenter(entry.body.len());
        self.accepted -= 1;
        self.direct += 1;
        Quick::Entry(entry, None)
    }
}

impl Try {
    #[inline(always)]
    fn keep(self, entry: &Entry) -> bool {
        matches!(self, Self::All) || entry.is_request()
    }
}
