//! Topics under a concurrency checker: copies are received exactly once and in order, no wake-up is
//! lost, and an end that comes while others publish and receive leaves every copy accounted for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use fak_abi::{CapSet, Id, KernelSeal, Locale, PrincipalSpec, Taint};
use shuttle::future::{block_on, spawn};
use shuttle::thread;

use super::*;
use crate::config::Limits;
use crate::mailbox::Terms;
use crate::sync::Shuttled;

struct World {
    seal: KernelSeal,
    topic: Topic<Shuttled>,
    numbers: Sequence,
    capacity: usize,
}

impl World {
    fn new(capacity: usize) -> Arc<Self> {
        let topic = Topic::new(ChannelKey::new(Locale::InKernel, "news").unwrap());
        Arc::new(Self { seal: KernelSeal::new(), topic, numbers: Sequence::new(), capacity })
    }

    fn account(&self, name: &str, incarnation: u64) -> Arc<Account> {
        let id = |text: &str| Id::new(text).unwrap();
        let spec = PrincipalSpec::agent(id(name)).fleet(id("f"));
        Account::new(self.seal.principal(spec, incarnation, CapSet::ALL), Limits::default())
    }

    fn subscribe(&self, incarnation: u64) -> Arc<Inbox<Shuttled>> {
        self.topic.subscribe(self.account("r", incarnation).principal(), self.capacity, false)
    }

    fn publish(&self, from: &Arc<Account>) -> Spread {
        let body = self.seal.issue(from.principal(), "x".into(), Taint::Tainted, ShareScope::Fleet).unwrap();
        let route = self.topic.reserve(from, body.len()).unwrap();
        let issuing = Issuing { route, body: &body, extra: None, linked: None, now: None };
        let issued = self.topic.publish(issuing, &self.numbers, |_| true);
        issued.wakes.into_iter().for_each(Waker::wake);
        issued.spread
    }
}

/// A receive as `Subscription` makes it, without the kernel.
struct Recv<'a> {
    inbox: &'a Inbox<Shuttled>,
    keep: Keep,
}

impl Future for Recv<'_> {
    type Output = Option<Taken>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Taken>> {
        if matches!(self.keep, Keep::No)
            && let Some((copy, missed)) = self.inbox.next()
        {
            return Poll::Ready(Some(Taken { copy, missed, returns: 0, token: 0 }));
        }
        let (mut expired, mut worn) = (Vec::new(), Vec::new());
        match self.inbox.pull(self.keep, None, Some(cx.waker()), (&mut expired, &mut worn)) {
            Pulled::Copy(taken) => Poll::Ready(Some(taken)),
            Pulled::Nothing => Poll::Pending,
            Pulled::End(_) => Poll::Ready(None),
        }
    }
}

impl Drop for Recv<'_> {
    fn drop(&mut self) {
        self.inbox.stop_waiting();
    }
}

fn recv(inbox: &Inbox<Shuttled>) -> Recv<'_> {
    Recv { inbox, keep: Keep::No }
}

fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), 600);
    shuttle::check_pct(model, 200, 3);
}

#[test]
fn each_subscriber_gets_each_copy_once_and_in_order() {
    check(|| {
        let world = World::new(8);
        let readers = [1, 2].map(|n| {
            let inbox = world.subscribe(n);
            spawn(async move {
                let mut got = Vec::new();
                for _ in 0..4 {
                    got.push(recv(&inbox).await.unwrap().copy.entry().seq);
                }
                got
            })
        });
        let publishers = [3, 4].map(|n| {
            let (world, from) = (Arc::clone(&world), world.account("p", n));
            thread::spawn(move || (0..2).for_each(|_| assert_eq!(world.publish(&from).fanout, 2)))
        });
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        for reader in readers {
            assert_eq!(block_on(reader).unwrap(), [1, 2, 3, 4]);
        }
        let tally = world.topic.tally();
        assert_eq!((tally.sent, tally.received, tally.queued), (8, 8, 0));
    });
}

/// A slow subscriber parts from the log while a fast one reads on: what is not received is lost
/// visibly, and only by the slow one.
#[test]
fn a_slow_subscriber_loses_only_its_own() {
    check(|| {
        let world = World::new(1);
        let (fast, slow) = (world.subscribe(1), world.subscribe(2));
        let from = world.account("p", 3);
        let slowly = {
            let slow = Arc::clone(&slow);
            spawn(async move {
                let taken = recv(&slow).await.unwrap();
                (1, taken.missed)
            })
        };
        let mut dropped = 0;
        for n in 1..=3 {
            let spread = world.publish(&from);
            assert_eq!((spread.fanout + spread.dropped, spread.seq), (2, n));
            dropped += spread.dropped;
            let taken = block_on(recv(&fast)).unwrap();
            assert_eq!((taken.copy.entry().seq, taken.missed), (n, 0));
        }
        let (mut got, mut missed) = block_on(slowly).unwrap();
        // What is left, and what one more tells.
        let last = world.publish(&from);
        while let Some((copy, lost)) = plainly(&slow) {
            assert!(copy.entry().seq <= last.seq);
            (got, missed) = (got + 1, missed + lost);
        }
        assert_eq!(got + missed, 4, "every copy was received or told of");
        assert_eq!(missed, dropped + last.dropped);
        assert!(world.topic.tally().is_conserved(), "{:?}", world.topic.tally());
    });
}

