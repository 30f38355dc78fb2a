//! `memory THING` prints how many bytes of memory one of a thing takes: what is alive after many were made, over their number.
//! `memory journal ENTRIES FILE` writes a journal; `memory verify FILE` verifies one and prints the peak of what was allocated
//! and the peak of what the process had resident.
//!
//! Apart from `path`, because counting allocations costs instructions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement that does not work stops"
)]

use std::fs::{self, File};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use allocation_counter::measure;
use fak_abi::{CapSet, PrincipalSpec};
use fak_adjudicate::Kernel;
use fak_comm::{LaneArbiter, LaneRequest, Taxonomy};
use fak_sharedtask::{VerifyOptions, verify_journal};
use measure::{Shelf, World, body, id, journal, key};

/// How many of a thing are made.
const MANY: u64 = 10_000;
/// How many messages of one sender a mailbox takes.
const DEEP: u64 = 500;

type Weigh = fn() -> f64;

const THINGS: &[(&str, Weigh)] = &[
    ("agent", agent),
    ("mailbox", mailbox),
    ("channel", channel),
    ("message", message),
    ("body", own_body),
    ("subscriber", subscriber),
    ("copy", copy),
    ("waiter", waiter),
    ("leased-message", leased_message),
    ("lane-lease", lane_lease),
    ("note", || notes(MANY) / MANY as f64),
    ("2000-notes", || notes(2_000)),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["journal", entries, file] => fs::write(file, journal(entries.parse().unwrap())).unwrap(),
        ["verify", file] => verify(file),
        [thing] => match THINGS.iter().find(|(name, _)| name == thing) {
            Some((_, weigh)) => println!("{:.1}", weigh()),
            None => panic!("nothing to weigh is called \"{thing}\""),
        },
        _ => panic!("usage: memory THING | memory journal ENTRIES FILE | memory verify FILE"),
    }
}

/// What is alive after `make`, for each of `count`; what it returns lives until it was counted.
fn each<T>(count: u64, make: impl FnOnce() -> T) -> f64 {
    let mut made = None;
    let alive = measure(|| made = Some(make())).bytes_current;
    drop(made);
    alive as f64 / count as f64
}

/// A principal with a few capabilities, its handle and its endpoint.
fn agent() -> f64 {
    let world = World::new(None);
    each(MANY, || (0..MANY).map(|n| world.agent(&format!("agent-{n:06}"))).collect::<Vec<_>>())
}

/// A mailbox that was used and is empty; its handles are gone.
fn mailbox() -> f64 {
    let world = World::new(None);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let body = body(&alpha, 64);
    each(MANY, || {
        for n in 0..MANY {
            let key = key(&format!("in_kernel:mailbox-{n:06}"));
            assert!(alpha.send(&key, &body).is_allow());
            assert!(bravo.try_recv(&key).message().is_some());
        }
    })
}

/// A channel handle that was used, beyond the mailbox it is of.
fn channel() -> f64 {
    let world = World::new(None);
    let alpha = world.agent("alpha");
    let body = body(&alpha, 64);
    let key = key("in_kernel:one");
    assert!(alpha.send(&key, &body).is_allow());
    each(DEEP, || {
        let used = |_| {
            let channel = alpha.channel(&key);
            assert!(channel.send(&body).is_allow());
            assert!(channel.try_recv().message().is_some());
            channel
        };
        (0..DEEP).map(used).collect::<Vec<_>>()
    })
}

/// Mailboxes that are there, empty.
fn mailboxes(alpha: &fak_a2achan::Endpoint, bravo: &fak_a2achan::Endpoint) -> Vec<fak_abi::ChannelKey> {
    let body = body(alpha, 64);
    let keys: Vec<_> = (0..MANY / DEEP).map(|n| key(&format!("in_kernel:mailbox-{n:06}"))).collect();
    for key in &keys {
        assert!(alpha.send(key, &body).is_allow());
        assert!(bravo.try_recv(key).message().is_some());
    }
    keys
}

/// A queued message whose body others have as well.
fn message() -> f64 {
    let world = World::new(None);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (keys, body) = (mailboxes(&alpha, &bravo), body(&alpha, 64));
    each(MANY, || {
        for key in &keys {
            (0..DEEP).for_each(|_| assert!(alpha.send(key, &body).is_allow()));
        }
    })
}

