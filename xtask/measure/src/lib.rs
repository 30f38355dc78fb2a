//! What is measured path by path: a world made once, then one act again and again. `cargo xtask instructions`, `cargo xtask
//! growth` and `cargo xtask memory` run the programs of this package, each path in a process of its own, and make tables of what
//! they say; what is compared in time with a rival in the same process is in the benches of the crates.
//!
//! Nothing of the product depends on it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement that does not work stops")]

mod channels;
mod decide;
mod groups;
mod path;
mod record;
mod world;

pub use path::{PATHS, Path, Run};
pub use record::{Shelf, journal, note};
pub use world::{Looks, World, body, id, key};
