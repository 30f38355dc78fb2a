//! Answering a request (§4.7).

use std::sync::Arc;

use fak_abi::{Act, Pass, Reason, Ref, Refusal, RungName, Sequence, ToolCall, Verdict};

use super::{Filling, Return, Slot};
use crate::endpoint::Endpoint;
use crate::entry::Entry;
use crate::message::{Cause, Message};
use crate::route::Route;
use crate::send::refusal;
use crate::sites;

impl Endpoint {
    /// Answers a request that this agent received (§4.7): once, adjudicated like any send, for which it
    /// needs `a2a.send`. The body has to reach the requester: widen it to a fleet or tenant that both are of.
    ///
    /// An answer that comes when nobody waits any more, after the deadline above all, is *allowed* all the same, and becomes a
    /// dead letter of cause `late`. Who has to know looks at [`Message::expires`] before the work and before the answer, against the
    /// clock that the kernel was built with, and at [`Endpoint::dead_letters`] after it.
    pub fn reply(&self, request: &Message, body: &Ref) -> Verdict {
        let answer = request.entry().extra.as_ref().and_then(|extra| extra.answer.as_ref());
        let slot = answer.map(|Return(slot)| slot);
        let call = ToolCall::new(self.agent(), Act::Reply)
            .args(body)
            .address(request.to())
            .recipient(slot.map(|slot| slot.requester()));
        let (Some(slot), Some(link)) = (slot, self.core().link()) else {
            return self.refused(&call, refusal(Reason::Misroute, sites::NOT_A_REQUEST));
        };
        match self.pass(&call) {
            Pass::Allow(by) => return self.reply_freely(by, request, slot, body, link.sequence()),
            Pass::Refuse(verdict) => return verdict,
            Pass::Closely => {}
        }
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return verdict,
        };
        let body = permit.transformed().unwrap_or(body).clone();
        if let Some(refusal) = self.unanswerable(request, slot, &body) {
            return self.refuse(permit, refusal);
        }
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return verdict,
        };
        if !slot.answer() {
            return self.revoke(cleared, refusal(Reason::Misroute, sites::NOT_A_REQUEST));
        }
        let seq = link.sequence().next();
        let waker = self.fill(request, slot, body, seq);
        let verdict = cleared.allow(seq);
        if let Some(waker) = waker {
            waker.wake();
        }
        verdict
    }

    /// The common case: there is nothing to settle.
    fn reply_freely(
        &self,
        by: RungName,
        request: &Message,
        slot: &Slot,
        body: &Ref,
        numbers: &Sequence,
    ) -> Verdict {
        if let Some(refusal) = self.unanswerable(request, slot, body) {
            return self.refuse_freely(refusal);
        }
        if !slot.answer() {
            return self.refuse_freely(refusal(Reason::Misroute, sites::NOT_A_REQUEST));
        }
        if let Some(waker) = self.fill(request, slot, body.clone(), numbers.next()) {
            waker.wake();
        }
        Verdict::allow(by)
    }

    /// Why this agent may not answer that request with this, if it may not.
    #[inline]
    fn unanswerable(&self, request: &Message, slot: &Slot, body: &Ref) -> Option<Refusal> {
        if request.receiver() != self.me().incarnation() {
            Some(refusal(Reason::TrustViolation, sites::NOT_YOUR_REQUEST))
        } else if !body.would_flow_to(slot.requester()) {
            Some(refusal(Reason::TrustViolation, sites::REPLY_UNREADABLE))
        } else if slot.is_answered() {
            Some(refusal(Reason::Misroute, sites::NOT_A_REQUEST))
        } else if slot.returns() != request.redeliveries()
            || slot.lapses().is_some_and(|at| self.core().now() >= at)
        {
            // It was leased, and is somebody else's to answer by now (§4.4).
            Some(refusal(Reason::Misroute, sites::LEASE_OVER))
        } else {
            None
        }
    }

    /// Puts the answer where it is waited for; who is to be woken. Too late, it is a dead letter.
    #[inline]
    fn fill(&self, request: &Message, slot: &Slot, body: Ref, seq: u64) -> Option<std::task::Waker> {
        self.core().stop_blocking(slot);
        let route = Route::new(Arc::clone(self.me()), Arc::clone(request.entry().route.address()), None);
        let entry = Entry { seq, route, body, extra: None };
        let late = slot.deadline().is_some_and(|deadline| self.core().now() >= deadline);
        match slot.fill(entry, request.seq(), late) {
            Filling::Done(waker) => waker,
            Filling::Late(entry) => {
                // Not in the requester's books: they may have been closed with it.
                {
                    let mut past = self.core().past.lock();
                    (past.sent, past.dead) = (past.sent + 1, past.dead + 1);
                }
                self.core().dead_letters(vec![entry], Cause::Late);
                None
            }
        }
    }
}
