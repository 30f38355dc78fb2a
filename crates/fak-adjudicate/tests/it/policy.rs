//! §3.7: what the policy rung answers, by cases that are data and against a naive reference.

use std::sync::Arc;

use fak_abi::{
    CapSet, ChannelKey, Gate, Host, OwnedAddress, PrincipalSpec, Ref, ShareScope, Taint, Tool, ToolCall,
    Verdict,
};
use fak_adjudicate::{Kernel, Policy, PolicyRung, Rank};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::policy_reference::{self as reference, Answer, Asked};
use crate::support::id;

/// The address of a text such as `task:t-1`.
fn address(text: &str) -> OwnedAddress {
    let (family, rest) = text.split_once(':').unwrap();
    match family {
        "task" => OwnedAddress::Task(id(rest)),
        "cell" => OwnedAddress::Cell(id(rest)),
        "lane" => OwnedAddress::Lane(id(rest)),
        "group" => OwnedAddress::Group(id(rest), 0),
        _ => OwnedAddress::Channel(text.parse::<ChannelKey>().unwrap()),
    }
}

/// A kernel with this policy, and its rung.
pub(crate) fn kernel(policy: Policy) -> (Arc<Kernel>, Arc<PolicyRung>) {
    let rung = Arc::new(PolicyRung::new(policy));
    let kernel = Kernel::builder()
        .rung(Rank(0), Arc::clone(&rung) as _)
        .admitter(Rank(0), Arc::clone(&rung) as _)
        .build()
        .unwrap();
    (kernel, rung)
}

/// What a real kernel with this policy answers.
fn kernel_answer(policy: Policy, asked: &Asked, on_result: bool) -> Answer {
    let (kernel, _) = kernel(policy);
    let mut spec = PrincipalSpec::agent(id(&asked.agent)).caps(CapSet::ALL);
    spec.fleet = asked.fleet.as_deref().map(id);
    spec.tenant = asked.tenant.as_deref().map(id);
    let agent = kernel.attach(spec).unwrap();
    let token = kernel.tool(&id(&asked.tool));
    let tool = token.act().map_or(Tool::Outside(&token), Tool::Act);
    let at = asked.address.as_deref().map(address).unwrap_or_default();
    let body: Option<Ref> = asked.body.as_ref().map(|(bytes, taint, scope)| {
        kernel.issue(agent.principal(), vec![b'x'; *bytes].into(), *taint, *scope).unwrap()
    });
    let mut call = ToolCall::new(&agent, tool).address(at.view());
    if on_result {
        return answer(&kernel.screen(&call, body.as_ref().unwrap()));
    }
    if let Some(body) = &body {
        call = call.args(body);
    }
    answer(&agent.decide(&call))
}

fn answer(verdict: &Verdict) -> Answer {
    Answer {
        verdict: verdict.kind().name(),
        reason: verdict.reason().map(fak_abi::Reason::name),
        site: verdict.refusal().map(|refusal| refusal.site.to_string()),
    }
}

fn parse(policy: &Value) -> Policy {
    Policy::from_json("inline", &policy.to_string()).unwrap()
}

#[test]
fn the_cases_hold_on_a_kernel_and_in_the_reference() {
    let text = include_str!("../../../../examples/policy/cases.json");
    let data: Value = serde_json::from_str(text).unwrap();
    let cases = data["cases"].as_array().unwrap();
    assert!(cases.len() >= 40);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let asked = Asked::read(&case["act"]);
        let on_result = case["on"] == "result";
        let found = kernel_answer(parse(&case["policy"]), &asked, on_result);
        let by_reference = reference::decide(&case["policy"], &asked, on_result);
        assert_eq!(found, by_reference, "{name}: the reference disagrees");
        assert_eq!(found.verdict, case["expect"]["verdict"].as_str().unwrap(), "{name}");
        assert_eq!(found.reason, case["expect"]["reason"].as_str(), "{name}");
        assert_eq!(found.site.as_deref(), case["expect"]["site"].as_str(), "{name}");
    }
}

fn glob(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => prop::sample::select(words).prop_map(|word| json!(word)),
        2 => "[a-c*:.]{1,4}".prop_map(|text| json!(text)),
        1 => (prop::sample::select(words), prop_oneof![0..6_usize, 0..19_usize])
            .prop_map(|(word, at)| json!(format!("{}*", word.get(..at).unwrap_or(word)))),
    ]
}

const TOOLS: &[&str] =
    &["a2a.send", "a2a.publish", "a2a.recv", "comm.arrive", "pool.put", "pool.write", "work", "play"];
// Some as long as what is compared at once, or a byte more or less.
const AGENTS: &[&str] = &["a", "ab", "abc", "b", "abcabca", "abcabcab", "abcabcabc"];
const ADDRESSES: &[&str] = &[
    "in_kernel:a",
    "session:a",
    "task:ab",
    "cell:a/b",
    "in_kernel:a:b",
    "in_kernel:abcabc",
    "in_kernel:abcabca",
    "in_kernel:abcabcab",
];

