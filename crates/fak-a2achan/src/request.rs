//! Request and reply (§4.7). The acts are here; the private inbox of an answer is in `slot`, the
//! blocking requests that must not close a ring in `ring`.

mod ring;
mod slot;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fak_abi::{
    Act, Address, ChannelKey, Explanation, Outcome, Principal, Reason, Ref, Rider, ToolCall, Verdict, WakeUp,
};

use crate::core::{Core, GATE};
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::entry::{Entry, Extra};
use crate::lease::{Holder, LeasedMessage};
use crate::mailbox::Terms;
use crate::message::{Cause, Message};
use crate::route::Route;
use crate::send::{AtHand, Outgoing, refusal};
use crate::sites;

pub(crate) use ring::Rings;
pub(crate) use slot::{Filling, Returned, Slot};

/// Where the answer to a request goes. Carried by the request; worthless without it.
#[derive(Debug, Clone)]
pub(crate) struct Return(Arc<Slot>);

/// What a request may ask for beyond an answer (§4.7).
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestOptions<'a> {
    /// The requester does nothing until it is answered. Refused LEASE_HELD if that would close a
    /// ring of such requests (I08).
    pub blocking: bool,
    /// Deadline, cancellation and metadata (§2.5). An answer after the deadline is late.
    pub rider: Option<&'a Rider>,
}

/// A request that was sent: the only way to its answer (§4.7). Dropping it makes a later answer a dead
/// letter.
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
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).allowed().ok_or("refused")?;
/// use fak_a2achan::RequestOptions;
///
/// let asking = bus.endpoint(&alpha);
/// let mut answer = asking.request(&work, &order, &RequestOptions::default()).allowed().ok_or("refused")?;
/// // The right to reply is the received request, once.
/// let request = bus.endpoint(&bravo).try_recv(&work).message().ok_or("nothing")?;
/// let done = bravo.widen(&bravo.mint("built"), ShareScope::Fleet).allowed().ok_or("refused")?;
/// assert!(bus.endpoint(&bravo).reply(&request, &done).is_allow());
/// assert!(!bus.endpoint(&bravo).reply(&request, &done).is_allow());
/// assert_eq!(answer.try_take().message().ok_or("no answer")?.body().digest(), done.digest());
/// # Ok(())
/// # }
/// ```
#[must_use = "without it the answer is a dead letter"]
pub struct PendingReply {
    endpoint: Endpoint,
    slot: Arc<Slot>,
    key: ChannelKey,
    rider: Option<Rider>,
}

impl Endpoint {
    /// Sends a request (§4.7): a send with a private inbox for its answer.
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
            // Folded first, so that what a rung refuses is refused by that rung.
            Outcome::Refuse(match self.admit(&call) {
                Ok(permit) => self.refuse(permit, refusal),
                Err(verdict) => verdict,
            })
        };
        let Some(account) = self.account() else {
            return refuse(refusal(Reason::TrustViolation, sites::FOREIGN));
        };
        if !account.requests.take(account.limits().requests) {
            return refuse(refusal(Reason::RateLimited, sites::REQUESTS));
        }
        let ring = if options.blocking {
            let Some(ring) = self.core().rings.lock().enter(self.me(), self.core().receiver_of(key)) else {
                account.requests.give();
                return refuse(refusal(Reason::LeaseHeld, sites::RING));
            };
            Some(ring)
        } else {
            None
        };
        let deadline = options.rider.and_then(|rider| rider.deadline);
        let slot = Slot::new(Arc::clone(account), deadline, ring);
        account.await_answer(&slot);
        let extra = Extra { expires: deadline, answer: Some(Return(Arc::clone(&slot))), ..Extra::default() };
        let out = Outgoing {
            act: Act::Request,
            key,
            body,
            extra: extra.boxed(),
            idempotency: None,
            rider: options.rider,
        };
        let pending =
            PendingReply { endpoint: self.clone(), slot, key: key.clone(), rider: options.rider.cloned() };
        let (verdict, _) = self.dispatch(out, at_hand);
        if verdict.is_allow() {
            Outcome::Allow { value: pending, by: verdict.by() }
        } else {
            Outcome::Refuse(verdict)
        }
    }

    /// Answers a request that this agent received (§4.7): once, adjudicated like any send. An answer
    /// that comes when nobody waits any more becomes a dead letter.
    pub fn reply(&self, request: &Message, body: &Ref) -> Verdict {
        let answer = request.entry().extra.as_ref().and_then(|extra| extra.answer.as_ref());
        let slot = answer.map(|Return(slot)| slot);
        let call = ToolCall::new(self.agent(), Act::Reply)
            .args(body)
            .address(request.to())
            .recipient(slot.map(|slot| slot.requester()));
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return verdict,
        };
        let (Some(slot), Some(link)) = (slot, self.core().link()) else {
            return self.refuse(permit, refusal(Reason::Misroute, sites::NOT_A_REQUEST));
        };
        let body = permit.transformed().unwrap_or(body).clone();
        let refused = if request.receiver() != self.me().incarnation() {
            Some(refusal(Reason::TrustViolation, sites::NOT_YOUR_REQUEST))
        } else if !body.would_flow_to(slot.requester()) {
            Some(refusal(Reason::TrustViolation, sites::REPLY_UNREADABLE))
        } else if slot.is_answered() {
            Some(refusal(Reason::Misroute, sites::NOT_A_REQUEST))
        } else {
            None
        };
        if let Some(refusal) = refused {
            return self.refuse(permit, refusal);
        }
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return verdict,
        };
        if !slot.answer() {
            return self.revoke(cleared, refusal(Reason::Misroute, sites::NOT_A_REQUEST));
        }
        self.core().stop_blocking(slot);
        let route = Route::new(Arc::clone(self.me()), Arc::clone(request.entry().route.address()), None);
        let seq = link.sequence().next();
        let entry = Entry { seq, route, body, extra: None };
        let late = slot.deadline().is_some_and(|deadline| self.core().now() >= deadline);
        match slot.fill(entry, request.seq(), late) {
            Filling::Done(waker) => {
                let verdict = cleared.allow(seq);
                if let Some(waker) = waker {
                    waker.wake();
                }
                verdict
            }
            Filling::Late(entry) => {
                // Not in the requester's books: they may have been closed with it.
                {
                    let mut past = self.core().past.lock();
                    (past.sent, past.dead) = (past.sent + 1, past.dead + 1);
                }
                self.core().dead_letters(vec![entry], Cause::Late);
                cleared.allow(seq)
            }
        }
    }

    /// Explains a blocking request: the ring that it would close, if it would (§3.5, I08).
    #[must_use]
    pub fn explain_blocking(&self, key: &ChannelKey, body: Option<&Ref>) -> Explanation {
        let explanation = self.explain(Act::Request, key, body);
        if !explanation.verdict.is_allow() {
            return explanation;
        }
        let Some(ring) = self.core().rings.lock().closed_by(self.me(), self.core().receiver_of(key)) else {
            return explanation;
        };
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
        explanation.decided(verdict, Some(sites::RING), next)
    }
}

