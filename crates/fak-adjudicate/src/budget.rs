//! The budget rung (§3.8): buckets of calls, bytes and cost that do not refill, for an agent or for
//! a wave of agents together. Buckets that refill are in `rate`.

use std::collections::HashMap;
use std::sync::Arc;

use fak_abi::{
    Adjudicator, Desk, Id, MetaValue, Opinion, Reason, Refusal, RungName, SiteInfo, ToolCall, ToolScope,
};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

/// The name that the budget rung's verdicts carry.
pub const BUDGET: RungName = "budget";

const CALLS: &SiteInfo = &SiteInfo {
    check: "budget/calls",
    clause: "§3.8",
    refuses: "an act beyond the calls that the agent or its wave may make",
    next: "the budget does not refill: finish with what is left, or ask the host for more",
};
const BYTES: &SiteInfo = &SiteInfo {
    check: "budget/bytes",
    clause: "§3.8",
    refuses: "an act whose body is beyond the bytes that the agent or its wave may move",
    next: "send less, or ask the host for more; the budget does not refill",
};
const COST: &SiteInfo = &SiteInfo {
    check: "budget/cost",
    clause: "§3.8",
    refuses: "an act whose cost is beyond what the agent or its wave may spend",
    next: "choose a cheaper act, or ask the host for more; the budget does not refill",
};
const PRICE: &SiteInfo = &SiteInfo {
    check: "budget/price",
    clause: "§3.8",
    refuses: "an act whose metadata names a cost that is no number from 0 up",
    next: "give `cost` as a finite number, 0 or more",
};
const NUMBER: &SiteInfo = &SiteInfo {
    check: "budget/number",
    clause: "§3.8",
    refuses: "an act of one agent more than budgets are kept for",
    next: "the host has to forget agents that are gone, or keep more budgets",
};

/// The checks of the budget rung, for explain.
pub const BUDGET_SITES: &[SiteInfo] = &[*CALLS, *BYTES, *COST, *PRICE, *NUMBER];

/// How much an agent or a wave may do in all (§3.8). What is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Acts.
    pub calls: Option<u64>,
    /// Bytes of bodies.
    pub bytes: Option<u64>,
    /// The sum of the numbers under `cost` in the acts' metadata; counted in millionths.
    pub cost: Option<f64>,
}

/// What was done of a [`Budget`] (§3.8).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Acts.
    pub calls: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Cost.
    pub cost: f64,
}

/// What one act takes, and what a bucket has given. Cost in millionths: sums and their reversal are
/// exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Amount {
    calls: u64,
    bytes: u64,
    cost: u64,
}

#[derive(Debug)]
struct Bucket(Mutex<State>);

#[derive(Debug)]
struct State {
    limit: Budget,
    spent: Amount,
}

impl Bucket {
    fn new(limit: Budget) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { limit, spent: Amount::default() })))
    }

    fn spent(&self) -> Spent {
        let Amount { calls, bytes, cost } = self.0.lock().spent;
        Spent { calls, bytes, cost: cost as f64 / MILLION }
    }
}

impl State {
    /// The check that one act more would fail.
    fn check(&self, amount: Amount) -> Option<&'static SiteInfo> {
        self.spent.plus(amount).exceeds(&self.limit)
    }
}

/// The buckets an agent draws on.
#[derive(Debug, Clone, Default)]
struct Account {
    own: Option<Arc<Bucket>>,
    wave: Option<(Id, Arc<Bucket>)>,
}

impl Account {
    /// In the order they are locked: an agent's own before that of its wave.
    fn buckets(&self) -> impl Iterator<Item = &Arc<Bucket>> {
        self.own.iter().chain(self.wave.iter().map(|(_, bucket)| bucket))
    }
}

#[derive(Debug, Default)]
struct Books {
    agents: HashMap<Id, Account>,
    waves: HashMap<Id, Arc<Bucket>>,
}

