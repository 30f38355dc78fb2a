//! §3.2, §4: what is admitted without a permit is what is admitted with one. The same random acts in a kernel that
//! keeps no books, in one that is observed, in one where a rung counts, in one where an admitter screens and in two that
//! are audited come to the same, verdict for verdict and message for message. Of the two one is observed as well, so that
//! its acts have permits: their logs are the same, byte for byte.

use std::cell::RefCell;
use std::io;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fak_a2achan::{
    Binding, BusConfig, Channel, Delivery, Endpoint, Limits, Message, PendingReply, RequestOptions,
    SendOptions, Subscription,
};
use fak_abi::{
    Capability, ChannelKey, Emitter, Event, EventKinds, PrincipalSpec, Ref, ShareScope, Taint, Timestamp,
    Verdict,
};
use fak_adjudicate::{Audit, AuditLog, AuditOptions, AuditSink, Rank, verify_audit};
use proptest::prelude::*;

use crate::support::*;

const KEYS: [&str; 5] = ["in_kernel:w", "in_kernel:a", "session:b", "window:z", "in_kernel:status:a"];
const AGENTS: [(&str, &str); 4] = [("a", "f"), ("b", "f"), ("z", "g"), ("mute", "f")];

#[derive(Debug, Clone)]
enum Step {
    Send { by: usize, at: usize, body: usize, how: usize },
    Recv { by: usize, at: usize, how: usize },
    Ask { by: usize, at: usize, body: usize, how: usize },
    Answer { by: usize, body: usize },
    Take,
    Subscribe { by: usize },
    Publish { by: usize, body: usize },
    Pull { most: usize },
    Unsubscribe,
    Bind { by: usize, at: usize },
    Unbind,
    Tick,
    Detach { by: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (by, body, how) = (0..4_usize, prop_oneof![4 => Just(0_usize), 1 => 1..5_usize], 0..3_usize);
    let at = prop_oneof![4 => Just(0_usize), 3 => 1..5_usize];
    let place = (by.clone(), at);
    prop_oneof![
        6 => (place.clone(), body.clone(), how.clone())
            .prop_map(|((by, at), body, how)| Step::Send { by, at, body, how }),
        5 => (place.clone(), how.clone()).prop_map(|((by, at), how)| Step::Recv { by, at, how }),
        2 => (place.clone(), body.clone(), how).prop_map(|((by, at), body, how)| Step::Ask { by, at, body, how }),
        2 => (by.clone(), body.clone()).prop_map(|(by, body)| Step::Answer { by, body }),
        2 => Just(Step::Take),
        2 => by.clone().prop_map(|by| Step::Subscribe { by }),
        3 => (by.clone(), body).prop_map(|(by, body)| Step::Publish { by, body }),
        3 => (0..4_usize).prop_map(|most| Step::Pull { most }),
        1 => Just(Step::Unsubscribe),
        2 => place.prop_map(|(by, at)| Step::Bind { by, at }),
        1 => Just(Step::Unbind),
        1 => Just(Step::Tick),
        1 => by.prop_map(|by| Step::Detach { by }),
    ]
}

struct Watcher;

impl Emitter for Watcher {
    fn kinds(&self) -> EventKinds {
        EventKinds::ALL
    }
    fn emit(&self, _: &Event<'_>) {}
}

/// A medium on which nothing more fits for a time.
#[derive(Debug, Default)]
struct Disk {
    bytes: Vec<u8>,
    room: Option<usize>,
}

#[derive(Debug, Clone, Default)]
struct Shared(Rc<RefCell<Disk>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.0.borrow_mut();
        let written = disk.room.map_or(bytes.len(), |room| room.min(bytes.len()));
        disk.room = disk.room.map(|room| room - written);
        disk.bytes.extend_from_slice(&bytes[..written]);
        if written == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(written) }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AuditSink for Shared {
    fn length(&mut self) -> io::Result<u64> {
        self.0.borrow_mut().bytes.length()
    }
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        AuditSink::truncate(&mut self.0.borrow_mut().bytes, length)
    }
}

struct Scene {
    world: World,
    disk: Shared,
    books: Option<(Arc<Audit>, AuditLog<Shared>)>,
    agents: Vec<Endpoint>,
    channels: Vec<Vec<Channel>>,
    requests: Vec<Message>,
    pending: Vec<PendingReply>,
    subscriptions: Vec<Subscription>,
    binding: Option<Binding>,
    trace: Vec<String>,
}

impl Scene {
    fn new(kind: usize) -> Self {
        Self::with(kind, AuditOptions::default())
    }

