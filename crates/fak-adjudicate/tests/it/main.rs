//! Integration tests of the kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod alloc;
mod attach;
mod audit;
mod booked;
mod budget;
mod fold;
mod kernel_audit;
mod layers;
mod marker;
mod patterns;
mod policy;
mod policy_at_work;
mod policy_reference;
mod policy_texts;
mod pool;
mod rate;
mod refs;
mod submit;
mod support;
mod trace;
