//! Barriers as acts: who may arrive, who waits, and that nobody hangs (§6.5, I09, I10).

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fak_abi::{AgentHandle, CapSet, Capability, Clock, Digest, Id, Outcome, PrincipalSpec, Reason, Verdict};
use fak_comm::{Barrier, BarrierReport, BarrierWait, Group, GroupSpec, Member, Witness};

use crate::support::{World, denies, group, id, now};

fn arrive(barrier: &Barrier, agent: &AgentHandle) -> Verdict {
    let rank = barrier.group().rank(agent.principal().id()).unwrap();
    barrier.arrive(agent, &Witness::of(barrier.group(), rank).unwrap())
}

fn missing(barrier: &Barrier) -> Vec<String> {
    barrier.report().missing.iter().map(Id::to_string).collect()
}

fn poll(wait: &mut BarrierWait) -> Poll<Outcome<BarrierReport>> {
    std::pin::Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn it_completes_when_every_rank_has_arrived_in_any_order() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let barrier = world.comm.open(group(&["a", "b", "c"])).barrier(&a).allowed().unwrap();
    let mut wait = barrier.wait(&a, None);
    for agent in [&c, &a] {
        assert!(arrive(&barrier, agent).is_allow());
        assert!(poll(&mut wait).is_pending());
    }
    assert_eq!(missing(&barrier), ["b"]);
    let witness = Witness::of(barrier.group(), 1).unwrap().showing(Digest::of(b"evidence"));
    assert!(barrier.arrive(&b, &witness).is_allow());
    let report = now(wait).allowed().unwrap();
    assert_eq!(report, BarrierReport { complete: true, missing: vec![], gone: vec![] });
}

#[test]
fn every_refusal_has_its_reason() {
    let world = World::new();
    let [a, b, _c] = world.attach_all(["a", "b", "c"]);
    let members = ["a", "b", "c"].map(|m| Member::new(id(m)).in_lane(id("docs")));
    let spec = GroupSpec::new(id("g"), members.to_vec()).in_wave(id("w1"));
    let barrier = world.comm.barrier(Group::new(spec).unwrap());
    let own = Witness::of(barrier.group(), 0).unwrap();
    let refused = |agent, witness: &Witness, reason| denies(&barrier.arrive(agent, witness), reason);
    assert_eq!(refused(&a, &Witness { wave: id("w2"), ..own.clone() }, Reason::Misroute), "barrier/wave");
    assert_eq!(refused(&b, &own, Reason::TrustViolation), "barrier/rank");
    assert_eq!(refused(&a, &Witness { rank: 1, ..own.clone() }, Reason::TrustViolation), "barrier/rank");
    assert_eq!(refused(&a, &Witness { size: 9, ..own.clone() }, Reason::Malformed), "barrier/witness");
    assert!(barrier.explain(&a, &own).verdict.is_allow());
    assert!(barrier.arrive(&a, &own).is_allow());
    assert_eq!(refused(&a, &own, Reason::Malformed), "barrier/twice");
    let why = barrier.explain(&a, &own);
    assert_eq!((why.verdict.reason(), why.site.unwrap().check), (Some(Reason::Malformed), "barrier/twice"));
    let poor = world.attach_with("poor", &[Capability::CommCollective]);
    assert_eq!(refused(&poor, &own, Reason::DefaultDeny), "comm/capability");
    assert_eq!(
        denies(
            &world
                .comm
                .open(group(&["a"]))
                .barrier(&world.attach_with("p2", &[Capability::A2aSend]))
                .verdict(),
            Reason::DefaultDeny
        ),
        "comm/capability"
    );
    assert!(barrier.depart(&b, &id("b")).is_allow());
    assert_eq!(
        refused(&b, &Witness::of(barrier.group(), 1).unwrap(), Reason::TrustViolation),
        "barrier/gone"
    );
    let stranger = World::new().attach("a", "f1");
    denies(&barrier.arrive(&stranger, &own), Reason::TrustViolation);
    denies(&now(barrier.wait(&stranger, None)).verdict(), Reason::TrustViolation);
    assert_eq!(missing(&barrier), ["c"]);
}

