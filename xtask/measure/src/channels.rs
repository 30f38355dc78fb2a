//! Channels and what stands beside them without a gate: tokio's, whose messages carry a sender too.

use std::hint::black_box;
use std::sync::Arc;

use fak_a2achan::{Channel, Endpoint, RequestOptions};
use fak_abi::{Principal, PrincipalSpec, Ref, Timestamp};
use fak_adjudicate::{AuditLog, AuditOptions};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::path::Run;
use crate::world::{World, body, id, key, message};

/// What an ungated channel carries: the sender too.
struct Plain {
    from: Arc<Principal>,
    body: Ref,
}

fn plain(from: &Endpoint, body: &Ref) -> Plain {
    Plain { from: Arc::clone(from.agent().principal()), body: body.clone() }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

pub(crate) fn refused_capability(_: u64) -> Run {
    let world = World::new(None);
    let mute = world.bus.endpoint(&world.kernel.attach(PrincipalSpec::agent(id("mute"))).unwrap());
    let own = mute.agent().mint(&b"a body"[..]);
    let (alpha, at) = (world.agent("alpha"), key("in_kernel:w"));
    assert!(alpha.send(&at, &body(&alpha, 64)).is_allow());
    refused(world, mute, own)
}

pub(crate) fn refused_private(_: u64) -> Run {
    let world = World::new(None);
    let alpha = world.agent("alpha");
    let private = alpha.agent().mint(&b"a body"[..]);
    assert!(alpha.send(&key("in_kernel:w"), &body(&alpha, 64)).is_allow());
    refused(world, alpha, private)
}

fn refused(world: World, by: Endpoint, body: Ref) -> Run {
    let channel = by.channel(&key("in_kernel:w"));
    Run::each(move || {
        let _ = &world;
        assert!(!channel.send(black_box(&body)).is_allow());
    })
}

/// Two agents, and the channels they share.
struct Line {
    _world: World,
    alpha: Endpoint,
    bravo: Endpoint,
    out: Vec<Channel>,
    into: Vec<Channel>,
    body: Ref,
    at: usize,
}

impl Line {
    fn new(world: World, channels: u64) -> Self {
        let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
        let keys: Vec<_> = (0..channels).map(|n| key(&format!("in_kernel:channel-{n}"))).collect();
        let out: Vec<_> = keys.iter().map(|key| alpha.channel(key)).collect();
        let into: Vec<_> = keys.iter().map(|key| bravo.channel(key)).collect();
        let body = body(&alpha, 64);
        for (out, into) in out.iter().zip(&into) {
            assert!(out.send(&body).is_allow());
            message(into.try_recv());
        }
        Self { _world: world, alpha, bravo, out, into, body, at: 0 }
    }

    /// Another channel each time, not in the order of memory.
    fn next(&mut self) -> (&Channel, &Channel) {
        self.at = (self.at + 617) % self.out.len();
        let ends = self.out.get(self.at).zip(self.into.get(self.at));
        ends.unwrap()
    }

    fn each(mut self) -> Run {
        let body = self.body.clone();
        Run::each(move || {
            let (out, into) = self.next();
            assert!(out.send(black_box(&body)).is_allow());
            drop(black_box(message(into.try_recv())));
        })
    }
}

/// One folded send and one folded receive.
pub(crate) fn send_recv(channels: u64) -> Run {
    Line::new(World::new(None), channels).each()
}

/// What the audit's queue takes of [`audited_send_recv`]: two entries each.
pub(crate) const AUDITED: u64 = 1_000;

/// The same with the audit on, and nobody to empty its queue: what writing costs is not the act's.
pub(crate) fn audited_send_recv(channels: u64) -> Run {
    let (audit, mut log, _) =
        AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), AuditOptions::default()).unwrap();
    let mut run = Line::new(World::new(Some(Arc::new(audit))), channels).each();
    // Twice, for the two lists that its queue fills in turn.
    for _ in 0..2 {
        run.go(AUDITED);
        log.drain().unwrap();
    }
    Run::new(move |times| {
        let _ = &log;
        run.go(times);
    })
}

