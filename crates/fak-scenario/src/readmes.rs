//! The code in the README of the project, and of the crates that do not run their own, compiled and run by the documentation tests.
//! It stands here because only here all layers can be seen. Nothing of it is in a build.

#[doc = include_str!("../../../README.md")]
struct Project;

#[doc = include_str!("../../fak-abi/README.md")]
struct Abi;

#[doc = include_str!("../../fak-adjudicate/README.md")]
struct Adjudicate;

#[doc = include_str!("../../fak-a2achan/README.md")]
struct Channels;

#[doc = include_str!("../../fak-sharedtask/README.md")]
struct SharedTask;
