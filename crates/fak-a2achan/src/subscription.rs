//! A subscription: the only way to its private inbox (§4.5). Ends when it is dropped.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use dashmap::Entry as Place;
use fak_abi::{Act, Address, ChannelKey, Outcome, Permit, Reason, Rider, ToolCall, Verdict, WakeUp};

use crate::config::Addressing;
use crate::core::Core;
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::entry::Entry;
use crate::message::{Cause, Message};
use crate::recv::Incoming;
use crate::send::refusal;
use crate::sites;
use crate::topic::{Inbox, Pulled, Topic};

/// A subscription to a topic; see [`Endpoint::subscribe`]. Dropping it ends it.
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
/// let mut news = bus.endpoint(&bravo).subscribe(&work).allowed().ok_or("refused")?;
/// let receipt = bus.endpoint(&alpha).publish(&work, &order);
/// assert_eq!((receipt.fanout, receipt.skipped, receipt.dropped), (1, 0, 0));
/// let message = news.try_recv().message().ok_or("nothing")?;
/// // A slow subscriber loses copies visibly: the next message says how many.
/// assert_eq!(message.missed(), 0);
/// drop(news);
/// assert_eq!(bus.endpoint(&alpha).publish(&work, &order).fanout, 0);
/// # Ok(())
/// # }
/// ```
pub struct Subscription {
    endpoint: Endpoint,
    topic: Arc<Topic>,
    inbox: Arc<Inbox>,
    open: bool,
}

impl Endpoint {
    /// Subscribes to a topic (§4.5): an act of `a2a.recv`.
    pub fn subscribe(&self, topic: &ChannelKey) -> Outcome<Subscription> {
        let call = ToolCall::new(self.agent(), Act::Subscribe).address(Address::Channel(topic));
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        let core = self.core();
        let Some(account) = self.account() else {
            return Outcome::Refuse(self.refuse(permit, refusal(Reason::TrustViolation, sites::FOREIGN)));
        };
        if core.is_closed() {
            return Outcome::Refuse(self.refuse(permit, refusal(Reason::Misroute, sites::CLOSED)));
        }
        if !account.subscriptions.take(account.limits().subscriptions) {
            return Outcome::Refuse(self.refuse(permit, refusal(Reason::RateLimited, sites::SUBSCRIPTIONS)));
        }
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => {
                account.subscriptions.give();
                return Outcome::Refuse(verdict);
            }
        };
        // The entry stays locked while the subscription is added, so that an emptied topic cannot
        // be forgotten in between.
        let added = {
            let listed = match core.topics.entry(topic.clone()) {
                Place::Occupied(entry) => Some(entry.into_ref()),
                // Where addressing is declared a topic outlives its subscriptions: it counts as a
                // mailbox of whoever made it known.
                Place::Vacant(entry) => (core.config.addressing == Addressing::Open
                    || account.mailboxes.take(account.limits().mailboxes))
                .then(|| entry.insert(Arc::new(Topic::new(topic.clone())))),
            };
            listed.map(|listed| (Arc::clone(&listed), listed.subscribe(self.me(), core.config.capacity)))
        };
        let Some((listed, inbox)) = added else {
            account.subscriptions.give();
            return Outcome::Refuse(self.revoke(cleared, refusal(Reason::RateLimited, sites::MAILBOXES)));
        };
        let subscription = Subscription { endpoint: self.clone(), topic: listed, inbox, open: true };
        if !self.me().is_attached() {
            // Detached meanwhile: the drop ends it.
            return Outcome::Refuse(self.revoke(cleared, refusal(Reason::DefaultDeny, sites::DETACHED)));
        }
        let verdict = cleared.allow(0);
        Outcome::Allow { value: subscription, by: verdict.by() }
    }
}

impl Core {
    /// Ends a subscription: what it had queued becomes dead letters (§4.11).
    pub(crate) fn end_subscription(&self, topic: &Arc<Topic>, inbox: &Arc<Inbox>, end: End) {
        let (dead, is_empty) = topic.remove(inbox, end);
        self.dead_copies(dead, Cause::End(end));
        if let Some(account) = self.account(inbox.subscriber()) {
            account.subscriptions.give();
        }
        if is_empty && self.config.addressing == Addressing::Open {
            let gone = self.topics.remove_if(topic.key(), |_, listed| {
                Arc::ptr_eq(listed, topic) && listed.has_no_subscribers()
            });
            if let Some((_, topic)) = gone {
                *self.past.lock() += topic.tally();
            }
        }
    }

    pub(crate) fn dead_copies(&self, copies: Vec<Arc<Entry>>, cause: Cause) {
        self.dead_letters(copies.iter().map(|copy| copy.share()).collect(), cause);
    }
}

impl Subscription {
    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &ChannelKey {
        self.topic.key()
    }

    /// Receives the next copy if one is there: an act of `a2a.recv`, at the topic's address.
    pub fn try_recv(&mut self) -> Delivery {
        self.attempt(None, None)
    }

    /// Waits for the next copy.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: no copy has been taken.
    pub async fn recv(&mut self) -> Delivery {
        self.recv_with(&Rider::default()).await
    }

    /// Waits for the next copy until the rider's deadline, or until its switch is turned.
    ///
    /// # Cancel safety
    /// As [`Subscription::recv`].
    pub async fn recv_with(&mut self, rider: &Rider) -> Delivery {
        let mut wait = Pause { subscription: self, begun: false, timer: None };
        std::future::poll_fn(|cx| wait.poll(rider, cx)).await
    }

