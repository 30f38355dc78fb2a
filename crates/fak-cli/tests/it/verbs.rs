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
    assert!(failed.out.ends_with("2 scenarios (4 acts): 1 passed, 1 failed\n"), "{}", failed.out);
    let unreadable = scratch.fak(&["run", "."]);
    assert_eq!(unreadable.status, 2);
    assert!(unreadable.out.ends_with("3 scenarios (4 acts): 1 passed, 1 failed, 1 could not be read\n"));
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
    assert_eq!(ran.out, "conflict: lanes \"docs\" and \"release\": one of them runs alone\n");
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

    assert_eq!(scratch.fak(&["audit", "show", "log.jsonl", "--agent", "levi"]).out, "0 of 2 entries\n");
    assert_eq!(scratch.fak(&["audit", "show", "log.jsonl", "--agent", "levi", "--json"]).out, "");

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
    assert!(refused.err.contains("fak: edited.jsonl: audit line 1: edited"), "{}", refused.err);
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
    let several = fak(&[
        "journal",
        "verify",
        "examples/peer/journals/journal-a.json",
        "no/such.json",
        "examples/peer/journals/journal-a-bad-digest.json",
        "--json",
    ]);
    assert_eq!(several.status, 2);
    let lines: Vec<Value> = several.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["verifies"], &lines[2]["verifies"]), (&true.into(), &false.into()));
    assert!(lines[1]["errors"][0]["file"] == "no/such.json" && several.err.is_empty(), "{}", several.out);
    let shown = fak(&["journal", "show", "examples/peer/journals/journal-a.json", "--json"]);
    assert_eq!(shown.out.lines().count(), 12);
    assert_eq!(fak(&["journal", "verify", "no/such.json"]).status, 2);
}

const RECORD: &str = r#"{
  "schema": "fak.shared-task.v1", "task_id": "task_demo",
  "rev": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
  "state": "working", "title": "first",
  "body_ref": {"kind": "cas", "digest": "sha256:7743ce348d9284d677a185f33295b92266cc435a5b5f775029b300066d26693a",
               "bytes": 5, "taint": "tainted", "scope": "fleet", "durability": "session"},
  "artifacts": [], "notes": [], "open_decisions": [],
  "updated_by": {"kind": "agent", "id": "planner"}, "updated_at": "2026-01-01T00:00:00Z"
}"#;

fn title(title: &str) -> String {
    format!(
        r#"{{"schema": "fak.shared-patch.v1", "task_id": "task_demo", "base_rev": "", "actor": {{"kind": "agent", "id": "planner"}},
            "scope": "fleet", "durability": "session", "ops": [{{"op": "replace", "path": "/title", "value": "{title}"}}], "message": "m"}}"#
    )
}

