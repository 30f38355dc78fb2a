//! The private inbox of one answer: registered before the request is sent, filled at most once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use fak_abi::{Principal, Timestamp};
use parking_lot::Mutex;

use crate::account::Account;
use crate::delivery::End;
use crate::entry::Entry;

/// See the module.
#[derive(Debug)]
pub(crate) struct Slot {
    requester: Arc<Account>,
    deadline: Option<Timestamp>,
    ring: Option<u64>,
    answered: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answer: Option<Entry>,
    /// The number of the request.
    request: u64,
    waker: Option<Waker>,
    taken: bool,
    end: Option<End>,
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
        let (answered, state) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { requester, deadline, ring, answered, state })
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

    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
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
        self.requester.retally(|tally| tally.sent += 1);
        (state.answer, state.request) = (Some(entry), request);
        Filling::Done(state.waker.take())
    }

    pub(super) fn take(&self, waker: Option<&Waker>) -> Taking {
        let mut state = self.state.lock();
        if let Some(entry) = state.answer.take() {
            state.taken = true;
            self.requester.retally(|tally| tally.received += 1);
            return Taking::Answer(entry, state.request);
        }
        if let Some(end) = state.end {
            return Taking::End(end);
        }
        if state.taken {
            return Taking::Spent;
        }
        if let Some(waker) = waker {
            state.waker = Some(waker.clone());
        }
        Taking::Nothing
    }

    pub(super) fn put_back(&self, entry: Entry) {
        let mut state = self.state.lock();
        state.taken = false;
        state.answer = Some(entry);
        self.requester.retally(|tally| tally.received -= 1);
    }

    /// What was taken is held after all.
    pub(super) fn hold(&self) {
        self.requester.retally(|tally| (tally.received, tally.held) = (tally.received - 1, tally.held + 1));
    }

    /// Nobody waits any more; an answer that was there comes back.
    pub(super) fn close(&self, end: End) -> Option<Entry> {
        let (late, waker) = {
            let mut state = self.state.lock();
            state.end.get_or_insert(end);
            let late = state.answer.take();
            if late.is_some() {
                self.requester.retally(|tally| tally.dead += 1);
            }
            (late, state.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        late
    }
}
