//! The kernel as agents and layers see it: the `Gate` and `Host` seams (§2.9), submissions (§3.3)
//! and the screening of what enters a context (§4.4).

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fak_abi::{
    Admission, AgentHandle, AuditSlot, Booking, Charge, Claim, Claiming, Cleared, Clock, Due, Event,
    EventKind, Explanation, Gate, Host, Id, KernelTag, LayerKey, Needs, Opinion, Outcome, OwnedCall, Pass,
    Peer, Permit, Principal, Reason, Ref, Refusal, Resolver, ShareScope, Taint, Ticket, TicketError, Timer,
    Tool, ToolCall, ToolResult, ToolToken, Verdict,
};

use crate::chain::Chain;
use crate::fold::{self, Walk, walk};
use crate::kernel::{DETACHED, Judged, KERNEL, Kernel};
use crate::pending::Admitted;
use crate::seams::Reservation;
use crate::sites;

impl Gate for Kernel {
    fn tag(&self) -> &KernelTag {
        self.seal().tag()
    }

    #[inline]
    fn decide(&self, call: &ToolCall<'_>) -> Verdict {
        if let Some(act) = as_act(call) {
            return self.decide(&act);
        }
        if self.observes() {
            return match self.admission(call, 0) {
                Admission::Refuse(verdict) => verdict,
                Admission::Permit(permit) => finish(permit),
            };
        }
        // Nobody keeps books: the walk is all there is to do, unless a rung counts.
        let Some(chain) = self.ready(call) else {
            let (refusal, by) = self.unready(call);
            return Verdict::deny(refusal, by);
        };
        let mut rest = Walk::Nobody;
        match walk(chain, call, &self.desk(), &mut rest) {
            Some(rung) if !chain.counts => Verdict::allow(rung.name),
            Some(rung) => self.decide_charged(Ok((rung.name, None)), chain, call),
            None => match rest {
                Walk::Deny(refusal, by) => Verdict::deny(refusal, by),
                rest => self.decide_charged(self.conclude(rest, chain, call), chain, call),
            },
        }
    }

