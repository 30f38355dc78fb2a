//! Groups, barriers and leases as acts of a kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod barrier;
mod bus;
mod gather;
mod hand;
mod lease;
mod margins;
mod support;
mod waves;
