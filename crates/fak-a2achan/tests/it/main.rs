//! Integration tests of channels, on a real kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod alike;
mod alloc;
mod answers;
mod audited;
mod bind;
mod books;
mod closed;
mod copies;
mod correction;
mod drops;
mod fanout;
mod floor;
mod group;
mod lease;
mod looks;
mod margins;
mod model;
mod publish;
mod recv;
mod request;
mod review;
mod shapes;
mod support;
mod trial;
mod waits;
mod wakers;
