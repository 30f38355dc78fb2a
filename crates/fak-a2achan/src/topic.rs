//! Publish and subscribe (§4.5): a topic, and who has subscribed to it. A publication is kept once
//! for each cohort of subscribers that see the same; what a subscriber has of it is in `cohort`,
//! what an agent does with both in `publish` and `subscription`.
//!
//! Lock order: topic, then cohort. No user code runs under either.

mod cohort;
mod issue;
mod lease;
mod own;
mod seat;
#[cfg(test)]
mod shuttled;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fak_abi::{ChannelKey, Domains, OwnedAddress, Principal, Ref, Sequence, ShareScope, Timestamp};

use crate::account::Account;
use crate::delivery::End;
use crate::entry::{Entry, Extra};
use crate::hash::Numbers;
use crate::mailbox::Wakes;
use crate::route::Route;
use crate::stats::Tally;
use crate::sync::{Lock, Locks, Native};

use cohort::{Cohort, Rousing};
pub(crate) use cohort::{Keep, Pulled, Taken};
pub(crate) use issue::Issue;
use issue::Queued;
pub(crate) use lease::Settled;
pub(crate) use seat::Inbox;

/// A name that can be published to.
pub(crate) struct Topic<L: Locks = Native> {
    key: ChannelKey,
    to: Arc<OwnedAddress>,
    /// Something queued depends on the time.
    timed: AtomicBool,
    state: L::Lock<State<L>>,
}

struct State<L: Locks> {
    feeds: Vec<Feed<L>>,
    /// Subscriptions ever, so that each has a number.
    subscribed: u64,
    routes: HashMap<u64, Arc<Route>, Numbers>,
    tally: Tally,
}

/// One cohort, as publishers see it.
struct Feed<L: Locks> {
    cohort: Arc<Cohort<L>>,
    /// Stands for all members: they have the same fleet and tenant.
    member: Arc<Principal>,
    members: u64,
    /// Whether what this owner shared with this scope may flow to them, as it was last worked out.
    flow: Option<(u64, ShareScope, bool)>,
}

/// What somebody would like to publish.
pub(crate) struct Issuing<'a> {
    /// The publisher's way in, from [`Topic::reserve`]: the bytes are reserved.
    pub(crate) route: Arc<Route>,
    /// The body as the rungs left it.
    pub(crate) body: &'a Ref,
    pub(crate) extra: Option<Box<Extra>>,
    /// Those to whom a topology has an edge, where one has to be asked.
    pub(crate) linked: Option<&'a HashSet<u64>>,
    /// The present, where something queued depends on it.
    pub(crate) now: Option<Timestamp>,
}

/// What a publication came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spread {
    pub(crate) seq: u64,
    pub(crate) fanout: u64,
    pub(crate) skipped: u64,
    pub(crate) dropped: u64,
}

/// What a publication has done besides. Acted on once the locks are released.
#[derive(Default)]
pub(crate) struct Issued {
    pub(crate) spread: Spread,
    pub(crate) wakes: Wakes,
    /// Copies in the way whose time was over.
    pub(crate) expired: Vec<Arc<Issue>>,
}

impl<L: Locks> Topic<L> {
    pub(crate) fn new(key: ChannelKey) -> Self {
        let to = Arc::new(OwnedAddress::Channel(key.clone()));
        let state =
            State { feeds: Vec::new(), subscribed: 0, routes: HashMap::default(), tally: Tally::default() };
        Self { key, to, timed: AtomicBool::new(false), state: Lock::new(state) }
    }

    pub(crate) const fn key(&self) -> &ChannelKey {
        &self.key
    }

    /// Adds a subscription. Where `apart`, publications may be for some of a cohort only.
    pub(crate) fn subscribe(
        &self,
        subscriber: &Arc<Principal>,
        capacity: usize,
        apart: bool,
    ) -> Arc<Inbox<L>> {
        let mut state = self.state.lock();
        state.subscribed += 1;
        let number = state.subscribed;
        let is_like =
            |other: &Principal| (other.fleet(), other.tenant()) == (subscriber.fleet(), subscriber.tenant());
        let room = state.feeds.iter_mut().filter(|feed| is_like(&feed.member));
        for feed in room {
            if let Some(inbox) = Cohort::join(&feed.cohort, subscriber, number) {
                feed.members += 1;
                return inbox;
            }
        }
        let (cohort, inbox) = Cohort::begin(subscriber, number, capacity, apart);
        state.feeds.push(Feed { cohort, member: Arc::clone(subscriber), members: 1, flow: None });
        inbox
    }

    /// Who has subscribed, in that order.
    pub(crate) fn subscribers(&self) -> Vec<Arc<Principal>> {
        self.inboxes(None).into_iter().map(|inbox| Arc::clone(inbox.subscriber())).collect()
    }

    /// The subscriptions of one principal, or all, in the order in which they were made.
    pub(crate) fn inboxes(&self, of: Option<&Principal>) -> Vec<Arc<Inbox<L>>> {
        let mut inboxes: Vec<_> =
            self.state.lock().feeds.iter().flat_map(|feed| feed.cohort.inboxes()).collect();
        inboxes.retain(|inbox| of.is_none_or(|of| std::ptr::eq(Arc::as_ptr(inbox.subscriber()), of)));
        inboxes.sort_by_key(|inbox| inbox.number());
        inboxes
    }

