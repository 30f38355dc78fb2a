//! The acts on Refs themselves: `ref.widen` and `ref.trust`, and their capability rung (§2.4).

use fak_abi::{
    Act, Adjudicator, Admission, AgentHandle, CapSet, Capability, Charge, Claim, Desk, Event, EventKind,
    Explanation, Gate as _, Opinion, Outcome, PrincipalKind, Reason, Ref, Refusal, RungName, ShareScope,
    SiteInfo, Taint, ToolCall, ToolScope, Verdict,
};

use crate::fold::testify;
use crate::kernel::Kernel;
use crate::sites;

pub(crate) const REFS: RungName = "refs";

/// Allows the acts of `ref.*` and `forensics.read` to those who hold their capability.
pub(crate) struct RefsRung;

impl Adjudicator for RefsRung {
    fn name(&self) -> RungName {
        REFS
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["ref.widen", "ref.trust", "forensics.read"])
    }

    fn is_standing(&self) -> bool {
        true
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        match call.tool().act().map(Act::capability) {
            Some(cap) if call.caps().holds(cap) => Opinion::Allow,
            Some(cap) => Opinion::lacking(cap, sites::CAPABILITY.site()),
            None => Opinion::Defer,
        }
    }

    fn sites(&self) -> &'static [SiteInfo] {
        sites::KERNEL_SITES
    }
}

fn violation(site: &'static SiteInfo) -> Refusal {
    Refusal::new(Reason::TrustViolation, site.site())
}

/// Why a value may not be widened to `scope` by `agent`, if it may not.
fn widen_refusal(agent: &AgentHandle, body: &Ref, scope: ShareScope) -> Option<Refusal> {
    let me = agent.principal();
    let site = if !body.is_owned_by(me) {
        sites::NOT_OWNER
    } else if body.taint() == Taint::Quarantined || body.is_derived() {
        sites::WIDEN_LABEL
    } else {
        let there = match scope {
            ShareScope::Fleet => me.fleet().is_some(),
            ShareScope::Tenant => me.tenant().is_some(),
            ShareScope::Agent | ShareScope::Public => false,
        };
        if there && body.scope() == ShareScope::Agent {
            return None;
        }
        sites::WIDEN_TARGET
    };
    Some(violation(site))
}

/// Why a value may not be trusted on `agent`'s word, if it may not.
fn trust_refusal(agent: &AgentHandle, body: &Ref) -> Option<Refusal> {
    let me = agent.principal();
    if body.owner().tag() != me.tag() || (!body.is_owned_by(me) && me.kind() != PrincipalKind::Human) {
        Some(violation(sites::NOT_OWNER))
    } else if body.taint() == Taint::Quarantined {
        Some(violation(sites::WIDEN_LABEL))
    } else {
        None
    }
}

impl Kernel {
    /// The capabilities whose acts the kernel itself serves.
    pub(crate) const OWN_CAPABILITIES: CapSet =
        CapSet::NONE.with(Capability::RefWiden).with(Capability::RefTrust).with(Capability::ForensicsRead);

    pub(crate) fn widen_act(&self, agent: &AgentHandle, body: &Ref, scope: ShareScope) -> Outcome<Ref> {
        self.relabel_act(agent, Act::Widen, body, |body, _| {
            widen_refusal(agent, body, scope).map_or(Ok((body.taint(), scope)), Err)
        })
    }

    pub(crate) fn trust_act(&self, agent: &AgentHandle, body: &Ref, claim: &Claim) -> Outcome<Ref> {
        self.relabel_act(agent, Act::Trust, body, |body, call| {
            if let Some(refusal) = trust_refusal(agent, body) {
                return Err(refusal);
            }
            self.testimony(claim, call).map_or(Ok((Taint::Trusted, body.scope())), Err)
        })
    }

    /// Why widening would be answered as it would be now (§3.5): what the rungs think of it, then the value's labels. No side
    /// effects.
    #[must_use]
    pub fn explain_widen(&self, agent: &AgentHandle, body: &Ref, scope: ShareScope) -> Explanation {
        self.explain_relabel(agent, Act::Widen, body, |_| widen_refusal(agent, body, scope))
    }

    /// As [`Kernel::explain_widen`], for trusting. The witnesses are asked; they only answer.
    #[must_use]
    pub fn explain_trust(&self, agent: &AgentHandle, body: &Ref, claim: &Claim) -> Explanation {
        self.explain_relabel(agent, Act::Trust, body, |call| {
            trust_refusal(agent, body).or_else(|| self.testimony(claim, call))
        })
    }

    fn explain_relabel(
        &self,
        agent: &AgentHandle,
        act: Act,
        body: &Ref,
        refuses: impl FnOnce(&ToolCall<'_>) -> Option<Refusal>,
    ) -> Explanation {
        let call = ToolCall::new(agent, act).args(body);
        let explanation = self.explain(&call);
        match refuses(&call).filter(|_| explanation.verdict.is_allow()) {
            None => explanation,
            Some(refusal) => {
                let site = sites::KERNEL_SITES.iter().find(|site| site.site() == refusal.site).copied();
                let next = site.map_or("", |site| site.next).to_owned();
                explanation.decided(Verdict::deny(refusal, REFS), site, next)
            }
        }
    }

    /// What the witnesses have against a claim, if anything.
    fn testimony(&self, claim: &Claim, call: &ToolCall<'_>) -> Option<Refusal> {
        self.guarded(|| testify(claim, call, self.witnesses()))
            .unwrap_or_else(|| Some(Refusal::new(Reason::DefaultDeny, sites::PANIC.site())))
    }

    fn relabel_act(
        &self,
        agent: &AgentHandle,
        act: Act,
        body: &Ref,
        check: impl FnOnce(&Ref, &ToolCall<'_>) -> Result<(Taint, ShareScope), Refusal>,
    ) -> Outcome<Ref> {
        let call = ToolCall::new(agent, act).args(body);
        let permit = match self.admission(&call, 0) {
            Admission::Permit(permit) => permit,
            Admission::Refuse(verdict) => return Outcome::Refuse(verdict),
        };
        let body = permit.transformed().unwrap_or(body).clone();
        let (taint, scope) = match check(&body, &call) {
            Ok(label) => label,
            Err(refusal) => return Outcome::Refuse(permit.refuse(refusal, REFS)),
        };
        let by = permit.by();
        match permit.charge() {
            Charge::Refuse(verdict) => Outcome::Refuse(verdict),
            Charge::Cleared(cleared) => {
                // The checks above made sure that the Ref is of this kernel.
                let Ok(value) = self.seal().relabel(&body, taint, scope) else {
                    return Outcome::Refuse(cleared.refuse(violation(sites::FOREIGN), REFS));
                };
                let seq = self.next_seq();
                let _ = cleared.allow(seq);
                let kind = if act == Act::Trust { EventKind::Trust } else { EventKind::Widen };
                self.announce(
                    |at| Event {
                        seq,
                        principal: Some(agent.principal()),
                        label: Some((taint, scope)),
                        ..Event::new(kind, at)
                    },
                    kind,
                );
                Outcome::Allow { value, by }
            }
        }
    }
}
