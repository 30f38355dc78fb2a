//! Capabilities, the acts each of them opens, and sets of them (§2.8).
//! Who is granted what is the kernel's business.

use crate::closed::closed_enum;

closed_enum! {
    /// A right to a family of acts (§2.8). Granted = advertised ∩ registered ∩ grant policy (§2.3).
    ///
    /// ```
    /// use fak_abi::{Act, Capability};
    ///
    /// assert_eq!(Capability::A2aSend.name(), "a2a.send");
    /// // A rule on a capability's tool acts on every act it opens (§1.4).
    /// assert_eq!(Act::Publish.capability(), Capability::A2aSend);
    /// assert_eq!(Act::Publish.name(), "a2a.publish");
    /// ```
    pub enum Capability: u8, "capability", "a2a.send, a2a.recv, ref.widen, ref.trust, pool.write, pool.read, sharedtask.write, sharedtask.approve, sharedtask.read, space.write, space.read, comm.collective, lane.lease, forensics.read" {
        /// Send in every form: point to point, published, requested, replied, corrected.
        A2aSend = 0 => "a2a.send",
        /// Receive in every form, subscribe and bind.
        A2aRecv = 1 => "a2a.recv",
        /// Widen the scope of one's own values.
        RefWiden = 2 => "ref.widen",
        /// Have a value trusted on a confirmed witness.
        RefTrust = 3 => "ref.trust",
        /// Put into the content-addressed pool.
        PoolWrite = 4 => "pool.write",
        /// Get from the content-addressed pool.
        PoolRead = 5 => "pool.read",
        /// Create and patch shared records.
        SharedtaskWrite = 6 => "sharedtask.write",
        /// Approve and reject held patches; for humans.
        SharedtaskApprove = 7 => "sharedtask.approve",
        /// View records, their events and journals.
        SharedtaskRead = 8 => "sharedtask.read",
        /// Write cells of the space.
        SpaceWrite = 9 => "space.write",
        /// Read, list and watch cells of the space.
        SpaceRead = 10 => "space.read",
        /// Collectives over a group.
        CommCollective = 11 => "comm.collective",
        /// Lane leases.
        LaneLease = 12 => "lane.lease",
        /// List and read held and quarantined bodies.
        ForensicsRead = 13 => "forensics.read",
    }
}

