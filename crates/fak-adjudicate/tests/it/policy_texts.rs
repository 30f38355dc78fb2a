//! §3.7: a policy as a text: what its errors say, and what its lint names.

use fak_adjudicate::{Policy, PolicyProblem};

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
            "p:4:10: deny[1].reason: unknown reason \"POLICY_BLOK\", did you mean \"POLICY_BLOCK\"?\n 4 | reason = \"POLICY_BLOK\"\n   |          ^^^^^^^^^^^^^",
        ),
        (
            "version = 1\n[[allow]]\ntool = \"x\"\nreason = \"POLICY_BLOCK\"\n",
            "p:4:1: allow[1].reason: unknown key \"reason\"\n 4 | reason = \"POLICY_BLOCK\"\n   | ^^^^^^",
        ),
        (
            "version = 1\n[[allow]]\ntool = \"x\"\ntaint = \"Tainted\"\n",
            "p:4:9: allow[1].taint: unknown taint \"Tainted\", did you mean \"tainted\"?\n 4 | taint = \"Tainted\"\n   |         ^^^^^^^^^",
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
            "p:3:14: grant[1].capability: unknown capability \"a2a.sned\", did you mean \"a2a.send\"?\n \
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

/// None hides another; what is misspelt is not missing as well.
#[test]
fn everything_that_is_wrong_is_said() {
    let text = "version = 2\n[[alow]]\n[[deny]]\ntol = \"x\"\nagent = 3\ntaint = \"odd\"\n[[grant]]\ncapability = \"\"\n";
    let error = Policy::from_toml("p", text).unwrap_err();
    let keys: Vec<_> = error.each().map(|one| (one.place().line, one.key().to_owned())).collect();
    let expected = [
        (1, "version"),
        (2, "alow"),
        (4, "deny[1].tol"),
        (5, "deny[1].agent"),
        (6, "deny[1].taint"),
        (8, "grant[1].capability"),
    ];
    assert_eq!(keys, expected.map(|(line, key)| (line, key.to_owned())));
    assert_eq!(error.to_string().matches("p:").count(), 6);
    assert!(error.each().all(|one| one.to_string().matches("p:").count() == 1));
    // A bound on what is told, not on what is read.
    let many = format!("version = 1\n{}", "[[deny]]\ntool = 1\n".repeat(30));
    assert_eq!(Policy::from_toml("p", &many).unwrap_err().each().count(), 20);
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

/// §3.7: a rule for what scenarios call an act matches nothing; nobody finds out unless the lint says so.
#[test]
fn a_lint_that_knows_no_tools_of_the_host_doubts_what_is_no_act() {
    let text = "version = 1\n[[allow]]\ntool = \"*\"\n[[deny]]\ntool = \"send\"\n[[deny]]\ntool = \"lease\"\n[[deny]]\ntool = \"deploy\"\n";
    let policy = Policy::from_toml("p", text).unwrap();
    let found: Vec<_> = policy.lint(None).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "line 4: deny[1]: matches no act: \"send\" is a tool of the host's own, to be named to the lint, or a mistake, did you mean \"a2a.send\"?",
            "line 6: deny[2]: matches no act: \"lease\" is a tool of the host's own, to be named to the lint, or a mistake, did you mean \"lane.lease\"?",
            "line 8: deny[3]: matches no act: \"deploy\" is a tool of the host's own, to be named to the lint, or a mistake",
        ]
    );
    assert_eq!(policy.lint(Some(&["send", "lease", "deploy"])), []);
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
        Policy::from_toml("p", &text).unwrap().lint(Some(&["mine.own"])).len()
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
        // A tool that the host named is believed, a name of the protocol's families is not.
        ("deny]]\ntool = \"mine.own\"", "deny]]\ntool = \"a2a.sned\"", 1),
    ] {
        assert_eq!(findings(first, second), found, "{first} then {second}");
    }
}

/// §8: how much a lint compares has a bound, and it says where it stopped.
#[test]
fn a_lint_of_the_worst_patterns_ends() {
    let stars = "*a".repeat(100);
    let rules = |tool: &dyn Fn(usize) -> String| -> String {
        (0..400).map(|n| format!("[[allow]]\ntool = {:?}\n", tool(n))).collect()
    };
    let lint = |rules: String| -> Vec<_> {
        let policy = Policy::from_toml("p", &format!("version = 1\n{rules}")).unwrap();
        // What is no act is not what this is about.
        policy.lint(None).into_iter().filter(|found| !found.text.starts_with("matches no act")).collect()
    };
    let found = lint(rules(&|n| format!("{stars}-{n}-*b")));
    let [stopped] = &found[..] else { panic!("{} findings", found.len()) };
    assert!(stopped.text.starts_with("not compared"), "{stopped}");
    assert_eq!(lint(rules(&|n| format!("tool-{n}-*"))), []);
}
