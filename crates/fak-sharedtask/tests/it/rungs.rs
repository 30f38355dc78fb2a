//! Rungs and admitters of the host act on records as on everything else (§1.4, §3.2, §4.4).

use std::sync::Arc;

use fak_abi::{
    Act, Adjudicator, Desk, Opinion, Reason, Ref, ResultAdmitter, RungName, Site, ToolCall, ToolScope,
    Verdict,
};
use fak_adjudicate::Rank;
use fak_sharedtask::Patch;
use serde_json::json;

use crate::support::{World, answer, body, config, note, parsed, patch, record, refused, replace, task};

/// An admitter that holds whatever contains the word `poison`.
struct Nose;

impl ResultAdmitter for Nose {
    fn name(&self) -> RungName {
        "nose"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["sharedtask.read"])
    }

    fn screen(&self, _call: &ToolCall<'_>, body: &Ref, desk: &Desk<'_>) -> Opinion {
        let bytes = desk.resolver.bytes(body).unwrap();
        let found = bytes.windows(6).any(|window| window == b"poison");
        if found { Opinion::Quarantine } else { Opinion::Defer }
    }
}

#[test]
fn what_an_admitter_stops_is_not_handed_over() {
    let world = World::with(config(), |builder| builder.admitter(Rank(0), Arc::new(Nose)));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let (_, mut watch) = world.store.watch(&agent, &task()).allowed().unwrap();
    assert!(world.store.view(&agent, &task()).is_allow());
    world.patch(&agent, "fleet", json!([replace("/title", "poison")]));
    let held = |verdict: Option<Verdict>| matches!(verdict, Some(Verdict::Quarantine { by: "nose" }));
    let refusal = |outcome: fak_abi::Outcome<()>| match outcome {
        fak_abi::Outcome::Refuse(verdict) => Some(verdict),
        fak_abi::Outcome::Allow { .. } => None,
    };
    assert!(held(refusal(world.store.view(&agent, &task()).map(|_| ()))));
    assert!(held(refusal(world.store.watch(&agent, &task()).map(|_| ()))));
    let mut out = Vec::new();
    assert!(held(refusal(world.store.journal_by(&agent, &task(), &mut out).map(|_| ()))));
    assert!(out.is_empty());
    // The event itself says nothing poisonous.
    assert!(watch.try_next().allowed().unwrap().is_some());
}

/// A rung that counts what it lets pass and refuses the second.
struct Once(std::sync::atomic::AtomicUsize);

