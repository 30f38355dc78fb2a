//! Input that is wrong (§8): every envelope with each member missing, mistyped, oversized and duplicated; I19, I24.

use fak_sharedtask::{
    ArtifactRef, Envelope, HeldPatch, Limits, Patch, PatchResult, Record, TaskEvent, VerifyOptions,
    verify_journal,
};
use serde_json::{Value, json};

use crate::support::{body, record};

type Parse = fn(&[u8]) -> Result<(), String>;

fn parser<E: Envelope>() -> Parse {
    |text| E::parse(text, &Limits::default()).map(|_| ()).map_err(|error| error.to_string())
}

fn note() -> Value {
    json!({"note_id": "n", "kind": "comment", "body_ref": body("tainted", "fleet"),
        "author": {"kind": "agent", "id": "a"}, "created_at": "now"})
}

fn artifact() -> Value {
    json!({"artifact_id": "a", "ref": "sha256:a", "media_type": "text/plain", "taint": "tainted",
        "scope": "fleet", "store": "local-cas"})
}

fn samples() -> Vec<(&'static str, Value, Parse)> {
    let mut full = record();
    full["rev"] = json!("sha256:r");
    full["notes"] = json!([note()]);
    full["artifacts"] = json!([artifact()]);
    let mut reference = artifact();
    reference["schema"] = json!("fak.shared-artifact-ref.v1");
    let patch = json!({"schema": "fak.shared-patch.v1", "task_id": "task_t", "base_rev": "sha256:b",
        "actor": {"kind": "agent", "id": "a"}, "scope": "fleet", "durability": "session",
        "ops": [{"op": "replace", "path": "/title"}], "message": "m"});
    let held = {
        let read = Patch::parse(patch.to_string().as_bytes(), &Limits::default()).unwrap();
        json!({"schema": "fak.shared-held.v1", "decision_id": format!("dec_{}", read.digest().hex()),
            "state": "input_required", "held_at": "now", "patch": patch.clone()})
    };
    let event = json!({"schema": "fak.shared-event.v1", "event_id": "evt_1", "task_id": "task_t",
        "event_kind": "patch_accepted", "actor": {"kind": "agent", "id": "a"}, "base_rev": "sha256:b",
        "next_rev": "sha256:n", "scope": "fleet", "durability": "session", "taint": "tainted",
        "patch_digest": "sha256:p", "verdict": "accepted", "ts": "now"});
    let result = json!({"schema": "fak.shared-patch-result.v1", "task_id": "task_t", "base_rev": "sha256:b",
        "current_rev": "sha256:c", "verdict": "accepted", "reason": ""});
    vec![
        ("task", full, parser::<Record>()),
        ("artifact", reference, parser::<ArtifactRef>()),
        ("patch", patch, parser::<Patch>()),
        ("held", held, parser::<HeldPatch>()),
        ("event", event, parser::<TaskEvent>()),
        ("result", result, parser::<PatchResult>()),
    ]
}

/// The pointers of every member of every object in a value.
fn members(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, inner) in object {
                let path = format!("{at}/{name}");
                members(inner, &path, out);
                out.push(path);
            }
        }
        Value::Array(list) => {
            for (i, inner) in list.iter().enumerate() {
                members(inner, &format!("{at}/{i}"), out);
            }
        }
        _ => {}
    }
}

fn remove(value: &mut Value, path: &str) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap()
}

/// Each member missing: an error that names it.
#[test]
fn a_missing_member_is_named() {
    for (name, sample, parse) in samples() {
        assert_eq!(parse(sample.to_string().as_bytes()), Ok(()), "{name}");
        let mut paths = Vec::new();
        members(&sample, "", &mut paths);
        assert!(paths.len() >= 6);
        for path in paths {
            let mut cut = sample.clone();
            remove(&mut cut, &path);
            let member = path.rsplit('/').next().unwrap();
            match parse(cut.to_string().as_bytes()) {
                Ok(()) => assert!(["value", "store"].contains(&member), "{name} without {path}"),
                Err(error) if name == "held" && path.starts_with("/patch/ops") => drop(error),
                Err(error) => {
                    assert!(error.contains(&format!("{member:?}")), "{name} without {path}: {error}");
                }
            }
        }
    }
}

