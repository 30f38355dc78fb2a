//! Acts: what they answer, what explaining them answers, and how much one principal may do (§3.5, §4.12, §5.5).

use std::sync::Arc;

use fak_abi::{
    Act, CapSet, Clock as _, MetaValue, PrincipalKind, PrincipalSpec, Reason, Rider, ToolCall, ToolScope,
};
use fak_adjudicate::{Budget, BudgetRung, Kernel, Rank};
use fak_sharedtask::{ApprovalRule, TaskStore};
use serde_json::json;

use crate::support::{
    World, body, config, decision_of, id, note, parsed, patch, record, refused, replace, task, with_approval,
};

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
        let explained = world.store.explain_patch(who, patch, None);
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
    let of_fleet = world.attach("fleet", PrincipalKind::Agent, true, false);
    world.patch(&other, "tenant", json!([note(&other, "secret", "tenant")]));
    for (who, expected) in [(&agent, None), (&of_fleet, Some(Reason::TrustViolation))] {
        let explained = world.store.explain_read(who, Act::TaskJournal, &task());
        assert_eq!(explained.verdict.reason(), expected, "{explained}");
        assert_eq!(refused(&world.store.journal_by(who, &task(), Vec::new())), expected);
    }
}

/// §3.5: so does explaining a creation, whose bound is told before it is met.
#[test]
fn explaining_a_creation_agrees_with_it() {
    let mut config = config();
    config.bounds.records = 1;
    let world = World::with(config, |builder| builder);
    let (agent, other) = (world.agent("a"), world.agent("b"));
    let mut named = record();
    named["updated_by"] = json!({"kind": "agent", "id": "a"});
    let first = parsed(&named);
    named["task_id"] = json!("task_second");
    let second = parsed(&named);
    for (who, record, expected) in [
        (&other, &first, Some(Reason::TrustViolation)),
        (&agent, &first, None),
        (&agent, &second, Some(Reason::RateLimited)),
    ] {
        let before = world.store.tasks();
        let explained = world.store.explain_create(who, record);
        assert_eq!(explained.verdict.reason(), expected, "{explained}");
        assert_eq!(world.store.tasks(), before);
        assert_eq!(refused(&world.store.create_by(who, record)), expected);
    }
}

/// §2.5: what rides along reaches the rungs and the kernel: an act whose deadline has passed is refused, and rungs read the
/// metadata.
#[test]
fn acts_carry_deadline_and_metadata() {
    let budget = BudgetRung::new(ToolScope::Every).each(Budget { cost: Some(10.0), ..Budget::default() });
    let world = World::with(config(), |builder| builder.rung(Rank(0), Arc::new(budget)));
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let riding = |rider: Rider| (world.store.riding(rider.clone()), world.space.riding(rider));
    let (store, space) = riding(Rider { deadline: Some(world.clock.now()), ..Rider::default() });
    assert_eq!(refused(&store.view(&agent, &task())), Some(Reason::Misroute));
    assert_eq!(refused(&space.list(&agent, "", fak_abi::ShareScope::Fleet)), Some(Reason::Misroute));
    let cost = |cost| Rider { meta: [(id("cost"), MetaValue::Number(cost))].into(), ..Rider::default() };
    let (store, space) = riding(cost(6.0));
    assert!(store.view(&agent, &task()).is_allow());
    assert_eq!(refused(&space.list(&agent, "", fak_abi::ShareScope::Fleet)), Some(Reason::RateLimited));
    assert!(world.store.view(&agent, &task()).is_allow());
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

/// §3.5, §4.12: so does explaining a watch, whose bound is told before it is met.
#[test]
fn explaining_a_watch_agrees_with_it() {
    let mut config = config();
    config.bounds.watches = 1;
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    let agent = world.agent("a");
    let explained = || world.store.explain_read(&agent, Act::TaskWatch, &task()).verdict.reason();
    assert_eq!(explained(), None);
    let watch = world.store.watch(&agent, &task()).allowed().unwrap();
    assert_eq!(explained(), Some(Reason::RateLimited));
    // Other reads are no watches.
    assert_eq!(world.store.explain_read(&agent, Act::TaskView, &task()).verdict.reason(), None);
    drop(watch);
    assert_eq!(explained(), None);
}
