//! Publish and subscribe (§4.5): a topic, and the private inbox of each subscription. The topic's
//! lock makes one producer, the subscription one consumer, so a copy goes through a ring that
//! neither locks. What an agent does with them is in `publish` and `subscription`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::task::Waker;

use fak_abi::{ChannelKey, OwnedAddress, Principal, Ref, Sequence, Timestamp};
use parking_lot::Mutex;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::delivery::End;
use crate::entry::{Entry, Extra};
use crate::hash::Numbers;
use crate::mailbox::Wakes;
use crate::route::Route;
use crate::stats::Tally;
use crate::sync::Line;

/// A name that can be published to.
pub(crate) struct Topic {
    key: ChannelKey,
    to: Arc<OwnedAddress>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    feeds: Vec<Feed>,
    routes: HashMap<u64, Arc<Route>, Numbers>,
    tally: Tally,
}

struct Feed {
    ring: Producer<Arc<Entry>>,
    inbox: Arc<Inbox>,
}

/// A subscription's private inbox. Reached only through its subscription.
pub(crate) struct Inbox {
    subscriber: Arc<Principal>,
    /// Copies that found no room, ever.
    missed: AtomicU64,
    waiting: AtomicBool,
    outflow: Line<Mutex<Outflow>>,
}

struct Outflow {
    ring: Consumer<Arc<Entry>>,
    /// Taken out, and put back.
    pending: Option<Arc<Entry>>,
    told: u64,
    waker: Option<Waker>,
    end: Option<End>,
    tally: Tally,
}

/// What a publication came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spread {
    pub(crate) seq: u64,
    pub(crate) fanout: u64,
    pub(crate) skipped: u64,
    pub(crate) dropped: u64,
}

/// What a look into an inbox finds.
pub(crate) enum Pulled {
    /// A copy, and how many were lost before it.
    Entry(Arc<Entry>, u64),
    Nothing,
    End(End),
}

impl Topic {
    pub(crate) fn new(key: ChannelKey) -> Self {
        let to = Arc::new(OwnedAddress::Channel(key.clone()));
        Self { key, to, state: Mutex::default() }
    }

    pub(crate) const fn key(&self) -> &ChannelKey {
        &self.key
    }

    pub(crate) fn subscribe(&self, subscriber: &Arc<Principal>, capacity: usize) -> Arc<Inbox> {
        let (ring, consumer) = RingBuffer::new(capacity);
        let outflow = Outflow {
            ring: consumer,
            pending: None,
            told: 0,
            waker: None,
            end: None,
            tally: Tally::default(),
        };
        let inbox = Arc::new(Inbox {
            subscriber: Arc::clone(subscriber),
            missed: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
            outflow: Line::new(Mutex::new(outflow)),
        });
        self.state.lock().feeds.push(Feed { ring, inbox: Arc::clone(&inbox) });
        inbox
    }

    /// Who has subscribed, in that order.
    pub(crate) fn subscribers(&self) -> Vec<Arc<Principal>> {
        self.state.lock().feeds.iter().map(|feed| Arc::clone(&feed.inbox.subscriber)).collect()
    }

    /// One copy to each subscriber that the body may flow to and that `admits`, numbered under the
    /// lock. The wakers are to be called once it is released.
    pub(crate) fn publish(
        &self,
        from: &Arc<Principal>,
        body: Ref,
        extra: Option<Box<Extra>>,
        numbers: &Sequence,
        admits: impl Fn(&Principal) -> bool,
    ) -> (Spread, Wakes) {
        let mut wakes = Wakes::new();
        let mut state = self.state.lock();
        let State { feeds, routes, tally } = &mut *state;
        if routes.len() == routes.capacity() {
            routes.retain(|_, route| Arc::strong_count(route) > 1);
        }
        let route = routes
            .entry(from.incarnation())
            .or_insert_with(|| Route::new(Arc::clone(from), Arc::clone(&self.to), None));
        let route = Arc::clone(route);
        let mut spread = Spread { seq: numbers.next(), ..Spread::default() };
        let entry = Arc::new(Entry { seq: spread.seq, route, body, extra });
        for feed in feeds.iter_mut() {
            let to = &feed.inbox.subscriber;
            if !entry.body.would_flow_to(to) || !admits(to) {
                spread.skipped += 1;
            } else if feed.ring.push(Arc::clone(&entry)).is_ok() {
                spread.fanout += 1;
            } else {
                spread.dropped += 1;
                // Only under the topic's lock.
                let missed = feed.inbox.missed.load(Ordering::Relaxed);
                feed.inbox.missed.store(missed + 1, Ordering::Release);
            }
        }
        // Pairs with the fence of a consumer that is about to wait: either it sees the copy, or
        // its flag is seen here.
        fence(Ordering::SeqCst);
        for feed in feeds.iter() {
            if feed.inbox.waiting.load(Ordering::Relaxed) {
                wakes.extend(feed.inbox.take_waker());
            }
        }
        tally.sent += spread.fanout + spread.dropped;
        tally.dropped += spread.dropped;
        tally.skipped += spread.skipped;
        (spread, wakes)
    }