#[test]
fn the_member_its_spawner_and_the_host_may_declare_it_gone() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let caps = CapSet::ALL;
    let parent =
        world.kernel.attach(PrincipalSpec::agent(id("p")).trace(id("trace-parent")).caps(caps)).unwrap();
    let members = ["a", "b", "c", "d"].map(|m| Member::new(id(m))).to_vec();
    let barrier =
        world.comm.barrier(Group::new(GroupSpec::new(id("g"), members).under(id("trace-parent"))).unwrap());
    assert_eq!(denies(&barrier.depart(&a, &id("b")), Reason::TrustViolation), "barrier/depart");
    assert!(barrier.depart(&a, &id("a")).is_allow());
    assert_eq!(denies(&barrier.depart(&a, &id("a")), Reason::Misroute), "barrier/departed");
    assert!(barrier.depart(&parent, &id("b")).is_allow());
    assert_eq!(denies(&barrier.depart(&parent, &id("x")), Reason::Misroute), "barrier/departed");
    assert!(world.comm.declare_gone(&barrier, &id("c")));
    assert!(!world.comm.declare_gone(&barrier, &id("c")) && !world.comm.declare_gone(&barrier, &id("x")));
    let mut wait = barrier.wait(&b, None);
    assert!(poll(&mut wait).is_pending());
    assert!(world.comm.declare_gone(&barrier, &id("d")));
    let report = now(wait).allowed().unwrap();
    assert!(report.complete);
    assert_eq!(report.gone, ["a", "b", "c", "d"].map(id));
}

/// I09: a cancelled wait is no arrival.
#[test]
fn i09_dropping_a_wait_leaves_the_missing_as_they_were() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let barrier = world.comm.barrier(group(&["a", "b", "c"]));
    assert!(arrive(&barrier, &a).is_allow());
    let mut wait = barrier.wait(&b, None);
    assert!(poll(&mut wait).is_pending());
    drop(wait);
    drop(barrier.wait(&c, None));
    assert_eq!(missing(&barrier), ["b", "c"]);
    assert!(arrive(&barrier, &b).is_allow() && arrive(&barrier, &c).is_allow());
    assert!(barrier.report().complete);
}

/// A waker that does nothing, to see who keeps it.
struct Kept;

