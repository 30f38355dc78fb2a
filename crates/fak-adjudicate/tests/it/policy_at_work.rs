//! §3.1, §3.7: the policy rung in a kernel: grants, explaining, many tools, and reloading while others act.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use fak_abi::{Address, AgentHandle, CapSet, Capability, ChannelKey, Gate, PrincipalSpec, ToolCall, Verdict};
use fak_adjudicate::{Grants, Kernel, Policy, PolicyRung, Rank};

use crate::policy::kernel;
use crate::support::{attach, id};

#[test]
fn the_grant_policy_limits_what_is_granted() {
    let text = "version = 1\n[[grant]]\ncapability = \"a2a.send\"\nagent = \"w-*\"\nfleet = \"f1\"\n\
                [[grant]]\ncapability = \"ref.*\"\n";
    let rung = Arc::new(PolicyRung::new(Policy::from_toml("p", text).unwrap()));
    let spec = |name: &str| PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(CapSet::ALL);
    assert!(rung.may_have(&spec("w-1"), Capability::A2aSend));
    assert!(!rung.may_have(&spec("x"), Capability::A2aSend));
    assert!(!rung.may_have(&spec("w-1"), Capability::A2aRecv));
    let kernel = Kernel::builder().grants(Arc::clone(&rung) as _).build().unwrap();
    let agent = kernel.attach(spec("w-1")).unwrap();
    // The kernel itself registers ref.* and forensics.read.
    assert_eq!(agent.principal().caps(), CapSet::of(&[Capability::RefWiden, Capability::RefTrust]));
    // A policy without grant rules is no grant policy.
    rung.reload(Policy::from_toml("p", "version = 1").unwrap());
    assert!(rung.may_have(&spec("x"), Capability::PoolRead));
}

#[test]
fn explain_names_the_rule_and_the_host_finds_it() {
    let text = "version = 1\n[[deny]]\ntool = \"a\"\n[[deny]]\ntool = \"work\"\n";
    let (kernel, rung) = kernel(Policy::from_toml("p.toml", text).unwrap());
    let agent = attach(&kernel, "alpha");
    let token = kernel.tool(&id("work"));
    let call = ToolCall::new(&agent, &token);
    let explained = kernel.explain(&call);
    let text = explained.to_string();
    assert!(text.contains("deny POLICY_BLOCK (terminal) by policy at policy/deny#2"), "{text}");
    assert!(text.contains("§3.7") && text.contains("deny rule 2 is on line 4 of the policy"), "{text}");
    let site = agent.decide(&call).refusal().unwrap().site;
    assert_eq!(rung.rule_at(site), Some(("p.toml".to_owned(), 4)));
}

/// A tool beyond the places that are kept, and one no kernel was told of, are judged all the same.
#[test]
fn any_number_of_tools_is_judged_by_its_own_rules() {
    let mut text = "version = 1\n".to_owned();
    for n in 0..600 {
        text.push_str(&format!("[[allow]]\ntool = \"t{n}\"\nagent = \"a{n}\"\n"));
    }
    let rung = Arc::new(PolicyRung::new(Policy::from_toml("p", &text).unwrap()));
    let tools = (0..600).map(|n| id(&format!("t{n}")));
    let kernel = Kernel::builder().tools(tools).rung(Rank(0), rung).build().unwrap();
    for n in (0..600).rev() {
        let agent = attach(&kernel, &format!("a{n}"));
        let (mine, other) =
            (kernel.tool(&id(&format!("t{n}"))), kernel.tool(&id(&format!("t{}", (n + 256) % 600))));
        assert!(agent.decide(&ToolCall::new(&agent, &mine)).is_allow(), "{n}");
        assert!(!agent.decide(&ToolCall::new(&agent, &other)).is_allow(), "{n}");
    }
}

/// Whether an agent's acts on a tool were always answered by one of two policies.
fn hammer(agent: &AgentHandle, allowed: &str, count: u32, sites: &[&str]) {
    let gate = agent.gate();
    let tool = gate.tool(&id("work"));
    let key: ChannelKey = format!("in_kernel:{allowed}").parse().unwrap();
    for _ in 0..count {
        let call = ToolCall::new(agent, &tool).address(Address::Channel(&key));
        match agent.decide(&call) {
            Verdict::Allow { by } => assert_eq!(by, "policy"),
            verdict => {
                let site = verdict.refusal().unwrap().site.to_string();
                assert!(sites.contains(&&*site), "{verdict}");
            }
        }
    }
}

/// §3.1: a policy is replaced a hundred times while eight threads act; every verdict is of one of
/// the two, and another kernel with rules of its own notices nothing.
#[test]
fn reloading_is_atomic_and_kernels_are_independent() {
    // Each denies by its second rule what the other allows; a mixture would be some other site.
    let first = "version = 1\n[[allow]]\ntool = \"work\"\naddress = \"in_kernel:one\"\n\
                 [[deny]]\ntool = \"none\"\n[[deny]]\ntool = \"work\"\naddress = \"in_kernel:two\"\n";
    let second = "version = 1\n[[allow]]\ntool = \"work\"\naddress = \"in_kernel:two\"\n\
                  [[deny]]\ntool = \"none\"\n[[deny]]\ntool = \"work\"\naddress = \"in_kernel:one\"\n";
    let other = "version = 1\n[[deny]]\ntool = \"work\"\n";
    let parse = |text: &str| Policy::from_toml("p", text).unwrap();
    let (shared, rung) = kernel(parse(first));
    let (apart, _) = kernel(parse(other));
    let done = AtomicBool::new(false);
    // A million each in a release build; a debug build would take minutes on a busy machine.
    let count = if cfg!(debug_assertions) { 125_000 } else { 1_000_000 };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|n| {
                let agent = attach(&shared, &format!("a{n}"));
                scope.spawn(move || {
                    hammer(&agent, if n % 2 == 0 { "one" } else { "two" }, count, &["policy/deny#2"]);
                })
            })
            .collect();
        let lonely = attach(&apart, "lonely");
        let done = &done;
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                hammer(&lonely, "one", 100, &["policy/deny#1"]);
            }
        });
        for n in 0..100 {
            rung.reload(parse(if n % 2 == 0 { second } else { first }));
            shared.reloaded();
            std::thread::yield_now();
        }
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
