//! Byte compatibility with the public Go implementation (§7.2): its digests, its fixtures, its journals.

use fak_sharedtask::{
    ArtifactRef, Envelope, JournalError, Limits, Patch, PatchResult, Record, TaskEvent, VerifyOptions,
    verify_journal,
};

fn peer(path: &str) -> Vec<u8> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/peer/");
    std::fs::read(format!("{root}{path}")).unwrap()
}

/// Reads an envelope and requires that it is written back as the same bytes.
fn same<E: Envelope>(text: &str) -> E {
    let read = E::parse(text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(String::from_utf8(read.to_json()).unwrap(), text);
    read
}

/// §7.1, §7.2.
#[test]
fn every_public_digest_is_recomputed_byte_for_byte() {
    let cases: serde_json::Value = serde_json::from_slice(&peer("digests.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 7);
    for case in cases {
        let text = |name: &str| case[name].as_str().unwrap();
        let record: Record = same(text("record_json"));
        assert_eq!(record.computed_rev().to_string(), text("rev"), "{}", case["label"]);
        assert_eq!(record.digest().to_string(), text("record_digest"));
        let event: TaskEvent = same(text("event_json"));
        assert_eq!(event.digest().to_string(), text("event_digest"));
        let patch: Patch = same(text("patch_json"));
        assert_eq!(patch.digest().to_string(), text("patch_digest"));
    }
}

/// Every worked fixture is read, and read again from what is written. (§5.1, §7.2)
#[test]
fn every_worked_fixture_survives() {
    let again = |path: &str, text: &[u8]| {
        let limits = Limits::default();
        let value: serde_json::Value = serde_json::from_slice(text).unwrap();
        macro_rules! check {
            ($t:ty) => {{
                let read = <$t>::parse(text, &limits).unwrap_or_else(|e| panic!("{path}: {e}"));
                let written = read.to_json();
                assert_eq!(serde_json::from_slice::<serde_json::Value>(&written).unwrap(), value, "{path}");
                assert_eq!(<$t>::parse(&written, &limits).unwrap().to_json(), written, "{path}");
            }};
        }
        match value["schema"].as_str().unwrap() {
            "fak.shared-task.v1" => check!(Record),
            "fak.shared-event.v1" => check!(TaskEvent),
            "fak.shared-patch.v1" => check!(Patch),
            "fak.shared-patch-result.v1" => check!(PatchResult),
            "fak.shared-artifact-ref.v1" => check!(ArtifactRef),
            "fak.shared-task-journal.v1" => {
                let opaque = VerifyOptions { allow_opaque: true, ..VerifyOptions::default() };
                let summary = verify_journal(text, &opaque).unwrap_or_else(|e| panic!("{path}: {e}"));
                assert!(summary.opaque.is_some());
                assert!(matches!(
                    verify_journal(text, &VerifyOptions::default()),
                    Err(JournalError::Opaque { .. })
                ));
            }
            other => panic!("{path}: {other}"),
        }
    };
    let mut count = 0;
    for folder in ["shared-task-record", "shared-task-record-verdicts"] {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/peer/");
        for file in std::fs::read_dir(format!("{root}{folder}")).unwrap() {
            let path = file.unwrap().path();
            again(&path.display().to_string(), &std::fs::read(&path).unwrap());
            count += 1;
        }
    }
    assert_eq!(count, 23);
}

/// §5.10, §7.2.
#[test]
fn the_public_journal_verifies_and_each_tampered_one_is_named() {
    let options = VerifyOptions::default();
    let summary = verify_journal(&*peer("journals/journal-a.json"), &options).unwrap();
    assert_eq!(summary.entries, 12);
    assert_eq!(summary.opaque, None);
    for (file, entry, member) in [
        ("journals/journal-a-bad-digest.json", None, "digest"),
        ("journals/journal-a-bad-swapped.json", Some(4), "event.prev_event"),
        ("journals/journal-a-bad-title.json", Some(3), "record.rev"),
    ] {
        match verify_journal(&*peer(file), &options) {
            Err(JournalError::Broken { place, .. }) => {
                assert_eq!((place.entry, place.member), (entry, member), "{file}");
            }
            other => panic!("{file}: {other:?}"),
        }
    }
}

/// §7.1: the public schema leaves open what a denial says. One that names nobody is read, and what is written of it too.
#[test]
fn a_denial_may_name_nobody() {
    for denial in [r#"{}"#, r#"{"policy":"p"}"#, r#"{"actor":{}}"#, r#"{"actor":{"kind":"","id":""}}"#] {
        let text = format!(
            r#"{{"schema":"fak.shared-patch-result.v1","task_id":"task_t","base_rev":"sha256:a","current_rev":"sha256:a","verdict":"denied","reason":"SCOPE_WIDEN_FORBIDDEN","denial":{denial}}}"#
        );
        let read = PatchResult::parse(text.as_bytes(), &Limits::default()).unwrap();
        let written = read.to_json();
        assert_eq!(PatchResult::parse(&written, &Limits::default()).unwrap().to_json(), written, "{denial}");
    }
}
