//! Wakers are foreign code: the last one of a task may drop the task's future when it is dropped, which
//! leaves its place and looks at the same mailbox. None is called or dropped while something is locked;
//! each of these would never return.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use fak_a2achan::{Bus, BusConfig, RequestOptions};
use fak_abi::Rider;

use crate::support::*;

/// Looks at everything there is when it is dropped.
struct Touchy(Bus);

impl Wake for Touchy {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Touchy {
    fn drop(&mut self) {
        let stats = self.0.stats();
        assert!(stats.is_conserved());
    }
}

/// Polls twice, each time from another task, and then gives up; after `between`, if that is to end the wait.
fn passed_around<F: Future>(world: &World, future: F, between: impl FnOnce()) {
    let mut future = Box::pin(future);
    for _ in 0..2 {
        let waker = Waker::from(Arc::new(Touchy(world.bus.clone())));
        assert!(matches!(future.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending));
    }
    between();
    let waker = Waker::from(Arc::new(Touchy(world.bus.clone())));
    let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
    drop(waker);
    drop(future);
}

#[test]
fn a_waker_is_dropped_while_nothing_is_locked() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo, carol) = (world.agent("alpha"), world.agent("bravo"), world.agent("carol"));
    let (at, full, topic) = (key("in_kernel:w"), key("in_kernel:full"), key("in_kernel:news"));
    let both = key("in_kernel:both");
    let body = shared(&alpha, "x");
    let send = || allowed(&alpha.send(&at, &body));
    allowed(&alpha.send(&full, &body));
    for arrives in [false, true] {
        let feed = || {
            if arrives {
                send();
            }
        };
        passed_around(&world, bravo.recv(&at), feed);
        passed_around(&world, bravo.recv_with(&at, &Rider::default()), feed);
        // Beside another that waits.
        let mut other = Hand::new(carol.recv(&both));
        other.pending();
        passed_around(&world, bravo.recv(&both), || ());
        drop(other);
        passed_around(&world, bravo.recv_leased(&key("in_kernel:leased"), None, None), || ());
        passed_around(&world, alpha.ready(&full), || {
            if arrives {
                message(bravo.try_recv(&full));
            }
        });
        let mut news = bravo.subscribe(&topic).allowed().unwrap();
        passed_around(&world, news.recv(), || {
            if arrives {
                assert_eq!(alpha.publish(&topic, &body).fanout, 1);
            }
        });
        let desk = key("in_kernel:desk");
        let mut pending =
            bravo.request(&desk, &shared(&bravo, "?"), &RequestOptions::default()).allowed().unwrap();
        let asked = message(alpha.try_recv(&desk));
        passed_around(&world, pending.wait(), || {
            if arrives {
                allowed(&alpha.reply(&asked, &body));
            }
        });
    }
}

#[test]
fn detaching_and_closing_drop_wakers_while_nothing_is_locked() {
    let world = World::with(BusConfig { capacity: 1, ..BusConfig::default() }, |b| b);
    let (alpha, bravo) = (world.agent("alpha"), world.agent("bravo"));
    let (at, topic) = (key("in_kernel:w"), key("in_kernel:news"));
    passed_around(&world, bravo.recv(&at), || world.kernel.detach(&id("bravo")).unwrap());
    let mut news = alpha.subscribe(&topic).allowed().unwrap();
    passed_around(&world, news.recv(), || world.bus.close());
}