/// Refuses what is beyond a budget: RATE_LIMITED without a retry-after, for waiting does not help
/// (§3.8).
///
/// `judge` reads, `commit` charges, `revert` gives back. An act is charged to its agent's budget and
/// to that of the wave the host has put the agent in: to both or to none. Agents are known by their
/// ids: attaching one again refills nothing.
///
/// ```
/// use std::sync::Arc;
/// use fak_abi::{Capability::RefWiden, Id, PrincipalSpec, Reason, ShareScope, ToolScope};
/// use fak_adjudicate::{Budget, BudgetRung, Kernel, Rank};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let budget = Budget { calls: Some(1), ..Budget::default() };
/// let rung = Arc::new(BudgetRung::new(ToolScope::only(["ref.widen"])).each(budget));
/// let kernel = Kernel::builder().rung(Rank(30), rung.clone()).build()?;
/// let spec = PrincipalSpec::agent(Id::new("alpha")?).fleet(Id::new("crew")?);
/// let alpha = kernel.attach(spec.caps([RefWiden]))?;
///
/// assert!(alpha.widen(&alpha.mint("one"), ShareScope::Fleet).is_allow());
/// // It does not refill: there is nothing to wait for.
/// let refused = alpha.widen(&alpha.mint("two"), ShareScope::Fleet).verdict();
/// assert_eq!(refused.reason(), Some(Reason::RateLimited));
/// assert!(refused.refusal().is_some_and(|refusal| refusal.retry_after_ms.is_none()));
/// assert_eq!(rung.spent(&Id::new("alpha")?).calls, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BudgetRung {
    tools: ToolScope,
    each: Option<Budget>,
    bound: usize,
    books: RwLock<Books>,
}

const MILLION: f64 = 1_000_000.0;

fn millionths(cost: f64) -> Option<u64> {
    // Saturates above; what is no number from 0 up is none.
    (cost.is_finite() && cost >= 0.0).then(|| (cost * MILLION).round() as u64)
}

impl Amount {
    fn of(call: &ToolCall<'_>) -> Option<Self> {
        let cost = match call.meta("cost") {
            None => 0,
            Some(MetaValue::Number(cost)) => millionths(*cost)?,
            Some(_) => return None,
        };
        Some(Self { calls: 1, bytes: call.body().map_or(0, |body| body.len() as u64), cost })
    }

    fn plus(self, more: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(more.calls),
            bytes: self.bytes.saturating_add(more.bytes),
            cost: self.cost.saturating_add(more.cost),
        }
    }

    fn minus(self, less: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(less.calls),
            bytes: self.bytes.saturating_sub(less.bytes),
            cost: self.cost.saturating_sub(less.cost),
        }
    }

    /// The check that this much fails.
    fn exceeds(self, limit: &Budget) -> Option<&'static SiteInfo> {
        let above = |spent: u64, limit: Option<u64>| limit.is_some_and(|limit| spent > limit);
        // A limit that is no number from 0 up allows nothing.
        let cost = limit.cost.map(|cost| millionths(cost).unwrap_or_default());
        if above(self.calls, limit.calls) {
            Some(CALLS)
        } else if above(self.bytes, limit.bytes) {
            Some(BYTES)
        } else {
            above(self.cost, cost).then_some(COST)
        }
    }
}

fn refuse(site: &'static SiteInfo) -> Refusal {
    Refusal::new(Reason::RateLimited, site.site())
}

impl BudgetRung {
    /// A rung that limits nobody yet, over the acts of `tools`.
    #[must_use]
    pub fn new(tools: ToolScope) -> Self {
        Self { tools, each: None, bound: 65_536, books: RwLock::default() }
    }

    /// With this budget for every agent that has none of its own.
    #[must_use]
    pub fn each(self, budget: Budget) -> Self {
        Self { each: Some(budget), ..self }
    }

    /// With budgets kept for at most so many agents; default 65,536. Acts of further ones are
    /// refused.
    #[must_use]
    pub fn at_most(self, agents: usize) -> Self {
        Self { bound: agents, ..self }
    }

    /// Sets an agent's own budget. What it has spent stays spent.
    pub fn set_agent(&self, agent: &Id, budget: Budget) {
        let mut books = self.books.write();
        let own = &mut books.agents.entry(agent.clone()).or_default().own;
        match own {
            Some(bucket) => bucket.0.lock().limit = budget,
            None => *own = Some(Bucket::new(budget)),
        }
    }

