//! §4.4, §4.10 under random acts, against a naive reference: a list of messages that is walked from
//! the front. Nothing is lost, nothing is received twice, every verdict is the reference's.

use std::time::Duration;

use fak_a2achan::{Binding, BusConfig, Delivery, Endpoint, LeasedMessage, Limits, SendOptions, Subscription};
use fak_abi::Reason;
use proptest::prelude::*;

use crate::support::*;

const CAPACITY: usize = 4;
/// Far more than any run queues.
const QUEUED_BYTES: usize = 1_000;
const AGENTS: [(&str, &str); 3] = [("a", "f"), ("b", "f"), ("z", "g")];

#[derive(Debug, Clone)]
enum Step {
    Send { by: usize, at: usize, ttl: bool },
    Recv { by: usize, at: usize },
    Lease { by: usize, at: usize },
    Ack { which: usize },
    GiveBack { which: usize },
    Bind { by: usize, at: usize },
    Unbind,
    Subscribe { by: usize },
    Publish { by: usize },
    Pull,
    Unsubscribe,
    Tick,
    Detach { by: usize },
}

fn step() -> impl Strategy<Value = Step> {
    // Mostly one key and two of a fleet, so that they meet.
    let by = prop_oneof![4 => 0..2_usize, 1 => Just(2)].boxed();
    let at = prop_oneof![3 => Just(0_usize), 1 => Just(1)];
    let both = (by.clone(), at);
    prop_oneof![
        6 => (both.clone(), any::<bool>()).prop_map(|((by, at), ttl)| Step::Send { by, at, ttl }),
        4 => both.clone().prop_map(|(by, at)| Step::Recv { by, at }),
        4 => both.clone().prop_map(|(by, at)| Step::Lease { by, at }),
        1 => (0..4_usize).prop_map(|which| Step::Ack { which }),
        3 => (0..4_usize).prop_map(|which| Step::GiveBack { which }),
        2 => both.prop_map(|(by, at)| Step::Bind { by, at }),
        1 => Just(Step::Unbind),
        1 => by.clone().prop_map(|by| Step::Subscribe { by }),
        2 => by.clone().prop_map(|by| Step::Publish { by }),
        2 => Just(Step::Pull),
        1 => Just(Step::Unsubscribe),
        1 => Just(Step::Tick),
        1 => by.prop_map(|by| Step::Detach { by }),
    ]
}

/// Of many lengths, so that one is not taken for another where bytes are counted.
fn body(number: u32) -> String {
    format!("{number}{}", ".".repeat(number as usize % 7))
}

/// One message, as the reference keeps it.
#[derive(Debug, Clone, PartialEq)]
struct Letter {
    number: u32,
    fleet: &'static str,
    expires: Option<u64>,
    /// Held by that agent's incarnation.
    leased: Option<usize>,
    returns: u32,
}

impl Letter {
    fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| now >= at)
    }
}

/// A mailbox is a list.
#[derive(Debug, Default)]
struct Naive {
    letters: Vec<Letter>,
    binder: Option<usize>,
}

impl Naive {
    /// When an expired message is noticed does not matter: it is never delivered and takes no room.
    fn live(&self, now: u64) -> usize {
        self.letters.iter().filter(|letter| letter.leased.is_some() || !letter.is_expired(now)).count()
    }

    /// The index of what `by` would get, or what it is told.
    fn find(&self, by: usize, now: u64) -> Result<usize, Option<Reason>> {
        if self.binder.is_some_and(|binder| binder != by) {
            return Err(Some(Reason::TrustViolation));
        }
        let free = || {
            self.letters
                .iter()
                .enumerate()
                .filter(|(_, letter)| letter.leased.is_none() && !letter.is_expired(now))
        };
        match free().find(|(_, letter)| letter.fleet == AGENTS[by].1) {
            Some((index, _)) => Ok(index),
            None => Err(free().next().map(|_| Reason::TrustViolation)),
        }
    }
}

struct Pair {
    world: World,
    agents: Vec<Endpoint>,
    boxes: [Naive; 2],
    leases: Vec<(usize, u32, LeasedMessage)>,
    binding: Option<(usize, Binding)>,
    subscription: Option<(usize, Subscription)>,
    now: u64,
    next: u32,
    redeliveries: u32,
}

