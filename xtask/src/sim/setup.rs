//! What differs from one episode to the next before anything happens: capacities, addressing, rungs.

use super::rng::Rng;

/// The setup of one episode.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Slots of a mailbox or inbox.
    pub(crate) capacity: usize,
    /// Names have to be declared.
    pub(crate) declared: bool,
    /// The largest inline body.
    pub(crate) max_body: usize,
    /// What one principal may take of the bus.
    pub(crate) mailboxes: u32,
    pub(crate) queued_bytes: u64,
    pub(crate) subscriptions: u32,
    pub(crate) waits: u32,
    pub(crate) leases: u32,
    pub(crate) remembered: u32,
    /// Redeliveries of a leased message.
    pub(crate) redeliveries: u32,
    /// Sends and receives are metered by a rung that counts.
    pub(crate) metered: bool,
    /// A policy rung is installed.
    pub(crate) policy: bool,
    /// Titles, and what a tenant may see, need a human's approval.
    pub(crate) approval: bool,
    /// Bytes of the pool.
    pub(crate) pool: usize,
    /// A topology is installed.
    pub(crate) edges: bool,
    /// Slots of the audit queue.
    pub(crate) audit: usize,
    /// How the secretive agent's private texts differ, in a run that is compared with another; it widens nothing then.
    pub(crate) secret: Option<char>,
    /// Acts that seldom meet by chance are made to: requests that would close a ring, publications into full inboxes,
    /// guards of what came after a loss.
    pub(crate) urged: bool,
    /// Some rungs change their minds and some panic.
    pub(crate) fickle: bool,
}

impl Setup {
    /// The setup that a seed names.
    pub(crate) fn of(rng: &mut Rng) -> Self {
        Self {
            capacity: rng.pick(&[1, 2, 3, 4, 8, 64, 64], 4),
            declared: rng.one_in(4),
            max_body: rng.pick(&[1 << 20, 1 << 20, 30], 30),
            mailboxes: rng.pick(&[3, 6, 4096, 4096], 6),
            queued_bytes: rng.pick(&[200, 2_000, 64 << 20], 2_000),
            subscriptions: rng.pick(&[1, 3, 4096], 3),
            waits: rng.pick(&[1, 2, 4096, 4096], 2),
            leases: rng.pick(&[1, 2, 1024], 2),
            remembered: rng.pick(&[1, 2, 1024], 2),
            redeliveries: rng.pick(&[0, 1, 5], 1),
            metered: rng.one_in(3),
            policy: rng.one_in(2),
            approval: rng.one_in(3),
            pool: rng.pick(&[1_200, 1_800, 3_000, 6_000, 256 << 20], 3_000),
            edges: rng.one_in(3),
            audit: rng.pick(&[1 << 11, 1 << 14], 1 << 14),
            secret: None,
            urged: false,
            fickle: !rng.one_in(3),
        }
    }
}