/// Declares the acts with their tool names and the capability that opens each.
macro_rules! acts {
    ( $( $cap:ident { $( $(#[$meta:meta])* $act:ident = $code:literal => $tool:literal, )+ } )+ ) => {
        closed_enum! {
            /// A coordination act: one verb of the protocol, presented to the kernel as a call of
            /// the tool of the same name (§1, §2.8). Closed, so that its tool id is a constant.
            pub enum Act: u8, "act", "one of the tools of §2.8" {
                $( $( $(#[$meta])* $act = $code => $tool, )+ )+
            }
        }

        impl Act {
            /// The capability that opens this act.
            #[must_use]
            pub const fn capability(self) -> Capability {
                match self { $( $( Self::$act )|+ => Capability::$cap, )+ }
            }
        }
    };
}

acts! {
    A2aSend {
        /// Send one message to a mailbox (§4.3).
        Send = 0 => "a2a.send",
        /// Publish to the subscribers of a topic (§4.5).
        Publish = 1 => "a2a.publish",
        /// Send a request with a private reply inbox (§4.7).
        Request = 2 => "a2a.request",
        /// Answer a request that was received (§4.7).
        Reply = 3 => "a2a.reply",
        /// Post one's status (§4.9).
        Status = 4 => "a2a.status",
        /// Correct a running worker (§4.9).
        Correct = 5 => "a2a.correct",
        /// Acknowledge a correction (§4.9).
        Ack = 6 => "a2a.ack",
        /// Hand one's window over to its continuation (§4.8).
        Compact = 7 => "a2a.compact",
        /// Arrive at a barrier (§6.5).
        Arrive = 8 => "comm.arrive",
        /// Leave a barrier (§6.5).
        Depart = 9 => "comm.depart",
    }
    A2aRecv {
        /// Receive from a mailbox or inbox (§4.4).
        Recv = 10 => "a2a.recv",
        /// Receive with a guard that must be acknowledged (§4.4).
        RecvLeased = 11 => "a2a.recv_leased",
        /// Subscribe to a topic (§4.5).
        Subscribe = 12 => "a2a.subscribe",
        /// End a subscription (§4.5).
        Unsubscribe = 13 => "a2a.unsubscribe",
        /// Bind a key (§4.6).
        Bind = 14 => "a2a.bind",
        /// Unbind a key (§4.6).
        Unbind = 15 => "a2a.unbind",
        /// Wait for a reply (§4.7).
        Await = 16 => "a2a.await",
        /// Resume a window that was handed over (§4.8).
        Resume = 17 => "a2a.resume",
        /// Receive a correction (§4.9).
        ReceiveCorrection = 18 => "a2a.receive_correction",
        /// Observe what became of a correction (§4.9).
        Observe = 19 => "a2a.observe",
    }
    RefWiden {
        /// Widen the scope of one's own value (§2.4).
        Widen = 20 => "ref.widen",
    }
    RefTrust {
        /// Have a value trusted (§2.4).
        Trust = 21 => "ref.trust",
    }
    PoolWrite {
        /// Put bytes into the pool (§3.9).
        PoolPut = 22 => "pool.put",
    }
    PoolRead {
        /// Get bytes by their digest (§3.9).
        PoolGet = 23 => "pool.get",
    }
    SharedtaskWrite {
        /// Create a record (§5.2).
        TaskCreate = 24 => "sharedtask.create",
        /// Patch a record (§5.3).
        TaskPatch = 25 => "sharedtask.patch",
    }
    SharedtaskApprove {
        /// Approve a held patch (§5.7).
        TaskApprove = 26 => "sharedtask.approve",
        /// Reject a held patch (§5.7).
        TaskReject = 27 => "sharedtask.reject",
    }
    SharedtaskRead {
        /// View a record (§5.8).
        TaskView = 28 => "sharedtask.view",
        /// Read a record's events (§5.8).
        TaskEvents = 29 => "sharedtask.events",
        /// Watch a record (§5.9).
        TaskWatch = 30 => "sharedtask.watch",
        /// Read a record's journal (§5.10).
        TaskJournal = 31 => "sharedtask.journal",
    }
    SpaceWrite {
        /// Put a new cell (§5.11).
        CellPut = 32 => "space.put",
        /// Compare and swap a cell (§5.11).
        CellCas = 33 => "space.cas",
        /// Delete a cell (§5.11).
        CellDelete = 34 => "space.delete",
    }
    SpaceRead {
        /// Get a cell (§5.11).
        CellGet = 35 => "space.get",
        /// List cells by prefix (§5.11).
        CellList = 36 => "space.list",
        /// Watch cells by prefix (§5.11).
        CellWatch = 37 => "space.watch",
    }
    CommCollective {
        /// Hand one value to every member (§6.3).
        Broadcast = 38 => "comm.broadcast",
        /// Hand each member its own value (§6.3).
        Scatter = 39 => "comm.scatter",
        /// Fold the members' outputs (§6.4).
        Gather = 40 => "comm.gather",
        /// Open a barrier (§6.5).
        Barrier = 41 => "comm.barrier",
        /// Partition a group (§6.6).
        Split = 42 => "comm.split",
    }
    LaneLease {
        /// Take a lease (§6.7).
        Lease = 43 => "lane.lease",
        /// Renew a lease (§6.7).
        Renew = 44 => "lane.renew",
        /// Give a lease back (§6.7).
        Release = 45 => "lane.release",
        /// Check a fencing token (§6.7).
        Check = 46 => "lane.check",
    }
    ForensicsRead {
        /// List and read held bodies (§4.4).
        Forensics = 47 => "forensics.read",
    }
}

impl Act {
    /// The name of the act's tool.
    #[must_use]
    #[inline]
    pub const fn tool(self) -> &'static str {
        self.name()
    }

    /// True if a rung or rule that names `tool` acts on this act (§1.4): `tool` is the act's own,
    /// or the name of the capability that opens it.
    #[must_use]
    pub fn answers_to(self, tool: &str) -> bool {
        self.tool() == tool || self.capability().name() == tool
    }
}

/// A set of capabilities (§2.8).
///
/// ```
/// use fak_abi::{CapSet, Capability};
/// let caps = CapSet::of(&[Capability::A2aSend]);
/// assert!(caps.holds(Capability::A2aSend) && !caps.holds(Capability::A2aRecv));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CapSet(u32);

impl CapSet {
    /// No capability.
    pub const NONE: Self = Self(0);
    /// Every capability.
    pub const ALL: Self = Self((1 << Capability::ALL.len()) - 1);

    /// The set of these.
    #[must_use]
    pub fn of(caps: &[Capability]) -> Self {
        caps.iter().copied().collect()
    }

    /// True if `cap` is in the set.
    #[must_use]
    #[inline]
    pub const fn holds(self, cap: Capability) -> bool {
        self.0 & (1 << cap.code()) != 0
    }

    /// With `cap` as well.
    #[must_use]
    #[inline]
    pub const fn with(self, cap: Capability) -> Self {
        Self(self.0 | (1 << cap.code()))
    }

    /// What both hold.
    #[must_use]
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What either holds.
    #[must_use]
    #[inline]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The members, in the order of their codes.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.iter().copied().filter(move |cap| self.holds(*cap))
    }
}

impl FromIterator<Capability> for CapSet {
    fn from_iter<I: IntoIterator<Item = Capability>>(iter: I) -> Self {
        iter.into_iter().fold(Self::NONE, Self::with)
    }
}

impl std::fmt::Debug for CapSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(Capability::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §1.4, §2.8: the capability's own tool reaches every act it opens, a verb's only itself.
    #[test]
    fn a_capabilitys_tool_names_all_its_acts() {
        assert!(Act::Publish.answers_to("a2a.send"));
        assert!(Act::Arrive.answers_to("a2a.send"));
        assert!(Act::Publish.answers_to("a2a.publish"));
        assert!(!Act::Send.answers_to("a2a.publish"));
        assert!(!Act::Recv.answers_to("a2a.send"));
    }

    #[test]
    fn codes_are_dense_so_that_a_chain_can_be_indexed_by_them() {
        for (i, act) in Act::ALL.iter().enumerate() {
            assert_eq!(usize::from(act.code()), i);
            assert_eq!(act.tool().parse(), Ok(*act));
        }
        assert_eq!(CapSet::ALL.iter().count(), 14);
    }
}
