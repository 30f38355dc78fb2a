//! A topology installed in a kernel: who may hand what to whom (§6.9).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod bus;
mod enforce;
mod large;