impl Adjudicator for Once {
    fn name(&self) -> RungName {
        "once"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["sharedtask.patch"])
    }

    fn counts(&self) -> bool {
        true
    }

    fn judge(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }

    fn commit(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Opinion::Defer,
            _ => Opinion::deny(Reason::RateLimited, Site::new("once")),
        }
    }

    fn revert(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn counting_rungs_count_what_happens_and_only_that() {
    let world = World::with(config(), |builder| builder.rung(Rank(0), Arc::new(Once(0.into()))));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let other = world.agent("b");
    // Refused after the count: it is taken back.
    world.patch(&agent, "agent", json!([replace("/body_ref", body("tainted", "agent"))]));
    let blind = patch(&other, &world.rev(), "fleet", json!([note(&other, "n", "fleet")]));
    assert_eq!(refused(&world.store.patch(&other, &blind, None)), Some(Reason::RateLimited));

    let world = World::with(config(), |builder| builder.rung(Rank(0), Arc::new(Once(0.into()))));
    let mut private = record();
    private["body_ref"] = body("tainted", "agent");
    world.store.create_json(private.to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let blind = patch(&agent, &world.rev(), "fleet", json!([replace("/body_ref", body("tainted", "fleet"))]));
    assert_eq!(refused(&world.store.patch(&agent, &blind, None)), Some(Reason::TrustViolation));
    assert_eq!(answer(&world.patch(&agent, "fleet", json!([note(&agent, "n", "fleet")]))), "accepted");
}

/// A rung that denies one tool or capability.
struct Deny(&'static str);

impl Adjudicator for Deny {
    fn name(&self) -> RungName {
        "deny"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([self.0])
    }

    fn judge(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        Opinion::deny(Reason::PolicyBlock, Site::new("deny"))
    }
}

#[test]
fn a_rung_on_a_capability_stops_every_act_it_opens() {
    for (denied, acts) in [
        ("sharedtask.write", vec![Act::TaskCreate, Act::TaskPatch]),
        ("sharedtask.patch", vec![Act::TaskPatch]),
        ("sharedtask.read", vec![Act::TaskView, Act::TaskEvents, Act::TaskWatch, Act::TaskJournal]),
        ("sharedtask.view", vec![Act::TaskView]),
        ("sharedtask.approve", vec![Act::TaskApprove]),
    ] {
        let world = World::with(config(), |builder| builder.rung(Rank(0), Arc::new(Deny(denied))));
        world.store.create_json(record().to_string().as_bytes()).unwrap();
        let human = world.human("h");
        let mut mine = record();
        mine["task_id"] = json!("task_mine");
        mine["updated_by"] = json!({"kind": "human", "id": "h"});
        let mine = parsed(&mine);
        let patch = patch(&human, &world.rev(), "fleet", json!([note(&human, "n", "fleet")]));
        let got = [
            (Act::TaskCreate, refused(&world.store.create_by(&human, &mine))),
            (Act::TaskPatch, refused(&world.store.patch(&human, &patch, None))),
            (Act::TaskView, refused(&world.store.view(&human, &task()))),
            (Act::TaskEvents, refused(&world.store.events(&human, &task()))),
            (Act::TaskWatch, refused(&world.store.watch(&human, &task()))),
            (Act::TaskJournal, refused(&world.store.journal_by(&human, &task(), Vec::new()))),
            (Act::TaskApprove, refused(&world.store.approve(&human, &task(), "dec_x"))),
        ];
        for (act, reason) in got {
            let blocked = reason == Some(Reason::PolicyBlock);
            assert_eq!(blocked, acts.contains(&act), "{denied} {act}");
        }
    }
}

/// A transform replaces the patch within its provenance; one that makes it no patch is MALFORMED.
struct Rewrite(&'static str);

impl Adjudicator for Rewrite {
    fn name(&self) -> RungName {
        "rewrite"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["sharedtask.patch"])
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        let body = call.body().unwrap();
        let text = String::from_utf8(desk.resolver.bytes(body).unwrap().to_vec()).unwrap();
        let text = text.replace("second", self.0);
        Opinion::Transform(desk.resolver.rewrite(body, text.into()).unwrap())
    }
}

#[test]
fn a_transform_decides_what_is_merged() {
    for (word, expected) in [("changed", None), ("\"", Some(Reason::Malformed))] {
        let world = World::with(config(), |builder| builder.rung(Rank(0), Arc::new(Rewrite(word))));
        world.store.create_json(record().to_string().as_bytes()).unwrap();
        let agent = world.agent("a");
        let patch: Patch = patch(&agent, &world.rev(), "fleet", json!([replace("/title", "second")]));
        assert_eq!(refused(&world.store.patch(&agent, &patch, None)), expected);
        let title = world.store.record(&task()).unwrap().title;
        assert_eq!(&*title, if expected.is_none() { "changed" } else { "first" });
    }
}

/// Replaces a text in what a tool is given.
struct Swap(&'static str, &'static str, &'static str);

impl Adjudicator for Swap {
    fn name(&self) -> RungName {
        "swap"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([self.0])
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        let body = call.body().unwrap();
        let text = String::from_utf8(desk.resolver.bytes(body).unwrap().to_vec()).unwrap();
        Opinion::Transform(desk.resolver.rewrite(body, text.replace(self.1, self.2).into()).unwrap())
    }
}

/// §3.2: a transform decides what is created or merged, but not into which record.
#[test]
fn a_transform_does_not_move_an_act_to_another_record() {
    for (tool, from, to, expected) in [
        ("sharedtask.create", "first", "changed", None),
        ("sharedtask.create", "task_t", "task_u", Some(Reason::Malformed)),
        ("sharedtask.create", "{", "", Some(Reason::Malformed)),
        ("sharedtask.patch", "task_t", "task_u", Some(Reason::Malformed)),
    ] {
        let world = World::with(config(), |builder| builder.rung(Rank(0), Arc::new(Swap(tool, from, to))));
        let mut other = record();
        other["task_id"] = json!("task_u");
        if tool == "sharedtask.patch" {
            world.store.create_json(record().to_string().as_bytes()).unwrap();
            world.store.create_json(other.to_string().as_bytes()).unwrap();
        }
        let agent = world.agent("a");
        let before = world.store.tasks().len();
        let mut mine = record();
        mine["updated_by"] = json!({"kind": "agent", "id": "a"});
        let got = if tool == "sharedtask.patch" {
            let renamed = patch(&agent, &world.rev(), "fleet", json!([replace("/title", "second")]));
            refused(&world.store.patch(&agent, &renamed, None))
        } else {
            refused(&world.store.create_by(&agent, &parsed(&mine)))
        };
        assert_eq!(got, expected, "{tool} {from}");
        assert_eq!(world.store.tasks().len(), before + usize::from(expected.is_none()), "{tool} {from}");
        if expected.is_none() {
            assert_eq!(&*world.store.record(&task()).unwrap().title, to);
        }
    }
}

/// §4.4: events are screened as they are shown, in a list and by a watch; what a watch is not handed it passes over.
#[test]
fn events_are_screened_as_they_are_shown() {
    let world = World::with(config(), |builder| builder.admitter(Rank(0), Arc::new(Nose)));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let (reader, writer) = (world.agent("a"), world.agent("poison"));
    let (_, mut watch) = world.store.watch(&reader, &task()).allowed().unwrap();
    let held = |verdict: Verdict| matches!(verdict, Verdict::Quarantine { by: "nose" });
    world.patch(&reader, "fleet", json!([note(&reader, "n", "fleet")]));
    assert_eq!(world.store.events(&reader, &task()).allowed().unwrap().events.len(), 1);
    // The event names its actor.
    world.patch(&writer, "fleet", json!([replace("/title", "second")]));
    world.patch(&reader, "fleet", json!([note(&reader, "m", "fleet")]));
    assert!(held(world.store.events(&reader, &task()).verdict()));
    assert!(watch.try_next().allowed().unwrap().is_some());
    assert!(held(watch.try_next().verdict()));
    assert!(watch.try_next().allowed().unwrap().is_some());
    assert!(watch.try_next().allowed().unwrap().is_none());
}
