//! The merge table (§5.3), its order (§5.5), and the incidents it answers: I03 to I06, I27.

use fak_abi::Reason;
use serde_json::{Value, json};

use crate::support::{
    World, answer, append_decision, artifact, body, id, note, note_of, patch, record, refused, replace, task,
};

/// §5.3, §5.4.
#[test]
fn every_row_of_the_table_on_a_current_and_on_a_stale_base() {
    let ops = |agent: &fak_abi::AgentHandle| -> Vec<(Value, &'static str)> {
        vec![
            (note(agent, "n", "fleet"), "accepted"),
            (artifact("a", "tainted", "fleet"), "accepted"),
            (append_decision("dec_new"), "accepted"),
            (replace("/title", "second"), "conflict STALE_BASE"),
            (replace("/state", "done"), "conflict STALE_BASE"),
            (replace("/body_ref", body("tainted", "fleet")), "conflict STALE_BASE"),
            (replace("/open_decisions/dec_a/state", "closed"), "conflict STALE_BASE"),
        ]
    };
    for row in 0..7 {
        for stale in [false, true] {
            let world = World::with_task();
            let agent = world.agent("a");
            let base = world.rev();
            if stale {
                assert_eq!(
                    answer(&world.patch(&agent, "fleet", json!([note(&agent, "before", "fleet")]))),
                    "accepted"
                );
            }
            let (op, on_stale) = ops(&agent).remove(row);
            let got = world.patch_on(&agent, &base, "fleet", json!([op]));
            assert_eq!(answer(&got), if stale { on_stale } else { "accepted" }, "row {row}, stale {stale}");
            let advanced = usize::from(stale) + usize::from(got.result.is_accepted());
            assert_eq!(got.revision, advanced);
            assert_eq!(world.store.revision(&task()).unwrap().0, advanced);
            assert_eq!(world.store.recomputed_rev(&task()), Some(world.rev()));
        }
    }
}

/// §5.3.
#[test]
fn what_the_merge_does_not_know_is_denied() {
    let world = World::with_task();
    let agent = world.agent("a");
    let other = world.agent("b");
    let before = world.store.record(&task()).unwrap();
    for ops in [
        json!([]),
        json!([{"op": "remove", "path": "/title"}]),
        json!([{"op": "remove", "path": "/title", "value": "x"}]),
        json!([replace("/nothing", "x")]),
        json!([replace("/title", "")]),
        json!([replace("/title", 7)]),
        json!([replace("/state", "")]),
        json!([{"op": "replace", "path": "/title"}]),
        json!([{"op": "replace", "path": "/title", "value": null}]),
        json!([replace("/notes", json!([]))]),
        json!([replace("/open_decisions//state", "x")]),
        json!([{"op": "append", "path": "/title", "value": "x"}]),
        json!([{"op": "append", "path": "/notes", "value": {"note_id": "x"}}]),
        json!([note(&other, "n", "fleet")]),
        json!([note(&agent, "", "fleet")]),
        json!([note(&agent, "a\u{202e}b", "fleet")]),
        // All or nothing: the first op alone would be accepted.
        json!([replace("/title", "x"), {"op": "remove", "path": "/state"}]),
    ] {
        let got = world.patch(&agent, "fleet", ops.clone());
        assert_eq!(answer(&got), "denied UNSUPPORTED_PATCH", "{ops}");
        assert_eq!(world.store.record(&task()).unwrap(), before);
    }
}

