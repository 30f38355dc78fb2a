//! Wakers are foreign code: none is dropped while something is locked, for the last one of a task may
//! drop the task, and with it the watch. These would never return.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use fak_abi::ShareScope;
use serde_json::json;

use crate::support::{World, id, note, patch, record, task};

/// Looks again when it is dropped.
struct Touchy<F: Fn() + Send + Sync>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Touchy<F> {
    fn wake(self: Arc<Self>) {}
}

impl<F: Fn() + Send + Sync> Drop for Touchy<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn passed_around<W, T>(
    mut watch: W,
    mut poll: impl FnMut(&mut W, &mut Context<'_>) -> Poll<T>,
    look: impl Fn() + Send + Sync + Clone + 'static,
) {
    for _ in 0..2 {
        let waker = Waker::from(Arc::new(Touchy(look.clone())));
        assert!(poll(&mut watch, &mut Context::from_waker(&waker)).is_pending());
    }
    drop(watch);
}

#[test]
fn a_waker_of_a_watch_is_dropped_while_nothing_is_locked() {
    let world = World::new();
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let (_, watch) = world.store.watch(&agent, &task()).allowed().unwrap();
    let store = world.store.clone();
    passed_around(watch, fak_sharedtask::TaskWatch::poll_next, move || {
        assert!(store.revision(&task()).is_some());
    });
    let watch = world.space.watch(&agent, "", ShareScope::Fleet).allowed().unwrap();
    // Writing tells every watch.
    let (space, writer) = (world.space.clone(), world.agent("b"));
    let body = writer.widen(&writer.mint("x"), ShareScope::Fleet).allowed().unwrap();
    passed_around(watch, fak_sharedtask::CellWatch::poll_next, move || {
        assert!(space.put(&writer, "k", &body).is_allow());
    });
    // What is watched is told all the same.
    let patched = world.patch(&agent, "fleet", json!([note(&agent, "n1", "fleet")]));
    assert_eq!(crate::support::answer(&patched), "accepted");
}

/// Acts when it is called.
struct Eager<F: Fn() + Send + Sync>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Eager<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// What an event wakes may patch at once, under a key as well: it would never return.
#[test]
fn a_waker_of_a_watch_is_called_while_nothing_is_locked() {
    let world = World::new();
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let (_, mut watch) = world.store.watch(&agent, &task()).allowed().unwrap();
    let made = |name| patch(&agent, &world.rev(), "fleet", json!([note(&agent, name, "fleet")]));
    let (first, second) = (made("n1"), made("n2"));
    let (store, writer) = (world.store.clone(), agent.clone());
    let waker = Waker::from(Arc::new(Eager(move || {
        let patched = store.patch(&writer, &second, Some(&id("k2"))).allowed().unwrap();
        assert!(patched.result.is_accepted());
    })));
    assert!(watch.poll_next(&mut Context::from_waker(&waker)).is_pending());
    assert!(world.store.patch(&agent, &first, Some(&id("k1"))).is_allow());
    assert_eq!(world.store.view(&agent, &task()).allowed().unwrap().notes().count(), 2);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(std::sync::atomic::AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// §5.9: a watch that is given up, or polled anew, takes its own waker back and nobody else's.
#[test]
fn a_watch_takes_its_own_waker_back() {
    for dropped in 0..3 {
        let world = World::with_task();
        let agent = world.agent("a");
        let mut watches: Vec<_> = (0..3)
            .map(|_| {
                let (_, mut watch) = world.store.watch(&agent, &task()).allowed().unwrap();
                let count = Arc::new(Count::default());
                let waker = Waker::from(count.clone());
                for _ in 0..2 {
                    assert!(watch.poll_next(&mut Context::from_waker(&waker)).is_pending());
                }
                (Some(watch), count)
            })
            .collect();
        watches[dropped].0 = None;
        world.patch(&agent, "fleet", json!([note(&agent, "n", "fleet")]));
        for (at, (_, count)) in watches.iter().enumerate() {
            let woken = count.0.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(woken, usize::from(at != dropped), "{at} beside {dropped}");
        }
    }
}
