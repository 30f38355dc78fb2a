//! Acts: approvals (§5.7), idempotency (§4.13), bounds (§4.12), admitters (§4.4), rungs on records (§1.4).

use std::sync::Arc;

use fak_abi::{
    Act, Adjudicator, CapSet, Claim, Desk, Opinion, PrincipalKind, PrincipalSpec, Reason, Ref,
    ResultAdmitter, RungName, Site, Testimony, ToolCall, ToolScope, Verdict, WitnessResolver,
};
use fak_adjudicate::{Kernel, Rank};
use fak_sharedtask::{ApprovalRule, Envelope, HeldPatch, Limits, Patch, TaskStore};
use serde_json::json;

use crate::support::{World, answer, body, config, id, note, parsed, patch, record, refused, replace, task};

fn with_approval(rule: ApprovalRule) -> World {
    let mut config = config();
    config.rules.approval = vec![rule];
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    world
}

fn decision_of(patched: &fak_sharedtask::Patched) -> String {
    patched.result.approval.as_ref().unwrap().decision_id.to_string()
}

#[test]
fn a_held_patch_is_approved_once_and_exactly() {
    let world = with_approval(ApprovalRule::Path("/title".to_owned()));
    let agent = world.agent("a");
    let boss = world.human("boss");
    let ops = json!([replace("/title", "second")]);
    let first = patch(&agent, &world.rev(), "fleet", ops);
    let held = world.store.patch(&agent, &first, None).allowed().unwrap();
    assert_eq!(answer(&held), "needs_approval APPROVAL_REQUIRED");
    assert_eq!(held.revision, 0);
    let decision = decision_of(&held);
    assert_eq!(decision, format!("dec_{}", first.digest().hex()));
    // The same bytes are the same held patch; what the path does not touch needs nobody.
    let again = world.store.patch(&agent, &first, None).allowed().unwrap();
    assert_eq!(decision_of(&again), decision);
    assert_eq!(world.store.held(&boss, &task()).allowed().unwrap().len(), 1);
    let base = world.rev();
    assert_eq!(answer(&world.patch(&agent, "fleet", json!([note(&agent, "n", "fleet")]))), "accepted");
    // Stale by now: the whole merge runs, and spends it.
    let outcome = world.store.approve(&boss, &task(), &decision).allowed().unwrap();
    assert_eq!(answer(&outcome), "conflict STALE_BASE");
    assert_eq!(outcome.result.base_rev, base);
    assert_eq!(refused(&world.store.approve(&boss, &task(), &decision)), Some(Reason::Misroute));
    let told = world.store.patch(&agent, &first, None).allowed().unwrap();
    assert_eq!(answer(&told), "conflict STALE_BASE");
    // A fresh one is accepted, in its actor's name.
    let fresh = patch(&agent, &world.rev(), "fleet", json!([replace("/title", "third")]));
    let held = world.store.patch(&agent, &fresh, None).allowed().unwrap();
    let outcome = world.store.approve(&boss, &task(), &decision_of(&held)).allowed().unwrap();
    assert_eq!(answer(&outcome), "accepted");
    let record = world.store.record(&task()).unwrap();
    assert_eq!((&*record.title, &*record.updated_by.id), ("third", "a"));
    assert_eq!(answer(&world.store.patch(&agent, &fresh, None).allowed().unwrap()), "accepted");
    assert_eq!(world.store.revision(&task()).unwrap().0, 2);
}

/// I25: approved one amount, executed another: a patch with one field changed needs its own approval.
#[test]
fn i25_another_amount_needs_another_approval() {
    let world = with_approval(ApprovalRule::Always);
    let agent = world.agent("a");
    let boss = world.human("boss");
    let base = world.rev();
    let held = world.patch_on(&agent, &base, "fleet", json!([replace("/title", "pay 10")]));
    let decision = decision_of(&held);
    let other = world.patch_on(&agent, &base, "fleet", json!([replace("/title", "pay 10000")]));
    assert_eq!(answer(&other), "needs_approval APPROVAL_REQUIRED");
    assert_ne!(decision_of(&other), decision);
    assert_eq!(answer(&world.store.approve(&boss, &task(), &decision).allowed().unwrap()), "accepted");
    assert_eq!(&*world.store.record(&task()).unwrap().title, "pay 10");
    assert_eq!(refused(&world.store.approve(&boss, &task(), &decision)), Some(Reason::Misroute));
    let later = world.patch_on(&agent, &base, "fleet", json!([replace("/title", "pay 10000")]));
    assert_eq!(answer(&later), "needs_approval APPROVAL_REQUIRED");
}