/// Each member of another type, oversized, or twice: an error at its place that does not repeat what was written.
#[test]
fn a_mistyped_oversized_or_duplicated_member_is_placed() {
    const MARK: &str = "MARKER-OF-A-SECRET";
    for (name, sample, parse) in samples() {
        let mut paths = Vec::new();
        members(&sample, "", &mut paths);
        for path in paths {
            let standing = sample.pointer(&path).unwrap().clone();
            let wrong = [
                json!(7.5),
                json!(true),
                json!({"x": MARK}),
                json!([MARK]),
                json!(MARK.repeat(20_000)),
                json!(9007199254740993u64),
                json!(-1),
            ];
            for value in wrong {
                let mut changed = sample.clone();
                *changed.pointer_mut(&path).unwrap() = value.clone();
                match parse(changed.to_string().as_bytes()) {
                    // A 64-bit integer is what `bytes` is.
                    Ok(()) => {
                        assert!(path.ends_with("/bytes") && value.is_u64(), "{name} {path} {value:.40}");
                    }
                    Err(error) => assert!(
                        !error.contains(MARK) && error.starts_with("line 1"),
                        "{name} {path}: {error}"
                    ),
                }
            }
            // Twice, in the text itself.
            let (parent, member) = path.rsplit_once('/').unwrap();
            let marked = format!("\"DUPLICATED\":{standing}");
            let mut object = sample.clone();
            object.pointer_mut(parent).unwrap()["DUPLICATED"] = standing.clone();
            let text = object.to_string().replace(&marked, &format!("\"{member}\":{standing}"));
            assert!(parse(text.as_bytes()).unwrap_err().contains("duplicate member"), "{name} {path}");
        }
    }
}

/// I19: a mistyped member of an op is an error naming it, its place and the nearest known one.
#[test]
fn i19_a_mistyped_op_member_is_named_with_its_neighbour() {
    let text = r#"{"schema": "fak.shared-patch.v1", "task_id": "task_t", "base_rev": "sha256:b",
 "actor": {"kind": "agent", "id": "a"}, "scope": "fleet", "durability": "session",
 "ops": [{"op": "replace", "path": "/title", "vlaue": "MARKER"}], "message": "m"}"#;
    let error = parser::<Patch>()(text.as_bytes()).unwrap_err();
    assert!(error.contains("unknown member \"vlaue\", did you mean \"value\""), "{error}");
    assert!(
        error.contains("line 3") && error.contains("/ops/0/vlaue") && !error.contains("MARKER"),
        "{error}"
    );
    let error = parser::<Patch>()(text.replace("vlaue", "value").replace("\"op\"", "\"opp\"").as_bytes())
        .unwrap_err();
    assert!(error.contains("did you mean \"op\""), "{error}");
    let error = parser::<Patch>()(text.replace("vlaue", "value").replace("replace", "repalce").as_bytes())
        .unwrap_err();
    assert!(error.contains("did you mean \"replace\"") && !error.contains("repalce"), "{error}");
}

