//! What the verbs do, and the status each ends with.

use serde_json::Value;

use crate::{Scratch, fak};

const HOLDS: &str = r#"{"schema": "fak.scenario.v1", "name": "holds", "agents": {"alpha": {"fleet": "f1", "caps": ["ref.widen"]}},
"steps": [
  {"do": "widen", "by": "alpha", "body": {"text": "plan"}, "scope": "fleet", "save": "plan"},
  {"do": "read", "by": "alpha", "ref": "plan", "expect": {"text": "plan"}}
]}"#;

#[test]
fn run_ends_with_0_1_or_2() {
    let scratch = Scratch::new("run");
    scratch
        .write("holds.json", HOLDS)
        .write("fails.json", HOLDS.replace("\"text\": \"plan\"}}", "\"text\": \"other\"}}"))
        .write("unreadable.json", HOLDS.replace("\"ref\"", "\"rfe\""));
    let held = scratch.fak(&["run", "holds.json"]);
    assert_eq!((held.status, held.err.as_str()), (0, ""), "{}", held.out);
    let failed = scratch.fak(&["run", "fails.json", "holds.json"]);
    assert_eq!(failed.status, 1);
    let said = "FAIL fails.json: step 2 (line 4): expected text \"other\", got \"plan\"";
    assert!(failed.out.contains(said), "{}", failed.out);
    assert!(failed.out.ends_with("2 scenarios, 4 acts: 1 held, 1 failed, 0 unreadable\n"), "{}", failed.out);
    let unreadable = scratch.fak(&["run", "."]);
    assert_eq!(unreadable.status, 2);
    assert!(unreadable.out.ends_with("3 scenarios, 4 acts: 1 held, 1 failed, 1 unreadable\n"));
    assert!(unreadable.err.contains("unknown member \"rfe\", did you mean \"ref\""), "{}", unreadable.err);
}

#[test]
fn json_for_programs() {
    let scratch = Scratch::new("json");
    scratch.write("fails.json", HOLDS.replace("\"text\": \"plan\"}}", "\"text\": \"other\"}}"));
    scratch.write("unreadable.json", HOLDS.replace("\"ref\"", "\"rfe\""));
    let ran = scratch.fak(&["run", ".", "--json"]);
    assert_eq!((ran.status, ran.err.as_str()), (2, ""));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["schema"], "fak.run-report.v1");
    assert_eq!((&report["failed"], &report["unreadable"]), (&1.into(), &1.into()));
    assert_eq!(report["scenarios"][0]["steps"][1]["mismatches"][0]["member"], "text");
    assert_eq!(report["errors"][0]["member"], "rfe");
    assert_eq!(report["errors"][0]["line"], 4);
    for args in [
        &["--json"][..],
        &["explain", "--json"],
        &["explain", "MISROUTE", "--json"],
        &["explain", "read/flow", "--json"],
        &["lanes", "lint", "examples/lanes/workspace.toml", "--json"],
        &["lanes", "check", "examples/lanes/workspace.toml", "--lane", "docs", "--lane", "cmd", "--json"],
    ] {
        let ran = fak(args);
        assert_eq!(ran.status, 0, "{args:?}");
        serde_json::from_str::<Value>(&ran.out).unwrap();
    }
}

#[test]
fn no_colour_off_a_terminal() {
    let ran = fak(&["run", "examples/scenarios/widen-03-only-from-agent-scope.json"]);
    assert!(!ran.out.contains('\u{1b}'));
}

#[test]
fn lanes_that_may_and_may_not_run_together() {
    let table = "examples/lanes/workspace.toml";
    assert_eq!(fak(&["lanes", "check", table, "--lane", "docs", "--lane", "cmd"]).status, 0);
    let ran = fak(&["lanes", "check", table, "--lane", "docs", "--lane", "release"]);
    assert_eq!(ran.status, 1);
    assert_eq!(ran.out, "\"docs\" and \"release\" may not run together: one of them runs alone\n");
    assert_eq!(fak(&["lanes", "check", table, "--lane", "nowhere"]).status, 2);
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = fak(&["completions", shell]);
        assert_eq!(ran.status, 0);
        assert!(ran.out.contains("explain"), "{shell}");
    }
}

#[test]
fn an_audit_log_is_kept_checked_and_shown() {
    let scratch = Scratch::new("audit");
    scratch.write("a.json", HOLDS).write("b.json", HOLDS.replace("\"alpha\"", "\"bravo\""));
    assert_eq!(scratch.fak(&["run", "a.json", "--audit", "log.jsonl"]).status, 0);
    // A second run goes on where the first ended.
    assert_eq!(scratch.fak(&["run", "b.json", "--audit", "log.jsonl"]).status, 0);
    let verified = scratch.fak(&["audit", "verify", "log.jsonl", "--write-checkpoint", "check.json"]);
    assert_eq!(verified.status, 0, "{}", verified.err);
    assert!(verified.out.starts_with("log.jsonl: verifies, 2 entries, head sha256:"), "{}", verified.out);
    let shown = scratch.fak(&["audit", "show", "log.jsonl", "--agent", "bravo", "--json"]);
    let entry: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(
        (&entry["n"], &entry["act"], &entry["verdict"]),
        (&2.into(), &"ref.widen".into(), &"allow".into())
    );
    assert!(!scratch.fak(&["audit", "show", "log.jsonl"]).out.contains("plan"));

    let log = std::fs::read_to_string(scratch.0.join("log.jsonl")).unwrap();
    scratch.write("edited.jsonl", log.replacen("alpha", "omega", 1));
    let edited = scratch.fak(&["audit", "verify", "edited.jsonl"]);
    assert_eq!(edited.status, 1);
    assert!(edited.err.starts_with("fak: edited.jsonl:1: edited"), "{}", edited.err);
    scratch.write("cut.jsonl", log.split_inclusive('\n').next().unwrap());
    assert_eq!(scratch.fak(&["audit", "verify", "cut.jsonl"]).status, 0);
    let cut = scratch.fak(&["audit", "verify", "cut.jsonl", "--checkpoint", "check.json"]);
    assert_eq!(cut.status, 1);
    assert!(cut.err.contains("cut off"), "{}", cut.err);
    // Nothing is appended to a log that does not verify.
    let refused = scratch.fak(&["run", "a.json", "--audit", "edited.jsonl"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("audit line 1: edited"), "{}", refused.err);
}

#[test]
fn a_journal_is_checked_and_a_tampered_one_refused() {
    let good = fak(&["journal", "verify", "examples/peer/journals/journal-a.json"]);
    assert_eq!(good.status, 0, "{}", good.err);
    let point = good.out.lines().find_map(|line| line.strip_prefix("checkpoint ")).unwrap();
    assert_eq!(
        fak(&["journal", "verify", "examples/peer/journals/journal-a.json", "--checkpoint", point]).status,
        0
    );
    for (name, said) in [
        ("journal-a-bad-digest", "digest: "),
        ("journal-a-bad-swapped", "entry 4, event.prev_event: "),
        ("journal-a-bad-title", "entry 3, record.rev: "),
    ] {
        let ran = fak(&["journal", "verify", &format!("examples/peer/journals/{name}.json")]);
        assert_eq!(ran.status, 1);
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    let shown = fak(&["journal", "show", "examples/peer/journals/journal-a.json", "--json"]);
    assert_eq!(shown.out.lines().count(), 12);
    assert_eq!(fak(&["journal", "verify", "no/such.json"]).status, 2);
}