/// §5.3: whoever wrote a patch that is denied is told for what of it, and what was expected there.
#[test]
fn a_denied_patch_says_for_what_of_it() {
    let world = World::with_task();
    let (agent, other) = (world.agent("a"), world.agent("b"));
    let op = |op: &str, path: &str| json!({"op": op, "path": path, "value": "x"});
    for (scope, ops, at, expected) in [
        ("fleet", json!([]), "/ops", "expected at least one op"),
        (
            "fleet",
            json!([op("remove", "/state")]),
            "/ops/0/op",
            "expected append or replace: nothing is removed",
        ),
        (
            "fleet",
            json!([replace("/state", "x"), op("replace", "/titel")]),
            "/ops/1/path",
            "did you mean \"/title\"",
        ),
        ("fleet", json!([op("replace", "/nowhere/near")]), "/ops/0/path", "expected \"/title\""),
        ("fleet", json!([op("append", "/artefacts")]), "/ops/0/path", "did you mean \"/artifacts\""),
        ("fleet", json!([op("append", "/title")]), "/ops/0/op", "expected replace"),
        ("fleet", json!([op("replace", "/notes")]), "/ops/0/op", "expected append"),
        ("fleet", json!([{"op": "replace", "path": "/title"}]), "/ops/0/value", "expected a value"),
        ("fleet", json!([replace("/title", 7)]), "/ops/0/value", "expected a text"),
        (
            "fleet",
            json!([{"op": "append", "path": "/notes", "value": {"note_id": "x"}}]),
            "/ops/0/value",
            "missing member",
        ),
        ("fleet", json!([note(&agent, "", "fleet")]), "/ops/0/value/note_id", "at least"),
        ("fleet", json!([note(&other, "n", "fleet")]), "/ops/0/value/author", "expected the patch's actor"),
        ("public", json!([note(&agent, "n", "fleet")]), "/scope", "expected tenant or narrower"),
        (
            "fleet",
            json!([note(&agent, "n", "tenant")]),
            "/ops/0/value/body_ref/scope",
            "expected fleet or narrower",
        ),
        ("agent", json!([replace("/title", "x")]), "/scope", "everybody sees"),
    ] {
        let fault = world.patch(&agent, scope, ops.clone()).fault.unwrap();
        assert!(fault.at.starts_with(at) && fault.expected.contains(expected), "{ops}: {fault}");
    }
    let of_fleet = world.attach("fleet", fak_abi::PrincipalKind::Agent, true, false);
    let fault = world.patch(&of_fleet, "tenant", json!([note(&of_fleet, "n", "fleet")])).fault.unwrap();
    assert_eq!(
        fault.to_string(),
        "at \"/scope\": expected a tenant that record and actor are both of, and there is none"
    );
    assert_eq!(world.patch(&agent, "fleet", json!([replace("/title", "x")])).fault, None);
}

/// §5.5.
#[test]
fn an_empty_base_an_unknown_base_and_an_unknown_task() {
    let world = World::with_task();
    let agent = world.agent("a");
    let ops = json!([note(&agent, "n", "fleet")]);
    let mut empty = patch(&agent, &world.rev(), "fleet", ops.clone());
    empty.base_rev = None;
    let got = world.store.patch(&agent, &empty, None).allowed().unwrap();
    assert_eq!(answer(&got), "denied UNSUPPORTED_PATCH");
    // A base the task never had is stale even for an append, with nothing to show for it.
    let never = fak_sharedtask::Hash::parse(&format!("sha256:{}", "0".repeat(64))).unwrap();
    let got = world.patch_on(&agent, &never, "fleet", ops.clone());
    assert_eq!(answer(&got), "conflict STALE_BASE");
    assert!(got.result.conflict.unwrap().base_value.is_null());
    let mut elsewhere = patch(&agent, &world.rev(), "fleet", ops);
    elsewhere.task_id = fak_sharedtask::TaskId::new("task_other").unwrap();
    let got = world.store.patch(&agent, &elsewhere, None).allowed().unwrap();
    assert_eq!(answer(&got), "denied UNSUPPORTED_PATCH");
}

