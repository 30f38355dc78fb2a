//! What a receive answers (§4.4, §4.11).

use fak_abi::Verdict;

use crate::message::{HeldNotice, Message};

/// What a receive answers. `M` is what it hands over: a message, or one with a guard.
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
