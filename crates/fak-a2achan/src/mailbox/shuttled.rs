//! The mailbox under a concurrency checker: every interleaving of its locks that a seed can reach.
//! Exactly once, no wake-up lost, no deadlock on close or detach, wake-ups passed on.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fak_abi::{
    CapSet, Id, KernelSeal, OwnedAddress, Principal, PrincipalSpec, Ref, Sequence, ShareScope, Taint,
};
use shuttle::future::{block_on, spawn};
use shuttle::thread;

use super::*;
use crate::config::Limits;
use crate::entry::Extra;
use crate::sync::Shuttled;

struct World {
    seal: KernelSeal,
    mailbox: Mailbox<Shuttled>,
    numbers: Sequence,
}

impl World {
    fn new(capacity: u64) -> Arc<Self> {
        let shape = Shape { capacity, share: capacity, creator: None, private: false };
        let mailbox = Mailbox::new(Arc::new(OwnedAddress::None), shape);
        Arc::new(Self { seal: KernelSeal::new(), mailbox, numbers: Sequence::new() })
    }

    fn account(&self, name: &str, fleet: &str, incarnation: u64) -> Arc<Account> {
        let id = |text: &str| Id::new(text).unwrap();
        let spec = PrincipalSpec::agent(id(name)).fleet(id(fleet));
        Account::new(self.seal.principal(spec, incarnation, CapSet::ALL), Limits::default())
    }

    fn body(&self, from: &Account) -> Ref {
        self.seal.issue(from.principal(), "x".into(), Taint::Tainted, ShareScope::Fleet).unwrap()
    }

    fn send(&self, from: &Arc<Account>) -> Result<u64, Block> {
        let body = self.body(from);
        let offer = Offer { from, route: None, body: &body, recipient: None };
        let (seq, wake) = self.mailbox.offer(&offer, None, &self.numbers)?;
        wake.into_iter().for_each(Waker::wake);
        Ok(seq)
    }

    fn received(&self, entry: Entry) -> Found {
        self.mailbox.settle(&entry, Fate::Received).wakes.into_iter().for_each(Waker::wake);
        Found::Entry(entry, 0)
    }

    fn recv(self: &Arc<Self>, reader: &Arc<Account>) -> Recv {
        let (world, reader) = (Arc::clone(self), Arc::clone(reader.principal()));
        Recv { world, reader, state: WaitState::default(), linked: |_| true, tries: Try::Requests }
    }
}

/// A receive as `Endpoint` makes it, without the kernel.
struct Recv {
    world: Arc<World>,
    reader: Arc<Principal>,
    state: WaitState,
    linked: fn(&Principal) -> bool,
    tries: Try,
}

impl Recv {
    fn look(&mut self, cx: &Context<'_>) -> Found {
        let Self { world, reader, state, linked, tries } = self;
        let mailbox = &world.mailbox;
        let ask = !linked(reader);
        let quick = match state.is_begun() {
            _ if ask => Quick::Look,
            true => mailbox.pop_woken(reader, *tries, state),
            false => mailbox.pop_or_wait(reader, *tries, state, cx.waker()),
        };
        match quick {
            Quick::Entry(entry, wake) => {
                wake.into_iter().for_each(Waker::wake);
                return Found::Entry(entry, 0);
            }
            Quick::Trial(entry) => return world.received(entry),
            Quick::Empty => return Found::Nothing,
            Quick::Look => {}
        }
        let mut seek = Seek { reader, now: None, after: 0, ask, returns: None, lease: None };
        loop {
            let sought = mailbox.seek(&seek, Some((state, cx.waker())));
            sought.wakes.into_iter().for_each(Waker::wake);
            match sought.found {
                // It lacks the edge: it keeps its place.
                Found::Candidate(seq, _) => {
                    seek.after = seq;
                    seek.returns.get_or_insert(sought.returns);
                }
                Found::Again => (seek.after, seek.returns) = (0, None),
                Found::Entry(entry, _) => return world.received(entry),
                found => return found,
            }
        }
    }
}

impl Future for Recv {
    type Output = Option<u64>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u64>> {
        match self.look(cx) {
            Found::Entry(entry, _) => Poll::Ready(Some(entry.seq)),
            Found::Nothing => Poll::Pending,
            Found::End(_) => Poll::Ready(None),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        self.world.mailbox.leave(&mut self.state);
    }
}

fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), 600);
    shuttle::check_pct(model, 200, 3);
}

