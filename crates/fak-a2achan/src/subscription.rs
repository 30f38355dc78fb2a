//! A subscription: the only way to its private inbox (§4.5). Ends when it is dropped. How a wait
//! there goes is in `wait`.

mod wait;

use std::fmt;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use dashmap::Entry as Place;
use fak_abi::{Act, Address, ChannelKey, Outcome, Pass, Permit, Reason, Rider, ToolCall, Verdict};

use crate::config::Addressing;
use crate::core::Core;
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::entry::Entry;
use crate::lease::{Holder, LeasedMessage};
use crate::message::{Cause, Message};
use crate::send::refusal;
use crate::sites;
use crate::topic::{Inbox, Issue, Keep, Pulled, Settled, Taken, Topic};

use wait::Pause;

/// A subscription to a topic; see [`Endpoint::subscribe`] (§4.5). Dropping it ends it.
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
/// let mut news = bus.endpoint(&bravo).subscribe(&work).ok()?;
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

/// How a copy is received.
#[derive(Clone, Copy)]
struct How<'a> {
    act: Act,
    rider: Option<&'a Rider>,
    /// Under a guard, for that long (§4.4); `None` is as long as the bus says.
    lease: Option<Option<Duration>>,
}

impl How<'_> {
    const PLAIN: Self = Self { act: Act::Recv, rider: None, lease: None };

    const fn leased(deadline: Option<Duration>) -> Self {
        Self { act: Act::RecvLeased, rider: None, lease: Some(deadline) }
    }
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
            let capacity = core.config.capacity;
            listed
                .map(|listed| (Arc::clone(&listed), listed.subscribe(self.me(), capacity, self.has_edges())))
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
        if core.is_closed() {
            // Closing may have passed before it was listed.
            return Outcome::Refuse(self.revoke(cleared, refusal(Reason::Misroute, sites::CLOSED)));
        }
        core.note_known(topic);
        let verdict = cleared.allow(0);
        Outcome::Allow { value: subscription, by: verdict.by() }
    }
}

impl Core {
    /// Ends a subscription: what it had queued becomes dead letters (§4.11). Once.
    pub(crate) fn end_subscription(&self, topic: &Arc<Topic>, inbox: &Arc<Inbox>, end: End) {
        let Some((dead, is_empty)) = topic.remove(inbox, end) else { return };
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

    pub(crate) fn dead_copies(&self, copies: Vec<Arc<Issue>>, cause: Cause) {
        if !copies.is_empty() {
            self.dead_letters(copies.iter().map(|copy| copy.entry().share()).collect(), cause);
        }
    }

    /// Acts on what settling a copy came to; true if it was done.
    pub(crate) fn settled(&self, settled: Settled) -> bool {
        self.dead_copies(settled.worn, Cause::Wear);
        settled.wake.into_iter().for_each(std::task::Waker::wake);
        settled.done
    }
}

impl Subscription {
    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &ChannelKey {
        self.topic.key()
    }

    /// Receives the next copy if one is there: an act of `a2a.recv`, at the topic's address.
    #[inline]
    pub fn try_recv(&mut self) -> Delivery {
        self.attempt(How::PLAIN, None).0
    }

    /// Waits for the next copy.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: no copy has been taken.
    pub async fn recv(&mut self) -> Delivery {
        self.wait(How::PLAIN).await.0
    }

    /// Waits for the next copy until the rider's deadline, or until its switch is turned.
    ///
    /// # Cancel safety
    /// As [`Subscription::recv`].
    pub async fn recv_with(&mut self, rider: &Rider) -> Delivery {
        self.wait(How { rider: Some(rider), ..How::PLAIN }).await.0
    }

    /// Receives what is there, up to `limit` copies: what a receive answers for each is put behind what
    /// is in `into`; the last may be a refusal. Returns how many.
    ///
    /// Where nothing counts receives and nobody keeps books, a batch is one act, decided once and
    /// taken at once; else each copy is an act of its own, as with [`Subscription::try_recv`].
    pub fn try_recv_batch(&mut self, limit: usize, into: &mut Vec<Delivery>) -> usize {
        let mut folded = Pass::Closely;
        if limit > 0 && !self.endpoint.screens() {
            let Self { endpoint, inbox, .. } = &*self;
            let me = endpoint.me();
            folded = endpoint.pass(&self.call(How::PLAIN));
            if matches!(folded, Pass::Allow(_)) {
                let made =
                    |copy, missed, returns| Delivery::Message(Message::shared(copy, me, (missed, returns)));
                let taken = inbox.next_batch(limit, into, made);
                if taken > 0 {
                    return taken;
                }
            }
        }
        self.take_batch(limit, folded, into)
    }

