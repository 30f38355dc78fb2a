//! An agent's place on a bus: the view through which it performs every act. The acts themselves
//! have files of their own.

use std::fmt;
use std::sync::Arc;

use fak_abi::{
    Act, Address, Admission, AgentHandle, ChannelKey, Charge, Cleared, DriverLink, Pass, Permit, Principal,
    Reason, Ref, Refusal, Tool, ToolCall, Verdict,
};

use crate::account::Account;
use crate::channel::Channel;
use crate::core::{Core, GATE};
use crate::message::DeadLetter;
use crate::sites;

/// An agent's place on a bus, made by [`Bus::endpoint`](crate::Bus::endpoint). Cheap to clone.
///
/// It can do what the agent may, and nothing that is the host's (§4.10).
///
/// ```
/// # use fak_a2achan::{Bus, BusConfig};
/// # use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, ShareScope};
/// # use fak_adjudicate::Kernel;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let bus = Bus::new(BusConfig::default())?;
/// # let kernel = Kernel::builder().driver(bus.driver()).build()?;
/// # let attach = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
/// #     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?);
/// #     Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
/// # };
/// # let (alpha, bravo) = (attach("alpha")?, attach("bravo")?);
/// # let work = ChannelKey::new(Locale::InKernel, "work")?;
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).ok()?;
/// let (from, to) = (bus.endpoint(&alpha), bus.endpoint(&bravo));
/// assert!(from.send(&work, &order).is_allow());
/// assert_eq!(to.try_recv(&work).message().ok_or("nothing")?.from().id().as_str(), "alpha");
/// // Why would it be refused? Ask without doing it.
/// let private = alpha.mint("mine");
/// let explained = from.explain(fak_abi::Act::Send, &work, Some(&private));
/// assert_eq!(explained.site.ok_or("allowed")?.check, "a2achan/private");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Endpoint(Arc<Place>);

struct Place {
    core: Arc<Core>,
    agent: AgentHandle,
    /// `None` for a handle of another kernel, or one that was detached already.
    account: Option<Arc<Account>>,
    /// Whether a topology has to be asked; a kernel's does not change.
    edges: bool,
    /// Whether what is received is screened; a kernel's admitters do not change either.
    screens: bool,
}

impl Endpoint {
    pub(crate) fn new(core: &Arc<Core>, agent: &AgentHandle) -> Self {
        let is_ours = core.link().is_some_and(|link| link.tag() == agent.tag());
        let account = if is_ours { core.account(agent.principal()) } else { None };
        let edges = agent.gate().has_edges();
        let screens = core
            .host()
            .is_none_or(|host| [Act::Recv, Act::Await].into_iter().any(|act| host.screens(Tool::Act(act))));
        Self(Arc::new(Place { core: Arc::clone(core), agent: agent.clone(), account, edges, screens }))
    }

    /// The agent that acts.
    #[must_use]
    pub fn agent(&self) -> &AgentHandle {
        &self.0.agent
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    #[inline]
    pub(crate) fn me(&self) -> &Arc<Principal> {
        self.0.agent.principal()
    }

    /// A handle to one channel, with everything at hand that sending there again and again needs.
    /// Makes no mailbox.
    #[must_use]
    pub fn channel(&self, key: &ChannelKey) -> Channel {
        Channel::new(self.clone(), key.clone())
    }

    /// Presents an act whose address was no address: audited and refused MALFORMED (§4.1), for
    /// callers that take raw text.
    pub fn malformed(&self, act: Act, body: Option<&Ref>) -> Verdict {
        let call = ToolCall::new(&self.0.agent, act).address(Address::Malformed);
        let call = body.map_or(call, |body| call.args(body));
        match self.admit(&call) {
            Ok(permit) => self.refuse(permit, Refusal::new(Reason::Malformed, sites::MALFORMED.site())),
            Err(verdict) => verdict,
        }
    }

    /// This agent's own messages that could not be delivered, oldest first (§4.10).
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        let dead = self.0.core.dead.lock();
        dead.iter().filter(|letter| Arc::ptr_eq(&letter.from, self.me())).cloned().collect()
    }

