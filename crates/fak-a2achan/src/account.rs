//! What a bus keeps of one attached principal: how much it has taken (§4.12) and what is its own.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use fak_abi::{ChannelKey, Id, OwnedAddress, Principal};
use parking_lot::Mutex;

use crate::config::Limits;
use crate::delivery::End;
use crate::mailbox::Mailbox;
use crate::request::Slot;
use crate::route::Route;
use crate::stats::Tally;

/// How many of something a principal has taken.
#[derive(Debug, Default)]
pub(crate) struct Quota(AtomicU32);

impl Quota {
    /// Takes one more, unless that were above `limit`.
    pub(crate) fn take(&self, limit: u32) -> bool {
        if self.0.fetch_add(1, Ordering::Relaxed) < limit {
            return true;
        }
        self.give();
        false
    }

    /// Gives one back.
    pub(crate) fn give(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an inbox of one principal alone is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum InboxName {
    /// What is handed over in a group it is a member of (§6.3).
    Group(Id),
    /// Corrections of it (§4.9).
    Correction,
    /// Acknowledgements of its corrections (§4.9).
    Ack,
}

/// The inboxes that are a principal's alone.
#[derive(Default)]
struct Inboxes {
    named: HashMap<InboxName, Arc<Mailbox>>,
    closed: bool,
}

/// The requests that a principal has open, and what became of the answers to those that are over.
#[derive(Default)]
struct Answers {
    open: Vec<Option<Arc<Slot>>>,
    /// Places in `open` that nothing is at.
    free: Vec<usize>,
    past: Tally,
    closed: bool,
}

impl Answers {
    fn tally(&self) -> Tally {
        let mut sum = self.past;
        self.open.iter().flatten().for_each(|slot| sum += slot.tally());
        sum
    }
}

/// The ways of a principal into mailboxes and topics.
#[derive(Default)]
struct Routes {
    all: Vec<Weak<Route>>,
    /// The allowances of all of them, and of some that are gone since they were last added up.
    granted: u64,
}

/// See the module.
pub(crate) struct Account {
    principal: Arc<Principal>,
    limits: Limits,
    routes: Mutex<Routes>,
    inboxes: Mutex<Inboxes>,
    answers: Mutex<Answers>,
    pub(crate) mailboxes: Quota,
    pub(crate) subscriptions: Quota,
    pub(crate) waits: Quota,
    pub(crate) leases: Quota,
    pub(crate) requests: Quota,
    pub(crate) windows: Quota,
}

impl Account {
    pub(crate) fn new(principal: Arc<Principal>, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            principal,
            limits,
            routes: Mutex::default(),
            inboxes: Mutex::default(),
            answers: Mutex::default(),
            mailboxes: Quota::default(),
            subscriptions: Quota::default(),
            waits: Quota::default(),
            leases: Quota::default(),
            requests: Quota::default(),
            windows: Quota::default(),
        })
    }

    pub(crate) const fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Every inbox that is this principal's alone.
    pub(crate) fn inboxes(&self) -> Vec<Arc<Mailbox>> {
        self.inboxes.lock().named.values().cloned().collect()
    }

    /// Takes the inboxes away; none is made from here on.
    pub(crate) fn close(&self) -> Vec<Arc<Mailbox>> {
        let mut inboxes = self.inboxes.lock();
        inboxes.closed = true;
        inboxes.named.drain().map(|(_, inbox)| inbox).collect()
    }

    /// An answer is going to be waited for: where it is listed. Once the principal is detached it is
    /// over at once.
    pub(crate) fn await_answer(&self, slot: &Arc<Slot>) -> usize {
        let mut answers = self.answers.lock();
        if answers.closed {
            drop(answers);
            slot.close(End::Detach);
            return usize::MAX;
        }
        let listed = Some(Arc::clone(slot));
        if let Some(place) = answers.free.pop()
            && let Some(open) = answers.open.get_mut(place)
        {
            *open = listed;
            return place;
        }
        answers.open.push(listed);
        answers.open.len() - 1
    }

