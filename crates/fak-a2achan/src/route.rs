//! A route: one sender's way into one mailbox or topic. It carries who sends and where to, so that a
//! queued message needs one count for both, and it tallies what the sender has queued there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fak_abi::{OwnedAddress, Principal};

use crate::account::Account;

/// See the module. What came in is written only under the mailbox's input lock (the topic's), what
/// went out only under its output lock, so both are plain stores; but for publications.
#[derive(Debug)]
pub(crate) struct Route {
    from: Arc<Principal>,
    to: Arc<OwnedAddress>,
    /// Where the sender's bytes are accounted; `None` for what is not (answers).
    account: Option<Arc<Account>>,
    messages_in: AtomicU64,
    messages_out: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    /// Bytes the sender may have queued here before it must ask its account.
    allowance: AtomicU64,
}

fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// What is between two counters. They wrap, and without a lock the second may be ahead for a moment.
fn between(came: &AtomicU64, went: &AtomicU64) -> u64 {
    let between = came.load(Ordering::Relaxed).wrapping_sub(went.load(Ordering::Relaxed));
    if between > u64::MAX / 2 { 0 } else { between }
}

impl Route {
    pub(crate) fn new(
        from: Arc<Principal>,
        to: Arc<OwnedAddress>,
        account: Option<Arc<Account>>,
    ) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let (messages_in, messages_out, bytes_in, bytes_out, allowance) =
            (zero(), zero(), zero(), zero(), zero());
        Arc::new(Self { from, to, account, messages_in, messages_out, bytes_in, bytes_out, allowance })
    }

    pub(crate) const fn from(&self) -> &Arc<Principal> {
        &self.from
    }

    pub(crate) fn to(&self) -> &OwnedAddress {
        &self.to
    }

    pub(crate) const fn address(&self) -> &Arc<OwnedAddress> {
        &self.to
    }

    /// Messages of this route that are queued.
    #[inline]
    pub(crate) fn queued(&self) -> u64 {
        between(&self.messages_in, &self.messages_out)
    }

    /// Bytes of this route that are queued.
    #[inline]
    pub(crate) fn queued_bytes(&self) -> u64 {
        between(&self.bytes_in, &self.bytes_out)
    }

    pub(crate) fn allowance(&self) -> u64 {
        self.allowance.load(Ordering::Relaxed)
    }

    pub(crate) fn set_allowance(&self, bytes: u64) {
        self.allowance.store(bytes, Ordering::Relaxed);
    }

    /// True if `bytes` more may be queued. Two loads, unless the account has to be asked.
    #[inline]
    pub(crate) fn admits(&self, bytes: u64) -> bool {
        let Some(account) = &self.account else { return true };
        self.queued_bytes().saturating_add(bytes) <= self.allowance() || account.allow(self, bytes)
    }

    /// Takes back what entered by a reservation. Under the mailbox's input lock.
    pub(crate) fn unenter(&self, bytes: usize) {
        add(&self.messages_in, 1_u64.wrapping_neg());
        add(&self.bytes_in, (bytes as u64).wrapping_neg());
    }

    /// Under the input lock: a message came in.
    pub(crate) fn enter(&self, bytes: usize) {
        add(&self.messages_in, 1);
        add(&self.bytes_in, bytes as u64);
    }

    /// Under the output lock: a message went out.
    pub(crate) fn leave(&self, bytes: usize) {
        add(&self.messages_out, 1);
        add(&self.bytes_out, bytes as u64);
    }

    /// A publication went out of the last of its queues, which have no lock in common.
    pub(crate) fn leave_shared(&self, bytes: usize) {
        self.messages_out.fetch_add(1, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Under the output lock: a message that went out is back.
    pub(crate) fn back(&self, bytes: usize) {
        add(&self.messages_out, 1_u64.wrapping_neg());
        add(&self.bytes_out, (bytes as u64).wrapping_neg());
    }
}