    #[inline]
    fn admit<'a>(&'a self, call: &'a ToolCall<'a>, layer: &LayerKey) -> Admission<'a> {
        if layer.tag() != self.seal().tag() {
            return Admission::Refuse(self.no_layer(call));
        }
        self.admission(call, 0)
    }

    #[inline]
    fn pass(&self, call: &ToolCall<'_>, layer: &LayerKey) -> Pass {
        if self.observes() || layer.tag() != self.seal().tag() {
            return Pass::Closely;
        }
        let Some(chain) = self.ready(call).filter(|chain| !chain.counts) else { return Pass::Closely };
        let mut rest = Walk::Nobody;
        match walk(chain, call, &self.desk(), &mut rest) {
            Some(rung) => Pass::Allow(rung.name),
            None => match rest {
                Walk::Deny(refusal, by) => Pass::Refuse(Verdict::deny(refusal, by)),
                // Not asked again: it may not panic the next time.
                Walk::Panic(by) => {
                    let (refusal, by) = self.panicked(by);
                    Pass::Refuse(Verdict::deny(refusal, by))
                }
                _ => Pass::Closely,
            },
        }
    }

    #[inline]
    fn book<'a>(&'a self, call: &'a ToolCall<'a>, layer: &LayerKey) -> Booking<'a> {
        let Some(audit) = self.books().filter(|_| layer.tag() == self.seal().tag()) else {
            return Booking::Closely;
        };
        let Some(chain) = self.ready(call).filter(|chain| !chain.counts) else { return Booking::Closely };
        // Before anything is allowed (§3.6). Why there is none, the closer look says, and counts it.
        if audit.reserve(call.principal()) != Reservation::Reserved {
            return Booking::Closely;
        }
        let mut rest = Walk::Nobody;
        if let Some(rung) = walk(chain, call, &self.desk(), &mut rest) {
            return Booking::Allow(Due::new(self, call, rung.name));
        }
        let refused = match rest {
            Walk::Deny(refusal, by) => (refusal, by),
            // Not asked again: it may not panic the next time.
            Walk::Panic(by) => self.panicked(by),
            Walk::Nobody | Walk::Rare => {
                audit.release();
                return Booking::Closely;
            }
        };
        Booking::Refuse(self.refused(call, refused, 0, AuditSlot::Reserved))
    }

    fn submit(&self, call: &ToolCall<'_>) -> Ticket {
        let act = as_act(call);
        let call = act.as_ref().unwrap_or(call);
        let seq = self.next_seq();
        let permit = match self.admission(call, seq) {
            Admission::Refuse(verdict) => return self.seal().ticket(seq, verdict),
            Admission::Permit(permit) => permit.numbered(seq),
        };
        let refused = |verdict| self.seal().ticket(seq, verdict);
        if !self.pending.reserve(seq, call.principal()) {
            let refusal = Refusal::new(Reason::RateLimited, sites::PENDING_FULL.site());
            return refused(permit.refuse(refusal, KERNEL));
        }
        let mut owned = call.to_owned(seq);
        if let Some(args) = permit.transformed() {
            owned = owned.with_args(args.clone());
        }
        let claim = match self.claim(&owned) {
            Ok(claim) => claim,
            Err((refusal, by)) => {
                self.pending.finish(seq);
                return refused(permit.refuse(refusal, by));
            }
        };
        match permit.charge() {
            Charge::Refuse(verdict) => {
                self.pending.finish(seq);
                refused(verdict)
            }
            Charge::Cleared(cleared) => {
                let verdict = allow(cleared, seq);
                self.pending.fill(seq, Admitted { call: owned, claim });
                // A detach that came between the fold and the reservation has forgotten what there
                // was before it.
                if !call.principal().is_attached() {
                    self.pending.forget(call.principal());
                }
                refused(verdict)
            }
        }
    }

    fn poll_reap(
        &self,
        agent: &AgentHandle,
        ticket: &Ticket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ToolResult, TicketError>> {
        if let Err(error) = self.mine(agent, ticket) {
            return Poll::Ready(Err(error));
        }
        if !agent.principal().is_attached() {
            let refusal = Refusal::new(Reason::DefaultDeny, sites::DETACHED.site());
            return Poll::Ready(once(ticket, ToolResult::refuse(Verdict::deny(refusal, DETACHED))));
        }
        if !ticket.verdict().is_allow() {
            return Poll::Ready(once(ticket, ToolResult::refuse(ticket.verdict().clone())));
        }
        let Admitted { call, mut claim } = match self.pending.take(ticket.seq(), agent.principal()) {
            Ok(admitted) => admitted,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match self.run(&call, &mut claim, cx) {
            Poll::Pending => {
                self.pending.fill(ticket.seq(), Admitted { call, claim });
                Poll::Pending
            }
            Poll::Ready(result) => {
                self.pending.finish(ticket.seq());
                Poll::Ready(once(ticket, self.screen_result(&call, result)))
            }
        }
    }

    fn withdraw(&self, agent: &AgentHandle, ticket: &Ticket) -> Result<(), TicketError> {
        self.mine(agent, ticket)?;
        let admitted = self.pending.take(ticket.seq(), agent.principal())?;
        self.pending.finish(ticket.seq());
        if !ticket.spend() {
            return Err(TicketError::Spent);
        }
        let call = admitted.call.view();
        self.note(&Event {
            seq: ticket.seq(),
            principal: Some(call.principal()),
            tool: Some(call.tool()),
            address: call.target(),
            ..Event::new(EventKind::Withdraw, self.clock.now())
        });
        Ok(())
    }

    fn screen(&self, call: &ToolCall<'_>, body: &Ref) -> Verdict {
        if body.taint() == Taint::Quarantined {
            return Verdict::Quarantine { by: KERNEL };
        }
        let Some(chain) = self.chains.of(call.tool()) else { return Verdict::Quarantine { by: KERNEL } };
        for screen in &chain.screens {
            match self.guarded(|| screen.admitter.screen(call, body, &self.desk())) {
                Some(Opinion::Allow | Opinion::Defer) => {}
                Some(_) => return Verdict::Quarantine { by: screen.name },
                None => {
                    self.report_panic(screen.name);
                    return Verdict::Quarantine { by: screen.name };
                }
            }
        }
        Verdict::allow(KERNEL)
    }

    fn may_hand(&self, from: &Principal, to: &Principal) -> bool {
        // Handing to oneself needs no edge (§6.9).
        std::ptr::eq(from, to)
            || self.edges.iter().all(|edges| self.guarded(|| edges.may_hand(from, to)).unwrap_or(false))
    }

    fn has_edges(&self) -> bool {
        !self.edges.is_empty()
    }

    fn explain(&self, call: &ToolCall<'_>) -> Explanation {
        let act = as_act(call);
        self.explain_call(act.as_ref().unwrap_or(call))
    }

    fn widen(&self, agent: &AgentHandle, body: &Ref, scope: ShareScope) -> Outcome<Ref> {
        self.widen_act(agent, body, scope)
    }

    fn trust(&self, agent: &AgentHandle, body: &Ref, claim: Claim) -> Outcome<Ref> {
        self.trust_act(agent, body, &claim)
    }

    fn raise(&self, agent: &AgentHandle, body: &Ref, taint: Taint) -> Ref {
        let raised = body.tainted_at_least(taint);
        let label = (raised.taint(), raised.scope());
        self.announce(
            |at| Event {
                principal: Some(agent.principal()),
                label: Some(label),
                ..Event::new(EventKind::Raise, at)
            },
            EventKind::Raise,
        );
        raised
    }

    fn who(&self, agent: &AgentHandle) -> Vec<Peer> {
        let me = agent.principal();
        if me.tag() != self.seal().tag() || !me.is_attached() {
            return Vec::new();
        }
        self.roll.seen_by(me)
    }

    fn tool(&self, name: &Id) -> ToolToken {
        self.seal().tool(name.clone(), self.chains.index(name))
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock.0
    }

    fn timer(&self) -> &Arc<dyn Timer> {
        &self.timer
    }
}

/// A token that carries an act's name is decided as the act (§1.4): there is no second way in.
fn as_act<'a>(call: &ToolCall<'a>) -> Option<ToolCall<'a>> {
    match call.tool() {
        Tool::Act(_) => None,
        Tool::Outside(token) => token.act().map(|act| call.retool(act)),
    }
}