    #[cold]
    fn take_batch(&self, limit: usize, mut folded: Pass, into: &mut Vec<Delivery>) -> usize {
        let mut taken = 0;
        // An attempt that can find nothing is not made after the first: it would be an act.
        while taken < limit && (taken == 0 || !self.inbox.is_empty()) {
            let pass = std::mem::replace(&mut folded, Pass::Closely);
            let (delivery, _) = self.look(How::PLAIN, pass, None);
            let goes_on = matches!(delivery, Delivery::Message(_) | Delivery::Hold(_));
            if delivery.is_empty() {
                break;
            }
            into.push(delivery);
            taken += 1;
            if !goes_on {
                break;
            }
        }
        taken
    }

    /// Waits for a copy and takes those behind it as well, up to `limit`: what a receive answers for
    /// each. The last may be a refusal. Empty only for a limit of zero.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: it takes nothing before it is ready.
    pub async fn recv_batch(&mut self, limit: usize) -> Vec<Delivery> {
        let mut batch = Vec::new();
        if limit == 0 {
            return batch;
        }
        batch.push(self.recv().await);
        if matches!(batch.last(), Some(Delivery::Message(_) | Delivery::Hold(_))) && !self.inbox.is_empty() {
            self.try_recv_batch(limit - 1, &mut batch);
        }
        batch
    }

    /// Receives the next copy under a guard if one is there (§4.4): it keeps its slot, and counts as
    /// queued, until it is acknowledged. `deadline` is how long it stays this subscription's, by
    /// default what the bus was set up with.
    pub fn try_recv_leased(&mut self, deadline: Option<Duration>) -> Delivery<LeasedMessage> {
        self.inbox.note_leases();
        let (delivery, token) = self.attempt(How::leased(deadline), None);
        self.guard(delivery, token, deadline)
    }

    /// Waits for the next copy under a guard (§4.4), until the rider's deadline.
    ///
    /// # Cancel safety
    /// As [`Subscription::recv`].
    pub async fn recv_leased(
        &mut self,
        deadline: Option<Duration>,
        rider: Option<&Rider>,
    ) -> Delivery<LeasedMessage> {
        self.inbox.note_leases();
        let (delivery, token) = self.wait(How { rider, ..How::leased(deadline) }).await;
        self.guard(delivery, token, deadline)
    }

    fn guard(&self, delivery: Delivery, token: u64, deadline: Option<Duration>) -> Delivery<LeasedMessage> {
        let Self { endpoint, inbox, .. } = self;
        let holder = Some(Holder::Inbox(Arc::clone(inbox)));
        endpoint.guarded(delivery, token, holder, &endpoint.terms(deadline))
    }

