//! Declared and enforced topologies over a group of agents.
//!
//! A [`Topology`] is a named directed acyclic graph over a [`fak_comm::Group`] (§6.8): it is declared by edges,
//! answers who follows whom, in which waves and along which longest chain, and draws itself. [`Enforced`] makes a
//! rung of it: installed in a kernel, members hand over along its edges alone (§6.9).
//!
//! # Architecture invariants
//!
//! Nothing here recurses on the size of a graph. A refused hand-over is a verdict, never an error.

mod adjacency;
mod combine;
mod cycle;
mod enforce;
mod error;
mod order;
mod render;
mod text;
mod topology;

pub use combine::Combined;
pub use enforce::Enforced;
pub use error::TopoError;
pub use topology::{Neighbors, Topology};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
