//! What a receive answers (§4.4, §4.11).

use std::fmt;

use fak_abi::Verdict;

use crate::message::{HeldNotice, Message};

/// What a receive answers (§4.4). `M` is what it hands over: a message, or one with a guard.
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
/// use fak_a2achan::Delivery;
///
/// let inbox = bus.endpoint(&bravo);
/// assert!(matches!(inbox.try_recv(&work), Delivery::Empty));
/// bus.endpoint(&alpha).send(&work, &order);
/// match inbox.try_recv(&work) {
///     Delivery::Message(message) => assert_eq!(message.body().digest(), order.digest()),
///     other => return Err(other.to_string().into()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub enum Delivery<M = Message> {
    /// A message.
    Message(M),
    /// Nothing is there for this receiver now; only an attempt that does not wait says so.
    Empty,
    /// A message came, but is held out of this receiver's context (§4.4).
    Hold(Box<HeldNotice>),
    /// The act was refused.
    Refuse(Verdict),
    /// The wait is over without a message.
    End(End),
}

impl<M> Delivery<M> {
    /// The message, if it is one.
    #[must_use]
    #[inline]
    pub fn message(self) -> Option<M> {
        match self {
            Self::Message(message) => Some(message),
            Self::Empty | Self::Hold(_) | Self::Refuse(_) | Self::End(_) => None,
        }
    }

    /// The verdict, if the act was not allowed: refused, or held (`quarantine`).
    #[must_use]
    pub fn refusal(&self) -> Option<&Verdict> {
        match self {
            Self::Refuse(verdict) => Some(verdict),
            Self::Hold(notice) => Some(&notice.verdict),
            Self::Message(_) | Self::Empty | Self::End(_) => None,
        }
    }

    /// True if nothing was there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }
}

impl<M> fmt::Display for Delivery<M> {
    /// One line for a person: a refusal as its verdict says it, anything else by a word. Never the
    /// text of a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(_) => f.write_str("message"),
            Self::Empty => f.write_str("empty"),
            Self::Hold(notice) => notice.verdict.fmt(f),
            Self::Refuse(verdict) => verdict.fmt(f),
            Self::End(end) => f.write_str(end.name()),
        }
    }
}

/// Why a wait is over without a message (§4.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The subscription ended.
    Unsubscribe,
    /// The key was unbound.
    Unbind,
    /// The key became somebody else's (§4.6).
    Displace,
    /// The receiver was detached (§2.3).
    Detach,
    /// The bus was closed.
    Close,
    /// The deadline passed.
    Timeout,
    /// Whoever wanted the message no longer does.
    Cancel,
}

impl End {
    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unsubscribe => "unsubscribed",
            Self::Unbind => "unbound",
            Self::Displace => "displaced",
            Self::Detach => "detached",
            Self::Close => "closed",
            Self::Timeout => "timeout",
            Self::Cancel => "cancelled",
        }
    }
}
