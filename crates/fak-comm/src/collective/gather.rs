//! Gather: the members' outputs folded into one value of the gatherer's (§6.4). Nothing is delivered to anybody.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fak_abi::{
    Act, AgentHandle, DriverLink, Engine, EngineClaim, Id, Outcome, OwnedCall, Ref, RungName, ToolResult,
};

use super::submit::Submitted;
use super::{Collective, CollectiveRefusal, Communicator};
use crate::comm::Inner;
use crate::error::CommError;
use crate::group::{Group, Member};
use crate::reduce::{Output, Reduced, Reduction, Tally};

/// What a gather came to (§6.4).
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The winning output itself, its taint joined over all; or a value made of all of them, the gatherer's own.
    pub output: Ref,
    /// Rank and id of the member whose output won, where one did.
    pub winner: Option<(usize, Id)>,
    /// The count of a vote by distinct output, in byte order of the outputs; an index is a rank.
    pub tally: Vec<Tally>,
}

/// A gather that is admitted for every rank and not handed over yet (§6.2). Dropping it withdraws it.
#[must_use]
pub struct PendingGather {
    group: Group,
    agent: AgentHandle,
    inner: Arc<Inner>,
    parts: Vec<Ref>,
    folded: Folded,
    by: RungName,
    submitted: Submitted,
}

/// What a reduction left, with the part it names in hand.
enum Folded {
    Made(Vec<u8>),
    Won { part: Ref, rank: usize, member: Id, tally: Vec<Tally> },
}

impl PendingGather {
    /// The kernel's number of each rank's call, in rank order.
    pub fn seqs(&self) -> impl ExactSizeIterator<Item = u64> {
        self.submitted.seqs()
    }

    /// Reaps as far as it goes without waiting; `None` if an engine needs longer, to be asked again.
    pub fn try_complete(&mut self) -> Option<Collective<Gathered>> {
        let polled = self.submitted.poll(&mut Context::from_waker(Waker::noop()));
        polled.is_ready().then(|| self.hand_over())
    }

    /// Reaps in rank order and folds. A part that an admitter holds is the answer to the whole: nothing is
    /// handed over then (§4.4).
    ///
    /// # Cancel safety
    ///
    /// Dropping it withdraws what was not reaped; nothing was delivered to anybody.
    pub async fn complete(mut self) -> Collective<Gathered> {
        poll_fn(|cx| self.submitted.poll(cx)).await;
        self.hand_over()
    }

    fn hand_over(&self) -> Collective<Gathered> {
        for ((rank, member), result) in self.group.members().iter().enumerate().zip(self.submitted.results())
        {
            if let Some(verdict) = result.and_then(|result| result.refused.clone()) {
                return Collective::Refuse(CollectiveRefusal { rank, member: member.id().clone(), verdict });
            }
        }
        let value = match &self.folded {
            Folded::Made(bytes) => {
                // The kernel vouches for the fold; an agent's own derivation is never trusted.
                let host = self.inner.tie.link().and_then(DriverLink::host);
                let made = host
                    .and_then(|host| host.derive(self.agent.principal(), bytes.clone().into(), &self.parts));
                let output = made.unwrap_or_else(|| self.agent.derive(bytes.clone(), &self.parts));
                Gathered { output, winner: None, tally: Vec::new() }
            }
            Folded::Won { part, rank, member, tally } => {
                let taint = self.parts.iter().fold(part.taint(), |taint, part| taint.join(part.taint()));
                let winner = Some((*rank, member.clone()));
                Gathered { output: part.tainted_at_least(taint), winner, tally: tally.clone() }
            }
        };
        Collective::Allow { value, by: self.by }
    }
}

