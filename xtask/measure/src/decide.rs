//! Deciding: bare rungs, the fold, rungs for other tools, a policy.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

use fak_abi::{
    Address, Adjudicator, AgentHandle, CapSet, ChannelKey, Desk, Gate, Opinion, PrincipalSpec, Ref, ToolCall,
    ToolScope, ToolToken,
};
use fak_adjudicate::{Kernel, KernelBuilder, Policy, PolicyRung, Rank, SystemClock};

use crate::path::Run;
use crate::world::{Looks, id, key};

/// An agent of a kernel, a tool of the host, and a body.
struct Desktop {
    kernel: Arc<Kernel>,
    agent: AgentHandle,
    tool: ToolToken,
    key: ChannelKey,
    body: Ref,
}

impl Desktop {
    fn new(builder: KernelBuilder) -> Self {
        let kernel = builder.tools([id("work")]).build().unwrap();
        let spec = PrincipalSpec::agent(id("worker-7")).fleet(id("f1")).caps(CapSet::ALL);
        let agent = kernel.attach(spec).unwrap();
        let tool = kernel.tool(&id("work"));
        let body = agent.mint(&b"a body"[..]);
        Self { kernel, agent, tool, key: key("in_kernel:team-blue"), body }
    }

    fn decide(self) -> Run {
        Run::each(move || {
            let call = ToolCall::new(&self.agent, &self.tool).args(&self.body);
            black_box(self.agent.decide(black_box(&call)).is_allow());
        })
    }
}

fn every() -> Arc<dyn Adjudicator> {
    Arc::new(Looks(ToolScope::Every))
}

fn with_rungs(count: u64) -> KernelBuilder {
    (0..count).fold(Kernel::builder(), |builder, _| builder.rung(Rank(0), every()))
}

/// The same calls through `dyn`, in a loop.
pub(crate) fn bare(rungs: u64) -> Run {
    let rungs: Vec<_> = (0..rungs).map(|_| every()).collect();
    let desktop = Desktop::new(with_rungs(1));
    Run::each(move || {
        let desk = Desk { resolver: &*desktop.kernel, clock: &SystemClock };
        let call = ToolCall::new(&desktop.agent, &desktop.tool).args(&desktop.body);
        let mut allowed = false;
        for rung in &rungs {
            allowed |= matches!(rung.judge(black_box(&call), &desk), Opinion::Allow);
        }
        black_box(allowed);
    })
}

pub(crate) fn rungs(count: u64) -> Run {
    Desktop::new(with_rungs(count)).decide()
}

pub(crate) fn elsewhere(count: u64) -> Run {
    let add = |builder: KernelBuilder, n| {
        builder.rung(Rank(0), Arc::new(Looks(ToolScope::only([format!("other-{n}")]))))
    };
    Desktop::new((0..count).fold(with_rungs(1), add)).decide()
}

/// Ten rules that all name the tool and are all looked at: the last is the one that allows.
pub(crate) fn policy(elsewhere: u64) -> Run {
    let mut text = "version = 1\n".to_owned();
    let denials = ["agent = \"mallory\"", "fleet = \"f9\"", "address = \"in_kernel:secret-*\""];
    for deny in denials.into_iter().chain(["taint = \"quarantined\"", "max_bytes = 65536"]) {
        let _ = write!(text, "[[deny]]\ntool = \"work\"\n{deny}\n");
    }
    let allows = ["agent = \"lead-*\"", "tenant = \"acme\"", "agent = \"worker-1\"", "scope = \"tenant\""];
    for allow in allows.into_iter().chain(["agent = \"worker-*\"\naddress = \"in_kernel:team-*\""]) {
        let _ = write!(text, "[[allow]]\ntool = \"work\"\n{allow}\n");
    }
    for n in 0..elsewhere {
        let kind = if n % 2 == 0 { "allow" } else { "deny" };
        let _ = write!(text, "[[{kind}]]\ntool = \"other-{n}*\"\nagent = \"*\"\n");
    }
    let rung = PolicyRung::new(Policy::from_toml("measure", &text).unwrap());
    let desktop = Desktop::new(Kernel::builder().rung(Rank(0), Arc::new(rung)));
    Run::each(move || {
        let call = ToolCall::new(&desktop.agent, &desktop.tool)
            .args(&desktop.body)
            .address(Address::Channel(&desktop.key));
        assert!(desktop.agent.decide(black_box(&call)).is_allow());
    })
}
