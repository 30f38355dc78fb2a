//! Waiting for the answer to a request (§4.7).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fak_abi::{Act, Address, ChannelKey, Pass, Reason, Rider, ToolCall, WakeUp};

use super::Slot;
use super::slot::Taking;
use crate::account::Account;
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::lease::{Holder, LeasedMessage};
use crate::mailbox::Terms;
use crate::message::{Cause, Message};
use crate::send::refusal;
use crate::sites;

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
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).ok()?;
/// use fak_a2achan::RequestOptions;
///
/// let asking = bus.endpoint(&alpha);
/// let mut answer = asking.request(&work, &order, &RequestOptions::default()).ok()?;
/// // The right to reply is the received request, once.
/// let request = bus.endpoint(&bravo).try_recv(&work).message().ok_or("nothing")?;
/// let done = bravo.widen(&bravo.mint("built"), ShareScope::Fleet).ok()?;
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
    /// Where the requester's account lists it.
    place: usize,
    key: ChannelKey,
    rider: Option<Rider>,
}

impl PendingReply {
    /// Lists what is waited for, before the request is sent.
    pub(super) fn new(
        endpoint: &Endpoint,
        account: &Account,
        slot: Arc<Slot>,
        key: &ChannelKey,
        rider: Option<&Rider>,
    ) -> Self {
        let place = account.await_answer(&slot);
        Self { endpoint: endpoint.clone(), slot, place, key: key.clone(), rider: rider.cloned() }
    }

    pub(super) const fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

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
            Taking::Answer(entry, request) => (entry, request),
            Taking::Nothing if !self.is_over() => {
                return (endpoint.found_nothing(permit), 0);
            }
            Taking::Nothing => return (Delivery::End(End::Timeout), 0),
            Taking::Spent => {
                let refusal = refusal(Reason::Misroute, sites::AWAIT_SPENT);
                return (Delivery::Refuse(endpoint.refuse(permit, refusal)), 0);
            }
            Taking::End(end) => return (Delivery::End(end), 0),
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
                (Delivery::Message(Message::answer(entry, endpoint.me(), request)), token)
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
            core.dead_letters(slot.close(End::Timeout).into_iter().collect(), Cause::Late);
            core.stop_blocking(slot);
        }
        is_over
    }

    /// Waits for the answer, until the request's deadline.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: no answer has been taken.
    pub fn wait(&mut self) -> impl Future<Output = Delivery> + Send + '_ {
        Wait { pending: self, begun: false, timer: None }
    }

    /// One attempt. With `cx`, an answer that comes later wakes it, and nothing is settled if there
    /// is none.
    fn attempt(&self, cx: Option<&Context<'_>>) -> Delivery {
        let Self { endpoint, slot, key, rider, .. } = self;
        if rider.is_none() && !endpoint.screens() {
            let call = ToolCall::new(endpoint.agent(), Act::Await).address(Address::Channel(key));
            match endpoint.pass(&call) {
                Pass::Allow(_) => return self.take_freely(cx),
                Pass::Refuse(verdict) => return Delivery::Refuse(verdict),
                Pass::Closely => {}
            }
        }
        // The deadline is the request's; looking for the answer at its very end is still allowed.
        let rider = rider.as_ref().map(|rider| Rider { deadline: None, cancel: None, ..rider.clone() });
        let call = ToolCall::new(endpoint.agent(), Act::Await).address(Address::Channel(key));
        let call = call.rider(rider.as_ref());
        let permit = match endpoint.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Delivery::Refuse(verdict),
        };
        let (taking, token) = slot.try_take(cx.map(Context::waker));
        let (entry, request) = match taking {
            Taking::Answer(entry, request) => (entry, request),
            Taking::Spent => {
                return Delivery::Refuse(
                    endpoint.refuse(permit, refusal(Reason::Misroute, sites::AWAIT_SPENT)),
                );
            }
            Taking::End(end) => return Delivery::End(end),
            Taking::Nothing => {
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
            if !slot.hold_lease(token) {
                let refusal = refusal(Reason::Misroute, sites::CLOSED);
                return Delivery::Refuse(endpoint.refuse(permit, refusal));
            }
            let verdict = permit.hold(by, entry.seq);
            return Delivery::Hold(endpoint.hold(entry, call.target(), verdict));
        }
        match endpoint.charge(permit) {
            // What it was asked of ended while rungs counted: it is a dead letter.
            Ok(cleared) if !slot.receive(token) => {
                Delivery::Refuse(endpoint.revoke(cleared, refusal(Reason::Misroute, sites::CLOSED)))
            }
            Ok(cleared) => {
                let _ = cleared.allow(entry.seq);
                Delivery::Message(Message::answer(entry, endpoint.me(), request))
            }
            Err(verdict) => {
                slot.undo_lease(token);
                Delivery::Refuse(verdict)
            }
        }
    }

    /// As [`Self::attempt`], where there is nothing to screen and nothing to settle.
    #[inline]
    fn take_freely(&self, cx: Option<&Context<'_>>) -> Delivery {
        let Self { endpoint, slot, .. } = self;
        match slot.take(cx.map(Context::waker)) {
            Taking::Answer(entry, request) => {
                Delivery::Message(Message::answer(entry, endpoint.me(), request))
            }
            Taking::Spent => {
                Delivery::Refuse(endpoint.refuse_freely(refusal(Reason::Misroute, sites::AWAIT_SPENT)))
            }
            Taking::End(end) => Delivery::End(end),
            Taking::Nothing if self.is_over() => Delivery::End(End::Timeout),
            Taking::Nothing => Delivery::Empty,
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let core = self.endpoint.core();
        if let Some(late) = self.slot.close(End::Cancel) {
            core.dead_letters(vec![late], Cause::Late);
        }
        core.stop_blocking(&self.slot);
        if let Some(account) = self.endpoint.account() {
            account.settle_answer(self.place);
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

impl Future for Wait<'_> {
    type Output = Delivery;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Delivery> {
        let Self { pending, begun, timer } = &mut *self;
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