    /// Ends the subscription: an act of `a2a.recv`. If it is refused, the subscription goes on.
    pub fn unsubscribe(&mut self) -> Verdict {
        let topic = self.topic.key().clone();
        let call = ToolCall::new(self.endpoint.agent(), Act::Unsubscribe).address(Address::Channel(&topic));
        let permit = match self.endpoint.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return verdict,
        };
        if !self.open || self.endpoint.core().is_closed() {
            return self.endpoint.refuse(permit, refusal(Reason::Misroute, sites::CLOSED));
        }
        match self.endpoint.charge(permit) {
            Ok(cleared) => {
                self.open = false;
                self.endpoint.core().end_subscription(&self.topic, &self.inbox, End::Unsubscribe);
                cleared.allow(0)
            }
            Err(verdict) => verdict,
        }
    }

    /// A closer look: at the time, the end, and whether to wait.
    #[cold]
    fn look<'p>(
        endpoint: &Endpoint,
        inbox: &Inbox,
        permit: Permit<'p>,
        cx: Option<&Context<'_>>,
    ) -> Result<((Arc<Entry>, u64), Permit<'p>), Delivery> {
        let mut expired = Vec::new();
        let core = endpoint.core();
        let pulled = inbox.pull(|| core.now(), cx.map(Context::waker), &mut expired);
        if !expired.is_empty() {
            core.dead_copies(expired, Cause::Expire);
        }
        Err(match pulled {
            Pulled::Entry(entry, lost) => return Ok(((entry, lost), permit)),
            Pulled::Nothing if cx.is_some() => Delivery::Empty,
            Pulled::Nothing => match endpoint.charge(permit) {
                Ok(cleared) => {
                    let _ = cleared.allow(0);
                    Delivery::Empty
                }
                Err(verdict) => Delivery::Refuse(verdict),
            },
            Pulled::End(end) if cx.is_some() => Delivery::End(end),
            Pulled::End(_) => {
                Delivery::Refuse(endpoint.refuse(permit, refusal(Reason::Misroute, sites::CLOSED)))
            }
        })
    }

    /// One attempt. With `cx`, a copy that comes later wakes it, and nothing is settled if there is
    /// none.
    fn attempt(&mut self, rider: Option<&Rider>, cx: Option<&Context<'_>>) -> Delivery {
        let Self { endpoint, topic, inbox, .. } = self;
        let incoming =
            Incoming { act: Act::Recv, address: Address::Channel(topic.key()), rider, lease: None };
        let call = incoming.call(endpoint);
        let mut permit = match endpoint.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Delivery::Refuse(verdict),
        };
        let (entry, lost) = match inbox.next() {
            Some(next) => next,
            None => match Self::look(endpoint, inbox, permit, cx) {
                Ok((next, kept)) => {
                    permit = kept;
                    next
                }
                Err(delivery) => return delivery,
            },
        };
        if let Some(by) = endpoint.screen(&call, &entry) {
            if !inbox.held() {
                let mut past = endpoint.core().past.lock();
                (past.received, past.held) = (past.received - 1, past.held + 1);
            }
            let verdict = permit.hold(by, entry.seq);
            return Delivery::Hold(endpoint.hold(entry.share(), call.target(), verdict));
        }
        match endpoint.charge(permit) {
            Ok(cleared) => {
                let _ = cleared.allow(entry.seq);
                Delivery::Message(Message::shared(entry, endpoint.me(), lost))
            }
            Err(verdict) => {
                inbox.put_back(entry, lost);
                Delivery::Refuse(verdict)
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.open {
            self.endpoint.core().end_subscription(&self.topic, &self.inbox, End::Unsubscribe);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscription({} of {:?})", self.topic.key(), self.inbox.subscriber())
    }
}

/// A wait at a subscription: takes its waker away when it is dropped.
struct Pause<'a> {
    subscription: &'a mut Subscription,
    begun: bool,
    timer: Option<WakeUp>,
}

impl Pause<'_> {
    fn poll(&mut self, rider: &Rider, cx: &mut Context<'_>) -> Poll<Delivery> {
        let endpoint = self.subscription.endpoint.clone();
        if self.begun {
            let end = if !endpoint.me().is_attached() {
                Some(End::Detach)
            } else if rider.cancel.as_ref().is_some_and(fak_abi::Cancel::is_cancelled) {
                Some(End::Cancel)
            } else if rider.deadline.is_some_and(|deadline| endpoint.core().now() >= deadline) {
                Some(End::Timeout)
            } else {
                None
            };
            if let Some(end) = end {
                return Poll::Ready(Delivery::End(end));
            }
        }
        let delivery = self.subscription.attempt(Some(rider), Some(cx));
        if !delivery.is_empty() {
            return Poll::Ready(delivery);
        }
        if !self.begun
            && let Some(account) = endpoint.account()
        {
            if !account.waits.take(account.limits().waits) {
                return Poll::Ready(self.too_many());
            }
            self.begun = true;
        }
        // Anew at each poll: the task that waits may have changed since the last.
        if let Some(deadline) = rider.deadline
            && let Some(link) = endpoint.core().link()
        {
            self.timer = Some(link.timer().wake_at(deadline, cx.waker().clone()));
        }
        Poll::Pending
    }

    fn too_many(&self) -> Delivery {
        let Subscription { endpoint, topic, .. } = &*self.subscription;
        let call = ToolCall::new(endpoint.agent(), Act::Recv).address(Address::Channel(topic.key()));
        Delivery::Refuse(match endpoint.admit(&call) {
            Ok(permit) => endpoint.refuse(permit, refusal(Reason::RateLimited, sites::WAITS)),
            Err(verdict) => verdict,
        })
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.subscription.inbox.stop_waiting();
        if self.begun
            && let Some(account) = self.subscription.endpoint.account()
        {
            account.waits.give();
        }
    }
}
