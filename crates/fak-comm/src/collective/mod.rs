//! Collectives: one call a rank, all of them or none (§6.2). Submitting and completing are here; what is handed over
//! is in `hand`, what is folded in `gather`. Bytes are moved by the engine registered for `comm.*`.

mod gather;
mod hand;
mod submit;

use std::sync::Arc;

use fak_abi::{
    Act, Address, Admission, AgentHandle, Charge, Explanation, Id, Outcome, Ref, Rider, ToolCall, Verdict,
};

use crate::answer::Answer;
use crate::barrier::Barrier;
use crate::error::CommError;
use crate::group::{Group, Member};
use crate::open::Open;
use crate::split::Part;

pub(crate) use gather::GatherEngine;
pub use gather::{Gathered, PendingGather};
pub use hand::{Delivery, Lost, PendingDelivery};

/// What a collective answers: its value, or which rank refused it (§6.2).
pub type Collective<T> = Answer<T, CollectiveRefusal>;

/// The rank that refused a collective (§6.2).
#[derive(Clone, Debug)]
pub struct CollectiveRefusal {
    /// The lowest rank that was refused.
    pub rank: usize,
    /// Its member.
    pub member: Id,
    /// Reason and rung.
    pub verdict: Verdict,
}

impl AsRef<Verdict> for CollectiveRefusal {
    fn as_ref(&self) -> &Verdict {
        &self.verdict
    }
}

/// A group within a kernel: what agents perform collectives with (§6.2). Cheap to clone.
///
/// It carries no authority: every act names the handle that performs it.
#[derive(Clone)]
pub struct Communicator {
    open: Arc<Open>,
    rider: Option<Arc<Rider>>,
}

impl Communicator {
    pub(crate) fn new(open: Open) -> Self {
        Self { open: Arc::new(open), rider: None }
    }

    /// The same communicator, whose acts carry this deadline, cancellation and metadata (§2.5).
    #[must_use]
    pub fn riding(&self, rider: Rider) -> Self {
        Self { rider: Some(Arc::new(rider)), ..self.clone() }
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &Group {
        self.open.group()
    }

    /// Opens a barrier over the group (`comm.barrier`, §6.5).
    pub fn barrier(&self, agent: &AgentHandle) -> Outcome<Barrier> {
        self.decide(agent, Act::Barrier).map(|()| Barrier::open(self.group().clone(), self.open.inner()))
    }

    /// Splits the group by colour (`comm.split`, §6.6).
    ///
    /// # Errors
    ///
    /// As [`Group::split`]; nothing is submitted then.
    pub fn split<'a>(
        &'a self,
        agent: &AgentHandle,
        colour: impl FnMut(&'a Member) -> Option<&'a Id>,
    ) -> Result<Outcome<Vec<Part>>, CommError> {
        let parts = self.group().split(colour)?;
        Ok(self.decide(agent, Act::Split).map(|()| parts))
    }

    /// Why the hand-over of `body` to `rank` would be answered as it would be (§3.5). No side effects.
    #[must_use]
    pub fn explain(&self, agent: &AgentHandle, act: Act, rank: usize, body: Option<&Ref>) -> Explanation {
        let recipient = self.recipient(act, rank);
        let call = ToolCall::new(agent, act).address(self.address(rank)).recipient(recipient.as_ref());
        let call = call.rider(self.rider.as_deref());
        self.open.inner().tie.explain(agent, &body.map_or(call, |body| call.args(body)))
    }

    fn address(&self, rank: usize) -> Address<'_> {
        Address::Group(self.group().name(), u32::try_from(rank).unwrap_or(u32::MAX))
    }

    /// An act over the whole group that needs nothing but the decision.
    fn decide(&self, agent: &AgentHandle, act: Act) -> Outcome<()> {
        let call = ToolCall::new(agent, act).address(self.address(0)).rider(self.rider.as_deref());
        let link = match self.open.inner().tie.own(&call) {
            Ok(link) => link,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        let permit = match agent.gate().admit(&call, link.key()) {
            Admission::Permit(permit) => permit,
            Admission::Refuse(verdict) => return Outcome::Refuse(verdict),
        };
        match permit.charge() {
            Charge::Cleared(cleared) => {
                let verdict = cleared.allow(link.sequence().next());
                Outcome::Allow { value: (), by: verdict.by() }
            }
            Charge::Refuse(verdict) => Outcome::Refuse(verdict),
        }
    }
}
