//! Row 12: the policy rung with 10 rules against a fold of one rung, and with 1,000 more that name
//! other tools against the 10. Beside it stands a floor: the same rules written in Rust.
//!
//! `cargo bench -p fak-adjudicate --bench policy`

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use fak_abi::{
    Address, Adjudicator, AgentHandle, CapSet, ChannelKey, Desk, Gate, Id, Locale, Opinion, PrincipalSpec,
    Reason, Ref, RungName, ShareScope, Site, Taint, ToolCall, ToolToken,
};
use fak_adjudicate::{Kernel, Policy, PolicyRung, Rank};

/// Looks at the call the way a real rung does: the fold of row 1.
struct Looks;

impl Adjudicator for Looks {
    fn name(&self) -> RungName {
        "looks"
    }
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let private = call.body().is_some_and(Ref::is_empty);
        if private || call.principal().id().is_empty() { Opinion::Indeterminate } else { Opinion::Allow }
    }
}

/// Ten rules that all name the tool and are all looked at: the last is the one that allows.
fn rules(elsewhere: usize) -> Policy {
    let mut text = "version = 1\n".to_owned();
    for deny in [
        "agent = \"mallory\"",
        "fleet = \"f9\"",
        "address = \"in_kernel:secret-*\"",
        "taint = \"quarantined\"",
        "max_bytes = 65536",
    ] {
        text.push_str(&format!("[[deny]]\ntool = \"work\"\n{deny}\n"));
    }
    for allow in [
        "agent = \"lead-*\"",
        "tenant = \"acme\"",
        "agent = \"worker-1\"",
        "scope = \"tenant\"",
        "agent = \"worker-*\"\naddress = \"in_kernel:team-*\"",
    ] {
        text.push_str(&format!("[[allow]]\ntool = \"work\"\n{allow}\n"));
    }
    for n in 0..elsewhere {
        let kind = if n % 2 == 0 { "allow" } else { "deny" };
        text.push_str(&format!("[[{kind}]]\ntool = \"other-{n}*\"\nagent = \"*\"\n"));
    }
    Policy::from_toml("bench", &text).unwrap()
}

/// The rules of [`rules`] as a programmer would write them: nothing is read, nothing can be replaced.
struct Written;

impl Adjudicator for Written {
    fn name(&self) -> RungName {
        "written"
    }
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let who = call.principal();
        let (agent, fleet, tenant) = (who.id().as_str(), who.fleet(), who.tenant());
        let within = |prefix| match call.target() {
            Address::Channel(key) => key.locale() == Locale::InKernel && key.id().starts_with(prefix),
            _ => false,
        };
        let body = call.body();
        let denied = agent == "mallory"
            || fleet.is_some_and(|fleet| fleet.as_str() == "f9")
            || within("secret-")
            || body.is_some_and(|body| body.taint() == Taint::Quarantined)
            || body.is_some_and(|body| body.len() > 65_536);
        if denied {
            return Opinion::deny(Reason::PolicyBlock, Site::new("written/deny"));
        }
        let allowed = agent.starts_with("lead-")
            || tenant.is_some_and(|tenant| tenant.as_str() == "acme")
            || agent == "worker-1"
            || body.is_some_and(|body| body.scope() == ShareScope::Tenant)
            || agent.starts_with("worker-") && within("team-");
        if allowed {
            Opinion::Allow
        } else {
            Opinion::deny(Reason::DefaultDeny, Site::new("written/default"))
        }
    }
}

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

struct World {
    _kernel: Arc<Kernel>,
    agent: AgentHandle,
    tool: ToolToken,
    key: ChannelKey,
    body: Ref,
}

impl World {
    fn new(rung: Arc<dyn Adjudicator>) -> Self {
        let kernel = Kernel::builder().tools([id("work")]).rung(Rank(0), rung).build().unwrap();
        let spec = PrincipalSpec::agent(id("worker-7")).fleet(id("f1")).caps(CapSet::ALL);
        let agent = kernel.attach(spec).unwrap();
        let tool = kernel.tool(&id("work"));
        let body = agent.mint(&b"a body"[..]);
        Self { _kernel: kernel, agent, tool, key: "in_kernel:team-blue".parse().unwrap(), body }
    }

    fn decide(&self) -> bool {
        let call =
            ToolCall::new(&self.agent, &self.tool).args(&self.body).address(Address::Channel(&self.key));
        self.agent.decide(black_box(&call)).is_allow()
    }
}

fn row12(c: &mut Criterion) {
    let mut group = c.benchmark_group("row12_policy");
    let one = World::new(Arc::new(Looks));
    let ten = World::new(Arc::new(PolicyRung::new(rules(0))));
    let many = World::new(Arc::new(PolicyRung::new(rules(1000))));
    let written = World::new(Arc::new(Written));
    let worlds = [("one_rung", &one), ("rules_10", &ten), ("elsewhere_1000", &many), ("floor", &written)];
    for (name, world) in worlds {
        assert!(world.decide());
        group.bench_function(name, |b| b.iter(|| world.decide()));
    }
    group.finish();
}

criterion_group!(benches, row12);
criterion_main!(benches);
