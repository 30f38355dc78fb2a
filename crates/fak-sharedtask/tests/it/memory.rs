//! Memory: what two thousand notes keep alive (PERFORMANCE row 14, §5.12), and what verifying holds at once (row 16).

use fak_sharedtask::{VerifyOptions, verify_journal};
use serde_json::json;

use crate::support::{World, answer, decision_of, id, note, patch, replace, task, with_approval};

/// §5.12.
#[test]
fn two_thousand_notes_keep_less_than_eight_mebibytes_alive() {
    let world = World::with_task();
    let agent = world.agent("a");
    let live = allocation_counter::measure(|| {
        for n in 0..2000 {
            let got = world.patch(&agent, "fleet", json!([note(&agent, &format!("note_{n:04}"), "fleet")]));
            assert_eq!(answer(&got), "accepted");
        }
    })
    .bytes_current;
    assert!(live < 8 << 20, "{live} bytes are alive");
}

/// Verifying holds one record and one chunk, however long the journal is.
#[test]
fn verifying_holds_one_record_at_a_time() {
    let world = World::with_task();
    let agent = world.agent("a");
    for n in 0..120 {
        world.patch(&agent, "fleet", json!([note(&agent, &format!("note_{n:04}"), "fleet")]));
    }
    let mut journal = Vec::new();
    world.store.journal(&task(), &mut journal).unwrap();
    let peak = allocation_counter::measure(|| {
        verify_journal(&journal[..], &VerifyOptions::default()).unwrap();
    })
    .bytes_max;
    let record = world.store.record(&task()).unwrap();
    let record = fak_sharedtask::Envelope::to_json(&record).len() as u64;
    assert!(peak < 8 * record + (1 << 18), "{peak} bytes for records of {record}");
}

/// §4.12: what is remembered of a patch, under a key or because it was held, does not keep the patch.
#[test]
fn an_outcome_that_is_remembered_does_not_keep_its_patch() {
    let (world, human) = (with_approval(fak_sharedtask::ApprovalRule::Path("/title".to_owned())), "boss");
    let (agent, human) = (world.agent("a"), world.human(human));
    let size: usize = 1 << 16;
    let mut conflicting = note(&agent, "n", "fleet");
    assert_eq!(answer(&world.patch(&agent, "fleet", json!([conflicting.clone()]))), "accepted");
    conflicting["value"]["x_large"] = json!("x".repeat(size));
    let first = patch(&agent, &world.rev(), "fleet", json!([conflicting]));
    let live = allocation_counter::measure(|| {
        for n in 0..64 {
            let told = world.store.patch(&agent, &first, Some(&id(&format!("k{n}")))).allowed().unwrap();
            assert_eq!(answer(&told), "conflict DUPLICATE_NOTE");
            let message = format!("{n}").repeat(size / 2);
            let held =
                patch(&agent, &world.rev(), "fleet", json!([replace("/title", "x")])).message(&message);
            let held = world.store.patch(&agent, &held, None).allowed().unwrap();
            world.store.reject(&human, &task(), &decision_of(&held)).allowed().unwrap();
        }
    })
    .bytes_current;
    assert!(live < 8 * size as i64, "{live} bytes are alive");
    // A retry is told what it proposed all the same.
    let again = world.store.patch(&agent, &first, Some(&id("k0"))).allowed().unwrap();
    let conflict = again.result.conflict.unwrap();
    assert!(fak_abi::json::Value::member(&conflict.proposed_value, "x_large").is_some());
}