    fn with(kind: usize, options: AuditOptions) -> Self {
        let disk = Shared::default();
        let limits = Limits { queued_bytes: 64, ..Limits::default() };
        let mut books = None;
        let config = BusConfig { capacity: 3, max_body_bytes: 12, limits, ..BusConfig::default() };
        let world = World::with(config, |b| {
            let rule = Rule { tools: vec!["a2a.send", "a2a.recv"], opinion: |_, _| fak_abi::Opinion::Defer };
            let b = b.rung(Rank(40), Arc::new(rule));
            match kind {
                1 => b.emitter(Watcher),
                2 => b.rung(Rank(50), Arc::new(Meter { limit: usize::MAX, ..Meter::default() })),
                3 => b.admitter(Rank(50), Arc::new(Hold("never said"))),
                4 | 5 => {
                    let at = Timestamp::default();
                    let (audit, log, _) = AuditLog::open(&b""[..], disk.clone(), at, options).unwrap();
                    let audit = Arc::new(audit);
                    books = Some((Arc::clone(&audit), log));
                    let b = b.audit(audit);
                    if kind == 5 { b.emitter(Watcher) } else { b }
                }
                _ => b,
            }
        });
        let mut scene = Self {
            world,
            disk,
            books,
            agents: Vec::new(),
            channels: Vec::new(),
            requests: Vec::new(),
            pending: Vec::new(),
            subscriptions: Vec::new(),
            binding: None,
            trace: Vec::new(),
        };
        for by in 0..AGENTS.len() {
            let agent = scene.attach(by);
            scene.agents.push(agent);
            scene.channels.push(Vec::new());
        }
        for by in 0..AGENTS.len() {
            scene.at_hand(by);
        }
        scene
    }

    fn attach(&self, by: usize) -> Endpoint {
        let (name, fleet) = AGENTS[by];
        let caps = if name == "mute" { [Capability::RefWiden].into() } else { caps() };
        self.world.spec(PrincipalSpec::agent(id(name)).fleet(id(fleet)).trace(id(name)).caps(caps))
    }

    fn at_hand(&mut self, by: usize) {
        self.channels[by] = KEYS.map(|at| self.agents[by].channel(&key(at))).into();
    }

    /// Shared, private, quarantined, another's, or too long. Its text is the number of the step.
    fn body(&self, by: usize, kind: usize) -> Ref {
        let text = self.trace.len().to_string();
        // Widening is an act as well; it may be refused for want of a slot.
        let shared = |by: usize, text: &str| {
            let body = private(&self.agents[by], text);
            self.agents[by].agent().widen(&body, ShareScope::Fleet).allowed().unwrap_or(body)
        };
        match kind {
            1 => private(&self.agents[by], &text),
            2 => self.world.kernel.label(&shared(by, &text), Taint::Quarantined).unwrap(),
            3 => shared((by + 1) % AGENTS.len(), &text),
            4 => shared(by, "longer than it may be"),
            _ => shared(by, &text),
        }
    }

    fn said(&mut self, what: impl std::fmt::Debug) {
        self.trace.push(format!("{what:?}"));
    }

    fn verdict(&mut self, verdict: &Verdict) {
        self.trace.push(format!("{:?} {:?} {}", verdict.kind(), verdict.refusal(), verdict.by()));
    }

    fn delivery(&mut self, by: usize, delivery: Delivery) {
        let said = match delivery {
            Delivery::Message(message) => {
                let said = format!("{} missed {}", text(&self.agents[by], message.body()), message.missed());
                if message.is_request() {
                    self.requests.push(message);
                }
                said
            }
            Delivery::Refuse(verdict) => return self.verdict(&verdict),
            other => format!("{other:?}"),
        };
        self.trace.push(said);
    }