/// The same with the mailbox looked up by its key each time.
pub(crate) fn send_recv_by_key(channels: u64) -> Run {
    let mut line = Line::new(World::new(None), channels);
    let (alpha, bravo, body) = (line.alpha.clone(), line.bravo.clone(), line.body.clone());
    Run::each(move || {
        let key = line.next().0.key();
        assert!(alpha.send(key, black_box(&body)).is_allow());
        drop(black_box(message(bravo.try_recv(key))));
    })
}

/// The same at one key, whatever others there are.
pub(crate) fn send_recv_one_of(channels: u64) -> Run {
    let line = Line::new(World::new(None), channels);
    Run::each(move || {
        let key = line.out.first().map(Channel::key).unwrap();
        assert!(line.alpha.send(key, black_box(&line.body)).is_allow());
        drop(black_box(message(line.bravo.try_recv(key))));
    })
}

/// What one sender may leave in a mailbox.
pub(crate) const QUEUED: u64 = 768;

/// Sends alone, into a mailbox that holds them.
pub(crate) fn send(_: u64) -> Run {
    let line = Line::new(World::new(None), 1);
    Run::each(move || {
        for out in &line.out {
            assert!(out.send(black_box(&line.body)).is_allow());
        }
    })
}

/// Receives alone, from a mailbox that was filled.
pub(crate) fn recv(_: u64) -> Run {
    let line = Line::new(World::new(None), 1);
    for out in &line.out {
        (0..QUEUED).for_each(|_| assert!(out.send(&line.body).is_allow()));
    }
    Run::each(move || {
        for into in &line.into {
            drop(black_box(message(into.try_recv())));
        }
    })
}

pub(crate) fn tokio_send_recv(_: u64) -> Run {
    let world = World::new(None);
    let alpha = world.agent("alpha");
    let body = body(&alpha, 64);
    let (tx, mut rx) = mpsc::channel::<Plain>(1_024);
    Run::each(move || {
        let _ = &world;
        assert!(tx.try_send(plain(black_box(&alpha), black_box(&body))).is_ok());
        let Plain { from, body } = rx.try_recv().unwrap();
        drop(black_box((from, body)));
    })
}

/// One message there and one back, between two tasks of one thread.
pub(crate) fn ping_pong(_: u64) -> Run {
    let runtime = runtime();
    let world = World::new(None);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (ping, pong) = (key("in_kernel:ping"), key("in_kernel:pong"));
    let (out, asked) = (alpha.channel(&ping), Arc::new(bravo.channel(&ping)));
    let (answering, answered) = (Arc::new(bravo.channel(&pong)), alpha.channel(&pong));
    let (one, two) = (body(&alpha, 64), body(&bravo, 64));
    Run::new(move |times| {
        let _ = &world;
        let (asked, answering, two) = (Arc::clone(&asked), Arc::clone(&answering), two.clone());
        runtime.block_on(async {
            let other = tokio::spawn(async move {
                for _ in 0..times {
                    message(asked.recv().await);
                    assert!(answering.send(&two).is_allow());
                }
            });
            for _ in 0..times {
                assert!(out.send(&one).is_allow());
                message(answered.recv().await);
            }
            other.await.unwrap();
        });
    })
}

pub(crate) fn tokio_ping_pong(_: u64) -> Run {
    let runtime = runtime();
    let world = World::new(None);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (one, two) = (body(&alpha, 64), body(&bravo, 64));
    Run::new(move |times| {
        let _ = &world;
        let (bravo, two) = (bravo.clone(), two.clone());
        runtime.block_on(async {
            let (ping, mut pinged) = mpsc::channel::<Plain>(1_024);
            let (pong, mut ponged) = mpsc::channel::<Plain>(1_024);
            let other = tokio::spawn(async move {
                for _ in 0..times {
                    take(pinged.recv().await);
                    assert!(pong.try_send(plain(&bravo, &two)).is_ok());
                }
            });
            for _ in 0..times {
                assert!(ping.try_send(plain(&alpha, &one)).is_ok());
                take(ponged.recv().await);
            }
            other.await.unwrap();
        });
    })
}

