//! Random patches against the naive store: same answers, same records, same digests; nothing lost, nothing leaked, and
//! every history survives its journal (§5).

use std::time::Duration;

use fak_abi::{AgentHandle, Clock, PrincipalKind, ShareScope};
use fak_sharedtask::{Envelope, EventView, Hash, TaskStore, VerifyOptions, verify_journal};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::reference::{Naive, Rights, base};
use crate::support::{
    World, answer, append_decision, artifact, body, config, note_of, parsed, patch, record, refused, replace,
    task,
};

/// One random op, to be made out once its actor is known.
#[derive(Debug, Clone)]
enum AnyOp {
    Note(u8, &'static str, &'static str),
    ForeignNote(u8),
    Artifact(u8, &'static str, &'static str),
    Decision(u8),
    Settle(u8, u8),
    Title(u8),
    State(u8),
    Body(&'static str, &'static str),
    External(u8, bool),
    Wrong(u8),
}

fn taint() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => Just("tainted"), 1 => Just("trusted"), 1 => Just("quarantined")]
}

fn scope() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just("agent"), 12 => Just("fleet"), 6 => Just("tenant"), 1 => Just("public")]
}

fn any_op() -> impl Strategy<Value = AnyOp> {
    let id = 0..40u8;
    prop_oneof![
        8 => (any::<u8>(), taint(), scope()).prop_map(|(n, t, s)| AnyOp::Note(n, t, s)),
        1 => id.clone().prop_map(AnyOp::ForeignNote),
        4 => (any::<u8>(), taint(), scope()).prop_map(|(n, t, s)| AnyOp::Artifact(n, t, s)),
        3 => id.clone().prop_map(AnyOp::Decision),
        4 => (id.clone(), any::<u8>()).prop_map(|(n, s)| AnyOp::Settle(n, s)),
        3 => any::<u8>().prop_map(AnyOp::Title),
        3 => any::<u8>().prop_map(AnyOp::State),
        3 => (taint(), scope()).prop_map(|(t, s)| AnyOp::Body(t, s)),
        1 => (id, any::<bool>()).prop_map(|(n, c)| AnyOp::External(n, c)),
        1 => (0..4u8).prop_map(AnyOp::Wrong),
    ]
}

/// Text that the canonical encoding has opinions on.
fn text(n: u8) -> String {
    let odd = ["plain", "<b>&amp;", "\u{2028}\u{2029}", "é e\u{301} 漢 😀", "\"\\\n\t\u{1}", "1e-7"];
    format!("{} {n}", odd[usize::from(n) % odd.len()])
}

/// A marker that only the scope's readers may ever see.
fn marked(scope: &str, owner: &AgentHandle, taint: &str, n: u8) -> Value {
    let mut body = body(taint, scope);
    body["digest"] = json!(format!("sha256:MARK-{scope}-{}-{n}", owner.principal().id()));
    body
}

fn write_op(op: &AnyOp, agent: &AgentHandle) -> Value {
    match op {
        AnyOp::Note(n, taint, scope) => note_of(agent, &format!("n{n}"), marked(scope, agent, taint, *n)),
        AnyOp::ForeignNote(n) => {
            let mut op = note_of(agent, &format!("n{n}"), body("tainted", "fleet"));
            op["value"]["author"]["id"] = json!("nobody");
            op
        }
        AnyOp::Artifact(n, taint, scope) => {
            let mut op = artifact(&format!("a{n}"), taint, scope);
            op["value"]["ref"] = json!(format!("sha256:MARK-{scope}-{}-{n}", agent.principal().id()));
            op
        }
        AnyOp::Decision(n) => append_decision(&format!("d{n}")),
        AnyOp::Settle(n, s) => replace(&format!("/open_decisions/d{n}/state"), text(*s)),
        AnyOp::Title(n) => replace("/title", text(*n)),
        AnyOp::State(n) => replace("/state", text(*n)),
        AnyOp::Body(taint, scope) => replace("/body_ref", marked(scope, agent, taint, 0)),
        AnyOp::External(n, certified) => {
            let mut body = marked("fleet", agent, "tainted", *n);
            body["kind"] = json!("external");
            body["store"] = json!("l3-kv");
            if *certified {
                body["deletion_certificate"] = json!("sha256:certificate");
            }
            note_of(agent, &format!("x{n}"), body)
        }
        AnyOp::Wrong(n) => match n {
            0 => replace("/rev", "x"),
            1 => json!({"op": "remove", "path": "/notes"}),
            2 => replace("/title", ""),
            _ => json!({"op": "append", "path": "/notes", "value": {"note_id": "x"}}),
        },
    }
}