/// A body of 64 bytes, as it is minted.
fn own_body() -> f64 {
    let world = World::new(None);
    let alpha = world.agent("alpha");
    each(MANY, || (0..MANY).map(|_| alpha.agent().mint(vec![b'x'; 64])).collect::<Vec<_>>())
}

/// A subscription to a topic of many, idle.
fn subscriber() -> f64 {
    let world = World::new(None);
    let topic = key("in_kernel:news");
    let agents: Vec<_> = (0..MANY).map(|n| world.agent(&format!("agent-{n:06}"))).collect();
    each(MANY, || agents.iter().map(|agent| agent.subscribe(&topic).allowed().unwrap()).collect::<Vec<_>>())
}

/// A published copy that waits in an inbox.
fn copy() -> f64 {
    let world = World::new(None);
    let (topic, alpha) = (key("in_kernel:news"), world.agent("alpha"));
    let body = body(&alpha, 64);
    let _inboxes: Vec<_> = (0..MANY / DEEP)
        .map(|n| world.agent(&format!("agent-{n:06}")).subscribe(&topic).allowed().unwrap())
        .collect();
    each(MANY, || (0..DEEP).for_each(|_| assert_eq!(alpha.publish(&topic, &body).fanout, MANY / DEEP)))
}

/// A receive that waits, in a box, at a mailbox of its own.
fn waiter() -> f64 {
    let world = World::new(None);
    let bravo = world.agent("bravo");
    const FEW: u64 = 4_000;
    let channels: Vec<_> =
        (0..FEW).map(|n| bravo.channel(&key(&format!("in_kernel:mailbox-{n:06}")))).collect();
    channels.iter().for_each(|channel| assert!(channel.try_recv().message().is_none()));
    each(FEW, || {
        let wait = |channel| {
            let mut waits: std::pin::Pin<Box<dyn Future<Output = _> + '_>> =
                Box::pin(fak_a2achan::Channel::recv(channel));
            assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            waits
        };
        channels.iter().map(wait).collect::<Vec<_>>()
    })
}

/// What leasing a queued message adds to it, its guard included.
fn leased_message() -> f64 {
    let world = World::new(None);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (keys, body) = (mailboxes(&alpha, &bravo), body(&alpha, 64));
    for key in &keys {
        (0..DEEP).for_each(|_| assert!(alpha.send(key, &body).is_allow()));
    }
    each(MANY, || {
        let lease = |key| bravo.try_recv_leased(key, None).message().unwrap();
        (0..MANY).zip(keys.iter().cycle()).map(|(_, key)| lease(key)).collect::<Vec<_>>()
    })
}

/// A lease on a path of a lane of its own, and its token.
fn lane_lease() -> f64 {
    const FEW: u64 = 1_000;
    let names: Vec<String> = (0..FEW).map(|n| format!("lane-{n:04}")).collect();
    let mut text = format!("[lanes]\nconcurrent = {names:?}\n[lanes.trees]\n");
    for name in &names {
        text.push_str(&format!("{name} = [\"src/{name}/**\"]\n"));
    }
    let arbiter = Arc::new(LaneArbiter::new(text.parse::<Taxonomy>().unwrap()).max_leases(FEW as usize));
    let kernel = Kernel::builder().driver(arbiter.clone()).build().unwrap();
    let agent = kernel.attach(PrincipalSpec::agent(id("alpha")).fleet(id("f1")).caps(CapSet::ALL)).unwrap();
    each(FEW, || {
        let lease = |name: &String| {
            let leased = arbiter.lease(&agent, LaneRequest::Lane(name), Duration::from_secs(60));
            leased.allowed().unwrap()
        };
        names.iter().map(lease).collect::<Vec<_>>()
    })
}

/// What so many appended notes of some 300 bytes keep alive, with their revisions and events.
fn notes(count: u64) -> f64 {
    let shelf = Shelf::new(0);
    each(1, || shelf.patches(count).iter().for_each(|patch| shelf.apply(patch)))
}

fn verify(file: &str) {
    let allocated = measure(|| {
        verify_journal(File::open(file).unwrap(), &VerifyOptions::default()).unwrap();
    });
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes =
        resident.and_then(|text| text.trim().strip_suffix("kB")).and_then(|kb| kb.trim().parse::<u64>().ok());
    println!("{} {}", allocated.bytes_max, kibibytes.unwrap_or_default() * 1024);
}
