//! Receiving under a guard (§4.4): the message is consumed only once it is acknowledged.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use fak_abi::{Act, ChannelKey, Id, OwnedAddress, Reason, Rider, Verdict, WakeUp};

use crate::account::InboxName;
use crate::channel::Waiting;
use crate::core::{Core, GATE};
use crate::delivery::Delivery;
use crate::endpoint::Endpoint;
use crate::mailbox::{Mailbox, Terms};
use crate::message::{Cause, Message};
use crate::recv::Incoming;
use crate::request::Slot;
use crate::send::refusal;
use crate::sites;
use crate::topic::Inbox;

/// A message that was received but not yet acknowledged (§4.4). It keeps its slot and counts as
/// queued. Dropping it puts it back at its place; so do its deadline and detaching its holder.
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
/// let worker = bus.endpoint(&bravo);
/// bus.endpoint(&alpha).send(&work, &order);
/// let job = worker.try_recv_leased(&work, None).message().ok_or("nothing")?;
/// drop(job); // The worker died: the message is back in its place.
/// let job = worker.try_recv_leased(&work, None).message().ok_or("nothing")?;
/// assert!(job.ack().is_allow());
/// assert_eq!((bus.stats().received, bus.stats().queued), (1, 0));
/// # Ok(())
/// # }
/// ```
#[must_use = "a leased message goes back to its queue when it is dropped"]
pub struct LeasedMessage {
    endpoint: Endpoint,
    holder: Holder,
    message: Message,
    token: u64,
    _timer: Option<WakeUp>,
}

/// What a leased message goes back to.
pub(crate) enum Holder {
    Mailbox(Arc<Mailbox>),
    Inbox(Arc<Inbox>),
    Answer(Arc<Slot>),
}

impl Holder {
    /// Where it is known from when the lease is over.
    fn downgrade(&self) -> Origin {
        match self {
            Self::Mailbox(mailbox) => Origin::Mailbox(Arc::downgrade(mailbox)),
            Self::Inbox(inbox) => Origin::Inbox(Arc::downgrade(inbox)),
            Self::Answer(slot) => Origin::Answer(Arc::downgrade(slot)),
        }
    }
}

enum Origin {
    Mailbox(Weak<Mailbox>),
    Inbox(Weak<Inbox>),
    Answer(Weak<Slot>),
}

/// Puts back what is due where it came from, when the timer says so.
struct Expiry {
    core: Weak<Core>,
    origin: Origin,
}

impl Wake for Expiry {
    fn wake(self: Arc<Self>) {
        let Some(core) = self.core.upgrade() else { return };
        match &self.origin {
            Origin::Mailbox(mailbox) => {
                if let Some(mailbox) = mailbox.upgrade() {
                    core.bury(mailbox.expire_leases(core.now()), Cause::Wear);
                }
            }
            Origin::Inbox(inbox) => {
                if let Some(inbox) = inbox.upgrade() {
                    core.settled(inbox.expire_leases(core.now()));
                }
            }
            Origin::Answer(slot) => {
                if let Some(slot) = slot.upgrade() {
                    core.returned(slot.expire_lease(core.now()));
                }
            }
        }
    }
}

impl Endpoint {
    /// Receives a message under a guard if one is there (§4.4); `deadline` is how long it stays
    /// this agent's, by default what the bus was set up with.
    pub fn try_recv_leased(&self, key: &ChannelKey, deadline: Option<Duration>) -> Delivery<LeasedMessage> {
        let terms = self.terms(deadline);
        let incoming = Incoming { act: Act::RecvLeased, lease: Some(&terms), ..Incoming::plain(key) };
        self.take_leased(self.core().find(key), &incoming, &terms)
    }

    /// As [`Endpoint::try_recv_leased`], from this agent's inbox for a group (§6.3).
    pub fn try_recv_group_leased(&self, group: &Id, deadline: Option<Duration>) -> Delivery<LeasedMessage> {
        let inbox = self.account().and_then(|account| account.find_inbox(&InboxName::Group(group.clone())));
        let address = OwnedAddress::Group(group.clone(), 0);
        let address = inbox.as_ref().map_or(&address, |inbox| inbox.address()).clone();
        let terms = self.terms(deadline);
        let incoming = Incoming {
            act: Act::RecvLeased,
            address: address.view(),
            lease: Some(&terms),
            ..Incoming::group()
        };
        self.take_leased(inbox, &incoming, &terms)
    }

    fn take_leased(
        &self,
        mailbox: Option<Arc<Mailbox>>,
        incoming: &Incoming<'_>,
        terms: &Terms,
    ) -> Delivery<LeasedMessage> {
        if let Some(mailbox) = &mailbox {
            mailbox.note_leases();
        }
        let (delivery, token) = self.take(mailbox.as_ref(), incoming);
        self.guarded(delivery, token, mailbox.map(Holder::Mailbox), terms)
    }