#[test]
fn who_may_decide() {
    let world = with_approval(ApprovalRule::Always);
    let author = world.human("author");
    let boss = world.human("boss");
    let agent = world.agent("a");
    let of_fleet = world.attach("fleet", PrincipalKind::Human, true, false);
    let held = world.patch(&author, "tenant", json!([note(&author, "n", "tenant")]));
    let decision = decision_of(&held);
    let approve = |who| refused(&world.store.approve(who, &task(), &decision));
    assert_eq!(approve(&agent), Some(Reason::TrustViolation));
    assert_eq!(approve(&author), Some(Reason::TrustViolation));
    assert_eq!(approve(&of_fleet), Some(Reason::TrustViolation));
    assert_eq!(refused(&world.store.approve(&boss, &task(), "dec_unknown")), Some(Reason::Misroute));
    // Whoever may not see all of it does not see that it is held either.
    assert!(world.store.held(&of_fleet, &task()).allowed().unwrap().is_empty());
    let shown = world.store.held(&boss, &task()).allowed().unwrap();
    assert_eq!(
        HeldPatch::parse(&shown[0].to_json(), &Limits::default()).unwrap().to_json(),
        shown[0].to_json()
    );
    let rejected = world.store.reject(&boss, &task(), &decision).allowed().unwrap();
    assert_eq!(&*rejected.result.approval.unwrap().state, "rejected");
    assert_eq!(approve(&boss), Some(Reason::Misroute));
    assert_eq!(world.store.revision(&task()).unwrap().0, 0);
}

#[test]
fn detaching_spends_what_the_actor_had_held() {
    let world = with_approval(ApprovalRule::Always);
    let agent = world.agent("a");
    let boss = world.human("boss");
    let held = world.patch(&agent, "fleet", json!([replace("/title", "x")]));
    let patch = patch(&agent, &world.rev(), "fleet", json!([replace("/title", "x")]));
    world.kernel.detach(&id("a")).unwrap();
    assert_eq!(refused(&world.store.approve(&boss, &task(), &decision_of(&held))), Some(Reason::Misroute));
    assert_eq!(refused(&world.store.patch(&agent, &patch, None)), Some(Reason::DefaultDeny));
    let again = world.agent("a");
    let told = world.store.patch(&again, &patch, None).allowed().unwrap();
    assert_eq!(&*told.result.approval.unwrap().state, "withdrawn");
}

/// A witness that confirms everything, or panics.
struct Knows(bool);

impl WitnessResolver for Knows {
    fn resolve(&self, _: &Claim, _: &ToolCall<'_>) -> Testimony {
        assert!(self.0, "a defect of the witness");
        Testimony::Confirm
    }
}

/// A trusted body of a full digest.
fn trusted() -> serde_json::Value {
    let mut body = body("trusted", "fleet");
    body["digest"] = json!(format!("sha256:{}", "0".repeat(64)));
    body
}

/// §3.2: a witness of the store that panics has not confirmed, whatever the others say; the store goes on.
#[test]
fn a_witness_that_panics_has_not_confirmed() {
    for (knows, answers) in
        [(vec![true], "accepted"), (vec![true, false], "quarantined BODY_WITNESS_MISSING")]
    {
        let mut config = config();
        config.witnesses =
            knows.into_iter().map(|knows| Arc::new(Knows(knows)) as Arc<dyn WitnessResolver>).collect();
        let world = World::with(config, |builder| builder);
        world.store.create_json(record().to_string().as_bytes()).unwrap();
        let agent = world.agent("a");
        let told = world.patch(&agent, "fleet", json!([replace("/body_ref", trusted())]));
        assert_eq!(answer(&told), answers);
        assert_eq!(answer(&world.patch(&agent, "fleet", json!([replace("/title", "x")]))), "accepted");
    }
}

/// A witness that detaches the actor while its act is on the way.
#[derive(Default)]
struct Late(std::sync::OnceLock<std::sync::Weak<Kernel>>);

impl WitnessResolver for Late {
    fn resolve(&self, _: &Claim, call: &ToolCall<'_>) -> Testimony {
        let kernel = self.0.get().and_then(std::sync::Weak::upgrade).unwrap();
        kernel.detach(call.principal().id()).unwrap();
        Testimony::Confirm
    }
}

/// §2.3: a patch that is overtaken by the detaching of its actor is not held for ever.
#[test]
fn a_patch_that_a_detach_overtakes_is_not_held() {
    let late = Arc::new(Late::default());
    let mut config = config();
    config.rules.approval = vec![ApprovalRule::Always];
    config.witnesses = vec![late.clone()];
    let world = World::with(config, |builder| builder);
    late.0.set(Arc::downgrade(&world.kernel)).unwrap();
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let (agent, boss) = (world.agent("a"), world.human("boss"));
    let patch = patch(&agent, &world.rev(), "fleet", json!([replace("/body_ref", trusted())]));
    assert_eq!(refused(&world.store.patch(&agent, &patch, None)), Some(Reason::DefaultDeny));
    assert!(world.store.held(&boss, &task()).allowed().unwrap().is_empty());
}

