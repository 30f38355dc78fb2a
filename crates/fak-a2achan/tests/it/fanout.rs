//! §4.5, §4.10 under random acts, against a naive reference: a list of copies for each subscription.
//! Every receipt, every copy, every loss is the reference's.

use std::sync::Arc;
use std::time::Duration;

use fak_a2achan::{BusConfig, Delivery, Endpoint, LeasedMessage, Limits, Subscription};
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

/// §4.5: more subscribers than share a log, some of them slow; all of one fleet.
#[test]
fn forty_subscribers_each_lose_their_own() {
    let world = World::with(BusConfig { capacity: 2, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut all: Vec<_> = (0..40).map(|_| bravo.subscribe(&topic).allowed().unwrap()).collect();
    for n in 0..5_u64 {
        let out = alpha.publish(&topic, &shared(&alpha, &n.to_string()));
        let slow = if n < 2 { 0 } else { 20 };
        assert_eq!((out.fanout, out.dropped), (40 - slow, slow));
        for fast in all.iter_mut().step_by(2) {
            assert_eq!(text(&bravo, message(fast.try_recv()).body()), n.to_string());
        }
    }
    for slow in all.iter_mut().skip(1).step_by(2) {
        let one = message(slow.try_recv());
        assert_eq!((text(&bravo, one.body()), one.missed()), ("0".to_owned(), 3));
        assert_eq!(message(slow.try_recv()).missed(), 0);
        assert!(slow.try_recv().is_empty());
    }
    assert!(world.bus.stats().is_conserved());
}

/// §4.5: those who wait are woken in the order in which they subscribed, whatever their fleets.
#[test]
fn waiters_are_woken_in_subscription_order() {
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake, Waker};

    struct Mark(usize, Arc<Mutex<Vec<usize>>>);
    impl Wake for Mark {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let world = World::new();
    let of = |name, tenant| world.spec(spec((name, "f", tenant)));
    let readers = [of("r0", None), of("r1", Some("t")), of("r2", None), of("r3", Some("t"))];
    let topic = key("in_kernel:news");
    let mut all: Vec<_> = readers.iter().map(|reader| reader.subscribe(&topic).allowed().unwrap()).collect();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waits: Vec<_> = all.iter_mut().map(|subscription| Box::pin(subscription.recv())).collect();
    for (n, wait) in waits.iter_mut().enumerate() {
        let waker = Waker::from(Arc::new(Mark(n, Arc::clone(&order))));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let alpha = of("alpha", None);
    assert_eq!(alpha.publish(&topic, &shared(&alpha, "x")).fanout, 4);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
}

/// §4.5: a copy whose receive a counting rung refuses keeps its slot: an inbox never holds more than
/// its capacity.
#[test]
fn a_copy_that_is_put_back_keeps_its_slot() {
    let meter = std::sync::Arc::new(Publishing::default());
    let config = BusConfig { capacity: 2, ..BusConfig::default() };
    let world = World::with(config, |builder| {
        builder.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
    });
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let body = shared(&alpha, "x");
    let fanouts: Vec<_> = (0..3).map(|_| alpha.publish(&topic, &body).fanout).collect();
    assert_eq!(fanouts, [1, 1, 0]);
    // While the rung counts the receive, another copy comes in.
    let (publisher, at, copy) = (alpha.clone(), topic.clone(), body.clone());
    *meter.act.lock() = Some(Box::new(move || {
        let out = publisher.publish(&at, &copy);
        assert_eq!((out.fanout, out.dropped), (0, 1), "the copy that is out keeps its slot");
    }));
    refused(news.try_recv(), Reason::RateLimited, "publishing");
    assert_eq!(world.bus.stats().queued, 2);
    // What was lost before it and meanwhile is told by the receive that hands something over.
    assert_eq!(message(news.try_recv()).missed(), 2);
    assert_eq!(message(news.try_recv()).missed(), 0);
    assert!(news.try_recv().is_empty());
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.dropped), (4, 2, 2));
    assert!(stats.is_conserved());
}

/// A copy that is held tells nobody what was lost before it: the next that is handed over does.
#[test]
fn a_held_copy_does_not_swallow_what_was_missed() {
    let config = BusConfig { capacity: 1, ..BusConfig::default() };
    let world =
        World::with(config, |b| b.admitter(fak_adjudicate::Rank(0), std::sync::Arc::new(Hold("poison"))));
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    for body in ["poison", "lost"] {
        allowed(&alpha.publish(&topic, &shared(&alpha, body)).verdict);
    }
    assert!(matches!(news.try_recv(), Delivery::Hold(_)));
    allowed(&alpha.publish(&topic, &shared(&alpha, "x")).verdict);
    assert_eq!(message(news.try_recv()).missed(), 1);
    let stats = world.bus.stats();
    assert_eq!((stats.held, stats.dropped, stats.received), (1, 1, 1));
    assert!(stats.is_conserved());
}

/// §4.12: what has had its time takes none of its publisher's bytes.
#[test]
fn expired_publications_make_room() {
    let limits = Limits { queued_bytes: 10, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let deadline = Some(world.bus_now().after(Duration::from_millis(5)));
    let rider = Rider { deadline, ..Rider::default() };
    let body = shared(&alpha, "sixsix");
    allowed(&alpha.publish_with(&topic, &body, Some(&rider)).verdict);
    denied(&alpha.publish(&topic, &body).verdict, Reason::RateLimited, "a2achan/bytes");
    world.clock.advance(Duration::from_millis(5));
    allowed(&alpha.publish(&topic, &body).verdict);
    message(news.try_recv());
    let stats = world.bus.stats();
    assert_eq!((stats.received, stats.dead, stats.queued), (1, 1, 0));
}

/// A rung that does something while it counts a receive, and then refuses that, or not.
#[derive(Default)]
struct Publishing {
    act: parking_lot::Mutex<Option<Box<dyn FnOnce() + Send>>>,
    allows: bool,
}

impl fak_abi::Adjudicator for Publishing {
    fn name(&self) -> fak_abi::RungName {
        "publishing"
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        fak_abi::Opinion::Defer
    }
    fn commit(&self, call: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        if call.tool().name() != "a2a.recv" {
            return fak_abi::Opinion::Defer;
        }
        let Some(act) = self.act.lock().take() else { return fak_abi::Opinion::Defer };
        act();
        if self.allows {
            return fak_abi::Opinion::Defer;
        }
        fak_abi::Opinion::deny(Reason::RateLimited, fak_abi::Site::new("publishing"))
    }
}

/// A subscription that ends while a rung counts its receive: the copy is a dead letter, and is not
/// handed over as well.
#[test]
fn an_end_while_counting_is_not_delivered() {
    for allows in [false, true] {
        let meter = std::sync::Arc::new(Publishing { allows, ..Publishing::default() });
        let world = World::with(BusConfig::default(), |builder| {
            builder.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
        });
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let topic = key("in_kernel:news");
        let mut news = bravo.subscribe(&topic).allowed().unwrap();
        assert_eq!(alpha.publish(&topic, &shared(&alpha, "x")).fanout, 1);
        let kernel = std::sync::Arc::clone(&world.kernel);
        *meter.act.lock() = Some(Box::new(move || kernel.detach(&id("bravo")).unwrap()));
        let site = if allows { "a2achan/closed" } else { "publishing" };
        let Delivery::Refuse(verdict) = news.try_recv() else { panic!("not refused") };
        assert_eq!(verdict.refusal().unwrap().site.check(), site);
        let stats = world.bus.stats();
        assert_eq!((stats.sent, stats.received, stats.dead), (1, 0, 1));
        assert!(stats.is_conserved());
    }
}

/// §4.12: what is published counts in the publisher's queued bytes: once, until the last copy was
/// taken, however slow the slowest subscriber.
#[test]
fn published_bytes_count_once_until_the_last_copy_is_taken() {
    let limits = Limits { queued_bytes: 10, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |b| b);
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let topic = key("in_kernel:news");
    let publish = |by: &Endpoint| by.publish(&topic, &shared(by, "four")).verdict;
    // To nobody: nothing is queued.
    (0..9).for_each(|_| allowed(&publish(&alpha)));
    let mut fast = bravo.subscribe(&topic).allowed().unwrap();
    let mut slow = carol.subscribe(&topic).allowed().unwrap();
    (0..2).for_each(|_| allowed(&publish(&alpha)));
    denied(&publish(&alpha), Reason::RateLimited, "a2achan/bytes");
    denied(&alpha.send(&key("in_kernel:w"), &shared(&alpha, "four")), Reason::RateLimited, "a2achan/bytes");
    allowed(&publish(&bravo));
    (0..3).for_each(|_| drop(message(fast.try_recv())));
    denied(&publish(&alpha), Reason::RateLimited, "a2achan/bytes");
    // Received, it is the receiver's: it may keep the message for as long as it likes.
    let _kept = message(slow.try_recv());
    allowed(&publish(&alpha));
    denied(&publish(&alpha), Reason::RateLimited, "a2achan/bytes");
    // Ended, the copies are dead letters, which have a limit of their own.
    drop(slow);
    drop(fast);
    (0..9).for_each(|_| allowed(&publish(&alpha)));
    assert!(world.bus.stats().is_conserved());
}

/// §4.12, where rungs count: reserved before they do, given back if they refuse.
#[test]
fn published_bytes_are_reserved_while_rungs_count() {
    let meter = std::sync::Arc::new(Meter { limit: 2, ..Meter::default() });
    let limits = Limits { queued_bytes: 10, ..Limits::default() };
    let world = World::with(BusConfig { limits, ..BusConfig::default() }, |builder| {
        builder.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
    });
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let body = shared(&alpha, "sixsix");
    allowed(&alpha.publish(&topic, &body).verdict);
    denied(&alpha.publish(&topic, &body).verdict, Reason::RateLimited, "a2achan/bytes");
    assert_eq!(meter.counts.lock()["a2a.publish"], 1, "what has no room is not counted");
    message(news.try_recv());
    allowed(&alpha.publish(&topic, &body).verdict);
    message(news.try_recv());
    for _ in 0..3 {
        denied(&alpha.publish(&topic, &body).verdict, Reason::RateLimited, "meter");
    }
    meter.counts.lock().clear();
    allowed(&alpha.publish(&topic, &body).verdict);
    assert!(world.bus.stats().is_conserved());
}

/// §2.5: what is published with a deadline is worth receiving until then.
#[test]
fn a_publication_lives_until_its_deadline() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let deadline = Some(world.bus_now().after(Duration::from_millis(5)));
    let rider = Rider { deadline, ..Rider::default() };
    allowed(&alpha.publish_with(&topic, &shared(&alpha, "short"), Some(&rider)).verdict);
    allowed(&alpha.publish(&topic, &shared(&alpha, "long")).verdict);
    world.clock.advance(Duration::from_millis(5));
    assert_eq!(world.bus.stats().dead, 1, "what the host is told is as of now");
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "expired");
    assert_eq!(text(&bravo, message(news.try_recv()).body()), "long");
    assert!(world.bus.stats().is_conserved());
}

