//! A channel at hand: one agent, one key, and what sending and receiving there again and again
//! needs, looked up once.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use fak_abi::{ChannelKey, Outcome, Reason, Ref, Rider, Verdict};

use crate::delivery::Delivery;
use crate::endpoint::Endpoint;
use crate::mailbox::{Mailbox, WaitState};
use crate::recv::{Incoming, Receiving};
use crate::request::{PendingReply, RequestOptions};
use crate::route::Route;
use crate::send::{Outgoing, SendOptions, refusal};
use crate::sites;

/// A channel at hand; see [`Endpoint::channel`] (§4.1).
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
/// // Mailbox and lookups are found once, for a key that is used often.
/// let channel = bus.endpoint(&alpha).channel(&work);
/// for _ in 0..3 {
///     assert!(channel.send(&order).is_allow());
/// }
/// assert_eq!(bus.stats().queued, 3);
/// # Ok(())
/// # }
/// ```
pub struct Channel {
    endpoint: Endpoint,
    key: ChannelKey,
    at_hand: OnceLock<(Arc<Mailbox>, Arc<Route>)>,
}

impl Channel {
    pub(crate) const fn new(endpoint: Endpoint, key: ChannelKey) -> Self {
        Self { endpoint, key, at_hand: OnceLock::new() }
    }

    /// The agent's place on the bus.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> &ChannelKey {
        &self.key
    }

    /// The mailbox and the way in, once they were looked up.
    #[inline]
    fn at_hand(&self) -> Option<(&Arc<Mailbox>, &Arc<Route>)> {
        self.at_hand.get().map(|(mailbox, route)| (mailbox, route))
    }

    /// The mailbox, once it was looked up.
    pub(crate) fn mailbox(&self) -> Option<&Arc<Mailbox>> {
        self.at_hand().map(|(mailbox, _)| mailbox)
    }

    /// Looks the mailbox up, if it exists by now.
    #[cold]
    fn look_up(&self) -> Option<(&Arc<Mailbox>, &Arc<Route>)> {
        let mailbox = self.endpoint.core().find(&self.key)?;
        let route = mailbox.route(self.endpoint.account()?);
        let (mailbox, route) = self.at_hand.get_or_init(|| (mailbox, route));
        Some((mailbox, route))
    }

    /// Sends a message (§4.3). Never blocks; the verdict is the answer.
    pub fn send(&self, body: &Ref) -> Verdict {
        if let Some((mailbox, route)) = self.at_hand().or_else(|| self.look_up())
            && let Some(verdict) = self.endpoint.send_plain(&self.key, body, mailbox, Some(route))
        {
            return verdict;
        }
        self.endpoint.send_closely(&self.key, body, self.at_hand())
    }

    /// Sends a message with more to say about it (§4.2, §4.13).
    pub fn send_with(&self, body: &Ref, options: &SendOptions<'_>) -> Verdict {
        let out: Outgoing<'_> = self.endpoint.outgoing(&self.key, body, options);
        self.endpoint.dispatch(out, self.at_hand()).0
    }

    /// Receives a message if one is there (§4.4).
    pub fn try_recv(&self) -> Delivery {
        let mailbox = self.at_hand().or_else(|| self.look_up()).map(|(mailbox, _)| mailbox);
        self.endpoint.take_now(&self.key, mailbox)
    }

    /// Sends a request (§4.7); see [`Endpoint::request`].
    pub fn request(&self, body: &Ref, options: &RequestOptions<'_>) -> Outcome<PendingReply> {
        self.endpoint.ask(&self.key, body, options, self.at_hand().or_else(|| self.look_up()))
    }

    /// Waits for a message (§4.4).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: no message has been taken, and a wake-up it had got goes
    /// to the next waiter.
    pub fn recv(&self) -> impl Future<Output = Delivery> + Send + '_ {
        let at_hand = self.at_hand().or_else(|| self.look_up()).map(|(mailbox, _)| mailbox);
        Receiving::new(&self.endpoint, &self.key, at_hand)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({} of {:?})", self.key, self.endpoint.me())
    }
}

/// A receive that waits: gives its place up when it is dropped.
pub(crate) struct Waiting<'a> {
    endpoint: &'a Endpoint,
    mailbox: &'a Arc<Mailbox>,
    state: WaitState,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint, mailbox: &'a Arc<Mailbox>) -> Self {
        Self { endpoint, mailbox, state: WaitState::default() }
    }

    pub(crate) fn poll(&mut self, incoming: &Incoming<'_>, cx: &mut Context<'_>) -> Poll<(Delivery, u64)> {
        let Self { endpoint, mailbox, state } = self;
        endpoint.poll_take(mailbox, incoming, state, cx)
    }

    pub(crate) async fn take(mut self, incoming: &Incoming<'_>) -> (Delivery, u64) {
        std::future::poll_fn(|cx| self.poll(incoming, cx)).await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.endpoint.end_wait(self.mailbox, &mut self.state);
    }
}

impl Endpoint {
    /// Waits for a message (§4.4).
    ///
    /// # Cancel safety
    /// As [`Channel::recv`].
    pub fn recv<'a>(&'a self, key: &'a ChannelKey) -> impl Future<Output = Delivery> + Send + 'a {
        Receiving::new(self, key, None)
    }

    /// Waits for a message until the rider's deadline, or until its switch is turned (§2.5).
    ///
    /// # Cancel safety
    /// As [`Channel::recv`].
    pub async fn recv_with(&self, key: &ChannelKey, rider: &Rider) -> Delivery {
        self.recv_as(key, &Incoming { rider: Some(rider), ..Incoming::plain(key) }).await.0
    }

    pub(crate) async fn recv_as(&self, key: &ChannelKey, incoming: &Incoming<'_>) -> (Delivery, u64) {
        loop {
            let mailbox = match self.box_to_wait_at(key, incoming) {
                Ok(mailbox) => mailbox,
                Err(delivery) => return (delivery, 0),
            };
            let (delivery, token) = Waiting::new(self, &mailbox).take(incoming).await;
            // A wait finds nothing only where the mailbox was retired before it began.
            if !delivery.is_empty() {
                return (delivery, token);
            }
        }
    }

    /// The mailbox to wait at, made if there is none: whoever comes first to a rendezvous.
    pub(crate) fn box_to_wait_at(
        &self,
        key: &ChannelKey,
        incoming: &Incoming<'_>,
    ) -> Result<Arc<Mailbox>, Delivery> {
        if let Some(mailbox) = self.core().find(key) {
            return Ok(mailbox);
        }
        let call = incoming.call(self);
        let permit = self.admit(&call).map_err(Delivery::Refuse)?;
        let made = match self.account() {
            Some(account) => self.core().mailbox(key, account),
            None => Err(refusal(Reason::TrustViolation, sites::FOREIGN)),
        };
        if !self.me().is_attached() {
            // A detach came between: nobody is going to wait there.
            self.core().tidy(key);
        }
        // The act itself comes later; a permit that is dropped leaves no entry.
        made.map_err(|refusal| Delivery::Refuse(self.refuse(permit, refusal)))
    }
}
