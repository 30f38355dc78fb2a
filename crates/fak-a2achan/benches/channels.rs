//! Rows 4 to 11: adjudicated channels against ungated ones of the same shape, and against floors (`floor`).
//!
//! `cargo bench -p fak-a2achan --bench channels`

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a benchmark")]

mod floor;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fak_a2achan::{Bus, BusConfig, Channel, Delivery, Endpoint, Message, RequestOptions};
use fak_abi::{
    Adjudicator, Capability, ChannelKey, Desk, Id, Opinion, Principal, PrincipalSpec, Ref, RungName,
    ShareScope, ToolCall, ToolScope,
};
use fak_adjudicate::{Kernel, Rank};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{broadcast, mpsc, oneshot};

use self::floor::{Floor, Listed, Refusing, Topic, Walk};

/// Looks at the call the way a real rung does: principal, body, address.
struct Looks;

impl Adjudicator for Looks {
    fn name(&self) -> RungName {
        "looks"
    }
    fn tools(&self) -> ToolScope {
        ToolScope::Every
    }
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let private = call.body().is_some_and(Ref::is_empty);
        if private || call.principal().id().is_empty() { Opinion::Indeterminate } else { Opinion::Allow }
    }
}

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn key(text: &str) -> ChannelKey {
    text.parse().unwrap()
}

/// A kernel with a bus; every act on it folds two rungs.
struct World {
    kernel: Arc<Kernel>,
    bus: Bus,
}

impl World {
    fn new(capacity: usize) -> Self {
        let bus = Bus::new(BusConfig { capacity, ..BusConfig::default() }).unwrap();
        let builder = Kernel::builder().tools([id("work")]).driver(bus.driver());
        Self { kernel: builder.rung(Rank(0), Arc::new(Looks)).build().unwrap(), bus }
    }

    /// The same rungs for a floor.
    fn walk(&self) -> Walk {
        Walk::new(&self.kernel, || Arc::new(Looks))
    }

    fn agent(&self, name: &str) -> Endpoint {
        let caps = [Capability::A2aSend, Capability::A2aRecv, Capability::RefWiden];
        let spec = PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(caps);
        self.bus.endpoint(&self.kernel.attach(spec).unwrap())
    }
}

fn body(by: &Endpoint, len: usize) -> Ref {
    by.agent().widen(&by.agent().mint(vec![b'x'; len]), ShareScope::Fleet).allowed().unwrap()
}

/// What an ungated channel carries: the sender too.
struct Plain {
    from: Arc<Principal>,
    body: Ref,
}

fn plain(from: &Endpoint, body: &Ref) -> Plain {
    Plain { from: Arc::clone(from.agent().principal()), body: body.clone() }
}

fn row4(c: &mut Criterion) {
    let mut group = c.benchmark_group("row4_refusals");
    let kernel = Kernel::builder().tools([id("work")]).rung(Rank(0), Arc::new(Looks)).build().unwrap();
    let plain = kernel.attach(PrincipalSpec::agent(id("alpha"))).unwrap();
    let token = fak_abi::Gate::tool(&*kernel, &id("work"));
    let text = plain.mint(&b"a body"[..]);
    group.bench_function("decide_1", |b| {
        b.iter(|| plain.decide(black_box(&ToolCall::new(&plain, &token).args(&text))).is_allow());
    });
    let world = World::new(1_024);
    let alpha = world.agent("alpha");
    let mute = world.bus.endpoint(&world.kernel.attach(PrincipalSpec::agent(id("mute"))).unwrap());
    let private = alpha.agent().mint(&b"a body"[..]);
    let (mute, alpha) = (mute.channel(&key("in_kernel:w")), alpha.channel(&key("in_kernel:w")));
    assert!(alpha.send(&body(alpha.endpoint(), 64)).is_allow());
    let own = mute.endpoint().agent().mint(&b"a body"[..]);
    group.bench_function("no_capability", |b| b.iter(|| mute.send(black_box(&own)).is_allow()));
    group.bench_function("private_body", |b| b.iter(|| alpha.send(black_box(&private)).is_allow()));
    let least = Refusing::new(&world.kernel, Arc::new(Looks), &key("in_kernel:w"));
    for (name, by, body) in [("floor_no_capability", &mute, &own), ("floor_private_body", &alpha, &private)] {
        let by = by.endpoint();
        assert!(!least.send(by, body).is_allow());
        group.bench_function(name, |b| b.iter(|| least.send(by, black_box(body)).is_allow()));
    }
    group.finish();
}