fn plainly(inbox: &Inbox<Shuttled>) -> Option<(Arc<Issue>, u64)> {
    inbox.next().or_else(|| match inbox.pull(Keep::No, None, None, (&mut Vec::new(), &mut Vec::new())) {
        Pulled::Copy(taken) => Some((taken.copy, taken.missed)),
        Pulled::Nothing | Pulled::End(_) => None,
    })
}

#[test]
fn a_dropped_wait_takes_nothing() {
    check(|| {
        let world = World::new(8);
        let (inbox, from) = (world.subscribe(1), world.account("p", 2));
        let publishing = {
            let world = Arc::clone(&world);
            thread::spawn(move || (0..2).for_each(|_| assert_eq!(world.publish(&from).fanout, 1)))
        };
        let mut first = recv(&inbox);
        let early = match Pin::new(&mut first).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(taken) => taken.map(|taken| taken.copy.entry().seq),
            Poll::Pending => None,
        };
        drop(first);
        let seq = block_on(recv(&inbox)).unwrap().copy.entry().seq;
        assert_eq!(seq, early.map_or(1, |early| early + 1));
        publishing.join().unwrap();
        assert_eq!(world.topic.tally().queued, u64::from(early.is_none()));
    });
}

/// Detaching and unsubscribing while others publish and receive.
#[test]
fn an_end_while_publishing_accounts_for_every_copy() {
    check(|| {
        let world = World::new(2);
        let (gone, stays) = (world.subscribe(1), world.subscribe(2));
        let from = world.account("p", 3);
        let reader = {
            let gone = Arc::clone(&gone);
            spawn(async move {
                let mut got = 0;
                while recv(&gone).await.is_some() {
                    got += 1;
                }
                got
            })
        };
        let publishing = {
            let world = Arc::clone(&world);
            thread::spawn(move || (0..2).map(|_| world.publish(&from).fanout).sum::<u64>())
        };
        let (dead, is_empty) = world.topic.remove(&gone, End::Detach).unwrap();
        assert!(world.topic.remove(&gone, End::Unsubscribe).is_none());
        assert!(!is_empty);
        let fanout = publishing.join().unwrap();
        let received: u64 = block_on(reader).unwrap();
        assert_eq!(fanout, 2 + received + dead.len() as u64, "two for the one that stays");
        assert_eq!(block_on(recv(&stays)).unwrap().copy.entry().seq, 1);
        assert_eq!(block_on(recv(&stays)).unwrap().copy.entry().seq, 2);
        // A newcomer takes the seat; the old inbox has nothing to do with it.
        let next = world.subscribe(4);
        assert!(gone.next().is_none());
        assert_eq!(world.publish(&world.account("p", 5)).fanout, 2);
        assert_eq!(block_on(recv(&next)).unwrap().missed, 0);
        let tally = world.topic.tally();
        assert!(tally.is_conserved() && tally.queued == 1, "{tally:?}");
    });
}

/// A copy that is kept, given back or settled while others publish: exactly once, capacity kept.
#[test]
fn a_kept_copy_goes_back_and_wakes() {
    check(|| {
        let world = World::new(2);
        let (inbox, from) = (world.subscribe(1), world.account("p", 2));
        assert_eq!(world.publish(&from).fanout, 1);
        let terms = Terms { until: Timestamp::from_micros(9), redeliveries: 5 };
        let taken = block_on(Recv { inbox: &inbox, keep: Keep::Lease(terms) }).unwrap();
        let waiting = {
            let inbox = Arc::clone(&inbox);
            spawn(async move {
                let one = recv(&inbox).await.unwrap();
                let two = recv(&inbox).await.unwrap();
                [one.copy.entry().seq, two.copy.entry().seq]
            })
        };
        let returning = {
            let (inbox, token) = (Arc::clone(&inbox), taken.token);
            thread::spawn(move || {
                let settled = inbox.give_back(token, true);
                settled.wake.into_iter().for_each(Waker::wake);
                assert!(settled.done && settled.worn.is_empty());
            })
        };
        let publishing = {
            let world = Arc::clone(&world);
            thread::spawn(move || assert_eq!(world.publish(&from).fanout, 1))
        };
        returning.join().unwrap();
        publishing.join().unwrap();
        let mut seqs = block_on(waiting).unwrap();
        seqs.sort_unstable();
        assert_eq!(seqs, [1, 2]);
        let tally = world.topic.tally();
        assert_eq!((tally.received, tally.queued), (2, 0));
        assert!(!inbox.ack(taken.token, Timestamp::default()).done);
    });
}

/// The bytes of a publication are its publisher's until the last copy was taken, whoever takes it.
#[test]
fn bytes_are_given_back_once() {
    check(|| {
        let world = World::new(2);
        let inboxes = [1, 2].map(|n| world.subscribe(n));
        let from = world.account("p", 3);
        let route = world.topic.reserve(&from, 7).unwrap();
        route.leave_shared(7);
        world.publish(&from);
        assert_eq!((route.queued_bytes(), route.queued()), (1, 1));
        let taking = inboxes.map(|inbox| {
            thread::spawn(move || {
                let taken = block_on(Recv { inbox: &inbox, keep: Keep::Trial }).unwrap();
                assert!(inbox.receive(taken.token));
            })
        });
        taking.into_iter().for_each(|taking| taking.join().unwrap());
        assert_eq!((route.queued_bytes(), route.queued()), (0, 0));
    });
}
