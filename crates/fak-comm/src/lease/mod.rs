//! Leasing lanes: the acts (§6.7). What conflicts is decided in `lanes`; here are the arbiter as a layer of a kernel,
//! its tokens, and what its refusals say.

mod arbiter;
mod floor;

use std::sync::Arc;

use fak_abi::{Id, Principal, Timestamp, Verdict};

use crate::answer::Answer;
use crate::lanes::{Conflict, Region, Tree};

pub use arbiter::LaneArbiter;
pub use floor::LANE_SITES;

/// A lease: the fencing token of one holder over one region (§6.7). Cloning it grants nothing; every use of it names
/// the handle that uses it.
#[derive(Clone, Debug)]
pub struct Lease {
    fence: u64,
    region: Region,
    holder: Arc<Principal>,
    expires: Timestamp,
    /// Whose token it is: one address an arbiter.
    mark: Arc<()>,
}

impl Lease {
    /// The fence: above that of every lease granted before it by the same arbiter.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// The lane it is over, unless it is over globs.
    #[must_use]
    pub const fn lane(&self) -> Option<&Id> {
        self.region.lane.as_ref()
    }

    /// The paths it is over.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.region.tree
    }

    /// Id of its holder.
    #[must_use]
    pub fn holder(&self) -> &Id {
        self.holder.id()
    }

    /// From when on it is expired, unless it was renewed since this token was made.
    #[must_use]
    pub const fn expires(&self) -> Timestamp {
        self.expires
    }
}

/// What an act on leases answers: what it yields, or what is in the way (§6.7).
pub type Leased<T> = Answer<T, LeaseRefusal>;

/// Why an act on leases was refused, and what is in the way (§6.7).
#[derive(Clone, Debug)]
pub struct LeaseRefusal {
    /// Reason, rung, and for a held lease when the last one in the way expires.
    pub verdict: Verdict,
    /// The leases in the way, each once, oldest first.
    pub conflicts: Vec<Conflict>,
    /// Which of several requests was refused, or which glob of a tree is none.
    pub at: Option<usize>,
    /// The known lane whose name is nearest to an unknown one.
    pub nearest: Option<Id>,
}

impl From<Verdict> for LeaseRefusal {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, conflicts: Vec::new(), at: None, nearest: None }
    }
}

impl AsRef<Verdict> for LeaseRefusal {
    fn as_ref(&self) -> &Verdict {
        &self.verdict
    }
}
