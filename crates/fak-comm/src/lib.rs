//! Groups, collectives, barriers and lane leases as adjudicated acts.
//!
//! A [`Group`] ranks its members by id; a [`Communicator`] hands values to all of them or to none and folds what they
//! made; a [`Barrier`] is an arrival fold that no dead member can hang; a [`LaneArbiter`] leases parts of a workspace
//! under fencing tokens. Each act is presented to the kernel of the agent that performs it, and refused with a
//! verdict (§6). Bytes are moved by the engine registered for `comm.*`, never here.
//!
//! Clauses (`§6.2`) are those of [the protocol](https://github.com/fak-protocol/fak/blob/main/docs/protocol.md).
//!
//! # Where to begin
//!
//! Pure and without a kernel: [`Taxonomy`], [`run_together`], [`decide`], [`Reduction::fold`]. As acts: [`Comm`] and
//! [`Communicator`], [`Barrier`], [`LaneArbiter`]; each type's page has an example.
//!
//! ```
//! use fak_comm::{Taxonomy, run_together};
//!
//! let lanes: Taxonomy = "[lanes]\nconcurrent = [\"docs\", \"code\"]\nexclusive = [\"release\"]\n\
//!     [lanes.trees]\ndocs = [\"docs/**\"]\ncode = [\"src/**\"]\nrelease = [\"**\"]\n".parse()?;
//! assert!(run_together(&lanes, &["docs", "code"]).is_clear());
//! assert!(!run_together(&lanes, &["docs", "release"]).is_clear());
//! # Ok::<(), fak_comm::CommError>(())
//! ```
//!
//! # Architecture invariants
//!
//! Nothing here opens a file, reads a clock or prints. The decisions (ranks, reductions, lanes, the barrier's fold) are
//! pure and can be used without a kernel. No user code runs under a lock.

mod answer;
mod barrier;
mod collective;
mod comm;
mod error;
mod floor;
mod group;
mod lanes;
mod lease;
mod open;
mod reduce;
mod spawn;
mod split;
mod tie;

pub use answer::Answer;
pub use barrier::{Arrival, BARRIER_SITES, Barrier, BarrierFold, BarrierReport, BarrierWait, Witness};
pub use collective::{
    Collective, CollectiveRefusal, Communicator, Delivery, Gathered, Lost, PendingDelivery, PendingGather,
};
pub use comm::Comm;
pub use error::{CommError, Place};
pub use group::{Group, GroupSpec, Member};
pub use lanes::{
    Conflict, Decision, Duplicate, Glob, InTheWay, Lane, LanePath, LaneRequest, LaneSpec, LeaseTable, Lint,
    Listing, LiveLease, Meeting, Note, Overlap, PathFault, Region, Standing, Taxonomy, Together, Tree, Why,
    decide, run_together,
};
pub use lease::{LANE_SITES, LaneArbiter, Lease, LeaseRefusal, Leased};
pub use reduce::{Output, Reduced, Reduction, Tally};
pub use spawn::{Membership, Spawn, Waves};
pub use split::Part;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