fn row5(c: &mut Criterion) {
    let mut group = c.benchmark_group("row5_send_try_recv");
    let world = World::new(1_024);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let body = body(&alpha, 64);
    let (out, into) = (alpha.channel(&key("in_kernel:w")), bravo.channel(&key("in_kernel:w")));
    assert!(out.send(&body).is_allow() && into.try_recv().message().is_some());
    group.bench_function("gated", |b| {
        b.iter(|| {
            let sent = out.send(black_box(&body)).is_allow();
            (sent, matches!(into.try_recv(), Delivery::Message(_)))
        });
    });
    let (tx, mut rx) = mpsc::channel::<Plain>(1_024);
    group.bench_function("tokio", |b| {
        b.iter(|| {
            let sent = tx.try_send(plain(black_box(&alpha), black_box(&body))).is_ok();
            let got = rx.try_recv().map(|got| (got.from, got.body));
            (sent, got.is_ok())
        });
    });
    let least = Floor::new(&world.walk(), &key("in_kernel:w"), 1_024);
    group.bench_function("floor", |b| {
        b.iter(|| {
            let sent = least.send(black_box(&alpha), black_box(&body));
            let got = least.try_recv(&bravo).map(|got| (got.from, got.body));
            (sent, got.is_some())
        });
    });
    group.bench_function("gated_send_alone", |b| {
        b.iter_custom(|iters| {
            let mut spent = Duration::ZERO;
            for chunk in chunks(iters, 512) {
                let begun = Instant::now();
                (0..chunk).for_each(|_| assert!(out.send(black_box(&body)).is_allow()));
                spent += begun.elapsed();
                while into.try_recv().message().is_some() {}
            }
            spent
        });
    });
    group.finish();
}

fn chunks(total: u64, size: u64) -> impl Iterator<Item = u64> {
    (0..total.div_ceil(size)).map(move |n| size.min(total - n * size))
}

