//! §3.7: the policy rung, by cases that are data, against a naive reference, and its texts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fak_abi::{
    Address, AgentHandle, CapSet, Capability, ChannelKey, Gate, Host, OwnedAddress, PrincipalSpec, Ref,
    ShareScope, Taint, Tool, ToolCall, Verdict,
};
use fak_adjudicate::{Grants, Kernel, Policy, PolicyProblem, PolicyRung, Rank};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::policy_reference::{self as reference, Answer, Asked};
use crate::support::{attach, id};

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

fn kernel(policy: Policy) -> (Arc<Kernel>, Arc<PolicyRung>) {
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

#[test]
fn errors_say_where_what_and_what_was_meant() {
    let cases = [
        (
            "[[allow]]\ntool = \"x\"\n",
            "p:1:1: version: missing key \"version\": a policy begins with its version, which is 1\n 1 | [[allow]]\n   | ^",
        ),
        ("version = 2\n", "p:1:11: version: expected the integer 1\n 1 | version = 2\n   |           ^"),
        (
            "version = 1\nallows = []\n",
            "p:2:1: allows: unknown key \"allows\", did you mean \"allow\"?\n 2 | allows = []\n   | ^^^^^^",
        ),
        (
            "version = 1\n[[deny]]\ntool = \"x\"\n[[deny]]\nagent = \"é\"\n",
            "p:4:1: deny[2].tool: missing key \"tool\"\n 4 | [[deny]]\n   | ^^^^^^^^",
        ),
        (
            "version = 1\n[[deny]]\ntool = \"é\"\nreason = \"POLICY_BLOK\"\n",
            "p:4:10: deny[1].reason: unknown reason \"POLICY_BLOK\", expected one of \
             DEFAULT_DENY, POLICY_BLOCK, SELF_MODIFY, LEASE_HELD, TRUST_VIOLATION, MALFORMED, MISROUTE, RATE_LIMITED, \
             SECRET_EXFIL, UNWITNESSED, OVERSIZE, UNKNOWN_TOOL, did you mean \"POLICY_BLOCK\"?\n 4 | reason = \"POLICY_BLOK\"\n   |          ^^^^^^^^^^^^^",
        ),
        (
            "version = 1\n[[allow]]\ntool = \"x\"\nreason = \"POLICY_BLOCK\"\n",
            "p:4:1: allow[1].reason: unknown key \"reason\"\n 4 | reason = \"POLICY_BLOCK\"\n   | ^^^^^^",
        ),
        (
            "version = 1\n[[allow]]\ntool = \"x\"\ntaint = \"Tainted\"\n",
            "p:4:9: allow[1].taint: unknown taint \"Tainted\", expected one of trusted, \
             tainted, quarantined, did you mean \"tainted\"?\n 4 | taint = \"Tainted\"\n   |         ^^^^^^^^^",
        ),
        (
            "version = 1\n[[allow]]\ntool = 3\n",
            "p:3:8: allow[1].tool: expected a string, found an integer\n 3 | tool = 3\n   |        ^",
        ),
        (
            "version = 1\n[[allow]]\ntool = \"\"\n",
            "p:3:8: allow[1].tool: expected a glob that is not empty\n 3 | tool = \"\"\n   |        ^^",
        ),
        (
            "version = 1\n[[allow]]\ntool = \"x\"\nmax_bytes = -1\n",
            "p:4:13: allow[1].max_bytes: expected a whole number of bytes, 0 or more, found an integer out of range\n \
             4 | max_bytes = -1\n   |             ^^",
        ),
        (
            "version = 1\n[allow]\ntool = \"x\"\n",
            "p:2:1: allow: expected an array of tables, found a table\n 2 | [allow]\n   | ^^^^^^^",
        ),
        (
            "version = 1\n[[grant]]\ncapability = \"a2a.sned\"\n",
            "p:3:14: grant[1].capability: unknown capability \"a2a.sned\", expected one of \
             a2a.send, a2a.recv, ref.widen, ref.trust, pool.write, pool.read, sharedtask.write, sharedtask.approve, \
             sharedtask.read, space.write, space.read, comm.collective, lane.lease, forensics.read, did you mean \"a2a.send\"?\n \
             3 | capability = \"a2a.sned\"\n   |              ^^^^^^^^^^",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(Policy::from_toml("p", text).unwrap_err().to_string(), expected);
    }
    let syntax = Policy::from_toml("p", "version = 1\n[[deny]\n").unwrap_err();
    assert!(matches!(syntax.problem(), PolicyProblem::Syntax(_)));
    assert_eq!((syntax.place().line, syntax.key(), syntax.file()), (2, "", "p"));
    let twice = Policy::from_toml("p", "version = 1\nversion = 1\n").unwrap_err();
    assert!(matches!(twice.problem(), PolicyProblem::Syntax(_)), "{twice}");
}

#[test]
fn errors_in_json_are_placed_too() {
    let cases = [
        (
            "{\"version\": 1,\n \"deny\": [{\"tool\": \"x\", \"raeson\": \"OVERSIZE\"}]}",
            "p:2:25: deny[1].raeson: unknown key \"raeson\", did you mean \"reason\"?\n \
             2 |  \"deny\": [{\"tool\": \"x\", \"raeson\": \"OVERSIZE\"}]}\n   |                         ^^^^^^^^",
        ),
        (
            "{\"version\": 1, \"allow\": [{}]}",
            "p:1:26: allow[1].tool: missing key \"tool\"\n 1 | {\"version\": 1, \"allow\": [{}]}\n   |                          ^",
        ),
        (
            "{\"version\": 1, \"allow\": [{\"tool\": [\"x\"]}]}",
            "p:1:35: allow[1].tool: expected a string, found an array\n \
             1 | {\"version\": 1, \"allow\": [{\"tool\": [\"x\"]}]}\n   |                                   ^",
        ),
        (
            "{\"version\": 1, \"version\": 1}",
            "p:1:16: duplicate member \"version\", expected it once\n \
             1 | {\"version\": 1, \"version\": 1}\n   |                ^",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(Policy::from_json("p", text).unwrap_err().to_string(), expected);
    }
    // A policy inside a scenario is placed in the scenario.
    let scenario = "{\"name\": \"n\",\n \"policy\": {\"version\": 1, \"alow\": []}}";
    let document =
        fak_abi::json::Document::parse(scenario.as_bytes(), &fak_abi::json::Limits::default()).unwrap();
    let value = document.root().value().member("policy").unwrap();
    let error = Policy::from_value("s.json", scenario, value).unwrap_err();
    assert!(
        error.to_string().starts_with("s.json:2:27: alow: unknown key \"alow\", did you mean \"allow\"?\n"),
        "{error}"
    );
}

#[test]
fn the_lint_names_rules_that_can_never_match() {
    let text = r#"
version = 1
[[allow]]
tool = "a2a.sned"
[[allow]]
tool = "work"
address = "inkernel:x"
[[allow]]
tool = "work"
agent = "two\nlines"
[[allow]]
tool = "work"
agent = "w-*"
[[allow]]
tool = "w*"
agent = "w-1"
fleet = "f"
[[allow]]
tool = "a2a.bind"
taint = "tainted"
[[allow]]
tool = "play"
max_bytes = 9
[[deny]]
tool = "pl*"
[[deny]]
tool = "play"
agent = "*"
[[deny]]
tool = "rest"
reason = "MISROUTE"
[[grant]]
capability = "a2a.*"
[[grant]]
capability = "a2a.send"
agent = "w"
"#;
    let policy = Policy::from_toml("p", text).unwrap();
    let found: Vec<_> =
        policy.lint(Some(&["work", "play", "rest"])).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "line 3: allow[1]: never matches: no tool is named \"a2a.sned\", did you mean \"a2a.send\"?",
            "line 5: allow[2]: never matches: no address is of the form \"inkernel:x\", did you mean \"in_kernel:…\"?",
            "line 8: allow[3]: never matches: no agent can be named \"two\\nlines\"",
            "line 18: allow[6]: never matches: \"a2a.bind\" carries no body; use a quarantine rule",
            "line 21: allow[7]: never allows: deny[1] denies all it matches",
            "line 26: deny[2]: never decides: deny[1] matches all it matches",
            "line 29: deny[3]: MISROUTE is retryable: refused agents will try again, and be refused again",
            "line 34: grant[2]: grants nothing that grant[1] does not",
        ]
    );
    let example = Policy::from_toml("team", include_str!("../../../../examples/policy/team.toml")).unwrap();
    assert_eq!(example.lint(None), []);
}

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

#[test]
fn a_policy_knows_how_many_rules_it_has() {
    let read = |text: &str| Policy::from_toml("p", text).unwrap();
    assert!(read("version = 1").is_empty());
    let three =
        read("version = 1\n[[allow]]\ntool = \"a\"\n[[deny]]\ntool = \"b\"\n[[quarantine]]\ntool = \"c\"");
    assert_eq!((three.len(), three.is_empty()), (3, false));
}

/// §3.7: a rule is superfluous if an earlier one of its effect matches all it matches, in every condition; an allow also if a deny does.
#[test]
fn a_rule_is_covered_only_in_every_condition() {
    let findings = |first: &str, second: &str| {
        let text = format!("version = 1\n[[{first}\n[[{second}");
        Policy::from_toml("p", &text).unwrap().lint(None).len()
    };
    for (first, second, found) in [
        ("deny]]\ntool = \"a2a.*\"\nmax_bytes = 5", "deny]]\ntool = \"a2a.send\"\nmax_bytes = 5", 1),
        ("deny]]\ntool = \"a2a.*\"\nmax_bytes = 5", "deny]]\ntool = \"a2a.send\"\nmax_bytes = 6", 1),
        ("deny]]\ntool = \"a2a.*\"\nmax_bytes = 5", "deny]]\ntool = \"a2a.send\"\nmax_bytes = 4", 0),
        ("deny]]\ntool = \"a2a.*\"\nmax_bytes = 5", "deny]]\ntool = \"a2a.send\"", 0),
        ("allow]]\ntool = \"a2a.*\"\nmax_bytes = 5", "allow]]\ntool = \"a2a.send\"\nmax_bytes = 5", 1),
        ("allow]]\ntool = \"a2a.*\"\nmax_bytes = 5", "allow]]\ntool = \"a2a.send\"\nmax_bytes = 4", 1),
        ("allow]]\ntool = \"a2a.*\"\nmax_bytes = 5", "allow]]\ntool = \"a2a.send\"\nmax_bytes = 6", 0),
        // What a deny matches above a limit is nothing that an allow matches up to one.
        ("deny]]\ntool = \"a2a.*\"\nmax_bytes = 5", "allow]]\ntool = \"a2a.send\"\nmax_bytes = 5", 0),
        ("deny]]\ntool = \"a2a.*\"", "allow]]\ntool = \"a2a.send\"\nmax_bytes = 5", 1),
        ("deny]]\ntool = \"*\"\ntaint = \"tainted\"", "deny]]\ntool = \"a2a.send\"\ntaint = \"tainted\"", 1),
        ("deny]]\ntool = \"*\"\ntaint = \"tainted\"", "deny]]\ntool = \"a2a.send\"\ntaint = \"trusted\"", 0),
        ("deny]]\ntool = \"*\"\nscope = \"fleet\"", "deny]]\ntool = \"a2a.send\"\nscope = \"fleet\"", 1),
        ("deny]]\ntool = \"*\"\nscope = \"fleet\"", "deny]]\ntool = \"a2a.send\"\nscope = \"tenant\"", 0),
        // Everybody has an id; not everybody has a fleet.
        ("deny]]\ntool = \"*\"\nagent = \"*\"", "deny]]\ntool = \"a2a.send\"", 1),
        ("deny]]\ntool = \"*\"\nagent = \"w*\"", "deny]]\ntool = \"a2a.send\"", 0),
        ("deny]]\ntool = \"*\"\nfleet = \"*\"", "deny]]\ntool = \"a2a.send\"", 0),
        // A tool of the host's is believed, one of the protocol's families is not.
        ("deny]]\ntool = \"mine.own\"", "deny]]\ntool = \"a2a.sned\"", 1),
    ] {
        assert_eq!(findings(first, second), found, "{first} then {second}");
    }
}
