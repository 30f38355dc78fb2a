//! Cancel safety (§4.4): every future that waits is dropped at every point where it may: before it
//! was polled, while it waits, and after it was woken. Nothing is lost, nothing comes twice, and the
//! wait counts for nothing any more (§4.12).

use std::pin::Pin;

use fak_a2achan::{
    BusConfig, CorrectionRequest, Delivery, Endpoint, LeasedMessage, Limits, Message, RequestOptions,
    WorkerStatus,
};
use fak_abi::{Rider, ShareScope};
use futures_core::Stream;

use crate::support::*;
use crate::{correction, group};

type Texts<'a> = Pin<Box<dyn Future<Output = Vec<String>> + 'a>>;

/// Two agents, and what one of them waits at.
struct Case<S> {
    world: World,
    alpha: Endpoint,
    bravo: Endpoint,
    subject: S,
}

const AT: &str = "in_kernel:w";

fn read(by: &Endpoint, message: &Message) -> Vec<String> {
    vec![text(by, message.body())]
}

fn plain(by: &Endpoint, delivery: Delivery) -> Vec<String> {
    read(by, &message(delivery))
}

fn consumed(by: &Endpoint, delivery: Delivery<LeasedMessage>) -> Vec<String> {
    let guard = delivery.message().unwrap();
    let texts = read(by, guard.message());
    allowed(&guard.ack());
    texts
}

fn send(alpha: &Endpoint, _bravo: &Endpoint) {
    allowed(&alpha.send(&key(AT), &shared(alpha, "\"x\"")));
}

fn publish(alpha: &Endpoint, _bravo: &Endpoint) {
    assert_eq!(alpha.publish(&key(AT), &shared(alpha, "\"x\"")).fanout, 1);
}

