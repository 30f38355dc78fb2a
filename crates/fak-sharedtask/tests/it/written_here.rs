//! The journal this project checks in: twelve varied patches with every character the encoding has opinions on (I22). An
//! independent script, `examples/peer/recompute.py`, recomputes its digests; this test holds the writer to its bytes.

use expect_test::expect_file;
use fak_sharedtask::{TaskStore, VerifyOptions, verify_journal};
use serde_json::{Value, json};

use crate::support::{
    World, answer, append_decision, artifact, body, config, note, note_of, record, replace, task,
};

/// `<b>&`, both line separators, é composed and decomposed, 漢, an emoji of several code points, controls.
const ODD: &str =
    "<b>& \u{2028}\u{2029} \u{e9} e\u{301} 漢 👩\u{200d}👩\u{200d}👧 \"\\/ \t\n\r\u{8}\u{c}\u{0}\u{1f}\u{7f}";

fn journal() -> Vec<u8> {
    let world = World::new();
    let mut first = record();
    first["artifacts"] = Value::Null;
    first["title"] = json!(ODD);
    first["body_ref"]["bytes"] = json!(9007199254740993u64);
    first["x_open"] =
        json!({"tiny": 1e-7, "big": 9007199254740993u64, "huge": 1e21, "none": null, "<": [true, -0.5]});
    world.store.create_json(first.to_string().as_bytes()).unwrap();
    let (planner, editor) = (world.agent("planner"), world.human("\u{e9}dith <ops>"));
    let unknown = |mut op: Value| {
        op["value"]["x_score"] = json!(1e-7);
        op["value"]["body_ref"]["x_big"] = json!(9007199254740993u64);
        op
    };
    let mut external = body("tainted", "tenant");
    external["kind"] = json!("external");
    external["store"] = json!("l3-kv");
    external["deletion_certificate"] = json!("sha256:certificate");
    let first_rev = world.rev();
    let patches = [
        (&editor, "fleet", json!([replace("/title", format!("second {ODD}"))])),
        (&planner, "fleet", json!([note(&planner, "note_1", "fleet")])),
        (&editor, "tenant", json!([unknown(note(&editor, "note_2_漢", "tenant"))])),
        (&planner, "agent", json!([note(&planner, "note_private", "agent")])),
        (&planner, "fleet", json!([artifact("art_1", "tainted", "fleet")])),
        (&editor, "tenant", json!([artifact("art_2", "tainted", "tenant"), append_decision("dec_c")])),
        (&editor, "fleet", json!([replace("/open_decisions/dec_a/state", "<closed>")])),
        (&planner, "fleet", json!([replace("/state", "input_required"), append_decision("dec_d")])),
        (&editor, "tenant", json!([replace("/body_ref", external.clone())])),
        (&editor, "tenant", json!([note_of(&editor, "note_external", external)])),
        (
            &planner,
            "fleet",
            json!([replace("/open_decisions/dec_d/state", "e\u{301}"), replace("/state", "done")]),
        ),
    ];
    for (agent, scope, ops) in patches {
        world.clock.advance(std::time::Duration::from_millis(1500));
        assert_eq!(answer(&world.patch(agent, scope, ops)), "accepted");
    }
    // The twelfth merges on the base of the first.
    let late = json!([note(&planner, "note_late", "fleet")]);
    assert_eq!(answer(&world.patch_on(&planner, &first_rev, "fleet", late)), "accepted");
    let mut out = Vec::new();
    world.store.journal(&task(), &mut out).unwrap();
    out
}

/// §7.1, I22.
#[test]
fn the_checked_in_journal_is_what_is_written() {
    let journal = journal();
    let text = String::from_utf8(journal.clone()).unwrap();
    expect_file!["../../../../examples/journals/written-here.json"].assert_eq(&text);
    let summary = verify_journal(&journal[..], &VerifyOptions::default()).unwrap();
    assert_eq!((summary.entries, summary.opaque), (12, None));
    let store = TaskStore::new(config());
    store.load(&journal[..]).unwrap();
    let mut again = Vec::new();
    store.journal(&task(), &mut again).unwrap();
    assert_eq!(again, journal);
}
