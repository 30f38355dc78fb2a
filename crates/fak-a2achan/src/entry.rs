//! What a mailbox queues. What a receiver gets is `message`.

use std::sync::Arc;

use fak_abi::{Principal, Ref, Timestamp};

use crate::request::Return;
use crate::route::Route;

/// A queued message.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) route: Arc<Route>,
    pub(crate) body: Ref,
    /// What most messages do not have.
    pub(crate) extra: Option<Box<Extra>>,
}

/// See [`Entry::extra`].
#[derive(Debug, Default, Clone)]
pub(crate) struct Extra {
    /// When it is no longer worth delivering (§4.2).
    pub(crate) expires: Option<Timestamp>,
    /// Where its answer goes, if it is a request (§4.7).
    pub(crate) answer: Option<Return>,
    /// Further Refs that ride along: the open tasks of a window (§4.8).
    pub(crate) parts: Vec<Ref>,
    /// How often a lease of it was put back.
    pub(crate) returns: u32,
}

impl Extra {
    /// Boxed, unless there is nothing in it.
    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        let plain =
            self.expires.is_none() && self.answer.is_none() && self.parts.is_empty() && self.returns == 0;
        (!plain).then(|| Box::new(self))
    }
}

impl Entry {
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.extra.as_ref().and_then(|extra| extra.expires)
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires().is_some_and(|at| now >= at)
    }

    /// True if a receiver may have it without a closer look: it may flow there, and nothing rides
    /// along that has to be looked at as well.
    #[inline]
    pub(crate) fn is_plain_for(&self, reader: &Principal) -> bool {
        self.extra.as_ref().is_none_or(|extra| extra.parts.is_empty()) && self.body.may_flow_to(reader)
    }

    /// True if it asks for an answer (§4.7).
    #[inline]
    pub(crate) fn is_request(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.answer.is_some())
    }

    /// Where its answer goes, if it is a request, and how often a lease of it was put back.
    pub(crate) fn answer(&self) -> Option<(&Return, u32)> {
        self.extra.as_ref().and_then(|extra| Some((extra.answer.as_ref()?, extra.returns)))
    }

    /// It is not leased any more, and did not go back for that.
    pub(crate) fn unlease(&self) {
        if let Some((answer, returns)) = self.answer() {
            answer.unleased(returns);
        }
    }

    /// A second view of the same message, for the holder of a lease: counts, no copies.
    pub(crate) fn share(&self) -> Self {
        Self {
            seq: self.seq,
            route: Arc::clone(&self.route),
            body: self.body.clone(),
            extra: self.extra.clone(),
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use crate::{Channel, Delivery, Message};

    /// What is moved on every send and receive, in bytes. A number that fell may be lowered here; one that rose is a cost
    /// on every path, and the first one in every queue.
    #[test]
    fn what_is_queued_and_delivered_stays_small() {
        for (what, size, bytes) in [
            ("queued message", size_of::<Entry>(), 32),
            ("message", size_of::<Message>(), 56),
            ("delivery", size_of::<Delivery>(), 64),
            ("channel", size_of::<Channel>(), 56),
        ] {
            assert_eq!(size, bytes, "{what}");
        }
    }
}
