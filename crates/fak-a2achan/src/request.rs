//! Request and reply (§4.7). Asking is here, answering in `reply`, waiting for the answer in
//! `pending`; the private inbox of an answer is in `slot`, the blocking requests that must not close
//! a ring in `ring`.

mod pending;
mod reply;
mod ring;
mod slot;

use std::sync::Arc;

use fak_abi::{
    Act, Address, ChannelKey, Explanation, Outcome, Pass, Principal, Reason, Ref, Rider, Timestamp, ToolCall,
    Verdict,
};

use crate::core::{Core, GATE};
use crate::delivery::End;
use crate::endpoint::Endpoint;
use crate::entry::Extra;
use crate::mailbox::{Mailbox, Offer};
use crate::message::Cause;
use crate::route::Route;
use crate::send::{AtHand, Outgoing, refusal};
use crate::sites;

pub use pending::PendingReply;
pub(crate) use ring::Rings;
pub(crate) use slot::{Filling, Returned, Slot};

/// Where the answer to a request goes. Carried by the request; worthless without it.
#[derive(Debug, Clone)]
pub(crate) struct Return(Arc<Slot>);

impl Return {
    /// The request is leased until then.
    pub(crate) fn leased(&self, until: Timestamp) {
        self.0.leased(until);
    }

    /// The request is not leased any more; it went back so often by now.
    pub(crate) fn unleased(&self, returns: u32) {
        self.0.unleased(returns);
    }
}

/// What a request may ask for beyond an answer (§4.7).
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestOptions<'a> {
    /// The requester does nothing until it is answered. Refused LEASE_HELD if that would close a
    /// ring of such requests: each would wait for the other for ever.
    pub blocking: bool,
    /// Deadline, cancellation and metadata (§2.5). An answer after the deadline is late.
    pub rider: Option<&'a Rider>,
}

impl Endpoint {
    /// Sends a request (§4.7): a send with a private inbox for its answer. Sending needs `a2a.send`,
    /// taking the answer `a2a.recv`; so does whoever answers, the other way round. See [`PendingReply`]
    /// for both sides of one.
    pub fn request(
        &self,
        key: &ChannelKey,
        body: &Ref,
        options: &RequestOptions<'_>,
    ) -> Outcome<PendingReply> {
        self.ask(key, body, options, None)
    }

    pub(crate) fn ask(
        &self,
        key: &ChannelKey,
        body: &Ref,
        options: &RequestOptions<'_>,
        at_hand: AtHand<'_>,
    ) -> Outcome<PendingReply> {
        let call = ToolCall::new(self.agent(), Act::Request).args(body).address(Address::Channel(key));
        let call = call.rider(options.rider);
        let refuse = |refusal| {
            // Folded first, as the send would be, so that what a rung refuses is refused by that rung.
            let mailbox = self.core().find(key);
            let recipient =
                mailbox.map_or_else(|| self.core().session_owner(key), |mailbox| mailbox.recipient());
            let call = call.recipient(recipient.as_ref());
            Outcome::Refuse(self.refused(&call, refusal))
        };
        let Some(account) = self.account() else {
            return refuse(refusal(Reason::TrustViolation, sites::FOREIGN));
        };
        if !account.requests.take(account.limits().requests) {
            return refuse(refusal(Reason::RateLimited, sites::REQUESTS));
        }
        let deadline = options.rider.and_then(|rider| rider.deadline);
        let ring = if options.blocking {
            let (core, to) = (self.core(), self.core().receiver_of(key));
            let now = core.now();
            let entered = core.rings.lock().enter(self.me(), to, deadline, now);
            let Some(ring) = entered else {
                account.requests.give();
                return refuse(refusal(Reason::LeaseHeld, sites::RING));
            };
            Some(ring)
        } else {
            None
        };
        let slot = Slot::new(Arc::clone(account), deadline, ring);
        let pending = PendingReply::new(self, account, slot, key, options.rider);
        let extra = || {
            let answer = Some(Return(Arc::clone(pending.slot())));
            Extra { expires: deadline, answer, ..Extra::default() }.boxed()
        };
        let verdict = match at_hand.and_then(|at_hand| self.ask_freely(&call, (key, body), extra, at_hand)) {
            Some(verdict) => verdict,
            None => {
                let rider = options.rider;
                let out = Outgoing { act: Act::Request, key, body, extra: extra(), idempotency: None, rider };
                self.dispatch(out, at_hand).0
            }
        };
        if verdict.is_allow() {
            Outcome::Allow { value: pending, by: verdict.by() }
        } else {
            Outcome::Refuse(verdict)
        }
    }

