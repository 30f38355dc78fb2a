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
    /// `None` for what is not accounted: answers.
    books: Option<Box<Books>>,
}

#[derive(Debug)]
struct Books {
    /// Where the sender's bytes are accounted.
    account: Arc<Account>,
    came: Came,
    went: Went,
}

/// The sender's side, on a cache line that receivers leave alone.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Came {
    messages: AtomicU64,
    bytes: AtomicU64,
    /// What was last seen of the other side: lower bounds, so that a bound is checked without
    /// touching the receivers' line until it matters.
    messages_gone: AtomicU64,
    bytes_gone: AtomicU64,
    /// Bytes the sender may have queued here before it must ask its account.
    allowance: AtomicU64,
}

/// The receivers' side.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Went {
    messages: AtomicU64,
    bytes: AtomicU64,
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
        let books = |account| Box::new(Books { account, came: Came::default(), went: Went::default() });
        Arc::new(Self { from, to, books: account.map(books) })
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
        self.books.as_ref().map_or(0, |books| between(&books.came.messages, &books.went.messages))
    }

    /// Bytes of this route that are queued.
    #[inline]
    pub(crate) fn queued_bytes(&self) -> u64 {
        self.books.as_ref().map_or(0, |books| books.queued_bytes())
    }

    pub(crate) fn allowance(&self) -> u64 {
        self.books.as_ref().map_or(0, |books| books.came.allowance.load(Ordering::Relaxed))
    }

    pub(crate) fn set_allowance(&self, bytes: u64) {
        if let Some(books) = &self.books {
            books.came.allowance.store(bytes, Ordering::Relaxed);
        }
    }

    /// True if fewer than `share` messages of this route are queued. Under the input lock.
    #[inline]
    pub(crate) fn has_share(&self, share: u64) -> bool {
        let Some(books) = &self.books else { return true };
        let Books { came, went, .. } = &**books;
        between(&came.messages, &came.messages_gone) < share || {
            came.messages_gone.store(went.messages.load(Ordering::Relaxed), Ordering::Relaxed);
            between(&came.messages, &came.messages_gone) < share
        }
    }

    /// True if `bytes` more may be queued. Under the input lock (the topic's).
    #[inline]
    pub(crate) fn admits(&self, bytes: u64) -> bool {
        let Some(books) = &self.books else { return true };
        let Came { bytes: came, bytes_gone: gone, allowance, .. } = &books.came;
        between(came, gone).saturating_add(bytes) <= allowance.load(Ordering::Relaxed)
            || self.admits_after_all(books, bytes)
    }

    #[cold]
    fn admits_after_all(&self, books: &Books, bytes: u64) -> bool {
        books.came.bytes_gone.store(books.went.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        books.queued_bytes().saturating_add(bytes) <= self.allowance() || books.account.allow(self, bytes)
    }

    /// Takes back what entered by a reservation. Under the mailbox's input lock.
    #[inline]
    pub(crate) fn unenter(&self, bytes: usize) {
        if let Some(books) = &self.books {
            add(&books.came.messages, 1_u64.wrapping_neg());
            add(&books.came.bytes, (bytes as u64).wrapping_neg());
        }
    }

    /// Under the input lock: a message came in.
    #[inline]
    pub(crate) fn enter(&self, bytes: usize) {
        if let Some(books) = &self.books {
            add(&books.came.messages, 1);
            add(&books.came.bytes, bytes as u64);
        }
    }

    /// Under the output lock: a message went out.
    #[inline]
    pub(crate) fn leave(&self, bytes: usize) {
        if let Some(books) = &self.books {
            add(&books.went.messages, 1);
            add(&books.went.bytes, bytes as u64);
        }
    }

    /// A publication went out of the last of its queues, which have no lock in common.
    pub(crate) fn leave_shared(&self, bytes: usize) {
        if let Some(books) = &self.books {
            books.went.messages.fetch_add(1, Ordering::Relaxed);
            books.went.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

impl Books {
    fn queued_bytes(&self) -> u64 {
        between(&self.came.bytes, &self.went.bytes)
    }
}
