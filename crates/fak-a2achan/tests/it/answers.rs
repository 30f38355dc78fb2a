//! §4.7, §4.10 under random acts: requests, answers and their leases, with deadlines, refusals, detach and the end of
//! the bus. Every answer is received once or is a dead letter, and the books say so at every step.

use std::collections::BTreeSet;
use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, Endpoint, LeasedMessage, Message, PendingReply, RequestOptions};
use fak_abi::{Act, Reason, Rider};
use proptest::prelude::*;

use crate::review::meddled;
use crate::support::*;

const AT: &str = "in_kernel:w";

#[derive(Debug, Clone)]
enum Step {
    Ask { by: usize, brief: bool, blocking: bool },
    Recv { by: usize, leased: bool },
    Answer { which: usize },
    Take { which: usize },
    Lease { which: usize, brief: bool },
    Settle { which: usize, ack: bool },
    GiveUp { which: usize },
    Tick,
    Detach { by: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (by, which, flag) = (0..2_usize, 0..6_usize, any::<bool>());
    let some = (which.clone(), flag);
    prop_oneof![
        5 => (by.clone(), flag, flag)
            .prop_map(|(by, brief, blocking)| Step::Ask { by, brief, blocking }),
        5 => (by.clone(), prop::bool::weighted(0.3)).prop_map(|(by, leased)| Step::Recv { by, leased }),
        4 => which.clone().prop_map(|which| Step::Answer { which }),
        3 => which.clone().prop_map(|which| Step::Take { which }),
        3 => some.clone().prop_map(|(which, brief)| Step::Lease { which, brief }),
        3 => some.prop_map(|(which, ack)| Step::Settle { which, ack }),
        1 => which.prop_map(|which| Step::GiveUp { which }),
        2 => Just(Step::Tick),
        1 => by.prop_map(|by| Step::Detach { by }),
    ]
}

struct Scene {
    world: World,
    agents: Vec<Endpoint>,
    pending: Vec<(usize, PendingReply)>,
    requests: Vec<(usize, Message)>,
    leases: Vec<LeasedMessage>,
    received: BTreeSet<u64>,
    books: (u64, u64),
}

impl Scene {
    fn new(refuses: bool) -> Self {
        let config = BusConfig { redeliveries: 1, ..BusConfig::default() };
        // Answers are refused once they have been taken, but for leased ones.
        let (world, _) = meddled(config, Act::Await, refuses);
        let agents = ["a", "b"].map(|name| world.agent(name)).into();
        let (pending, requests, leases) = (Vec::new(), Vec::new(), Vec::new());
        Self { world, agents, pending, requests, leases, received: BTreeSet::new(), books: (0, 0) }
    }

    fn once(&mut self, seq: u64) {
        assert!(self.received.insert(seq), "{seq} came twice");
    }

    fn perform(&mut self, step: &Step) {
        let at = key(AT);
        let pick = |which: usize, len: usize| (len > 0).then(|| which % len);
        match *step {
            Step::Ask { by, brief, blocking } => {
                let agent = &self.agents[by];
                let deadline = brief.then(|| self.world.bus_now().after(Duration::from_millis(3)));
                let rider = Rider { deadline, ..Rider::default() };
                let options = RequestOptions { blocking, rider: Some(&rider) };
                self.pending
                    .extend(agent.request(&at, &shared(agent, "?"), &options).allowed().map(|it| (by, it)));
            }
            Step::Recv { by, leased: true } => {
                self.leases
                    .extend(self.agents[by].try_recv_leased(&at, Some(Duration::from_millis(2))).message());
            }
            Step::Recv { by, leased: false } => {
                if let Some(message) = self.agents[by].try_recv(&at).message() {
                    self.once(message.seq());
                    self.requests.push((by, message));
                }
            }
            Step::Answer { which } => {
                if let Some(index) = pick(which, self.requests.len()) {
                    let (by, request) = &self.requests[index];
                    let agent = &self.agents[*by];
                    let verdict = agent.reply(request, &shared(agent, "!"));
                    let spent = [None, Some(Reason::Misroute), Some(Reason::TrustViolation)];
                    assert!(spent.contains(&verdict.reason()), "{verdict}");
                }
            }
            Step::Take { which } => {
                if let Some(index) = pick(which, self.pending.len())
                    && let Delivery::Message(message) = self.pending[index].1.try_take()
                {
                    self.once(message.seq());
                }
            }
            Step::Lease { which, brief } => {
                if let Some(index) = pick(which, self.pending.len()) {
                    let deadline = brief.then(|| Duration::from_millis(1));
                    self.leases.extend(self.pending[index].1.try_take_leased(deadline).message());
                }
            }
            Step::Settle { which, ack } => {
                if let Some(index) = pick(which, self.leases.len()) {
                    let lease = self.leases.remove(index);
                    let seq = lease.message().seq();
                    if ack && lease.ack().is_allow() {
                        self.once(seq);
                    }
                }
            }
            Step::GiveUp { which } => {
                if let Some(index) = pick(which, self.pending.len()) {
                    drop(self.pending.remove(index));
                }
            }
            Step::Tick => self.world.clock.advance(Duration::from_millis(1)),
            Step::Detach { by } => {
                let name = ["a", "b"][by];
                self.world.kernel.detach(&id(name)).unwrap();
                self.agents[by] = self.world.agent(name);
            }
        }
    }

    fn check(&mut self) {
        let stats = self.world.bus.stats();
        assert!(stats.is_conserved(), "{stats:?}");
        assert_eq!(stats.received, self.received.len() as u64, "{stats:?}");
        let books = (stats.sent, stats.dead);
        assert!(books >= self.books, "{stats:?} after {:?}", self.books);
        self.books = books;
        assert_eq!(self.world.bus.dead_letters().len() as u64, stats.dead, "{stats:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_received_once_or_dead(
        refuses in any::<bool>(),
        closes in any::<bool>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut scene = Scene::new(refuses);
        for step in &steps {
            scene.perform(step);
            scene.check();
        }
        if closes {
            scene.world.bus.close();
            scene.check();
        }
        scene.leases.clear();
        scene.pending.clear();
        scene.world.bus.close();
        scene.check();
        prop_assert_eq!(scene.world.bus.stats().queued, 0);
    }
}
