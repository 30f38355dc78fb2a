//! What somebody new does with `fak`: gives a verb the wrong file, asks about a word it met, begins outside a checkout, makes
//! many mistakes at once.

use expect_test::expect;
use serde_json::Value;

use crate::{Scratch, fak, root};

const TWO_MISTAKES: &str = r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"capabilities": []}},
"steps": [{"do": "send", "by": "alhpa", "to": "in_kernel:x", "body": {"text": "x"}}]}"#;

const FAILS: &str = r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"fleet": "f1", "caps": ["a2a.recv", "ref.widen"]}},
"steps": [
  {"do": "who", "by": "alpha"},
  {"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x", "scope": "fleet"}},
  {"do": "recv", "by": "alpha", "at": "in_kernel:x", "expect": {"text": "x"}}
]}"#;

#[test]
fn every_mistake_of_a_file_is_told_in_text_and_json() {
    let scratch = Scratch::new("mistakes");
    scratch.write("two.json", TWO_MISTAKES);
    let told = expect![[r#"
        fak: two.json:1:81: agents/alpha/capabilities: unknown member "capabilities", did you mean "caps"?
        fak: two.json:2:32: step 1 (send): by: unknown agent "alhpa", did you mean "alpha"?
    "#]];
    for args in [&["run", "two.json"][..], &["explain", "two.json"]] {
        let ran = scratch.fak(args);
        assert_eq!(ran.status, 2);
        told.assert_eq(&ran.err);
    }
    let ran = scratch.fak(&["run", "two.json", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.status, &report["unreadable"]), (2, &1.into()));
    let errors = report["errors"].as_array().unwrap();
    let places: Vec<_> = errors.iter().map(|error| (&error["line"], &error["member"])).collect();
    assert_eq!(places, [(&1.into(), &"agents/alpha/capabilities".into()), (&2.into(), &"by".into())]);
}

#[test]
fn a_failed_run_says_what_follows_what_to_look_at_and_what_to_ask() {
    let scratch = Scratch::new("fails");
    scratch.write("fails.json", FAILS);
    let ran = scratch.fak(&["run", "fails.json"]);
    assert_eq!(ran.status, 1);
    expect![[r#"
        n  fails.json
           1 who                alpha      -                        allow  alpha
           2 send               alpha      in_kernel:"x"            deny DEFAULT_DENY by a2achan/gate at a2achan/no-send, lacks a2a.send
             FAIL fails.json: step 2 (line 4): expected verdict "allow", as the step has no "expect", got "deny"
             hint: "alpha" lacks "a2a.send": add it to its "caps" if it is to do this
           3 recv               alpha      in_kernel:"x"            empty by a2achan/gate
             FAIL fails.json: step 3 (line 5): expected text "x", got nothing (perhaps only because step 2 failed)
        1 scenario (3 acts): failed
        fak: to ask why that act was decided so: fak explain fails.json --step 2
    "#]].assert_eq(&(ran.out + &ran.err));
    let ran = scratch.fak(&["run", "fails.json", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["scenarios"][0]["steps"][2]["follows"], 2);
    assert!(report["scenarios"][0]["steps"][1]["hint"].as_str().unwrap().contains("a2a.send"));
}

#[test]
fn a_file_of_another_kind_is_recognised() {
    let scratch = Scratch::new("kinds");
    let journal = std::fs::read(root().join("examples/peer/journals/journal-a.json")).unwrap();
    scratch.write("s.json", FAILS).write("j.json", journal);
    scratch
        .write("p.toml", "version = 1\n\n[[allow]]\ntool = \"*\"\n")
        .write("l.toml", "[lanes]\nconcurrent = [\"docs\"]\n")
        .write("t.json", "{\"name\": \"t\", \"edges\": [[\"a\", \"b\"]]}")
        .write("patch.json", "{\"schema\": \"fak.shared-patch.v1\", \"ops\": []}");
    assert_eq!(scratch.fak(&["run", "s.json", "--audit", "a.jsonl"]).status, 1);
    let report = scratch.fak(&["run", "s.json", "--json"]).out;
    scratch.write("r.json", report);
    let mut said = String::new();
    for args in [
        &["audit", "verify", "j.json"][..],
        &["audit", "show", "j.json"],
        &["audit", "verify", "s.json"],
        &["journal", "verify", "a.jsonl"],
        &["journal", "show", "a.jsonl"],
        &["journal", "load", "a.jsonl"],
        &["run", "a.jsonl"],
        &["run", "j.json"],
        &["run", "p.toml"],
        &["run", "r.json"],
        &["explain", "t.json"],
        &["policy", "lint", "l.toml"],
        &["policy", "lint", "s.json"],
        &["lanes", "lint", "p.toml"],
        &["topo", "render", "j.json"],
        &["task", "view", "a.jsonl", "--as", "x"],
        &["task", "new", "patch.json", "--journal", "new.json"],
    ] {
        let ran = scratch.fak(args);
        assert_eq!(ran.status, 2, "{args:?}: {}{}", ran.out, ran.err);
        said.push_str(&ran.err);
    }
    expect![[r#"
        fak: j.json: this is the journal of a shared record, not an audit log: fak journal verify j.json
        fak: j.json: this is the journal of a shared record, not an audit log: fak journal verify j.json
        fak: s.json: this is a scenario, not an audit log: fak run s.json
        fak: a.jsonl: this is an audit log, not the journal of a shared record: fak audit verify a.jsonl
        fak: a.jsonl: this is an audit log, not the journal of a shared record: fak audit verify a.jsonl
        fak: a.jsonl: this is an audit log, not the journal of a shared record: fak audit verify a.jsonl
        fak: a.jsonl: this is an audit log, not a scenario: fak audit verify a.jsonl
        fak: j.json: this is the journal of a shared record, not a scenario: fak journal verify j.json
        fak: p.toml: this is a policy, not a scenario: fak policy lint p.toml
        fak: r.json: this is the report of a run, not a scenario
        fak: t.json: this is a topology, not a scenario: fak topo render t.json
        fak: l.toml: this is a lane table, not a policy: fak lanes lint l.toml
        fak: s.json: this is a scenario, not a policy: fak run s.json
        fak: p.toml: this is a policy, not a lane table: fak policy lint p.toml
        fak: j.json: this is the journal of a shared record, not a topology: fak journal verify j.json
        fak: a.jsonl: this is an audit log, not the journal of a shared record: fak audit verify a.jsonl
        fak: patch.json: this is a patch of a shared record, not a shared record: fak task apply JOURNAL patch.json --as ID
    "#]].assert_eq(&said);
    // A log or a journal that is one, and does not verify, is not taken for something else.
    let log = std::fs::read_to_string(scratch.0.join("a.jsonl")).unwrap();
    scratch.write("edited.jsonl", log.replacen("alpha", "omega", 1));
    let edited = scratch.fak(&["audit", "verify", "edited.jsonl"]);
    assert_eq!((edited.status, edited.err.contains("edited.jsonl:1: edited")), (1, true), "{}", edited.err);
    scratch.write("torn.jsonl", log.split_at(log.len() / 2).0);
    assert_eq!(scratch.fak(&["audit", "verify", "torn.jsonl"]).status, 1);
}

#[test]
fn a_word_that_is_met_is_explained() {
    let mut said = String::new();
    for word in
        ["send", "a2achan/gate", "a2a.send", "a2a.publish", "quarantine", "comm/absent", "agenttopo/no-edge"]
    {
        let ran = fak(&["explain", word]);
        assert_eq!(ran.status, 0, "{word}: {}", ran.err);
        said.push_str(&ran.out);
        let json = fak(&["explain", word, "--json"]);
        serde_json::from_str::<Value>(&json.out).unwrap();
    }
    for word in ["sned", "a2a.sned", "private", "receive", "zebra"] {
        let ran = fak(&["explain", word]);
        assert_eq!(ran.status, 2, "{word}");
        said.push_str(&ran.err);
    }
    expect![[r#"
        send (an act of scenarios)
          members: by, to, body, key, ttl_ms
          expect:  verdict, reason, rung, at, retry_after
        a2achan/gate (a rung, as it stands after "by")
          decides: channels: sending, receiving, publishing, requests
          expect:  "rung": "a2achan/gate"
        a2a.send (a capability)
          opens:   a2a.send, a2a.publish, a2a.request, a2a.reply, a2a.status, a2a.correct, a2a.ack, a2a.compact, comm.arrive, comm.depart
          agents:  "caps": ["a2a.send"]
        a2a.publish (a tool, as policies name it)
          needs:   the capability a2a.send
        quarantine (a verdict)
          means:   what was to be handed over is held for forensics, and did not reach the receiver
          expect:  "verdict": "quarantine"
        comm/absent (protocol §6.3)
          refuses: handing over to a member that is not attached
          next:    attach the member, or make a group without it
        agenttopo/no-edge (protocol §6.9)
          refuses: a hand-over between members without an edge
          next:    hand over along a declared edge, or have the host declare one from the sender to the recipient
        fak: nothing is known of "sned": did you mean "send"?
        fak: nothing is known of "a2a.sned": did you mean "a2a.send"?
        fak: nothing is known of "private": did you mean "a2achan/private"?
        fak: nothing is known of "receive": did you mean "recv"?
        fak: nothing is known of "zebra": give a reason, a check, an act, a capability or a scenario file; `fak explain` lists the reasons, `fak explain --checks` the checks, `fak explain --acts` the acts
    "#]].assert_eq(&said);
}

/// Only what is there is suggested.
#[test]
fn outside_a_checkout_no_example_is_suggested() {
    assert!(fak(&[]).out.contains("fak run examples/scenarios"));
    let outside = Scratch::new("outside").fak(&[]);
    assert!(!outside.out.contains("examples/"), "{}", outside.out);
    for verb in [&["run", "--help"][..], &["lanes", "lint", "--help"], &["lanes", "check", "--help"]] {
        assert!(!fak(verb).out.contains("examples/"), "{verb:?}");
    }
}

#[test]
fn a_file_or_a_verb_that_is_not_there_has_a_near_one() {
    let scratch = Scratch::new("near");
    scratch.write("mine.json", FAILS);
    let mut said = String::new();
    for args in [
        &["run", "mine.josn"][..],
        &["explain", "mine.josn"],
        &["audit", "verify", "mine.jsn"],
        &["mine.json"],
        &["validate", "mine.json"],
        &["lint", "mine.json"],
    ] {
        let ran = scratch.fak(args);
        assert_eq!(ran.status, 2, "{args:?}");
        said.push_str(&ran.err.lines().take(3).collect::<Vec<_>>().join("\n"));
        said.push('\n');
    }
    expect![[r#"
        fak: mine.josn: is not there; did you mean "mine.json"?
        fak: nothing is known of "mine.josn": did you mean the file "mine.json"?
        fak: mine.jsn: is not there; did you mean "mine.json"?
        fak: unrecognized subcommand 'mine.json'

          tip: a similar subcommand exists: 'run mine.json'
        fak: unrecognized subcommand 'validate'

          tip: a similar subcommand exists: 'run'
        fak: unrecognized subcommand 'lint'

          tip: a similar subcommand exists: 'policy lint'
    "#]]
    .assert_eq(&said);
}

const TASK: &str = r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"fleet": "f1", "caps": ["sharedtask.write"]}},
"steps": [
  {"do": "create", "record": {"schema": "fak.shared-task.v1", "task_id": "task_a", "state": "working", "title": "t",
    "body_ref": {"text": "x"}, "artifacts": [], "notes": [], "open_decisions": [],
    "updated_by": {"kind": "agent", "id": "alpha"}, "updated_at": "2026-01-01T00:00:00Z"}},
  {"do": "patch", "by": "alpha", "patch": {"schema": "fak.shared-patch.v1", "task_id": "task_a", "base_rev": "@7",
    "actor": {"kind": "agent", "id": "alpha"}, "scope": "fleet", "durability": "session",
    "ops": [{"op": "replace", "path": "/title", "value": "u"}], "message": "m"}}
]}"#;

/// `fak explain FILE --step N` is offered where it has something to say.
#[test]
fn what_cannot_be_explained_is_not_to_be_asked() {
    let scratch = Scratch::new("ask");
    scratch
        .write("merge.json", TASK)
        .write("made.json", TASK.replacen("\"title\": \"t\"", "\"title\": \"\"", 1));
    let mut said = String::new();
    for file in ["merge.json", "made.json"] {
        let ran = scratch.fak(&["run", file]);
        assert_eq!(ran.status, 1, "{}", ran.out);
        said.push_str(&format!("{file}: {}\n", ran.err.trim_end()));
    }
    expect![[r#"
        merge.json: fak: every rung permitted that act, and the merge did not accept it; what that means: fak explain STALE_BASE
        made.json: 
    "#]].assert_eq(&said);
}

#[test]
fn a_slip_in_an_argument_is_answered_with_what_was_meant() {
    let scratch = Scratch::new("slips");
    scratch.write("s.json", FAILS).write("team.toml", "version = 1\n");
    assert_eq!(scratch.fak(&["run", "s.json", "--audit", "a.jsonl"]).status, 1);
    let mut said = String::new();
    for args in [
        &["audit", "show", "a.jsonl", "--reason", "DEFAULT_DENNY"][..],
        &["audit", "show", "a.jsonl", "--reason", "zebra"],
        &["audit", "show", "a.jsonl", "--verdict", "denied"],
        &["explain", "s.json", "--step", "one"],
        &["explain", "s.json", "--policy", "tem.toml"],
        &["audit", "verify", "a.log"],
        &["policy", "lint", "tem.toml"],
        &["policy", "test", "tem.toml", "s.json"],
        &["journal", "verify", "t.json"],
        &["task", "view", "t.json", "--as", "x"],
        &["run", "s.json", "--audit", "nowhere/a.jsonl"],
        &["run", "s.json", "--audit", "s.json"],
    ] {
        let ran = scratch.fak(args);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{args:?}");
        said.push_str(ran.err.lines().next().unwrap());
        said.push('\n');
    }
    expect![[r#"
        fak: invalid value 'DEFAULT_DENNY' for '--reason <REASON>': unknown reason, did you mean "DEFAULT_DENY"?
        fak: invalid value 'zebra' for '--reason <REASON>': unknown reason, expected one of DEFAULT_DENY, POLICY_BLOCK, SELF_MODIFY, LEASE_HELD, TRUST_VIOLATION, MALFORMED, MISROUTE, RATE_LIMITED, SECRET_EXFIL, UNWITNESSED, OVERSIZE, UNKNOWN_TOOL
        fak: invalid value 'denied' for '--verdict <VERDICT>': unknown verdict, did you mean "deny"?
        fak: --step "one": expected the number of a step, 1 to 3
        fak: tem.toml: is not there; did you mean "team.toml"?
        fak: a.log: is not there; did you mean "a.jsonl"?
        fak: tem.toml: is not there; did you mean "team.toml"?
        fak: tem.toml: is not there; did you mean "team.toml"?
        fak: cannot read "t.json": No such file or directory (os error 2)
        fak: cannot read "t.json": No such file or directory (os error 2)
        fak: nowhere/a.jsonl: cannot write the audit log: No such file or directory (os error 2)
        fak: s.json: this is a scenario, not an audit log: fak run s.json
    "#]].assert_eq(&said);
    // In any case, as `explain` takes it.
    let lower = scratch.fak(&["audit", "show", "a.jsonl", "--reason", "default_deny", "--verdict", "DENY"]);
    let upper = scratch.fak(&["audit", "show", "a.jsonl", "--reason", "DEFAULT_DENY", "--verdict", "deny"]);
    assert_eq!((lower.status, &lower.out), (0, &upper.out));
    assert_eq!(upper.out.lines().count(), 1);
}

#[test]
fn words_of_the_protocol_and_of_two_meanings_are_explained() {
    let mut said = String::new();
    for word in [
        "taint",
        "tainted",
        "trusted",
        "quarantined",
        "scope",
        "fleet",
        "tenant",
        "space/cells",
        "patch",
        "create",
    ] {
        let ran = fak(&["explain", word]);
        assert_eq!(ran.status, 0, "{word}: {}", ran.err);
        said.push_str(&ran.out);
        let json = fak(&["explain", word, "--json"]);
        serde_json::from_str::<Value>(&json.out).unwrap();
    }
    expect![[r#"
        taint (a word of the protocol)
          means:   how far a body is to be believed: trusted, tainted or quarantined. A new body is tainted; what is made of several has the worst of theirs. Only ref.trust lowers it, from tainted to trusted, with a confirmed witness
          clause:  §2.2
        tainted (a word of the protocol)
          means:   the taint of a body that nobody has confirmed, which every new one is: it may be sent, and is to be treated as data
          clause:  §2.2
        trusted (a word of the protocol)
          means:   the best taint: a witness has confirmed the body, and its owner or a human has trusted it (ref.trust)
          clause:  §2.2, §2.4
        quarantined (a word of the protocol)
          means:   the worst taint: the body flows to nobody and cannot be widened; forensics.read lists and reads what is held
          clause:  §2.2, §2.4
          verdict: a merge: the patch brings something quarantined
        scope (a word of the protocol)
          means:   who may read a body: agent (its owner alone, the default), fleet or tenant (whoever is of the owner's), and of records public. Its owner widens it, from agent to fleet or tenant (ref.widen)
          clause:  §2.2, §2.4
        fleet (a word of the protocol)
          means:   agents that work together. A principal has one or none; a body of scope fleet is read by those of its owner's fleet, whatever their tenant
          clause:  §2.3, §2.4
        tenant (a word of the protocol)
          means:   whom agents work for. A principal has one or none; a body of scope tenant is read by those of its owner's tenant, whatever their fleet: neither contains the other
          clause:  §2.3, §2.4
        space/cells (protocol §4.12)
          refuses: more cells than there may be
          next:    delete cells that are no longer needed
        space/cells (a rung, as it stands after "by")
          decides: cells: what the space allows
          expect:  "rung": "space/cells"
        patch (an act of scenarios)
          members: by, patch, key, save
          expect:  act, verdict, reason, rung, at, conflict, revision, decision
          patch:   {"schema": "fak.shared-patch.v1", "task_id": "task_…", "base_rev": "@current", "actor": {"kind": "agent", "id": "…"}, "scope": "fleet", "durability": "session", "ops": […], "message": "…"}
          told:    in docs/scenarios.md under "A shared task", and in §5.1 and §5.3
        create (an act of scenarios)
          members: by, record
          expect:  verdict, reason, rung, at, act, ok, error
          record:  {"schema": "fak.shared-task.v1", "task_id": "task_…", "state": "working", "title": "…", "body_ref": {"text": "…"}, "artifacts": [], "notes": [], "open_decisions": [], "updated_by": {"kind": "agent", "id": "…"}, "updated_at": "2026-01-01T00:00:00Z"}
          told:    in docs/scenarios.md under "A shared task", and in §5.1 and §5.3
    "#]].assert_eq(&said);
}

#[test]
fn the_demo_begins_with_who_is_there() {
    let head: Vec<String> = fak(&["demo"]).out.lines().take(6).map(str::to_owned).collect();
    expect![[r#"
        Who is there:
          alpha      fleet f1, a2a.send, a2a.recv, ref.widen
          bravo      fleet f1, a2a.send, a2a.recv, ref.widen
          charlie    fleet f2, a2a.send, a2a.recv, ref.widen
          mute       fleet f1, ref.widen
    "#]]
    .assert_eq(&head.join("\n"));
}

#[test]
fn what_stands_in_a_refusal_or_a_scenario_is_a_word_to_ask() {
    let known = [
        "wait",
        "retryable",
        "escalate",
        "terminal",
        "fence",
        "timeout",
        "lane",
        "in_kernel",
        "session",
        "window",
    ];
    for word in known.into_iter().chain(["patch_accepted"]) {
        let ran = fak(&["explain", word]);
        assert!(ran.status == 0 && ran.out.contains("means:"), "{word}: {}", ran.err);
    }
    // A layer has its checks.
    let lanes = fak(&["explain", "lanes"]).out;
    assert!(lanes.contains("lanes/gone") && !lanes.contains("a2achan/"), "{lanes}");
    assert!(fak(&["explain", "mine/narrow"]).err.contains("of your own program is not known here"));
}

/// As many as there are, each with its place: none hides another.
#[test]
fn everything_that_is_wrong_with_a_policy_is_told() {
    let scratch = Scratch::new("policy-faults");
    scratch.write(
        "p.toml",
        "version = 1\n[[alow]]\ntool = \"*\"\n[[deny]]\ntol = \"a2a.send\"\nagent = 3\nreason = \"DEFAULT_DENNY\"\n",
    );
    let ran = scratch.fak(&["policy", "lint", "p.toml"]);
    assert_eq!(ran.status, 2);
    let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("fak: ")).collect();
    expect![[r#"
        fak: p.toml:2:3: alow: unknown key "alow", did you mean "allow"?
        fak: p.toml:5:1: deny[1].tol: unknown key "tol", did you mean "tool"?
        fak: p.toml:6:9: deny[1].agent: expected a string, found an integer
        fak: p.toml:7:10: deny[1].reason: unknown reason "DEFAULT_DENNY", did you mean "DEFAULT_DENY"?"#]]
    .assert_eq(&told.join("\n"));
    let json: Value =
        serde_json::from_str(&scratch.fak(&["policy", "lint", "p.toml", "--json"]).out).unwrap();
    let members: Vec<_> = json["errors"].as_array().unwrap().iter().map(|error| &error["member"]).collect();
    assert_eq!(members, ["alow", "deny[1].tol", "deny[1].agent", "deny[1].reason"]);
}
