//! How every act of an agent passes the kernel: no act has another way in (§1).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fak_abi::{
    Act, Address, Admission, AgentHandle, Charge, Claim, Cleared, Host, Id, Outcome, Permit, Reason, Ref,
    Refusal, ShareScope, SiteInfo, Taint, Testimony, ToolCall, Verdict,
};

use super::driver::{STORE, UNINSTALLED};
use super::{Core, TaskStore};
use crate::envelope::Hash;

/// What a witness is asked about a ref that claims to be trusted (§5.5).
const STATEMENT: &str = "sharedtask.trusted";

/// One act that every rung allows, and everything it may need.
pub(super) struct Acting<'a> {
    pub(super) core: &'a Core,
    pub(super) host: &'a dyn Host,
    pub(super) call: &'a ToolCall<'a>,
}

impl TaskStore {
    /// Presents an act to the kernel and, if it is allowed, goes on with its permit.
    pub(super) fn act<T>(
        &self,
        agent: &AgentHandle,
        act: Act,
        address: Address<'_>,
        args: Option<&Ref>,
        go: impl FnOnce(Acting<'_>, Permit<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let Some(host) = self.core.host() else {
            return Outcome::deny(Refusal::new(Reason::DefaultDeny, UNINSTALLED.site()), STORE);
        };
        let call = self.call(agent, act, address, args);
        match host.admit_any(&call) {
            Admission::Refuse(verdict) => Outcome::Refuse(verdict),
            Admission::Permit(permit) => go(Acting { core: &self.core, host: &*host, call: &call }, permit),
        }
    }

    /// An act as a call, with what rides along.
    pub(super) fn call<'a>(
        &'a self,
        agent: &'a AgentHandle,
        act: Act,
        address: Address<'a>,
        args: Option<&'a Ref>,
    ) -> ToolCall<'a> {
        let call = ToolCall::new(agent, act).address(address).rider(self.rider.as_deref());
        args.map_or(call, |args| call.args(args))
    }
}

impl Core {
    pub(super) fn host(&self) -> Option<Arc<dyn Host>> {
        self.link.get().and_then(fak_abi::DriverLink::host)
    }

    /// Bytes an act presents, labelled as the content they bring, so that rules on bodies apply to records.
    pub(super) fn body(&self, agent: &AgentHandle, bytes: Vec<u8>, scope: ShareScope) -> Option<Ref> {
        self.host()?.issue(agent.principal(), bytes.into(), Taint::Tainted, scope)
    }
}

impl Acting<'_> {
    /// Whether the envelope that the act presents is past its limit (§8): it may have been made in code.
    pub(super) fn is_oversize(&self) -> bool {
        self.call.body().is_some_and(|body| body.len() > self.core.config.rules.limits.envelope)
    }

    /// Whether some witness confirms that the value of this digest deserves to be trusted, and none refutes it. One that
    /// panics might have refuted it: then it is not confirmed (§3.2).
    pub(super) fn confirms(&self, hash: &Hash) -> bool {
        let Some(digest) = hash.full() else { return false };
        let Ok(statement) = Id::new(STATEMENT) else { return false };
        let claim = Claim { statement, subject: Some(digest), evidence: None };
        let mut confirmed = self.host.confirms(&claim, self.call);
        for witness in &self.core.config.witnesses {
            match catch_unwind(AssertUnwindSafe(|| witness.resolve(&claim, self.call))) {
                Err(_) | Ok(Testimony::Refute) => return false,
                Ok(Testimony::Confirm) => confirmed = true,
                Ok(Testimony::Abstain) => {}
            }
        }
        confirmed
    }

    /// Folds the result admitters over what the act would hand over (§4.4). The bytes are made only if some admitter
    /// wants to see them. What is stopped settles the permit as held.
    pub(super) fn screen<'p>(
        &self,
        permit: Permit<'p>,
        taint: Taint,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<Permit<'p>, Verdict> {
        if !self.host.screens(self.call.tool()) {
            return Ok(permit);
        }
        let body = self.host.issue(self.call.principal(), bytes().into(), taint, ShareScope::Agent);
        match body.map(|body| self.host.screen(self.call, &body)) {
            Some(verdict) if verdict.is_allow() => Ok(permit),
            Some(verdict) => Err(permit.hold(verdict.by(), 0)),
            None => Err(permit.hold(STORE, 0)),
        }
    }
}

/// Lets the counting rungs count, outside every lock.
pub(super) fn charge(permit: Permit<'_>) -> Result<Cleared<'_>, Verdict> {
    match permit.charge() {
        Charge::Cleared(cleared) => Ok(cleared),
        Charge::Refuse(verdict) => Err(verdict),
    }
}

/// Refuses an act that the fold allowed.
pub(super) fn refuse<T>(permit: Permit<'_>, reason: Reason, site: &'static SiteInfo) -> Outcome<T> {
    Outcome::Refuse(permit.refuse(Refusal::new(reason, site.site()), STORE))
}

/// Refuses an act that was counted; what was counted is taken back.
pub(super) fn refuse_cleared<T>(cleared: Cleared<'_>, reason: Reason, site: &'static SiteInfo) -> Outcome<T> {
    Outcome::Refuse(cleared.refuse(Refusal::new(reason, site.site()), STORE))
}

/// The act happened.
pub(super) fn allow<T>(cleared: Cleared<'_>, seq: u64, value: T) -> Outcome<T> {
    let verdict = cleared.allow(seq);
    Outcome::Allow { value, by: verdict.by() }
}

/// The act happened before, under the same idempotency key (§4.13).
pub(super) fn repeat<T>(cleared: Cleared<'_>, seq: u64, value: T) -> Outcome<T> {
    let verdict = cleared.repeat(seq);
    Outcome::Allow { value, by: verdict.by() }
}
