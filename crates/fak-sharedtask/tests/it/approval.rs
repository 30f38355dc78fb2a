//! Approval: patches that are held until a human decides (§5.7), and the witnesses that are asked (§5.5).

use std::sync::Arc;

use fak_abi::{Claim, PrincipalKind, Reason, Testimony, ToolCall, WitnessResolver};
use fak_adjudicate::Kernel;
use fak_sharedtask::{ApprovalRule, Envelope, HeldPatch, Limits};
use serde_json::json;

use crate::support::{
    World, answer, artifact, body, config, decision_of, id, note, patch, record, refused, replace, task,
    with_approval,
};

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

/// §5.7: who decides may see the patch's own scope, and the scope of everything that it brings; explaining says so (§3.5).
#[test]
fn only_who_sees_the_whole_patch_decides() {
    let world = with_approval(ApprovalRule::Always);
    let agent = world.agent("a");
    let of_fleet = world.attach("fleet", PrincipalKind::Human, true, false);
    let of_tenant = world.attach("tenant", PrincipalKind::Human, false, true);
    let boss = world.human("boss");
    for (at, (human, op)) in [
        (&of_fleet, replace("/title", "x")),
        (&of_tenant, note(&agent, "n", "fleet")),
        (&of_tenant, artifact("x", "tainted", "fleet")),
    ]
    .into_iter()
    .enumerate()
    {
        let decision = decision_of(&world.patch(&agent, "tenant", json!([op])));
        let explained = world.store.explain_decision(human, &task(), &decision, true);
        assert_eq!(explained.verdict.reason(), Some(Reason::TrustViolation), "{at}");
        assert_eq!(refused(&world.store.approve(human, &task(), &decision)), Some(Reason::TrustViolation));
        assert!(world.store.held(human, &task()).allowed().unwrap().is_empty(), "{at}");
        assert_eq!(world.store.held(&boss, &task()).allowed().unwrap().len(), 1, "{at}");
        assert_eq!(refused(&world.store.reject(&boss, &task(), &decision)), None, "{at}");
    }
}

/// §5.7: only what needs an approval is held; what conflicts is answered and forgotten.
#[test]
fn what_conflicts_is_not_held() {
    let world = with_approval(ApprovalRule::Path("/title".to_owned()));
    let (agent, boss) = (world.agent("a"), world.human("boss"));
    let base = world.rev();
    let settle = |state: &str| json!([replace("/open_decisions/dec_a/state", state)]);
    assert_eq!(answer(&world.patch_on(&agent, &base, "fleet", settle("one"))), "accepted");
    assert_eq!(answer(&world.patch_on(&agent, &base, "fleet", settle("two"))), "conflict STALE_BASE");
    assert!(world.store.held(&boss, &task()).allowed().unwrap().is_empty());
}

/// §2.3: detaching spends what the one who leaves had held, and nobody else's.
#[test]
fn detaching_spends_nobody_elses() {
    let world = with_approval(ApprovalRule::Always);
    let (agent, other, boss) = (world.agent("a"), world.agent("b"), world.human("boss"));
    let held = world.patch(&agent, "fleet", json!([replace("/title", "x")]));
    let spent = world.patch(&other, "fleet", json!([replace("/title", "y")]));
    world.store.reject(&boss, &task(), &decision_of(&spent)).allowed().unwrap();
    let again = patch(&other, &world.rev(), "fleet", json!([replace("/title", "y")]));
    world.kernel.detach(&id("b")).unwrap();
    let other = world.agent("b");
    // What was decided before stays decided as it was.
    let told = world.store.patch(&other, &again, None).allowed().unwrap();
    assert_eq!(&*told.result.approval.unwrap().state, "rejected");
    assert_eq!(refused(&world.store.approve(&boss, &task(), &decision_of(&held))), None);
    assert_eq!(&*world.store.record(&task()).unwrap().title, "x");
}

/// §5.7: so many decisions that are over answer still; the oldest is forgotten for one more, and its patch is held anew.
#[test]
fn so_many_decisions_are_remembered() {
    let mut config = config();
    config.rules.approval = vec![ApprovalRule::Always];
    config.bounds.decided = 2;
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let (agent, boss) = (world.agent("a"), world.human("boss"));
    let propose = |title: &str| world.patch(&agent, "fleet", json!([replace("/title", title)]));
    let state = |title: &str| propose(title).result.approval.unwrap().state.to_string();
    for (decided, forgotten) in [("1", None), ("2", None), ("3", Some("1")), ("4", Some("2"))] {
        let decision = decision_of(&propose(decided));
        world.store.reject(&boss, &task(), &decision).allowed().unwrap();
        assert_eq!(state(decided), "rejected", "{decided}");
        let before = (decided.parse::<u32>().unwrap() - 1).to_string();
        if before != "0" {
            assert_eq!(state(&before), "rejected", "{before} beside {decided}");
        }
        if let Some(forgotten) = forgotten {
            assert_eq!(state(forgotten), "input_required", "{forgotten} beside {decided}");
        }
    }
}
