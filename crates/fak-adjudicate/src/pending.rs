//! Submissions that were admitted and not yet reaped (§3.3). Bounded, in all and per principal.

use std::collections::HashMap;
use std::sync::Arc;

use fak_abi::{EngineClaim, OwnedCall, Principal, TicketError};
use parking_lot::Mutex;

use crate::builder::KernelLimits;

/// An admitted call with what its engine set aside. Dropping it releases that.
pub(crate) struct Admitted {
    pub(crate) call: OwnedCall,
    pub(crate) claim: Option<EngineClaim>,
}

pub(crate) struct Pending {
    limits: KernelLimits,
    set: Mutex<Set>,
}

#[derive(Default)]
struct Set {
    calls: HashMap<u64, Slot>,
    /// By incarnation.
    each: HashMap<u64, usize>,
}

enum Slot {
    /// A place kept between the decision and the insertion.
    Reserved(Arc<Principal>),
    Waiting(Box<Admitted>),
    /// Being run right now by whoever reaps it.
    Running(Arc<Principal>),
}

impl Slot {
    fn principal(&self) -> &Arc<Principal> {
        match self {
            Self::Reserved(principal) | Self::Running(principal) => principal,
            Self::Waiting(admitted) => admitted.call.view().principal(),
        }
    }
}

impl Pending {
    pub(crate) fn new(limits: KernelLimits) -> Self {
        Self { limits, set: Mutex::default() }
    }

    /// Keeps a place under `seq`; false if there is none.
    pub(crate) fn reserve(&self, seq: u64, principal: &Arc<Principal>) -> bool {
        let mut set = self.set.lock();
        if set.calls.len() >= self.limits.pending {
            return false;
        }
        let mine = set.each.entry(principal.incarnation()).or_default();
        if *mine >= self.limits.pending_each {
            return false;
        }
        *mine += 1;
        set.calls.insert(seq, Slot::Reserved(Arc::clone(principal)));
        true
    }

    pub(crate) fn fill(&self, seq: u64, admitted: Admitted) {
        let mut set = self.set.lock();
        // Gone if the principal was detached meanwhile: then the call goes with it.
        if let Some(slot) = set.calls.get_mut(&seq) {
            *slot = Slot::Waiting(Box::new(admitted));
        }
    }

    /// Takes a call out to run it. Its place stays kept.
    pub(crate) fn take(&self, seq: u64, by: &Arc<Principal>) -> Result<Admitted, TicketError> {
        let mut set = self.set.lock();
        let slot = set.calls.get_mut(&seq).ok_or(TicketError::Spent)?;
        if !Arc::ptr_eq(slot.principal(), by) {
            return Err(TicketError::Foreign);
        }
        match std::mem::replace(slot, Slot::Running(Arc::clone(by))) {
            Slot::Waiting(admitted) => Ok(*admitted),
            other => {
                *slot = other;
                Err(TicketError::Spent)
            }
        }
    }

    /// Frees the place of a call that is over.
    pub(crate) fn finish(&self, seq: u64) {
        let mut set = self.set.lock();
        if let Some(slot) = set.calls.remove(&seq) {
            let incarnation = slot.principal().incarnation();
            set.leave(incarnation);
        }
    }

    /// Drops everything of a principal that was detached, releasing claims outside the lock.
    pub(crate) fn forget(&self, principal: &Principal) {
        let mut set = self.set.lock();
        let gone: Vec<_> =
            set.calls.extract_if(|_, slot| std::ptr::eq(Arc::as_ptr(slot.principal()), principal)).collect();
        set.each.remove(&principal.incarnation());
        drop(set);
        drop(gone);
    }

    pub(crate) fn len(&self) -> usize {
        self.set.lock().calls.len()
    }
}

impl Set {
    fn leave(&mut self, incarnation: u64) {
        if let Some(mine) = self.each.get_mut(&incarnation) {
            *mine -= 1;
            if *mine == 0 {
                self.each.remove(&incarnation);
            }
        }
    }
}
