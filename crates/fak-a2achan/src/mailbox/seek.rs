//! How a message is taken out (§4.4): the oldest that may flow to the receiver; others keep their
//! place. Where a topology has to be asked, the caller asks it between two looks, without a lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use fak_abi::{Principal, Timestamp};

use super::lease::Terms;
use super::wait::{SpaceWaiter, Waiter};
use super::{Input, Mailbox, Output, Purge, WaitState, Wakes};
use crate::delivery::End;
use crate::entry::Entry;
use crate::request::Return;
use crate::sync::{Lock as _, Locks};

/// What a receiver looks for.
pub(crate) struct Seek<'a> {
    pub(crate) reader: &'a Arc<Principal>,
    /// The present, where the mailbox depends on it.
    pub(crate) now: Option<Timestamp>,
    /// Only messages after this number: those before have been asked about.
    pub(crate) after: u64,
    /// Messages of others are to be asked about before they are taken.
    pub(crate) ask: bool,
    /// [`Sought::returns`] of the first look, where this one goes on from there.
    pub(crate) returns: Option<u64>,
    /// Keep what is taken until it is acknowledged, and not only until the act is settled.
    pub(crate) lease: Option<&'a Terms>,
}

/// What a look finds.
#[derive(Debug)]
pub(crate) enum Found {
    /// This, on trial (0) or leased under this token.
    Entry(Entry, u64),
    /// This number from this sender: may it be handed over?
    Candidate(u64, Arc<Principal>),
    /// Messages, but none that may flow to the receiver.
    Others,
    /// Nothing, or nothing that a waiter would be told of.
    Nothing,
    /// Something was put back among what was asked about: begin again.
    Again,
    /// Somebody else alone may receive here.
    NotYours,
    /// The wait is over.
    End(End),
}

/// What else a look has done. Nothing of it is acted on before the locks are released.
#[derive(Debug)]
pub(crate) struct Sought {
    pub(crate) found: Found,
    /// Messages whose time was over.
    pub(crate) expired: Vec<Entry>,
    /// Messages that were put back once too often.
    pub(crate) worn: Vec<Entry>,
    /// Messages that could not go back; see [`Purge::bound`].
    pub(crate) bound: Vec<Entry>,
    /// See [`Purge::unleased`].
    pub(crate) unleased: Vec<(Return, Arc<Principal>)>,
    pub(crate) wakes: Wakes,
    /// What the reader left when it waited before.
    pub(super) stale: Option<Waiter>,
    /// How often something has been put back so far.
    pub(crate) returns: u64,
}

impl Sought {
    pub(super) fn new() -> Self {
        let (expired, worn, bound) = (Vec::new(), Vec::new(), Vec::new());
        let (unleased, wakes) = (Vec::new(), Wakes::new());
        Self { found: Found::Nothing, expired, worn, bound, unleased, wakes, stale: None, returns: 0 }
    }
}

enum Hit {
    Take(usize),
    Ask(u64, Arc<Principal>),
}

impl Output {
    fn scan(&mut self, seek: &Seek<'_>, others: &mut bool, expired: &mut Vec<Entry>) -> Option<Hit> {
        let mut at = 0;
        while let Some(entry) = self.queue.get(at) {
            if seek.now.is_some_and(|now| entry.is_expired(now)) {
                expired.extend(self.queue.remove(at));
                continue;
            }
            if entry.seq > seek.after {
                // Quarantined ones are found too: they are held at the door (§4.4).
                if !entry.body.would_flow_to(seek.reader) {
                    *others = true;
                } else if seek.ask && !Arc::ptr_eq(entry.route.from(), seek.reader) {
                    return Some(Hit::Ask(entry.seq, Arc::clone(entry.route.from())));
                } else {
                    return Some(Hit::Take(at));
                }
            }
            at += 1;
        }
        None
    }
}

impl<L: Locks> Mailbox<L> {
    fn take_at(out: &mut Output, at: usize, seek: &Seek<'_>) -> Found {
        let entry = if at == 0 { out.queue.pop_front() } else { out.queue.remove(at) };
        let Some(entry) = entry else { return Found::Nothing };
        let token = seek.lease.map_or(0, |terms| out.lease(seek.reader, terms, entry.share()));
        Found::Entry(entry, token)
    }

    fn look(&self, out: &mut Output, seek: &Seek<'_>, others: &mut bool, sought: &mut Sought) -> bool {
        let before = sought.expired.len();
        let hit = out.scan(seek, others, &mut sought.expired);
        let expired = sought.expired.get(before..).unwrap_or_default();
        if !expired.is_empty() {
            expired.iter().for_each(|entry| entry.route.leave(entry.body.len()));
            out.tally.dead += expired.len() as u64;
            self.add_gone(out, expired.len() as u64, &mut sought.wakes);
        }
        match hit {
            Some(Hit::Take(at)) => sought.found = Self::take_at(out, at, seek),
            Some(Hit::Ask(seq, from)) => sought.found = Found::Candidate(seq, from),
            None => return false,
        }
        true
    }