#[test]
fn every_message_is_received_exactly_once() {
    check(|| {
        let world = World::new(8);
        let readers = [1, 2].map(|n| {
            let (world, reader) = (Arc::clone(&world), world.account("r", "f", n));
            spawn(async move {
                let mut got = Vec::new();
                for _ in 0..2 {
                    got.extend(world.recv(&reader).await);
                }
                got
            })
        });
        let senders = [3, 4].map(|n| {
            let (world, sender) = (Arc::clone(&world), world.account("s", "f", n));
            thread::spawn(move || (0..2).for_each(|_| assert!(world.send(&sender).is_ok())))
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        let got: Vec<_> = readers.into_iter().flat_map(|reader| block_on(reader).unwrap()).collect();
        assert_eq!(got.len(), 4);
        assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), 4);
        let tally = world.mailbox.tally();
        assert_eq!((tally.sent, tally.received, tally.queued), (4, 4, 0));
    });
}

#[test]
fn a_dropped_wait_passes_its_wake_up_on() {
    check(|| {
        let world = World::new(8);
        let (one, two, sender) =
            (world.account("a", "f", 1), world.account("b", "f", 2), world.account("s", "f", 3));
        let fickle = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let mut recv = world.recv(&one);
                let mut cx = Context::from_waker(Waker::noop());
                match Pin::new(&mut recv).poll(&mut cx) {
                    Poll::Ready(seq) => seq,
                    Poll::Pending => {
                        thread::yield_now();
                        None
                    }
                }
            })
        };
        let sending = {
            let world = Arc::clone(&world);
            thread::spawn(move || (0..2).for_each(|_| assert!(world.send(&sender).is_ok())))
        };
        // Hangs if the wake-up is lost with the waiter that was dropped.
        assert!(block_on(world.recv(&two)).is_some());
        let taken = fickle.join().unwrap();
        sending.join().unwrap();
        assert_eq!(world.mailbox.tally().queued, u64::from(taken.is_none()));
    });
}