    /// The common case: the mailbox is at hand, nobody has bound it, and there is nothing to settle.
    /// `None` says only that a closer look is needed.
    fn ask_freely(
        &self,
        call: &ToolCall<'_>,
        (key, body): (&ChannelKey, &Ref),
        extra: impl FnOnce() -> Option<Box<Extra>>,
        (mailbox, route): (&Arc<Mailbox>, &Arc<Route>),
    ) -> Option<Verdict> {
        let (account, link) = (self.account()?, self.core().link()?);
        if !mailbox.is_plain() {
            return None;
        }
        let by = match self.pass(call) {
            Pass::Allow(by) => by,
            Pass::Refuse(verdict) => return Some(verdict),
            Pass::Closely => return None,
        };
        let offer = Offer { from: account, route: Some(route), body, recipient: None };
        let (_, wake) = mailbox.offer(&offer, extra(), link.sequence()).ok()?;
        self.follow_out(key, body);
        if let Some(waker) = wake {
            waker.wake();
        }
        Some(Verdict::allow(by))
    }

    /// Explains a blocking request: the ring that it would close, if it would (§3.5).
    #[must_use]
    pub fn explain_blocking(&self, key: &ChannelKey, body: Option<&Ref>) -> Explanation {
        let explanation = self.explain(Act::Request, key, body);
        if !explanation.verdict.is_allow() {
            return explanation;
        }
        let (core, now) = (self.core(), self.core().now());
        let ring = core.receiver_of(key).and_then(|to| core.rings.lock().closed_by(self.me(), &to, now));
        let Some(ring) = ring else { return explanation };
        // Names only of those whom the asker may know.
        let names: Vec<String> = ring
            .iter()
            .map(|member| {
                let is_known = Arc::ptr_eq(member, self.me()) || member.shares_domain(self.me());
                if is_known { member.id().quoted().to_string() } else { "somebody else".to_owned() }
            })
            .collect();
        let next = format!("{}; the ring: {}", sites::RING.next, names.join(" waits for "));
        let verdict = Verdict::deny(refusal(Reason::LeaseHeld, sites::RING), GATE);
        explanation.decided(verdict, Some(*sites::RING), next)
    }
}

impl Core {
    /// Who alone can receive at a key, if anybody: whom a blocking request there waits for.
    fn receiver_of(&self, key: &ChannelKey) -> Option<Arc<Principal>> {
        match self.ownership(key) {
            crate::core::Ownership::Session(owner) | crate::core::Ownership::Reserved(owner) => Some(owner),
            _ => self.find(key).and_then(|mailbox| mailbox.binder()),
        }
    }

    /// A request is received: from here on its requester waits for that receiver. False if that would
    /// close a ring.
    pub(crate) fn note_receiver(&self, Return(slot): &Return, receiver: &Arc<Principal>) -> bool {
        let Some(ring) = slot.ring() else { return true };
        let now = self.now();
        self.rings.lock().point(ring, receiver, now)
    }

    /// True if this principal's receiving that request would close a ring.
    pub(crate) fn closes_ring(&self, Return(slot): &Return, receiver: &Arc<Principal>) -> bool {
        let now = self.now();
        slot.ring().is_some_and(|ring| self.rings.lock().is_closed_by(ring, receiver, now))
    }

    /// A request was not received after all.
    pub(crate) fn unnote_receiver(&self, Return(slot): &Return, receiver: &Principal) {
        if let Some(ring) = slot.ring() {
            self.rings.lock().unpoint(ring, receiver);
        }
    }

    /// These requests are not with those who had leased them any more.
    pub(crate) fn unlease(&self, requests: Vec<(Return, Arc<Principal>)>) {
        requests.iter().for_each(|(answer, holder)| self.unnote_receiver(answer, holder));
    }

    /// The request is answered, or given up: its requester waits for nobody.
    fn stop_blocking(&self, slot: &Slot) {
        if let Some(ring) = slot.ring() {
            self.rings.lock().leave(ring);
        }
    }

    /// Acts on what came of an answer that went back.
    pub(crate) fn returned(&self, returned: Returned) {
        self.dead_letters(returned.worn.into_iter().collect(), Cause::Wear);
        returned.wake.into_iter().for_each(std::task::Waker::wake);
    }

    /// Nobody waits for these answers any more.
    pub(crate) fn end_requests(&self, slots: &[Arc<Slot>], end: End) {
        // Whoever is told that it need not wait any more waits for nobody.
        slots.iter().for_each(|slot| self.stop_blocking(slot));
        let late = slots.iter().filter_map(|slot| slot.close(end)).collect();
        self.dead_letters(late, Cause::End(end));
    }
}