    /// Looks for the oldest message that may flow to the reader. With `wait`, a reader that finds
    /// nothing is put on the list of those who wait, under the same locks.
    pub(crate) fn seek(&self, seek: &Seek<'_>, wait: Option<(&mut WaitState, &Waker)>) -> Sought {
        let mut sought = Sought::new();
        let mut others = false;
        let mut out = self.output.lock.lock();
        if let Some(now) = seek.now
            && !out.leased.is_empty()
        {
            self.put_back_due(&mut out, now, &mut sought);
        }
        // Before anything is found: a candidate of the first look is asked about as of now, too.
        sought.returns = out.returns;
        let begun = wait.as_ref().is_some_and(|(state, _)| state.is_begun());
        if out.only.as_ref().is_some_and(|only| !Arc::ptr_eq(only, seek.reader)) && !begun {
            sought.found = Found::NotYours;
            return sought;
        }
        if !begun && self.look(&mut out, seek, &mut others, &mut sought) {
            return sought;
        }
        let mut input = self.input.lock();
        let end = match &wait {
            Some((state, _)) if begun => input.end_of(state, seek.reader),
            _ => input.end,
        };
        if let Some(end) = end {
            sought.found = Found::End(end);
        } else if seek.returns.is_some_and(|returns| returns != out.returns) {
            sought.found = Found::Again;
        } else {
            self.drain(&mut input, &mut out);
            self.look(&mut out, seek, &mut others, &mut sought);
        }
        if let Some((state, waker)) = wait {
            sought.stale = input.unlist(state);
            // A waiter ignores what is not for it; a receiver that has yet to wait is told at once.
            if matches!(sought.found, Found::Nothing) && (begun || !others) {
                input.enlist(seek.reader, state, waker);
            }
            let settled = !matches!(sought.found, Found::Candidate(..) | Found::Again);
            if settled && std::mem::take(&mut state.woken) && !out.queue.is_empty() {
                sought.wakes.extend(input.pass_on());
            }
        }
        if others && !begun && matches!(sought.found, Found::Nothing) {
            sought.found = Found::Others;
        }
        sought
    }

    /// Takes the message of that number, if it is still there.
    pub(crate) fn take(&self, seq: u64, seek: &Seek<'_>) -> Found {
        let mut out = self.output.lock.lock();
        if out.only.as_ref().is_some_and(|only| !Arc::ptr_eq(only, seek.reader)) {
            return Found::NotYours;
        }
        match out.queue.binary_search_by_key(&seq, |entry| entry.seq) {
            Ok(at) => Self::take_at(&mut out, at, seek),
            Err(_) => Found::Nothing,
        }
    }

    /// Takes the message of that number, on whichever side it is.
    pub(crate) fn take_next(&self, seq: u64, seek: &Seek<'_>) -> Found {
        {
            let mut out = self.output.lock.lock();
            self.drain(&mut self.input.lock(), &mut out);
        }
        self.take(seq, seek)
    }
}

impl<L: Locks> Mailbox<L> {
    /// Puts an entry at its place on the receivers' side and counts it as an arrival.
    pub(super) fn reinsert(&self, input: &mut Input, out: &mut Output, entry: Entry, purge: &mut Purge) {
        if input.only().is_some_and(|only| !entry.body.would_flow_to(only)) {
            // It was not there to be purged when the key became somebody's (§4.6).
            entry.route.leave(entry.body.len());
            out.tally.dead += 1;
            self.add_gone(out, 1, &mut purge.wakes);
            purge.bound.push(entry);
            return;
        }
        input.version += 1;
        out.returns += 1;
        purge.wakes.extend(input.rouse(&entry.body));
        if entry.expires().is_some() {
            // Those who wait for room could not see when there will be some.
            purge.wakes.extend(out.space.drain(..).map(SpaceWaiter::into_waker));
        }
        let at = out.queue.partition_point(|other| other.seq < entry.seq);
        out.queue.insert(at, entry);
        self.output.ahead.store(true, Ordering::Relaxed);
    }
}

impl Input {
    /// Why a wait that has begun is over, if it is.
    fn end_of(&self, state: &WaitState, reader: &Arc<Principal>) -> Option<End> {
        let epoch = state.epoch?;
        if !reader.is_attached() {
            return Some(End::Detach);
        }
        if let Some(end) = self.end {
            return Some(end);
        }
        // It may have been bound while the reader was woken and had not come round: then nobody waited.
        if self.is_others(reader) {
            return Some(End::Displace);
        }
        (epoch != self.epoch).then_some(End::Unbind)
    }
}