    fn perform(&mut self, step: &Step) {
        let at = |at: usize| -> ChannelKey { key(KEYS[at]) };
        match *step {
            Step::Send { by, at: place, body, how } => {
                let (body, ttl) = (self.body(by, body), Some(Duration::from_millis(2)));
                let brief = SendOptions { ttl, ..SendOptions::default() };
                let verdict = match how {
                    0 => self.agents[by].send(&at(place), &body),
                    1 => self.channels[by][place].send(&body),
                    _ => self.channels[by][place].send_with(&body, &brief),
                };
                self.verdict(&verdict);
            }
            Step::Recv { by, at: place, how } => {
                let (agent, key) = (self.agents[by].clone(), at(place));
                let delivery = match how {
                    0 => agent.try_recv(&key),
                    1 => self.channels[by][place].try_recv(),
                    _ => match Hand::new(agent.recv(&key)).poll() {
                        std::task::Poll::Ready(delivery) => delivery,
                        std::task::Poll::Pending => Delivery::Empty,
                    },
                };
                self.delivery(by, delivery);
            }
            Step::Ask { by, at: place, body, how } => {
                let (body, options) =
                    (self.body(by, body), RequestOptions { blocking: how > 1, ..Default::default() });
                let asked = match how {
                    0 => self.agents[by].request(&at(place), &body, &options),
                    _ => self.channels[by][place].request(&body, &options),
                };
                self.verdict(&asked.verdict());
                self.pending.extend(asked.allowed());
            }
            Step::Answer { by, body } => {
                let body = self.body(by, body);
                if let Some(request) = self.requests.last() {
                    let verdict = self.agents[by].reply(request, &body);
                    self.verdict(&verdict);
                }
            }
            Step::Take => {
                if let Some(mut pending) = self.pending.pop() {
                    let delivery = pending.try_take();
                    let digest =
                        |message: Message| (message.body().digest(), message.in_reply_to().is_some());
                    match delivery {
                        Delivery::Refuse(verdict) => self.verdict(&verdict),
                        Delivery::Message(message) => self.said(digest(message)),
                        other => {
                            self.pending.push(pending);
                            self.said(other);
                        }
                    }
                }
            }
            Step::Subscribe { by } => {
                let subscribed = self.agents[by].subscribe(&at(0));
                self.verdict(&subscribed.verdict());
                self.subscriptions.extend(subscribed.allowed());
            }
            Step::Publish { by, body } => {
                let receipt = self.agents[by].publish(&at(0), &self.body(by, body));
                self.verdict(&receipt.verdict);
                self.said((receipt.fanout, receipt.skipped, receipt.dropped));
            }
            Step::Pull { most } => {
                for index in 0..self.subscriptions.len() {
                    let mut batch = Vec::new();
                    let subscription = &mut self.subscriptions[index];
                    match most {
                        0 => batch.push(subscription.try_recv()),
                        _ => drop(subscription.try_recv_batch(most, &mut batch)),
                    }
                    for delivery in batch {
                        match delivery {
                            Delivery::Refuse(verdict) => self.verdict(&verdict),
                            Delivery::Message(message) => {
                                self.said((message.body().digest(), message.missed()));
                            }
                            other => self.said(other),
                        }
                    }
                }
            }
            Step::Unsubscribe => drop(self.subscriptions.pop()),
            Step::Bind { by, at: place } => {
                let bound = self.agents[by].bind(&at(place));
                self.verdict(&bound.verdict());
                if let Some(binding) = bound.allowed() {
                    self.binding = Some(binding);
                }
            }
            Step::Unbind => self.binding = None,
            Step::Tick => self.world.clock.advance(Duration::from_millis(1)),
            Step::Detach { by } => {
                let (body, agent) = (self.body(by, 0), self.agents[by].clone());
                self.world.kernel.detach(&id(AGENTS[by].0)).unwrap();
                // Every clone of the handle is dead.
                for verdict in [self.channels[by][0].send(&body), agent.send(&at(0), &body)] {
                    self.verdict(&verdict);
                }
                let delivery = self.channels[by][0].try_recv();
                self.delivery(by, delivery);
                self.agents[by] = self.attach(by);
                self.at_hand(by);
            }
        }
    }

    /// Writes what is queued, if there is room for it.
    fn drain(&mut self, room: Option<usize>) {
        self.disk.0.borrow_mut().room = room;
        let Some((_, log)) = &mut self.books else { return };
        let drained = log.drain().map_err(|_| ());
        verify_audit(&self.disk.0.borrow().bytes[..], Some(&log.checkpoint())).unwrap();
        self.said(drained);
    }

    /// What was answered, and what the log says of it.
    fn end(mut self) -> (Vec<String>, Option<String>) {
        self.disk.0.borrow_mut().room = None;
        let stats = self.world.bus.stats();
        assert!(stats.is_conserved(), "{stats:?}");
        self.said(stats);
        // One detach ends many keys, in no order.
        let letters = self.world.bus.dead_letters();
        let mut dead: Vec<_> =
            letters.iter().map(|it| format!("{} {:?} {:?}", it.body.digest(), it.cause, it.to)).collect();
        dead.sort_unstable();
        self.said(dead);
        let log = self.books.map(|(audit, mut log)| {
            log.drain().unwrap();
            assert_eq!(audit.pending(), 0, "every slot was used or given back");
            verify_audit(&log.sink().0.borrow().bytes[..], Some(&log.checkpoint())).unwrap();
            String::from_utf8(log.into_sink().0.take().bytes).unwrap()
        });
        (self.trace, log)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn with_and_without_books_acts_come_to_the_same(steps in prop::collection::vec(step(), 1..50)) {
        let scenes: Vec<_> = (0..6)
            .map(|kind| {
                let mut scene = Scene::new(kind);
                steps.iter().for_each(|step| scene.perform(step));
                scene.end()
            })
            .collect();
        for (trace, _) in &scenes[1..] {
            prop_assert_eq!(&scenes[0].0, trace);
        }
        prop_assert!(scenes[4].1.is_some());
        prop_assert_eq!(&scenes[4].1, &scenes[5].1);
    }
    /// §3.6: so it is where the queue is small and the disk is full at times.
    #[test]
    fn a_short_queue_is_kept_the_same_with_and_without_permits(
        capacity in 1..24_usize,
        share in prop::option::of(1..12_usize),
        steps in prop::collection::vec((step(), prop::option::weighted(0.3, prop::option::of(0..2000_usize))), 1..60),
    ) {
        let number = |n| NonZeroUsize::new(n).unwrap();
        let options = AuditOptions { capacity: number(capacity), share: share.map(number) };
        let [short, long] = [4, 5].map(|kind| {
            let mut scene = Scene::with(kind, options);
            for (step, drain) in &steps {
                if let Some(room) = drain {
                    scene.drain(*room);
                }
                scene.perform(step);
            }
            scene.end()
        });
        prop_assert_eq!(short, long);
    }
}
