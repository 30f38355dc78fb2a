//! How a copy that keeps its slot is settled (§4.4): received, held, or put back at its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use fak_abi::Timestamp;

use super::cohort::State;
use super::issue::Issue;
use super::own::Kept;
use super::seat::Inbox;
use crate::sync::Locks;

/// What came of settling a copy. Acted on once the lock is released.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// It was still its subscriber's, and is what was asked for.
    pub(crate) done: bool,
    /// What was put back too often.
    pub(crate) worn: Vec<Arc<Issue>>,
    pub(crate) wake: Option<Waker>,
}

impl<L: Locks> State<L> {
    fn kept(&mut self, inbox: &Inbox<L>, token: u64) -> Option<Kept> {
        self.member(inbox)?;
        self.own(inbox.place)?.take_kept(token)
    }

    /// Back to its place: whoever waits is told.
    fn put_back(
        &mut self,
        inbox: &Inbox<L>,
        kept: Kept,
        counted: bool,
    ) -> (Option<Arc<Issue>>, Option<Waker>) {
        let Some(own) = self.own(inbox.place) else { return (None, None) };
        let worn = own.put_back(kept, counted);
        if worn.is_some() {
            self.tally.dead += 1;
            return (worn, None);
        }
        (None, self.take_waker(inbox))
    }

    /// Everything whose time with its holder is over goes back. The worn out comes back.
    pub(super) fn return_due(&mut self, inbox: &Inbox<L>, now: Timestamp) -> Vec<Arc<Issue>> {
        let mut worn = Vec::new();
        while self.member(inbox).is_some()
            && let Some(kept) = self.own(inbox.place).and_then(|own| own.take_due(now))
        {
            let Some(own) = self.own(inbox.place) else { break };
            worn.extend(own.put_back(kept, true));
        }
        self.tally.dead += worn.len() as u64;
        worn
    }
}

impl<L: Locks> Inbox<L> {
    /// Leases make it depend on the time.
    pub(crate) fn note_leases(&self) {
        self.leases.store(true, Ordering::Relaxed);
    }

    /// True if a look into it needs the time.
    pub(crate) fn is_timed(&self) -> bool {
        self.cohort().is_timed() || self.leases.load(Ordering::Relaxed)
    }

    /// It was handed over for good; done unless the subscription has ended.
    pub(crate) fn receive(&self, token: u64) -> bool {
        let kept = {
            let mut state = self.cohort().lock();
            let kept = state.kept(self, token);
            state.tally.received += u64::from(kept.is_some());
            state.rejoin(self.place, self.cohort().apart());
            kept
        };
        kept.map(Kept::into_issue).is_some()
    }

    /// The holder is done with it; done unless it is not the holder's any more.
    pub(crate) fn ack(&self, token: u64, now: Timestamp) -> Settled {
        let mut settled = Settled::default();
        let mut received = None;
        {
            let mut state = self.cohort().lock();
            match state.kept(self, token) {
                Some(kept) if kept.is_due(now) => {
                    let (worn, wake) = state.put_back(self, kept, true);
                    settled.worn.extend(worn);
                    settled.wake = wake;
                }
                Some(kept) => {
                    settled.done = true;
                    state.tally.received += 1;
                    received = Some(kept);
                }
                None => {}
            }
            state.rejoin(self.place, self.cohort().apart());
        }
        received.into_iter().for_each(|kept| drop(kept.into_issue()));
        settled
    }

    /// It goes back to its place; `counted` if that was its holder's doing.
    pub(crate) fn give_back(&self, token: u64, counted: bool) -> Settled {
        let mut settled = Settled::default();
        let mut state = self.cohort().lock();
        if let Some(kept) = state.kept(self, token) {
            if !counted && let Some(member) = state.member(self) {
                member.missed += kept.missed;
            }
            let (worn, wake) = state.put_back(self, kept, counted);
            settled = Settled { done: true, worn: worn.into_iter().collect(), wake };
            state.rejoin(self.place, self.cohort().apart());
        }
        settled
    }

    /// It is held: neither queued nor received. False if the subscription has ended.
    pub(crate) fn hold(&self, token: u64) -> bool {
        let kept = {
            let mut state = self.cohort().lock();
            let kept = state.kept(self, token);
            state.tally.held += u64::from(kept.is_some());
            // Nobody was told yet.
            if let (Some(kept), Some(member)) = (&kept, state.member(self)) {
                member.missed += kept.missed;
            }
            state.rejoin(self.place, self.cohort().apart());
            kept
        };
        kept.map(Kept::into_issue).is_some()
    }

    /// Everything whose time with its holder is over goes back.
    pub(crate) fn expire_leases(&self, now: Timestamp) -> Settled {
        let mut state = self.cohort().lock();
        let worn = state.return_due(self, now);
        let wake = if state.own(self.place).is_some_and(|own| own.has_queued()) {
            state.take_waker(self)
        } else {
            None
        };
        state.rejoin(self.place, self.cohort().apart());
        Settled { done: true, worn, wake }
    }
}
