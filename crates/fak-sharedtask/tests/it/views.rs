//! What readers see (§5.8), what watchers are told (§5.9), and what nobody is: I23, I24.

use fak_abi::{PrincipalKind, Reason};
use fak_sharedtask::{Envelope, EventView, Watched};
use serde_json::json;

use crate::support::{
    World, answer, artifact, body, config, note, note_of, patch, record, refused, replace, task,
};

/// §5.8.
#[test]
fn each_reader_sees_what_may_flow_to_it() {
    let world = World::with_task();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    let of_tenant = world.attach("tenant", PrincipalKind::Agent, false, true);
    world.patch(&both, "tenant", json!([note(&both, "nf", "fleet"), note(&both, "nt", "tenant")]));
    world.patch(&both, "agent", json!([note(&both, "na", "agent"), artifact("aa", "tainted", "agent")]));
    world.patch(&both, "tenant", json!([artifact("at", "tainted", "tenant")]));
    for (reader, notes, artifacts, body) in [
        (&both, vec!["nf", "nt", "na"], vec!["aa", "at"], true),
        (&of_fleet, vec!["nf"], vec![], true),
        (&of_tenant, vec!["nt"], vec!["at"], false),
    ] {
        let view = world.store.view(reader, &task()).allowed().unwrap();
        let ids: Vec<_> = view.notes().map(|note| &*note.note_id).collect();
        assert_eq!(ids, notes);
        assert_eq!(view.redacted_notes, 3 - notes.len());
        let ids: Vec<_> = view.artifacts().map(|artifact| &*artifact.artifact_id).collect();
        assert_eq!(ids, artifacts);
        assert_eq!(view.redacted_artifacts, 2 - artifacts.len());
        assert_eq!(view.body_visible, body);
        assert_eq!(view.open_decisions().count(), 2);
        assert_eq!((&*view.title, view.revision), ("first", 3));
        if !body {
            let shown = serde_json::from_slice::<serde_json::Value>(&view.to_record().to_json()).unwrap();
            assert_eq!(
                shown["body_ref"],
                json!({"kind": "external", "digest": "sha256:redacted", "bytes": 0, "taint": "quarantined",
                    "scope": "fleet", "durability": "session"})
            );
        }
    }
}

/// §5.8.
#[test]
fn the_chain_verifies_across_what_is_hidden() {
    let world = World::with_task();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    for (i, scope) in ["fleet", "tenant", "agent", "tenant", "fleet"].into_iter().enumerate() {
        world.patch(&both, scope, json!([note(&both, &format!("n{i}"), scope)]));
    }
    let seen = world.store.events(&of_fleet, &task()).allowed().unwrap();
    assert_eq!((seen.events.len(), seen.redacted), (5, 3));
    assert!(seen.verifies());
    let mut torn = seen.clone();
    torn.events.remove(2);
    assert!(!torn.verifies());
    let mut forged = seen.clone();
    if let EventView::Shown(event) = &mut forged.events[0] {
        let mut changed = (**event).clone();
        changed.reason = "changed".into();
        *event = changed.into();
    }
    assert!(!forged.verifies());
    assert!(world.store.events(&both, &task()).allowed().unwrap().redacted == 0);
}

/// I23: a conflict on a value the writer may not see does not show it.
#[test]
fn i23_former_values_are_redacted_too() {
    let world = World::with_task();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    let mut secret = body("tainted", "tenant");
    secret["digest"] = json!("sha256:SECRET");
    let base = world.rev();
    world.patch(&both, "tenant", json!([note_of(&both, "n", secret.clone()), replace("/body_ref", secret)]));
    let duplicate = world.patch_on(&of_fleet, &base, "fleet", json!([note(&of_fleet, "n", "fleet")]));
    assert_eq!(answer(&duplicate), "conflict DUPLICATE_NOTE");
    assert!(duplicate.result.conflict.as_ref().unwrap().current_value.is_null());
    let replacing = patch(&of_fleet, &base, "fleet", json!([replace("/body_ref", body("tainted", "fleet"))]));
    let refusal = world.store.patch(&of_fleet, &replacing, None);
    assert_eq!(refused(&refusal), Some(Reason::TrustViolation));
    let told = format!("{:?} {refusal:?}", String::from_utf8(duplicate.result.to_json()).unwrap());
    assert!(!told.contains("SECRET"));
    // Who may see it sees it.
    let mine = world.patch_on(&both, &base, "tenant", json!([note(&both, "n", "fleet")]));
    assert!(String::from_utf8(mine.result.to_json()).unwrap().contains("SECRET"));
}