impl std::task::Wake for Kept {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_dropped_wait_leaves_nothing_behind() {
    let world = World::new();
    let [a, _b] = world.attach_all(["a", "b"]);
    let barrier = world.comm.barrier(group(&["a", "b"]));
    let kept = Arc::new(Kept);
    let waker = Waker::from(kept.clone());
    let deadline = world.clock.now().after(Duration::from_secs(1));
    let mut wait = barrier.wait(&a, Some(deadline));
    for _ in 0..3 {
        assert!(std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert!(Arc::strong_count(&kept) > 2);
    drop(wait);
    assert_eq!(Arc::strong_count(&kept), 2, "neither the barrier nor the timer keeps the waker");
}

/// I10: one dead member does not hold the wave.
#[test]
fn i10_a_deadline_names_the_missing_and_a_detach_completes() {
    let world = World::new();
    let [a, b, _c] = world.attach_all(["a", "b", "c"]);
    let barrier = world.comm.barrier(group(&["a", "b", "c"]));
    let deadline = world.clock.now().after(Duration::from_millis(50));
    let mut wait = barrier.wait(&a, Some(deadline));
    assert!(arrive(&barrier, &a).is_allow() && arrive(&barrier, &b).is_allow());
    assert!(poll(&mut wait).is_pending());
    world.advance(49);
    assert!(poll(&mut wait).is_pending());
    world.advance(1);
    let report = now(wait).allowed().unwrap();
    assert_eq!((report.complete, report.missing), (false, vec![id("c")]));
    let mut wait = barrier.wait(&a, None);
    assert!(poll(&mut wait).is_pending());
    world.kernel.detach(&id("c")).unwrap();
    let report = now(wait).allowed().unwrap();
    assert_eq!((report.complete, report.gone), (true, vec![id("c")]));
    // The id attached again is another incarnation, and too late.
    let again = world.attach("c", "f1");
    assert_eq!(denies(&arrive(&barrier, &again), Reason::TrustViolation), "barrier/gone");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_wakes_the_waiter_by_itself() {
    let comm = Arc::new(fak_comm::Comm::new());
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    let clock = Arc::new(fak_adjudicate::TokioClock::new(tokio::runtime::Handle::current(), start));
    let kernel = fak_adjudicate::Kernel::builder().driver(comm.clone()).time(clock.clone()).build().unwrap();
    let a = kernel.attach(PrincipalSpec::agent(id("a")).caps(CapSet::ALL)).unwrap();
    let barrier = comm.barrier(group(&["a", "b"]));
    let deadline = clock.now().after(Duration::from_secs(3));
    let report = barrier.wait(&a, Some(deadline)).await.allowed().unwrap();
    assert_eq!(report.missing, ["a", "b"].map(id));
}

#[test]
fn a_wait_ends_with_its_principal_and_is_a_share() {
    let world = World::new();
    let [a, b] = world.attach_all(["a", "b"]);
    let barrier = world.comm.barrier(group(&["b"]));
    let mut wait = barrier.wait(&a, None);
    assert!(poll(&mut wait).is_pending());
    world.kernel.detach(&id("a")).unwrap();
    assert_eq!(denies(&now(wait).verdict(), Reason::DefaultDeny), "barrier/detached");
    let mut waits: Vec<_> = (0..1_024).map(|_| barrier.wait(&b, None)).collect();
    assert!(waits.iter_mut().all(|wait| poll(wait).is_pending()));
    let refused = now(barrier.wait(&b, None)).verdict();
    assert_eq!(denies(&refused, Reason::RateLimited), "barrier/waits");
    waits.truncate(1_023);
    assert!(poll(&mut barrier.wait(&b, None)).is_pending());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrivals_on_many_threads_wake_every_waiter() {
    let world = World::new();
    let names: Vec<String> = (0..64).map(|n| format!("m{n:02}")).collect();
    let barrier = world.comm.barrier(group(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    let mut tasks = Vec::new();
    for name in &names {
        let (agent, barrier) = (world.attach(name, "f1"), barrier.clone());
        tasks.push(tokio::spawn(async move {
            assert!(arrive(&barrier, &agent).is_allow());
            barrier.wait(&agent, None).await.allowed().unwrap().complete
        }));
    }
    for task in tasks {
        assert!(task.await.unwrap());
    }
}

/// The last waker of a task may drop the task, and with it its wait: no waker is dropped while the
/// barrier is locked. This would never return.
#[test]
fn a_waker_is_dropped_while_nothing_is_locked() {
    struct Touchy(Barrier);
    impl std::task::Wake for Touchy {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Touchy {
        fn drop(&mut self) {
            assert!(!self.0.report().complete);
        }
    }
    let world = World::new();
    let [a, _b] = world.attach_all(["a", "b"]);
    let barrier = world.comm.open(group(&["a", "b"])).barrier(&a).allowed().unwrap();
    let mut wait = barrier.wait(&a, None);
    for _ in 0..2 {
        let waker = Waker::from(Arc::new(Touchy(barrier.clone())));
        assert!(std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(wait);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// §2.3, §6.5: a detach wakes whoever is detached, and nobody else while others are missing.
#[test]
fn a_detach_wakes_the_one_who_waits() {
    let world = World::new();
    let [a, b, c] = world.attach_all(["a", "b", "c"]);
    let barrier = world.comm.open(group(&["a", "b", "c"])).barrier(&a).allowed().unwrap();
    let mut waits: Vec<_> = [&a, &b, &c]
        .map(|agent| {
            let count = Arc::new(Count::default());
            let mut wait = barrier.wait(agent, None);
            let waker = Waker::from(count.clone());
            assert!(std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)).is_pending());
            (wait, count)
        })
        .into();
    world.kernel.detach(&id("b")).unwrap();
    let woken = |at: usize| waits[at].1.0.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!([woken(0), woken(1), woken(2)], [0, 1, 0]);
    assert_eq!(denies(&now(waits.remove(1).0).verdict(), Reason::DefaultDeny), "barrier/detached");
}

/// §6.5: a wait that goes on in another task is woken there at its deadline.
#[test]
fn a_wait_that_moves_is_woken_where_it_is() {
    let world = World::new();
    let [a, ..] = world.attach_all(["a", "b"]);
    let barrier = world.comm.open(group(&["a", "b"])).barrier(&a).allowed().unwrap();
    let deadline = world.clock.now().after(Duration::from_millis(10));
    let mut wait = barrier.wait(&a, Some(deadline));
    let counts: Vec<_> = (0..2)
        .map(|_| {
            let count = Arc::new(Count::default());
            let waker = Waker::from(count.clone());
            assert!(std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)).is_pending());
            count
        })
        .collect();
    world.advance(10);
    assert_eq!(counts[1].0.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert!(!now(wait).allowed().unwrap().complete);
}