    /// True if something queued depends on the time.
    pub(crate) fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }

    /// Takes `bytes` of the publisher's limit (§4.12); `None` if that were above it. To be published
    /// with, or given back.
    pub(crate) fn reserve(&self, from: &Arc<Account>, bytes: usize) -> Option<Arc<Route>> {
        let mut state = self.state.lock();
        let routes = &mut state.routes;
        let incarnation = from.principal().incarnation();
        let route = match routes.get(&incarnation) {
            Some(route) => Arc::clone(route),
            None => {
                if routes.len() == routes.capacity() {
                    // Before the table grows: nothing of theirs is queued.
                    routes.retain(|_, route| Arc::strong_count(route) > 1);
                }
                let (who, to) = (Arc::clone(from.principal()), Arc::clone(&self.to));
                let route = Route::new(who, to, Some(Arc::clone(from)));
                from.adopt(&route);
                routes.insert(incarnation, Arc::clone(&route));
                route
            }
        };
        if !route.admits(bytes as u64) {
            return None;
        }
        route.enter(bytes);
        Some(route)
    }

    /// One copy to each subscriber that the body may flow to and whose domains are `wanted`,
    /// numbered under the lock.
    pub(crate) fn publish(
        &self,
        issuing: Issuing<'_>,
        numbers: &Sequence,
        wanted: impl Fn(Domains<'_>) -> bool,
    ) -> Issued {
        let Issuing { route, body, extra, linked, now } = issuing;
        if extra.as_ref().is_some_and(|extra| extra.expires.is_some()) {
            self.timed.store(true, Ordering::Relaxed);
        }
        let mut rousing = Rousing::new();
        let mut issued = Issued::default();
        let copy = {
            let mut state = self.state.lock();
            let spread = &mut issued.spread;
            spread.seq = numbers.next();
            let copy = Queued::first(Entry { seq: spread.seq, route, body: body.clone(), extra });
            let State { feeds, tally, .. } = &mut *state;
            for feed in feeds.iter_mut() {
                if !feed.lets(body) || !wanted(Domains::of(&feed.member)) {
                    spread.skipped += feed.members;
                    continue;
                }
                if let Some(now) = now {
                    issued.expired.append(&mut feed.cohort.expire(now));
                }
                feed.cohort.publish(&copy, linked, spread, &mut rousing);
            }
            tally.sent += spread.fanout + spread.dropped;
            tally.dropped += spread.dropped;
            tally.skipped += spread.skipped;
            copy
        };
        drop(copy.leave());
        // In the order in which they subscribed (§4.5).
        rousing.sort_unstable_by_key(|(number, _)| *number);
        issued.wakes.extend(rousing.into_iter().map(|(_, waker)| waker));
        issued
    }

    /// Ends a subscription. What it had queued comes back; true if the topic has none left. `None` if
    /// it has ended before.
    pub(crate) fn remove(&self, inbox: &Arc<Inbox<L>>, end: End) -> Option<(Vec<Arc<Issue>>, bool)> {
        let mut state = self.state.lock();
        let (dead, waker) = inbox.end(end)?;
        let State { feeds, tally, .. } = &mut *state;
        if let Some(at) = feeds.iter().position(|feed| Arc::ptr_eq(&feed.cohort, inbox.cohort()))
            && let Some(feed) = feeds.get_mut(at)
        {
            feed.members = feed.cohort.members();
            if feed.members == 0 {
                *tally += feed.cohort.tally();
                feeds.remove(at);
            }
        }
        let is_empty = state.feeds.is_empty();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Some((dead, is_empty))
    }

    /// Takes out what has had its time, everywhere.
    pub(crate) fn expire(&self, now: Timestamp) -> Vec<Arc<Issue>> {
        let state = self.state.lock();
        state.feeds.iter().flat_map(|feed| feed.cohort.expire(now)).collect()
    }

    /// A publisher is gone: its way in is forgotten.
    pub(crate) fn forget(&self, who: &Principal) {
        self.state.lock().routes.remove(&who.incarnation());
    }

    pub(crate) fn has_no_subscribers(&self) -> bool {
        self.state.lock().feeds.is_empty()
    }

    pub(crate) fn tally(&self) -> Tally {
        let state = self.state.lock();
        let mut sum = state.tally;
        state.feeds.iter().for_each(|feed| sum += feed.cohort.tally());
        sum
    }
}

impl<L: Locks> Feed<L> {
    /// True if the body may flow to the members. A private one never does (§4.5).
    fn lets(&mut self, body: &Ref) -> bool {
        let (owner, scope) = (body.owner(), body.scope());
        match self.flow {
            // Neither a principal's domains nor a cohort's ever change.
            Some((known, of, lets)) if (known, of) == (owner.incarnation(), scope) => lets,
            _ => {
                let lets = scope != ShareScope::Agent && body.would_flow_to(&self.member);
                self.flow = Some((owner.incarnation(), scope, lets));
                lets
            }
        }
    }
}