fn runtimes() -> [(&'static str, Runtime); 2] {
    let workers = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    [("current", Builder::new_current_thread().build().unwrap()), ("workers", workers)]
}

fn message(delivery: Delivery) -> Message {
    match delivery {
        Delivery::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

/// Two agents, one channel each way.
struct Pair {
    there: [Arc<Channel>; 2],
    back: [Arc<Channel>; 2],
    bodies: [Ref; 2],
}

fn pair(world: &World) -> Pair {
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (ping, pong) = (key("in_kernel:ping"), key("in_kernel:pong"));
    let bodies = [body(&alpha, 64), body(&bravo, 64)];
    let made = Pair {
        there: [Arc::new(alpha.channel(&ping)), Arc::new(bravo.channel(&ping))],
        back: [Arc::new(bravo.channel(&pong)), Arc::new(alpha.channel(&pong))],
        bodies,
    };
    for ([from, to], body) in [&made.there, &made.back].into_iter().zip(&made.bodies) {
        assert!(from.send(body).is_allow());
        message(to.try_recv());
    }
    made
}

async fn gated_ping_pong(pair: &Pair, iters: u64) -> Duration {
    let (answers, questions, body) =
        (Arc::clone(&pair.back[0]), Arc::clone(&pair.there[1]), pair.bodies[1].clone());
    let other = tokio::spawn(async move {
        for _ in 0..iters {
            message(questions.recv().await);
            assert!(answers.send(&body).is_allow());
        }
    });
    let (questions, answers, body) =
        (Arc::clone(&pair.there[0]), Arc::clone(&pair.back[1]), pair.bodies[0].clone());
    let this = tokio::spawn(async move {
        let begun = Instant::now();
        for _ in 0..iters {
            assert!(questions.send(&body).is_allow());
            message(answers.recv().await);
        }
        begun.elapsed()
    });
    other.await.unwrap();
    this.await.unwrap()
}

async fn tokio_ping_pong(alpha: Endpoint, bravo: Endpoint, bodies: [Ref; 2], iters: u64) -> Duration {
    let (ping, mut pinged) = mpsc::channel::<Plain>(1_024);
    let (pong, mut ponged) = mpsc::channel::<Plain>(1_024);
    let [one, two] = bodies;
    let other = tokio::spawn(async move {
        for _ in 0..iters {
            drop(black_box(pinged.recv().await));
            assert!(pong.try_send(plain(&bravo, &two)).is_ok());
        }
    });
    let this = tokio::spawn(async move {
        let begun = Instant::now();
        for _ in 0..iters {
            assert!(ping.try_send(plain(&alpha, &one)).is_ok());
            drop(black_box(ponged.recv().await));
        }
        begun.elapsed()
    });
    other.await.unwrap();
    this.await.unwrap()
}

fn row6(c: &mut Criterion) {
    for (name, runtime) in runtimes() {
        let mut group = c.benchmark_group(format!("row6_ping_pong_{name}"));
        let world = World::new(1_024);
        let pair = pair(&world);
        group.bench_function("gated", |b| b.iter_custom(|n| runtime.block_on(gated_ping_pong(&pair, n))));
        let ends = || (pair.there[0].endpoint().clone(), pair.back[0].endpoint().clone());
        group.bench_function("tokio", |b| {
            b.iter_custom(|n| {
                let (alpha, bravo) = ends();
                runtime.block_on(tokio_ping_pong(alpha, bravo, pair.bodies.clone(), n))
            });
        });
        group.bench_function("floor", |b| {
            b.iter_custom(|n| {
                let (alpha, bravo) = ends();
                runtime.block_on(floor::ping_pong(world.walk(), alpha, bravo, pair.bodies.clone(), n))
            });
        });
        group.finish();
    }
}

const SENDERS: u64 = 4;

async fn gated_fan_in(world: &World, round: &mut u32, iters: u64) -> Duration {
    *round += 1;
    let at = key("in_kernel:sink");
    let senders: Vec<_> = (0..SENDERS).map(|n| world.agent(&format!("sender-{round}-{n}"))).collect();
    let sink = world.agent(&format!("sink-{round}"));
    let each = iters.div_ceil(SENDERS);
    let into = sink.channel(&at);
    let begun = Instant::now();
    let running: Vec<_> = senders
        .iter()
        .map(|sender| {
            let (body, out) = (body(sender, 64), sender.channel(&at));
            tokio::spawn(async move {
                for _ in 0..each {
                    assert!(out.send_wait(&body, None).await.is_allow());
                }
            })
        })
        .collect();
    let receiving = tokio::spawn(async move {
        for _ in 0..each * SENDERS {
            message(into.recv().await);
        }
    });
    receiving.await.unwrap();
    let spent = begun.elapsed();
    for sender in running {
        sender.await.unwrap();
    }
    for agent in senders.iter().chain([&sink]) {
        world.kernel.detach(agent.agent().principal().id()).unwrap();
    }
    spent
}

async fn tokio_fan_in(world: &World, round: &mut u32, capacity: usize, iters: u64) -> Duration {
    *round += 1;
    let (tx, mut rx) = mpsc::channel::<Plain>(capacity);
    let senders: Vec<_> = (0..SENDERS).map(|n| world.agent(&format!("sender-{round}-{n}"))).collect();
    let each = iters.div_ceil(SENDERS);
    let begun = Instant::now();
    let running: Vec<_> = senders
        .iter()
        .map(|sender| {
            let (body, out, sender) = (body(sender, 64), tx.clone(), sender.clone());
            tokio::spawn(async move {
                for _ in 0..each {
                    assert!(out.send(plain(&sender, &body)).await.is_ok());
                }
            })
        })
        .collect();
    let receiving = tokio::spawn(async move {
        for _ in 0..each * SENDERS {
            drop(black_box(rx.recv().await));
        }
    });
    receiving.await.unwrap();
    let spent = begun.elapsed();
    for sender in running {
        sender.await.unwrap();
    }
    for agent in &senders {
        world.kernel.detach(agent.agent().principal().id()).unwrap();
    }
    spent
}

fn row7(c: &mut Criterion) {
    for capacity in [1_024, 64] {
        let mut group = c.benchmark_group(format!("row7_fan_in_{capacity}"));
        let [_, (_, runtime)] = runtimes();
        let world = World::new(capacity);
        let mut round = 0;
        group.bench_function("gated", |b| {
            b.iter_custom(|n| runtime.block_on(gated_fan_in(&world, &mut round, n)));
        });
        group.bench_function("tokio", |b| {
            b.iter_custom(|n| runtime.block_on(tokio_fan_in(&world, &mut round, capacity, n)));
        });
        group.bench_function("floor", |b| {
            b.iter_custom(|n| runtime.block_on(floor::fan_in(&world, &mut round, capacity, n)));
        });
        group.bench_function("line", |b| b.iter_custom(floor::hand_over));
        group.finish();
    }
}

fn row8(c: &mut Criterion) {
    let mut group = c.benchmark_group("row8_by_key");
    let world = World::new(1_024);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let body = body(&alpha, 64);
    let keys: Vec<_> = (0..1_000).map(|n| key(&format!("in_kernel:channel-{n}"))).collect();
    let cached: Vec<_> = keys.iter().map(|key| alpha.channel(key)).collect();
    let drain = || {
        for key in &keys {
            while bravo.try_recv(key).message().is_some() {}
        }
    };
    let rounds = |iters: u64, send: &mut dyn FnMut(usize) -> bool| {
        let mut spent = Duration::ZERO;
        let mut at = 0;
        for chunk in chunks(iters, 500_000) {
            let begun = Instant::now();
            for _ in 0..chunk {
                assert!(send(at));
                // Not in the order of memory.
                at = (at + 617) % 1_000;
            }
            spent += begun.elapsed();
            drain();
        }
        spent
    };
    cached.iter().for_each(|channel| assert!(channel.send(&body).is_allow()));
    drain();
    group.bench_function("cached", |b| {
        b.iter_custom(|n| rounds(n, &mut |at| cached[at].send(black_box(&body)).is_allow()));
    });
    group.bench_function("by_key", |b| {
        b.iter_custom(|n| rounds(n, &mut |at| alpha.send(&keys[at], black_box(&body)).is_allow()));
    });
    let listed = Listed::new(keys.iter().map(|key| alpha.channel(key)));
    keys.iter().for_each(|key| assert!(listed.send(key, &body)));
    drain();
    group.bench_function("floor", |b| {
        b.iter_custom(|n| rounds(n, &mut |at| listed.send(&keys[at], black_box(&body))));
    });
    group.finish();
}

fn row9(c: &mut Criterion) {
    for (name, runtime) in runtimes() {
        let mut group = c.benchmark_group(format!("row9_idle_receivers_{name}"));
        let world = World::new(1_024);
        let pair = pair(&world);
        group.bench_function(BenchmarkId::new("idle", 0), |b| {
            b.iter_custom(|n| runtime.block_on(gated_ping_pong(&pair, n)));
        });
        let idlers: Vec<_> = (0..1_000)
            .map(|n| {
                let idle = world.agent(&format!("idle-{n}"));
                runtime.spawn(async move { idle.recv(&key(&format!("in_kernel:idle-{n}"))).await })
            })
            .collect();
        group.bench_function(BenchmarkId::new("idle", 1_000), |b| {
            b.iter_custom(|n| runtime.block_on(gated_ping_pong(&pair, n)));
        });
        group.finish();
        idlers.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

fn row10(c: &mut Criterion) {
    let world = World::new(1_024);
    let alpha = world.agent("alpha");
    let body = body(&alpha, 1_024);
    let topic = key("in_kernel:news");
    let mut subscriptions: Vec<_> =
        (0..100).map(|n| world.agent(&format!("reader-{n}")).subscribe(&topic).allowed().unwrap()).collect();
    let (tx, _) = broadcast::channel::<(Arc<Principal>, Ref)>(1_024);
    let mut receivers: Vec<_> = (0..100).map(|_| tx.subscribe()).collect();
    let least = Topic::new(&world.walk(), &topic, 100);
    let reader = world.agent("reader");
    let (mut batch, mut drained) = (Vec::with_capacity(64), Vec::with_capacity(64));
    // Each subscriber drains what came since it last did: one copy, or a burst of sixteen.
    for (name, burst) in [("row10_publish", 1_u64), ("row10_publish_burst", 16)] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(100 * burst));
        group.bench_function("gated", |b| {
            b.iter(|| {
                for _ in 0..burst {
                    assert_eq!(alpha.publish(&topic, black_box(&body)).fanout, 100);
                }
                for subscription in &mut subscriptions {
                    assert_eq!(subscription.try_recv_batch(64, &mut batch) as u64, burst);
                    black_box(&batch).iter().for_each(|got| assert!(matches!(got, Delivery::Message(_))));
                    batch.clear();
                }
            });
        });
        group.bench_function("tokio", |b| {
            b.iter(|| {
                for _ in 0..burst {
                    let Plain { from, body } = plain(&alpha, black_box(&body));
                    assert!(tx.send((from, body)).is_ok());
                }
                for receiver in &mut receivers {
                    for _ in 0..burst {
                        drop(black_box(receiver.try_recv().unwrap()));
                    }
                }
            });
        });
        group.bench_function("gated_one_by_one", |b| {
            b.iter(|| {
                for _ in 0..burst {
                    assert_eq!(alpha.publish(&topic, black_box(&body)).fanout, 100);
                }
                for subscription in &mut subscriptions {
                    for _ in 0..burst {
                        drop(black_box(message(subscription.try_recv())));
                    }
                }
            });
        });
        // The least that keeps a copy for each, folded once a publication and once a drain, and not at all.
        for (name, by) in [("floor", Some(&reader)), ("floor_ungated", None)] {
            group.bench_function(name, |b| {
                b.iter(|| {
                    (0..burst).for_each(|_| assert!(least.publish(&alpha, black_box(&body))));
                    for inbox in 0..100 {
                        least.drain(inbox, by, &mut drained);
                        assert_eq!(black_box(&drained).len() as u64, burst);
                        drained.clear();
                    }
                });
            });
        }
        group.finish();
    }
}

async fn gated_requests(world: &World, round: &mut u32, iters: u64) -> Duration {
    *round += 1;
    let at = key("in_kernel:desk");
    let (alpha, bravo) = (world.agent(&format!("asker-{round}")), world.agent(&format!("desk-{round}")));
    let (question, answer) = (body(&alpha, 64), body(&bravo, 64));
    let other = {
        let (bravo, desk) = (bravo.clone(), bravo.channel(&at));
        tokio::spawn(async move {
            for _ in 0..iters {
                let request = message(desk.recv().await);
                assert!(bravo.reply(&request, &answer).is_allow());
            }
        })
    };
    let asker = alpha.channel(&at);
    let this = tokio::spawn(async move {
        let options = RequestOptions::default();
        let begun = Instant::now();
        for _ in 0..iters {
            let mut pending = asker.request(&question, &options).allowed().unwrap();
            message(pending.wait().await);
        }
        begun.elapsed()
    });
    other.await.unwrap();
    let spent = this.await.unwrap();
    for agent in [alpha, bravo] {
        world.kernel.detach(agent.agent().principal().id()).unwrap();
    }
    spent
}

async fn tokio_requests(alpha: &Endpoint, iters: u64) -> Duration {
    let (tx, mut rx) = mpsc::channel::<(Plain, oneshot::Sender<Plain>)>(1_024);
    let (answer, bravo) = (body(alpha, 64), alpha.clone());
    let other = tokio::spawn(async move {
        for _ in 0..iters {
            let (_request, back) = rx.recv().await.unwrap();
            assert!(back.send(plain(&bravo, &answer)).is_ok());
        }
    });
    let (question, alpha) = (body(alpha, 64), alpha.clone());
    let this = tokio::spawn(async move {
        let begun = Instant::now();
        for _ in 0..iters {
            let (back, answer) = oneshot::channel();
            assert!(tx.try_send((plain(&alpha, &question), back)).is_ok());
            drop(black_box(answer.await.unwrap()));
        }
        begun.elapsed()
    });
    other.await.unwrap();
    this.await.unwrap()
}

fn row11(c: &mut Criterion) {
    for (name, runtime) in runtimes() {
        let mut group = c.benchmark_group(format!("row11_request_reply_{name}"));
        let world = World::new(1_024);
        let mut round = 0;
        group.bench_function("gated", |b| {
            b.iter_custom(|n| runtime.block_on(gated_requests(&world, &mut round, n)));
        });
        let alpha = world.agent("alpha");
        group.bench_function("tokio", |b| b.iter_custom(|n| runtime.block_on(tokio_requests(&alpha, n))));
        let bravo = world.agent("bravo");
        group.bench_function("floor", |b| {
            b.iter_custom(|n| {
                runtime.block_on(floor::requests(world.walk(), alpha.clone(), bravo.clone(), n))
            });
        });
        group.finish();
    }
}

criterion_group!(benches, row4, row5, row6, row7, row8, row9, row10, row11);
criterion_main!(benches);
