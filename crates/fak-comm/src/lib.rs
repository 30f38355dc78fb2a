//! Groups, collectives, barriers and lane leases as adjudicated acts.

mod barrier;
mod error;
mod group;
mod holder;
mod id;
mod lanes;
mod reduce;
mod spawn;
mod split;
mod time;

pub use barrier::{Arrival, BarrierFold, Witness};
pub use error::{CommError, Place};
pub use group::{Group, GroupSpec, Member};
pub use holder::Holder;
pub use lanes::{
    Conflict, Decision, Duplicate, Glob, Lane, LanePath, LaneRequest, LaneSpec, LeaseTable, Lint, Listing,
    LiveLease, Meeting, Note, Overlap, PathFault, Region, Standing, Taxonomy, Together, Tree, Why, decide,
    run_together,
};
pub use reduce::{Output, Reduced, Reduction, Tally};
pub use spawn::{Membership, Spawn, Waves};
pub use split::Part;
pub use time::Timestamp;