    /// Sets the budget that the members of a wave share. What they have spent stays spent.
    pub fn set_wave(&self, wave: &Id, budget: Budget) {
        let mut books = self.books.write();
        match books.waves.get(wave) {
            Some(bucket) => bucket.0.lock().limit = budget,
            None => drop(books.waves.insert(wave.clone(), Bucket::new(budget))),
        }
    }

    /// Puts an agent into a wave, out of the one it was in; false if the wave has no budget.
    pub fn join(&self, wave: &Id, agent: &Id) -> bool {
        let mut books = self.books.write();
        let Some(bucket) = books.waves.get(wave).cloned() else { return false };
        books.agents.entry(agent.clone()).or_default().wave = Some((wave.clone(), bucket));
        true
    }

    /// Forgets an agent and what it has spent.
    pub fn forget(&self, agent: &Id) {
        self.books.write().agents.remove(agent);
    }

    /// Forgets a wave; its members are in none.
    pub fn forget_wave(&self, wave: &Id) {
        let mut books = self.books.write();
        books.waves.remove(wave);
        for account in books.agents.values_mut() {
            if account.wave.as_ref().is_some_and(|(id, _)| id == wave) {
                account.wave = None;
            }
        }
    }

    /// What an agent has spent of its own budget.
    #[must_use]
    pub fn spent(&self, agent: &Id) -> Spent {
        self.account(agent).own.as_deref().map(Bucket::spent).unwrap_or_default()
    }

    /// What the members of a wave have spent together.
    #[must_use]
    pub fn wave_spent(&self, wave: &Id) -> Spent {
        self.books.read().waves.get(wave).map(|bucket| bucket.spent()).unwrap_or_default()
    }

    fn account(&self, agent: &Id) -> Account {
        self.books.read().agents.get(agent).cloned().unwrap_or_default()
    }

    /// The account of an agent that acts, opened if it needs one.
    fn open(&self, agent: &Id) -> Result<Account, Refusal> {
        let account = self.account(agent);
        let Some(each) = self.each.filter(|_| account.own.is_none()) else { return Ok(account) };
        let mut books = self.books.write();
        if books.agents.len() >= self.bound && !books.agents.contains_key(agent) {
            return Err(refuse(NUMBER));
        }
        let account = books.agents.entry(agent.clone()).or_default();
        account.own.get_or_insert_with(|| Bucket::new(each));
        Ok(account.clone())
    }

    fn charge(&self, call: &ToolCall<'_>) -> Result<(), Refusal> {
        let amount = Amount::of(call).ok_or_else(|| Refusal::new(Reason::Malformed, PRICE.site()))?;
        let account = self.open(call.principal().id())?;
        // All are locked before any is charged.
        let mut held = SmallVec::<[_; 2]>::new();
        for bucket in account.buckets() {
            let state = bucket.0.lock();
            if let Some(site) = state.check(amount) {
                return Err(refuse(site));
            }
            held.push(state);
        }
        for mut state in held {
            state.spent = state.spent.plus(amount);
        }
        Ok(())
    }
}

impl Adjudicator for BudgetRung {
    fn name(&self) -> RungName {
        BUDGET
    }

    fn tools(&self) -> ToolScope {
        self.tools.clone()
    }

    fn counts(&self) -> bool {
        true
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let Some(amount) = Amount::of(call) else { return Opinion::deny(Reason::Malformed, PRICE.site()) };
        let account = self.account(call.principal().id());
        let fresh = self.each.filter(|_| account.own.is_none()).and_then(|each| amount.exceeds(&each));
        let found = account.buckets().find_map(|bucket| bucket.0.lock().check(amount));
        fresh.or(found).map_or(Opinion::Defer, |site| Opinion::Deny(refuse(site)))
    }

    fn commit(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        self.charge(call).map_or_else(Opinion::Deny, |()| Opinion::Defer)
    }

    fn revert(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) {
        let Some(amount) = Amount::of(call) else { return };
        for bucket in self.account(call.principal().id()).buckets() {
            let mut state = bucket.0.lock();
            state.spent = state.spent.minus(amount);
        }
    }

    fn sites(&self) -> &'static [SiteInfo] {
        BUDGET_SITES
    }
}
