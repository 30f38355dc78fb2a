//! §3.8: budgets do not refill, hold for agents and waves, and are exact under races.

use std::sync::Arc;

use fak_abi::{
    AgentHandle, Gate, MetaValue, Opinion, Reason, Refusal, Rider, ToolCall, ToolScope, ToolToken,
};
use fak_adjudicate::{BUDGET_SITES, Budget, BudgetRung, Kernel, Rank};

use crate::support::{Says, attach, id};

struct World {
    kernel: Arc<Kernel>,
    rung: Arc<BudgetRung>,
    tool: ToolToken,
}

fn world(rung: BudgetRung, more: Option<Arc<Says>>) -> World {
    let rung = Arc::new(rung);
    let mut builder = Kernel::builder()
        .tools([id("work")])
        .rung(Rank(0), Arc::new(Says::new("open", |_, _| Opinion::Allow)))
        .rung(Rank(1), Arc::clone(&rung) as _);
    if let Some(more) = more {
        builder = builder.rung(Rank(2), more);
    }
    let kernel = builder.build().unwrap();
    let tool = kernel.tool(&id("work"));
    World { kernel, rung, tool }
}

impl World {
    fn act(&self, agent: &AgentHandle, bytes: usize, cost: Option<MetaValue>) -> Option<Refusal> {
        let body = agent.mint(vec![0; bytes]);
        let mut rider = Rider::default();
        rider.meta.extend(cost.map(|cost| (id("cost"), cost)));
        let call = ToolCall::new(agent, &self.tool).args(&body).rider(Some(&rider));
        agent.decide(&call).refusal().copied()
    }

    fn passes(&self, agent: &AgentHandle, bytes: usize, cost: f64) -> bool {
        let refusal = self.act(agent, bytes, Some(MetaValue::Number(cost)));
        if let Some(refusal) = refusal {
            assert_eq!((refusal.reason, refusal.retry_after_ms), (Reason::RateLimited, None));
        }
        refusal.is_none()
    }
}

const ALL: ToolScope = ToolScope::Every;

#[test]
fn calls_bytes_and_cost_run_out_and_stay_out() {
    let budget = Budget { calls: Some(4), bytes: Some(10), cost: Some(0.3) };
    let w = world(BudgetRung::new(ALL).each(budget), None);
    let alpha = attach(&w.kernel, "alpha");
    assert!(w.passes(&alpha, 4, 0.1));
    assert!(w.passes(&alpha, 4, 0.1));
    assert_eq!(w.act(&alpha, 4, None).unwrap().site.check(), "budget/bytes");
    assert!(w.passes(&alpha, 2, 0.1), "thrice 0.1 is 0.3 here");
    let dear = Some(MetaValue::Number(0.000_001));
    assert_eq!(w.act(&alpha, 0, dear).unwrap().site.check(), "budget/cost");
    assert!(w.passes(&alpha, 0, 0.0));
    assert_eq!(w.act(&alpha, 0, None).unwrap().site.check(), "budget/calls");
    let spent = w.rung.spent(&id("alpha"));
    assert_eq!((spent.calls, spent.bytes, spent.cost), (4, 10, 0.3));
    // Attaching again refills nothing; the host may.
    w.kernel.detach(&id("alpha")).unwrap();
    let again = attach(&w.kernel, "alpha");
    assert!(!w.passes(&again, 0, 0.0));
    w.rung.set_agent(&id("alpha"), Budget { calls: Some(5), ..Budget::default() });
    assert!(w.passes(&again, 100, 9.0) && !w.passes(&again, 0, 0.0));
    w.rung.forget(&id("alpha"));
    assert!(w.passes(&again, 10, 0.3));
}

#[test]
fn a_cost_that_is_no_cost_is_malformed() {
    let w = world(BudgetRung::new(ALL), None);
    let alpha = attach(&w.kernel, "alpha");
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let refusal = w.act(&alpha, 0, Some(MetaValue::Number(bad))).unwrap();
        assert_eq!((refusal.reason, refusal.site.check()), (Reason::Malformed, "budget/price"));
    }
    assert!(w.act(&alpha, 0, Some(MetaValue::Flag(true))).is_some());
    assert!(w.passes(&alpha, 0, 1e300), "no budget, no limit");
}

