#![doc = include_str!("../README.md")]
//!
//! # Architecture invariants
//!
//! Nothing here prints. A file is read only by `load`, and only beside the scenario unless [`Reach::Anywhere`] is asked for. An act
//! is performed as its agent's handle, never by any other way in.

mod act;
mod checks;
mod error;
mod expect;
mod load;
mod model;
mod parse;
mod perform;
#[cfg(doctest)]
mod readmes;
mod render;
mod report;
mod words;

pub use self::{
    act::{ActInfo, acts},
    checks::{RUNGS, check, checks},
    error::{Place, Problem, ScenarioError},
    expect::Mismatch,
    load::{FILE_LIMIT, Reach, find, read, read_policy},
    model::Scenario,
    parse::spell_out,
    perform::{Explaining, Performance},
    render::{ErrorEntry, RunReport, Style, counted, printable},
    report::{Report, RungReport, StepExplanation, StepReport, Summary},
    words::meant,
};