#[test]
fn a_record_in_a_file_is_patched_and_shown() {
    let scratch = Scratch::new("task");
    scratch
        .write("record.json", RECORD)
        .write("second.json", title("second"))
        .write("third.json", title("third"));
    assert_eq!(scratch.fak(&["task", "new", "record.json", "--journal", "j.json"]).status, 0);
    assert_eq!(scratch.fak(&["task", "new", "record.json", "--journal", "j.json"]).status, 2);
    let planner = ["--as", "planner", "--fleet", "f1"];
    let apply = |patch: &str, base: &str| {
        scratch.fak(&[&["task", "apply", "j.json", patch, "--base", base][..], &planner].concat())
    };
    let accepted = apply("second.json", "current");
    assert_eq!((accepted.status, accepted.out.as_str()), (0, "accepted, task_demo at revision 1\n"));
    let conflict = apply("third.json", "0");
    assert_eq!(conflict.status, 1);
    assert_eq!(
        conflict.out,
        "conflict STALE_BASE, task_demo at revision 1\n  at        /title\n  base      \"first\"\n  current   \"second\"\n  \
         proposed  \"third\"\n  next      rebase_or_human_decide\n"
    );
    let view = scratch.fak(&[&["task", "view", "j.json", "--json"][..], &planner].concat());
    let view: Value = serde_json::from_str(&view.out).unwrap();
    assert_eq!((&view["revision"], &view["record"]["title"]), (&1.into(), &"second".into()));
    let log = scratch.fak(&[&["task", "log", "j.json"][..], &planner].concat());
    assert!(log.out.ends_with("1 event, 0 hidden, the chain verifies\n"), "{}", log.out);
    // What is denied says for what of the patch.
    scratch.write("typo.json", title("x").replace("/title", "/titel"));
    let denied = apply("typo.json", "1");
    assert_eq!(denied.status, 1);
    assert!(
        denied.out.contains("  at        /ops/0/path: no such path, did you mean \"/title\"?"),
        "{}",
        denied.out
    );
    // Another's name, and a reader of another fleet, are refused by the kernel.
    let other = scratch.fak(&[
        "task",
        "apply",
        "j.json",
        "third.json",
        "--as",
        "runner",
        "--fleet",
        "f1",
        "--base",
        "1",
    ]);
    assert_eq!(other.status, 1);
    assert!(other.out.starts_with("deny TRUST_VIOLATION"), "{}", other.out);
    let foreign =
        scratch.fak(&["task", "view", "j.json", "--as", "x", "--fleet", "f2", "--store-fleet", "f1"]);
    assert_eq!((foreign.status, foreign.out.contains("second")), (1, false));
    assert_eq!(scratch.fak(&["journal", "verify", "j.json"]).status, 0);
    assert!(
        scratch.fak(&["journal", "load", "j.json"]).out.contains("task_demo at revision 1, second, working")
    );
    // A refused patch leaves the file as it was.
    assert_eq!(scratch.fak(&["journal", "show", "j.json"]).out.lines().count(), 1);
    // A body may be written as its text.
    scratch.write(
        "body.json",
        title("x").replace("/title", "/body_ref").replace("\"x\"", "{\"text\": \"hello\"}"),
    );
    assert_eq!(apply("body.json", "current").status, 0);
    let view = scratch.fak(&[&["task", "view", "j.json"][..], &planner].concat());
    assert!(view.out.contains("body      5 bytes, sha256:2cf24dba"), "{}", view.out);
}

#[test]
fn a_policy_is_checked_and_tried_on_scenarios() {
    let scratch = Scratch::new("policy");
    scratch
        .write("holds.json", HOLDS)
        .write("good.toml", "version = 1\n[[allow]]\ntool = \"ref.widen\"\n")
        .write(
            "deny.toml",
            "version = 1\n[[allow]]\ntool = \"*\"\n[[deny]]\ntool = \"ref.widen\"\nagent = \"a*\"\n",
        )
        .write("typo.toml", "version = 1\n[[allow]]\ntool = \"*\"\n[[deny]]\ntool = \"a2a.publsh\"\n")
        .write("key.toml", "version = 1\n[[deny]]\ntol = \"a2a.send\"\n");
    assert_eq!(scratch.fak(&["policy", "lint", "good.toml"]).status, 0);
    let typo = scratch.fak(&["policy", "lint", "typo.toml"]);
    assert_eq!(typo.status, 1);
    assert!(typo.out.contains("did you mean \"a2a.publish\""), "{}", typo.out);
    let key = scratch.fak(&["policy", "lint", "key.toml"]);
    assert_eq!(key.status, 2);
    assert!(
        key.err.contains("key.toml:3:1: deny[1].tol: unknown key \"tol\", did you mean \"tool\""),
        "{}",
        key.err
    );
    assert_eq!(scratch.fak(&["policy", "test", "good.toml", "holds.json"]).status, 0);
    let explained = scratch.fak(&["explain", "holds.json", "--step", "1", "--policy", "deny.toml"]);
    assert_eq!(explained.status, 0, "{}", explained.err);
    assert!(explained.out.contains("policy               deny POLICY_BLOCK"), "{}", explained.out);
    assert!(!scratch.fak(&["explain", "holds.json", "--step", "1"]).out.contains("POLICY_BLOCK"));
    let denied = scratch.fak(&["policy", "test", "deny.toml", "holds.json"]);
    assert_eq!(denied.status, 1);
    assert!(denied.out.contains("deny POLICY_BLOCK by policy"), "{}", denied.out);
}

