//! Journals (§5.10): tampered, cut, torn, opaque, checkpointed, loaded and continued; I20, I22.

use fak_abi::Clock;
use fak_sharedtask::{Checkpoint, JournalError, TaskStore, VerifyOptions, verify_journal};
use serde_json::{Value, json};

use crate::support::{World, answer, append_decision, artifact, body, config, note, note_of, replace, task};

/// A world with a short history of every kind of change, and its journal.
fn history() -> (World, Vec<u8>) {
    let world = World::with_task();
    let agent = world.agent("a");
    for ops in [
        json!([note(&agent, "n1", "fleet")]),
        json!([replace("/title", "<second> & \u{2028} é 漢 😀")]),
        json!([artifact("x", "tainted", "tenant"), append_decision("dec_c")]),
        json!([replace("/open_decisions/dec_c/state", "closed"), replace("/state", "done")]),
        json!([replace("/body_ref", body("tainted", "tenant"))]),
        json!([note(&agent, "n2", "tenant")]),
    ] {
        assert_eq!(answer(&world.patch(&agent, "tenant", ops)), "accepted");
    }
    let mut journal = Vec::new();
    world.store.journal(&task(), &mut journal).unwrap();
    (world, journal)
}

fn strict(journal: &[u8]) -> Result<fak_sharedtask::JournalSummary, JournalError> {
    verify_journal(journal, &VerifyOptions::default())
}

/// Recomputes the journal's own digest, so that only what was changed before is wrong.
fn redigest(mut journal: Value) -> Vec<u8> {
    journal["digest"] = json!("");
    // The canonical bytes of a journal without unknown members are those of its parts.
    let text = canonical(&journal);
    let digest = fak_abi::Digest::of(text.as_bytes()).to_string();
    text.replace("\"digest\":\"\"}", &format!("\"digest\":\"{digest}\"}}")).into_bytes()
}

fn canonical(journal: &Value) -> String {
    let mut out = format!(
        "{{\"schema\":{},\"task_id\":{},\"initial\":{},\"entries\":[",
        journal["schema"],
        journal["task_id"],
        record(&journal["initial"])
    );
    for (i, entry) in journal["entries"].as_array().unwrap().iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        out.push_str(&format!(
            "{comma}{{\"event\":{},\"record\":{},\"record_digest\":{}}}",
            envelope::<fak_sharedtask::TaskEvent>(&entry["event"]),
            record(&entry["record"]),
            entry["record_digest"]
        ));
    }
    out + "],\"digest\":\"\"}"
}

fn record(value: &Value) -> String {
    envelope::<fak_sharedtask::Record>(value)
}

fn envelope<E: fak_sharedtask::Envelope>(value: &Value) -> String {
    let read = E::parse(value.to_string().as_bytes(), &fak_sharedtask::Limits::default()).unwrap();
    String::from_utf8(read.to_json()).unwrap()
}

#[test]
fn white_space_and_member_order_do_not_count() {
    let (_, journal) = history();
    let value: Value = serde_json::from_slice(&journal).unwrap();
    assert_eq!(redigest(value.clone()), journal);
    let spaced = serde_json::to_string_pretty(&value["entries"]).unwrap();
    let text = format!(
        "{{\"digest\": {},\n \"task_id\": {}, \"initial\": {:#}, \"schema\": {}, \"entries\": {spaced}}}\n",
        value["digest"], value["task_id"], value["initial"], value["schema"]
    );
    assert_eq!(strict(text.as_bytes()).unwrap().entries, 6);
    // The entries follow what their digest follows; anything else cannot be streamed.
    let late = format!(
        "{{\"schema\": {}, \"task_id\": {}, \"entries\": {spaced}, \"initial\": {:#}, \"digest\": {}}}",
        value["schema"], value["task_id"], value["initial"], value["digest"]
    );
    assert!(strict(late.as_bytes()).unwrap_err().to_string().contains("initial"));
}

