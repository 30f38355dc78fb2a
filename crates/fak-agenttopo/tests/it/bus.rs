//! A topology over the bus: sends, choices on receiving, publications, answers (§6.9).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fak_a2achan::{Bus, BusConfig, Delivery, Endpoint, Message};
use fak_abi::{CapSet, ChannelKey, Edges, Id, Principal, PrincipalSpec, Reason, Ref, ShareScope, Verdict};
use fak_adjudicate::{Kernel, Rank};
use fak_agenttopo::{Enforced, Topology};
use fak_comm::{Comm, Group, GroupSpec, Member};

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn key(text: &str) -> ChannelKey {
    text.parse().unwrap()
}

struct World {
    kernel: Arc<Kernel>,
    bus: Bus,
}

impl World {
    fn new(edges: &[(&str, &str)]) -> Self {
        let edges: Vec<_> = edges.iter().map(|(from, to)| (id(from), id(to))).collect();
        let topology = Arc::new(Enforced::new(Topology::over(id("t"), &edges).unwrap()));
        let bus = Bus::new(BusConfig::default()).unwrap();
        let builder = Kernel::builder().driver(bus.driver());
        let kernel = builder.rung(Rank(0), topology.clone()).edges(topology).build().unwrap();
        Self { kernel, bus }
    }

    fn attach<const N: usize>(&self, names: [&str; N]) -> [Endpoint; N] {
        names.map(|name| {
            let spec = PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(CapSet::ALL);
            self.bus.endpoint(&self.kernel.attach(spec).unwrap())
        })
    }
}

fn shared(by: &Endpoint, text: &str) -> Ref {
    by.agent().widen(&by.agent().mint(text.to_owned()), ShareScope::Fleet).allowed().unwrap()
}

fn blocked(verdict: &Verdict) {
    assert_eq!(verdict.reason(), Some(Reason::PolicyBlock), "{verdict}");
}

fn from(delivery: Delivery) -> Option<String> {
    delivery.message().map(|message: Message| message.from().id().to_string())
}

#[test]
fn a_send_to_a_bound_or_session_key_needs_the_edge() {
    let world = World::new(&[("a", "b"), ("b", "c")]);
    let [a, b, c, x] = world.attach(["a", "b", "c", "x"]);
    let body = shared(&a, "x");
    assert!(a.send(&key("session:trace-b"), &body).is_allow());
    blocked(&a.send(&key("session:trace-c"), &body));
    blocked(&a.send(&key("session:trace-x"), &body));
    blocked(&c.send(&key("session:trace-a"), &shared(&c, "x")));
    assert!(a.send(&key("session:trace-a"), &body).is_allow(), "to oneself");
    assert!(x.send(&key("session:trace-c"), &shared(&x, "x")).is_allow(), "an outsider is not bound");
    let _bound = c.bind(&key("in_kernel:desk")).allowed().unwrap();
    blocked(&a.send(&key("in_kernel:desk"), &body));
    assert!(b.send(&key("in_kernel:desk"), &shared(&b, "x")).is_allow());
}

#[test]
fn on_an_unbound_key_the_receiver_chooses_what_has_an_edge() {
    let world = World::new(&[("a", "c"), ("b", "c"), ("b", "d")]);
    let [a, b, c, d] = world.attach(["a", "b", "c", "d"]);
    let work = key("in_kernel:work");
    assert!(a.send(&work, &shared(&a, "1")).is_allow());
    assert!(b.send(&work, &shared(&b, "2")).is_allow());
    assert_eq!(from(d.try_recv(&work)).as_deref(), Some("b"), "the first keeps its place");
    blocked(d.try_recv(&work).refusal().unwrap());
    assert_eq!(from(c.try_recv(&work)).as_deref(), Some("a"));
    assert!(d.try_recv(&work).is_empty());
}

/// A host's edges, all of which it can take away.
struct Shut(AtomicBool);

impl Edges for Shut {
    fn may_hand(&self, _: &Principal, _: &Principal) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// §6.9: what was handed to a member was judged then; its own inbox asks for no edge, as it would at a key that is nobody's.
#[test]
fn what_a_collective_handed_over_needs_no_edge_again() {
    let (bus, comm) = (Bus::new(BusConfig::default()).unwrap(), Arc::new(Comm::new()));
    let shut = Arc::new(Shut(AtomicBool::new(false)));
    let builder = Kernel::builder().driver(bus.driver()).driver(comm.clone()).edges(shut.clone());
    let world = World { kernel: builder.build().unwrap(), bus };
    let [a, b] = world.attach(["a", "b"]);
    let crew = comm.open(Group::new(GroupSpec::new(id("crew"), vec![Member::new(id("b"))])).unwrap());
    let mut handed = crew.ibroadcast(a.agent(), &shared(&a, "x")).allowed().unwrap();
    assert_eq!(handed.try_complete().unwrap().delivered, 1);
    assert!(a.send(&key("in_kernel:work"), &shared(&a, "y")).is_allow());
    shut.0.store(true, Ordering::Relaxed);
    blocked(b.try_recv(&key("in_kernel:work")).refusal().unwrap());
    assert_eq!(from(b.try_recv_group(&id("crew"))).as_deref(), Some("a"));
}

#[test]
fn a_publication_skips_those_without_an_edge() {
    let world = World::new(&[("a", "b"), ("b", "c")]);
    let [a, b, c, x] = world.attach(["a", "b", "c", "x"]);
    let topic = key("in_kernel:news");
    let mut inboxes = [&b, &c, &x].map(|endpoint| endpoint.subscribe(&topic).allowed().unwrap());
    let published = a.publish(&topic, &shared(&a, "x"));
    assert!(published.verdict.is_allow());
    assert_eq!((published.fanout, published.skipped), (1, 2));
    assert_eq!(from(inboxes[0].try_recv()).as_deref(), Some("a"));
    assert!(inboxes[1].try_recv().is_empty() && inboxes[2].try_recv().is_empty());
}

#[test]
fn an_answer_goes_back_along_its_requests_edge() {
    let world = World::new(&[("a", "b")]);
    let [a, b] = world.attach(["a", "b"]);
    let mut pending =
        a.request(&key("session:trace-b"), &shared(&a, "?"), &Default::default()).allowed().unwrap();
    let request = b.try_recv(&key("session:trace-b")).message().unwrap();
    blocked(&b.send(&key("session:trace-a"), &shared(&b, "!")));
    assert!(b.reply(&request, &shared(&b, "!")).is_allow());
    assert_eq!(from(pending.try_take()).as_deref(), Some("b"));
}