    async fn wait(&mut self, how: How<'_>) -> (Delivery, u64) {
        let mut wait = Pause::new(self);
        std::future::poll_fn(|cx| wait.poll(how, cx)).await
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

    /// The next copy, and how many were lost before it, where nobody has a say after the fold: the
    /// common case, and small enough to be handed back in registers. `None` says only that a closer
    /// look is needed; `folded` is then what the fold came to.
    #[inline(never)]
    fn quick(&self, how: How<'_>, folded: &mut Pass) -> Option<(Arc<Issue>, u64)> {
        if self.endpoint.screens() {
            return None;
        }
        let pass = self.endpoint.pass(&self.call(how));
        if matches!(pass, Pass::Allow(_))
            && let Some(next) = self.inbox.next()
        {
            return Some(next);
        }
        *folded = pass;
        None
    }

    fn call<'a>(&'a self, how: How<'a>) -> ToolCall<'a> {
        let address = Address::Channel(self.topic.key());
        ToolCall::new(self.endpoint.agent(), how.act).address(address).rider(how.rider)
    }

    /// One attempt. With `cx`, a copy that comes later wakes it, and nothing is settled if there is
    /// none. The token is that of a lease.
    #[inline]
    fn attempt(&self, how: How<'_>, cx: Option<&Context<'_>>) -> (Delivery, u64) {
        let mut folded = Pass::Closely;
        if how.lease.is_none()
            && let Some((copy, missed)) = self.quick(how, &mut folded)
        {
            return (Delivery::Message(Message::shared(copy, self.endpoint.me(), (missed, 0))), 0);
        }
        self.look(how, folded, cx)
    }

    /// A closer look: at the time, the end, who has a say, and whether to wait.
    #[cold]
    fn look(&self, how: How<'_>, folded: Pass, cx: Option<&Context<'_>>) -> (Delivery, u64) {
        let Self { endpoint, inbox, .. } = self;
        let core = endpoint.core();
        let call = self.call(how);
        let permit = match folded {
            Pass::Allow(_) => None,
            Pass::Refuse(verdict) => return (Delivery::Refuse(verdict), 0),
            Pass::Closely => match endpoint.admit(&call) {
                Ok(permit) => Some(permit),
                Err(verdict) => return (Delivery::Refuse(verdict), 0),
            },
        };
        let is_plain = !endpoint.screens() && permit.as_ref().is_none_or(|permit| !permit.counts());
        let keep = match how.lease {
            Some(deadline) => Keep::Lease(endpoint.terms(deadline)),
            None if is_plain => Keep::No,
            None => Keep::Trial,
        };
        let now = inbox.is_timed().then(|| core.now());
        let (mut expired, mut worn) = (Vec::new(), Vec::new());
        let pulled = inbox.pull(keep, now, cx.map(Context::waker), (&mut expired, &mut worn));
        core.dead_copies(expired, Cause::Expire);
        core.dead_copies(worn, Cause::Wear);
        let delivery = match (pulled, permit) {
            (Pulled::Copy(Taken { copy, missed, returns, .. }), None) => {
                Delivery::Message(Message::shared(copy, endpoint.me(), (missed, returns)))
            }
            (Pulled::Copy(taken), Some(permit)) => return self.hand_over(how, taken, &call, permit),
            // The act has not happened yet.
            (Pulled::Nothing, _) if cx.is_some() => Delivery::Empty,
            (Pulled::End(end), _) if cx.is_some() => Delivery::End(end),
            (Pulled::Nothing, None) => Delivery::Empty,
            (Pulled::Nothing, Some(permit)) => endpoint.found_nothing(permit),
            (Pulled::End(_), permit) => {
                let refusal = refusal(Reason::Misroute, sites::CLOSED);
                Delivery::Refuse(match permit {
                    Some(permit) => endpoint.refuse(permit, refusal),
                    None => endpoint.refuse_freely(refusal),
                })
            }
        };
        (delivery, 0)
    }

    fn too_many(&self, how: How<'_>) -> Delivery {
        Delivery::Refuse(match self.endpoint.admit(&self.call(how)) {
            Ok(permit) => self.endpoint.refuse(permit, refusal(Reason::RateLimited, sites::WAITS)),
            Err(verdict) => verdict,
        })
    }

    /// What was taken is handed over, held, or put back (§4.4). It keeps its slot while rungs' code
    /// runs.
    fn hand_over(
        &self,
        how: How<'_>,
        taken: Taken,
        call: &ToolCall<'_>,
        permit: Permit<'_>,
    ) -> (Delivery, u64) {
        let Self { endpoint, inbox, .. } = self;
        let (core, Taken { copy, missed, returns, token }) = (endpoint.core(), taken);
        let refuse = |permit, site| (Delivery::Refuse(endpoint.refuse(permit, site)), 0);
        let mut slot = None;
        if how.lease.is_some() {
            let account = endpoint.account();
            if !account.is_some_and(|account| account.leases.take(account.limits().leases)) {
                core.settled(inbox.give_back(token, false));
                return refuse(permit, refusal(Reason::RateLimited, sites::LEASES));
            }
            slot = account;
        }
        let give_slot = || slot.into_iter().for_each(|account| account.leases.give());
        let entry: &Entry = copy.entry();
        if let Some(by) = endpoint.screen(call, entry) {
            give_slot();
            if !inbox.hold(token) {
                return refuse(permit, refusal(Reason::Misroute, sites::CLOSED));
            }
            let verdict = permit.hold(by, entry.seq);
            return (Delivery::Hold(endpoint.hold(entry.share(), call.target(), verdict)), 0);
        }
        match endpoint.charge(permit) {
            // The subscription ended while rungs counted: it is a dead letter.
            Ok(cleared) if how.lease.is_none() && token != 0 && !inbox.receive(token) => {
                (Delivery::Refuse(endpoint.revoke(cleared, refusal(Reason::Misroute, sites::CLOSED))), 0)
            }
            Ok(cleared) => {
                let _ = cleared.allow(entry.seq);
                (Delivery::Message(Message::shared(copy, endpoint.me(), (missed, returns))), token)
            }
            Err(verdict) => {
                give_slot();
                core.settled(inbox.give_back(token, false));
                (Delivery::Refuse(verdict), 0)
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