#[test]
fn the_demo_goes_as_it_must() {
    let ran = fak(&["demo"]);
    assert_eq!(ran.status, 0, "{}", ran.out);
    for line in [
        "Point to point",
        "deny TRUST_VIOLATION by a2achan/gate at a2achan/private",
        "deny TRUST_VIOLATION by a2achan/gate at a2achan/quarantined",
        "deny DEFAULT_DENY by a2achan/gate at a2achan/no-send",
        "Session handoff",
        "Window handoff to oneself",
        "Publish and subscribe",
        "Correction",
        "sent 6, received 6, denied 5, held 0, dropped 0, skipped 1, dead 0, queued 0",
        "Every leg went as it must.",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    let report: Value = serde_json::from_str(&fak(&["demo", "--json"]).out).unwrap();
    assert_eq!(report["passed"], 1);
}

/// A body that cannot be shared stops its step; the line and the explanation say so.
#[test]
fn a_widening_that_is_refused_is_told_as_one() {
    let scratch = Scratch::new("unshared");
    scratch.write(
        "n.json",
        r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"fleet": "f1", "caps": ["a2a.send"]}}, "steps": [
            {"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x", "scope": "fleet"},
             "expect": {"verdict": "deny", "reason": "DEFAULT_DENY"}}]}"#,
    );
    for verb in [&["run", "n.json"][..], &["explain", "n.json"]] {
        let ran = scratch.fak(verb);
        assert!(ran.out.contains("its body is to be widened to fleet first (ref.widen)"), "{}", ran.out);
    }
    assert!(scratch.fak(&["explain", "n.json"]).out.contains("  refs                 deny DEFAULT_DENY"));
}