#[test]
fn a_wave_shares_one_budget_and_a_refused_act_charges_neither() {
    let w = world(BudgetRung::new(ALL).each(Budget { calls: Some(3), ..Budget::default() }), None);
    let agents: Vec<_> = ["a", "b", "c"].iter().map(|name| attach(&w.kernel, name)).collect();
    let wave = id("wave-1");
    assert!(!w.rung.join(&wave, &id("a")), "no budget yet");
    w.rung.set_wave(&wave, Budget { calls: Some(4), ..Budget::default() });
    for name in ["a", "b"] {
        assert!(w.rung.join(&wave, &id(name)));
    }
    assert_eq!((0..9).filter(|_| w.passes(&agents[0], 0, 0.0)).count(), 3, "its own runs out first");
    assert_eq!((0..9).filter(|_| w.passes(&agents[1], 0, 0.0)).count(), 1, "then the wave's");
    assert_eq!(w.rung.spent(&id("b")).calls, 1);
    assert_eq!(w.rung.wave_spent(&wave).calls, 4);
    assert!(w.passes(&agents[2], 0, 0.0), "in no wave");
    w.rung.forget_wave(&wave);
    assert!(w.passes(&agents[1], 0, 0.0));
}

#[test]
fn what_did_not_happen_is_given_back() {
    let refuses = Opinion::deny(Reason::LeaseHeld, fak_abi::Site::new("later"));
    let later = Arc::new(Says::new("later", |_, _| Opinion::Defer).counting(refuses));
    let w = world(BudgetRung::new(ALL).each(Budget { calls: Some(1), ..Budget::default() }), Some(later));
    let alpha = attach(&w.kernel, "alpha");
    for _ in 0..3 {
        assert_eq!(w.act(&alpha, 7, None).unwrap().site.check(), "later");
    }
    assert_eq!(w.rung.spent(&id("alpha")), fak_adjudicate::Spent::default());
}

#[test]
fn budgets_are_bounded_in_number() {
    let rung = BudgetRung::new(ALL).each(Budget::default()).at_most(1);
    let w = world(rung, None);
    let (alpha, bravo) = (attach(&w.kernel, "alpha"), attach(&w.kernel, "bravo"));
    assert!(w.passes(&alpha, 0, 0.0));
    assert_eq!(w.act(&bravo, 0, None).unwrap().site.check(), "budget/number");
    w.rung.forget(&id("alpha"));
    assert!(w.passes(&bravo, 0, 0.0));
}

/// Eight agents of one wave race for its 1,000 calls: exactly 1,000 pass.
#[test]
fn no_call_is_spent_twice() {
    let w = world(BudgetRung::new(ALL).each(Budget { calls: Some(400), ..Budget::default() }), None);
    w.rung.set_wave(&id("wave"), Budget { calls: Some(1000), ..Budget::default() });
    let agents: Vec<_> = (0..8).map(|n| attach(&w.kernel, &format!("a{n}"))).collect();
    for agent in &agents {
        w.rung.join(&id("wave"), agent.principal().id());
    }
    let passed: usize = std::thread::scope(|scope| {
        let racers: Vec<_> = agents
            .iter()
            .map(|agent| scope.spawn(|| (0..400).filter(|_| w.passes(agent, 0, 0.0)).count()))
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    assert_eq!(passed, 1000);
    assert_eq!(w.rung.wave_spent(&id("wave")).calls, 1000);
}

/// §3.5, §3.8: explaining says that a budget is spent, and of which part, and spends nothing.
#[test]
fn explaining_tells_of_a_budget_and_spends_nothing() {
    let w = world(BudgetRung::new(ALL).each(Budget { calls: Some(1), ..Budget::default() }), None);
    let alpha = attach(&w.kernel, "alpha");
    let call = ToolCall::new(&alpha, &w.tool);
    for _ in 0..3 {
        assert!(w.kernel.explain(&call).verdict.is_allow());
    }
    assert!(alpha.decide(&call).is_allow());
    let explained = w.kernel.explain(&call);
    assert_eq!(explained.verdict.refusal().unwrap().site.check(), "budget/calls");
    assert!(explained.rungs.iter().any(|of| of.by == "budget" && of.reason.is_some()), "{explained}");
    // What the check is and what to do about it, by the rung's own account.
    let info = BUDGET_SITES.iter().find(|info| info.check == "budget/calls").copied();
    assert_eq!((explained.site, &*explained.next), (info, info.unwrap().next));
}
