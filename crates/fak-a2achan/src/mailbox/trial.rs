//! Messages that were taken by an act that may still be refused (§3.1, §4.4): each keeps its slot and
//! counts as queued until it is settled, so that it can go back without anything being in its place.

use std::sync::atomic::Ordering;

use fak_abi::ShareScope;

use super::{Input, Mailbox, Output, Purge, Wakes};
use crate::delivery::End;
use crate::entry::Entry;
use crate::message::Cause;
use crate::stats::Tally;
use crate::sync::{Lock as _, Locks};

/// What became of a message on trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Received,
    Held,
    Dead,
}

impl Fate {
    fn book(self, tally: &mut Tally) {
        match self {
            Self::Received => tally.received += 1,
            Self::Held => tally.held += 1,
            Self::Dead => tally.dead += 1,
        }
    }

    /// In books that took it over while it was queued.
    pub(crate) fn rebook(self, past: &mut Tally) {
        past.queued -= 1;
        self.book(past);
    }
}

/// What settling a message leaves to be done, once the locks are released.
#[must_use]
#[derive(Debug)]
pub(crate) struct Settlement {
    pub(crate) wakes: Wakes,
    /// The books of the mailbox were taken over meanwhile: this is to be booked there.
    pub(crate) late: Option<Fate>,
}

impl Output {
    /// Why it would have been purged since it was taken, had it been queued.
    fn ended(&self, entry: &Entry) -> Option<End> {
        let freed = self.purged.filter(|(last, _)| entry.seq <= *last).map(|(_, end)| end);
        // A private message may flow to its sender alone.
        let is_lost = entry.body.scope() == ShareScope::Agent && !entry.route.from().is_attached();
        freed.or(is_lost.then_some(End::Detach))
    }
}

impl<L: Locks> Mailbox<L> {
    /// It does not go back: its slot is free.
    pub(crate) fn settle(&self, entry: &Entry, fate: Fate) -> Settlement {
        let mut settlement = Settlement { wakes: Wakes::new(), late: None };
        let mut out = self.output.lock.lock();
        entry.route.leave(entry.body.len());
        if out.booked {
            settlement.late = Some(fate);
        } else {
            fate.book(&mut out.tally);
        }
        self.add_gone(&mut out, 1, &mut settlement.wakes);
        settlement
    }

    /// It goes back to its place, as if it had not been taken. `Err` where that is not to be: it is
    /// still to be settled, and is dead for this reason.
    pub(crate) fn put_back(&self, entry: Entry) -> Result<Purge, (Entry, Cause)> {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        if let Some(end) = input.end.or_else(|| out.ended(&entry)) {
            return Err((entry, Cause::End(end)));
        }
        self.reinsert(&mut input, &mut out, entry, &mut purge);
        Ok(purge)
    }

    /// Its tallies, which are somebody else's from here on.
    pub(crate) fn close_books(&self) -> Tally {
        let mut out = self.output.lock.lock();
        out.booked = true;
        let mut input = self.input.lock();
        self.fold_direct(&mut input, &mut out);
        self.sum(&input, &out)
    }

    /// What became of everything that ever came in. Both locks are held.
    pub(super) fn sum(&self, input: &Input, out: &Output) -> Tally {
        let gone = self.output.gone.load(Ordering::Relaxed);
        Tally { sent: input.accepted, queued: input.accepted.saturating_sub(gone), ..out.tally }
    }
}
