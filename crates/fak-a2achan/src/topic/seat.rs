//! A subscription's private inbox (§4.5), as its subscription holds it: a seat in a cohort.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use fak_abi::Principal;

use super::cohort::Cohort;
use crate::delivery::End;
use crate::sync::{Locks, Native};

/// See the module. Reached only through its subscription.
pub(crate) struct Inbox<L: Locks = Native> {
    cohort: Arc<Cohort<L>>,
    subscriber: Arc<Principal>,
    /// Which subscription of its topic this is, from 1 on.
    number: u64,
    /// Which of the cohort's seats.
    pub(super) place: usize,
    /// Its subscription has leased copies.
    pub(super) leases: AtomicBool,
    /// Set under the cohort's lock, together with the seat being left.
    pub(super) ended: OnceLock<End>,
}

impl<L: Locks> Inbox<L> {
    pub(super) fn new(cohort: Arc<Cohort<L>>, subscriber: Arc<Principal>, number: u64, place: usize) -> Self {
        let (leases, ended) = (AtomicBool::new(false), OnceLock::new());
        Self { cohort, subscriber, number, place, leases, ended }
    }

    pub(crate) const fn subscriber(&self) -> &Arc<Principal> {
        &self.subscriber
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    pub(super) const fn cohort(&self) -> &Arc<Cohort<L>> {
        &self.cohort
    }
}