impl Communicator {
    /// Folds `outputs[r]`, the output of rank `r`, into one value (`comm.gather`). `scores`, one a rank, are read
    /// by `best_of` alone.
    ///
    /// # Errors
    ///
    /// `empty`, `arity`, `not_numeric`, `not_finite` and `nan_score` of [`CommError`]; nothing is submitted then.
    ///
    /// # Cancel safety
    ///
    /// As [`PendingGather::complete`].
    pub async fn gather(
        &self,
        agent: &AgentHandle,
        outputs: &[Ref],
        reduction: Reduction,
        scores: &[f64],
    ) -> Result<Collective<Gathered>, CommError> {
        Ok(match self.igather(agent, outputs, reduction, scores)? {
            Collective::Allow { value, .. } => value.complete().await,
            Collective::Refuse(refusal) => Collective::Refuse(refusal),
        })
    }

    /// Admits a gather and hands over nothing yet.
    ///
    /// # Errors
    ///
    /// As [`Communicator::gather`].
    pub fn igather(
        &self,
        agent: &AgentHandle,
        outputs: &[Ref],
        reduction: Reduction,
        scores: &[f64],
    ) -> Result<Collective<PendingGather>, CommError> {
        let group = self.group();
        reduction.check(group.members().iter().map(Member::id), outputs.len(), scores)?;
        // What cannot be read is refused by the floor below; an error here must not tell of it.
        let early = reduce(group, agent, outputs, reduction, scores)?;
        let (submitted, by) = match self.submit(agent, Act::Gather, outputs.iter()) {
            Collective::Allow { value, by } => (value, by),
            Collective::Refuse(refusal) => return Ok(Collective::Refuse(refusal)),
        };
        let changed = submitted.transformed().any(|part| part.is_some());
        let parts: Vec<Ref> =
            submitted.transformed().zip(outputs).map(|(new, part)| new.unwrap_or(part).clone()).collect();
        let reduced = match early {
            Ok(reduced) if !changed => Ok(reduced),
            _ => reduce(group, agent, &parts, reduction, scores)?,
        };
        let folded = match reduced {
            Ok(Reduced::Made(bytes)) => Folded::Made(bytes),
            Ok(Reduced::Winner { index: rank, tally }) => {
                let won = parts.get(rank).zip(group.member(rank));
                let (part, member) = won.ok_or(CommError::Empty { what: "outputs" })?;
                Folded::Won { part: part.clone(), rank, member: member.id().clone(), tally }
            }
            Err(refusal) => return Ok(Collective::Refuse(refusal)),
        };
        let (group, agent, inner) = (group.clone(), agent.clone(), Arc::clone(self.open.inner()));
        let value = PendingGather { group, agent, inner, parts, folded, by, submitted };
        Ok(Collective::Allow { value, by })
    }
}

/// The reduction of the parts, or the first of them that `agent` may not read.
fn reduce(
    group: &Group,
    agent: &AgentHandle,
    parts: &[Ref],
    reduction: Reduction,
    scores: &[f64],
) -> Result<Result<Reduced, CollectiveRefusal>, CommError> {
    let mut read = Vec::with_capacity(parts.len());
    for ((rank, member), part) in group.members().iter().enumerate().zip(parts) {
        match agent.read(part) {
            Outcome::Allow { value, .. } => read.push(value),
            Outcome::Refuse(verdict) => {
                return Ok(Err(CollectiveRefusal { rank, member: member.id().clone(), verdict }));
            }
        }
    }
    let mut outputs = Vec::with_capacity(parts.len());
    for (member, bytes) in group.members().iter().zip(&read) {
        outputs.push(Output { member: member.id(), weight: member.weight(), bytes });
    }
    reduction.fold(&outputs, scores).map(Ok)
}

/// Serves `comm.gather`: a rank's part is its result, so that the kernel's admitters see it enter the gatherer's
/// context.
pub(crate) struct GatherEngine;

impl Engine for GatherEngine {
    fn name(&self) -> RungName {
        "comm/gather"
    }

    fn serves(&self) -> Vec<String> {
        vec![Act::Gather.tool().to_owned()]
    }

    fn poll_run(
        &self,
        call: &OwnedCall,
        _claim: &mut Option<EngineClaim>,
        _cx: &mut Context<'_>,
    ) -> Poll<ToolResult> {
        Poll::Ready(ToolResult::ok(call.view().body().cloned()))
    }
}