#[test]
fn receivers_of_two_fleets_get_their_own() {
    check(|| {
        let world = World::new(8);
        let readers = [("f", 1), ("g", 2)].map(|(fleet, n)| {
            let (world, reader) = (Arc::clone(&world), world.account("r", fleet, n));
            // Registered while the mailbox is empty: a waiter ignores what is not for it.
            let mut recv = world.recv(&reader);
            let pending = Pin::new(&mut recv).poll(&mut Context::from_waker(Waker::noop())).is_pending();
            assert!(pending);
            spawn(recv)
        });
        let senders = [("g", 3), ("f", 4)].map(|(fleet, n)| {
            let (world, sender) = (Arc::clone(&world), world.account("s", fleet, n));
            thread::spawn(move || assert!(world.send(&sender).is_ok()))
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        for reader in readers {
            assert!(block_on(reader).unwrap().is_some());
        }
        assert_eq!(world.mailbox.tally().queued, 0);
    });
}

#[test]
fn a_waiter_without_an_edge_passes_the_wake_up_on() {
    check(|| {
        let world = World::new(8);
        let (unlinked, linked, sender) =
            (world.account("a", "f", 1), world.account("b", "f", 2), world.account("s", "f", 3));
        let mut first = world.recv(&unlinked);
        first.linked = |_| false;
        let waker = Waker::noop();
        assert!(Pin::new(&mut first).poll(&mut Context::from_waker(waker)).is_pending());
        let stuck = spawn(first);
        let getting = spawn(world.recv(&linked));
        let sending = {
            let world = Arc::clone(&world);
            thread::spawn(move || assert!(world.send(&sender).is_ok()))
        };
        sending.join().unwrap();
        assert!(block_on(getting).unwrap().is_some());
        world.mailbox.end(End::Close).wake();
        assert!(block_on(stuck).unwrap().is_none());
    });
}

#[test]
fn closing_wakes_everybody() {
    check(|| {
        let world = World::new(1);
        let sender = world.account("s", "f", 9);
        let readers = [1, 2].map(|n| spawn(world.recv(&world.account("r", "f", n))));
        let sending = {
            let world = Arc::clone(&world);
            thread::spawn(move || u64::from(world.send(&sender).is_ok()))
        };
        let purge = world.mailbox.end(End::Close);
        let dead = purge.entries.len() as u64;
        let mut purge = purge;
        purge.wake();
        let sent = sending.join().unwrap();
        let got: u64 = readers.into_iter().map(|reader| u64::from(block_on(reader).unwrap().is_some())).sum();
        assert_eq!(sent, got + dead);
        let tally = world.mailbox.tally();
        assert!(tally.is_conserved() && tally.queued == 0, "{tally:?}");
    });
}

#[test]
fn detaching_ends_its_waits_and_wakes_others() {
    check(|| {
        let world = World::new(8);
        let (gone, stays, sender) =
            (world.account("a", "f", 1), world.account("b", "f", 2), world.account("s", "f", 3));
        let ending = spawn(world.recv(&gone));
        let waiting = spawn(world.recv(&stays));
        let sending = {
            let world = Arc::clone(&world);
            thread::spawn(move || (0..2).for_each(|_| assert!(world.send(&sender).is_ok())))
        };
        world.seal.detach(gone.principal());
        world.mailbox.release(gone.principal(), &world.numbers).wake();
        sending.join().unwrap();
        assert!(block_on(waiting).unwrap().is_some());
        let got = block_on(ending).unwrap().is_some();
        assert_eq!(world.mailbox.tally().queued, u64::from(!got));
    });
}

/// I04: binding against binding, and against receivers.
#[test]
fn one_of_two_binders_wins() {
    check(|| {
        let world = World::new(8);
        let binders = [1, 2].map(|n| {
            let (world, who) = (Arc::clone(&world), world.account("a", "f", n));
            thread::spawn(move || matches!(world.mailbox.bind(who.principal()).0, Bind::Bound(_)))
        });
        let wins = binders.into_iter().map(|binder| binder.join().unwrap()).filter(|won| *won).count();
        assert_eq!(wins, 1);
    });
}

/// A sender that waits for room, as `send_wait` does.
async fn send_wait(world: &Arc<World>, from: &Arc<Account>) -> u64 {
    loop {
        if let Ok(seq) = world.send(from) {
            return seq;
        }
        let mut wait = SpaceState::default();
        std::future::poll_fn(|cx| {
            if world.mailbox.has_space_or(&mut wait, from, cx.waker()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        world.mailbox.leave_space(&mut wait);
    }
}

#[test]
fn senders_that_wait_for_room_all_get_some() {
    check(|| {
        let world = World::new(1);
        let senders = [1, 2].map(|n| {
            let (world, sender) = (Arc::clone(&world), world.account("s", "f", n));
            spawn(async move {
                for _ in 0..2 {
                    send_wait(&world, &sender).await;
                }
            })
        });
        let reader = world.account("r", "f", 3);
        for _ in 0..4 {
            assert!(block_on(world.recv(&reader)).is_some());
        }
        senders.into_iter().for_each(|sender| block_on(sender).unwrap());
    });
}

#[test]
fn a_lease_given_back_wakes_a_waiter() {
    check(|| {
        let world = World::new(8);
        let (holder, other, sender) =
            (world.account("a", "f", 1), world.account("b", "f", 2), world.account("s", "f", 3));
        assert!(world.send(&sender).is_ok());
        let waiting = spawn(world.recv(&other));
        let leasing = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let terms = Terms { until: fak_abi::Timestamp::from_micros(1), redeliveries: 5 };
                let reader = holder.principal();
                let now = Some(fak_abi::Timestamp::default());
                let seek = Seek { reader, now, after: 0, ask: false, returns: None, lease: Some(&terms) };
                let sought = world.mailbox.seek(&seek, None);
                sought.wakes.into_iter().for_each(Waker::wake);
                if let Found::Entry(_, token) = sought.found {
                    thread::yield_now();
                    world.mailbox.give_back(token).wake();
                }
            })
        };
        assert!(block_on(waiting).unwrap().is_some());
        leasing.join().unwrap();
        assert_eq!(world.mailbox.tally().queued, 0);
    });
}

/// §4.4, §4.10: what is put back finds its slot as it left it, and whoever waits is told.
#[test]
fn a_trial_keeps_its_slot() {
    check(|| {
        let world = World::new(1);
        let (fickle, other, sender) =
            (world.account("a", "f", 1), world.account("b", "f", 2), world.account("s", "f", 3));
        let first = world.send(&sender).unwrap();
        let trying = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let Quick::Trial(entry) = world.mailbox.pop(fickle.principal(), Try::All) else { return };
                thread::yield_now();
                assert_eq!(world.mailbox.tally().queued, 1);
                world.mailbox.put_back(entry).unwrap().wake();
            })
        };
        let sending = {
            let (world, sender) = (Arc::clone(&world), Arc::clone(&sender));
            thread::spawn(move || assert_eq!(world.send(&sender), Err(Block::Full)))
        };
        trying.join().unwrap();
        sending.join().unwrap();
        // Whoever is waiting by now gets it, and then there is room.
        let mut recv = world.recv(&other);
        recv.tries = Try::All;
        assert_eq!(block_on(recv), Some(first));
        assert!(world.send(&sender).is_ok());
    });
}

