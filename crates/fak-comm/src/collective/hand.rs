//! Broadcast and scatter: values handed into the members' group inboxes (§6.3). The inboxes are the bus's.

use std::future::poll_fn;
use std::iter::repeat_n;
use std::task::{Context, Waker};

use fak_abi::{Act, AgentHandle, Id, Ref, Status, Verdict};

use super::submit::Submitted;
use super::{Collective, Communicator};
use crate::error::CommError;
use crate::group::Group;

/// What a hand-over came to, once every rank is reaped (§6.3).
#[derive(Clone, Debug)]
pub struct Delivery {
    /// How many members received it.
    pub delivered: usize,
    /// The members it was lost on, in rank order: gone since they were admitted, their copy a dead letter.
    pub lost: Vec<Lost>,
}

/// A member that a hand-over did not reach (§6.2).
#[derive(Clone, Debug)]
pub struct Lost {
    /// Its rank.
    pub rank: usize,
    /// Its id.
    pub member: Id,
    /// The verdict, where there was one.
    pub verdict: Option<Verdict>,
}

/// A hand-over that is admitted for every rank and delivered to none yet (§6.2). Dropping it withdraws it.
#[must_use]
pub struct PendingDelivery {
    group: Group,
    submitted: Submitted,
}

impl PendingDelivery {
    /// The kernel's number of each rank's call, in rank order.
    pub fn seqs(&self) -> impl ExactSizeIterator<Item = u64> {
        self.submitted.seqs()
    }

    /// Hands over, rank by rank, as far as it goes without waiting; `None` if an engine needs longer, to be asked
    /// again.
    pub fn try_complete(&mut self) -> Option<Delivery> {
        let polled = self.submitted.poll(&mut Context::from_waker(Waker::noop()));
        polled.is_ready().then(|| self.delivery())
    }

    /// Hands over, rank by rank.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its first poll, nothing is delivered. Its first poll commits every rank, so that dropping
    /// it later never leaves half a group with the value.
    pub async fn complete(mut self) -> Delivery {
        poll_fn(|cx| self.submitted.poll(cx)).await;
        self.delivery()
    }

    fn delivery(&self) -> Delivery {
        let mut lost = Vec::new();
        for ((rank, member), result) in self.group.members().iter().enumerate().zip(self.submitted.results())
        {
            let Some(result) =
                result.filter(|result| result.status != Status::Ok || result.refused.is_some())
            else {
                continue;
            };
            lost.push(Lost { rank, member: member.id().clone(), verdict: result.refused.clone() });
        }
        Delivery { delivered: self.group.size() - lost.len(), lost }
    }
}

impl Communicator {
    /// Hands `body` to every member, all or none (`comm.broadcast`).
    ///
    /// # Cancel safety
    ///
    /// As [`PendingDelivery::complete`].
    pub async fn broadcast(&self, agent: &AgentHandle, body: &Ref) -> Collective<Delivery> {
        complete(self.ibroadcast(agent, body)).await
    }

    /// Admits a broadcast and delivers nothing yet.
    pub fn ibroadcast(&self, agent: &AgentHandle, body: &Ref) -> Collective<PendingDelivery> {
        self.hand(agent, Act::Broadcast, repeat_n(body, self.group().size()))
    }

    /// Hands `goals[r]` to rank `r`, all or none (`comm.scatter`).
    ///
    /// # Errors
    ///
    /// [`CommError::Arity`] unless there is one goal a rank; nothing is submitted then.
    ///
    /// # Cancel safety
    ///
    /// As [`PendingDelivery::complete`].
    pub async fn scatter(
        &self,
        agent: &AgentHandle,
        goals: &[Ref],
    ) -> Result<Collective<Delivery>, CommError> {
        Ok(complete(self.iscatter(agent, goals)?).await)
    }

    /// Admits a scatter and delivers nothing yet.
    ///
    /// # Errors
    ///
    /// As [`Communicator::scatter`].
    pub fn iscatter(
        &self,
        agent: &AgentHandle,
        goals: &[Ref],
    ) -> Result<Collective<PendingDelivery>, CommError> {
        let expected = self.group().size();
        if goals.len() != expected {
            return Err(CommError::Arity { what: "goals", expected, got: goals.len() });
        }
        Ok(self.hand(agent, Act::Scatter, goals.iter()))
    }

    fn hand<'b>(
        &self,
        agent: &AgentHandle,
        act: Act,
        bodies: impl Iterator<Item = &'b Ref>,
    ) -> Collective<PendingDelivery> {
        match self.submit(agent, act, bodies) {
            Collective::Allow { value: submitted, by } => {
                let value = PendingDelivery { group: self.group().clone(), submitted };
                Collective::Allow { value, by }
            }
            Collective::Refuse(refusal) => Collective::Refuse(refusal),
        }
    }
}

async fn complete(pending: Collective<PendingDelivery>) -> Collective<Delivery> {
    match pending {
        Collective::Allow { value, by } => Collective::Allow { value: value.complete().await, by },
        Collective::Refuse(refusal) => Collective::Refuse(refusal),
    }
}
