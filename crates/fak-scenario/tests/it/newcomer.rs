//! What somebody new writes wrongly, and what is said to it: every independent mistake at once, other words for a member or a value,
//! one kind of name where another belongs, and what to look at where an act is answered otherwise than meant.

use std::path::Path;

use expect_test::{Expect, expect};
use fak_scenario::{Explaining, Performance, Reach, Report, Scenario, ScenarioError, Style};

fn scenario(agents: &str, steps: &str) -> Result<Scenario, ScenarioError> {
    let text = format!(
        "{{\"schema\": \"fak.scenario.v1\", \"name\": \"n\",\n\"agents\": {{{agents}}},\n\"steps\": [\n{steps}]}}"
    );
    Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder)
}

pub(crate) const TWO: &str = r#""alpha": {"fleet": "f1", "caps": ["a2a.send", "ref.widen"]}, "bravo": {"fleet": "f1", "caps": ["a2a.recv"]}"#;

pub(crate) fn said(steps: &str) -> String {
    match scenario(TWO, steps) {
        Ok(_) => "read".to_owned(),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn performed(agents: &str, steps: &str) -> Report {
    scenario(agents, steps).unwrap().perform(&Performance::default()).unwrap()
}

pub(crate) fn check(got: &str, expected: &Expect) {
    expected.assert_eq(got);
}

/// The hint of the one step that is explained.
pub(crate) fn hint(agents: &str, steps: &str, step: usize) -> String {
    let how = Performance::default().explain(Explaining::Step(step));
    let report = scenario(agents, steps).unwrap().perform(&how).unwrap();
    report.steps[step - 1].hint.clone().unwrap_or_default()
}

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
        /at: unknown check "zzz"; known here: read/detached, read/flow, kernel/foreign, kernel/detached, kernel/foreign-tool, kernel/unknown-tool, kernel/expired, kernel/empty-policy, kernel/all-defer, kernel/indeterminate, kernel/panic, kernel/two-transforms and 148 more; `fak explain --checks` lists them all
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

/// `at` names the check that refused; of a check with instances, any of them or one.
#[test]
fn the_check_that_refused_can_be_expected() {
    let send = |expect: &str| {
        let steps = format!(
            r#"{{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {{"text": "x"}}, "expect": {expect}}}"#
        );
        let report = performed(TWO, &steps);
        report.steps[0].mismatches.first().map(ToString::to_string)
    };
    assert_eq!(send(r#"{"verdict": "deny", "rung": "a2achan/gate", "at": "a2achan/private"}"#), None);
    assert_eq!(
        send(r#"{"at": "a2achan/no-send"}"#).unwrap(),
        "expected at \"a2achan/no-send\", got \"a2achan/private\""
    );
    let ruled = |at: &str| {
        let text = format!(
            r#"{{"schema": "fak.scenario.v1", "name": "n", "agents": {{{TWO}}},
            "policy": {{"version": 1, "allow": [{{"tool": "*"}}], "deny": [{{"tool": "pool.*"}}, {{"tool": "a2a.recv"}}]}},
            "steps": [{{"do": "recv", "by": "bravo", "at": "in_kernel:x", "expect": {{"rung": "policy", "at": "{at}"}}}}]}}"#
        );
        let scenario = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap();
        scenario.perform(&Performance::default()).unwrap().held()
    };
    assert!(ruled("policy/deny") && ruled("policy/deny#2"));
    assert!(!ruled("policy/deny#1") && !ruled("policy/default"));
    // Nothing refused what was allowed.
    let steps = r#"{"do": "recv", "by": "bravo", "at": "in_kernel:x", "expect": {"at": "a2achan/private"}}"#;
    assert_eq!(performed(TWO, steps).steps[0].mismatches[0].got, "nothing");
}

/// Every rung and check that the examples meet can be named in `expect`.
#[test]
fn whatever_decides_an_example_can_be_named() {
    for folder in ["scenarios", "incidents"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
        for path in fak_scenario::find(&folder).unwrap() {
            let scenario = Scenario::load(&path, Reach::Folder).unwrap();
            for step in scenario.perform(&Performance::default()).unwrap().steps {
                let site = step.site.as_deref();
                assert!(site.is_none_or(|site| fak_scenario::check(site).is_some()), "{site:?}");
                let rung = step.rung.as_deref();
                let known = |rung: &str| fak_scenario::RUNGS.iter().any(|(name, _)| *name == rung);
                assert!(rung.is_none_or(known), "{rung:?}");
            }
        }
    }
}

#[test]
fn what_only_follows_from_a_failed_step_says_so() {
    let report = performed(
        TWO,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:work", "body": {"text": "one"}},
{"do": "recv", "by": "bravo", "at": "in_kernel:work", "save": "got", "expect": {"text": "one"}},
{"do": "read", "by": "bravo", "ref": "got"},
{"do": "recv", "by": "bravo", "at": "in_kernel:other", "expect": {"verdict": "allow"}},
{"do": "subscribe", "by": "bravo", "topic": "in_kernel:news", "as": "news"},
{"do": "publish", "by": "bravo", "topic": "in_kernel:news", "body": {"text": "two"}},
{"do": "recv", "by": "bravo", "inbox": "news", "expect": {"text": "two"}},
{"do": "stats", "expect": {"sent": 7}}"#,
    );
    let follows: Vec<_> = report.steps.iter().map(|step| step.follows).collect();
    assert_eq!(follows, [None, Some(1), Some(1), None, None, None, Some(6), Some(1)]);
    assert_eq!(report.first_failed().unwrap().number, 1);
    check(
        &report.to_text(Style::Plain),
        &expect![[r#"
            n  x.json
               1 send               alpha      in_kernel:"work"         deny TRUST_VIOLATION by a2achan/gate at a2achan/private
                 FAIL x.json: step 1 (line 4): expected verdict "allow", as the step has no "expect", got "deny"
               2 recv               bravo      in_kernel:"work"         empty
                 FAIL x.json: step 2 (line 5): expected text "one", got nothing (perhaps only because step 1 failed)
               3 read               bravo      -                        failed
                 FAIL x.json: step 3 (line 6): could not be tried: nothing was kept as "got": the step that saves it did not succeed (perhaps only because step 1 failed)
               4 recv               bravo      in_kernel:"other"        empty
                 FAIL x.json: step 4 (line 7): expected verdict "allow", got "empty"
                 hint: no step has sent anything to in_kernel:"other"; known here: in_kernel:"work", in_kernel:"news"
               5 subscribe          bravo      in_kernel:"news"         allow by a2achan/gate
               6 publish            bravo      in_kernel:"news"         deny DEFAULT_DENY by a2achan/gate at a2achan/no-send, lacks a2a.send
                 FAIL x.json: step 6 (line 9): expected verdict "allow", as the step has no "expect", got "deny"
                 hint: "bravo" lacks "a2a.send": add it to its "caps" if it is to do this
               7 recv               bravo      news                     empty
                 FAIL x.json: step 7 (line 10): expected text "two", got nothing (perhaps only because step 6 failed)
               8 stats              (host)     -                        done  sent 0, received 0, denied 2, held 0, dropped 0, skipped 0, dead 0, queued 0
                 FAIL x.json: step 8 (line 11): expected sent 7, got 0 (perhaps only because step 1 failed)
        "#]],
    );
}

/// What is likely meant, from the scenario's own names.
#[test]
fn a_dead_end_has_a_hint() {
    let caps = r#""caps": ["a2a.send", "a2a.recv", "ref.widen", "space.read", "space.write", "lane.lease", "sharedtask.read"]"#;
    let agents = format!(
        r#""alpha": {{"fleet": "builders", {caps}}}, "bravo": {{"fleet": "bulders", {caps}}}, "carol": {{{caps}}}, "dora": {{"fleet": "builders", "caps": []}}"#
    );
    let send =
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:work", "body": {"text": "x", "scope": "fleet"}},"#;
    let mut all = String::new();
    for steps in [
        r#"{"do": "recv", "by": "alpha", "at": "in_kernel:wrok"}"#,
        r#"{"do": "recv", "by": "alpha", "at": "in_kernel:zebra"}"#,
        r#"{"do": "recv", "by": "bravo", "at": "in_kernel:work"}"#,
        r#"{"do": "recv", "by": "carol", "at": "in_kernel:work"}"#,
        r#"{"do": "send", "by": "carol", "to": "in_kernel:x", "body": {"text": "x", "scope": "fleet"}}"#,
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x", "scope": "tenant"}}"#,
        r#"{"do": "send", "by": "dora", "to": "in_kernel:x", "body": {"text": "x"}}"#,
        r#"{"do": "call", "by": "alpha", "tool": "a2a.sned"}"#,
        r#"{"do": "recv", "by": "alpha", "at": "session:trace-bravoo"}"#,
        r#"{"do": "lease", "by": "alpha", "lane": "docs", "ttl_ms": 5, "as": "l"}"#,
        r#"{"do": "get", "by": "alpha", "key": "plan"}"#,
        r#"{"do": "view", "by": "alpha", "task": "task_a"}"#,
    ] {
        all.push_str(&hint(&agents, &format!("{send}{steps}"), 2));
        all.push('\n');
    }
    let early = r#"{"do": "publish", "by": "alpha", "topic": "in_kernel:n", "body": {"text": "x", "scope": "fleet"}},
        {"do": "subscribe", "by": "alpha", "topic": "in_kernel:n", "as": "n"}, {"do": "recv", "by": "alpha", "inbox": "n"}"#;
    all.push_str(&hint(&agents, early, 3));
    let topic = r#"{"do": "subscribe", "by": "alpha", "topic": "in_kernel:n", "as": "n"},
        {"do": "publish", "by": "alpha", "topic": "in_kernel:n", "body": {"text": "x", "scope": "fleet"}}, {"do": "recv", "by": "alpha", "at": "in_kernel:n"}"#;
    all.push_str(&format!("\n{}", hint(&agents, topic, 3)));
    let apart = agents.replace("bulders", "painters");
    all.push_str(&format!("\n{}", hint(&apart, r#"{"do": "view", "by": "alpha", "task": "task_a"}"#, 1)));
    let group = r#"{"do": "group", "name": "g", "members": ["alpha", "bravoo"]},
        {"do": "broadcast", "by": "alpha", "group": "g", "body": {"text": "x", "scope": "fleet"}}"#;
    let agents = agents.replace("\"a2a.send\", ", "\"a2a.send\", \"comm.collective\", ");
    all.push_str(&format!("\n{}", hint(&agents, group, 2)));
    check(
        &all,
        &expect![[r#"
            no step has sent anything to in_kernel:"wrok"; did you mean in_kernel:"work"?
            no step has sent anything to in_kernel:"zebra"; known here: in_kernel:"work"
            "bravo" is of fleet "bulders", "alpha" of fleet "builders": is one of them misspelt?
            "carol" has no "fleet" and no "tenant", so nothing that is shared with one reaches it: give it one under "agents"
            "carol" has no "fleet" to share it with: give it one under "agents"
            "alpha" has no "tenant" to share it with: give it one under "agents"
            "dora" lacks "a2a.send": add it to its "caps" if it is to do this
            no rung knows a tool "a2a.sned"; did you mean "a2a.send"?
            no agent has the trace id "trace-bravoo"; did you mean session:"trace-bravo"?
            the scenario declares no "lanes"
            no step puts anything under "plan"
            "alpha" is of fleet "builders", "bravo" of fleet "bulders": is one of them misspelt?
            step 1 publishes to in_kernel:"n", but "n" is subscribed only in step 2: what was published before is not seen
            step 2 publishes to in_kernel:"n", and what is published goes to subscriptions, not into a mailbox: receive with "inbox": "n"
            the agents are not all of one fleet or tenant: say under "store" which "fleet" or "tenant" it serves
            "g" has the member "bravoo", which is no agent here; did you mean "bravo"?"#]],
    );
    // What goes as it should has none, and a run that holds says nothing of it.
    assert_eq!(
        hint(&agents, &format!("{send}{}", r#"{"do": "recv", "by": "alpha", "at": "in_kernel:work"}"#), 2),
        ""
    );
    let expected = r#"{"do": "recv", "by": "alpha", "at": "in_kernel:x", "expect": {"verdict": "empty"}}"#;
    assert_eq!(performed(&agents, expected).steps[0].hint, None);
}

#[test]
fn a_rule_of_an_inline_policy_is_placed_in_the_scenario() {
    let text = format!(
        r#"{{"schema": "fak.scenario.v1", "name": "n", "agents": {{{TWO}}},
        "policy": {{
            "version": 1,
            "allow": [{{"tool": "*"}}],
            "deny": [
                {{"tool": "pool.*"}},
                {{"tool": "a2a.recv"}},
                {{"tool": "a2a.send", "agent": "alpah"}}
            ]
        }},
        "steps": [{{"do": "recv", "by": "bravo", "at": "in_kernel:x"}},
        {{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {{"text": "x", "scope": "fleet"}}, "expect": {{"verdict": "deny"}}}}]}}"#
    );
    let scenario = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap();
    let report = scenario.perform(&Performance::default().explain(Explaining::Everything)).unwrap();
    let explained = report.steps[0].explanation.as_deref().unwrap();
    let line = text.lines().position(|line| line.contains("a2a.recv\"}")).unwrap() + 1;
    assert!(explained.contains(&format!("deny rule 2 is on line {line} of x.json")), "{explained}");
    // A rule for somebody who is not there is a likely slip.
    assert_eq!(
        report.steps[1].hint.as_deref().unwrap(),
        "deny[3] of the policy is for the agent \"alpah\", which is none here; did you mean \"alpha\"?"
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
