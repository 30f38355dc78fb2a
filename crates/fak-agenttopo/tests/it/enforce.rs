//! Enforcement in a kernel: along edges, answers backwards, nobody outside (§6.9).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fak_abi::{
    Act, Adjudicator, AgentHandle, CapSet, Desk, Engine, EngineClaim, Gate, Id, Opinion, OwnedCall,
    PrincipalSpec, Reason, Ref, RungName, ShareScope, ToolCall, ToolResult, Verdict,
};
use fak_adjudicate::{Kernel, Rank};
use fak_agenttopo::{Enforced, Topology};
use fak_comm::{Comm, Group, GroupSpec, Member};

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// Stands in for the bus: allows what its capability rung would, and takes what collectives hand over.
struct Bus;

impl Adjudicator for Bus {
    fn name(&self) -> RungName {
        "test/bus"
    }

    fn judge(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        Opinion::Allow
    }
}

impl Engine for Bus {
    fn name(&self) -> RungName {
        "test/bus"
    }

    fn serves(&self) -> Vec<String> {
        vec![Act::Broadcast.tool().into(), Act::Scatter.tool().into()]
    }

    fn poll_run(
        &self,
        _call: &OwnedCall,
        _claim: &mut Option<EngineClaim>,
        _cx: &mut Context<'_>,
    ) -> Poll<ToolResult> {
        Poll::Ready(ToolResult::ok(None))
    }
}

struct World {
    kernel: Arc<Kernel>,
    comm: Arc<Comm>,
}

impl World {
    fn new(edges: &[(&str, &str)]) -> Self {
        let edges: Vec<_> = edges.iter().map(|(from, to)| (id(from), id(to))).collect();
        let topology = Arc::new(Enforced::new(Topology::over(id("t"), &edges).unwrap()));
        let comm = Arc::new(Comm::new());
        let kernel = Kernel::builder()
            .driver(comm.clone())
            .engine(Arc::new(Bus))
            .rung(Rank(0), Arc::new(Bus))
            .rung(Rank(1), topology.clone())
            .edges(topology)
            .build()
            .unwrap();
        Self { kernel, comm }
    }

    fn attach<const N: usize>(&self, names: [&str; N]) -> [AgentHandle; N] {
        names.map(|name| {
            self.kernel.attach(PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(CapSet::ALL)).unwrap()
        })
    }
}

fn shared(agent: &AgentHandle) -> Ref {
    agent.widen(&agent.mint("x"), ShareScope::Fleet).allowed().unwrap()
}

fn hand(from: &AgentHandle, act: Act, to: &AgentHandle) -> Verdict {
    let body = shared(from);
    from.decide(&ToolCall::new(from, act).args(&body).recipient(Some(to.principal())))
}

fn site(verdict: &Verdict) -> &'static str {
    let refusal = verdict.refusal().unwrap();
    assert_eq!((refusal.reason, verdict.by()), (Reason::PolicyBlock, "agenttopo/edges"));
    refusal.site.check()
}

#[test]
fn members_hand_over_along_edges_alone() {
    let world = World::new(&[("a", "b"), ("b", "c")]);
    let [a, b, c, x] = world.attach(["a", "b", "c", "x"]);
    for act in [Act::Send, Act::Request, Act::Publish, Act::Correct] {
        assert!(hand(&a, act, &b).is_allow());
        assert_eq!(site(&hand(&b, act, &a)), "agenttopo/no-edge");
        assert_eq!(site(&hand(&a, act, &c)), "agenttopo/no-edge");
        assert_eq!(site(&hand(&a, act, &x)), "agenttopo/outside");
        assert!(hand(&a, act, &a).is_allow(), "to oneself no edge is needed");
        assert!(hand(&x, act, &a).is_allow(), "whoever is no member is not bound");
    }
    for act in [Act::Reply, Act::Ack] {
        assert!(hand(&b, act, &a).is_allow());
        assert_eq!(site(&hand(&a, act, &b)), "agenttopo/no-edge");
    }
    for act in [Act::TaskPatch, Act::CellPut, Act::PoolPut, Act::Arrive] {
        let verdict = hand(&c, act, &a);
        assert!(verdict.by() != "agenttopo/edges", "{act:?} is no hand-over");
    }
    let unbound = shared(&a);
    assert!(a.decide(&ToolCall::new(&a, Act::Send).args(&unbound)).is_allow(), "judged on receiving");
}

#[test]
fn a_gate_answers_whether_one_may_hand_to_another() {
    let world = World::new(&[("a", "b")]);
    let [a, b, x] = world.attach(["a", "b", "x"]);
    let may = |from: &AgentHandle, to: &AgentHandle| world.kernel.may_hand(from.principal(), to.principal());
    assert!(world.kernel.has_edges());
    assert!(may(&a, &b) && may(&a, &a) && may(&x, &a));
    assert!(!may(&b, &a) && !may(&a, &x));
}

#[test]
fn a_collective_across_a_missing_edge_is_refused_whole() {
    let world = World::new(&[("root", "a"), ("root", "c"), ("a", "b")]);
    let [root, a, ..] = world.attach(["root", "a", "b", "c"]);
    let wave = |names: &[&str]| {
        let members = names.iter().map(|m| Member::new(id(m))).collect();
        world.comm.open(Group::new(GroupSpec::new(id("g"), members)).unwrap())
    };
    let broadcast = |agent: &AgentHandle, names: &[&str]| {
        let wave = wave(names);
        let body = shared(agent);
        match pin!(wave.broadcast(agent, &body)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("it waits"),
        }
    };
    assert!(broadcast(&root, &["a", "c"]).is_allow());
    let refused = broadcast(&root, &["a", "b", "c"]);
    assert_eq!(refused.refusal().unwrap().rank, 1);
    assert_eq!(site(&refused.verdict()), "agenttopo/no-edge");
    assert!(broadcast(&a, &["a", "b"]).is_allow(), "a member of the wave may hand to itself");
    assert_eq!(world.kernel.pending(), 0);
}

#[test]
fn explain_says_what_is_missing() {
    let world = World::new(&[("a", "b")]);
    let [a, b] = world.attach(["a", "b"]);
    let body = shared(&b);
    let why = world.kernel.explain(&ToolCall::new(&b, Act::Send).args(&body).recipient(Some(a.principal())));
    assert_eq!(why.site.unwrap().check, "agenttopo/no-edge");
    assert!(why.next.ends_with("topology \"t\" has no edge \"b\" -> \"a\""), "{}", why.next);
    let stranger = world.kernel.attach(PrincipalSpec::agent(id("s")).fleet(id("f2"))).unwrap();
    let outside =
        world.kernel.explain(&ToolCall::new(&b, Act::Send).args(&body).recipient(Some(stranger.principal())));
    assert!(outside.next.ends_with("the recipient is no member of topology \"t\""), "{}", outside.next);
}