    /// The answer listed there is waited for no more, and nothing can become of it any more.
    pub(crate) fn settle_answer(&self, place: usize) {
        let mut answers = self.answers.lock();
        let Some(slot) = answers.open.get_mut(place).and_then(Option::take) else { return };
        answers.past += slot.tally();
        answers.free.push(place);
    }

    /// The answers that are waited for.
    pub(crate) fn open_requests(&self) -> Vec<Arc<Slot>> {
        self.answers.lock().open.iter().flatten().cloned().collect()
    }

    /// What became of the answers to this principal's requests.
    pub(crate) fn tally(&self) -> Tally {
        self.answers.lock().tally()
    }

    /// Nothing is waited for from here on.
    pub(crate) fn close_answers(&self) -> Vec<Arc<Slot>> {
        self.answers.lock().closed = true;
        self.open_requests()
    }

    /// The inbox of this name, if there is one.
    pub(crate) fn find_inbox(&self, name: &InboxName) -> Option<Arc<Mailbox>> {
        self.inboxes.lock().named.get(name).map(Arc::clone)
    }

    /// The inbox of this name, made if there is none; `None` once the principal is detached, or if
    /// `maker` has as many mailboxes as it may have.
    pub(crate) fn inbox(
        &self,
        name: InboxName,
        maker: &Self,
        make: impl FnOnce() -> Mailbox,
    ) -> Option<Arc<Mailbox>> {
        let mut inboxes = self.inboxes.lock();
        if let Some(inbox) = inboxes.named.get(&name) {
            return Some(Arc::clone(inbox));
        }
        if inboxes.closed || !maker.mailboxes.take(maker.limits.mailboxes) {
            return None;
        }
        let inbox = Arc::new(make());
        inboxes.named.insert(name, Arc::clone(&inbox));
        Some(inbox)
    }

    /// A route that this account answers for.
    pub(crate) fn adopt(&self, route: &Arc<Route>) {
        let mut routes = self.routes.lock();
        if routes.all.len() == routes.all.capacity() {
            routes.all.retain(|route| route.strong_count() > 0);
        }
        routes.all.push(Arc::downgrade(route));
    }

    /// The keys at which something of this principal is queued.
    pub(crate) fn queued_at(&self) -> Vec<ChannelKey> {
        let routes = self.routes.lock();
        let full = routes.all.iter().filter_map(Weak::upgrade).filter(|route| route.queued() > 0);
        let key = |route: Arc<Route>| match route.to() {
            OwnedAddress::Channel(key) => Some(key.clone()),
            _ => None,
        };
        full.filter_map(key).collect()
    }

    /// Lets `route` queue `bytes` more, if all routes together stay within the limit. Hands out
    /// allowances in chunks, so that this is asked rarely, and so small ones that they leave most of
    /// the limit however many routes there are; only when it is short are all of them looked at, and
    /// what they do not use taken back.
    pub(crate) fn allow(&self, route: &Route, bytes: u64) -> bool {
        let limit = self.limits.queued_bytes;
        let needed = route.queued_bytes().saturating_add(bytes);
        let mut routes = self.routes.lock();
        let chunk = limit / 8 / (routes.all.len() as u64).max(128);
        if routes.grant(route, needed.saturating_add(chunk), limit) {
            return true;
        }
        routes.take_back();
        routes.grant(route, needed, limit)
    }
}

impl Routes {
    /// Makes the allowance of `route` so many bytes, if all of them together are within the limit.
    fn grant(&mut self, route: &Route, bytes: u64, limit: u64) -> bool {
        let others = self.granted.saturating_sub(route.allowance());
        let granted = others.saturating_add(bytes);
        let fits = granted <= limit;
        if fits {
            route.set_allowance(bytes);
            self.granted = granted;
        }
        fits
    }

    /// Leaves every route what it uses.
    fn take_back(&mut self) {
        self.granted = self.all.iter().filter_map(Weak::upgrade).fold(0, |sum, route| {
            route.set_allowance(route.queued_bytes());
            sum.saturating_add(route.allowance())
        });
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({:?})", self.principal)
    }
}
