//! What somebody new meets with cells, records and several fleets: a cell in another scope, a store that serves nobody, an envelope
//! that lacks members.

use expect_test::expect;
use fak_scenario::{Performance, Reach, Scenario};

use crate::support::{TWO, check, hint, performed, said};

const CELLS: &str =
    r#""caps": ["space.read", "space.write", "a2a.send", "a2a.recv", "ref.widen", "sharedtask.write"]"#;

/// One key in two scopes is two cells: the hint is of the scope, and names nobody who has no part in the act.
#[test]
fn a_cell_in_another_scope_is_named() {
    let put = r#"{"do": "put", "by": "reader", "key": "k", "body": {"text": "x"}},"#;
    let fleets = |writer: &str| {
        format!(r#""reader": {{"fleet": "readers", {CELLS}}}, "writer": {{"fleet": "{writer}", {CELLS}}}"#)
    };
    let mut all = String::new();
    for agents in [fleets("others"), fleets("readers")] {
        for act in [
            r#""do": "cas", "key": "k", "version": 1, "body": {"text": "y"}"#,
            r#""do": "cas", "key": "k", "version": 1, "body": {"text": "y", "scope": "fleet"}"#,
            r#""do": "get", "key": "k""#,
            r#""do": "delete", "key": "k", "version": 1"#,
        ] {
            let step = format!(r#"{{"by": "reader", {act}}}"#);
            all.push_str(&hint(&agents, &format!("{put}{step}"), 2));
            all.push('\n');
        }
    }
    check(
        &all,
        &expect![[r#"
        the body's scope is "agent", that of the cell it is to go into "fleet": give the act "scope": "agent", or the body "scope": "fleet"
        step 1 puts "k" in the scope "agent", and this act is on the cell of that key in the scope "fleet", which is another: give the act "scope": "agent"
        step 1 puts "k" in the scope "agent", and this act is on the cell of that key in the scope "fleet", which is another: give the act "scope": "agent"
        step 1 puts "k" in the scope "agent", and this act is on the cell of that key in the scope "fleet", which is another: give the act "scope": "agent"
        the body's scope is "agent", that of the cell it is to go into "fleet": give the act "scope": "agent", or the body "scope": "fleet"
        step 1 puts "k" in the scope "agent", and this act is on the cell of that key in the scope "fleet", which is another: give the act "scope": "agent"
        step 1 puts "k" in the scope "agent", and this act is on the cell of that key in the scope "fleet", which is another: give the act "scope": "agent"
        step 1 puts "k" in the scope "agent", and this act is on the cell of that key in the scope "fleet", which is another: give the act "scope": "agent"
    "#]],
    );
    // A cell of that key in the right scope leaves nothing to say of the other.
    let both = format!(
        r#"{put}{}{}"#,
        put.replace("\"x\"", "\"x\", \"scope\": \"fleet\""),
        r#"{"do": "get", "by": "reader", "key": "k"}"#
    );
    assert_eq!(hint(&fleets("others"), &both, 3), "");
}

/// Two are named as of different fleets only if both take part.
#[test]
fn fleets_are_named_of_those_who_take_part() {
    let agents = format!(
        r#""alpha": {{"fleet": "red", {CELLS}}}, "bravo": {{"fleet": "blue", {CELLS}}}, "carol": {{"fleet": "green", {CELLS}}}"#
    );
    let send =
        r#"{"do": "send", "by": "carol", "to": "in_kernel:work", "body": {"text": "x", "scope": "fleet"}"#;
    let recv = r#"{"do": "recv", "by": "alpha", "at": "in_kernel:work"}"#;
    let said = hint(&agents, &format!("{send}}},{recv}"), 2);
    check(
        &said,
        &expect![[
            r#""alpha" is of fleet "red", "carol" is of fleet "green": what is shared with a fleet stays in it"#
        ]],
    );
    // A send to an open key is not refused; why, is said where it was expected to be.
    let denied = format!(r#"{send}, "expect": {{"verdict": "deny"}}}},{recv}"#);
    check(
        performed(&agents, &denied).steps[0].hint.as_deref().unwrap_or_default(),
        &expect![[
            r#"in_kernel:"work" is open: it has no known recipient when something is sent, so that "alpha" may not have it is told at its receive (a2achan/only-others); a channel that is bound, or a session or window of its own, refuses the send at once"#
        ]],
    );
}

/// A store that serves nobody is named where the merge refuses for it too.
#[test]
fn a_store_without_a_domain_is_named() {
    let agents = format!(r#""alpha": {{"fleet": "red", {CELLS}}}, "bravo": {{"fleet": "blue", {CELLS}}}"#);
    let create = r#"{"do": "create", "record": {
      "schema": "fak.shared-task.v1", "task_id": "task_notes", "state": "working", "title": "notes",
      "body_ref": {"text": "hello"}, "artifacts": [], "notes": [], "open_decisions": [],
      "updated_by": {"kind": "agent", "id": "alpha"}, "updated_at": "2026-01-01T00:00:00Z"}}"#;
    let by = create.replace("\"create\",", "\"create\", \"by\": \"alpha\",");
    let patch = r#"{"do": "patch", "by": "alpha", "patch": {
      "schema": "fak.shared-patch.v1", "task_id": "task_notes", "base_rev": "@0",
      "actor": {"kind": "agent", "id": "alpha"}, "scope": "fleet", "durability": "session",
      "ops": [{"op": "replace", "path": "/title", "value": "x"}], "message": "m"}}"#;
    for (steps, last) in [(by, 1), (format!("{create},{patch}"), 2)] {
        let report = performed(&agents, &steps);
        let step = &report.steps[last - 1];
        assert!(step.hint.as_deref().is_some_and(|hint| hint.contains("\"store\"")), "{step:?}");
    }
}

/// What a record or a patch lacks is said at once, with how it is written.
#[test]
fn what_an_envelope_lacks_is_said_at_once() {
    let steps = r#"{"do": "create", "record": {"task_id": "task_a", "state": "working", "title": "t",
      "body_ref": {"text": "x"}, "notes": [{"note_id": "n", "author": {"id": "alpha"}}], "open_decisions": []}},
{"do": "patch", "by": "alpha", "patch": {"task_id": "task_a", "base_rev": "@0", "mesage": "m",
      "ops": [{"op": "replace", "value": "x"}, {"op": "append", "path": "/open_decisions", "value": {"decision_id": "d"}}]}}"#;
    check(
        &said(steps),
        &expect![[r#"
        x.json:4:28: step 1 (create): record: missing members "schema": "fak.shared-task.v1", "artifacts": [], "updated_by": {"kind": "agent", "id": "…"}, "updated_at": "2026-01-01T00:00:00Z"
        x.json:5:44: step 1 (create): record/notes/0: missing members "kind": "comment", "body_ref": {"text": "…"}, "created_at": "2026-01-01T00:00:00Z"
        x.json:5:71: step 1 (create): record/notes/0/author: missing member "kind": "agent"
        x.json:6:41: step 2 (patch): patch: missing members "schema": "fak.shared-patch.v1", "actor": {"kind": "agent", "id": "…"}, "scope": "fleet", "durability": "session", "message": "…" (is "mesage" meant to be it?)
        x.json:7:15: step 2 (patch): patch/ops/0: missing member "path": "/notes"
        x.json:7:101: step 2 (patch): patch/ops/1/value: missing members "state": "open", "reason": "…""#]],
    );
    // A record that is to be refused is performed.
    let refused =
        r#"{"do": "create", "record": {"task_id": "task_a"}, "expect": {"ok": false, "error": "missing"}}"#;
    assert!(performed(TWO, refused).held());
}

/// A patch of a record that was not made follows from that.
#[test]
fn what_is_done_to_a_record_that_was_not_made_follows() {
    let agents = format!(r#""alpha": {{"fleet": "red", {CELLS}}}"#);
    let steps = r#"{"do": "create", "record": {
      "schema": "fak.shared-task.v1", "task_id": "task_notes", "state": "working", "title": "",
      "body_ref": {"text": "hello"}, "artifacts": [], "notes": [], "open_decisions": [],
      "updated_by": {"kind": "agent", "id": "alpha"}, "updated_at": "2026-01-01T00:00:00Z"}},
{"do": "patch", "by": "alpha", "patch": {
      "schema": "fak.shared-patch.v1", "task_id": "task_notes", "base_rev": "@0",
      "actor": {"kind": "agent", "id": "alpha"}, "scope": "fleet", "durability": "session",
      "ops": [{"op": "replace", "path": "/title", "value": "x"}], "message": "m"}}"#;
    let report = performed(&agents, steps);
    let follows: Vec<_> = report.steps.iter().map(|step| step.follows).collect();
    assert_eq!(follows, [None, Some(1)]);
}

/// A cell's conflict is no verdict.
#[test]
fn a_conflict_of_a_cell_is_a_member() {
    let step = r#"{"do": "cas", "by": "alpha", "key": "k", "version": 1, "body": {"text": "y"}, "expect": {"verdict": "W"}}"#;
    for word in ["conflict", "stale"] {
        let error = said(&step.replace('W', word));
        assert!(
            error.ends_with(
                r#"a conflict is no verdict of "cas", which is permitted: write "conflict": true"#
            ),
            "{error}"
        );
    }
}

/// Records of a file that the scenario names are looked at as those inside it: at load, each mistake with its place in that file.
#[test]
fn what_a_file_of_records_lacks_is_said_at_load() {
    let folder = std::env::temp_dir().join(format!("fak-scenario-tasks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"fleet": "f1", "caps": ["sharedtask.read"]}},
      "tasks": {"file": "tasks.json"}, "clok": "", "steps": []}"#;
    let whole = r#"{"schema": "fak.shared-task.v1", "task_id": "task_a", "state": "working", "title": "t",
      "body_ref": {"text": "x"}, "artifacts": [], "notes": [], "open_decisions": [],
      "updated_by": {"kind": "agent", "id": "alpha"}, "updated_at": "2026-01-01T00:00:00Z"}"#;
    let mut all = String::new();
    for tasks in [
        format!("[{{\"task_id\": \"task_b\", \"titel\": \"t\"}},\n 7,\n {}]", whole.replace("\"x\"", "7")),
        whole.to_owned(),
        "[".to_owned(),
        format!("[{whole},\n {}]", whole.replace("\"working\"", "7")),
        format!("[{whole},\n {whole}]"),
    ] {
        std::fs::write(folder.join("tasks.json"), tasks).unwrap();
        let text = if all.is_empty() { text.to_owned() } else { text.replace("\"clok\": \"\", ", "") };
        let error = Scenario::parse(text.as_bytes(), &folder.join("n.json"), Reach::Folder)
            .and_then(|scenario| scenario.perform(&Performance::default()))
            .unwrap_err();
        all.push_str(&error.to_string().replace(&folder.join("").display().to_string(), ""));
        all.push('\n');
    }
    std::fs::remove_dir_all(&folder).unwrap();
    check(
        &all,
        &expect![[r#"
        tasks.json:1:2: 0: missing members "schema": "fak.shared-task.v1", "state": "working", "title": "…" (is "titel" meant to be it?), "body_ref": {"text": "…"}, "artifacts": [], "notes": [], "open_decisions": [], "updated_by": {"kind": "agent", "id": "…"}, "updated_at": "2026-01-01T00:00:00Z"
        tasks.json:2:2: 1: expected an object, found a number
        tasks.json:3:2: 2: a body's "text" is a string, and stands for its "bytes": leave "bytes" out
        n.json:2:48: clok: unknown member "clok", did you mean "clock"?
        tasks.json:1:1: expected a list of records, even of one: [{…}]
        tasks.json:1:2: 0: the text ends where a value was expected
        tasks.json:4:1: 1/state: expected a string, found a number
        tasks.json:4:1: 1: a record "task_a" is there already
    "#]],
    );
}
