//! Looking at what is queued without taking it, for explain (§3.5).

use fak_abi::{Principal, Timestamp};

use super::Mailbox;
use crate::sync::{Lock as _, Locks};

impl<L: Locks> Mailbox<L> {
    /// Whether messages are queued and none of them may flow to `reader`: what refuses its receive (§4.4). Linear in them.
    pub(crate) fn has_only_others(&self, reader: &Principal, now: Timestamp) -> bool {
        let out = self.output.lock.lock();
        let input = self.input.lock();
        let mut queued = out
            .queue
            .iter()
            .chain(&input.queue)
            .chain(&input.single)
            .filter(|entry| !entry.is_expired(now))
            .peekable();
        queued.peek().is_some() && queued.all(|entry| !entry.body.would_flow_to(reader))
    }
}