/// Two agents in a world as usual.
fn two(config: BusConfig) -> (World, Endpoint, Endpoint) {
    let world = World::with(config, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    (world, alpha, bravo)
}

/// Waits for what `feed` brings, dropping the wait at each point; then it is there for the next.
fn at_every_point<S>(
    subject: impl Fn(&Endpoint, &Endpoint) -> S,
    wait: impl for<'a> Fn(&'a mut S, &'a Endpoint) -> Texts<'a>,
    feed: impl Fn(&Endpoint, &Endpoint),
    once: bool,
) {
    at_every_point_of(two, subject, wait, feed, once);
}

fn at_every_point_of<S>(
    agents: impl Fn(BusConfig) -> (World, Endpoint, Endpoint),
    subject: impl Fn(&Endpoint, &Endpoint) -> S,
    wait: impl for<'a> Fn(&'a mut S, &'a Endpoint) -> Texts<'a>,
    feed: impl Fn(&Endpoint, &Endpoint),
    once: bool,
) {
    for stage in 0..4 {
        let limits = Limits { waits: 1, ..Limits::default() };
        let (world, alpha, bravo) = agents(BusConfig { limits, ..BusConfig::default() });
        let subject = subject(&alpha, &bravo);
        let mut case = Case { world, alpha, bravo, subject };
        let mut dropped = Hand::new(wait(&mut case.subject, &case.bravo));
        (0..stage.min(2)).for_each(|_| dropped.pending());
        if stage == 3 {
            feed(&case.alpha, &case.bravo);
            assert_eq!(dropped.wakes(), 1);
        }
        drop(dropped);
        if stage < 3 {
            feed(&case.alpha, &case.bravo);
        }
        assert_eq!(Hand::new(wait(&mut case.subject, &case.bravo)).ready(), ["\"x\""], "stage {stage}");
        if !once {
            // Not twice; and the one wait that it may have is free again.
            let mut next = Hand::new(wait(&mut case.subject, &case.bravo));
            next.pending();
            feed(&case.alpha, &case.bravo);
            assert_eq!((next.wakes(), next.ready()), (1, vec!["\"x\"".to_owned()]));
        }
        let stats = case.world.bus.stats();
        assert!(stats.is_conserved() && stats.queued == 0, "{stats:?}");
    }
}

#[test]
fn receiving_from_a_channel() {
    // A channel whose mailbox is still to be made, and one whose is there.
    at_every_point(
        |_, bravo| bravo.channel(&key(AT)),
        |channel, by| Box::pin(async move { plain(by, channel.recv().await) }),
        send,
        false,
    );
    at_every_point(
        |alpha, bravo| {
            send(alpha, bravo);
            message(bravo.try_recv(&key(AT)));
            bravo.channel(&key(AT))
        },
        |channel, by| Box::pin(async move { plain(by, channel.recv().await) }),
        send,
        false,
    );
}

#[test]
fn receiving_by_key() {
    at_every_point(
        |_, _| (),
        |(), by| Box::pin(async move { plain(by, by.recv(&key(AT)).await) }),
        send,
        false,
    );
    at_every_point(
        |_, _| Rider::default(),
        |rider, by| Box::pin(async move { plain(by, by.recv_with(&key(AT), rider).await) }),
        send,
        false,
    );
    at_every_point(
        |_, _| (),
        |(), by| Box::pin(async move { consumed(by, by.recv_leased(&key(AT), None, None).await) }),
        send,
        false,
    );
}

#[test]
fn batches_streams_and_values() {
    let texts = |by: &Endpoint, batch: Vec<Delivery>| {
        batch.into_iter().flat_map(|delivery| plain(by, delivery)).collect::<Vec<_>>()
    };
    at_every_point(
        |_, _| (),
        |(), by| Box::pin(async move { texts(by, by.recv_batch(&key(AT), 3).await) }),
        send,
        false,
    );
    at_every_point(
        |_, bravo| bravo.messages(&key(AT), None),
        |stream, by| {
            Box::pin(async move {
                let next = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await;
                plain(by, next.unwrap())
            })
        },
        send,
        false,
    );
    at_every_point(
        |_, bravo| bravo.channel(&key(AT)).typed::<String>(),
        |channel, _| {
            Box::pin(async move {
                let got = channel.recv().await.message().unwrap();
                assert_eq!(got.message.body().scope(), ShareScope::Fleet);
                vec![format!("{:?}", got.value.unwrap())]
            })
        },
        send,
        false,
    );
}

#[test]
fn receiving_from_a_subscription() {
    let subscribe = |_: &Endpoint, bravo: &Endpoint| bravo.subscribe(&key(AT)).allowed().unwrap();
    at_every_point(
        subscribe,
        |news, by| Box::pin(async move { plain(by, news.recv().await) }),
        publish,
        false,
    );
    at_every_point(
        subscribe,
        |news, by| Box::pin(async move { plain(by, news.recv_with(&Rider::default()).await) }),
        publish,
        false,
    );
    at_every_point(
        subscribe,
        |news, by| Box::pin(async move { consumed(by, news.recv_leased(None, None).await) }),
        publish,
        false,
    );
    at_every_point(
        subscribe,
        |news, by| {
            Box::pin(async move {
                let batch = news.recv_batch(3).await;
                batch.into_iter().flat_map(|delivery| plain(by, delivery)).collect()
            })
        },
        publish,
        false,
    );
}

#[test]
fn waiting_for_an_answer() {
    let ask = |_: &Endpoint, bravo: &Endpoint| {
        bravo.request(&key(AT), &shared(bravo, "?"), &RequestOptions::default()).allowed().unwrap()
    };
    let answer = |alpha: &Endpoint, _: &Endpoint| {
        allowed(&alpha.reply(&message(alpha.try_recv(&key(AT))), &shared(alpha, "\"x\"")));
    };
    at_every_point(ask, |pending, by| Box::pin(async move { plain(by, pending.wait().await) }), answer, true);
}

/// Bravo's inbox for a group that alpha hands out to.
#[test]
fn receiving_from_a_group() {
    let agents = |config| {
        let world = group::of(config);
        let (alpha, bravo) = (group::collective(&world, "alpha"), world.agent("bravo"));
        (world, alpha, bravo)
    };
    let feed = |alpha: &Endpoint, bravo: &Endpoint| {
        let ticket =
            group::submit_to(alpha.agent(), Some(bravo.agent().principal()), &shared(alpha, "\"x\""));
        assert_eq!(group::reap(alpha.agent(), &ticket).status, fak_abi::Status::Ok);
    };
    at_every_point_of(
        agents,
        |_, _| id("team"),
        |team, by| Box::pin(async move { plain(by, by.recv_group(team).await) }),
        feed,
        false,
    );
    at_every_point_of(
        agents,
        |_, _| id("team"),
        |team, by| Box::pin(async move { consumed(by, by.recv_group_leased(team, None, None).await) }),
        feed,
        false,
    );
}

/// A correction is received once, whatever became of waits for it before (§4.9).
#[test]
fn receiving_a_correction() {
    let posted = std::cell::Cell::new(0);
    at_every_point(
        |_, _| (),
        |(), by| {
            Box::pin(async move {
                let received = by.receive_correction().await.message().unwrap();
                vec![format!("{:?}", received.correction.message)]
            })
        },
        |alpha, bravo| {
            posted.set(posted.get() + 1);
            let status = WorkerStatus { worker_id: "bravo".into(), ..correction::status(posted.get()) };
            allowed(&bravo.post_status(&status).verdict);
            let request =
                CorrectionRequest { orchestrator_id: "alpha".into(), ..correction::request(&status, "x") };
            allowed(&alpha.correct(&request).verdict);
        },
        false,
    );
}

/// A send that waits for room sends nothing when it is dropped, and the room goes to the next.
#[test]
fn waiting_for_room() {
    for stage in 0..4 {
        let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
        let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
        let at = key(AT);
        let (body, other) = (shared(&alpha, "a"), shared(&carol, "c"));
        allowed(&alpha.send(&at, &body));
        let deadline = Some(world.bus_now().after(std::time::Duration::from_secs(1)));
        let mut dropped = Hand::new(alpha.send_wait(&at, &body, deadline));
        let mut ready = Hand::new(alpha.ready(&at));
        (0..stage.min(2)).for_each(|_| dropped.pending());
        (0..stage.min(2)).for_each(|_| ready.pending());
        let mut next = Hand::new(carol.send_wait(&at, &other, None));
        next.pending();
        if stage == 3 {
            message(bravo.try_recv(&at));
            assert_eq!((dropped.wakes(), ready.wakes(), next.wakes()), (1, 0, 0));
        }
        drop(dropped);
        drop(ready);
        if stage < 3 {
            message(bravo.try_recv(&at));
        }
        assert_eq!(next.wakes(), 1, "stage {stage}");
        allowed(&next.ready());
        drop(next);
        assert_eq!(text(&bravo, message(bravo.try_recv(&at)).body()), "c");
        assert!(bravo.try_recv(&at).is_empty());
        assert!(world.bus.stats().is_conserved());
    }
}