#[test]
fn rules_of_approval() {
    for (rule, scope, held) in [
        (ApprovalRule::Always, "fleet", true),
        (ApprovalRule::Path("/notes".to_owned()), "fleet", true),
        (ApprovalRule::Path("/note".to_owned()), "fleet", false),
        (ApprovalRule::Actor(PrincipalKind::Agent), "fleet", true),
        (ApprovalRule::Actor(PrincipalKind::Human), "fleet", false),
        (ApprovalRule::Scope(fak_abi::ShareScope::Tenant), "fleet", false),
        (ApprovalRule::Scope(fak_abi::ShareScope::Tenant), "tenant", true),
    ] {
        let world = with_approval(rule.clone());
        let agent = world.agent("a");
        let got = world.patch(&agent, scope, json!([note(&agent, "n", "fleet")]));
        assert_eq!(got.result.approval.is_some(), held, "{rule:?} {scope}");
    }
}

#[test]
fn a_retry_with_a_key_is_answered_and_not_done_again() {
    let world = World::with_task();
    let agent = world.agent("a");
    let key = id("retry-1");
    let base = world.rev();
    let patch = patch(&agent, &base, "fleet", json!([note(&agent, "n", "fleet")]));
    let first = world.store.patch(&agent, &patch, Some(&key)).allowed().unwrap();
    assert_eq!(answer(&first), "accepted");
    let replay = world.store.patch(&agent, &patch, Some(&key)).allowed().unwrap();
    assert_eq!(replay, first);
    // Without the key it is another act.
    let other = world.store.patch(&agent, &patch, None).allowed().unwrap();
    assert_eq!(answer(&other), "conflict DUPLICATE_NOTE");
    let changed = crate::support::patch(&agent, &base, "fleet", json!([note(&agent, "m", "fleet")]));
    assert_eq!(refused(&world.store.patch(&agent, &changed, Some(&key))), Some(Reason::Malformed));
    // Another principal's key is its own.
    let b = world.agent("b");
    let theirs = crate::support::patch(&b, &base, "fleet", json!([note(&b, "m", "fleet")]));
    assert_eq!(answer(&world.store.patch(&b, &theirs, Some(&key)).allowed().unwrap()), "accepted");
    // Refusals are not remembered.
    let forged = crate::support::patch(&b, &base, "fleet", json!([note(&b, "o", "fleet")]));
    assert_eq!(refused(&world.store.patch(&agent, &forged, Some(&id("k2")))), Some(Reason::TrustViolation));
    assert_eq!(
        answer(&world.store.patch(&agent, &changed, Some(&id("k2"))).allowed().unwrap()),
        "conflict DUPLICATE_NOTE"
    );
}

/// Writes down the causes of what it is told.
#[derive(Clone, Default)]
struct Causes(Arc<std::sync::Mutex<Vec<&'static str>>>);

impl fak_abi::Emitter for Causes {
    fn kinds(&self) -> fak_abi::EventKinds {
        fak_abi::EventKinds::ALL
    }

    fn emit(&self, event: &fak_abi::Event<'_>) {
        self.0.lock().unwrap().push(event.cause);
    }
}

#[test]
fn a_replay_is_told_as_one() {
    let causes = Causes::default();
    let world = World::with(config(), |builder| builder.emitter(causes.clone()));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let patch = patch(&agent, &world.rev(), "fleet", json!([note(&agent, "n", "fleet")]));
    for replays in 0..3 {
        world.store.patch(&agent, &patch, Some(&id("k"))).allowed().unwrap();
        let told = causes.0.lock().unwrap().iter().filter(|cause| **cause == "replay").count();
        assert_eq!(told, replays);
    }
}

#[test]
fn one_principal_cannot_hold_or_watch_without_bound() {
    let mut config = config();
    config.rules.approval = vec![ApprovalRule::Always];
    config.bounds.held = 2;
    config.bounds.watches = 1;
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let boss = world.human("boss");
    let propose = |who, title: &str| {
        let patch = patch(who, &world.rev(), "fleet", json!([replace("/title", title)]));
        world.store.patch(who, &patch, None)
    };
    let held = propose(&agent, "1").allowed().unwrap();
    propose(&agent, "2").allowed().unwrap();
    assert_eq!(refused(&propose(&agent, "3")), Some(Reason::RateLimited));
    let other = world.agent("b");
    propose(&other, "3").allowed().unwrap();
    world.store.reject(&boss, &task(), &decision_of(&held)).allowed().unwrap();
    propose(&agent, "3").allowed().unwrap();
    let watch = world.store.watch(&agent, &task()).allowed().unwrap();
    assert_eq!(refused(&world.store.watch(&agent, &task())), Some(Reason::RateLimited));
    drop(watch);
    world.store.watch(&agent, &task()).allowed().unwrap();
}

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

#[test]
fn creating_as_an_agent_refuses_what_a_patch_would() {
    let world = World::new();
    let agent = world.agent("a");
    world.clock.advance(std::time::Duration::from_secs(5));
    let create = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut record = record();
        record["updated_by"] = json!({"kind": "agent", "id": "a"});
        change(&mut record);
        world.store.create_by(&agent, &parsed(&record))
    };
    assert_eq!(refused(&create(&|r| r["updated_by"]["id"] = json!("b"))), Some(Reason::TrustViolation));
    for change in [
        (|r| r["state"] = json!("")) as fn(&mut serde_json::Value),
        |r| r["body_ref"]["scope"] = json!("public"),
        |r| r["body_ref"]["taint"] = json!("quarantined"),
        |r| r["body_ref"]["taint"] = json!("trusted"),
        |r| r["body_ref"]["kind"] = json!("external"),
        |r| r["open_decisions"][1]["decision_id"] = json!("dec_a"),
        |r| {
            r["notes"] = json!([{"note_id": "n", "kind": "comment", "body_ref": body("tainted", "fleet"),
                "author": {"kind": "agent", "id": "b"}, "created_at": ""}]);
        },
    ] {
        assert!(create(&change).allowed().unwrap().is_err());
        assert!(world.store.tasks().is_empty());
    }
    let rev = create(&|_| ()).allowed().unwrap().unwrap();
    let made = world.store.record(&task()).unwrap();
    assert_eq!((made.computed_rev(), &*made.updated_at), (rev, "2026-01-01T00:00:05Z"));
    assert!(create(&|_| ()).allowed().unwrap().is_err());
}