/// A held patch's conflict is redacted for the human who approves it, and again for whoever asks later.
#[test]
fn an_approver_sees_no_more_than_a_reader() {
    let mut config = config();
    config.rules.approval = vec![fak_sharedtask::ApprovalRule::Actor(PrincipalKind::Agent)];
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let of_fleet = world.attach("boss", PrincipalKind::Human, true, false);
    let owner = world.human("owner");
    let base = world.rev();
    let held = patch(&agent, &base, "fleet", json!([note(&agent, "n", "fleet")]));
    let decision =
        world.store.patch(&agent, &held, None).allowed().unwrap().result.approval.unwrap().decision_id;
    let mut secret = body("tainted", "tenant");
    secret["digest"] = json!("sha256:SECRET");
    world.patch(&owner, "tenant", json!([note_of(&owner, "n", secret)]));
    let told = world.store.approve(&of_fleet, &task(), &decision).allowed().unwrap();
    assert_eq!(answer(&told), "conflict DUPLICATE_NOTE");
    assert!(!String::from_utf8(told.result.to_json()).unwrap().contains("SECRET"));
    let told = world.store.patch(&agent, &held, None).allowed().unwrap();
    assert!(String::from_utf8(told.result.to_json()).unwrap().contains("SECRET"), "the actor may see it");
}

/// §5.9.
#[test]
fn a_watch_misses_nothing_repeats_nothing_and_sees_only_its_own() {
    let world = World::with_task();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    world.patch(&both, "fleet", json!([note(&both, "before", "fleet")]));
    let (view, mut watch) = world.store.watch(&of_fleet, &task()).allowed().unwrap();
    assert_eq!(view.revision, 1);
    assert!(watch.try_next().allowed().unwrap().is_none());
    world.patch(&both, "tenant", json!([note(&both, "hidden", "tenant")]));
    world.patch(&both, "fleet", json!([note(&both, "shown", "fleet")]));
    // A watch needs no a2a.send of the writer, and no place that could run out.
    match watch.try_next().allowed().unwrap() {
        Some(Watched::Event { event, revision }) => {
            assert_eq!((revision, &*event.event_kind), (3, "patch_accepted"));
            assert_eq!(event.taint, fak_abi::Taint::Tainted);
        }
        other => panic!("{other:?}"),
    }
    assert!(watch.try_next().allowed().unwrap().is_none());
    world.kernel.detach(&crate::support::id("fleet")).unwrap();
    assert_eq!(refused(&watch.try_next()), Some(Reason::DefaultDeny));
}

/// §5.9.
#[test]
fn a_lagging_watch_is_told_and_resumes() {
    let mut config = config();
    config.bounds.lag = 3;
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let (_, mut watch) = world.store.watch(&agent, &task()).allowed().unwrap();
    for i in 0..5 {
        world.patch(&agent, "fleet", json!([note(&agent, &format!("n{i}"), "fleet")]));
    }
    match watch.try_next().allowed().unwrap() {
        Some(Watched::Lagged { missed, revision }) => assert_eq!((missed, revision), (5, 5)),
        other => panic!("{other:?}"),
    }
    world.patch(&agent, "fleet", json!([note(&agent, "next", "fleet")]));
    assert!(matches!(watch.try_next().allowed().unwrap(), Some(Watched::Event { revision: 6, .. })));
}

#[tokio::test]
async fn a_waiting_watch_wakes_for_what_it_may_see_and_for_its_end() {
    let world = World::with_task();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    let (_, mut watch) = world.store.watch(&of_fleet, &task()).allowed().unwrap();
    let waiting = tokio::spawn(async move {
        let first = watch.next().await.allowed();
        (first, watch.next().await.is_allow())
    });
    tokio::task::yield_now().await;
    world.patch(&both, "tenant", json!([note(&both, "hidden", "tenant")]));
    tokio::task::yield_now().await;
    world.patch(&both, "fleet", json!([note(&both, "shown", "fleet")]));
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    world.kernel.detach(&crate::support::id("fleet")).unwrap();
    let (first, second) = waiting.await.unwrap();
    assert!(matches!(first, Some(Watched::Event { revision: 2, .. })));
    assert!(!second);
}

#[test]
fn a_journal_is_handed_over_whole_or_not_at_all() {
    let world = World::with_task();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    world.patch(&both, "fleet", json!([note(&both, "n", "fleet")]));
    let mut out = Vec::new();
    world.store.journal_by(&of_fleet, &task(), &mut out).allowed().unwrap().unwrap();
    let mut whole = Vec::new();
    world.store.journal(&task(), &mut whole).unwrap();
    assert_eq!(out, whole);
    // A former body that was hidden is enough.
    world.patch(&both, "tenant", json!([replace("/body_ref", body("tainted", "tenant"))]));
    world.patch(&both, "tenant", json!([replace("/body_ref", body("tainted", "fleet"))]));
    out.clear();
    let refusal = world.store.journal_by(&of_fleet, &task(), &mut out);
    assert_eq!(refused(&refusal), Some(Reason::TrustViolation));
    assert!(out.is_empty());
}

