//! Looking at what is queued without taking it, for explain (§3.5).

use std::sync::Arc;

use fak_abi::{Principal, Timestamp};

use super::Mailbox;
use crate::entry::Entry;
use crate::request::Return;
use crate::sync::{Lock as _, Locks};

/// Who sent a message, and where its answer goes if it is a request.
pub(crate) type Sent = (Arc<Principal>, Option<Return>);

impl<L: Locks> Mailbox<L> {
    /// Who sent what is queued and may flow to `reader`, with where its answer goes if it is a request;
    /// none if nothing is queued at all (§4.4). Linear in what is queued.
    pub(crate) fn senders_to(&self, reader: &Principal, now: Timestamp) -> Option<Vec<Sent>> {
        let out = self.output.lock.lock();
        let input = self.input.lock();
        let queued = out.queue.iter().chain(&input.queue).chain(&input.single);
        let mut queued = queued.filter(|entry| !entry.is_expired(now)).peekable();
        queued.peek()?;
        let readable = queued.filter(|entry| entry.body.would_flow_to(reader));
        let answer = |entry: &Entry| entry.extra.as_ref().and_then(|extra| extra.answer.clone());
        Some(readable.map(|entry| (Arc::clone(entry.route.from()), answer(entry))).collect())
    }
}