/// One random patch: who, on which base (counted back from the current), in which scope, with which ops.
type AnyPatch = (usize, usize, &'static str, Vec<AnyOp>);

fn any_patch() -> impl Strategy<Value = AnyPatch> {
    let back = prop_oneof![6 => Just(0usize), 2 => 1..4usize, 1 => Just(usize::MAX)];
    let scope =
        prop_oneof![3 => Just("agent"), 6 => Just("fleet"), 18 => Just("tenant"), 1 => Just("public")];
    let ops =
        prop_oneof![6 => prop::collection::vec(any_op(), 1..2), 2 => prop::collection::vec(any_op(), 0..4)];
    (0..4usize, back, scope, ops)
}

struct Cast {
    agents: Vec<AgentHandle>,
    rights: Vec<Rights>,
}

impl Cast {
    fn of(world: &World) -> Self {
        let rights = [(true, true), (true, false), (false, true), (true, true)];
        let agents = rights
            .iter()
            .enumerate()
            .map(|(i, (fleet, tenant))| {
                let kind = if i == 3 { PrincipalKind::Human } else { PrincipalKind::Agent };
                world.attach(&format!("p{i}"), kind, *fleet, *tenant)
            })
            .collect();
        Self {
            agents,
            rights: rights.iter().map(|(fleet, tenant)| Rights { fleet: *fleet, tenant: *tenant }).collect(),
        }
    }
}

fn worlds() -> (World, Cast, Naive) {
    let world = World::new();
    let mut first = record();
    first["artifacts"] = Value::Null;
    world.store.create_json(first.to_string().as_bytes()).unwrap();
    let cast = Cast::of(&world);
    let naive = Naive::new(parsed(&first), ShareScope::Tenant);
    (world, cast, naive)
}

/// Applies one random patch to both stores and compares.
fn both(
    world: &World,
    cast: &Cast,
    naive: &mut Naive,
    (who, back, scope, ops): &AnyPatch,
) -> Result<(), TestCaseError> {
    let agent = &cast.agents[*who];
    let number = (naive.history.len() - 1).checked_sub(*back).unwrap_or(usize::MAX);
    let ops: Vec<Value> = ops.iter().map(|op| write_op(op, agent)).collect();
    let patch = patch(agent, &base(naive, number), scope, json!(ops));
    let before = naive.history.len();
    let expected = naive.apply(&patch, cast.rights[*who], world.clock.now());
    let outcome = world.store.patch(agent, &patch, None);
    if expected == "refused" {
        prop_assert!(refused(&outcome).is_some(), "expected a refusal");
    } else {
        let patched = outcome.allowed().expect("the act is allowed");
        prop_assert_eq!(answer(&patched), expected);
        prop_assert_eq!(patched.revision, naive.history.len() - 1);
        no_leak(&String::from_utf8(patched.result.to_json()).unwrap(), cast, *who)?;
    }
    // Atomic: a patch that is not accepted leaves everything as it was.
    prop_assert_eq!(world.store.revision(&task()).unwrap().1, naive.current().rev.clone());
    if naive.history.len() > before {
        prop_assert_eq!(world.store.record(&task()).unwrap(), naive.current().clone());
    }
    Ok(())
}

/// No output for a reader holds a marker of a scope that is not the reader's.
fn no_leak(output: &str, cast: &Cast, who: usize) -> Result<(), TestCaseError> {
    for (other, agent) in cast.agents.iter().enumerate() {
        let name = agent.principal().id();
        if other != who {
            let private = format!("MARK-agent-{name}");
            prop_assert!(!output.contains(&private), "p{} sees {}", who, private);
        }
        for (scope, holds) in [("fleet", cast.rights[who].fleet), ("tenant", cast.rights[who].tenant)] {
            // What one brings oneself is in the proposed value.
            if !holds && other != who {
                let hidden = format!("MARK-{scope}-{name}");
                prop_assert!(!output.contains(&hidden), "p{} sees {}", who, hidden);
            }
        }
    }
    Ok(())
}

/// What each reader is shown is exactly what may flow to it.
fn outputs(world: &World, cast: &Cast) -> Result<(), TestCaseError> {
    for (who, agent) in cast.agents.iter().enumerate() {
        let view = world.store.view(agent, &task()).allowed().unwrap();
        no_leak(&String::from_utf8(view.to_record().to_json()).unwrap(), cast, who)?;
        let whole = world.store.record(&task()).unwrap();
        prop_assert_eq!(view.notes().count() + view.redacted_notes, whole.notes.items.len());
        prop_assert_eq!(view.artifacts().count() + view.redacted_artifacts, whole.artifacts.items.len());
        let events = world.store.events(agent, &task()).allowed().unwrap();
        prop_assert!(events.verifies());
        prop_assert_eq!(events.events.len(), world.store.revision(&task()).unwrap().0);
        for event in &events.events {
            if let EventView::Shown(event) = event
                && event.scope == ShareScope::Agent
            {
                prop_assert_eq!(&*event.actor.id, agent.principal().id().as_str());
            }
        }
    }
    Ok(())
}

/// Loading the journal of a store gives the same store, which continues as the first would.
fn survives_its_journal(world: &World) -> Result<(), TestCaseError> {
    let mut journal = Vec::new();
    world.store.journal(&task(), &mut journal).unwrap();
    let checkpoint = world.store.checkpoint(&task());
    let options = VerifyOptions { checkpoint, ..VerifyOptions::default() };
    let summary = verify_journal(&journal[..], &options).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let (number, rev) = world.store.revision(&task()).unwrap();
    prop_assert_eq!((summary.entries, &summary.rev), (number, &rev));
    let copy = TaskStore::new(config());
    copy.load(&journal[..]).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(copy.record(&task()), world.store.record(&task()));
    prop_assert_eq!(copy.checkpoint(&task()), world.store.checkpoint(&task()));
    for at in 0..=number {
        prop_assert_eq!(copy.revision_at(&task(), at), world.store.revision_at(&task(), at));
    }
    let mut again = Vec::new();
    copy.journal(&task(), &mut again).unwrap();
    prop_assert_eq!(again, journal);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_store_answers_as_the_naive_one(patches in prop::collection::vec(any_patch(), 1..30)) {
        let (world, cast, mut naive) = worlds();
        for patch in &patches {
            world.clock.advance(Duration::from_micros(1));
            both(&world, &cast, &mut naive, patch)?;
        }
        outputs(&world, &cast)?;
        survives_its_journal(&world)?;
    }

    /// Appends with new ids commute: every order of up to six is accepted and yields the same set of entries.
    #[test]
    fn appends_commute(kinds in prop::collection::vec(0..3u8, 1..=6), order in any::<prop::sample::Index>()) {
        let entries = |order: Vec<usize>| {
            let world = World::with_task();
            let agent = world.agent("p0");
            let base = world.rev();
            for n in order {
                let op = match kinds[n] {
                    0 => note_of(&agent, &format!("n{n}"), body("tainted", "fleet")),
                    1 => artifact(&format!("a{n}"), "tainted", "fleet"),
                    _ => append_decision(&format!("d{n}")),
                };
                assert_eq!(answer(&world.patch_on(&agent, &base, "fleet", json!([op]))), "accepted");
            }
            let record = world.store.record(&task()).unwrap();
            let mut ids: Vec<String> = record.notes.items.iter().map(|n| n.note_id.to_string()).collect();
            ids.extend(record.artifacts.items.iter().map(|a| a.artifact_id.to_string()));
            ids.extend(record.open_decisions.items.iter().map(|d| d.decision_id.to_string()));
            ids.sort_unstable();
            ids
        };
        let first: Vec<usize> = (0..kinds.len()).collect();
        prop_assert_eq!(entries(nth_permutation(kinds.len(), order.index(720))), entries(first));
    }
}

/// The permutation of `0..n` with that number, so that all of them are reached.
fn nth_permutation(n: usize, mut number: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..n).collect();
    let mut out = Vec::new();
    while !left.is_empty() {
        let at = number % left.len();
        number /= left.len();
        out.push(left.remove(at));
    }
    out
}