/// §5.10.
#[test]
fn every_single_change_is_found_and_named() {
    let (_, journal) = history();
    let value: Value = serde_json::from_slice(&journal).unwrap();
    let other = format!("sha256:{}", "0".repeat(64));
    type Change = fn(&mut Value, &str);
    let changes: [(Option<usize>, &str, Change); 11] = [
        (None, "initial.rev", |j, _| j["initial"]["title"] = json!("forged")),
        (Some(2), "record.rev", |j, _| j["entries"][2]["record"]["title"] = json!("forged")),
        (Some(2), "event.next_rev", |j, other| j["entries"][2]["event"]["next_rev"] = json!(other)),
        (Some(2), "event.base_rev", |j, other| j["entries"][2]["event"]["base_rev"] = json!(other)),
        (Some(2), "event.prev_event", |j, other| j["entries"][2]["event"]["prev_event"] = json!(other)),
        (Some(3), "event.prev_event", |j, _| j["entries"][2]["event"]["scope"] = json!("agent")),
        (Some(2), "record_digest", |j, other| j["entries"][2]["record_digest"] = json!(other)),
        (Some(2), "event.task_id", |j, _| j["entries"][2]["event"]["task_id"] = json!("task_x")),
        (Some(2), "event.verdict", |j, _| j["entries"][2]["event"]["verdict"] = json!("denied")),
        (Some(0), "event.prev_event", |j, _| {
            j["entries"].as_array_mut().unwrap().remove(0);
        }),
        (Some(1), "event.prev_event", |j, _| j["entries"].as_array_mut().unwrap().swap(1, 2)),
    ];
    for (entry, member, change) in changes {
        let mut forged = value.clone();
        change(&mut forged, &other);
        match strict(&redigest(forged)) {
            Err(JournalError::Broken { place, .. }) => {
                assert_eq!((place.entry, place.member), (entry, member));
            }
            other => panic!("{member}: {other:?}"),
        }
    }
    let mut blank = value.clone();
    blank["digest"] = json!("");
    assert!(strict(blank.to_string().as_bytes()).is_err(), "a digest is never blank");
}

/// §5.10.
#[test]
fn a_cut_journal_shows_only_to_a_checkpoint() {
    let (world, journal) = history();
    let checkpoint = world.store.checkpoint(&task()).unwrap();
    assert_eq!(checkpoint.revision, 6);
    let with = |journal: &[u8], checkpoint: &Checkpoint| {
        let options = VerifyOptions { checkpoint: Some(checkpoint.clone()), ..VerifyOptions::default() };
        verify_journal(journal, &options)
    };
    assert!(with(&journal, &checkpoint).is_ok());
    let mut cut: Value = serde_json::from_slice(&journal).unwrap();
    cut["entries"].as_array_mut().unwrap().truncate(4);
    let cut = redigest(cut);
    let summary = strict(&cut).unwrap();
    assert_eq!(summary.entries, 4);
    assert!(matches!(with(&cut, &checkpoint), Err(JournalError::Cut { entries: 4, revision: 6 })));
    assert!(with(&cut, &summary.checkpoint().unwrap()).is_ok());
    // An older checkpoint still holds for a journal that went on.
    assert!(with(&journal, &summary.checkpoint().unwrap()).is_ok());
}