    #[inline]
    pub(crate) fn has_edges(&self) -> bool {
        self.0.edges
    }

    #[inline]
    pub(crate) fn screens(&self) -> bool {
        self.0.screens
    }

    /// The account, once an act was admitted.
    #[inline]
    pub(crate) fn account(&self) -> Option<&Arc<Account>> {
        self.0.account.as_ref()
    }

    /// Folds an act of which nothing may be left to settle. A refusal is counted already.
    #[inline]
    pub(crate) fn pass(&self, call: &ToolCall<'_>) -> Pass {
        match (&self.0.account, self.0.core.link()) {
            (Some(_), Some(link)) => self.pass_by(link, call),
            _ => Pass::Closely,
        }
    }

    /// As [`Self::pass`], where the link is at hand and the account known to be.
    #[inline]
    pub(crate) fn pass_by(&self, link: &DriverLink, call: &ToolCall<'_>) -> Pass {
        let pass = self.0.agent.gate().pass(call, link.key());
        if matches!(pass, Pass::Refuse(_)) {
            self.0.core.deny();
        }
        pass
    }

    /// Folds an act. A refusal is counted and audited already.
    #[inline]
    pub(crate) fn admit<'a>(&'a self, call: &'a ToolCall<'a>) -> Result<Permit<'a>, Verdict> {
        let (Some(_), Some(link)) = (&self.0.account, self.0.core.link()) else {
            return Err(self.strange(call));
        };
        match self.0.agent.gate().admit(call, link.key()) {
            Admission::Permit(permit) => Ok(permit),
            Admission::Refuse(verdict) => {
                self.0.core.deny();
                Err(verdict)
            }
        }
    }

    /// Row 0: an act by a handle that is not, or no longer, this kernel's. It is refused by the
    /// bus's own kernel, so that it shows in its audit.
    #[cold]
    fn strange<'a>(&'a self, call: &'a ToolCall<'a>) -> Verdict {
        self.0.core.deny();
        let foreign = || Verdict::deny(Refusal::new(Reason::TrustViolation, sites::FOREIGN.site()), GATE);
        let Some(host) = self.0.core.host() else { return foreign() };
        match host.admit_any(call) {
            Admission::Refuse(verdict) => verdict,
            Admission::Permit(permit) => {
                permit.refuse(Refusal::new(Reason::DefaultDeny, sites::DETACHED.site()), GATE)
            }
        }
    }

    /// Lets the counting rungs count.
    #[inline]
    pub(crate) fn charge<'a>(&self, permit: Permit<'a>) -> Result<Cleared<'a>, Verdict> {
        match permit.charge() {
            Charge::Cleared(cleared) => Ok(cleared),
            Charge::Refuse(verdict) => {
                self.0.core.deny();
                Err(verdict)
            }
        }
    }

    /// Folds an act that needs nothing but the decision.
    pub(crate) fn decide<'a>(&'a self, call: &'a ToolCall<'a>) -> Result<Cleared<'a>, Verdict> {
        self.admit(call).and_then(|permit| self.charge(permit))
    }

    /// An act that cannot happen, whatever the rungs say: folded first, so that what a rung refuses
    /// is refused by that rung.
    #[cold]
    pub(crate) fn refused<'a>(&'a self, call: &'a ToolCall<'a>, refusal: Refusal) -> Verdict {
        match self.admit(call) {
            Ok(permit) => self.refuse(permit, refusal),
            Err(verdict) => verdict,
        }
    }

    /// An act that passed is refused after all.
    #[cold]
    pub(crate) fn refuse_freely(&self, refusal: Refusal) -> Verdict {
        self.0.core.deny();
        Verdict::deny(refusal, GATE)
    }

    /// An act that was admitted is refused after all.
    pub(crate) fn refuse(&self, permit: Permit<'_>, refusal: Refusal) -> Verdict {
        self.0.core.deny();
        permit.refuse(refusal, GATE)
    }

    /// An act that was counted is refused after all.
    pub(crate) fn revoke(&self, cleared: Cleared<'_>, refusal: Refusal) -> Verdict {
        self.0.core.deny();
        cleared.refuse(refusal, GATE)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({:?})", self.me())
    }
}
