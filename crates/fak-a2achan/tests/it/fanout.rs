//! §4.5, §4.10 under random acts, against a naive reference: a list of copies for each subscription.
//! Every receipt, every copy, every loss is the reference's.

use std::sync::Arc;
use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, Endpoint, LeasedMessage, Subscription};
use fak_abi::{PrincipalSpec, Reason, Ref, Rider, ShareScope};
use fak_adjudicate::Rank;
use proptest::prelude::*;

use crate::support::*;
use crate::waits::Onward;

const CAPACITY: usize = 3;
const REDELIVERIES: u32 = 1;
const LEASE_MS: u64 = 3;
const AGENTS: [(&str, &str, Option<&str>); 4] =
    [("a", "f", Some("t")), ("b", "f", None), ("c", "f", Some("t")), ("z", "g", Some("t"))];

#[derive(Debug, Clone)]
enum Step {
    Subscribe { by: usize },
    Unsubscribe { at: usize },
    Publish { by: usize, tenant: bool, ttl: bool },
    Recv { at: usize },
    Lease { at: usize },
    Ack,
    GiveBack,
    Tick,
    Detach { by: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (by, at) = (0..AGENTS.len(), 0..8_usize);
    prop_oneof![
        3 => by.clone().prop_map(|by| Step::Subscribe { by }),
        1 => at.clone().prop_map(|at| Step::Unsubscribe { at }),
        8 => (by.clone(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(by, tenant, ttl)| Step::Publish { by, tenant, ttl }),
        8 => at.clone().prop_map(|at| Step::Recv { at }),
        2 => at.prop_map(|at| Step::Lease { at }),
        1 => Just(Step::Ack),
        2 => Just(Step::GiveBack),
        1 => Just(Step::Tick),
        1 => by.prop_map(|by| Step::Detach { by }),
    ]
}

/// One copy, as the reference keeps it.
struct Copy {
    number: u32,
    expires: Option<u64>,
    /// Until when it is leased.
    leased: Option<u64>,
    returns: u32,
}

struct Naive {
    id: u32,
    owner: usize,
    copies: Vec<Copy>,
    missed: u64,
    subscription: Subscription,
}

struct Pair {
    /// A topology is installed.
    edges: bool,
    world: World,
    agents: Vec<Endpoint>,
    subscriptions: Vec<Naive>,
    leases: Vec<(u32, u32, LeasedMessage)>,
    next: u32,
    now: u64,
    dead: u64,
}

fn spec((name, fleet, tenant): (&str, &str, Option<&str>)) -> PrincipalSpec {
    let spec = PrincipalSpec::agent(id(name)).fleet(id(fleet)).caps(caps());
    match tenant {
        Some(tenant) => spec.tenant(id(tenant)),
        None => spec,
    }
}

fn body(by: &Endpoint, number: u32, scope: ShareScope) -> Ref {
    by.agent().widen(&private(by, &number.to_string()), scope).allowed().unwrap()
}

impl Pair {
    /// In a kernel with edges or without, where nothing is settled, a rung counts, or an admitter screens.
    fn new(edges: bool, kind: u8) -> Self {
        let config = BusConfig { capacity: CAPACITY, redeliveries: REDELIVERIES, ..BusConfig::default() };
        let world = World::with(config, |b| {
            let b = if edges { b.edges(Arc::new(Onward)) } else { b };
            match kind {
                1 => b.rung(Rank(50), Arc::new(Meter { limit: usize::MAX, ..Meter::default() })),
                2 => b.admitter(Rank(50), Arc::new(Hold("never said"))),
                _ => b,
            }
        });
        let agents = AGENTS.iter().map(|agent| world.spec(spec(*agent))).collect();
        let (subscriptions, leases) = (Vec::new(), Vec::new());
        Self { edges, world, agents, subscriptions, leases, next: 0, now: 0, dead: 0 }
    }

    fn perform(&mut self, step: &Step) {
        match *step {
            Step::Subscribe { by } => {
                if self.subscriptions.len() < 40 {
                    let subscription = self.agents[by].subscribe(&key("in_kernel:news")).allowed().unwrap();
                    let id = self.next;
                    self.next += 1;
                    self.subscriptions.push(Naive {
                        id,
                        owner: by,
                        copies: Vec::new(),
                        missed: 0,
                        subscription,
                    });
                }
            }
            Step::Unsubscribe { at } => {
                if at < self.subscriptions.len() {
                    let naive = self.subscriptions.remove(at);
                    self.ended(&naive);
                }
            }
            Step::Publish { by, tenant, ttl } => self.publish(by, tenant, ttl),
            Step::Recv { at } => self.recv(at),
            Step::Lease { at } => self.lease(at),
            Step::Ack => {
                if let Some((of, number, lease)) = self.leases.pop() {
                    let copies = self.copies(of);
                    let known = copies.and_then(|copies| {
                        let at = copies.iter().position(|c| c.number == number && c.leased.is_some())?;
                        Some(copies.remove(at))
                    });
                    match known {
                        Some(_) => allowed(&lease.ack()),
                        None => denied(&lease.ack(), Reason::Misroute, "a2achan/lease-over"),
                    }
                }
            }
            Step::GiveBack => {
                if let Some((of, number, lease)) = self.leases.pop() {
                    drop(lease);
                    self.returned(of, number);
                }
            }
            Step::Tick => {
                self.now += 1;
                self.world.clock.advance(Duration::from_millis(1));
                let now = self.now;
                let due: Vec<_> = self
                    .subscriptions
                    .iter()
                    .flat_map(|naive| naive.copies.iter().map(|copy| (naive.id, copy)))
                    .filter(|(_, copy)| copy.leased.is_some_and(|until| now >= until))
                    .map(|(of, copy)| (of, copy.number))
                    .collect();
                due.into_iter().for_each(|(of, number)| self.returned(of, number));
            }
            Step::Detach { by } => {
                self.world.kernel.detach(&id(AGENTS[by].0)).unwrap();
                let (gone, stay) = self.subscriptions.drain(..).partition(|naive| naive.owner == by);
                self.subscriptions = stay;
                let gone: Vec<Naive> = gone;
                gone.iter().for_each(|naive| self.ended(naive));
                self.agents[by] = self.world.spec(spec(AGENTS[by]));
            }
        }
        self.expire();
    }

    fn copies(&mut self, of: u32) -> Option<&mut Vec<Copy>> {
        self.subscriptions.iter_mut().find(|naive| naive.id == of).map(|naive| &mut naive.copies)
    }

    fn ended(&mut self, naive: &Naive) {
        self.dead += naive.copies.len() as u64;
    }

    fn returned(&mut self, of: u32, number: u32) {
        let Some(copies) = self.copies(of) else { return };
        let is_it = |copy: &&mut Copy| copy.number == number && copy.leased.is_some();
        let Some(copy) = copies.iter_mut().find(is_it) else { return };
        (copy.leased, copy.returns) = (None, copy.returns + 1);
        if copy.returns > REDELIVERIES {
            copies.retain(|copy| copy.number != number);
            self.dead += 1;
        }
    }

    fn expire(&mut self) {
        let now = self.now;
        for naive in &mut self.subscriptions {
            let before = naive.copies.len();
            let is_over = |copy: &Copy| copy.leased.is_none() && copy.expires.is_some_and(|at| now >= at);
            naive.copies.retain(|copy| !is_over(copy));
            self.dead += (before - naive.copies.len()) as u64;
        }
    }

    fn publish(&mut self, by: usize, tenant: bool, ttl: bool) {
        let (_, fleet, of) = AGENTS[by];
        if tenant && of.is_none() {
            return;
        }
        let number = self.next;
        self.next += 1;
        let body =
            body(&self.agents[by], number, if tenant { ShareScope::Tenant } else { ShareScope::Fleet });
        let deadline = self.world.bus_now().after(Duration::from_millis(2));
        let rider = Rider { deadline: ttl.then_some(deadline), ..Rider::default() };
        let out = self.agents[by].publish_with(&key("in_kernel:news"), &body, Some(&rider));
        allowed(&out.verdict);
        let (mut fanout, mut skipped, mut dropped) = (0, 0, 0);
        for naive in &mut self.subscriptions {
            let (_, its_fleet, its_tenant) = AGENTS[naive.owner];
            let flows = if tenant { of == its_tenant } else { fleet == its_fleet };
            if !flows || self.edges && by > naive.owner {
                skipped += 1;
            } else if naive.copies.len() >= CAPACITY {
                dropped += 1;
                naive.missed += 1;
            } else {
                fanout += 1;
                let expires = ttl.then_some(self.now + 2);
                naive.copies.push(Copy { number, expires, leased: None, returns: 0 });
            }
        }
        assert_eq!((out.fanout, out.skipped, out.dropped), (fanout, skipped, dropped));
    }

    fn recv(&mut self, at: usize) {
        let Some(naive) = self.subscriptions.get_mut(at) else { return };
        let agent = &self.agents[naive.owner];
        let delivery = naive.subscription.try_recv();
        match (naive.copies.iter().position(|copy| copy.leased.is_none()), delivery) {
            (Some(index), Delivery::Message(got)) => {
                let copy = naive.copies.remove(index);
                assert_eq!(text(agent, got.body()), copy.number.to_string());
                assert_eq!((got.missed(), got.redeliveries()), (naive.missed, copy.returns));
                naive.missed = 0;
            }
            (None, Delivery::Empty) => {}
            (expected, got) => panic!("expected {expected:?}, got {got:?}"),
        }
    }

    fn lease(&mut self, at: usize) {
        let Some(naive) = self.subscriptions.get_mut(at) else { return };
        let agent = &self.agents[naive.owner];
        let delivery = naive.subscription.try_recv_leased(Some(Duration::from_millis(LEASE_MS)));
        match (naive.copies.iter_mut().find(|copy| copy.leased.is_none()), delivery) {
            (Some(copy), Delivery::Message(got)) => {
                assert_eq!(text(agent, got.message().body()), copy.number.to_string());
                let told = (got.message().missed(), got.message().redeliveries());
                assert_eq!(told, (naive.missed, copy.returns));
                naive.missed = 0;
                copy.leased = Some(self.now + LEASE_MS);
                self.leases.push((naive.id, copy.number, got));
            }
            (None, Delivery::Empty) => {}
            (expected, got) => panic!("expected {:?}, got {got:?}", expected.map(|copy| copy.number)),
        }
    }

    fn check(&self) {
        let stats = self.world.bus.stats();
        assert!(stats.is_conserved(), "{stats:?}");
        let queued: usize = self.subscriptions.iter().map(|naive| naive.copies.len()).sum();
        assert_eq!((stats.queued, stats.dead), (queued as u64, self.dead));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_subscription_is_a_list_of_its_own(
        edges in any::<bool>(),
        kind in 0..3_u8,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut pair = Pair::new(edges, kind);
        for step in &steps {
            pair.perform(step);
            pair.check();
        }
        pair.leases.clear();
        pair.subscriptions.clear();
        let stats = pair.world.bus.stats();
        prop_assert!(stats.is_conserved());
        prop_assert_eq!(stats.queued, 0);
    }
}