/// A thousand random patches: every incremental revision equals the naive one. (§7.1)
#[test]
fn a_thousand_random_patches_digest_as_the_naive_store_does() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (world, cast, mut naive) = worlds();
    let mut strategy = any_patch();
    for round in 0..1000 {
        let patch = strategy.new_tree(&mut runner).unwrap().current();
        world.clock.advance(Duration::from_micros(round % 3));
        both(&world, &cast, &mut naive, &patch).unwrap();
        let Hash::Full(_) = world.rev() else { panic!("a revision is always full") };
        assert_eq!(world.store.recomputed_rev(&task()), Some(world.rev()));
        strategy = any_patch();
    }
    assert!(naive.history.len() > 200, "{} accepted", naive.history.len());
    survives_its_journal(&world).unwrap();
    outputs(&world, &cast).unwrap();
}

/// Eight writers on eight tasks and eight on one, 2,000 patches: every accepted one is in the journal, which verifies. (§5.2)
#[test]
fn eight_writers_lose_nothing() {
    for tasks in [8usize, 1] {
        let world = World::new();
        for n in 0..tasks {
            let mut record = record();
            record["task_id"] = json!(format!("task_{n}"));
            world.store.create_json(record.to_string().as_bytes()).unwrap();
        }
        let agents: Vec<_> = (0..8).map(|i| world.agent(&format!("w{i}"))).collect();
        let accepted: Vec<(usize, String)> = std::thread::scope(|scope| {
            let threads: Vec<_> = agents
                .iter()
                .enumerate()
                .map(|(i, agent)| {
                    let world = &world;
                    scope.spawn(move || {
                        let task = fak_sharedtask::TaskId::new(&format!("task_{}", i % tasks)).unwrap();
                        let mut done = Vec::new();
                        for n in 0..250 {
                            let base = world.store.revision(&task).unwrap().1;
                            // Mostly scalars, so that the journal, which holds every record whole, stays small.
                            let op = match n % 40 {
                                0 => artifact(&format!("a{i}-{n}"), "tainted", "fleet"),
                                1 => note_of(agent, &format!("n{i}-{n}"), body("tainted", "fleet")),
                                _ => replace("/state", format!("s{n}")),
                            };
                            let mut patch = patch(agent, &base, "fleet", json!([op]));
                            patch.task_id = task.clone();
                            let got = world.store.patch(agent, &patch, None).allowed().unwrap();
                            if got.result.is_accepted() {
                                done.push((i % tasks, got.result.event_id.to_string()));
                            } else {
                                assert_eq!(answer(&got), "conflict STALE_BASE");
                                assert!(n % 40 > 1, "appends never go stale");
                            }
                        }
                        done
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for n in 0..tasks {
            let task = fak_sharedtask::TaskId::new(&format!("task_{n}")).unwrap();
            let mut journal = Vec::new();
            world.store.journal(&task, &mut journal).unwrap();
            let summary = verify_journal(&journal[..], &VerifyOptions::default()).unwrap();
            let mine: Vec<_> = accepted.iter().filter(|(at, _)| *at == n).collect();
            assert_eq!(summary.entries, mine.len());
            let journal: Value = serde_json::from_slice(&journal).unwrap();
            let ids: std::collections::BTreeSet<&str> = journal["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|e| e["event"]["event_id"].as_str().unwrap())
                .collect();
            assert_eq!(ids.len(), mine.len());
            assert!(mine.iter().all(|(_, id)| ids.contains(id.as_str())));
        }
    }
}
