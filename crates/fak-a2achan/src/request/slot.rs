//! The private inbox of one answer: registered before the request is sent, filled at most once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Waker;

use fak_abi::{Principal, Timestamp};
use parking_lot::Mutex;

use crate::account::Account;
use crate::delivery::End;
use crate::entry::Entry;
use crate::mailbox::Terms;
use crate::stats::Tally;

/// See the module.
#[derive(Debug)]
pub(crate) struct Slot {
    requester: Arc<Account>,
    deadline: Option<Timestamp>,
    ring: Option<u64>,
    answered: AtomicBool,
    /// How often the request was leased and went back.
    returns: AtomicU32,
    /// From when on whoever has leased the request may not answer it, in microseconds.
    lapses: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answer: Option<Entry>,
    /// The number of the request.
    request: u64,
    waker: Option<Waker>,
    taken: bool,
    leased: Option<Leased>,
    tokens: u64,
    end: Option<End>,
    /// What became of the answer.
    tally: Tally,
}

/// An answer that the requester has, but has not acknowledged (§4.4), or that an act took which may
/// still be refused.
#[derive(Debug)]
struct Leased {
    token: u64,
    /// `None` while it is not known whether it may be handed over.
    terms: Option<Terms>,
    entry: Entry,
}

impl Leased {
    /// True if its time with the requester is over.
    fn is_due(&self, now: Timestamp) -> bool {
        self.terms.is_some_and(|terms| now >= terms.until)
    }
}

/// What became of an answer.
pub(crate) enum Filling {
    /// It is there; the waiter to wake.
    Done(Option<Waker>),
    /// Nobody waits for it any more.
    Late(Entry),
}

/// What a look finds.
pub(super) enum Taking {
    Answer(Entry, u64),
    Nothing,
    Spent,
    End(End),
}

/// No time: the request is not leased.
const NEVER: u64 = u64::MAX;

impl Slot {
    pub(super) fn new(requester: Arc<Account>, deadline: Option<Timestamp>, ring: Option<u64>) -> Arc<Self> {
        let (answered, returns, state) = (AtomicBool::new(false), AtomicU32::new(0), Mutex::default());
        let lapses = AtomicU64::new(NEVER);
        Arc::new(Self { requester, deadline, ring, answered, returns, lapses, state })
    }

    pub(super) fn requester(&self) -> &Arc<Principal> {
        self.requester.principal()
    }

    pub(super) const fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    pub(super) const fn ring(&self) -> Option<u64> {
        self.ring
    }

    /// How often the request went back to its queue: who had it before may not answer it any more.
    pub(super) fn returns(&self) -> u32 {
        self.returns.load(Ordering::Acquire)
    }

    /// From when on whoever has leased the request may not answer it, whether or not it went back yet.
    pub(super) fn lapses(&self) -> Option<Timestamp> {
        Some(self.lapses.load(Ordering::Acquire)).filter(|at| *at != NEVER).map(Timestamp::from_micros)
    }

    pub(super) fn leased(&self, until: Timestamp) {
        self.lapses.store(until.as_micros(), Ordering::Release);
    }