/// I20: torn at every byte, everything before the tear loads, the tear is reported, and appending works.
#[test]
fn i20_a_torn_journal_loads_up_to_its_last_whole_entry() {
    let (_, journal) = history();
    let mut value: Value = serde_json::from_slice(&journal).unwrap();
    value["entries"].as_array_mut().unwrap().truncate(3);
    let journal = redigest(value.clone());
    let mut loaded = std::collections::BTreeSet::new();
    for end in 0..journal.len() {
        let store = TaskStore::new(config());
        if end % 97 == 0 {
            assert!(store.load(&journal[..end]).is_err(), "a torn journal is not loaded unasked");
            assert!(store.tasks().is_empty());
        }
        match store.recover(&journal[..end]) {
            Err(_) => assert!(end < journal.len() / 3, "torn at {end}"),
            Ok((_, tear)) => {
                let tear = tear.expect("the tear is reported");
                assert!(tear.bytes <= end);
                let (number, rev) = store.revision(&task()).unwrap();
                assert_eq!(number, tear.entries);
                if let Some(at) = number.checked_sub(1) {
                    assert_eq!(value["entries"][at]["record"]["rev"], rev.to_string());
                }
                loaded.insert(number);
            }
        }
    }
    assert_eq!(loaded.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    // Appending to what was recovered continues the chain.
    let world = World::new();
    let (_, tear) = world.store.recover(&journal[..journal.len() - 1200]).unwrap();
    let agent = world.agent("a");
    let before = tear.unwrap().entries;
    assert_eq!(answer(&world.patch(&agent, "fleet", json!([note(&agent, "again", "fleet")]))), "accepted");
    let mut again = Vec::new();
    world.store.journal(&task(), &mut again).unwrap();
    assert_eq!(strict(&again).unwrap().entries, before + 1);
}

/// §5.10.
#[test]
fn a_loaded_store_continues_chain_numbering_and_clock() {
    let (first, journal) = history();
    // The second kernel's clock stands far behind the record's.
    let world = World::new();
    world.store.load(&journal[..]).unwrap();
    assert!(matches!(world.store.load(&journal[..]), Err(fak_sharedtask::SharedTaskError::Exists(_))));
    let agent = world.agent("b");
    let base = first.rev();
    let got = world.patch_on(&agent, &base, "fleet", json!([replace("/title", "third")]));
    assert_eq!((answer(&got), got.revision), ("accepted".to_owned(), 7));
    let (before, after) = (first.store.record(&task()).unwrap(), world.store.record(&task()).unwrap());
    assert!(after.updated_at > before.updated_at);
    assert!(world.clock.now() <= after.updated_at.parse().unwrap());
    let mut longer = Vec::new();
    world.store.journal(&task(), &mut longer).unwrap();
    let longer: Value = serde_json::from_slice(&longer).unwrap();
    let ids: std::collections::BTreeSet<String> =
        longer["entries"].as_array().unwrap().iter().map(|e| e["event"]["event_id"].to_string()).collect();
    assert_eq!(ids.len(), 7);
}

/// A public journal, with its repeated times and `logical:` clock, loads and goes on.
#[test]
fn a_public_journal_is_continued() {
    let text = include_bytes!("../../../../examples/peer/journals/journal-a.json");
    let mut config = config();
    config.rules.max_scope = fak_abi::ShareScope::Tenant;
    let world = World::with(config, |builder| builder);
    let id = world.store.load(&text[..]).unwrap();
    let mut again = Vec::new();
    world.store.journal(&id, &mut again).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(text.to_vec()).unwrap().trim_end());
    let agent = world.agent("b");
    let mut patch = crate::support::patch(
        &agent,
        &world.store.revision(&id).unwrap().1,
        "fleet",
        json!([note_of(&agent, "ours", body("tainted", "fleet"))]),
    );
    patch.task_id = id.clone();
    assert_eq!(answer(&world.store.patch(&agent, &patch, None).allowed().unwrap()), "accepted");
    let mut longer = Vec::new();
    world.store.journal(&id, &mut longer).unwrap();
    assert_eq!(strict(&longer).unwrap().entries, 13);
}

/// §5.10.
#[test]
fn opaque_journals_are_never_loaded() {
    for file in ["06-journal.json", "07-journal.json"] {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/peer/shared-task-record/");
        let text = std::fs::read(format!("{root}{file}")).unwrap();
        let store = TaskStore::new(config());
        assert!(store.load(&text[..]).is_err());
        assert!(store.recover(&text[..]).is_err());
        assert!(store.tasks().is_empty());
    }
}