    /// Waits for a message under a guard (§4.4), until the rider's deadline.
    ///
    /// # Cancel safety
    /// As [`Endpoint::recv`].
    pub async fn recv_leased(
        &self,
        key: &ChannelKey,
        deadline: Option<Duration>,
        rider: Option<&Rider>,
    ) -> Delivery<LeasedMessage> {
        let plain = Incoming { act: Act::RecvLeased, rider, ..Incoming::plain(key) };
        loop {
            let mailbox = match self.box_to_wait_at(key, &plain) {
                Ok(mailbox) => mailbox,
                Err(refused) => return self.guarded(refused, 0, None, &self.terms(deadline)),
            };
            let delivery = self.wait_leased(mailbox, &plain, deadline).await;
            if !delivery.is_empty() {
                return delivery;
            }
        }
    }

    /// As [`Endpoint::recv_leased`], at this agent's inbox for a group (§6.3).
    ///
    /// # Cancel safety
    /// As [`Endpoint::recv`].
    pub async fn recv_group_leased(
        &self,
        group: &Id,
        deadline: Option<Duration>,
        rider: Option<&Rider>,
    ) -> Delivery<LeasedMessage> {
        let inbox = match self.group_inbox_to_wait_at(Act::RecvLeased, group) {
            Ok(inbox) => inbox,
            Err(verdict) => return Delivery::Refuse(verdict),
        };
        let address = Arc::clone(inbox.address());
        let plain = Incoming { act: Act::RecvLeased, address: address.view(), rider, ..Incoming::group() };
        self.wait_leased(inbox, &plain, deadline).await
    }

    async fn wait_leased(
        &self,
        mailbox: Arc<Mailbox>,
        plain: &Incoming<'_>,
        deadline: Option<Duration>,
    ) -> Delivery<LeasedMessage> {
        mailbox.note_leases();
        let (delivery, token, terms) = {
            let mut waiting = Waiting::new(self, &mailbox);
            std::future::poll_fn(|cx| {
                // The time begins when the message is received, not when the wait does.
                let terms = self.terms(deadline);
                let incoming = Incoming { lease: Some(&terms), ..*plain };
                waiting.poll(&incoming, cx).map(|(delivery, token)| (delivery, token, terms))
            })
            .await
        };
        self.guarded(delivery, token, Some(Holder::Mailbox(mailbox)), &terms)
    }

    pub(crate) fn terms(&self, deadline: Option<Duration>) -> Terms {
        let config = &self.core().config;
        let until = self.core().now().after(deadline.unwrap_or(config.lease));
        Terms { until, redeliveries: config.redeliveries }
    }

    pub(crate) fn guarded(
        &self,
        delivery: Delivery,
        token: u64,
        holder: Option<Holder>,
        terms: &Terms,
    ) -> Delivery<LeasedMessage> {
        let (message, holder) = match (delivery, holder) {
            (Delivery::Message(message), Some(holder)) => (message, holder),
            (Delivery::Message(_), None) | (Delivery::Empty, _) => return Delivery::Empty,
            (Delivery::Hold(notice), _) => return Delivery::Hold(notice),
            (Delivery::Refuse(verdict), _) => return Delivery::Refuse(verdict),
            (Delivery::End(end), _) => return Delivery::End(end),
        };
        let expiry = Expiry { core: Arc::downgrade(self.core()), origin: holder.downgrade() };
        let timer =
            self.core().link().map(|link| link.timer().wake_at(terms.until, Waker::from(Arc::new(expiry))));
        Delivery::Message(LeasedMessage { endpoint: self.clone(), holder, message, token, _timer: timer })
    }
}

impl LeasedMessage {
    /// The message.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }

    /// Consumes the message. MISROUTE if it went back meanwhile: its deadline passed, its holder
    /// was detached, the subscription it came through ended, or the bus was closed; then nothing is consumed. Settling a guard is no act.
    pub fn ack(mut self) -> Verdict {
        let (token, core) = (std::mem::take(&mut self.token), self.endpoint.core());
        let acked = match &self.holder {
            Holder::Mailbox(mailbox) => {
                let (acked, purge) = mailbox.ack(token, core.now());
                core.bury(purge, Cause::Wear);
                acked
            }
            Holder::Inbox(inbox) => core.settled(inbox.ack(token, core.now())),
            Holder::Answer(slot) => {
                let (acked, returned) = slot.ack(token, core.now());
                core.returned(returned);
                acked
            }
        };
        if acked {
            Verdict::allow(GATE)
        } else {
            Verdict::deny(refusal(Reason::Misroute, sites::LEASE_OVER), GATE)
        }
    }
}

impl Drop for LeasedMessage {
    fn drop(&mut self) {
        let core = self.endpoint.core();
        match &self.holder {
            _ if self.token == 0 => {}
            Holder::Mailbox(mailbox) => core.bury(mailbox.give_back(self.token), Cause::Wear),
            Holder::Inbox(inbox) => {
                core.settled(inbox.give_back(self.token, true));
            }
            Holder::Answer(slot) => core.returned(slot.give_back(self.token)),
        }
        if let Some(account) = self.endpoint.account() {
            account.leases.give();
        }
    }
}

impl fmt::Debug for LeasedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeasedMessage").field(&self.message).finish()
    }
}