/// §5.3.
#[test]
fn duplicates_and_missing_decisions_conflict_with_their_values() {
    let world = World::with_task();
    let agent = world.agent("a");
    let base = world.rev();
    world.patch(&agent, "fleet", json!([note(&agent, "n", "fleet"), artifact("x", "tainted", "fleet")]));
    for (op, expected) in [
        (note(&agent, "n", "fleet"), "conflict DUPLICATE_NOTE"),
        (artifact("x", "tainted", "fleet"), "conflict DUPLICATE_ARTIFACT"),
        (append_decision("dec_a"), "conflict DUPLICATE_DECISION"),
        (replace("/open_decisions/dec_z/state", "closed"), "conflict MISSING_DECISION"),
    ] {
        let got = world.patch_on(&agent, &base, "fleet", json!([op]));
        assert_eq!(answer(&got), expected);
        let conflict = got.result.conflict.unwrap();
        assert_eq!(&*conflict.resolution, "manual");
        // In the base only the decision was there.
        assert_eq!(conflict.base_value.is_null(), expected != "conflict DUPLICATE_DECISION");
        assert_eq!(conflict.current_value.is_null(), expected == "conflict MISSING_DECISION");
    }
    // Twice in one patch is twice as well, and two are two.
    let of_name = |kind: &str, name: &str| match kind {
        "NOTE" => note(&agent, name, "fleet"),
        "ARTIFACT" => artifact(name, "tainted", "fleet"),
        _ => append_decision(&format!("dec_{name}")),
    };
    for kind in ["NOTE", "ARTIFACT", "DECISION"] {
        let got = world.patch(&agent, "fleet", json!([of_name(kind, "m"), of_name(kind, "m")]));
        assert_eq!(answer(&got), format!("conflict DUPLICATE_{kind}"));
        let conflict = got.result.conflict.unwrap();
        assert!(conflict.base_value.is_null() && !conflict.current_value.is_null());
        let got = world.patch(&agent, "fleet", json!([of_name(kind, "m"), of_name(kind, "o")]));
        assert_eq!(answer(&got), "accepted");
    }
}