impl Pair {
    fn new(redeliveries: u32) -> Self {
        let limits = Limits { queued_bytes: QUEUED_BYTES as u64, ..Limits::default() };
        let world = World::with(
            BusConfig { capacity: CAPACITY, redeliveries, limits, ..BusConfig::default() },
            |b| b,
        );
        let agents = AGENTS.map(|(name, fleet)| world.stranger(name, fleet)).into();
        let boxes = [Naive::default(), Naive::default()];
        Self {
            world,
            agents,
            boxes,
            leases: Vec::new(),
            binding: None,
            subscription: None,
            now: 0,
            next: 0,
            redeliveries,
        }
    }

    fn at(index: usize) -> fak_abi::ChannelKey {
        key(["in_kernel:one", "in_kernel:two"][index])
    }

    fn perform(&mut self, step: &Step) {
        match *step {
            Step::Send { by, at, ttl } => self.send(by, at, ttl),
            Step::Recv { by, at } => self.recv(by, at),
            Step::Lease { by, at } => self.lease(by, at),
            Step::Ack { which } => {
                if let Some((at, number, lease)) = self.take_lease(which) {
                    allowed(&lease.ack());
                    self.boxes[at].letters.retain(|letter| letter.number != number);
                }
            }
            Step::GiveBack { which } => {
                if let Some((at, number, lease)) = self.take_lease(which) {
                    drop(lease);
                    self.returned(at, number);
                }
            }
            Step::Bind { by, at } => self.bind(by, at),
            Step::Unbind => {
                if let Some((at, binding)) = self.binding.take() {
                    drop(binding);
                    self.unbound(at);
                }
            }
            Step::Subscribe { by } => {
                if self.subscription.is_none() {
                    let subscription = self.agents[by].subscribe(&key("in_kernel:news")).allowed().unwrap();
                    self.subscription = Some((by, subscription));
                }
            }
            Step::Publish { by } => {
                let agent = &self.agents[by];
                allowed(&agent.publish(&key("in_kernel:news"), &shared(agent, "news")).verdict);
            }
            Step::Pull => {
                if let Some((_, subscription)) = &mut self.subscription {
                    assert!(matches!(subscription.try_recv(), Delivery::Message(_) | Delivery::Empty));
                }
            }
            Step::Unsubscribe => self.subscription = None,
            Step::Tick => {
                self.world.clock.advance(Duration::from_millis(1));
                self.now += 1;
            }
            Step::Detach { by } => self.detach(by),
        }
    }

    fn send(&mut self, by: usize, at: usize, ttl: bool) {
        let (agent, naive) = (&self.agents[by], &mut self.boxes[at]);
        let options = SendOptions { ttl: ttl.then(|| Duration::from_millis(2)), ..SendOptions::default() };
        let number = self.next;
        self.next += 1;
        let verdict = agent.send_with(&Self::at(at), &shared(agent, &body(number)), &options);
        let expected = if naive.binder.is_some_and(|binder| AGENTS[binder].1 != AGENTS[by].1) {
            Some(Reason::TrustViolation)
        } else if naive.live(self.now) >= CAPACITY {
            Some(Reason::RateLimited)
        } else {
            let expires = ttl.then_some(self.now + 2);
            naive.letters.push(Letter { number, fleet: AGENTS[by].1, expires, leased: None, returns: 0 });
            None
        };
        assert_eq!(verdict.reason(), expected, "{verdict}");
    }

    fn recv(&mut self, by: usize, at: usize) {
        let (agent, naive) = (&self.agents[by], &mut self.boxes[at]);
        let delivery = agent.try_recv(&Self::at(at));
        match (naive.find(by, self.now), delivery) {
            (Ok(index), Delivery::Message(got)) => {
                assert_eq!(text(agent, got.body()), body(naive.letters.remove(index).number));
            }
            (Err(None), Delivery::Empty) => {}
            (Err(reason), Delivery::Refuse(verdict)) => assert_eq!(verdict.reason(), reason),
            (expected, got) => panic!("expected {expected:?}, got {got:?}"),
        }
    }

    fn lease(&mut self, by: usize, at: usize) {
        let (agent, naive) = (&self.agents[by], &mut self.boxes[at]);
        let delivery = agent.try_recv_leased(&Self::at(at), None);
        match (naive.find(by, self.now), delivery) {
            (Ok(index), Delivery::Message(got)) => {
                let letter = &mut naive.letters[index];
                assert_eq!(text(agent, got.message().body()), body(letter.number));
                letter.leased = Some(by);
                self.leases.push((at, letter.number, got));
            }
            (Err(None), Delivery::Empty) => {}
            (Err(reason), Delivery::Refuse(verdict)) => assert_eq!(verdict.reason(), reason),
            (expected, got) => panic!("expected {expected:?}, got {got:?}"),
        }
    }

