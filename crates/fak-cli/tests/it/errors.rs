//! Error messages, pinned: each says where, what was expected, and what to do next.

use expect_test::{Expect, expect};

use crate::Scratch;

fn check(scratch: &Scratch, args: &[&str], expected: &Expect) {
    let ran = scratch.fak(args);
    assert_eq!(ran.status, 2, "{args:?}: {}{}", ran.out, ran.err);
    expected.assert_eq(&ran.err);
}

#[test]
fn ten_errors() {
    let scratch = Scratch::new("errors");
    let step = |step: &str| {
        format!(
            "{{\"schema\": \"fak.scenario.v1\", \"name\": \"n\", \"agents\": {{\"alpha\": {{\"caps\": []}}}},\n\"steps\": [{step}]}}"
        )
    };
    scratch
        .write("boddy.json", step(r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "boddy": {"text": "x"}}"#))
        .write("sned.json", step(r#"{"do": "sned", "by": "alpha"}"#))
        .write("agent.json", step(r#"{"do": "who", "by": "alhpa"}"#))
        .write("type.json", step(r#"{"do": "tick", "ms": "100"}"#))
        .write("torn.json", "{\"schema\": \"fak.scenario.v1\",\n")
        .write("outside.json", "{\"schema\": \"fak.scenario.v1\", \"name\": \"n\", \"policy\": {\"file\": \"../p.toml\"}, \"steps\": []}")
        .write("lanes.toml", "[lanes]\nconcurrent = [\"docs\", 7]\n")
        .write("topo.json", "{\"name\": \"t\", \"edges\": [[\"a\", \"b\"], [\"b\", \"a\"]]}");
    check(
        &scratch,
        &["run", "boddy.json"],
        &expect![[r#"
            fak: boddy.json:2:71: step 1 (send): boddy: unknown member "boddy", did you mean "body"?
        "#]],
    );
    check(
        &scratch,
        &["run", "sned.json"],
        &expect![[r#"
        fak: sned.json:2:18: step 1: do: unknown act "sned", did you mean "send"?
    "#]],
    );
    check(
        &scratch,
        &["run", "agent.json"],
        &expect![[r#"
        fak: agent.json:2:31: step 1 (who): by: unknown agent "alhpa", did you mean "alpha"?
    "#]],
    );
    check(
        &scratch,
        &["run", "type.json"],
        &expect![[r#"
        fak: type.json:2:32: step 1 (tick): ms: expected an integer, found a string
    "#]],
    );
    check(
        &scratch,
        &["run", "torn.json"],
        &expect![[r#"
        fak: torn.json:2:1: the text ends where a member name was expected
    "#]],
    );
    check(
        &scratch,
        &["run", "outside.json"],
        &expect![[r#"
            fak: outside.json:1:63: policy/file: the path "../p.toml" climbs out of the scenario's folder; move the file there, or run with --allow-outside
        "#]],
    );
    check(
        &scratch,
        &["run", "missing.json"],
        &expect![[r#"
        fak: cannot read "missing.json": No such file or directory (os error 2)
    "#]],
    );
    check(
        &scratch,
        &["explain", "MISROUT"],
        &expect![[r#"
        fak: nothing is known of "MISROUT": did you mean "MISROUTE"?
    "#]],
    );
    check(
        &scratch,
        &["lanes", "lint", "lanes.toml"],
        &expect![[r#"
        fak: lanes.toml: line 2, key "lanes.concurrent": expected a string, found integer
    "#]],
    );
    check(
        &scratch,
        &["topo", "render", "topo.json"],
        &expect![[r#"
        fak: topo.json: the edges close a cycle: "a" -> "b" -> "a"
    "#]],
    );
    check(
        &scratch,
        &["rnu"],
        &expect![[r#"
            fak: unrecognized subcommand 'rnu'

              tip: a similar subcommand exists: 'run'

            Usage: fak [OPTIONS] [COMMAND]

            For more information, try '--help'.
        "#]],
    );
    check(
        &scratch,
        &["run", "boddy.json", "--alow-outside"],
        &expect![[r#"
            fak: unexpected argument '--alow-outside' found

              tip: a similar argument exists: '--allow-outside'

            Usage: fak run --allow-outside <FILE|DIR>...

            For more information, try '--help'.
        "#]],
    );
}

#[test]
fn what_a_newcomer_mistakes_is_answered() {
    let scratch = Scratch::new("mistaken");
    scratch
        .write("wave.json", r#"{"schema": "fak.scenario.v1", "name": "n", "steps": []}"#)
        .write("patch.json", r#"{"schema": "fak.shared-patch.v1", "task_id": "task_t", "base_rev": "@0"}"#)
        .write("record.json", RECORD)
        .write("there.json", "");
    let made = scratch.fak(&["task", "new", "record.json", "--journal", "j.json"]);
    assert_eq!(made.status, 0, "{}", made.err);
    check(
        &scratch,
        &["topo", "render", "wave.json"],
        &expect![[r#"
            fak: wave.json: this is a scenario without a "topology"
        "#]],
    );
    check(
        &scratch,
        &["task", "new", "record.json", "--journal", "there.json"],
        &expect![[r#"
        fak: there.json: is there already, and is not written over: name another file
    "#]],
    );
    check(
        &scratch,
        &["task", "apply", "j.json", "patch.json", "--as", "planner"],
        &expect![[r#"
        fak: patch.json: line 1, column 68, at "/base_rev": expected "sha256:" and at least one character; "" will do if --base is given
    "#]],
    );
    check(
        &scratch,
        &["explain", "MISROUTE", "--policy", "p.toml"],
        &expect![[r#"
            fak: --policy is for a scenario, and "MISROUTE" is no file
        "#]],
    );
    check(
        &scratch,
        &["explain", "a2achan/gat"],
        &expect![[r#"
            fak: nothing is known of "a2achan/gat": did you mean "a2achan/gate"?
        "#]],
    );
}

#[test]
fn a_reader_that_is_refused_is_told_the_check() {
    let scratch = Scratch::new("refused");
    scratch.write("record.json", RECORD);
    assert_eq!(scratch.fak(&["task", "new", "record.json", "--journal", "j.json"]).status, 0);
    let refused = scratch.fak(&["task", "view", "j.json", "--as", "runner"]);
    assert_eq!(refused.status, 1);
    assert!(refused.out.contains("refuses: an act by a principal of neither"), "{}", refused.out);
}

#[test]
fn the_outcome_of_a_merge_is_explained() {
    let ran = Scratch::new("merge").fak(&["explain", "stale_base"]);
    assert_eq!(ran.status, 0);
    expect![[r#"
        STALE_BASE (a merge's outcome, conflict)
          means: what it replaces has changed since its base_rev, or the task never had that revision
          next:  compare base, current and proposed value, and propose again on the current revision
    "#]]
    .assert_eq(&ran.out);
}

const RECORD: &str = r#"{"schema": "fak.shared-task.v1", "task_id": "task_t", "state": "working", "title": "t",
  "body_ref": {"kind": "cas", "bytes": 5, "taint": "tainted", "scope": "fleet", "durability": "session",
    "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
  "artifacts": [], "notes": [], "open_decisions": [],
  "updated_by": {"kind": "agent", "id": "planner"}, "updated_at": "2026-01-01T00:00:00Z"}"#;

/// An option that is another verb's, that is none, or whose value is none: each says what is expected.
#[test]
fn what_an_option_is_and_takes_is_said() {
    let scratch = Scratch::new("options");
    let mut said = String::new();
    for args in [
        &["run", "a.json", "--step", "1"][..],
        &["run", "a.json", "--loud"],
        &["explain", "a.json", "1"],
        &["explain", "a.json", "-s", "1"],
        &["task", "apply", "j.json", "p.json", "--as", "x", "--base", "one"],
        &["journal", "verify", "j.json", "--checkpoint", "12"],
        &["audit", "show", "a.jsonl", "--since", "yesterday"],
        &["audit", "show", "a.jsonl", "--verdict", "denied"],
    ] {
        let ran = scratch.fak(args);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{args:?}");
        let told = ran.err.lines().filter(|line| line.starts_with("fak: ") || line.contains("tip: "));
        said.extend(told.map(|line| format!("{}\n", line.trim_start_matches("fak: "))));
    }
    expect![[r#"
        unexpected argument '--step' found
          tip: --step is an option of `fak explain`
        unexpected argument '--loud' found
          tip: the options of `fak run`: --allow-outside, --audit, --quiet, --json
        unexpected argument '1' found
          tip: one step of a scenario is --step 1
        unexpected argument '-s' found
          tip: the options of `fak explain`: --checks, --acts, --step, --policy, --allow-outside, --json
        invalid value 'one' for '--base <REVISION>': expected "current", or the number of a revision: 0 for the record as it was made
        invalid value '12' for '--checkpoint <REVISION:HEAD>': expected REVISION:HEAD, such as 12:sha256:…, as verify prints it
        invalid value 'yesterday' for '--since <TIME>': not a time: expected RFC 3339 between 1970 and 9999, such as 2026-01-01T00:00:00Z
        invalid value 'denied' for '--verdict <VERDICT>': unknown verdict, did you mean "deny"?
    "#]].assert_eq(&said);
}

/// §8: a pipe has the name of a file, and would keep its reader waiting for ever.
#[cfg(unix)]
#[test]
fn no_pipe_keeps_a_verb_waiting() {
    let scratch = Scratch::new("pipes");
    let scenario = |policy: &str| {
        format!(
            r#"{{"schema": "fak.scenario.v1", "name": "n", {policy} "agents": {{"a": {{"fleet": "f", "caps": ["a2a.send"]}}}},
            "steps": [{{"do": "send", "by": "a", "to": "in_kernel:w", "body": {{"text": "x", "scope": "agent"}}, "expect": {{"verdict": "deny"}}}}]}}"#
        )
    };
    scratch.write("good.json", scenario(""));
    let made = std::process::Command::new("mkfifo").arg(scratch.0.join("pipe.json")).status().unwrap();
    assert!(made.success());
    let ran = scratch.fak(&["run", "-q", "."]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    for (args, says) in [
        (vec!["run", "names.json"], "expected a regular file"),
        (vec!["run", "good.json", "--audit", "pipe.json"], "expected a regular file"),
    ] {
        scratch.write("names.json", scenario(r#""policy": {"file": "pipe.json"},"#));
        let ran = scratch.fak(&args);
        assert_eq!(ran.status, 2, "{args:?}");
        assert!(ran.err.contains(says), "{args:?}: {}", ran.err);
    }
    // Somebody may well write into one; what is wrong with that is said, and it is not asked again.
    for args in
        [&["run", "pipe.json"][..], &["policy", "lint", "pipe.json"], &["journal", "verify", "pipe.json"]]
    {
        let pipe = scratch.0.join("pipe.json");
        let writer = std::thread::spawn(move || std::fs::write(pipe, "nonsense").unwrap());
        assert_ne!(scratch.fak(args).status, 0, "{args:?}");
        writer.join().unwrap();
    }
}

/// §8: what is wrong is `errors` to a program, whatever verb it was, on standard output alone.
#[test]
fn every_failure_is_json_for_programs() {
    let scratch = Scratch::new("json-errors");
    scratch
        .write("topo.json", "{\"name\": \"t\", \"edges\": [[\"a\", \"b\"], [\"b\", \"a\"]]}")
        .write("lanes.toml", "[lanes]\nconcurrent = [\"docs\"]\n")
        .write("bad.toml", "version = 1\n[[alow]]\ntool = \"*\"\n")
        .write("record.json", RECORD)
        .write("there.json", "");
    for args in [
        &["run", "nosuch.json"][..],
        &["explain", "NOPE"],
        &["explain", "topo.json"],
        &["audit", "verify", "nosuch"],
        &["audit", "show", "nosuch"],
        &["policy", "lint", "bad.toml"],
        &["policy", "test", "nosuch.toml", "s.json"],
        &["lanes", "lint", "nosuch.toml"],
        &["lanes", "check", "lanes.toml", "--lane", "dosc"],
        &["topo", "render", "topo.json"],
        &["task", "new", "record.json", "--journal", "there.json"],
        &["task", "view", "nosuch", "--as", "x"],
        &["journal", "verify", "nosuch"],
        &["journal", "load", "nosuch"],
        &["journal", "show", "there.json"],
        &["rnu"],
        &["run"],
        &["topo"],
        &["run", "--loud"],
        &["audit", "show", "x", "--verdict", "denied"],
        &["explain", "MISROUTE", "--step", "1"],
    ] {
        let ran = scratch.fak(&[args, &["--json"]].concat());
        assert_eq!((ran.status, ran.err.as_str()), (2, ""), "{args:?}");
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let message = json["errors"][0]["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains("Usage:"), "{args:?}: {message}");
    }
    let place = scratch.fak(&["policy", "lint", "bad.toml", "--json"]).out;
    let place: serde_json::Value = serde_json::from_str(&place).unwrap();
    assert_eq!((&place["errors"][0]["file"], &place["errors"][0]["line"]), (&"bad.toml".into(), &2.into()));
    // What cannot be written is no verdict.
    #[cfg(target_os = "linux")]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran =
            std::process::Command::new(env!("CARGO_BIN_EXE_fak")).arg("demo").stdout(full).output().unwrap();
        assert_eq!(ran.status.code(), Some(2));
    }
}
