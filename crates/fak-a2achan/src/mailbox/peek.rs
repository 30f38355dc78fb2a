//! Looking at what is queued without taking it, for explain (§3.5).

use std::sync::Arc;

use fak_abi::{Principal, Timestamp};

use super::Mailbox;
use crate::sync::{Lock as _, Locks};

impl<L: Locks> Mailbox<L> {
    /// Who sent what is queued and may flow to `reader`; none if nothing is queued at all (§4.4). Linear in what is queued.
    pub(crate) fn senders_to(&self, reader: &Principal, now: Timestamp) -> Option<Vec<Arc<Principal>>> {
        let out = self.output.lock.lock();
        let input = self.input.lock();
        let queued = out.queue.iter().chain(&input.queue).chain(&input.single);
        let mut queued = queued.filter(|entry| !entry.is_expired(now)).peekable();
        queued.peek()?;
        let readable = queued.filter(|entry| entry.body.would_flow_to(reader));
        Some(readable.map(|entry| Arc::clone(entry.route.from())).collect())
    }
}