impl PendingReply {
    /// Where the request was sent.
    #[must_use]
    pub const fn key(&self) -> &ChannelKey {
        &self.key
    }

    /// Takes the answer if it is there: an act of `a2a.recv`. `End::Timeout` once the deadline has
    /// passed.
    pub fn try_take(&mut self) -> Delivery {
        self.attempt(None)
    }

    /// Takes the answer under a guard if it is there (§4.4): dropped, it is there again; put back too
    /// often, it is a dead letter. `deadline` is how long it stays this agent's, by default what the
    /// bus was set up with.
    pub fn try_take_leased(&mut self, deadline: Option<Duration>) -> Delivery<LeasedMessage> {
        let terms = self.endpoint.terms(deadline);
        let (delivery, token) = self.lease(terms);
        let holder = Some(Holder::Answer(Arc::clone(&self.slot)));
        self.endpoint.guarded(delivery, token, holder, &terms)
    }

    fn lease(&self, terms: Terms) -> (Delivery, u64) {
        let Self { endpoint, slot, key, .. } = self;
        let core = endpoint.core();
        let call = ToolCall::new(endpoint.agent(), Act::RecvLeased).address(Address::Channel(key));
        let permit = match endpoint.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return (Delivery::Refuse(verdict), 0),
        };
        let (taking, token, returned) = slot.lease(terms, core.now());
        core.returned(returned);
        let (entry, request) = match taking {
            slot::Taking::Answer(entry, request) => (entry, request),
            slot::Taking::Nothing if !self.is_over() => {
                return (endpoint.found_nothing(permit), 0);
            }
            slot::Taking::Nothing => return (Delivery::End(End::Timeout), 0),
            slot::Taking::Spent => {
                let refusal = refusal(Reason::Misroute, sites::AWAIT_SPENT);
                return (Delivery::Refuse(endpoint.refuse(permit, refusal)), 0);
            }
            slot::Taking::End(end) => return (Delivery::End(end), 0),
        };
        if !endpoint.account().is_some_and(|account| account.leases.take(account.limits().leases)) {
            slot.undo_lease(token);
            let refusal = refusal(Reason::RateLimited, sites::LEASES);
            return (Delivery::Refuse(endpoint.refuse(permit, refusal)), 0);
        }
        let give_back = || endpoint.account().into_iter().for_each(|account| account.leases.give());
        if let Some(by) = endpoint.screen(&call, &entry) {
            give_back();
            if !slot.hold_lease(token) {
                let refusal = refusal(Reason::Misroute, sites::CLOSED);
                return (Delivery::Refuse(endpoint.refuse(permit, refusal)), 0);
            }
            let verdict = permit.hold(by, entry.seq);
            return (Delivery::Hold(endpoint.hold(entry, call.target(), verdict)), 0);
        }
        match endpoint.charge(permit) {
            Ok(cleared) => {
                let _ = cleared.allow(entry.seq);
                (Delivery::Message(Message::new(entry, endpoint.me(), 0).answering(request)), token)
            }
            Err(verdict) => {
                give_back();
                slot.undo_lease(token);
                (Delivery::Refuse(verdict), 0)
            }
        }
    }

    /// True once the request's deadline has passed; nobody waits for an answer from here on.
    fn is_over(&self) -> bool {
        let (slot, core) = (&self.slot, self.endpoint.core());
        let is_over = slot.deadline().is_some_and(|deadline| core.now() >= deadline);
        if is_over {
            slot.close(End::Timeout);
            core.stop_blocking(slot);
        }
        is_over
    }

    /// Waits for the answer, until the request's deadline.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: no answer has been taken.
    pub async fn wait(&mut self) -> Delivery {
        let mut wait = Wait { pending: self, begun: false, timer: None };
        std::future::poll_fn(|cx| wait.poll(cx)).await
    }

    /// One attempt. With `cx`, an answer that comes later wakes it, and nothing is settled if there
    /// is none.
    fn attempt(&self, cx: Option<&Context<'_>>) -> Delivery {
        let Self { endpoint, slot, key, rider, .. } = self;
        // The deadline is the request's; looking for the answer at its very end is still allowed.
        let rider = rider.as_ref().map(|rider| Rider { deadline: None, cancel: None, ..rider.clone() });
        let call = ToolCall::new(endpoint.agent(), Act::Await).address(Address::Channel(key));
        let call = call.rider(rider.as_ref());
        let permit = match endpoint.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Delivery::Refuse(verdict),
        };
        let (entry, request) = match slot.take(cx.map(Context::waker)) {
            slot::Taking::Answer(entry, request) => (entry, request),
            slot::Taking::Spent => {
                return Delivery::Refuse(
                    endpoint.refuse(permit, refusal(Reason::Misroute, sites::AWAIT_SPENT)),
                );
            }
            slot::Taking::End(end) => return Delivery::End(end),
            slot::Taking::Nothing => {
                return if self.is_over() {
                    Delivery::End(End::Timeout)
                } else if cx.is_some() {
                    Delivery::Empty
                } else {
                    endpoint.found_nothing(permit)
                };
            }
        };
        if let Some(by) = endpoint.screen(&call, &entry) {
            slot.hold();
            let verdict = permit.hold(by, entry.seq);
            return Delivery::Hold(endpoint.hold(entry, call.target(), verdict));
        }
        match endpoint.charge(permit) {
            Ok(cleared) => {
                let _ = cleared.allow(entry.seq);
                Delivery::Message(Message::new(entry, endpoint.me(), 0).answering(request))
            }
            Err(verdict) => {
                slot.put_back(entry);
                Delivery::Refuse(verdict)
            }
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let core = self.endpoint.core();
        core.dead_letters(self.slot.close(End::Cancel).into_iter().collect(), Cause::Late);
        core.stop_blocking(&self.slot);
        if let Some(account) = self.endpoint.account() {
            account.requests.give();
        }
    }
}

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingReply({} by {:?})", self.key, self.endpoint.me())
    }
}

