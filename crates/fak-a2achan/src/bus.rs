//! The bus as its host sees it: built first, handed to the kernel's builder as a driver, then
//! used to give agents their endpoints. What it shows here is the host's alone (§4.10).

use std::fmt;
use std::sync::Arc;

use fak_abi::{AgentHandle, ChannelKey, Driver, OwnedAddress};

use crate::config::{BusConfig, ConfigError};
use crate::core::Core;
use crate::delivery::End;
use crate::driver::BusDriver;
use crate::endpoint::Endpoint;
use crate::held::HeldMessage;
use crate::message::{Cause, DeadLetter};
use crate::stats::Tally;

/// A bus: the mailboxes, topics and inboxes of one kernel (§3.1). Cheap to clone; clones are one bus.
///
/// ```
/// use fak_a2achan::{Addressing, Bus, BusConfig};
/// use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, Reason, ShareScope};
/// use fak_adjudicate::Kernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Configure the bus, build the kernel out of it, attach agents, and take their endpoints.
/// let bus = Bus::new(BusConfig { addressing: Addressing::Declared, capacity: 16, ..BusConfig::default() })?;
/// let kernel = Kernel::builder().driver(bus.driver()).build()?;
/// let spec = PrincipalSpec::agent(Id::new("alpha")?).fleet(Id::new("crew")?);
/// let alpha = kernel.attach(spec.caps([A2aSend, RefWiden]))?;
/// let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).ok()?;
///
/// // In declared addressing a name has to be known before anybody sends there.
/// bus.open(&ChannelKey::new(Locale::InKernel, "work")?);
/// let send = |name| Ok::<_, fak_abi::AddressError>(
///     bus.endpoint(&alpha).send(&ChannelKey::new(Locale::InKernel, name)?, &order),
/// );
/// assert!(send("work")?.is_allow());
/// assert_eq!(send("wrok")?.reason(), Some(Reason::Misroute));
/// assert_eq!((bus.stats().sent, bus.stats().denied), (1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Bus(Arc<Core>);

/// One channel, as the host sees it (§4.10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depth {
    /// Which.
    pub at: OwnedAddress,
    /// Messages queued there.
    pub queued: u64,
    /// Messages ever received there.
    pub received: u64,
}

impl Depth {
    /// True for a channel that has messages and never had a reader (I14).
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        self.queued > 0 && self.received == 0
    }
}

impl Bus {
    /// A bus, not yet of any kernel.
    ///
    /// # Errors
    /// [`ConfigError`] for a setup that cannot work.
    pub fn new(config: BusConfig) -> Result<Self, ConfigError> {
        Ok(Self(Arc::new(Core::new(config.check()?))))
    }

    /// What the kernel is built with. A bus belongs to one kernel (§3.1).
    #[must_use]
    pub fn driver(&self) -> Arc<dyn Driver> {
        Arc::new(BusDriver(Arc::clone(&self.0)))
    }

    /// An agent's place on this bus. A handle of another kernel gets one as well; its acts are
    /// refused and audited (§4.3 row 0).
    #[must_use]
    pub fn endpoint(&self, agent: &AgentHandle) -> Endpoint {
        Endpoint::new(&self.0, agent)
    }

    /// Declares a key (§4.3 row 9). Returns whether it is new. The correction, ack and status keys
    /// of an attached principal are for those acts alone and are not opened (§4.9).
    pub fn open(&self, key: &ChannelKey) -> bool {
        if self.0.act_only(key).is_some() {
            return false;
        }
        self.0.note_known(key);
        let is_new = !self.0.boxes.contains_key(key);
        if is_new {
            self.0.make(key, None).keep();
        } else if let Some(mailbox) = self.0.find(key) {
            mailbox.keep();
        }
        is_new
    }

    /// Closes the bus: every wait ends, what is queued becomes dead letters, and every later act is
    /// refused (§4.11).
    pub fn close(&self) {
        if !self.0.set_closed() {
            return;
        }
        let core = &self.0;
        let boxes: Vec<_> = core.boxes.iter().map(|entry| Arc::clone(entry.value())).collect();
        let inboxes = core.accounts.iter().flat_map(|account| account.inboxes()).collect::<Vec<_>>();
        for mailbox in boxes.iter().chain(&inboxes) {
            core.bury(mailbox.end(End::Close), Cause::End(End::Close));
        }
        let requests: Vec<_> = core.accounts.iter().flat_map(|account| account.open_requests()).collect();
        core.end_requests(&requests, End::Close);
        let topics: Vec<_> = core.topics.iter().map(|entry| Arc::clone(entry.value())).collect();
        for topic in topics {
            for inbox in topic.inboxes(None) {
                core.end_subscription(&topic, &inbox, End::Close);
            }
        }
    }

    /// What became of every message (§4.10). Linear in the number of channels.
    #[must_use]
    pub fn stats(&self) -> Tally {
        self.0.sweep_all();
        let core = &self.0;
        let mut sum = *core.past.lock();
        core.boxes.iter().for_each(|entry| sum += entry.value().tally());
        core.accounts.iter().flat_map(|account| account.inboxes()).for_each(|inbox| sum += inbox.tally());
        core.accounts.iter().for_each(|account| sum += account.tally());
        core.topics.iter().for_each(|entry| sum += entry.value().tally());
        Tally { denied: core.denied(), ..sum }
    }

    /// Every channel, in the order of their names.
    #[must_use]
    pub fn depths(&self) -> Vec<Depth> {
        self.0.sweep_all();
        let mut depths: Vec<_> = self
            .0
            .boxes
            .iter()
            .map(|entry| {
                let tally = entry.value().tally();
                let at = OwnedAddress::Channel(entry.key().clone());
                (entry.key().clone(), Depth { at, queued: tally.queued, received: tally.received })
            })
            .collect();
        depths.sort_by(|(a, _), (b, _)| a.cmp(b));
        depths.into_iter().map(|(_, depth)| depth).collect()
    }

    /// Messages that could not be delivered, oldest first, as far as they are kept.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.0.sweep_all();
        self.0.dead.lock().iter().cloned().collect()
    }

    /// Messages that were held, oldest first, as far as they are kept.
    #[must_use]
    pub fn held(&self) -> Vec<HeldMessage> {
        self.0.held.lock().iter().cloned().collect()
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").field("config", &self.0.config).finish_non_exhaustive()
    }
}
