//! The private inbox of one answer: registered before the request is sent, filled at most once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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

/// An answer that the requester has, but has not acknowledged (§4.4).
#[derive(Debug)]
struct Leased {
    token: u64,
    terms: Terms,
    entry: Entry,
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

impl Slot {
    pub(super) fn new(requester: Arc<Account>, deadline: Option<Timestamp>, ring: Option<u64>) -> Arc<Self> {
        let (answered, returns, state) = (AtomicBool::new(false), AtomicU32::new(0), Mutex::default());
        Arc::new(Self { requester, deadline, ring, answered, returns, state })
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

    pub(super) fn went_back(&self, returns: u32) {
        self.returns.store(returns, Ordering::Release);
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

    pub(super) fn put_back(&self, entry: Entry) {
        let mut state = self.state.lock();
        state.taken = false;
        state.answer = Some(entry);
        state.tally.received -= 1;
    }

    /// What was taken is held after all.
    pub(super) fn hold(&self) {
        let tally = &mut self.state.lock().tally;
        (tally.received, tally.held) = (tally.received - 1, tally.held + 1);
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
        if state.leased.as_ref().is_some_and(|leased| now >= leased.terms.until) {
            returned = self.put_in_place(&mut state);
        }
        let Some(entry) = state.answer.take() else {
            let taking = match state.end {
                Some(end) => Taking::End(end),
                None if state.taken => Taking::Spent,
                None => Taking::Nothing,
            };
            return (taking, 0, returned);
        };
        state.tokens += 1;
        let (token, copy) = (state.tokens, entry.share());
        state.leased = Some(Leased { token, terms, entry });
        (Taking::Answer(copy, state.request), token, returned)
    }

    /// The requester is done with it; false if it is not its any more.
    pub(crate) fn ack(&self, token: u64, now: Timestamp) -> (bool, Returned) {
        let mut state = self.state.lock();
        match &state.leased {
            Some(leased) if leased.token == token && now >= leased.terms.until => {
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
        if state.leased.as_ref().is_some_and(|leased| now >= leased.terms.until) {
            self.put_in_place(&mut state)
        } else {
            Returned::default()
        }
    }

    fn put_in_place(&self, state: &mut State) -> Returned {
        let Some(Leased { terms, mut entry, .. }) = state.leased.take() else { return Returned::default() };
        let extra = entry.extra.get_or_insert_default();
        extra.returns = extra.returns.saturating_add(1);
        if extra.returns > terms.redeliveries {
            state.taken = true;
            state.tally.dead += 1;
            return Returned { worn: Some(entry), wake: state.waker.take() };
        }
        state.answer = Some(entry);
        Returned { worn: None, wake: state.waker.take() }
    }
}

/// What came of an answer that went back. Acted on once the lock is released.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// It was put back too often.
    pub(crate) worn: Option<Entry>,
    pub(crate) wake: Option<Waker>,
}