/// Explaining says what performing would answer, and performs nothing (§3.5).
#[test]
fn explanations_agree_with_the_acts_and_change_nothing() {
    let world = with_approval(ApprovalRule::Path("/title".to_owned()));
    let (agent, other, boss) = (world.agent("a"), world.agent("b"), world.human("boss"));
    let powerless = world.kernel.attach(PrincipalSpec::agent(id("p")).fleet(id("f"))).unwrap();
    let forged = patch(&other, &world.rev(), "fleet", json!([note(&other, "n", "fleet")]));
    let held = patch(&agent, &world.rev(), "fleet", json!([replace("/title", "x")]));
    let decision = decision_of(&world.store.patch(&agent, &held, None).allowed().unwrap());
    let before = world.store.record(&task()).unwrap();
    for (who, patch) in [(&agent, &forged), (&other, &forged), (&powerless, &forged), (&agent, &held)] {
        let explained = world.store.explain_patch(who, patch);
        assert_eq!(world.store.record(&task()).unwrap(), before);
        let expected =
            if std::ptr::eq(who, &other) { None } else { refused(&world.store.patch(who, patch, None)) };
        assert_eq!(explained.verdict.reason(), expected, "{explained}");
        assert_eq!(explained.site.is_some(), expected.is_some(), "{explained}");
    }
    for (who, name) in [(&agent, &*decision), (&boss, "dec_none"), (&boss, &*decision)] {
        let explained = world.store.explain_decision(who, &task(), name, true);
        let expected = refused(&world.store.approve(who, &task(), name));
        assert_eq!(explained.verdict.reason(), expected, "{explained}");
    }
    let nowhere = fak_sharedtask::TaskId::new("task_none").unwrap();
    let explained = world.store.explain_read(&agent, Act::TaskView, &nowhere);
    assert_eq!(explained.verdict.reason(), Some(Reason::Misroute), "{explained}");
}

/// What is no id of a record is refused MALFORMED by the floor, so that it is audited.
#[test]
fn a_malformed_address_is_refused() {
    let world = World::with_task();
    let agent = world.agent("a");
    let call = ToolCall::new(&agent, Act::TaskView).address(fak_abi::Address::Malformed);
    assert_eq!(agent.decide(&call).reason(), Some(Reason::Malformed));
}

#[test]
fn a_store_belongs_to_one_kernel() {
    let world = World::with_task();
    let other = World::with_task();
    let foreign = other.agent("a");
    assert_eq!(refused(&world.store.view(&foreign, &task())), Some(Reason::TrustViolation));
    assert!(Kernel::builder().driver(world.store.driver()).build().is_err());
    let nowhere = TaskStore::new(config());
    assert_eq!(refused(&nowhere.view(&foreign, &task())), Some(Reason::DefaultDeny));
    let spec = PrincipalSpec::agent(id("x")).fleet(id("f")).caps(CapSet::ALL);
    assert!(world.kernel.attach(spec).is_ok());
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