fn rule(kind: &'static str) -> impl Strategy<Value = Value> {
    let some = |key: &'static str, value: BoxedStrategy<Value>| {
        prop_oneof![3 => Just(None), 1 => value.prop_map(move |value| Some((key, value)))].boxed()
    };
    let words = |words: &'static [&'static str]| prop::sample::select(words).prop_map(|w| json!(w)).boxed();
    let mut keys = vec![
        glob(TOOLS).prop_map(|tool| Some(("tool", tool))).boxed(),
        some("agent", glob(AGENTS).boxed()),
        some("fleet", glob(AGENTS).boxed()),
        some("tenant", glob(AGENTS).boxed()),
        some("address", glob(ADDRESSES).boxed()),
        some("taint", words(&["trusted", "tainted", "quarantined"])),
        some("scope", words(&["agent", "fleet", "tenant"])),
        some("max_bytes", (0..4_u64).prop_map(|n| json!(n)).boxed()),
    ];
    if kind == "deny" {
        keys.push(some("reason", words(&["SECRET_EXFIL", "OVERSIZE", "POLICY_BLOCK"])));
    }
    keys.prop_map(|keys| keys.into_iter().flatten().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn policies() -> impl Strategy<Value = Value> {
    ["allow", "deny", "quarantine"]
        .map(|kind| prop::collection::vec(rule(kind), 0..4))
        .prop_map(|[allow, deny, quarantine]| {
            json!({"version": 1, "allow": allow, "deny": deny, "quarantine": quarantine})
        })
}

prop_compose! {
    fn acts()(
        tool in prop::sample::select(TOOLS).prop_filter("no act", |tool| *tool != "pool.write"),
        agent in prop::sample::select(AGENTS),
        fleet in prop::option::of(prop::sample::select(AGENTS)),
        tenant in prop::option::of(prop::sample::select(AGENTS)),
        address in prop::option::of(prop::sample::select(ADDRESSES)),
        body in prop::option::of((
            0..4_usize,
            prop::sample::select(Taint::ALL),
            prop::sample::select(&[ShareScope::Agent, ShareScope::Fleet, ShareScope::Tenant][..]),
        )),
    ) -> Asked {
        Asked {
            tool: tool.to_owned(),
            agent: agent.to_owned(),
            fleet: fleet.map(str::to_owned),
            tenant: tenant.map(str::to_owned),
            address: address.map(str::to_owned),
            body,
        }
    }
}

/// The same policy in the other language.
fn as_toml(policy: &Value) -> String {
    let mut text = "version = 1\n".to_owned();
    for kind in ["allow", "deny", "quarantine"] {
        for rule in policy[kind].as_array().unwrap() {
            text.push_str(&format!("[[{kind}]]\n"));
            for (key, value) in rule.as_object().unwrap() {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn as_the_naive_reference(policy in policies(), asked in acts()) {
        let expected = reference::decide(&policy, &asked, false);
        prop_assert_eq!(kernel_answer(parse(&policy), &asked, false), expected.clone());
        let toml = Policy::from_toml("inline", &as_toml(&policy)).unwrap();
        prop_assert_eq!(kernel_answer(toml, &asked, false), expected);
        if asked.body.as_ref().is_some_and(|(_, taint, _)| *taint != Taint::Quarantined) {
            let expected = reference::decide(&policy, &asked, true);
            prop_assert_eq!(kernel_answer(parse(&policy), &asked, true), expected);
        }
    }

    /// A rule that the lint says never matches or never decides can be left out.
    #[test]
    fn what_the_lint_names_makes_no_difference(policy in policies(), asked in acts()) {
        for lint in parse(&policy).lint(Some(&["work", "play"])) {
            if !lint.text.starts_with("never") {
                continue;
            }
            let (kind, index) = lint.rule.trim_end_matches(']').split_once('[').unwrap();
            let mut less = policy.clone();
            less[kind].as_array_mut().unwrap().remove(index.parse::<usize>().unwrap() - 1);
            let same = |on_result| {
                let (with, without) =
                    (reference::decide(&policy, &asked, on_result), reference::decide(&less, &asked, on_result));
                (with.verdict, with.reason) == (without.verdict, without.reason)
            };
            prop_assert!(same(false), "{lint} in {policy}");
            prop_assert!(asked.body.is_none() || same(true), "{lint} in {policy}");
        }
    }

    /// §8: whatever the text, an error and no panic; and the error can be shown.
    #[test]
    fn any_text_is_an_error_or_a_policy(text in "(version = 1\n)?(\\[\\[(allow|deny|grant)\\]\\]\n)?[ -~\n é漢\u{0}]{0,40}") {
        for error in [Policy::from_toml("p", &text).err(), Policy::from_json("p", &text).err()].into_iter().flatten() {
            prop_assert!(error.to_string().starts_with("p:"));
        }
    }
}

/// §3.7: a condition on what an act does not have does not match, whatever it asks for.
#[test]
fn no_condition_matches_what_is_absent() {
    let asked = Asked {
        tool: "work".to_owned(),
        agent: "a".to_owned(),
        fleet: None,
        tenant: None,
        address: None,
        body: None,
    };
    let families = ["in_kernel", "session", "window", "task", "cell", "lane", "group", "*"];
    let addresses =
        families.iter().flat_map(|family| ["*", "a", "a*", ""].map(|id| format!("{family}:{id}")));
    let names = ["*", "a", "a*", "*a"];
    let mut conditions: Vec<_> =
        addresses.map(|address| json!({"tool": "work", "address": address})).collect();
    for key in ["fleet", "tenant", "address"] {
        conditions.extend(names.map(|name| json!({"tool": "work", key: name})));
    }
    conditions.extend(Taint::ALL.iter().map(|taint| json!({"tool": "work", "taint": taint.name()})));
    conditions.extend(["agent", "fleet", "tenant"].map(|scope| json!({"tool": "work", "scope": scope})));
    conditions.push(json!({"tool": "work", "max_bytes": 0}));
    for rule in conditions {
        let policy = json!({"version": 1, "allow": [rule.clone()]});
        assert_eq!(reference::decide(&policy, &asked, false).verdict, "deny", "{rule}");
        assert_eq!(kernel_answer(parse(&policy), &asked, false).verdict, "deny", "{rule}");
    }
}
