//! Scenarios: multi-agent coordination written as data, performed and checked.
//!
//! A scenario (`fak.scenario.v1`) sets up agents, rules, lanes and records, performs acts in order, each on the real kernel, and
//! states what each must answer. [`Scenario::load`] reads one strictly; performing it gives a [`Report`].
//!
//! This crate may read files, which no crate below it does; it never prints.

mod act;
mod error;
mod expect;
mod load;
mod model;
mod parse;
mod perform;
mod render;
mod report;

pub use self::{
    error::{Place, Problem, ScenarioError},
    expect::Mismatch,
    load::{FILE_LIMIT, Reach, find, read},
    model::Scenario,
    perform::{Explaining, Performance},
    render::{RunReport, Style},
    report::{Report, StepReport, Summary},
};
