//! §4.3, §4.4 under random acts: nobody sleeps over what is for it. Waits of every shape are begun, polled, moved on
//! and dropped among everything that can happen to a key; once all that were woken have come round, none of
//! those that wait could have what it waits for.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fak_a2achan::{Binding, BusConfig, Delivery, Endpoint, LeasedMessage, SendOptions};
use fak_abi::{
    Adjudicator, Desk, Edges, Opinion, Principal, Reason, RungName, Site, ToolCall, ToolScope, Verdict,
};
use fak_adjudicate::Rank;
use proptest::prelude::*;

use crate::support::*;

const AGENTS: [(&str, &str); 3] = [("a", "f"), ("b", "f"), ("z", "g")];
const AT: &str = "in_kernel:w";

#[derive(Debug, Clone)]
enum Step {
    Send { by: usize, ttl: bool, at_hand: bool },
    Recv { by: usize, at_hand: bool },
    Lease { by: usize },
    Settle { ack: bool },
    Bind { by: usize },
    Unbind,
    Wait { by: usize, at_hand: bool },
    Patient { by: usize, at_hand: bool },
    Poll { which: usize },
    Drop { which: usize },
    Refuse { on: bool },
    Tick,
    Detach { by: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (by, which) = (0..3_usize, 0..8_usize);
    let (at_hand, some) = (any::<bool>(), (by.clone(), any::<bool>()));
    prop_oneof![
        6 => (some.clone(), at_hand).prop_map(|((by, ttl), at_hand)| Step::Send { by, ttl, at_hand }),
        3 => some.clone().prop_map(|(by, at_hand)| Step::Recv { by, at_hand }),
        2 => by.clone().prop_map(|by| Step::Lease { by }),
        2 => any::<bool>().prop_map(|ack| Step::Settle { ack }),
        1 => by.clone().prop_map(|by| Step::Bind { by }),
        1 => Just(Step::Unbind),
        5 => some.clone().prop_map(|(by, at_hand)| Step::Wait { by, at_hand }),
        4 => some.prop_map(|(by, at_hand)| Step::Patient { by, at_hand }),
        3 => which.clone().prop_map(|which| Step::Poll { which }),
        3 => which.prop_map(|which| Step::Drop { which }),
        1 => any::<bool>().prop_map(|on| Step::Refuse { on }),
        2 => Just(Step::Tick),
        1 => by.prop_map(|by| Step::Detach { by }),
    ]
}

/// Nobody hands anything to an agent before it in the alphabet.
pub(crate) struct Onward;

impl Edges for Onward {
    fn may_hand(&self, from: &Principal, to: &Principal) -> bool {
        from.id() <= to.id()
    }
}

/// Refuses what is received, while it is told to, once it has been taken.
struct Moody(Arc<AtomicBool>);

impl Adjudicator for Moody {
    fn name(&self) -> RungName {
        "moody"
    }
    fn counts(&self) -> bool {
        true
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only(["a2a.recv"])
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }
    fn commit(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        match self.0.load(Ordering::SeqCst) {
            true => Opinion::deny(Reason::RateLimited, Site::new("moody")),
            false => Opinion::Defer,
        }
    }
}

enum Done {
    Got(Delivery),
    Sent(Verdict),
}

struct Wait {
    by: usize,
    patient: bool,
    hand: Hand<Pin<Box<dyn Future<Output = Done>>>>,
    seen: usize,
}

struct Scene {
    world: World,
    agents: Vec<Endpoint>,
    waits: Vec<Wait>,
    leases: Vec<LeasedMessage>,
    binding: Option<Binding>,
    refuses: Arc<AtomicBool>,
    received: BTreeSet<u64>,
}

impl Scene {
    fn new(edges: bool, moody: bool) -> Self {
        let refuses = Arc::<AtomicBool>::default();
        let config = BusConfig { capacity: 2, redeliveries: 1, ..BusConfig::default() };
        let world = World::with(config, |b| {
            let b = if edges { b.edges(Arc::new(Onward)) } else { b };
            if moody { b.rung(Rank(50), Arc::new(Moody(Arc::clone(&refuses)))) } else { b }
        });
        let agents = AGENTS.map(|(name, fleet)| world.stranger(name, fleet)).into();
        let (waits, leases, received) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { world, agents, waits, leases, binding: None, refuses, received }
    }

    fn got(&mut self, delivery: Delivery) {
        if let Delivery::Message(message) = delivery {
            assert!(self.received.insert(message.seq()), "{} came twice", message.seq());
        }
    }

