//! What the crate does as its users meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod errors;
mod examples;
mod hints;
mod newcomer;
mod programs;
mod records_and_cells;
mod support;
