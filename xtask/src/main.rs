//! `cargo xtask`: the checks that hold the workspace together, each runnable by itself and all of them by `conformance`.
//!
//! Nothing of the product lives here; nothing of the product depends on it.

mod api;
mod bench;
mod cargo;
mod conformance;
mod error;
mod examples;
mod fixtures;
mod fuzz;
mod layering;
mod load;
mod measure;
mod out;
mod powerset;
mod repo;
mod report;
mod schemas;
mod sim;
mod tidy;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use self::{error::TaskError, repo::Repo, report::Report};

/// Build tasks of the fak workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Every crate edge goes down the layers
    Layering,
    /// House rules that neither rustc nor clippy knows
    Tidy,
    /// Schemas obey their meta-schema and accept what the public ones accept
    Schemas,
    /// Peer fixtures validate, with pinned counts; negative fixtures fail where they say
    Fixtures,
    /// Each example program runs and prints what is kept beside it
    Examples(examples::Options),
    /// Public items of each crate are those listed in docs/api
    Api(api::Options),
    /// All of the above, every scenario, the documents and the clause table
    Conformance(conformance::Options),
    /// Write the lines of the documents that say what bears witness to a clause or an incident
    Witnesses,
    /// Each crate by itself builds with every set of its features
    Powerset,
    /// Random acts on a deterministic scheduler, against naive models of the protocol
    Sim(sim::Options),
    /// Run the fuzz targets so many executions each; needs the nightly toolchain and cargo-fuzz
    Fuzz(fuzz::Options),
    /// Many agents, mailboxes, messages and records in one process: nothing is lost
    Load(load::Options),
    /// Run criterion groups and compare their ratios with the targets
    Bench(bench::Options),
    /// Count the instructions of the hot paths with callgrind
    Instructions(measure::InstructionsOptions),
    /// Measure what acts cost in worlds of growing size, and fit exponents
    Growth(measure::GrowthOptions),
    /// Weigh what is kept in memory, and the peak of verifying a large journal
    Memory,
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            out::error(&error);
            ExitCode::from(2)
        }
    }
}

/// The names of the tasks.
fn tasks() -> Vec<String> {
    Cli::command().get_subcommands().map(|task| task.get_name().to_owned()).collect()
}

/// Performs one task; `false` means that it found something to mend.
fn run(task: Task) -> Result<bool, TaskError> {
    let repo = Repo::locate()?;
    let report: Report = match task {
        Task::Layering => layering::check(&repo)?,
        Task::Tidy => tidy::check(&repo)?,
        Task::Schemas => schemas::check(&repo)?,
        Task::Fixtures => fixtures::check(&repo)?,
        Task::Examples(options) => examples::check(&repo, &options)?,
        Task::Witnesses => conformance::write_witnesses(&repo)?,
        Task::Api(options) => api::check(&repo, &options)?,
        Task::Powerset => powerset::check(&repo)?,
        Task::Conformance(options) => return conformance::run(&repo, &options),
        Task::Sim(options) => return sim::run(&repo, &options),
        Task::Fuzz(options) => return fuzz::run(&repo, &options),
        Task::Load(options) => return load::run(&options),
        Task::Bench(options) => return bench::run(&repo, &options),
        Task::Instructions(options) => return measure::instructions(&repo, &options),
        Task::Growth(options) => return measure::growth(&repo, &options),
        Task::Memory => return measure::memory(&repo),
    };
    out::report(&report)?;
    Ok(report.passed())
}
