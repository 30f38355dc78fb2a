//! What is said where an act is answered otherwise than meant: the check that refused, what follows from what, and what to look at.

use std::{collections::BTreeSet, path::Path};

use expect_test::expect;
use fak_scenario::{Explaining, Performance, Reach, Scenario, Style};

use crate::support::{TWO, check, hint, performed};

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
    assert_eq!(performed(TWO, steps).steps[0].mismatches[0].got, None);
}

/// §2.8: whoever is refused for want of a capability is told which, by every crate's own rung, and nobody else is.
#[test]
fn a_missing_capability_is_named_wherever_one_is_missing() {
    let checks =
        ["a2achan/no-send", "a2achan/no-recv", "comm", "lanes", "pool", "refs", "sharedtask", "space"]
            .map(|name| if name.contains('/') { name.to_owned() } else { format!("{name}/capability") });
    let caps = r#""alpha": {"fleet": "f1", "caps": []}, "bravo": {"fleet": "f1", "caps": []}"#;
    let steps = r#"{"do": "group", "name": "g", "members": ["alpha", "bravo"]},
      {"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x"}},
      {"do": "recv", "by": "alpha", "at": "in_kernel:x"},
      {"do": "widen", "by": "alpha", "body": {"text": "x"}, "scope": "fleet"},
      {"do": "trust", "by": "alpha", "body": {"text": "x"}, "evidence": "confirmed"},
      {"do": "held", "by": "alpha"},
      {"do": "pool_put", "by": "alpha", "body": {"text": "x"}},
      {"do": "pool_get", "by": "alpha", "text": "x"},
      {"do": "view", "by": "alpha", "task": "task_x"},
      {"do": "approve", "by": "alpha", "task": "task_x", "decision": "dec_x"},
      {"do": "put", "by": "alpha", "key": "k", "body": {"text": "x"}},
      {"do": "get", "by": "alpha", "key": "k"},
      {"do": "broadcast", "by": "alpha", "group": "g", "body": {"text": "x"}},
      {"do": "lease", "by": "alpha", "tree": ["src/**"], "ttl_ms": 100, "as": "l"}"#;
    let mut met = BTreeSet::new();
    let mut named = Vec::new();
    for step in performed(caps, steps).steps {
        met.extend(step.at);
        named.extend(step.lacks);
    }
    assert_eq!(met, BTreeSet::from(checks.clone()));
    let expected = "a2a.send a2a.recv ref.widen ref.trust forensics.read pool.write pool.read sharedtask.read \
                    sharedtask.approve space.write space.read comm.collective lane.lease";
    assert_eq!(named.join(" "), expected);
    // Nobody else is told of one.
    for folder in ["scenarios", "incidents"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
        for path in fak_scenario::find(&folder).unwrap() {
            let scenario = Scenario::load(&path, Reach::Folder).unwrap();
            for step in scenario.perform(&Performance::default()).unwrap().steps {
                let wanting = step.at.as_ref().is_some_and(|site| checks.contains(site));
                assert_eq!(step.lacks.is_some(), wanting, "{}: {step:?}", path.display());
            }
        }
    }
}

/// Every rung and check that the examples meet can be named in `expect`.
#[test]
fn whatever_decides_an_example_can_be_named() {
    for folder in ["scenarios", "incidents"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
        for path in fak_scenario::find(&folder).unwrap() {
            let scenario = Scenario::load(&path, Reach::Folder).unwrap();
            for step in scenario.perform(&Performance::default()).unwrap().steps {
                let site = step.at.as_deref();
                assert!(site.is_none_or(|site| fak_scenario::check(site).is_some()), "{site:?}");
                let rung = step.rung.as_deref();
                let known = |rung: &str| fak_scenario::RUNGS.iter().any(|(name, _)| *name == rung);
                assert!(rung.is_none_or(known), "{rung:?}");
            }
        }
    }
}

