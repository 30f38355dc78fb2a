//! Receiving under a guard (§4.4): the message is consumed only once it is acknowledged.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use fak_abi::{Act, ChannelKey, Reason, Rider, Verdict, WakeUp};

use crate::channel::Waiting;
use crate::core::{Core, GATE};
use crate::delivery::Delivery;
use crate::endpoint::Endpoint;
use crate::mailbox::{Mailbox, Terms};
use crate::message::{Cause, Message};
use crate::recv::Incoming;
use crate::send::refusal;
use crate::sites;

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
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).allowed().ok_or("refused")?;
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
    mailbox: Arc<Mailbox>,
    message: Message,
    token: u64,
    _timer: Option<WakeUp>,
}

/// Puts back what is due in one mailbox, when the timer says so.
struct Expiry {
    core: Weak<Core>,
    mailbox: Weak<Mailbox>,
}

impl Wake for Expiry {
    fn wake(self: Arc<Self>) {
        if let (Some(core), Some(mailbox)) = (self.core.upgrade(), self.mailbox.upgrade()) {
            core.bury(mailbox.expire_leases(core.now()), Cause::Wear);
        }
    }
}

impl Endpoint {
    /// Receives a message under a guard if one is there (§4.4); `deadline` is how long it stays
    /// this agent's, by default what the bus was set up with.
    pub fn try_recv_leased(&self, key: &ChannelKey, deadline: Option<Duration>) -> Delivery<LeasedMessage> {
        let terms = self.terms(deadline);
        let incoming = Incoming { act: Act::RecvLeased, lease: Some(&terms), ..Incoming::plain(key) };
        let mailbox = self.core().find(key);
        if let Some(mailbox) = &mailbox {
            mailbox.note_leases();
        }
        let (delivery, token) = self.take(mailbox.as_ref(), &incoming);
        self.guarded(delivery, token, mailbox.as_ref(), &terms)
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
            mailbox.note_leases();
            let mut waiting = Waiting::new(self, &mailbox);
            let (delivery, token, terms) = std::future::poll_fn(|cx| {
                // The time begins when the message is received, not when the wait does.
                let terms = self.terms(deadline);
                let incoming = Incoming { lease: Some(&terms), ..plain };
                waiting.poll(&incoming, cx).map(|(delivery, token)| (delivery, token, terms))
            })
            .await;
            drop(waiting);
            if !delivery.is_empty() {
                return self.guarded(delivery, token, Some(&mailbox), &terms);
            }
        }
    }

    fn terms(&self, deadline: Option<Duration>) -> Terms {
        let config = &self.core().config;
        let until = self.core().now().after(deadline.unwrap_or(config.lease));
        Terms { until, redeliveries: config.redeliveries }
    }

    fn guarded(
        &self,
        delivery: Delivery,
        token: u64,
        mailbox: Option<&Arc<Mailbox>>,
        terms: &Terms,
    ) -> Delivery<LeasedMessage> {
        let message = match (delivery, mailbox) {
            (Delivery::Message(message), Some(mailbox)) => (message, mailbox),
            (Delivery::Message(_), None) | (Delivery::Empty, _) => return Delivery::Empty,
            (Delivery::Hold(notice), _) => return Delivery::Hold(notice),
            (Delivery::Refuse(verdict), _) => return Delivery::Refuse(verdict),
            (Delivery::End(end), _) => return Delivery::End(end),
        };
        let (message, mailbox) = message;
        let expiry = Expiry { core: Arc::downgrade(self.core()), mailbox: Arc::downgrade(mailbox) };
        let timer =
            self.core().link().map(|link| link.timer().wake_at(terms.until, Waker::from(Arc::new(expiry))));
        Delivery::Message(LeasedMessage {
            endpoint: self.clone(),
            mailbox: Arc::clone(mailbox),
            message,
            token,
            _timer: timer,
        })
    }
}

impl LeasedMessage {
    /// The message.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }

    /// Consumes the message. MISROUTE if it went back meanwhile: its deadline passed, its holder
    /// was detached, or the bus was closed; then nothing is consumed. Settling a guard is no act.
    pub fn ack(mut self) -> Verdict {
        let (token, core) = (std::mem::take(&mut self.token), self.endpoint.core());
        let (acked, purge) = self.mailbox.ack(token, core.now());
        core.bury(purge, Cause::Wear);
        if acked {
            Verdict::allow(GATE)
        } else {
            Verdict::deny(refusal(Reason::Misroute, sites::LEASE_OVER), GATE)
        }
    }
}

impl Drop for LeasedMessage {
    fn drop(&mut self) {
        if self.token != 0 {
            self.endpoint.core().bury(self.mailbox.give_back(self.token), Cause::Wear);
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