/// I03: six title patches on one base; one is accepted, each other sees base, current and proposed.
#[test]
fn i03_of_six_parallel_edits_one_is_accepted_and_five_are_told() {
    let world = World::with_task();
    let agents: Vec<_> = (0..6).map(|i| world.agent(&format!("a{i}"))).collect();
    let base = world.rev();
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = agents
            .iter()
            .enumerate()
            .map(|(i, agent)| {
                let (world, base) = (&world, &base);
                scope.spawn(move || {
                    world.patch_on(agent, base, "fleet", json!([replace("/title", format!("title {i}"))]))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winner = results.iter().position(|patched| patched.result.is_accepted()).unwrap();
    for (i, patched) in results.iter().enumerate() {
        if i == winner {
            continue;
        }
        assert_eq!(answer(patched), "conflict STALE_BASE");
        let conflict = patched.result.conflict.as_ref().unwrap();
        assert_eq!(conflict.base_value.as_str(), Some("first"));
        assert_eq!(conflict.current_value.as_str(), Some(format!("title {winner}").as_str()));
        assert_eq!(conflict.proposed_value.as_str(), Some(format!("title {i}").as_str()));
    }
}

/// I04: eight agents resolve one decision on the same base, in parallel; exactly one wins.
#[test]
fn i04_of_eight_claims_exactly_one_wins() {
    for round in 0..20 {
        let world = World::with_task();
        let agents: Vec<_> = (0..8).map(|i| world.agent(&format!("a{i}"))).collect();
        let base = world.rev();
        let won: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = agents
                .iter()
                .map(|agent| {
                    let (world, base) = (&world, &base);
                    let ops = json!([replace(
                        "/open_decisions/dec_a/state",
                        format!("{}", agent.principal().id())
                    )]);
                    scope.spawn(move || {
                        usize::from(world.patch_on(agent, base, "fleet", ops).result.is_accepted())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 1, "round {round}");
    }
}

/// I05: a hundred concurrent appends on one stale base; all are there, none twice.
#[test]
fn i05_a_hundred_concurrent_appends_all_survive() {
    let world = World::with_task();
    let agents: Vec<_> = (0..10).map(|i| world.agent(&format!("a{i}"))).collect();
    let base = world.rev();
    world.patch(&agents[0], "fleet", json!([replace("/title", "second")]));
    std::thread::scope(|scope| {
        for agent in &agents {
            let (world, base) = (&world, &base);
            scope.spawn(move || {
                for i in 0..10 {
                    let name = format!("{}-{i}", agent.principal().id());
                    let got = world.patch_on(agent, base, "fleet", json!([note(agent, &name, "fleet")]));
                    assert_eq!(answer(&got), "accepted");
                }
            });
        }
    });
    let record = world.store.record(&task()).unwrap();
    let mut ids: Vec<_> = record.notes.items.iter().map(|note| note.note_id.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((record.notes.items.len(), ids.len()), (100, 100));
    assert_eq!(world.store.recomputed_rev(&task()), Some(world.rev()));
}

/// I06: a scalar and an append on the same base do not collide: the append never blocks on the scalar.
#[test]
fn i06_an_append_does_not_collide_with_a_scalar() {
    let world = World::with_task();
    let agent = world.agent("a");
    let base = world.rev();
    let state = world.patch_on(&agent, &base, "fleet", json!([replace("/state", "done")]));
    let append = world.patch_on(&agent, &base, "fleet", json!([note(&agent, "n", "fleet")]));
    assert_eq!((answer(&state), answer(&append)), ("accepted".to_owned(), "accepted".to_owned()));
}

/// I27: a poisoned or relabelled body does not enter the record.
#[test]
fn i27_quarantined_and_relabelled_refs_stay_out() {
    let world = World::with_task();
    let agent = world.agent("a");
    let before = world.store.record(&task()).unwrap();
    let external = |cert: &str| {
        let mut body = body("tainted", "fleet");
        body["kind"] = json!("external");
        body["deletion_certificate"] = json!(cert);
        body
    };
    for (op, expected) in [
        (note_of(&agent, "n", body("quarantined", "fleet")), "quarantined BODY_QUARANTINED"),
        (note_of(&agent, "n", body("trusted", "fleet")), "quarantined BODY_WITNESS_MISSING"),
        (note_of(&agent, "n", external("")), "quarantined BODY_WITNESS_MISSING"),
        (note_of(&agent, "n", external("none")), "quarantined BODY_WITNESS_MISSING"),
        (replace("/body_ref", body("quarantined", "fleet")), "quarantined BODY_QUARANTINED"),
        (replace("/body_ref", body("trusted", "fleet")), "quarantined BODY_WITNESS_MISSING"),
        (artifact("x", "quarantined", "fleet"), "quarantined ARTIFACT_QUARANTINED"),
        (artifact("x", "trusted", "fleet"), "quarantined ARTIFACT_WITNESS_MISSING"),
    ] {
        let got = world.patch(&agent, "fleet", json!([op]));
        assert_eq!(answer(&got), expected);
        assert_eq!(world.store.record(&task()).unwrap(), before);
    }
    let got = world.patch(&agent, "fleet", json!([note_of(&agent, "n", external("sha256:cert"))]));
    assert_eq!(answer(&got), "accepted");
}

/// §5.5.
#[test]
fn scopes_beyond_the_store_the_patch_or_the_actor_are_forbidden() {
    let world = World::with_task();
    let both = world.agent("both");
    let of_fleet = world.attach("fleet", fak_abi::PrincipalKind::Agent, true, false);
    let of_tenant = world.attach("tenant", fak_abi::PrincipalKind::Agent, false, true);
    let forbidden = "denied SCOPE_WIDEN_FORBIDDEN";
    for (agent, scope, op, expected) in [
        (&both, "public", note(&both, "1", "fleet"), forbidden),
        (&both, "fleet", note(&both, "2", "tenant"), forbidden),
        (&both, "tenant", note(&both, "3", "tenant"), "accepted"),
        (&both, "tenant", note(&both, "4", "fleet"), "accepted"),
        (&of_fleet, "tenant", note(&of_fleet, "5", "fleet"), forbidden),
        (&of_tenant, "fleet", note(&of_tenant, "6", "agent"), forbidden),
        (&of_tenant, "tenant", note(&of_tenant, "7", "fleet"), forbidden),
        (&of_tenant, "agent", note(&of_tenant, "8", "agent"), "accepted"),
        (&both, "agent", replace("/title", "x"), forbidden),
        (&both, "agent", replace("/state", "x"), forbidden),
        (&both, "agent", append_decision("dec_x"), forbidden),
        (&both, "agent", replace("/open_decisions/dec_a/state", "x"), forbidden),
    ] {
        let got = world.patch(agent, scope, json!([op.clone()]));
        assert_eq!(answer(&got), expected, "{scope} {op}");
    }
}

/// §5.2, §5.5.
#[test]
fn another_name_another_fleet_and_a_hidden_body_are_refused_by_the_kernel() {
    let world = World::with_task();
    let agent = world.agent("a");
    let other = world.agent("b");
    let forged = patch(&other, &world.rev(), "fleet", json!([replace("/title", "x")]));
    assert_eq!(refused(&world.store.patch(&agent, &forged, None)), Some(Reason::TrustViolation));
    let stranger = world
        .kernel
        .attach(fak_abi::PrincipalSpec::agent(id("s")).fleet(id("g")).caps(fak_abi::CapSet::ALL))
        .unwrap();
    assert_eq!(refused(&world.store.view(&stranger, &task())), Some(Reason::TrustViolation));
    let powerless = world.kernel.attach(fak_abi::PrincipalSpec::agent(id("p")).fleet(id("f"))).unwrap();
    assert_eq!(refused(&world.store.view(&powerless, &task())), Some(Reason::DefaultDeny));
    // A private body is its author's: nobody else may replace it unseen.
    world.patch(&agent, "agent", json!([replace("/body_ref", body("tainted", "agent"))]));
    let blind = patch(&other, &world.rev(), "fleet", json!([replace("/body_ref", body("tainted", "fleet"))]));
    assert_eq!(refused(&world.store.patch(&other, &blind, None)), Some(Reason::TrustViolation));
    assert_eq!(
        answer(&world.patch(&agent, "fleet", json!([replace("/body_ref", body("tainted", "fleet"))]))),
        "accepted"
    );
}

/// A→B→A does not revive a stale base: a revision never recurs, because time strictly advances. (§5.5)
#[test]
fn going_back_to_an_old_value_makes_a_new_revision() {
    let world = World::with_task();
    let agent = world.agent("a");
    let first = world.rev();
    world.patch(&agent, "fleet", json!([replace("/title", "second")]));
    let second = world.rev();
    world.patch(&agent, "fleet", json!([replace("/title", "first")]));
    assert_ne!(world.rev(), first);
    // The same values by the same hand at the same instant of a clock that stands still.
    world.patch(&agent, "fleet", json!([replace("/title", "second")]));
    assert_ne!(world.rev(), second);
    let stale = world.patch_on(&agent, &second, "fleet", json!([replace("/title", "third")]));
    assert_eq!(answer(&stale), "conflict STALE_BASE");
    let got = world.patch_on(&agent, &first, "fleet", json!([replace("/title", "third")]));
    assert_eq!(answer(&got), "conflict STALE_BASE");
}

/// §5.5, §8.
#[test]
fn limits_are_oversize_and_leave_the_record_as_it_was() {
    let mut config = crate::support::config();
    config.rules.limits.envelope = 4096;
    config.rules.limits.entries = 3;
    config.rules.limits.text = 100;
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let before = world.store.record(&task()).unwrap();
    let notes: Vec<Value> = (0..20).map(|i| note(&agent, &format!("n{i}"), "fleet")).collect();
    for ops in [
        json!(notes),
        json!([replace("/title", "x".repeat(101))]),
        json!([append_decision("dec_c"), append_decision("dec_d")]),
    ] {
        let patch = patch(&agent, &world.rev(), "fleet", ops);
        assert_eq!(refused(&world.store.patch(&agent, &patch, None)), Some(Reason::Oversize));
        assert_eq!(world.store.record(&task()).unwrap(), before);
    }
}

/// §5.5: a revision never recurs, not even where no later instant can be written.
#[test]
fn nothing_is_merged_after_the_end_of_time() {
    let world = World::new();
    let mut late = record();
    late["updated_at"] = json!("9999-12-31T23:59:59.999998Z");
    world.store.create_json(late.to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let titled = |title: &str| patch(&agent, &world.rev(), "fleet", json!([replace("/title", title)]));
    assert!(world.store.patch(&agent, &titled("second"), None).is_allow());
    let (number, last) = world.store.revision(&task()).unwrap();
    let denied = world.store.patch(&agent, &titled("first"), None);
    assert_eq!(refused(&denied), Some(Reason::Oversize));
    assert_eq!(world.store.revision(&task()).unwrap(), (number, last));
}
