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

/// What a first glance finds.
#[derive(Debug)]
pub(crate) enum Quick {
    /// The oldest message, and who waits for the room it leaves.
    Entry(Entry, Option<Waker>),
    /// Nothing is queued; a receiver that would wait is on the list.
    Empty,
    /// A closer look is needed.
    Look,
}

impl<L: Locks> Mailbox<L> {
    /// A glance at the senders' side alone.
    #[inline(always)]
    fn glance(&self, input: &mut Input, reader: &Arc<Principal>) -> Quick {
        // Looked at again: under the lock it is no hint.
        if self.is_ahead() || input.crowded || input.end.is_some() || input.is_others(reader) {
            return Quick::Look;
        }
        match &input.single {
            Some(entry) if entry.is_plain_for(reader) => match input.take_single() {
                Some(entry) => Quick::Entry(entry, None),
                None => Quick::Look,
            },
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
    pub(crate) fn pop(&self, reader: &Arc<Principal>) -> Quick {
        if !self.is_ahead() {
            match self.glance(&mut self.input.lock(), reader) {
                Quick::Look => {}
                found => return found,
            }
        }
        let mut out = self.output.lock.lock();
        if out.only.as_ref().is_some_and(|only| !Arc::ptr_eq(only, reader)) {
            return Quick::Look;
        }
        if !out.queue.is_empty() {
            return self.pop_front(&mut out, reader);
        }
        self.drain(&mut self.input.lock(), &mut out);
        self.pop_front(&mut out, reader)
    }

    /// As [`Self::pop`], for a receiver that will wait: with nothing there it is put on the list of
    /// those who wait, under the same lock.
    #[inline]
    pub(crate) fn pop_or_wait(&self, reader: &Arc<Principal>, state: &mut WaitState, waker: &Waker) -> Quick {
        if !self.is_ahead() {
            let mut input = self.input.lock();
            match self.glance(&mut input, reader) {
                Quick::Look => {}
                Quick::Empty => {
                    input.enlist(reader, state, waker);
                    return Quick::Empty;
                }
                found @ Quick::Entry(..) => return found,
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
        self.pop_front(&mut out, reader)
    }

    #[inline]
    fn pop_front(&self, out: &mut Output, reader: &Arc<Principal>) -> Quick {
        let Some(entry) = out.queue.pop_front_if(|entry| entry.is_plain_for(reader)) else {
            return Quick::Look;
        };
        entry.route.leave(entry.body.len());
        out.tally.received += 1;
        let gone = self.output.gone.load(Ordering::Relaxed);
        self.output.gone.store(gone.wrapping_add(1), Ordering::Release);
        let wake = if out.space.is_empty() { None } else { out.rouse_space(self.share) };
        Quick::Entry(entry, wake)
    }

    /// As [`Self::pop`], for a receiver that waited: its wait is over if it gets something.
    #[inline]
    pub(crate) fn pop_woken(&self, reader: &Arc<Principal>, state: &mut WaitState) -> Quick {
        if !self.is_ahead()
            && let Some(entry) = self.pop_woken_straight(reader, state)
        {
            return Quick::Entry(entry, None);
        }
        let (found, passed) = {
            let mut out = self.output.lock.lock();
            let mut input = self.input.lock();
            if !input.is_waited_at(reader, state) {
                return Quick::Look;
            }
            if out.queue.is_empty() {
                self.drain(&mut input, &mut out);
            }
            let Quick::Entry(entry, wake) = self.pop_front(&mut out, reader) else { return Quick::Look };
            if let Some(id) = state.id.take() {
                state.woken |= !input.unlist(id);
            }
            let queued = !out.queue.is_empty() || !input.is_empty();
            let passed = if std::mem::take(&mut state.woken) && queued { input.pass_on() } else { None };
            (Quick::Entry(entry, wake), passed)
        };
        if let Some(waker) = passed {
            waker.wake();
        }
        found
    }

    /// The one message there is. Nothing is left that a wake-up would have to be passed on for.
    #[inline(always)]
    fn pop_woken_straight(&self, reader: &Arc<Principal>, state: &mut WaitState) -> Option<Entry> {
        let mut input = self.input.lock();
        if self.is_ahead() || input.crowded || !input.is_waited_at(reader, state) {
            return None;
        }
        if !input.single.as_ref()?.is_plain_for(reader) {
            return None;
        }
        if let Some(id) = state.id.take()
            && !input.waiters.is_empty()
        {
            input.unlist(id);
        }
        state.woken = false;
        input.take_single()
    }
}

impl Input {
    /// Takes the message that is the only one on this side, where nothing is before it.
    #[inline(always)]
    fn take_single(&mut self) -> Option<Entry> {
        let entry = self.single.take()?;
        entry.route.unenter(entry.body.len());
        self.accepted -= 1;
        self.direct += 1;
        Some(entry)
    }
}