    /// Ends a subscription. What it had queued comes back; true if the topic has none left.
    pub(crate) fn remove(&self, inbox: &Arc<Inbox>, end: End) -> (Vec<Arc<Entry>>, bool) {
        let mut state = self.state.lock();
        state.feeds.retain(|feed| !Arc::ptr_eq(&feed.inbox, inbox));
        let (dead, tally, waker) = inbox.end(end);
        state.tally += tally;
        let is_empty = state.feeds.is_empty();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        (dead, is_empty)
    }

    /// The subscriptions of one principal, or all.
    pub(crate) fn inboxes(&self, of: Option<&Principal>) -> Vec<Arc<Inbox>> {
        let state = self.state.lock();
        let inboxes = state.feeds.iter().map(|feed| &feed.inbox);
        inboxes
            .filter(|inbox| of.is_none_or(|of| std::ptr::eq(Arc::as_ptr(&inbox.subscriber), of)))
            .cloned()
            .collect()
    }

    pub(crate) fn has_no_subscribers(&self) -> bool {
        self.state.lock().feeds.is_empty()
    }

    pub(crate) fn tally(&self) -> Tally {
        let state = self.state.lock();
        let mut sum = state.tally;
        state.feeds.iter().for_each(|feed| sum += feed.inbox.tally());
        sum
    }
}

impl Inbox {
    pub(crate) const fn subscriber(&self) -> &Arc<Principal> {
        &self.subscriber
    }

    fn take_waker(&self) -> Option<Waker> {
        let mut outflow = self.outflow.lock();
        self.waiting.store(false, Ordering::Relaxed);
        outflow.waker.take()
    }

    fn tally(&self) -> Tally {
        let outflow = self.outflow.lock();
        let queued = outflow.ring.slots() as u64 + u64::from(outflow.pending.is_some());
        Tally { queued, ..outflow.tally }
    }

    /// A copy that was taken is held after all; false if the inbox has ended and been summed up.
    pub(crate) fn held(&self) -> bool {
        let mut outflow = self.outflow.lock();
        if outflow.end.is_some() {
            return false;
        }
        outflow.tally.received -= 1;
        outflow.tally.held += 1;
        true
    }

    /// The next copy, where it has no time to live: the common case. `None` says only that a closer
    /// look is needed.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Arc<Entry>, u64)> {
        let mut outflow = self.outflow.lock();
        if outflow.pending.is_some() || outflow.end.is_some() {
            return None;
        }
        let entry = outflow.ring.peek().ok()?;
        if entry.extra.is_some() {
            return None;
        }
        let entry = outflow.ring.pop().ok()?;
        outflow.tally.received += 1;
        let missed = self.missed.load(Ordering::Acquire);
        let lost = missed - std::mem::replace(&mut outflow.told, missed);
        Some((entry, lost))
    }

    /// The next copy; with `waker`, it is called once there is one. Copies whose time is over are
    /// put into `expired`.
    pub(crate) fn pull(
        &self,
        now: impl Fn() -> Timestamp,
        waker: Option<&Waker>,
        expired: &mut Vec<Arc<Entry>>,
    ) -> Pulled {
        let mut outflow = self.outflow.lock();
        if let Some(end) = outflow.end {
            return Pulled::End(end);
        }
        loop {
            let next = outflow.pending.take().or_else(|| outflow.ring.pop().ok());
            let Some(entry) = next else {
                let Some(waker) = waker else { return Pulled::Nothing };
                if !self.waiting.load(Ordering::Relaxed) {
                    outflow.waker = Some(waker.clone());
                    self.waiting.store(true, Ordering::Relaxed);
                    fence(Ordering::SeqCst);
                    // Once more, now that the flag is up.
                    continue;
                }
                if outflow.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
                    outflow.waker = Some(waker.clone());
                }
                return Pulled::Nothing;
            };
            if entry.expires().is_some() && entry.is_expired(now()) {
                outflow.tally.dead += 1;
                expired.push(entry);
                continue;
            }
            self.waiting.store(false, Ordering::Relaxed);
            outflow.tally.received += 1;
            let missed = self.missed.load(Ordering::Acquire);
            let lost = missed - std::mem::replace(&mut outflow.told, missed);
            return Pulled::Entry(entry, lost);
        }
    }

    /// A copy that was taken goes back to the front, unless the inbox has ended meanwhile.
    pub(crate) fn put_back(&self, entry: Arc<Entry>, lost: u64) {
        let mut outflow = self.outflow.lock();
        if outflow.end.is_none() {
            outflow.tally.received -= 1;
            outflow.told -= lost;
            outflow.pending = Some(entry);
        }
    }

    pub(crate) fn stop_waiting(&self) {
        drop(self.take_waker());
    }

    fn end(&self, end: End) -> (Vec<Arc<Entry>>, Tally, Option<Waker>) {
        let mut outflow = self.outflow.lock();
        if outflow.end.is_some() {
            return (Vec::new(), Tally::default(), None);
        }
        outflow.end = Some(end);
        let mut dead: Vec<_> = outflow.pending.take().into_iter().collect();
        while let Ok(entry) = outflow.ring.pop() {
            dead.push(entry);
        }
        outflow.tally.dead += dead.len() as u64;
        let tally = std::mem::take(&mut outflow.tally);
        (dead, tally, outflow.waker.take())
    }
}
