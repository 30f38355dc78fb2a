//! What the tests build kernels from: a kernel with the layers of this crate, and inboxes that a bus would have.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fak_abi::{
    Act, Address, AgentHandle, CapSet, Capability, Claiming, Engine, EngineClaim, Id, OwnedCall,
    PrincipalSpec, Reason, Ref, Refusal, RungName, ShareScope, Site, ToolCall, ToolResult, Verdict,
};
use fak_adjudicate::{Kernel, KernelBuilder, ManualClock};
use fak_comm::{Comm, Group, GroupSpec, LaneArbiter, Member};

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

pub(crate) fn group(ids: &[&str]) -> Group {
    Group::new(GroupSpec::new(id("g"), ids.iter().map(|m| Member::new(id(m))).collect())).unwrap()
}

/// A future that has nothing to wait for.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

pub(crate) fn denies(verdict: &Verdict, reason: Reason) -> &'static str {
    let refusal = verdict.refusal().unwrap_or_else(|| panic!("{verdict} is no denial"));
    assert_eq!(refusal.reason, reason, "{verdict}");
    refusal.site.check()
}

/// Slots of one member's inbox: what is queued and how many are set aside.
#[derive(Default)]
struct Inbox {
    queued: Vec<Ref>,
    claimed: usize,
}

/// The part of a bus that collectives meet: an inbox a member, of a capacity.
#[derive(Clone)]
pub(crate) struct Inboxes {
    capacity: usize,
    inner: Arc<Mutex<HashMap<Id, Inbox>>>,
}

struct Slot {
    inboxes: Inboxes,
    member: Id,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.inboxes.inner.lock().unwrap().get_mut(&self.member).unwrap().claimed -= 1;
    }
}

impl Inboxes {
    /// What a member was handed.
    pub(crate) fn of(&self, member: &str) -> Vec<Ref> {
        let inner = self.inner.lock().unwrap();
        inner.get(member).map(|inbox| inbox.queued.clone()).unwrap_or_default()
    }

    pub(crate) fn queued(&self) -> usize {
        self.inner.lock().unwrap().values().map(|inbox| inbox.queued.len()).sum()
    }

    pub(crate) fn claimed(&self) -> usize {
        self.inner.lock().unwrap().values().map(|inbox| inbox.claimed).sum()
    }
}

impl Engine for Inboxes {
    fn name(&self) -> RungName {
        "test/inboxes"
    }

    fn serves(&self) -> Vec<String> {
        vec![Act::Broadcast.tool().into(), Act::Scatter.tool().into()]
    }

    fn claim(&self, call: &ToolCall<'_>) -> Claiming {
        assert!(matches!(call.target(), Address::Group(..)));
        let member = call.resolved().unwrap().id().clone();
        let mut inner = self.inner.lock().unwrap();
        let inbox = inner.entry(member.clone()).or_default();
        if inbox.queued.len() + inbox.claimed >= self.capacity {
            return Claiming::Refuse(Refusal::new(Reason::RateLimited, Site::new("test/full")));
        }
        inbox.claimed += 1;
        Claiming::Held(EngineClaim::new(Slot { inboxes: self.clone(), member }))
    }

    fn poll_run(
        &self,
        call: &OwnedCall,
        claim: &mut Option<EngineClaim>,
        _cx: &mut Context<'_>,
    ) -> Poll<ToolResult> {
        let call = call.view();
        let member = call.resolved().unwrap();
        drop(claim.take());
        if !member.is_attached() {
            return Poll::Ready(ToolResult::error());
        }
        let body = call.body().unwrap().clone();
        self.inner.lock().unwrap().get_mut(member.id()).unwrap().queued.push(body);
        Poll::Ready(ToolResult::ok(None))
    }
}

pub(crate) struct World {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) comm: Arc<Comm>,
    pub(crate) lanes: Arc<LaneArbiter>,
    pub(crate) inboxes: Inboxes,
    pub(crate) clock: ManualClock,
}

pub(crate) const LANES: &str = r#"
    [lanes]
    concurrent = ["docs", "src", "guide"]
    exclusive = ["abi"]
    [lanes.trees]
    docs = ["docs/**"]
    src = ["src/**"]
    guide = ["docs/guide/**"]
    abi = ["abi/**"]
"#;

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(more: impl FnOnce(KernelBuilder) -> KernelBuilder) -> Self {
        let comm = Arc::new(Comm::new());
        let lanes = Arc::new(LaneArbiter::new(LANES.parse().unwrap()).max_leases(3));
        let inboxes = Inboxes { capacity: 2, inner: Arc::default() };
        let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        let builder = Kernel::builder()
            .driver(comm.clone())
            .driver(lanes.clone())
            .engine(Arc::new(inboxes.clone()))
            .time(Arc::new(clock.clone()));
        let kernel = more(builder).build().unwrap();
        Self { kernel, comm, lanes, inboxes, clock }
    }

    /// Attaches an agent of a fleet with every capability.
    pub(crate) fn attach(&self, name: &str, fleet: &str) -> AgentHandle {
        self.kernel.attach(PrincipalSpec::agent(id(name)).fleet(id(fleet)).caps(CapSet::ALL)).unwrap()
    }

    /// Attaches agents of fleet `f1`.
    pub(crate) fn attach_all<const N: usize>(&self, names: [&str; N]) -> [AgentHandle; N] {
        names.map(|name| self.attach(name, "f1"))
    }

    pub(crate) fn attach_with(&self, name: &str, caps: &[Capability]) -> AgentHandle {
        self.kernel.attach(PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(CapSet::of(caps))).unwrap()
    }

    pub(crate) fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }
}

/// A value of `agent`'s that its fleet may read.
pub(crate) fn shared(agent: &AgentHandle, text: &str) -> Ref {
    agent.widen(&agent.mint(text.as_bytes().to_vec()), ShareScope::Fleet).allowed().unwrap()
}

pub(crate) fn text(agent: &AgentHandle, body: &Ref) -> String {
    String::from_utf8(agent.read(body).allowed().unwrap().to_vec()).unwrap()
}