#[test]
fn what_is_not_json_is_refused_before_it_is_read() {
    let parse = parser::<Patch>();
    let patch = &samples()[2].1.to_string();
    let deep = patch.replace("\"m\"", &("[".repeat(70) + &"]".repeat(70)));
    let huge = patch.replace("\"m\"", &format!("\"{}\"", "m".repeat(5 << 20)));
    for (text, what) in [
        (patch.replace("\"m\"", "1e400").into_bytes(), "number out of range"),
        (patch.replace("\"m\"", "\"\\ud800\"").into_bytes(), "lone surrogate"),
        (format!("{patch} x").into_bytes(), "trailing data"),
        (deep.into_bytes(), "nested too deep"),
        (huge.into_bytes(), "too large"),
        ([patch.as_bytes(), b"\xff"].concat(), "invalid UTF-8"),
        (patch.as_bytes()[..patch.len() - 1].to_vec(), "ends"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    for end in 0..patch.len() {
        assert!(parse(&patch.as_bytes()[..end]).is_err());
    }
}

/// Typed integers are exact beyond what a double holds.
#[test]
fn integers_around_two_to_the_53_stay_exact() {
    for bytes in [9007199254740991u64, 9007199254740992, 9007199254740993, u64::MAX] {
        let mut record = record();
        record["body_ref"]["bytes"] = json!(bytes);
        record["rev"] = json!("sha256:r");
        let read = Record::parse(record.to_string().as_bytes(), &Limits::default()).unwrap();
        assert_eq!(read.body_ref.bytes, bytes);
        assert!(String::from_utf8(read.to_json()).unwrap().contains(&format!("\"bytes\":{bytes},")));
    }
    // In an open value the same number is the double it stands for.
    let text =
        samples()[2].1.to_string().replace("\"path\":", "\"value\":[9007199254740993,1e-7,1.0],\"path\":");
    let patch = Patch::parse(text.as_bytes(), &Limits::default()).unwrap();
    assert!(String::from_utf8(patch.to_json()).unwrap().contains("\"value\":[9007199254740992,1e-7,1]"));
}

/// I22: the digest does not depend on the order in which a JSON library keeps members.
#[test]
fn i22_member_order_does_not_change_a_digest() {
    let mut record = record();
    record["rev"] = json!("sha256:r");
    record["title"] = json!("<b>& \u{2028} \u{e9} e\u{301} 漢 😀");
    record["x_open"] = json!({"z": 1e-7, "a": 9007199254740993u64, "é": [true, null]});
    let text = record.to_string();
    let read = Record::parse(text.as_bytes(), &Limits::default()).unwrap();
    let Value::Object(members) = record else { panic!("an object") };
    let reversed: Vec<String> = members.iter().rev().map(|(k, v)| format!("{}:{v}", json!(k))).collect();
    let again = Record::parse(format!("{{{}}}", reversed.join(",")).as_bytes(), &Limits::default()).unwrap();
    assert_eq!(again.to_json(), read.to_json());
    let written = String::from_utf8(read.to_json()).unwrap();
    assert!(written.contains(r#""title":"\u003cb\u003e\u0026 \u2028 é e"#));
    assert!(written.ends_with(r#","x_open":{"a":9007199254740992,"z":1e-7,"é":[true,null]}}"#), "{written}");
}

#[test]
fn lists_that_go_left_null_are_read_as_empty_and_digested_as_null() {
    let mut record = record();
    record["rev"] = json!("sha256:r");
    record["notes"] = Value::Null;
    let read = Record::parse(record.to_string().as_bytes(), &Limits::default()).unwrap();
    assert!(read.notes.items.is_empty());
    assert!(String::from_utf8(read.to_json()).unwrap().contains("\"notes\":null"));
}

#[test]
fn journals_that_are_no_journals() {
    for text in [
        "",
        "{}",
        "[]",
        "null",
        "{\"schema\":\"fak.shared-task-journal.v1\"}",
        "{\"schema\":\"fak.shared-task-journal.v2\"}",
        "{\"schema\":\"fak.shared-task-journal.v1\",\"task_id\":\"task_t\",\"initial\":{},\"entries\":[],\"digest\":\"sha256:x\"}",
        "{\"schema\":\"fak.shared-task-journal.v1\",\"schema\":\"fak.shared-task-journal.v1\"}",
        "{\"entries\":[",
        "{\"entries\":{}}",
    ] {
        assert!(verify_journal(text.as_bytes(), &VerifyOptions::default()).is_err(), "{text}");
    }
    // A reader that fails is reported as that.
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("cable"))
        }
    }
    let error = verify_journal(Broken, &VerifyOptions::default()).unwrap_err();
    assert!(error.to_string().contains("cable"), "{error}");
}

#[test]
fn ids_and_digests_are_typed_errors_that_repeat_nothing() {
    let error = "task_MARKER é".parse::<fak_sharedtask::TaskId>().unwrap_err().to_string();
    assert!(error.contains("\"task_\"") && !error.contains("MARKER"), "{error}");
    let error = "MARKER".parse::<fak_sharedtask::Hash>().unwrap_err().to_string();
    assert!(error.contains("sha256:") && !error.contains("MARKER"), "{error}");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 128, ..Default::default() })]

    /// A journal with bytes changed either says the same, or does not verify; nothing panics.
    #[test]
    fn a_mutilated_journal_never_passes_for_another(
        edits in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0..16usize), 1..3),
    ) {
        let journal = include_bytes!("../../../../examples/journals/written-here.json");
        let mut changed = journal.to_vec();
        for (at, byte) in edits {
            let at = at.index(changed.len());
            changed[at] = b"{}[],:\"\\09aZe \xc3\n"[byte];
        }
        for text in [&changed[..], &changed[..changed.len() / 2]] {
            if verify_journal(text, &VerifyOptions::default()).is_ok() {
                let same = serde_json::from_slice::<Value>(text).unwrap()
                    == serde_json::from_slice::<Value>(journal).unwrap();
                proptest::prop_assert!(same);
            }
            let store = fak_sharedtask::TaskStore::new(crate::support::config());
            let _ = store.recover(text);
        }
    }
}

/// Counts and lengths at their limits pass, and one more is refused by name (§8).
#[test]
fn counts_and_lengths_are_bounded() {
    let full = |count: usize| {
        let mut sample = samples()[0].1.clone();
        let list: Vec<Value> = (0..count)
            .map(|n| {
                let mut artifact = artifact();
                artifact["artifact_id"] = json!(format!("a{n}"));
                artifact
            })
            .collect();
        sample["artifacts"] = json!(list);
        parser::<Record>()(sample.to_string().as_bytes())
    };
    assert_eq!(full(1024), Ok(()));
    assert!(full(1025).unwrap_err().contains("at most 1024 entries"));
    let ops = |count: usize| {
        let mut sample = samples()[2].1.clone();
        sample["ops"] = json!(vec![json!({"op": "remove", "path": "/x"}); count]);
        parser::<Patch>()(sample.to_string().as_bytes())
    };
    assert_eq!(ops(1024), Ok(()));
    assert!(ops(1025).unwrap_err().contains("at most 1024 entries"));
    let title = |length: usize| {
        let mut sample = samples()[0].1.clone();
        sample["title"] = json!("t".repeat(length));
        parser::<Record>()(sample.to_string().as_bytes())
    };
    assert_eq!(title(64 << 10), Ok(()));
    assert!(title((64 << 10) + 1).unwrap_err().contains("too large"));
}
