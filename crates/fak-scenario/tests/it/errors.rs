//! Scenarios that cannot be read: each error says where, what, and what was expected (§8, I19).

use std::path::Path;

use expect_test::{Expect, expect};
use fak_scenario::{Reach, Scenario};

/// The error of a scenario with these steps and two agents.
fn steps(steps: &str) -> String {
    whole(&format!(
        "{{\n  \"schema\": \"fak.scenario.v1\",\n  \"name\": \"n\",\n  \"agents\": {{\"alpha\": {{\"caps\": []}}, \"bravo\": {{\"caps\": []}}}},\n  \
         \"steps\": [\n    {steps}\n  ]\n}}"
    ))
}

fn whole(text: &str) -> String {
    match Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder) {
        Ok(_) => "read".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn check(got: &str, expected: &Expect) {
    expected.assert_eq(got);
}

#[test]
fn an_unknown_member_is_named_with_the_nearest() {
    check(
        &steps(r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "boddy": {"text": "x"}}"#),
        &expect![[r#"x.json:6:65: step 1 (send): boddy: unknown member "boddy", did you mean "body"?"#]],
    );
    check(
        &steps(r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"txt": "x"}}"#),
        &expect![[r#"x.json:6:72: step 1 (send): body/txt: unknown member "txt", did you mean "text"?"#]],
    );
    check(
        &steps(r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": "x"}"#),
        &expect![[
            r#"x.json:6:64: step 1 (send): body: a body is an object: {"text": …}, with "scope" if it is to be shared"#
        ]],
    );
    check(
        &steps(r#"{"do": "receive", "by": "alpha", "at": "in_kernel:x"}"#),
        &expect![[r#"x.json:6:12: step 1: do: unknown act "receive", did you mean "recv"?"#]],
    );
    check(
        &steps(r#"{"do": "tick", "ms": 1, "zebra": 1}"#),
        &expect![[
            r#"x.json:6:38: step 1 (tick): zebra: unknown member "zebra"; known here: do, ms, expect"#
        ]],
    );
    check(
        &whole("{\"schema\": \"fak.scenario.v1\", \"name\": \"n\", \"agnets\": {}, \"steps\": []}"),
        &expect![[r#"x.json:1:54: agnets: unknown member "agnets", did you mean "agents"?"#]],
    );
}

#[test]
fn what_requires_approval_says_how_it_is_written() {
    check(
        &whole(
            "{\"schema\": \"fak.scenario.v1\", \"name\": \"n\", \"store\": {\"require_approval\": \"always\"}, \"steps\": []}",
        ),
        &expect![[
            r#"x.json:1:74: store/require_approval: expected true, or an object with "path", "actor_kind" or "scope", each a word or a list of them"#
        ]],
    );
}

#[test]
fn a_base_that_is_none_says_what_may_stand_there() {
    check(
        &steps(r#"{"do": "patch", "by": "alpha", "patch": {"task_id": "task_t", "base_rev": "0"}}"#),
        &expect![[r#"
            x.json:6:45: step 1 (patch): patch: missing members "schema": "fak.shared-patch.v1", "actor": {"kind": "agent", "id": "…"}, "scope": "fleet", "durability": "session", "ops": […], "message": "…"
            x.json:6:79: step 1 (patch): patch/base_rev: expected a digest, "@current", or "@" and the number of a revision, such as "@0"; found "0""#]],
    );
}

#[test]
fn an_act_is_asked_only_what_it_answers() {
    check(
        &steps(
            r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x"}, "expect": {"fanout": 1}}"#,
        ),
        &expect![[
            r#"x.json:6:100: step 1 (send): expect/fanout: "send" does not answer "fanout"; known here: verdict, reason, rung, at, retry_after"#
        ]],
    );
    check(
        &steps(r#"{"do": "recv", "by": "alpha", "at": "in_kernel:x", "expect": {"verdict": "alow"}}"#),
        &expect![[
            r#"x.json:6:78: step 1 (recv): expect/verdict: unknown verdict "alow", did you mean "allow"?"#
        ]],
    );
    check(
        &steps(r#"{"do": "recv", "by": "alpha", "at": "in_kernel:x", "expect": {"missed": -1}}"#),
        &expect![
            "x.json:6:77: step 1 (recv): expect/missed: expected an integer from 0 to 18446744073709551615"
        ],
    );
}

/// What was found is quoted where it is a name or an address; the bytes of a body never are.
#[test]
fn a_word_that_does_not_fit_is_quoted() {
    check(
        &steps(r#"{"do": "subscribe", "by": "alpha", "topic": "news", "as": "inbox"}"#),
        &expect![[
            r#"x.json:6:49: step 1 (subscribe): topic: expected a channel as "locale:id", such as "in_kernel:news"; the locale is in_kernel, session or window; found "news", did you mean "in_kernel:news"?"#
        ]],
    );
    check(
        &steps(r#"{"do": "send", "by": "alpha", "to": "kernel:x", "body": {"text": "x"}}"#),
        &expect![[
            r#"x.json:6:41: step 1 (send): to: expected a channel as "locale:id", such as "in_kernel:news"; the locale is in_kernel, session or window; found "kernel:x", did you mean "in_kernel:x"?"#
        ]],
    );
    check(
        &steps(
            r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x", "scope": "flet"}}"#,
        ),
        &expect![[r#"x.json:6:87: step 1 (send): body/scope: unknown scope "flet", did you mean "fleet"?"#]],
    );
    let hidden =
        steps(r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"base64": "c2VjcmV0!"}}"#);
    assert!(!hidden.contains("c2VjcmV0"), "{hidden}");
}

/// A patch is answered twice: by the kernel, and by the merge.
#[test]
fn allow_is_not_how_a_merge_ends() {
    check(
        &steps(
            r#"{"do": "approve", "by": "alpha", "task": "t", "decision": "d", "expect": {"verdict": "allow"}}"#,
        ),
        &expect![[
            r#"x.json:6:90: step 1 (approve): expect/verdict: "verdict" of "approve" is how the merge ended: write "verdict": "accepted", or "act": "allow" if only the kernel's verdict matters"#
        ]],
    );
    let other = steps(
        r#"{"do": "approve", "by": "alpha", "task": "t", "decision": "d", "expect": {"verdict": "x"}}"#,
    );
    assert!(other.contains("known here: accepted, "), "{other}");
}

#[test]
fn names_must_be_known() {
    check(
        &steps(r#"{"do": "sned", "by": "alpha"}"#),
        &expect![[r#"x.json:6:12: step 1: do: unknown act "sned", did you mean "send"?"#]],
    );
    check(
        &steps(r#"{"do": "who", "by": "alhpa"}"#),
        &expect![[r#"x.json:6:25: step 1 (who): by: unknown agent "alhpa", did you mean "alpha"?"#]],
    );
    check(
        &steps(r#"{"do": "read", "by": "alpha", "ref": "kept"}"#),
        &expect![[
            r#"x.json:6:42: step 1 (read): ref: unknown saved value "kept": it is the "save" of an earlier step"#
        ]],
    );
    check(
        &steps(
            r#"{"do": "subscribe", "by": "alpha", "topic": "in_kernel:n", "as": "news"},
    {"do": "recv", "by": "alpha", "inbox": "nwes"}"#,
        ),
        &expect![[r#"x.json:7:44: step 2 (recv): inbox: unknown inbox "nwes", did you mean "news"?"#]],
    );
    check(&steps(r#"{"do": "who", "by": "?ghost"}"#), &expect!["read"]);
    // Nothing from the file moves the cursor of whoever reads the error.
    let odd = steps(r#"{"do": "\u001b[2J", "by": "alpha"}"#);
    assert!(!odd.contains('\u{1b}'), "{odd:?}");
    let odd = steps(r#"{"do": "who", "by": "alpha", "\u001b[2J": 1}"#);
    assert!(!odd.contains('\u{1b}'), "{odd:?}");
}

#[test]
fn a_step_says_who_and_what_exactly_once() {
    check(
        &steps(r#"{"do": "who"}"#),
        &expect![[r#"x.json:6:5: step 1 (who): "who" is an agent's act; say who performs it with "by""#]],
    );
    check(
        &steps(r#"{"do": "tick", "by": "alpha", "ms": 1}"#),
        &expect![[
            r#"x.json:6:26: step 1 (tick): by: "tick" is done by the host, not by an agent: leave "by" out"#
        ]],
    );
    check(
        &steps(r#"{"do": "recv", "by": "alpha"}"#),
        &expect![[r#"x.json:6:5: step 1 (recv): exactly one of "at" and "inbox" is needed"#]],
    );
    check(
        &steps(
            r#"{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x", "base64": "eA=="}}"#,
        ),
        &expect![[
            r#"x.json:6:64: step 1 (send): body: a body has exactly one of "text", "base64" and "ref""#
        ]],
    );
    check(
        &steps(r#"{"do": "send", "by": "alpha", "to": "kernel:x", "body": {"text": "x"}}"#),
        &expect![[
            r#"x.json:6:41: step 1 (send): to: expected a channel as "locale:id", such as "in_kernel:news"; the locale is in_kernel, session or window; found "kernel:x", did you mean "in_kernel:x"?"#
        ]],
    );
    check(
        &steps(r#"{"do": "send", "by": "alpha", "body": {"text": "x"}}"#),
        &expect![[r#"x.json:6:5: step 1 (send): missing member "to""#]],
    );
    check(
        &steps(r#"{"do": "explain", "of": {"do": "who", "by": "alpha", "expect": {}}}"#),
        &expect![[
            r#"x.json:6:68: step 1 (explain): of/expect: "expect" belongs to the "explain" step, beside "of""#
        ]],
    );
}

#[test]
fn what_is_no_scenario() {
    let deep = format!(
        "{{\"schema\": \"fak.scenario.v1\", \"name\": \"n\", \"steps\": {}{}}}",
        "[".repeat(65),
        "]".repeat(65)
    );
    check(&whole(""), &expect!["x.json:1:1: the text ends where a value was expected"]);
    check(
        &whole(&deep),
        &expect![[
            r#"x.json:1:116: step 1: 0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0: nested too deep, expected at most 64 levels"#
        ]],
    );
    check(
        &whole(r#"{"schema": "fak.scenario.v1", "schema": 1}"#),
        &expect![[r#"x.json:1:31: duplicate member "schema", expected it once"#]],
    );
    check(
        &whole(r#"{"schema": "fak.scenario.v2", "name": "n", "steps": []}"#),
        &expect![[r#"x.json:1:12: schema: expected "fak.scenario.v1"; found "fak.scenario.v2""#]],
    );
    check(
        &whole(r#"{"schema": "fak.scenario.v1", "name": "n", "steps": []} {}"#),
        &expect!["x.json:1:57: trailing data, expected the end of the text"],
    );
    check(
        &whole(r#"{"schema": "fak.scenario.v1", "name": 7, "steps": []}"#),
        &expect!["x.json:1:39: name: expected a string, found a number"],
    );
    let bytes = b"{\"schema\": \"\xff\"}";
    let error = Scenario::parse(bytes, Path::new("x.json"), Reach::Folder).unwrap_err();
    check(&error.to_string(), &expect!["x.json:1:13: invalid UTF-8, expected UTF-8 text"]);
}

#[test]
fn what_stands_before_the_steps() {
    let top = |member: &str| {
        whole(&format!(
            "{{\"schema\": \"fak.scenario.v1\", \"name\": \"n\",\n\"agents\": {{\"alpha\": {{\"caps\": []}}}},\n{member},\n\"steps\": []}}"
        ))
    };
    check(
        &top(r#""limits": {"mailbox_capacity": 0}"#),
        &expect!["x.json:3:32: limits/mailbox_capacity: expected a capacity from 1 to 65536"],
    );
    // The room an inbox takes is no number merely to be read (§8).
    check(
        &top(r#""limits": {"mailbox_capacity": 9007199254740991}"#),
        &expect!["x.json:3:32: limits/mailbox_capacity: expected a capacity from 1 to 65536"],
    );
    check(
        &top(r#""limits": {"adressing": "open"}"#),
        &expect![[
            r#"x.json:3:25: limits/adressing: unknown member "adressing", did you mean "addressing"?"#
        ]],
    );
    check(
        &top(r#""clock": "yesterday""#),
        &expect![[
            r#"x.json:3:10: clock: expected a time as RFC 3339 has it, such as "2026-01-01T00:00:00Z"; found "yesterday""#
        ]],
    );
    check(
        &top(r#""topology": {"name": "t", "edges": [["alpha", "alhpa"]]}"#),
        &expect![[r#"x.json:3:47: topology/edges/0/1: unknown agent "alhpa", did you mean "alpha"?"#]],
    );
    check(
        &top(r#""lanes": {"file": "no-such.toml"}"#),
        &expect![[
            r#"x.json:3:19: lanes/file: cannot read "no-such.toml": No such file or directory (os error 2)"#
        ]],
    );
    check(
        &top(r#""policy": {"file": "../../etc/passwd"}"#),
        &expect![[
            r#"x.json:3:20: policy/file: the path "../../etc/passwd" climbs out of the scenario's folder; move the file there, or run with --allow-outside"#
        ]],
    );
    check(
        &whole(
            r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"a": {"caps": ["zebra"]}}, "steps": []}"#,
        ),
        &expect![[
            r#"x.json:1:70: agents/a/caps/0: unknown capability "zebra"; known here: a2a.send, a2a.recv, ref.widen, ref.trust, pool.write, pool.read, sharedtask.write, sharedtask.approve, sharedtask.read, space.write, space.read, comm.collective and 2 more"#
        ]],
    );
    check(
        &whole(
            r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"a": {"caps": ["a2a.sned"]}}, "steps": []}"#,
        ),
        &expect![[
            r#"x.json:1:70: agents/a/caps/0: unknown capability "a2a.sned", did you mean "a2a.send"?"#
        ]],
    );
}

#[test]
fn a_file_that_cannot_be_read() {
    let missing = Scenario::load(Path::new("no/such/file.json"), Reach::Folder).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read \"no/such/file.json\": "), "{missing}");
    let folder = std::env::temp_dir().join(format!("fak-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let large = folder.join("large.json");
    std::fs::write(&large, vec![b' '; 10_000_000]).unwrap();
    let error = Scenario::load(&large, Reach::Folder).unwrap_err().to_string();
    assert!(error.ends_with("is larger than the 4194304 bytes a file may have"), "{error}");
    let empty = folder.join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let error = fak_scenario::find(&empty).unwrap_err().to_string();
    assert!(error.starts_with("no scenario in "), "{error}");
    // In a folder what is plainly something else is passed over; what cannot be read is not.
    let mixed = folder.join("mixed");
    std::fs::create_dir_all(mixed.join("deep")).unwrap();
    for (name, text) in [
        ("a.json", "{\"schema\": \"fak.scenario.v1\"}"),
        ("b.json", "{\"schema\": \"fak.scenario.v9\", \"steps\": []}"),
        ("deep/c.json", "{\"torn"),
        ("policy.json", "{\"version\": 1}"),
        ("journal.json", "{\"schema\": \"fak.shared-task-journal.v1\"}"),
        ("notes.txt", "no scenario"),
    ] {
        std::fs::write(mixed.join(name), text).unwrap();
    }
    let found = fak_scenario::find(&mixed).unwrap();
    let names: Vec<_> =
        found.iter().map(|path| path.strip_prefix(&mixed).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.json", "b.json", "deep/c.json"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// I19: what is mistyped inside a patch is named with its place in the scenario, also behind a `base_rev` that names a revision.
#[test]
fn a_patch_is_read_as_strictly_as_the_step_around_it() {
    let patch = |base: &str, op: &str| {
        steps(&format!(
            r#"{{"do": "patch", "by": "alpha", "patch": {{"schema": "fak.shared-patch.v1", "task_id": "task_a", "base_rev": "{base}",
      "actor": {{"kind": "agent", "id": "alpha"}}, "scope": "fleet", "durability": "session", "message": "m",
      "ops": [{op}]}}}}"#
        ))
    };
    let good = r#"{"op": "replace", "path": "/title", "value": "x"}"#;
    check(&patch("@current", good), &expect!["read"]);
    check(&patch("@12", good), &expect!["read"]);
    check(
        &patch("@curent", good),
        &expect![[
            r#"x.json:6:112: step 1 (patch): patch/base_rev: expected a digest, "@current", or "@" and the number of a revision; found "@curent""#
        ]],
    );
    check(
        &patch("@current", r#"{"op": "replace", "path": "/title", "vlaue": "x"}"#),
        &expect![[
            r#"x.json:8:60: step 1 (patch): patch/ops/0/vlaue: unknown member "vlaue", did you mean "value"?"#
        ]],
    );
    check(
        &patch("@0", r#"{"op": "raplace", "path": "/title", "value": "x"}"#),
        &expect![[
            r#"x.json:8:22: step 1 (patch): patch/ops/0/op: expected one of "append", "replace", "remove" (did you mean "replace"?)"#
        ]],
    );
}

/// Files are looked up beside the scenario; what leads out of its folder, by name or by link, needs leave.
#[test]
fn files_outside_the_folder_need_leave() {
    let root = std::env::temp_dir().join(format!("fak-scenario-outside-{}", std::process::id()));
    let inside = root.join("inside");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(root.join("policy.toml"), "version = 1\n").unwrap();
    std::fs::write(inside.join("own.toml"), "version = 1\n").unwrap();
    let load = |file: &str, reach| {
        let text = format!(
            "{{\"schema\": \"fak.scenario.v1\", \"name\": \"n\", \"policy\": {{\"file\": \"{file}\"}}, \"steps\": []}}"
        );
        Scenario::parse(text.as_bytes(), &inside.join("s.json"), reach).map(drop)
    };
    load("own.toml", Reach::Folder).unwrap();
    load("../inside/own.toml", Reach::Anywhere).unwrap();
    load("../policy.toml", Reach::Anywhere).unwrap();
    for climbing in ["../policy.toml", "../inside/own.toml", "/etc/hostname"] {
        let error = load(climbing, Reach::Folder).unwrap_err().to_string();
        assert!(error.contains("climbs out of the scenario's folder"), "{error}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(root.join("policy.toml"), inside.join("link.toml")).unwrap();
        let error = load("link.toml", Reach::Folder).unwrap_err().to_string();
        assert!(error.contains("climbs out of the scenario's folder"), "{error}");
        load("link.toml", Reach::Anywhere).unwrap();
    }
    std::fs::remove_dir_all(&root).unwrap();
}

/// What is true or false is no verdict.
#[test]
fn a_timeout_is_a_member_of_its_own() {
    let said = crate::support::said(
        r#"{"do": "request", "by": "alpha", "to": "in_kernel:q", "body": {"text": "?"}, "as": "r"},
        {"do": "await", "by": "alpha", "as": "r", "expect": {"verdict": "timeout"}}"#,
    );
    assert!(said.ends_with("\"timeout\" is no verdict of \"await\": write \"timeout\": true"), "{said}");
}
