//! Memory: what two thousand notes keep alive (PERFORMANCE row 14, §5.12), and what verifying holds at once (row 16).

use fak_sharedtask::{VerifyOptions, verify_journal};
use serde_json::json;

use crate::support::{World, answer, note, task};

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