/// An act that is complete with its decision.
fn finish(permit: Permit<'_>) -> Verdict {
    match permit.charge() {
        Charge::Refuse(verdict) => verdict,
        Charge::Cleared(cleared) => allow(cleared, 0),
    }
}

/// The verdict of an act that happens: with the body that a rung made of its own, if one did.
fn allow(cleared: Cleared<'_>, seq: u64) -> Verdict {
    let args = cleared.transformed().cloned();
    match (cleared.allow(seq), args) {
        (Verdict::Allow { by }, Some(args)) => Verdict::Transform { args, by },
        (verdict, _) => verdict,
    }
}

fn once(ticket: &Ticket, result: ToolResult) -> Result<ToolResult, TicketError> {
    if ticket.spend() { Ok(result) } else { Err(TicketError::Spent) }
}

impl Kernel {
    /// An unobserved decision that is more than a walk.
    #[cold]
    fn decide_charged(&self, judged: Judged, chain: &Chain, call: &ToolCall<'_>) -> Verdict {
        match judged {
            Err((refusal, by)) => Verdict::deny(refusal, by),
            Ok((by, args)) => {
                let needs = Needs { counts: chain.counts, observed: false };
                finish(Permit::new(self, call, by, needs, AuditSlot::None).transform(args))
            }
        }
    }