/// A step follows from one that should have made what it needs, not from one that only looked at the same place.
#[test]
fn nothing_follows_from_a_look_or_from_another_thing_of_the_place() {
    let scenario = |steps: &str| {
        let text = format!(
            r#"{{"schema": "fak.scenario.v1", "name": "n", "agents": {{
            "alpha": {{"fleet": "f1", "caps": ["a2a.send", "a2a.recv", "ref.widen", "comm.collective", "lane.lease"]}},
            "bravo": {{"fleet": "f2", "caps": ["a2a.send", "a2a.recv", "lane.lease"]}}}},
            "lanes": {{"concurrent": ["docs", "code"], "trees": {{"docs": ["docs/**"], "code": ["src/**"]}}}}, "steps": [{steps}]}}"#
        );
        let scenario = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap();
        let steps = scenario.perform(&Performance::default()).unwrap().steps;
        steps
            .iter()
            .filter(|step| !step.mismatches.is_empty())
            .map(|step| (step.number, step.follows))
            .collect::<Vec<_>>()
    };
    let apart = scenario(
        r#"{"do": "send", "by": "alpha", "to": "in_kernel:w", "body": {"text": "x", "scope": "fleet"}},
        {"do": "recv", "by": "bravo", "at": "in_kernel:w"},
        {"do": "send", "by": "bravo", "to": "in_kernel:w", "body": {"text": "x", "scope": "fleet"}},
        {"do": "group", "name": "g", "members": ["alpha", "bravo"]},
        {"do": "broadcast", "by": "alpha", "group": "g", "body": {"text": "go", "scope": "fleet"}},
        {"do": "barrier", "by": "alpha", "group": "g", "as": "bar"},
        {"do": "barrier_status", "as": "bar", "expect": {"complete": true}},
        {"do": "lease", "by": "alpha", "lane": "docs", "ttl_ms": 1000, "as": "l"},
        {"do": "check", "by": "alpha", "as": "l", "path": "src/x"},
        {"do": "release", "by": "bravo", "as": "l"}"#,
    );
    assert_eq!(apart, [(2, None), (3, None), (5, None), (7, None), (9, None), (10, None)]);
    let tied = scenario(
        r#"{"do": "lease", "by": "alpha", "lane": "cod", "ttl_ms": 1000, "as": "l1"},
        {"do": "lease", "by": "bravo", "lane": "docs", "ttl_ms": 1000, "as": "l2", "expect": {"fence": 2}},
        {"do": "check", "by": "alpha", "as": "l1", "path": "src/x"},
        {"do": "request", "by": "alpha", "to": "in_kernel:q", "body": {"text": "?"}, "as": "r"},
        {"do": "recv", "by": "bravo", "at": "in_kernel:q", "save": "q", "expect": {"verdict": "allow"}},
        {"do": "reply", "by": "bravo", "to_request": "q", "body": {"text": "!"}},
        {"do": "await", "by": "alpha", "as": "r"}"#,
    );
    let roots = [(1, None), (2, Some(1)), (3, Some(1)), (4, None), (5, Some(4)), (6, Some(4)), (7, Some(4))];
    assert_eq!(tied, roots);
}

/// Somebody who is expected and is not there, and a patch in another's name.
#[test]
fn a_name_that_is_nobodys_is_told() {
    let steps = r#"{"do": "send", "by": "alpha", "to": "in_kernel:w", "body": {"text": "x", "scope": "fleet"}},
        {"do": "recv", "by": "bravo", "at": "in_kernel:w", "expect": {"from": "alhpa"}}"#;
    let hint = performed(TWO, steps).steps[1].hint.clone().unwrap();
    assert_eq!(hint, "no agent is called \"alhpa\"; did you mean \"alpha\"?");
    let text = r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"fleet": "f1", "caps": ["sharedtask.write"]}},
        "steps": [{"do": "create", "record": {"schema": "fak.shared-task.v1", "task_id": "task_a", "state": "working", "title": "t",
            "body_ref": {"text": "x"}, "artifacts": [], "notes": [], "open_decisions": [],
            "updated_by": {"kind": "agent", "id": "alpha"}, "updated_at": "2026-01-01T00:00:00Z"}},
          {"do": "patch", "by": "alpha", "patch": {"schema": "fak.shared-patch.v1", "task_id": "task_a", "base_rev": "@0",
            "actor": {"kind": "agent", "id": "alhpa"}, "scope": "fleet", "durability": "session",
            "ops": [{"op": "replace", "path": "/title", "value": "u"}], "message": "m"}}]}"#;
    let scenario = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap();
    let report = scenario.perform(&Performance::default()).unwrap();
    assert_eq!(
        report.steps[1].hint.as_deref().unwrap(),
        "the patch names \"alhpa\" as its \"actor\", and \"alpha\" performs the step: name the same in both"
    );
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
               2 recv               bravo      in_kernel:"work"         empty by a2achan/gate
                 FAIL x.json: step 2 (line 5): expected text "one", got nothing (perhaps only because step 1 failed)
               3 read               bravo      -                        failed
                 FAIL x.json: step 3 (line 6): could not be tried: nothing was kept as "got": the step that saves it did not succeed (perhaps only because step 1 failed)
               4 recv               bravo      in_kernel:"other"        empty by a2achan/gate
                 FAIL x.json: step 4 (line 7): expected verdict "allow", got "empty"
                 hint: no step has sent anything to in_kernel:"other"; known here: in_kernel:"work", in_kernel:"news"
               5 subscribe          bravo      in_kernel:"news"         allow by a2achan/gate
               6 publish            bravo      in_kernel:"news"         deny DEFAULT_DENY by a2achan/gate at a2achan/no-send, lacks a2a.send
                 FAIL x.json: step 6 (line 9): expected verdict "allow", as the step has no "expect", got "deny"
                 hint: "bravo" lacks "a2a.send": add it to its "caps" if it is to do this
               7 recv               bravo      news                     empty by a2achan/gate
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
    let explained = report.steps[0].explanation.as_ref().unwrap().to_string();
    let line = text.lines().position(|line| line.contains("a2a.recv\"}")).unwrap() + 1;
    assert!(explained.contains(&format!("deny rule 2 is on line {line} of x.json")), "{explained}");
    // A rule for somebody who is not there is a likely slip.
    assert_eq!(
        report.steps[1].hint.as_deref().unwrap(),
        "deny[3] of the policy is for the agent \"alpah\", which is none here; did you mean \"alpha\"?"
    );
}
