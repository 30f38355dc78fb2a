//! Patterns in the conditions of a policy (§3.7), name by name.

use std::sync::Arc;

use fak_abi::{Address, Gate, PrincipalSpec, ToolCall};
use fak_adjudicate::{Kernel, Policy, PolicyRung, Rank};

use crate::support::{attach, id};

fn kernel(policy: &str) -> Arc<Kernel> {
    let rung = PolicyRung::new(Policy::from_toml("p.toml", policy).unwrap());
    Kernel::builder().rung(Rank(0), Arc::new(rung)).build().unwrap()
}

/// §3.7: what stands behind a `*` counts as what stands before it, in every condition that is a pattern.
#[test]
fn a_pattern_is_matched_to_its_end() {
    for (member, pattern, fits, fails) in [
        ("agent", "al*a", ["alpha", "ala"], ["al", "album"]),
        ("agent", "al*", ["alpha", "al"], ["a", "beta"]),
        ("agent", "*ha", ["alpha", "ha"], ["h", "harbour"]),
        ("agent", "a*h*a", ["alpha", "aha"], ["ala", "alph"]),
        ("agent", "alpha", ["alpha", "alpha"], ["alphabet", "alph"]),
        ("fleet", "f*1", ["f1", "f-1"], ["f", "f2"]),
        ("tenant", "t*1", ["t1", "t-1"], ["t", "t12"]),
    ] {
        let text = format!("version = 1\n[[allow]]\ntool = \"x\"\n{member} = \"{pattern}\"\n");
        let kernel = kernel(&text);
        let tool = kernel.tool(&id("x"));
        for (name, expected) in
            fits.map(|name| (name, true)).into_iter().chain(fails.map(|name| (name, false)))
        {
            let spec = match member {
                "fleet" => PrincipalSpec::agent(id("who")).fleet(id(name)),
                "tenant" => PrincipalSpec::agent(id("who")).tenant(id(name)),
                _ => PrincipalSpec::agent(id(name)),
            };
            let agent = kernel.attach(spec).unwrap();
            let verdict = agent.decide(&ToolCall::new(&agent, &tool));
            assert_eq!(verdict.is_allow(), expected, "{member} {name:?} and {pattern:?}");
            kernel.detach(agent.principal().id()).unwrap();
        }
    }
    let kernel = kernel("version = 1\n[[allow]]\ntool = \"x\"\naddress = \"lane:a*z\"\n");
    let (agent, tool) = (attach(&kernel, "who"), kernel.tool(&id("x")));
    for (lane, expected) in [("a-z", true), ("az", true), ("a-y", false), ("a", false)] {
        let name = id(lane);
        let call = ToolCall::new(&agent, &tool).address(Address::Lane(&name));
        assert_eq!(agent.decide(&call).is_allow(), expected, "{lane}");
    }
}

/// §3.7: a pattern may reach over the family of an address, and is matched as a whole then.
#[test]
fn a_pattern_may_leave_the_family_open() {
    let text = "version = 1\n[[allow]]\ntool = \"x\"\naddress = \"*:a*z\"\n";
    let kernel = kernel(text);
    let (agent, tool) = (attach(&kernel, "who"), kernel.tool(&id("x")));
    for (name, expected) in [("a-z", true), ("az", true), ("a-y", false), ("z", false)] {
        let name = id(name);
        for at in [Address::Lane(&name), Address::Task(&name)] {
            assert_eq!(agent.decide(&ToolCall::new(&agent, &tool).address(at)).is_allow(), expected, "{at}");
        }
    }
}