/// A journal that verifies but is no history of patches is not loaded, and the entry is named.
#[test]
fn what_no_patch_could_have_done_is_not_loaded() {
    let (_, journal) = history();
    let mut forged: Value = serde_json::from_slice(&journal).unwrap();
    forged["entries"].as_array_mut().unwrap().truncate(3);
    // The last record loses the note of the first entry, and everything is digested anew.
    let entry = &mut forged["entries"][2];
    entry["record"]["notes"] = json!([]);
    let read = |value: &Value| {
        use fak_sharedtask::Envelope;
        fak_sharedtask::Record::parse(value.to_string().as_bytes(), &fak_sharedtask::Limits::default())
            .unwrap()
    };
    let rev = read(&entry["record"]).computed_rev().to_string();
    entry["record"]["rev"] = json!(rev);
    entry["event"]["next_rev"] = json!(rev);
    entry["record_digest"] = json!(fak_sharedtask::Envelope::digest(&read(&entry["record"])).to_string());
    let forged = redigest(forged);
    assert_eq!(strict(&forged).unwrap().entries, 3);
    let error = TaskStore::new(config()).load(&forged[..]).unwrap_err();
    match error {
        fak_sharedtask::SharedTaskError::Journal(error) => assert_eq!(error.entry(), Some(2), "{error}"),
        other => panic!("{other}"),
    }
}

/// §7.1.
#[test]
fn unknown_members_of_a_journal_are_digested() {
    let (_, journal) = history();
    let text = String::from_utf8(journal).unwrap();
    let with = text.replace("{\"event\":", "{\"x_b\":{\"z\":1.0,\"a\":[]},\"event\":");
    assert!(strict(with.as_bytes()).is_err(), "they count");
    let canonical = text
        .replace("\"},{\"event\":", "\",\"x_b\":1},{\"event\":")
        .replace("\"}],\"digest\":", "\",\"x_b\":1}],\"digest\":");
    let digest = serde_json::from_str::<Value>(&canonical).unwrap()["digest"].as_str().unwrap().to_owned();
    let blank = canonical.replace(&digest, "");
    let journal = canonical.replace(&digest, &fak_abi::Digest::of(blank.as_bytes()).to_string());
    assert_eq!(strict(journal.as_bytes()).unwrap().entries, 6);
}

/// §5.1: what this project does not know in a journal is kept when it is loaded and written again, and goes on being kept
/// when the record does. Nobody has labelled it, so no agent is handed it.
#[test]
fn unknown_members_of_a_journal_are_kept() {
    let (_, journal) = history();
    let text = String::from_utf8(journal).unwrap();
    let with = text.replace("\"},{\"event\":", "\",\"x_b\":{\"k\":1}},{\"event\":");
    let at = with.rfind("\"digest\":").unwrap();
    let blank = format!("{}\"digest\":\"\",\"x_a\":[\"kept\"]}}", with.get(..at).unwrap());
    let digest = fak_abi::Digest::of(blank.as_bytes());
    let with = blank.replace("\"digest\":\"\",\"x_a\"", &format!("\"digest\":\"{digest}\",\"x_a\""));
    assert_eq!(strict(with.as_bytes()).unwrap().entries, 6);

    let world = World::new();
    world.store.load(with.as_bytes()).unwrap();
    let mut again = Vec::new();
    world.store.journal(&task(), &mut again).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), with);
    let agent = world.agent("a");
    assert_eq!(answer(&world.patch(&agent, "tenant", json!([note(&agent, "later", "fleet")]))), "accepted");
    let mut later = Vec::new();
    world.store.journal(&task(), &mut later).unwrap();
    assert_eq!(strict(&later).unwrap().entries, 7);
    let later = String::from_utf8(later).unwrap();
    assert_eq!((later.matches("x_a").count(), later.matches("x_b").count()), (1, 5));
    let refused = crate::support::refused(&world.store.journal_by(&agent, &task(), Vec::new()));
    assert_eq!(refused, Some(fak_abi::Reason::TrustViolation));
}

/// A writer that fails at the k-th write never leaves the store changed, and the next journal is whole.
#[test]
fn a_failing_writer_changes_nothing() {
    struct Fails(usize);
    impl std::io::Write for Fails {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            match self.0.checked_sub(1) {
                None => Err(std::io::Error::other("disk full")),
                Some(left) => {
                    self.0 = left;
                    Ok(buf.len().min(100))
                }
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (world, journal) = history();
    for k in 0..20 {
        assert!(world.store.journal(&task(), Fails(k)).is_err());
    }
    let mut again = Vec::new();
    world.store.journal(&task(), &mut again).unwrap();
    assert_eq!(again, journal);
}