    pub(super) fn unleased(&self, returns: u32) {
        self.returns.store(returns, Ordering::Release);
        self.lapses.store(NEVER, Ordering::Release);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// What became of the answer.
    pub(crate) fn tally(&self) -> Tally {
        let tally = self.state.lock().tally;
        Tally { queued: tally.sent - tally.received - tally.held - tally.dead, ..tally }
    }

    /// Uses the right to answer up; false if it was.
    pub(super) fn answer(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }

    pub(super) fn fill(&self, entry: Entry, request: u64, late: bool) -> Filling {
        let mut state = self.state.lock();
        let late = late || state.end.is_some();
        if late {
            return Filling::Late(entry);
        }
        state.tally.sent += 1;
        (state.answer, state.request) = (Some(entry), request);
        Filling::Done(state.waker.take())
    }

    pub(super) fn take(&self, waker: Option<&Waker>) -> Taking {
        // Dropped once the lock is: the last waker of a task may drop the task.
        let _stale;
        let mut state = self.state.lock();
        if let Some(entry) = state.answer.take() {
            state.taken = true;
            state.tally.received += 1;
            return Taking::Answer(entry, state.request);
        }
        if let Some(end) = state.end {
            return Taking::End(end);
        }
        if state.taken {
            return Taking::Spent;
        }
        if let Some(waker) = waker {
            _stale = state.waker.replace(waker.clone());
        }
        Taking::Nothing
    }

    /// Nobody waits any more; an answer that was there comes back.
    pub(crate) fn close(&self, end: End) -> Option<Entry> {
        let (late, waker) = {
            let mut state = self.state.lock();
            state.end.get_or_insert(end);
            // What came in time and is leased stays its holder's past the deadline of its request (§4.4).
            let is_late = matches!(end, End::Timeout);
            let leased = if is_late { None } else { state.leased.take() };
            let late = state.answer.take().or_else(|| leased.map(|leased| leased.entry));
            if late.is_some() {
                state.tally.dead += 1;
            }
            (late, state.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        late
    }

    /// Takes the answer but keeps it until it is acknowledged. Its number and the token.
    pub(super) fn lease(&self, terms: Terms, now: Timestamp) -> (Taking, u64, Returned) {
        let mut returned = Returned::default();
        let mut state = self.state.lock();
        if state.leased.as_ref().is_some_and(|leased| leased.is_due(now)) {
            returned = self.put_in_place(&mut state);
        }
        let (taking, token) = state.keep(Some(terms));
        (taking, token, returned)
    }

    /// Takes the answer for an act that may still be refused; it counts as queued until it is
    /// [received](Slot::receive), held or put back.
    pub(super) fn try_take(&self, waker: Option<&Waker>) -> (Taking, u64) {
        // Dropped once the lock is: the last waker of a task may drop the task.
        let _stale;
        let mut state = self.state.lock();
        let (taking, token) = state.keep(None);
        if matches!(taking, Taking::Nothing)
            && let Some(waker) = waker
        {
            _stale = state.waker.replace(waker.clone());
        }
        (taking, token)
    }

    /// It was handed over for good; false if it ended meanwhile.
    pub(super) fn receive(&self, token: u64) -> bool {
        let mut state = self.state.lock();
        let is_it = state.leased.as_ref().is_some_and(|leased| leased.token == token);
        if is_it {
            (state.leased, state.taken) = (None, true);
            state.tally.received += 1;
        }
        is_it
    }

    /// The requester is done with it; false if it is not its any more.
    pub(crate) fn ack(&self, token: u64, now: Timestamp) -> (bool, Returned) {
        let mut state = self.state.lock();
        match &state.leased {
            Some(leased) if leased.token == token && leased.is_due(now) => {
                (false, self.put_in_place(&mut state))
            }
            Some(leased) if leased.token == token => {
                state.leased = None;
                state.taken = true;
                state.tally.received += 1;
                (true, Returned::default())
            }
            _ => (false, Returned::default()),
        }
    }

    /// The requester gives it up.
    pub(crate) fn give_back(&self, token: u64) -> Returned {
        let mut state = self.state.lock();
        if state.leased.as_ref().is_some_and(|leased| leased.token == token) {
            self.put_in_place(&mut state)
        } else {
            Returned::default()
        }
    }

    /// The act it belongs to could not keep it: back, without counting against it.
    pub(super) fn undo_lease(&self, token: u64) {
        let mut state = self.state.lock();
        if state.leased.as_ref().is_some_and(|leased| leased.token == token) {
            state.answer = state.leased.take().map(|leased| leased.entry);
        }
    }

    /// Its screening held it after all; false if it ended meanwhile.
    pub(super) fn hold_lease(&self, token: u64) -> bool {
        let mut state = self.state.lock();
        let is_it = state.leased.as_ref().is_some_and(|leased| leased.token == token);
        if is_it {
            (state.leased, state.taken) = (None, true);
            state.tally.held += 1;
        }
        is_it
    }

    /// Its time with the requester is over, if it is.
    pub(crate) fn expire_lease(&self, now: Timestamp) -> Returned {
        let mut state = self.state.lock();
        if state.leased.as_ref().is_some_and(|leased| leased.is_due(now)) {
            self.put_in_place(&mut state)
        } else {
            Returned::default()
        }
    }

    fn put_in_place(&self, state: &mut State) -> Returned {
        let Some(Leased { terms, mut entry, .. }) = state.leased.take() else { return Returned::default() };
        let extra = entry.extra.get_or_insert_default();
        extra.returns = extra.returns.saturating_add(1);
        if terms.is_some_and(|terms| extra.returns > terms.redeliveries) {
            state.taken = true;
            state.tally.dead += 1;
            return Returned { worn: Some(entry), wake: state.waker.take() };
        }
        state.answer = Some(entry);
        Returned { worn: None, wake: state.waker.take() }
    }
}

impl State {
    /// Takes the answer out but keeps it. What is found, and the token.
    fn keep(&mut self, terms: Option<Terms>) -> (Taking, u64) {
        let Some(entry) = self.answer.take() else {
            let taking = match self.end {
                Some(end) => Taking::End(end),
                None if self.taken => Taking::Spent,
                None => Taking::Nothing,
            };
            return (taking, 0);
        };
        self.tokens += 1;
        let (token, copy) = (self.tokens, entry.share());
        self.leased = Some(Leased { token, terms, entry });
        (Taking::Answer(copy, self.request), token)
    }
}

/// What came of an answer that went back. Acted on once the lock is released.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// It was put back too often.
    pub(crate) worn: Option<Entry>,
    pub(crate) wake: Option<Waker>,
}