    /// A permit was asked for by what is no layer of this kernel.
    #[cold]
    fn no_layer(&self, call: &ToolCall<'_>) -> Verdict {
        match self.admission(call, 0) {
            Admission::Refuse(verdict) => verdict,
            Admission::Permit(permit) => {
                permit.refuse(Refusal::new(Reason::TrustViolation, sites::FOREIGN.site()), KERNEL)
            }
        }
    }

    fn mine(&self, agent: &AgentHandle, ticket: &Ticket) -> Result<(), TicketError> {
        let tag = self.seal().tag();
        if ticket.tag() == tag && agent.tag() == tag { Ok(()) } else { Err(TicketError::Foreign) }
    }

    fn claim(&self, call: &OwnedCall) -> Result<Option<fak_abi::EngineClaim>, (Refusal, fak_abi::RungName)> {
        let Some(engine) = self.engines.get(call.view().tool().name()) else { return Ok(None) };
        match self.guarded(|| engine.claim(&call.view())) {
            Some(Claiming::Nothing) => Ok(None),
            Some(Claiming::Held(claim)) => Ok(Some(claim)),
            Some(Claiming::Refuse(refusal)) => Err((refusal, engine.name())),
            None => {
                self.report_panic(engine.name());
                Err((Refusal::new(Reason::DefaultDeny, sites::PANIC.site()), engine.name()))
            }
        }
    }

    fn run(
        &self,
        call: &OwnedCall,
        claim: &mut Option<fak_abi::EngineClaim>,
        cx: &mut Context<'_>,
    ) -> Poll<ToolResult> {
        let Some(engine) = self.engines.get(call.view().tool().name()) else {
            return Poll::Ready(ToolResult::error());
        };
        self.guarded(|| engine.poll_run(call, claim, cx)).unwrap_or_else(|| {
            self.report_panic(engine.name());
            Poll::Ready(ToolResult::error())
        })
    }

    /// Folds the result admitters over what a call made (§3.3): what is held is not handed over.
    fn screen_result(&self, call: &OwnedCall, result: ToolResult) -> ToolResult {
        let Some(payload) = &result.payload else { return result };
        let verdict = self.screen(&call.view(), payload);
        if verdict.is_allow() {
            return result;
        }
        self.note(&Event {
            seq: call.seq(),
            principal: Some(call.view().principal()),
            tool: Some(call.view().tool()),
            address: call.view().target(),
            digest: Some(payload.digest()),
            verdict: Some(&verdict),
            ..Event::new(EventKind::Hold, self.clock.now())
        });
        ToolResult::refuse(verdict)
    }
}

impl Host for Kernel {
    fn admit_any<'a>(&'a self, call: &'a ToolCall<'a>) -> Admission<'a> {
        self.admission(call, 0)
    }

    fn note(&self, event: &Event<'_>) {
        if let Some(audit) = self.audit() {
            audit.note(event);
        }
        self.deliver(event);
    }

    fn issue(&self, owner: &Arc<Principal>, bytes: Bytes, taint: Taint, scope: ShareScope) -> Option<Ref> {
        self.seal().issue(owner, bytes, taint, scope).ok()
    }

    fn derive(&self, owner: &Arc<Principal>, bytes: Bytes, parts: &[Ref]) -> Option<Ref> {
        self.seal().derive(owner, bytes, parts).ok()
    }

    fn screens(&self, tool: Tool<'_>) -> bool {
        self.chains.of(tool).is_none_or(|chain| !chain.screens.is_empty())
    }

    fn confirms(&self, claim: &Claim, call: &ToolCall<'_>) -> bool {
        self.guarded(|| fold::testify(claim, call, self.witnesses())).is_some_and(|refused| refused.is_none())
    }

    fn relocate(&self, body: &Ref, location: fak_abi::Location, bytes: Bytes) -> Option<Ref> {
        self.seal().relocate(body, location, bytes).ok()
    }

    fn attached(&self, id: &Id) -> Option<Arc<Principal>> {
        self.principal(id)
    }

    fn resolver(&self) -> &dyn Resolver {
        self
    }
}