    fn perform(&mut self, step: &Step) {
        let at = key(AT);
        match *step {
            Step::Send { by, ttl, at_hand } => {
                let (agent, ttl) = (&self.agents[by], ttl.then(|| Duration::from_millis(2)));
                let (body, options) = (shared(agent, "x"), SendOptions { ttl, ..SendOptions::default() });
                let _ = match (ttl, at_hand) {
                    (Some(_), _) => agent.send_with(&at, &body, &options),
                    (None, true) => agent.channel(&at).send(&body),
                    (None, false) => agent.send(&at, &body),
                };
            }
            Step::Recv { by, at_hand } => {
                let agent = &self.agents[by];
                let got = if at_hand { agent.channel(&at).try_recv() } else { agent.try_recv(&at) };
                self.got(got);
            }
            Step::Lease { by } => self.leases.extend(self.agents[by].try_recv_leased(&at, None).message()),
            Step::Settle { ack } => {
                if let Some(lease) = self.leases.pop() {
                    let seq = lease.message().seq();
                    if ack && lease.ack().is_allow() {
                        assert!(self.received.insert(seq), "{seq} came twice");
                    }
                }
            }
            Step::Bind { by } => {
                if let Some(binding) = self.agents[by].bind(&at).allowed() {
                    self.binding = Some(binding);
                }
            }
            Step::Unbind => self.binding = None,
            Step::Wait { by, at_hand } => {
                let agent = self.agents[by].clone();
                self.begin(by, false, async move {
                    let channel = agent.channel(&at);
                    Done::Got(if at_hand { channel.recv().await } else { agent.recv(&at).await })
                });
            }
            Step::Patient { by, at_hand } => {
                let agent = self.agents[by].clone();
                self.begin(by, true, async move {
                    let (channel, body) = (agent.channel(&at), shared(&agent, "x"));
                    let sent = channel.send_wait(&body, None);
                    Done::Sent(if at_hand { sent.await } else { agent.send_wait(&at, &body, None).await })
                });
            }
            Step::Poll { which } if !self.waits.is_empty() => self.poll(which % self.waits.len()),
            Step::Drop { which } if !self.waits.is_empty() => {
                drop(self.waits.remove(which % self.waits.len()));
            }
            Step::Poll { .. } | Step::Drop { .. } => {}
            Step::Refuse { on } => self.refuses.store(on, Ordering::SeqCst),
            Step::Tick => self.world.clock.advance(Duration::from_millis(1)),
            Step::Detach { by } => {
                let (name, fleet) = AGENTS[by];
                self.world.kernel.detach(&id(name)).unwrap();
                self.agents[by] = self.world.stranger(name, fleet);
            }
        }
    }

    fn begin(&mut self, by: usize, patient: bool, wait: impl Future<Output = Done> + 'static) {
        self.waits.push(Wait { by, patient, hand: Hand::new(Box::pin(wait)), seen: 0 });
        self.poll(self.waits.len() - 1);
    }

    fn poll(&mut self, index: usize) {
        let wait = &mut self.waits[index];
        wait.seen = wait.hand.wakes();
        if let std::task::Poll::Ready(done) = wait.hand.poll() {
            self.waits.remove(index);
            match done {
                Done::Got(delivery) => self.got(delivery),
                Done::Sent(verdict) => assert_ne!(verdict.reason(), Some(Reason::RateLimited), "{verdict}"),
            }
        }
    }

    /// All that were woken come round.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            match self.waits.iter().position(|wait| wait.hand.wakes() > wait.seen) {
                Some(index) => self.poll(index),
                None => return,
            }
        }
        panic!("it never rests");
    }

    /// None of those that wait sleeps over what is for it.
    fn check(&mut self) {
        self.settle();
        self.refuses.store(false, Ordering::SeqCst);
        let stats = self.world.bus.stats();
        assert!(stats.is_conserved(), "{stats:?}");
        // What statistics have found expired wakes whom it concerns.
        let (at, mut asked) = (key(AT), [false; 3]);
        let waits: Vec<_> = self.waits.iter().map(|wait| (wait.by, wait.patient)).collect();
        for (by, _) in waits.iter().filter(|(_, patient)| *patient) {
            let sent = self.agents[*by].send(&at, &shared(&self.agents[*by], "x"));
            assert!(!sent.is_allow(), "{} sleeps", AGENTS[*by].0);
        }
        for (by, _) in waits.iter().filter(|(_, patient)| !patient) {
            if !std::mem::replace(&mut asked[*by], true) {
                let got = self.agents[*by].try_recv(&at);
                assert!(!matches!(got, Delivery::Message(_)), "{} sleeps", AGENTS[*by].0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nobody_sleeps_over_what_is_for_it(
        edges in any::<bool>(),
        moody in any::<bool>(),
        lazy in any::<bool>(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut scene = Scene::new(edges, moody);
        for step in &steps {
            scene.perform(step);
            if !lazy {
                scene.settle();
            }
        }
        scene.check();
    }
}
