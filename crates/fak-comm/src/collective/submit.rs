//! Submitting a call a rank and completing them: the machinery under every collective.

use std::sync::Arc;
use std::task::{Context, Poll};

use fak_abi::{Act, AgentHandle, Principal, Ref, RungName, Ticket, ToolCall, ToolResult, Verdict};

use super::{Collective, CollectiveRefusal, Communicator};

/// The admitted calls of one collective, in rank order. Dropping it withdraws what was not reaped.
pub(super) struct Submitted {
    agent: AgentHandle,
    calls: Vec<Call>,
}

struct Call {
    ticket: Ticket,
    result: Option<ToolResult>,
}

impl Submitted {
    /// Reaps in rank order, in one loop that does not wait for a rank before it has begun the next.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = Poll::Ready(());
        for call in self.calls.iter_mut().filter(|call| call.result.is_none()) {
            match self.agent.gate().poll_reap(&self.agent, &call.ticket, cx) {
                Poll::Ready(result) => call.result = Some(result.unwrap_or_else(|_| ToolResult::error())),
                Poll::Pending => all = Poll::Pending,
            }
        }
        all
    }

    /// What each rank came to, in rank order; those not reaped are absent.
    pub(super) fn results(&self) -> impl Iterator<Item = Option<&ToolResult>> {
        self.calls.iter().map(|call| call.result.as_ref())
    }

    /// What a transforming rung made of each rank's body, where one did.
    pub(super) fn transformed(&self) -> impl Iterator<Item = Option<&Ref>> {
        self.calls.iter().map(|call| match call.ticket.verdict() {
            Verdict::Transform { args, .. } => Some(args),
            _ => None,
        })
    }

    /// The numbers the kernel gave the calls, in rank order.
    pub(super) fn seqs(&self) -> impl ExactSizeIterator<Item = u64> {
        self.calls.iter().map(|call| call.ticket.seq())
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        for call in self.calls.iter().filter(|call| call.result.is_none()) {
            // A ticket that is spent meanwhile, as by a detach, has nothing left to give back.
            let _ = self.agent.gate().withdraw(&self.agent, &call.ticket);
        }
    }
}

impl Communicator {
    /// Whom a rank resolves to: hand-overs alone have a recipient.
    pub(super) fn recipient(&self, act: Act, rank: usize) -> Option<Arc<Principal>> {
        if !matches!(act, Act::Broadcast | Act::Scatter) {
            return None;
        }
        let host = self.open.inner().tie.link()?.host()?;
        host.attached(self.group().member(rank)?.id())
    }

    /// Submits a call for every rank with its body. The first refusal withdraws those before it (§6.2).
    pub(super) fn submit<'b>(
        &self,
        agent: &AgentHandle,
        act: Act,
        bodies: impl Iterator<Item = &'b Ref>,
    ) -> Collective<Submitted> {
        let mut submitted =
            Submitted { agent: agent.clone(), calls: Vec::with_capacity(self.group().size()) };
        let mut by: Option<RungName> = None;
        for (rank, (member, body)) in self.group().members().iter().zip(bodies).enumerate() {
            let refuse = |verdict| {
                Collective::Refuse(CollectiveRefusal { rank, member: member.id().clone(), verdict })
            };
            let recipient = self.recipient(act, rank);
            let call = ToolCall::new(agent, act).args(body).address(self.address(rank));
            let call = call.recipient(recipient.as_ref()).rider(self.rider.as_deref());
            if let Err(verdict) = self.open.inner().tie.own(&call) {
                return refuse(verdict);
            }
            let ticket = agent.gate().submit(&call);
            if !ticket.verdict().is_allow() {
                return refuse(ticket.verdict().clone());
            }
            by.get_or_insert(ticket.verdict().by());
            submitted.calls.push(Call { ticket, result: None });
        }
        Collective::Allow { value: submitted, by: by.unwrap_or(self.open.inner().tie.layer()) }
    }
}
