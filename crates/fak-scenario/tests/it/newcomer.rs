//! What somebody new writes wrongly, and what is said to it when it is read: every independent mistake at once, other words for a
//! member or a value, one kind of name where another belongs.

use std::path::Path;

use expect_test::expect;
use fak_scenario::{Reach, Scenario, ScenarioError};

use crate::support::{check, performed, said, scenario};

#[test]
fn every_independent_mistake_is_named_at_once() {
    let text = r#"{
  "schema": "fak.scenario.v1",
  "name": "mistakes",
  "limit": {},
  "clock": "yesterday",
  "agents": {
    "alpha": {"team": "f1", "capabilities": ["a2a.send"]},
    "bravo": {"fleet": "f1", "caps": ["a2a.receive", "zebra"]}
  },
  "steps": [
    {"do": "send", "by": "alpah", "channel": "in_kernel:work", "message": {"text": "x"}},
    {"do": "recv", "by": "bravo", "at": "work", "expect": {"verdict": "denied", "because": "x"}},
    {"do": "subscrib", "by": "bravo", "topic": "in_kernel:news", "as": "news"},
    {"do": "recv", "by": "bravo", "inbox": "news"}
  ]
}"#;
    let error = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap_err();
    check(
        &error.to_string(),
        &expect![[r#"
            x.json:4:12: limit: unknown member "limit", did you mean "limits"?
            x.json:5:12: clock: expected a time as RFC 3339 has it, such as "2026-01-01T00:00:00Z"; found "yesterday"
            x.json:7:23: agents/alpha/team: unknown member "team", did you mean "fleet"?
            x.json:7:45: agents/alpha/capabilities: unknown member "capabilities", did you mean "caps"?
            x.json:8:39: agents/bravo/caps/0: unknown capability "a2a.receive", did you mean "a2a.recv"?
            x.json:8:54: agents/bravo/caps/1: unknown capability "zebra"; known here: a2a.send, a2a.recv, ref.widen, ref.trust, pool.write, pool.read, sharedtask.write, sharedtask.approve, sharedtask.read, space.write, space.read, comm.collective and 2 more
            x.json:11:26: step 1 (send): by: unknown agent "alpah", did you mean "alpha"?
            x.json:11:46: step 1 (send): channel: unknown member "channel", did you mean "to"?
            x.json:11:75: step 1 (send): message: unknown member "message", did you mean "body"?
            x.json:12:41: step 2 (recv): at: expected a channel as "locale:id", such as "in_kernel:news"; the locale is in_kernel, session or window; found "work", did you mean "in_kernel:work"?
            x.json:12:71: step 2 (recv): expect/verdict: unknown verdict "denied", did you mean "deny"?
            x.json:12:92: step 2 (recv): expect/because: "recv" does not answer "because", did you mean "reason"?
            x.json:13:12: step 3: do: unknown act "subscrib", did you mean "subscribe"?"#]],
    );
    assert_eq!(error.each().count(), error.to_string().lines().count());
    // What stands in a step that cannot be read is no mistake of the steps that go on with it.
    assert!(!error.to_string().contains("unknown inbox"), "{error}");
}

#[test]
fn of_many_mistakes_the_first_twenty_are_named() {
    let error = said(&vec![r#"{"do": "sned", "by": "alpha"}"#; 25].join(",\n"));
    assert_eq!(error.lines().count(), 21, "{error}");
    assert!(error.ends_with("and 5 more: mend these first"), "{error}");
}

/// If the agents themselves are under a misspelt member, every agent is not unknown as well.
#[test]
fn one_mistake_is_said_once() {
    let text = r#"{"schema": "fak.scenario.v1", "name": "n", "actors": {"a": {"caps": []}}, "steps": [{"do": "who", "by": "a"}]}"#;
    let error = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap_err();
    check(
        &error.to_string(),
        &expect![[r#"x.json:1:54: actors: unknown member "actors", did you mean "agents"?"#]],
    );
    // A file of another kind is not a scenario with many mistakes.
    let text = r#"{"schema": "fak.shared-task.v1", "task_id": "t", "title": "t"}"#;
    let error = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap_err();
    check(
        &error.to_string(),
        &expect![[r#"x.json:1:12: schema: expected "fak.scenario.v1"; found "fak.shared-task.v1""#]],
    );
}

#[test]
fn another_word_for_it_is_understood() {
    let step = |step: &str| said(step).replace("x.json:4:", "");
    let mut all = String::new();
    for wrong in [
        r#"{"do": "receive", "by": "bravo", "at": "in_kernel:x"}"#,
        r#"{"do": "wait", "ms": 5}"#,
        r#"{"do": "lock", "by": "alpha", "lane": "x", "ttl_ms": 5, "as": "l"}"#,
        r#"{"do": "publish", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x"}}"#,
        r#"{"do": "send", "by": "alpha", "key": "k", "topic": "in_kernel:x", "payload": {"text": "x"}}"#,
        r#"{"do": "send", "agent": "alpha", "to": "in_kernel:x", "body": {"text": "x"}}"#,
        r#"{"act": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x"}}"#,
        r#"{"do": "recv", "by": "bravo", "channel": "in_kernel:x"}"#,
        r#"{"do": "recv", "by": "bravo", "at": "in_kernel:x", "expect": {"verdict": "refused"}}"#,
        r#"{"do": "recv", "by": "bravo", "at": "in_kernel:x", "expect": {"result": "allow"}}"#,
        r#"{"do": "recv", "by": "bravo", "at": "in_kernel:x", "assert": {"verdict": "allow"}}"#,
        r#"{"do": "send", "by": "alpha", "to": "memory:x", "body": {"text": "x", "scope": "team"}}"#,
        r#"{"do": "tick", "by": "alpha", "ms": 5}"#,
    ] {
        all.push_str(&step(wrong));
        all.push('\n');
    }
    check(
        &all,
        &expect![[r#"
            8: step 1: do: unknown act "receive", did you mean "recv"?
            8: step 1: do: unknown act "wait", did you mean "tick"?
            8: step 1: do: unknown act "lock", did you mean "lease"?
            40: step 1 (publish): to: unknown member "to", did you mean "topic"?
            52: step 1 (send): topic: unknown member "topic", did you mean "to"?
            78: step 1 (send): payload: unknown member "payload", did you mean "body"?
            25: step 1 (send): agent: unknown member "agent", did you mean "by"?
            1: step 1: missing member "do", which names the act; is "act" meant to be it?
            42: step 1 (recv): channel: unknown member "channel", did you mean "at"?
            74: step 1 (recv): expect/verdict: unknown verdict "refused", did you mean "deny"?
            73: step 1 (recv): expect/result: "recv" does not answer "result": write "verdict": "allow"
            62: step 1 (recv): assert: unknown member "assert", did you mean "expect"?
            37: step 1 (send): to: expected a channel as "locale:id", such as "in_kernel:news"; the locale is in_kernel, session or window; found "memory:x", did you mean "in_kernel:x"?
            80: step 1 (send): body/scope: unknown scope "team", did you mean "fleet"?
            22: step 1 (tick): by: "tick" is done by the host, not by an agent: leave "by" out
        "#]],
    );
}

#[test]
fn a_name_of_another_kind_is_told_its_place() {
    let expects = |expect: &str| {
        let step = format!(r#"{{"do": "recv", "by": "bravo", "at": "in_kernel:x", "expect": {expect}}}"#);
        let said = said(&step);
        said.split_once("expect").map_or(said.clone(), |(_, said)| said.to_owned())
    };
    let mut all = String::new();
    for wrong in [
        r#""empty""#,
        r#""denied""#,
        r#""TRUST_VIOLATION""#,
        r#"["deny"]"#,
        r#"{"empty": true}"#,
        r#"{"denied": true}"#,
        r#"{"MISROUTE": true}"#,
        r#"{"error": "TRUST_VIOLATION"}"#,
        r#"{"reason": "a2achan/private"}"#,
        r#"{"reason": "a2achan/gate"}"#,
        r#"{"reason": "deny"}"#,
        r#"{"verdict": "MISROUTE"}"#,
        r#"{"at": "MISROUTE"}"#,
        r#"{"at": "a2achan/gate"}"#,
        r#"{"rung": "a2achan/private"}"#,
        r#"{"reason": "TRUST_VIOLATON"}"#,
        r#"{"reason": "trust_violation"}"#,
        r#"{"reason": "UNAUTHORIZED"}"#,
        r#"{"reason": "INVENTED"}"#,
        r#"{"at": "privat"}"#,
        r#"{"at": "zzz"}"#,
        r#"{"rung": "polcy"}"#,
    ] {
        all.push_str(&expects(wrong));
        all.push('\n');
    }
    check(
        &all,
        &expect![[r#"
            : what is expected is an object: write "expect": {"verdict": "empty"}
            : what is expected is an object: write "expect": {"verdict": "deny"}
            : what is expected is an object: write "expect": {"reason": "TRUST_VIOLATION"}
            : what is expected is an object: write "expect": {"verdict": …}, with "reason" and what else is expected
            /empty: "recv" does not answer "empty": write "verdict": "empty"
            /denied: "recv" does not answer "denied": write "verdict": "deny"
            /MISROUTE: "recv" does not answer "MISROUTE": write "reason": "MISROUTE"
            /error: "recv" does not answer "error": write "reason": "TRUST_VIOLATION"
            /reason: "a2achan/private" is a check: name it with "at"
            /reason: "a2achan/gate" is a rung: name it with "rung"
            /reason: "deny" is a verdict: name it with "verdict"
            /verdict: "MISROUTE" is a reason: name it with "reason"
            /at: "MISROUTE" is a reason: name it with "reason"
            /at: "a2achan/gate" is a rung: name it with "rung"
            /rung: "a2achan/private" is a check: name it with "at"
            /reason: unknown reason "TRUST_VIOLATON", did you mean "TRUST_VIOLATION"?
            /reason: unknown reason "trust_violation", did you mean "TRUST_VIOLATION"?
            /reason: unknown reason "UNAUTHORIZED", did you mean "DEFAULT_DENY"?
            /reason: unknown reason "INVENTED"; known here: DEFAULT_DENY, POLICY_BLOCK, SELF_MODIFY, LEASE_HELD, TRUST_VIOLATION, MALFORMED, MISROUTE, RATE_LIMITED, SECRET_EXFIL, UNWITNESSED, OVERSIZE, UNKNOWN_TOOL; `fak explain` says what each means
            /at: unknown check "privat", did you mean "a2achan/private"?
            /at: unknown check "zzz"; known here: read/detached, read/flow, kernel/foreign, kernel/detached, kernel/foreign-tool, kernel/unknown-tool, kernel/expired, kernel/empty-policy, kernel/all-defer, kernel/indeterminate, kernel/panic, kernel/two-transforms and 149 more; `fak explain --checks` lists them all
            /rung: unknown rung "polcy", did you mean "policy"?
        "#]],
    );
}

/// What stands beside where it belongs, or is a name of another kind, is told its place.
#[test]
fn what_stands_in_the_wrong_place_is_told_the_right_one() {
    let mut all = String::new();
    for wrong in [
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "text": "x"}"#,
        r#"{"do": "send", "by": "alpha", "to": "bravo", "body": {"text": "x"}}"#,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x"}, "verdict": "deny"}"#,
        r#"{"do": "recv", "by": "bravo", "at": "in_kernel:x", "text": "x"}"#,
        r#"{"do": "recv", "by": "bravo", "from": "in_kernel:x"}"#,
        r#"{"do": "patch", "by": "alpha", "ops": []}"#,
        r#"{"do": "explain", "of": {"do": "who", "by": "alpha", "expect": {}}}"#,
        r#"{"send": {"by": "alpha"}}"#,
        r#"{"do": "read", "by": "bravo", "ref": "x"}"#,
        r#"{"do": "recv", "by": "bravo", "inbox": "in_kernel:x"}"#,
        r#"{"do": "request", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x"}, "as": "q"}, {"do": "reply", "by": "bravo", "to_request": "q", "body": {"text": "y"}}"#,
    ] {
        all.push_str(&said(wrong));
        all.push('\n');
    }
    check(
        &all,
        &expect![[r#"
        x.json:4:60: step 1 (send): text: "text" belongs inside "body": write "body": {"text": …}
        x.json:4:37: step 1 (send): to: "bravo" is an agent, not a channel; its session is "session:trace-bravo", unless it has another "trace_id"
        x.json:4:86: step 1 (send): verdict: "verdict" belongs inside "expect": write "expect": {"verdict": …}
        x.json:4:60: step 1 (recv): text: "text" belongs inside "expect": write "expect": {"text": …}
        x.json:4:39: step 1 (recv): from: unknown member "from", did you mean "at"?
        x.json:4:39: step 1 (patch): ops: "ops" belongs inside "patch": write "patch": {"ops": …}
        x.json:4:64: step 1 (explain): of/expect: "expect" belongs to the "explain" step, beside "of"
        x.json:4:1: step 1: missing member "do": write {"do": "send", …}, with the others beside it
        x.json:4:38: step 1 (read): ref: unknown saved value "x": it is the "save" of an earlier step
        x.json:4:40: step 1 (recv): inbox: "in_kernel:x" is a channel: name it with "at"; an inbox is the "as" of an earlier "subscribe" or "request", or the "name" of a "group"
        x.json:4:135: step 2 (reply): to_request: "q" names the request; expected a saved or leased message, which is the "save" of an earlier step
    "#]],
    );
}

#[test]
fn what_is_no_json_or_no_object_says_how_it_is_written() {
    let whole = |text: &str| match Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder) {
        Ok(_) => "read".to_owned(),
        Err(error) => error.to_string(),
    };
    let mut all = String::new();
    for wrong in [
        "// a comment\n{}",
        "{'schema': 'fak.scenario.v1'}",
        r#"{"schema": "fak.scenario.v1",}"#,
        "schema: fak.scenario.v1",
        r#"{"schema": "fak.scenario.v1", "name": "n", "agents": ["a"], "steps": []}"#,
        r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"a": ["a2a.send"]}, "steps": []}"#,
    ] {
        all.push_str(&whole(wrong));
        all.push('\n');
    }
    check(
        &all,
        &expect![[r#"
        x.json:1:1: expected a value; JSON has no comments
        x.json:1:2: expected a member name; JSON quotes with "
        x.json:1:30: expected a member name; leave out the comma before it
        x.json:1:1: expected a value; a scenario is JSON, and begins with {
        x.json:1:54: agents: agents are an object, by name: {"alpha": {"caps": ["a2a.send"]}, …}
        x.json:1:60: agents/a: an agent is an object: {"fleet": …, "caps": ["a2a.send", …]}
    "#]],
    );
}

/// A part that is written as something else is answered with how it is written, and each by itself.
#[test]
fn what_is_of_the_wrong_kind_says_how_it_is_written() {
    let text = r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"caps": "a2a.send"}},
"policy": "p.toml",
"lanes": ["docs"],
"topology": [["a", "b"]],
"store": "f1",
"tasks": "t.json",
"limits": {"mailbox_capacity": 0, "pending": "1", "addressing": "shut", "rate": {"burst": 0, "per_ms": 1}},
"steps": [["send", "alpha"], {"do": "reply", "by": "alpha", "to": "q", "body": {"text": "x"}},
{"do": "recv", "by": "alpha", "at": "in_kernel:x", "from": "alpha"}]}"#;
    let read = |text: &str| Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap_err();
    let listed = read(r#"{"schema": "fak.scenario.v1", "name": "n", "limits": 7, "steps": {"do": "who"}}"#);
    check(
        &format!("{}\n{listed}", read(text)),
        &expect![[r#"
            x.json:1:73: agents/alpha/caps: capabilities are a list: ["a2a.send", …], or [] for none
            x.json:2:11: policy: a policy is an object: {"version": 1, "allow": [{"tool": "*"}]}, or {"file": "policy.toml"}
            x.json:3:10: lanes: lanes are an object: {"concurrent": ["docs"], "trees": {"docs": ["docs/**"]}}, or {"file": "lanes.toml"}
            x.json:4:13: topology: a topology is an object: {"name": "wave", "edges": [["lead", "dev"], …]}
            x.json:5:10: store: the store is an object, such as {"fleet": "f1"}
            x.json:6:10: tasks: tasks are a list of records: [{"schema": "fak.shared-task.v1", …}], or {"file": "tasks.json"}
            x.json:7:32: limits/mailbox_capacity: expected a capacity from 1 to 65536
            x.json:7:46: limits/pending: expected an integer, found a string
            x.json:7:65: limits/addressing: expected one of "open", "declared"
            x.json:7:91: limits/rate/burst: expected a number from 1 to 4294967295
            x.json:8:11: step 1: a step is an object: {"do": "send", …}
            x.json:8:67: step 2 (reply): to: unknown member "to", did you mean "to_request"?
            x.json:9:60: step 3 (recv): from: "from" belongs inside "expect": write "expect": {"from": …}
            x.json:1:54: limits: limits are an object, such as {"mailbox_capacity": 10}
            x.json:1:66: steps: steps are a list: [{"do": "send", …}, …]"#]],
    );
}

/// §8: no error repeats what a body says, however much is wrong around it.
#[test]
fn no_error_quotes_a_body() {
    const SECRET: &str = "xyzzy-secret";
    for step in [
        r#"{"do": "send", "by": "alpah", "too": "in_kernel:x", "body": {"text": "S", "scop": 1}}"#,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "message": {"text": "S"}}"#,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": "S"}"#,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "text": "S"}"#,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": ["S"]}}"#,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"base64": "S"}}"#,
        r#"{"do": "recv", "by": "bravo", "at": "in_kernel:x", "expect": {"txt": "S", "text": 1}}"#,
        r#"{"do": "recv", "by": "bravo", "at": "in_kernel:x", "expect": "S"}"#,
        r#"{"do": "pool_get", "by": "bravo", "text": "S", "body": "S"}"#,
    ] {
        let error = said(&step.replace('S', SECRET));
        assert_ne!(error, "read", "{step}");
        assert!(!error.contains(SECRET), "{error}");
    }
}

/// §8: however many names there are, and however many of them stand for nothing, what is said takes no time that grows with their
/// product.
#[test]
fn many_unknown_names_among_many_are_not_all_compared() {
    let name = |kind: char, n: usize| format!("{kind}{n:039}");
    let agents: Vec<_> = (0..3000)
        .map(|n| format!("\"{}\": {{\"fleet\": \"f\", \"caps\": [\"a2a.recv\"]}}", name('a', n * 7919)))
        .collect();
    let agents = agents.join(",\n");
    let steps = |step: &dyn Fn(usize) -> String| (0..3000).map(step).collect::<Vec<_>>().join(",\n");
    let unknown = steps(&|n| format!("{{\"do\": \"who\", \"by\": \"{}\"}}", name('b', n * 104_729)));
    let Err(ScenarioError::Several { errors, more }) = scenario(&agents, &unknown) else { panic!("read") };
    assert_eq!((errors.len(), more), (20, 2980));

    let by = name('a', 0);
    let empty = steps(&|n| {
        format!(
            "{{\"do\": \"recv\", \"by\": \"{by}\", \"at\": \"in_kernel:{}\", \"expect\": {{\"verdict\": \"allow\"}}}}",
            name('c', n)
        )
    });
    let report = performed(&agents, &empty);
    assert_eq!(report.steps.iter().filter(|step| !step.mismatches.is_empty()).count(), 3000);
    assert!(report.steps.iter().filter(|step| step.hint.is_some()).count() <= 20);
}
