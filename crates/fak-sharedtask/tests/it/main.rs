//! The shared record from outside: envelopes, journals, merges, acts, cells.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod acts;
mod approval;
mod bad_input;
mod cells;
mod detached;
mod interop;
mod journals;
mod made;
mod margins;
mod memory;
mod merge;
mod properties;
mod reference;
mod replays;
mod rungs;
mod support;
mod views;
mod wakers;
mod written_here;
