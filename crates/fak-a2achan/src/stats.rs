//! What became of every message (§4.10), kept per mailbox and summed when somebody asks.

use std::ops::AddAssign;

/// Tallies of a bus (§4.10). Always `sent = received + held + dropped + dead + queued`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Copies accepted for a mailbox, or attempted on a subscriber that the body may flow to.
    pub sent: u64,
    /// Handed to a receiver.
    pub received: u64,
    /// Acts on the bus that were refused.
    pub denied: u64,
    /// Held out of a receiver's context.
    pub held: u64,
    /// Lost to a full subscription, visibly.
    pub dropped: u64,
    /// Subscribers a publication was not for.
    pub skipped: u64,
    /// Undeliverable.
    pub dead: u64,
    /// Still queued, leased ones counted.
    pub queued: u64,
}

impl Tally {
    /// True if no message is unaccounted for (§4.10).
    #[must_use]
    pub const fn is_conserved(&self) -> bool {
        self.sent == self.received + self.held + self.dropped + self.dead + self.queued
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.denied += other.denied;
        self.held += other.held;
        self.dropped += other.dropped;
        self.skipped += other.skipped;
        self.dead += other.dead;
        self.queued += other.queued;
    }
}