/// Unknown members are kept for the record's sake and shown to nobody: nobody has labelled them. (§5.1)
#[test]
fn unknown_members_are_kept_and_not_shown() {
    let world = World::new();
    let mut with = record();
    with["x_note"] = json!("MARKER");
    with["open_decisions"][0]["x_note"] = json!("MARKER");
    world.store.create_json(with.to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let kept = String::from_utf8(world.store.record(&task()).unwrap().to_json()).unwrap();
    assert_eq!(kept.matches("MARKER").count(), 2);
    let view = world.store.view(&agent, &task()).allowed().unwrap();
    assert!(!format!("{:?}", view.to_record()).contains("MARKER"));
    assert!(!String::from_utf8(view.to_record().to_json()).unwrap().contains("MARKER"));
    let conflict = world.patch(&agent, "fleet", json!([crate::support::append_decision("dec_a")]));
    assert!(!String::from_utf8(conflict.result.to_json()).unwrap().contains("MARKER"));
    assert_eq!(world.store.recomputed_rev(&task()), Some(world.rev()));
}

/// §5.10: one thing that may not flow to a reader is enough to keep a journal from it, whatever it is; explaining says so.
#[test]
fn whatever_is_hidden_keeps_the_whole_journal() {
    let refusal = |world: &World| {
        let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
        let explained = world.store.explain_read(&of_fleet, fak_abi::Act::TaskJournal, &task());
        let refused = refused(&world.store.journal_by(&of_fleet, &task(), Vec::new()));
        assert_eq!(explained.verdict.reason(), refused);
        refused
    };
    let hidden = Some(Reason::TrustViolation);
    let both = |world: &World| world.agent("both");
    let world = World::with_task();
    world.patch(&both(&world), "fleet", json!([note(&world.agent("x"), "n", "fleet")]));
    assert_eq!(refusal(&world), None);
    // An event whose patch was wider than what it brought.
    let world = World::with_task();
    world.patch(&both(&world), "tenant", json!([replace("/title", "second")]));
    assert_eq!(refusal(&world), hidden);
    // Members that nobody labelled: of the record, of a decision.
    for at in ["", "/open_decisions/0"] {
        let mut with = record();
        with.pointer_mut(at).unwrap()["x_note"] = json!("MARKER");
        let world = World::new();
        world.store.create_json(with.to_string().as_bytes()).unwrap();
        assert_eq!(refusal(&world), hidden, "{at}");
    }
    // And of a journal that was loaded, or of an entry of it.
    let world = World::with_task();
    world.patch(&both(&world), "fleet", json!([replace("/title", "second")]));
    let mut plain = Vec::new();
    world.store.journal(&task(), &mut plain).unwrap();
    let plain = String::from_utf8(plain).unwrap();
    let (all, _) = plain.rsplit_once("\"digest\":\"").unwrap();
    let marked = ",\"x_note\":\"MARKER\"";
    let entry = all.strip_suffix("}],").unwrap();
    for (entry_rest, rest, expected) in [("", "", None), (marked, "", hidden), ("", marked, hidden)] {
        let journal = |digest: &str| format!("{entry}{entry_rest}}}],\"digest\":\"{digest}\"{rest}}}");
        let digest = fak_abi::Digest::of(journal("").as_bytes()).to_string();
        let world = World::new();
        world.store.load(journal(&digest).as_bytes()).unwrap();
        assert_eq!(refusal(&world), expected, "{entry_rest} {rest}");
    }
}

/// §5.9: a watch lags once more than the bound is unseen, and is told nothing where nothing was for it.
#[test]
fn a_watch_lags_past_the_bound_and_only_for_what_it_may_see() {
    let mut config = config();
    config.bounds.lag = 2;
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    let (_, mut watch) = world.store.watch(&of_fleet, &task()).allowed().unwrap();
    let write = |name: &str, scope| world.patch(&both, scope, json!([note(&both, name, scope)]));
    write("n1", "fleet");
    write("n2", "fleet");
    for expected in [1, 2] {
        match watch.try_next().allowed().unwrap() {
            Some(Watched::Event { revision, .. }) => assert_eq!(revision, expected),
            other => panic!("{other:?}"),
        }
    }
    for name in ["m1", "m2", "m3"] {
        write(name, "tenant");
    }
    assert!(watch.try_next().allowed().unwrap().is_none());
}
