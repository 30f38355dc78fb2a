//! What a detach leaves behind (§2.3): nobody waits for ever, and nothing that was the principal's alone is counted on.

use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use fak_abi::{
    Act, Adjudicator, CapSet, Desk, Opinion, PrincipalSpec, Reason, RungName, ShareScope, ToolCall, ToolScope,
};
use fak_adjudicate::{Kernel, Rank};
use fak_sharedtask::{CellWatch, Space, SpaceConfig};

use crate::support::{World, id, refused};

/// Notes that it was called.
#[derive(Default)]
struct Called(std::sync::atomic::AtomicBool);

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

fn ended(watch: &mut CellWatch, cx: &mut Context<'_>) -> Option<Reason> {
    match watch.poll_next(cx) {
        Poll::Ready(outcome) => refused(&outcome),
        Poll::Pending => panic!("pending"),
    }
}

/// A wait at cells ends with the waiter, whosever they are.
#[test]
fn a_wait_at_cells_of_every_scope_ends_with_the_waiter() {
    for scope in [ShareScope::Agent, ShareScope::Fleet, ShareScope::Tenant] {
        let world = World::new();
        let agent = world.agent("a");
        let mut watch = world.space.watch(&agent, "", scope).allowed().unwrap();
        let called = Arc::new(Called::default());
        let waker = Waker::from(Arc::clone(&called));
        let mut cx = Context::from_waker(&waker);
        assert!(watch.poll_next(&mut cx).is_pending());
        world.kernel.detach(&id("a")).unwrap();
        assert!(called.0.load(std::sync::atomic::Ordering::SeqCst), "{scope:?}");
        assert_eq!(ended(&mut watch, &mut cx), Some(Reason::DefaultDeny));
    }
}

/// Detaches whoever puts a cell, once it is let.
#[derive(Default)]
struct Overtake(OnceLock<Weak<Kernel>>);

impl Adjudicator for Overtake {
    fn name(&self) -> RungName {
        "overtake"
    }
    fn tools(&self) -> ToolScope {
        ToolScope::only([Act::CellPut.tool()])
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }
    fn commit(&self, call: &ToolCall<'_>, _: &Desk<'_>) -> Opinion {
        if call.principal().id().as_str() == "a"
            && let Some(kernel) = self.0.get().and_then(Weak::upgrade)
        {
            kernel.detach(call.principal().id()).unwrap();
        }
        Opinion::Defer
    }
}

/// §4.12: a private cell that a detach overtook takes nobody's room.
#[test]
fn a_private_cell_that_a_detach_overtakes_is_not_counted() {
    let overtake = Arc::new(Overtake::default());
    let space = Space::new(SpaceConfig { cells: 1, ..SpaceConfig::default() });
    let kernel = Kernel::builder().driver(space.driver()).rung(Rank(10), overtake.clone()).build().unwrap();
    overtake.0.set(Arc::downgrade(&kernel)).unwrap();
    let spec = |name| PrincipalSpec::agent(id(name)).fleet(id("f")).caps(CapSet::ALL);
    let (a, b) = (kernel.attach(spec("a")).unwrap(), kernel.attach(spec("b")).unwrap());
    let _ = space.put(&a, "k", &a.mint("1"));
    assert!(space.put(&b, "k", &b.mint("2")).is_allow());
}
