//! Declared and enforced topologies over a group of agents.
//!
//! A [`Topology`] is a named directed acyclic graph over a [`fak_comm::Group`] (§6.8): it is declared by edges,
//! answers who follows whom, in which waves and along which longest chain, and draws itself. [`Enforced`] makes a
//! rung of it: installed in a kernel, members hand over along its edges alone (§6.9).
//!
//! Clauses (`§6.9`) are those of [the protocol](https://github.com/fak-protocol/fak/blob/main/docs/protocol.md).
//!
//! # Where to begin
//!
//! [`Topology::over`] or [`Topology::from_json`], then [`Topology::waves`], [`Topology::to_mermaid`], and [`Enforced`] to hold agents
//! to it.
//!
//! ```
//! use fak_agenttopo::Topology;
//!
//! let review = Topology::from_json(br#"{"name": "review", "edges": [["lead", "ann"], ["lead", "bob"], ["ann", "merge"]]}"#)?;
//! let waves: Vec<usize> = review.waves().iter().map(Vec::len).collect();
//! assert_eq!(waves, [1, 2, 1]);
//! # Ok::<(), fak_agenttopo::TopoError>(())
//! ```
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