    fn take_lease(&mut self, which: usize) -> Option<(usize, u32, LeasedMessage)> {
        let count = self.leases.len();
        (count > 0).then(|| self.leases.remove(which % count))
    }

    fn returned(&mut self, at: usize, number: u32) {
        let naive = &mut self.boxes[at];
        let letter = naive.letters.iter_mut().find(|letter| letter.number == number).unwrap();
        (letter.leased, letter.returns) = (None, letter.returns + 1);
        // What the binder may not read would be in nobody's reach.
        if letter.returns > self.redeliveries
            || naive.binder.is_some_and(|binder| AGENTS[binder].1 != letter.fleet)
        {
            naive.letters.retain(|letter| letter.number != number);
        }
    }

    fn bind(&mut self, by: usize, at: usize) {
        let bound = self.agents[by].bind(&Self::at(at));
        let naive = &mut self.boxes[at];
        if naive.binder.is_some_and(|binder| binder != by) {
            assert_eq!(bound.verdict().reason(), Some(Reason::LeaseHeld));
            return;
        }
        let binding = bound.allowed().unwrap();
        naive.binder = Some(by);
        naive.letters.retain(|letter| letter.leased.is_some() || letter.fleet == AGENTS[by].1);
        // One guard at a time: an older one of this key is void, one of the other key ends.
        if let Some((old, guard)) = self.binding.replace((at, binding)) {
            drop(guard);
            if old != at {
                self.unbound(old);
            }
        }
    }

    fn unbound(&mut self, at: usize) {
        let naive = &mut self.boxes[at];
        naive.binder = None;
        naive.letters.clear();
        // Their guards hold nothing any more.
        self.leases.retain(|(leased_at, ..)| *leased_at != at);
    }

    fn detach(&mut self, by: usize) {
        let (name, fleet) = AGENTS[by];
        self.world.kernel.detach(&id(name)).unwrap();
        // What it held goes back before what it bound is purged.
        let mut held: Vec<(usize, u32)> = Vec::new();
        for (at, naive) in self.boxes.iter().enumerate() {
            let its = naive.letters.iter().filter(|letter| letter.leased == Some(by));
            held.extend(its.map(|letter| (at, letter.number)));
        }
        for (at, number) in held {
            self.returned(at, number);
            self.leases.retain(|(_, leased, _)| *leased != number);
        }
        for at in 0..2 {
            if self.boxes[at].binder == Some(by) {
                self.unbound(at);
            }
        }
        if self.binding.as_ref().is_some_and(|(at, _)| self.boxes[*at].binder.is_none()) {
            self.binding = None;
        }
        if self.subscription.as_ref().is_some_and(|(owner, _)| *owner == by) {
            self.subscription = None;
        }
        self.agents[by] = self.world.stranger(name, fleet);
    }

    fn check(&self) {
        let stats = self.world.bus.stats();
        assert!(stats.is_conserved(), "{stats:?}");
        for depth in self.world.bus.depths() {
            let at = usize::from(depth.at == fak_abi::OwnedAddress::Channel(Self::at(1)));
            let naive = &self.boxes[at];
            let (live, all) = (naive.live(self.now) as u64, naive.letters.len() as u64);
            assert!((live..=all).contains(&depth.queued), "{depth:?}, not {live} to {all}");
        }
    }

    /// §4.12: once nothing is queued any more, everybody may queue all of its limit again, and not a byte more.
    fn empty(&mut self) {
        (self.leases, self.binding, self.subscription) = (Vec::new(), None, None);
        for at in 0..2 {
            for agent in &self.agents {
                while let Delivery::Message(_) = agent.try_recv(&Self::at(at)) {}
            }
        }
        let (at, most) = (key("in_kernel:three"), "x".repeat(QUEUED_BYTES));
        for agent in &self.agents {
            allowed(&agent.send(&at, &shared(agent, &most)));
            denied(&agent.send(&at, &shared(agent, "x")), Reason::RateLimited, "a2achan/bytes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_mailbox_is_a_list_that_loses_nothing(
        redeliveries in 0..2_u32,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut pair = Pair::new(redeliveries);
        for step in &steps {
            pair.perform(step);
            pair.check();
        }
        pair.empty();
        pair.world.bus.close();
        let stats = pair.world.bus.stats();
        prop_assert!(stats.is_conserved());
        prop_assert_eq!(stats.queued, 0);
    }
}
