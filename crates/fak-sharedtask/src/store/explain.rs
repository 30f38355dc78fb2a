//! Explaining acts on records without performing them (§3.5): the kernel's fold first, then what the store would check.

use fak_abi::{Act, Address, AgentHandle, Explanation, Id, Reason, Refusal, SiteInfo, ToolCall, Verdict};

use super::TaskStore;
use super::acts::{refusal_of, sees_all};
use super::driver::{
    ACTOR, AUTHORITY, DECISION, KEY, RECORD_BOUND, STORE, UNINSTALLED, UNKNOWN_TASK, WATCH_BOUND, WHOLE,
};
use super::reads::is_open;
use super::replay::Recall;
use super::slot::Held;
use crate::envelope::{Envelope as _, Patch, Record, TaskId};
use crate::merge::{Merged, Terms, is_actor, merge};
use crate::plan::Plan;
use crate::sight::Sight;

impl TaskStore {
    /// Why creating a record would be answered as it would be now. Whether such a record can be made is no verdict, and is
    /// learnt by creating it.
    #[must_use]
    pub fn explain_create(&self, agent: &AgentHandle, record: &Record) -> Explanation {
        let core = &*self.core;
        let body = core.body(agent, record.to_json(), record.body_ref.scope);
        let call = self.call(agent, Act::TaskCreate, Address::Task(record.task_id.id()), body.as_ref());
        self.explained(agent, &call, || {
            if !is_actor(&record.updated_by, agent.principal()) {
                return Some((Reason::TrustViolation, ACTOR));
            }
            let made = core.taken.get(agent.principal().id()).map_or(0, |taken| taken.records);
            (made >= core.config.bounds.records).then_some((Reason::RateLimited, RECORD_BOUND))
        })
    }

    /// Why a patch, under this idempotency key if there is one, would be answered as it would be now. The fold is the kernel's; behind it come the store's own refusals.
    /// What the merge would answer is no verdict, and is learnt by patching.
    #[must_use]
    pub fn explain_patch(&self, agent: &AgentHandle, patch: &Patch, key: Option<&Id>) -> Explanation {
        let body = self.core.body(agent, patch.to_json(), patch.scope);
        let call = self.call(agent, Act::TaskPatch, Address::Task(patch.task_id.id()), body.as_ref());
        self.explained(agent, &call, || {
            if !is_actor(&patch.actor, agent.principal()) {
                return Some((Reason::TrustViolation, ACTOR));
            }
            let config = &self.core.config;
            let sight = Sight::of(&config.domain, agent.principal());
            // Witnesses are not asked: an unconfirmed label ends in a result, not in a refusal.
            let plan = Plan::new(patch, &config.rules.limits, &|_| false);
            if let Some(key) = key
                && let Recall::Other =
                    self.core.books.of(agent.principal().id()).lock().recall(key, &patch.task_id, plan.digest)
            {
                return Some((Reason::Malformed, KEY));
            }
            let slot = self.core.slot(&patch.task_id)?;
            let now = self.core.now();
            let terms = Terms { rules: &config.rules, sight: &sight, approved: false, now };
            match merge(&slot.lock().task, patch, &plan, &terms) {
                Merged::Refuse(refusal) => Some(refusal_of(refusal)),
                Merged::Accept(..) | Merged::Stop(_) => None,
            }
        })
    }

    /// Why an approval or rejection of a held patch would be answered as it would be now.
    #[must_use]
    pub fn explain_decision(
        &self,
        agent: &AgentHandle,
        task: &TaskId,
        decision: &str,
        approve: bool,
    ) -> Explanation {
        let act = if approve { Act::TaskApprove } else { Act::TaskReject };
        let call = self.call(agent, act, Address::Task(task.id()), None);
        self.explained(agent, &call, || {
            let Some(slot) = self.core.slot(task) else { return Some((Reason::Misroute, UNKNOWN_TASK)) };
            let slot = slot.lock();
            let held = slot.held.get(decision).filter(|held| Held::waits(held));
            let Some((held, patch)) = held.and_then(|held| Some((held, held.patch.as_ref()?))) else {
                return Some((Reason::Misroute, DECISION));
            };
            let config = &self.core.config;
            let plan = Plan::new(patch, &config.rules.limits, &|_| false);
            let approver = Sight::of(&config.domain, agent.principal());
            let own = *held.actor.id() == *agent.principal().id();
            (own || !sees_all(&approver, patch, &plan)).then_some((Reason::TrustViolation, AUTHORITY))
        })
    }

    /// Why a read of a record (`view`, `events`, `watch` or `journal`) would be answered as it would be now.
    #[must_use]
    pub fn explain_read(&self, agent: &AgentHandle, act: Act, task: &TaskId) -> Explanation {
        let call = self.call(agent, act, Address::Task(task.id()), None);
        self.explained(agent, &call, || {
            let core = &*self.core;
            let Some(slot) = core.slot(task) else { return Some((Reason::Misroute, UNKNOWN_TASK)) };
            let who = agent.principal();
            match act {
                Act::TaskJournal => {
                    let snapshot = slot.lock().task.clone();
                    let open = is_open(&snapshot, &Sight::of(&core.config.domain, who));
                    (!open).then_some((Reason::TrustViolation, WHOLE))
                }
                Act::TaskWatch => {
                    let watches = core.taken.get(who.id()).map_or(0, |taken| taken.watches);
                    (watches >= core.config.bounds.watches).then_some((Reason::RateLimited, WATCH_BOUND))
                }
                _ => None,
            }
        })
    }

    /// The kernel's explanation, and the store's refusal behind it where the fold would allow the act.
    fn explained(
        &self,
        agent: &AgentHandle,
        call: &ToolCall<'_>,
        refuses: impl FnOnce() -> Option<(Reason, &'static SiteInfo)>,
    ) -> Explanation {
        let explanation = match self.core.host() {
            Some(host) => host.explain(call),
            None => agent.gate().explain(call),
        };
        if !explanation.verdict.is_allow() {
            return explanation;
        }
        let refusal =
            if self.core.host().is_none() { Some((Reason::DefaultDeny, UNINSTALLED)) } else { refuses() };
        match refusal {
            None => explanation,
            Some((reason, site)) => {
                let verdict = Verdict::deny(Refusal::new(reason, site.site()), STORE);
                explanation.decided(verdict, Some(*site), site.next.to_owned())
            }
        }
    }
}
