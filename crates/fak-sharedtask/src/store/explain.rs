//! Explaining acts on records without performing them (§3.5): the kernel's fold first, then what the store would check.

use fak_abi::{Act, Address, AgentHandle, Explanation, Reason, Refusal, SiteInfo, ToolCall, Verdict};

use super::TaskStore;
use super::acts::{refusal_of, sees_all};
use super::driver::{ACTOR, AUTHORITY, DECISION, STORE, UNINSTALLED, UNKNOWN_TASK};
use super::slot::Held;
use crate::envelope::{Patch, TaskId};
use crate::merge::{Merged, Terms, is_actor, merge};
use crate::plan::Plan;
use crate::sight::Sight;

impl TaskStore {
    /// Why a patch would be answered as it would be now. The fold is the kernel's; behind it come the store's own refusals.
    /// What the merge would answer is no verdict, and is learnt by patching.
    #[must_use]
    pub fn explain_patch(&self, agent: &AgentHandle, patch: &Patch) -> Explanation {
        use crate::envelope::Envelope as _;
        let body = self.0.body(agent, patch.to_json(), patch.scope);
        let mut call = ToolCall::new(agent, Act::TaskPatch).address(Address::Task(patch.task_id.id()));
        if let Some(body) = &body {
            call = call.args(body);
        }
        self.explained(agent, &call, || {
            if !is_actor(&patch.actor, agent.principal()) {
                return Some((Reason::TrustViolation, ACTOR));
            }
            let config = &self.0.config;
            let sight = Sight::of(&config.domain, agent.principal());
            // Witnesses are not asked: an unconfirmed label ends in a result, not in a refusal.
            let plan = Plan::new(patch, &config.rules.limits, &|_| false);
            let slot = self.0.slot(&patch.task_id)?;
            let terms = Terms { rules: &config.rules, sight: &sight, approved: false, now: self.0.now() };
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
        let call = ToolCall::new(agent, act).address(Address::Task(task.id()));
        self.explained(agent, &call, || {
            let Some(slot) = self.0.slot(task) else { return Some((Reason::Misroute, UNKNOWN_TASK)) };
            let slot = slot.lock();
            let Some(held) = slot.held.get(decision).filter(|held| Held::waits(held)) else {
                return Some((Reason::Misroute, DECISION));
            };
            let config = &self.0.config;
            let plan = Plan::new(&held.patch, &config.rules.limits, &|_| false);
            let approver = Sight::of(&config.domain, agent.principal());
            let own = *held.actor.id() == *agent.principal().id();
            (own || !sees_all(&approver, &held.patch, &plan)).then_some((Reason::TrustViolation, AUTHORITY))
        })
    }

    /// Why a read of a record (`view`, `events`, `watch` or `journal`) would be answered as it would be now.
    #[must_use]
    pub fn explain_read(&self, agent: &AgentHandle, act: Act, task: &TaskId) -> Explanation {
        let call = ToolCall::new(agent, act).address(Address::Task(task.id()));
        self.explained(agent, &call, || {
            self.0.slot(task).is_none().then_some((Reason::Misroute, UNKNOWN_TASK))
        })
    }

    /// The kernel's explanation, and the store's refusal behind it where the fold would allow the act.
    fn explained(
        &self,
        agent: &AgentHandle,
        call: &ToolCall<'_>,
        refuses: impl FnOnce() -> Option<(Reason, SiteInfo)>,
    ) -> Explanation {
        let explanation = match self.0.host() {
            Some(host) => host.explain(call),
            None => agent.gate().explain(call),
        };
        if !explanation.verdict.is_allow() {
            return explanation;
        }
        let refusal =
            if self.0.host().is_none() { Some((Reason::DefaultDeny, UNINSTALLED)) } else { refuses() };
        match refusal {
            None => explanation,
            Some((reason, site)) => {
                let verdict = Verdict::deny(Refusal::new(reason, site.site()), STORE);
                explanation.decided(verdict, Some(site), site.next.to_owned())
            }
        }
    }
}
