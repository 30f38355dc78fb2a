//! Lanes: named parts of a workspace that agents lease before they write there (§6.7). The taxonomy, the lint and
//! the decision are pure; the arbiter keeps the live leases; the acts are in the crate's `lease` module.

mod decide;
mod lint;
mod path;
mod table;
mod taxonomy;
mod text;
mod together;

pub use decide::{Conflict, Decision, InTheWay, LaneRequest, LiveLease, Region, Why, decide};
pub use lint::{Duplicate, Lint, Overlap};
pub use path::{Glob, LanePath, Meeting, PathFault, Tree};
pub use table::{LeaseTable, Standing};
pub use taxonomy::{Lane, LaneSpec, Listing, Note, Taxonomy};
pub use together::{Together, run_together};
