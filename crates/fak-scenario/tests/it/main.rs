//! What the crate does as its users meet it.

mod errors;
mod examples;
mod programs;