#[test]
fn a_step_is_explained_before_it_is_performed() {
    let ran = fak(&["explain", "examples/scenarios/send-09-declared-addressing.json", "--step", "1"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains("check: a name that nobody opened"), "{}", ran.out);
    assert_eq!(ran.out.lines().filter(|line| line.contains(" send ")).count(), 1);
    for bad in ["99", "0", "-1", "one", "1.5", ""] {
        let step = format!("--step={bad}");
        let beyond = fak(&["explain", "examples/scenarios/send-09-declared-addressing.json", &step]);
        let said = format!("fak: --step {bad:?}: expected the number of a step, 1 to 9\n");
        assert_eq!((beyond.status, beyond.err), (2, said));
    }
}

/// A log that comes from elsewhere, and a checkpoint as it was printed.
#[test]
fn a_log_is_read_from_standard_input_and_checked_against_what_was_printed() {
    let scratch = Scratch::new("stdin");
    scratch.write("a.json", HOLDS);
    assert_eq!(scratch.fak(&["run", "a.json", "--audit", "log.jsonl"]).status, 0);
    assert_eq!(scratch.fak(&["run", "a.json", "--audit", "log.jsonl"]).status, 0);
    let verified = scratch.fak(&["audit", "verify", "log.jsonl"]);
    assert!(verified.out.ends_with("a missing tail does not show without a checkpoint: --checkpoint\n"));
    let point = verified.out.lines().find_map(|line| line.strip_prefix("checkpoint ")).unwrap();
    let with = scratch.fak(&["audit", "verify", "log.jsonl", "--checkpoint", point]);
    assert_eq!((with.status, with.out.contains("missing tail")), (0, false), "{}", with.err);
    let log = std::fs::read_to_string(scratch.0.join("log.jsonl")).unwrap();
    scratch.write("cut.jsonl", log.split_inclusive('\n').next().unwrap());
    assert_eq!(scratch.fak(&["audit", "verify", "cut.jsonl", "--checkpoint", point]).status, 1);
    for verb in ["verify", "show"] {
        let file = std::fs::File::open(scratch.0.join("log.jsonl")).unwrap();
        let fak = std::process::Command::new(env!("CARGO_BIN_EXE_fak"))
            .args(["audit", verb, "-"])
            .stdin(file)
            .output()
            .unwrap();
        assert!(fak.status.success() && !fak.stdout.is_empty());
    }
}

#[test]
fn the_topology_of_a_scenario_is_drawn() {
    let scratch = Scratch::new("drawn");
    let scenario = HOLDS.replace(
        "\"steps\"",
        "\"topology\": {\"name\": \"wave\", \"edges\": [[\"alpha\", \"bravo\"]]}, \"steps\"",
    );
    scratch.write("s.json", scenario);
    scratch.write("t.json", "{\"name\": \"wave\", \"edges\": [[\"alpha\", \"bravo\"]]}");
    let (of_scenario, alone) =
        (scratch.fak(&["topo", "render", "s.json"]), scratch.fak(&["topo", "render", "t.json"]));
    assert_eq!((of_scenario.status, &of_scenario.out), (0, &alone.out), "{}", of_scenario.err);
}

#[test]
fn completions_offer_the_words_that_arguments_take() {
    for shell in ["bash", "zsh", "fish"] {
        let script = fak(&["completions", shell]).out;
        assert!(script.contains("TRUST_VIOLATION") && script.contains("quarantine"), "{shell}");
    }
    assert!(fak(&["completions", "bash"]).out.contains("a2achan/private"));
}

/// One step is one step to a program as well, with what a person reads as members.
#[test]
fn an_explanation_has_members() {
    let json = |args: &[&str]| serde_json::from_str::<Value>(&fak(args).out).unwrap();
    let file = "examples/scenarios/send-09-declared-addressing.json";
    let report = json(&["explain", file, "--step", "1", "--json"]);
    assert_eq!(report["steps"].as_array().unwrap().len(), 1);
    let explanation = &report["steps"][0]["explanation"];
    assert_eq!((&explanation["verdict"], &explanation["at"]), (&"deny".into(), &"a2achan/undeclared".into()));
    assert_eq!(explanation["rungs"][0]["by"], "a2achan/gate");
    assert!(explanation["next"].is_string() && explanation["refuses"].is_string());
    let word = json(&["explain", "send", "--json"]);
    assert!(word["members"].as_array().unwrap().contains(&"to".into()), "{word}");
    assert!(json(&["explain", "a2a.send", "--json"])["opens"].is_array());
    assert_eq!(json(&["explain", "comm/floor", "--json"])["expect"]["rung"], "comm/floor");
    assert!(json(&["explain", "--acts", "--json"]).as_array().unwrap().len() > 50);
}

/// What was answered are members, by the names of `expect`, of steps that pass as well.
#[test]
fn a_report_has_what_was_answered_as_members() {
    let file = "examples/incidents/i12-one-millisecond-two-grants.json";
    let report: Value = serde_json::from_str(&fak(&["run", file, "--json"]).out).unwrap();
    let steps = report["scenarios"][0]["steps"].as_array().unwrap();
    let leased = steps.iter().find(|step| step["act"] == "lease" && step["verdict"] == "allow").unwrap();
    assert_eq!((&leased["answers"]["fence"], &leased["rung"]), (&1.into(), &"lanes/floor".into()));
    let file = "examples/scenarios/recv-04-exactly-one-receiver.json";
    let report: Value = serde_json::from_str(&fak(&["run", file, "--json"]).out).unwrap();
    let steps = report["scenarios"][0]["steps"].as_array().unwrap();
    assert!(steps.iter().filter(|step| step["act"] == "recv").all(|step| step["rung"] == "a2achan/gate"));
}

/// A journal that is a link stays one, and what another link beside it leads to is not written over.
#[cfg(unix)]
#[test]
fn a_linked_journal_is_written_where_it_is() {
    let scratch = Scratch::new("links");
    scratch.write("record.json", RECORD).write("second.json", title("second")).write("other", "kept");
    assert_eq!(scratch.fak(&["task", "new", "record.json", "--journal", "real.json"]).status, 0);
    for (to, link) in [("real.json", "link.json"), ("other", "real.json.new")] {
        std::os::unix::fs::symlink(scratch.0.join(to), scratch.0.join(link)).unwrap();
    }
    let args = [
        "task",
        "apply",
        "link.json",
        "second.json",
        "--base",
        "current",
        "--as",
        "planner",
        "--fleet",
        "f1",
    ];
    let ran = scratch.fak(&args);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(scratch.0.join("link.json").is_symlink());
    assert_eq!(std::fs::read_to_string(scratch.0.join("other")).unwrap(), "kept");
    let shown = scratch.fak(&["journal", "load", "real.json"]);
    assert!(shown.out.contains("at revision 1"), "{}", shown.out);
}
