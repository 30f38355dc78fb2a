//! The same exchanges over floors as over the channels and their rivals: two tasks, or five.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fak_a2achan::Endpoint;
use fak_abi::Ref;

use super::{Floor, Question, Walk};
use crate::{SENDERS, World, body, key};

pub(crate) async fn ping_pong(
    walk: Walk,
    alpha: Endpoint,
    bravo: Endpoint,
    bodies: [Ref; 2],
    n: u64,
) -> Duration {
    let (ping, pong) =
        (Floor::new(&walk, &key("in_kernel:ping"), 1_024), Floor::new(&walk, &key("in_kernel:pong"), 1_024));
    let [one, two] = bodies;
    let (pinged, answers) = (Arc::clone(&ping), Arc::clone(&pong));
    let other = tokio::spawn(async move {
        for _ in 0..n {
            drop(black_box(pinged.recv(&bravo).await));
            assert!(answers.send(&bravo, &two));
        }
    });
    let this = tokio::spawn(async move {
        let begun = Instant::now();
        for _ in 0..n {
            assert!(ping.send(&alpha, &one));
            drop(black_box(pong.recv(&alpha).await));
        }
        begun.elapsed()
    });
    other.await.unwrap();
    this.await.unwrap()
}

pub(crate) async fn fan_in(world: &World, round: &mut u32, capacity: usize, iters: u64) -> Duration {
    *round += 1;
    let senders: Vec<_> = (0..SENDERS).map(|n| world.agent(&format!("sender-{round}-{n}"))).collect();
    let sink = world.agent(&format!("sink-{round}"));
    let each = iters.div_ceil(SENDERS);
    let least = Floor::new(&world.walk(), &key("in_kernel:sink"), capacity);
    let begun = Instant::now();
    let running: Vec<_> = senders
        .iter()
        .map(|sender| {
            let (body, out, sender) = (body(sender, 64), Arc::clone(&least), sender.clone());
            tokio::spawn(async move {
                for _ in 0..each {
                    out.send_wait(&sender, &body).await;
                }
            })
        })
        .collect();
    let by = sink.clone();
    let receiving = tokio::spawn(async move {
        for _ in 0..each * SENDERS {
            drop(black_box(least.recv(&by).await));
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

pub(crate) async fn requests(walk: Walk, alpha: Endpoint, bravo: Endpoint, iters: u64) -> Duration {
    let desk = Floor::<Question>::new(&walk, &key("in_kernel:desk"), 1_024);
    let (question, answer) = (body(&alpha, 64), body(&bravo, 64));
    let asked = Arc::clone(&desk);
    let other = tokio::spawn(async move {
        for _ in 0..iters {
            assert!(asked.recv(&bravo).await.reply(&bravo, &answer));
        }
    });
    let this = tokio::spawn(async move {
        let begun = Instant::now();
        for _ in 0..iters {
            drop(black_box(desk.ask(&alpha, &question).await));
        }
        begun.elapsed()
    });
    other.await.unwrap();
    this.await.unwrap()
}
