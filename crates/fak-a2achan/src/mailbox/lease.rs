//! Messages that were received but not yet acknowledged (§4.4): each keeps its slot and counts as
//! queued until it is acknowledged, or is put back at its place.

use std::sync::Arc;

use fak_abi::{Principal, Timestamp};

use super::{Mailbox, Output, Purge, Sought, Wakes};
use crate::entry::{Entry, Extra};
use crate::request::Return;
use crate::sync::{Lock as _, Locks};

/// On what terms a message is leased.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// From when on it is no longer its holder's.
    pub(crate) until: Timestamp,
    /// How often it may be put back.
    pub(crate) redeliveries: u32,
}

/// A message that somebody holds.
pub(super) struct Leased {
    token: u64,
    holder: Arc<Principal>,
    terms: Terms,
    entry: Entry,
}

impl Leased {
    /// It is a dead letter: if it is a request, nobody answers it any more (§4.7).
    pub(super) fn end(self, unleased: &mut Vec<(Return, Arc<Principal>)>) -> Entry {
        let Self { holder, entry, .. } = self;
        if let Some((answer, returns)) = entry.answer() {
            answer.unleased(returns.saturating_add(1));
            unleased.push((answer.clone(), holder));
        }
        entry
    }

    pub(super) fn is_held_by(&self, who: &Principal) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.holder), who)
    }
}

impl Output {
    pub(super) fn lease(&mut self, holder: &Arc<Principal>, terms: &Terms, entry: Entry) -> u64 {
        self.next_token += 1;
        let token = self.next_token;
        if let Some((answer, _)) = entry.answer() {
            answer.leased(terms.until);
        }
        self.leased.push(Leased { token, holder: Arc::clone(holder), terms: *terms, entry });
        token
    }

    fn leased_at(&self, token: u64) -> Option<usize> {
        self.leased.iter().position(|leased| leased.token == token)
    }
}

impl<L: Locks> Mailbox<L> {
    /// The holder is done with it; false if it is not the holder's any more.
    pub(crate) fn ack(&self, token: u64, now: Timestamp) -> (bool, Purge) {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        let Some(at) = out.leased_at(token) else { return (false, purge) };
        let leased = out.leased.swap_remove(at);
        if now >= leased.terms.until {
            self.return_to_place(&mut out, leased, &mut purge);
            return (false, purge);
        }
        leased.entry.unlease();
        leased.entry.route.leave(leased.entry.body.len());
        out.tally.received += 1;
        self.add_gone(&mut out, 1, &mut purge.wakes);
        (true, purge)
    }

    /// The holder gives it up; it goes back to its place, or is returned as worn out.
    pub(crate) fn give_back(&self, token: u64) -> Purge {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        if let Some(at) = out.leased_at(token) {
            let leased = out.leased.swap_remove(at);
            self.return_to_place(&mut out, leased, &mut purge);
        }
        purge
    }

    /// A lease whose screening held it after all: it is neither queued nor received. `None` if it was
    /// over.
    pub(crate) fn drop_lease(&self, token: u64) -> Option<Wakes> {
        let mut wakes = Wakes::new();
        let mut out = self.output.lock.lock();
        let leased = out.leased_at(token).map(|at| out.leased.swap_remove(at))?;
        leased.entry.route.leave(leased.entry.body.len());
        out.tally.held += 1;
        self.add_gone(&mut out, 1, &mut wakes);
        Some(wakes)
    }

    /// A lease that the act it belongs to could not keep: back, without counting against it.
    pub(crate) fn undo_lease(&self, token: u64) -> Purge {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        if let Some(at) = out.leased_at(token) {
            let leased = out.leased.swap_remove(at);
            leased.entry.unlease();
            self.reinsert(&mut self.input.lock(), &mut out, leased.entry, &mut purge);
        }
        purge
    }

    /// Everything whose time with its holder is over goes back.
    pub(crate) fn expire_leases(&self, now: Timestamp) -> Purge {
        let mut purge = Purge::default();
        let mut out = self.output.lock.lock();
        self.return_due(&mut out, now, &mut purge);
        purge
    }

    pub(super) fn put_back_due(&self, out: &mut Output, now: Timestamp, sought: &mut Sought) {
        let mut purge = Purge::default();
        self.return_due(out, now, &mut purge);
        sought.worn.append(&mut purge.entries);
        sought.bound.append(&mut purge.bound);
        sought.unleased.append(&mut purge.unleased);
        sought.wakes.append(&mut purge.wakes);
    }

    fn return_due(&self, out: &mut Output, now: Timestamp, purge: &mut Purge) {
        while let Some(at) = out.leased.iter().position(|leased| now >= leased.terms.until) {
            let leased = out.leased.swap_remove(at);
            self.return_to_place(out, leased, purge);
        }
    }

    /// Everything that `who` holds goes back.
    pub(super) fn return_all_of(&self, out: &mut Output, who: &Principal, purge: &mut Purge) {
        while let Some(at) = out.leased.iter().position(|leased| leased.is_held_by(who)) {
            let leased = out.leased.swap_remove(at);
            self.return_to_place(out, leased, purge);
        }
    }

    fn return_to_place(&self, out: &mut Output, leased: Leased, purge: &mut Purge) {
        let Leased { terms, mut entry, holder, .. } = leased;
        let extra = entry.extra.get_or_insert_with(|| Box::new(Extra::default()));
        extra.returns = extra.returns.saturating_add(1);
        if let Some(answer) = &extra.answer {
            answer.unleased(extra.returns);
            purge.unleased.push((answer.clone(), holder));
        }
        if extra.returns > terms.redeliveries {
            entry.route.leave(entry.body.len());
            out.tally.dead += 1;
            self.add_gone(out, 1, &mut purge.wakes);
            purge.entries.push(entry);
        } else {
            self.reinsert(&mut self.input.lock(), out, entry, purge);
        }
    }

    /// Leases make a mailbox depend on the time.
    pub(crate) fn note_leases(&self) {
        self.note_timed();
    }
}