/// A wait for an answer.
struct Wait<'a> {
    pending: &'a mut PendingReply,
    begun: bool,
    timer: Option<WakeUp>,
}

impl Wait<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Delivery> {
        let Self { pending, begun, timer } = self;
        if *begun {
            let cancel = pending.rider.as_ref().and_then(|rider| rider.cancel.as_ref());
            if !pending.endpoint.me().is_attached() {
                return Poll::Ready(Delivery::End(End::Detach));
            }
            if cancel.is_some_and(fak_abi::Cancel::is_cancelled) {
                return Poll::Ready(Delivery::End(End::Cancel));
            }
        }
        let delivery = pending.attempt(Some(cx));
        if !delivery.is_empty() {
            return Poll::Ready(delivery);
        }
        *begun = true;
        // Anew at each poll: the task that waits may have changed since the last.
        if let Some(deadline) = pending.slot.deadline()
            && let Some(link) = pending.endpoint.core().link()
        {
            *timer = Some(link.timer().wake_at(deadline, cx.waker().clone()));
        }
        Poll::Pending
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

    /// A request was received: from here on its requester waits for that receiver.
    pub(crate) fn note_receiver(&self, Return(slot): &Return, receiver: &Arc<Principal>) {
        if let Some(ring) = slot.ring() {
            self.rings.lock().point(ring, receiver);
        }
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
        slots.iter().for_each(|slot| self.stop_blocking(slot));
        let late = slots.iter().filter_map(|slot| slot.close(end)).collect();
        self.dead_letters(late, Cause::End(end));
    }
}