/// §4.6, §4.11: what is put back after its key was freed is as dead as what was queued there.
#[test]
fn a_trial_does_not_outlast_a_binding() {
    check(|| {
        let world = World::new(8);
        let (fickle, binder, sender) =
            (world.account("a", "f", 1), world.account("b", "f", 2), world.account("s", "f", 3));
        assert!(world.send(&sender).is_ok());
        let trying = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let Quick::Trial(entry) = world.mailbox.pop(fickle.principal(), Try::All) else { return };
                thread::yield_now();
                match world.mailbox.put_back(entry) {
                    Ok(mut purge) => purge.wake(),
                    Err((entry, cause)) => {
                        assert_eq!(cause, crate::message::Cause::End(End::Unbind));
                        world.mailbox.settle(&entry, Fate::Dead).wakes.into_iter().for_each(Waker::wake);
                    }
                }
            })
        };
        assert!(matches!(world.mailbox.bind(binder.principal()).0, Bind::Bound(_)));
        world.mailbox.unbind(binder.principal(), None, &world.numbers).unwrap().wake();
        trying.join().unwrap();
        let tally = world.mailbox.tally();
        assert_eq!((tally.dead, tally.queued), (1, 0));
        // What comes after is another matter.
        assert!(world.send(&sender).is_ok());
        assert_eq!(world.mailbox.tally().queued, 1);
    });
}

/// A waiter is told of what is put back; two that try for real get a message each, once.
#[test]
fn receivers_on_trial_get_each_message_once() {
    check(|| {
        let world = World::new(1);
        let readers = [1, 2].map(|n| {
            let mut recv = world.recv(&world.account("r", "f", n));
            recv.tries = Try::All;
            spawn(recv)
        });
        let fickle = {
            let (world, fickle) = (Arc::clone(&world), world.account("a", "f", 4));
            thread::spawn(move || {
                if let Quick::Trial(entry) = world.mailbox.pop(fickle.principal(), Try::All) {
                    thread::yield_now();
                    world.mailbox.put_back(entry).unwrap().wake();
                }
            })
        };
        let sending = {
            let (world, sender) = (Arc::clone(&world), world.account("s", "f", 3));
            spawn(async move {
                for _ in 0..2 {
                    send_wait(&world, &sender).await;
                }
            })
        };
        let got: BTreeSet<_> = readers.into_iter().filter_map(|reader| block_on(reader).unwrap()).collect();
        block_on(sending).unwrap();
        fickle.join().unwrap();
        assert_eq!(got.len(), 2);
        let tally = world.mailbox.tally();
        assert_eq!((tally.sent, tally.received, tally.queued), (2, 2, 0));
    });
}

/// The only message there is has its time like any other (§4.3, §4.10): a patient sender asks when.
#[test]
fn the_time_of_a_single_message_is_known() {
    shuttle::check_random(
        || {
            let world = World::new(1);
            let sender = world.account("s", "f", 1);
            let (body, at) = (world.body(&sender), fak_abi::Timestamp::from_micros(5));
            let offer = Offer { from: &sender, route: None, body: &body, recipient: None };
            let extra = Extra { expires: Some(at), ..Extra::default() }.boxed();
            assert!(world.mailbox.offer(&offer, extra, &world.numbers).is_ok());
            assert_eq!(world.mailbox.next_expiry(), Some(at));
        },
        1,
    );
}