fn take(got: Option<Plain>) {
    let Plain { from, body } = got.unwrap();
    drop(black_box((from, body)));
}

/// One publication of 1 KiB, and every subscriber takes its copy.
pub(crate) fn publish(subscribers: u64) -> Run {
    let world = World::new(None);
    let alpha = world.agent("alpha");
    let body = body(&alpha, 1_024);
    let topic = key("in_kernel:news");
    let mut inboxes: Vec<_> = (0..subscribers)
        .map(|n| world.agent(&format!("reader-{n}")).subscribe(&topic).allowed().unwrap())
        .collect();
    Run::each(move || {
        let _ = &world;
        assert_eq!(alpha.publish(&topic, black_box(&body)).fanout, subscribers);
        for inbox in &mut inboxes {
            drop(black_box(message(inbox.try_recv())));
        }
    })
}

pub(crate) fn tokio_publish(subscribers: u64) -> Run {
    let world = World::new(None);
    let alpha = world.agent("alpha");
    let body = body(&alpha, 1_024);
    let (tx, _) = broadcast::channel::<(Arc<Principal>, Ref)>(1_024);
    let mut inboxes: Vec<_> = (0..subscribers).map(|_| tx.subscribe()).collect();
    Run::each(move || {
        let _ = &world;
        let Plain { from, body } = plain(&alpha, black_box(&body));
        assert!(tx.send((from, body)).is_ok());
        for inbox in &mut inboxes {
            drop(black_box(inbox.try_recv().unwrap()));
        }
    })
}

/// One question and its answer, between two tasks of one thread.
pub(crate) fn request(_: u64) -> Run {
    let runtime = runtime();
    let world = World::new(None);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let at = key("in_kernel:desk");
    let (asker, desk) = (alpha.channel(&at), Arc::new(bravo.channel(&at)));
    let (question, answer) = (body(&alpha, 64), body(&bravo, 64));
    Run::new(move |times| {
        let _ = &world;
        let (desk, answer, bravo) = (Arc::clone(&desk), answer.clone(), bravo.clone());
        runtime.block_on(async {
            let other = tokio::spawn(async move {
                for _ in 0..times {
                    let request = message(desk.recv().await);
                    assert!(bravo.reply(&request, &answer).is_allow());
                }
            });
            let options = RequestOptions::default();
            for _ in 0..times {
                let mut pending = asker.request(&question, &options).allowed().unwrap();
                message(pending.wait().await);
            }
            other.await.unwrap();
        });
    })
}

pub(crate) fn tokio_request(_: u64) -> Run {
    let runtime = runtime();
    let world = World::new(None);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (question, answer) = (body(&alpha, 64), body(&bravo, 64));
    Run::new(move |times| {
        let _ = &world;
        let (bravo, answer) = (bravo.clone(), answer.clone());
        runtime.block_on(async {
            let (tx, mut rx) = mpsc::channel::<(Plain, oneshot::Sender<Plain>)>(1_024);
            let other = tokio::spawn(async move {
                for _ in 0..times {
                    let (question, back) = rx.recv().await.unwrap();
                    assert!(back.send(plain(&bravo, &answer)).is_ok());
                    drop(black_box(question));
                }
            });
            for _ in 0..times {
                let (back, answer) = oneshot::channel();
                assert!(tx.try_send((plain(&alpha, &question), back)).is_ok());
                take(answer.await.ok());
            }
            other.await.unwrap();
        });
    })
}
