//! Integration tests of the vocabulary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod calls;
mod golden;
mod permits;
mod pins;
mod principals;
mod seams;
mod shown;
mod support;
mod values;