fn texts(by: &Endpoint, batch: &[Delivery]) -> Vec<String> {
    let text_of = |delivery: &Delivery| match delivery {
        Delivery::Message(message) => text(by, message.body()),
        other => panic!("no message: {other:?}"),
    };
    batch.iter().map(text_of).collect()
}

/// A batch is what receiving one by one would have handed over, losses told with the first; it reads
/// on from a log and from a queue of the subscriber's own alike.
#[test]
fn a_batch_takes_what_is_there_in_order() {
    let world = World::with(BusConfig { capacity: 3, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let mut other = bravo.subscribe(&topic).allowed().unwrap();
    let publish = |n: usize| alpha.publish(&topic, &shared(&alpha, &n.to_string()));
    let mut batch = Vec::new();
    assert_eq!(news.try_recv_batch(4, &mut batch), 0);
    assert_eq!(news.try_recv_batch(0, &mut batch), 0);
    (1..=2).for_each(|n| assert_eq!(publish(n).fanout, 2));
    assert_eq!((news.try_recv_batch(1, &mut batch), news.try_recv_batch(9, &mut batch)), (1, 1));
    assert_eq!(texts(&bravo, &batch), ["1", "2"]);
    // The other is full now, and loses two.
    let fanouts: Vec<_> = (3..=5).map(|n| publish(n).fanout).collect();
    assert_eq!(fanouts, [2, 1, 1]);
    batch.clear();
    assert_eq!(other.try_recv_batch(9, &mut batch), 3);
    assert_eq!(texts(&bravo, &batch), ["1", "2", "3"]);
    let missed: Vec<_> = batch.into_iter().map(|got| got.message().unwrap().missed()).collect();
    assert_eq!(missed, [2, 0, 0]);
    batch = Vec::new();
    assert_eq!(news.try_recv_batch(9, &mut batch), 3);
    assert_eq!(texts(&bravo, &batch), ["3", "4", "5"]);
    assert!(world.bus.stats().is_conserved());
}

/// Where somebody counts or holds, a batch is act by act: each is counted, held or refused alone.
#[test]
fn a_batch_is_counted_and_screened_copy_by_copy() {
    let meter = std::sync::Arc::new(Meter { limit: 3, ..Meter::default() });
    let world = World::with(BusConfig::default(), |b| {
        b.rung(fak_adjudicate::Rank(0), std::sync::Arc::clone(&meter) as _)
            .admitter(fak_adjudicate::Rank(0), std::sync::Arc::new(Hold("poison")))
    });
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let publish = |text| {
        meter.counts.lock().clear();
        allowed(&alpha.publish(&topic, &shared(&alpha, text)).verdict);
    };
    ["1", "poison", "2", "3", "4", "5"].into_iter().for_each(publish);
    let mut batch = Vec::new();
    assert_eq!(news.try_recv_batch(9, &mut batch), 5);
    assert!(matches!(batch.remove(1), Delivery::Hold(_)));
    let Some(Delivery::Refuse(verdict)) = batch.pop() else { panic!("not refused") };
    denied(&verdict, Reason::RateLimited, "meter");
    assert_eq!(texts(&bravo, &batch), ["1", "2", "3"]);
    assert_eq!(meter.counts.lock()["a2a.recv"], 3);
    let stats = world.bus.stats();
    assert_eq!((stats.received, stats.held, stats.queued), (3, 1, 2));
    assert!(stats.is_conserved());
}

/// A batch that waits takes nothing before it is ready.
#[test]
fn a_waiting_batch_is_cancel_safe() {
    let world = World::new();
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let topic = key("in_kernel:news");
    let mut news = bravo.subscribe(&topic).allowed().unwrap();
    let mut wait = Hand::new(news.recv_batch(3));
    wait.pending();
    for n in ["1", "2", "3", "4"] {
        allowed(&alpha.publish(&topic, &shared(&alpha, n)).verdict);
    }
    assert_eq!(wait.wakes(), 1);
    drop(wait);
    assert_eq!(texts(&bravo, &Hand::new(news.recv_batch(3)).ready()), ["1", "2", "3"]);
    assert_eq!(texts(&bravo, &Hand::new(news.recv_batch(3)).ready()), ["4"]);
    assert!(Hand::new(news.recv_batch(0)).ready().is_empty());
    assert!(world.bus.stats().is_conserved());
}
