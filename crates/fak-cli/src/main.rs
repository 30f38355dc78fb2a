//! The `fak` command: run scenarios, explain verdicts, check policies, journals, lanes and audit logs.
//!
//! Here live the arguments, what is printed, and the exit status: 0 if everything held, 1 if something was refused or did not
//! hold, 2 if something could not be read. What the verbs do is the libraries'.

mod args;
mod audit;
mod completions;
mod demo;
mod explain;
mod failure;
mod journal;
mod kind;
mod lanes;
mod merge;
mod output;
mod overview;
mod policy;
mod run;
mod suggest;
mod task;
mod topo;
mod word;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    args::{Cli, Verb},
    output::Output,
};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| suggest::better(error).exit());
    let mut output = Output::new(cli.json);
    let done = match cli.verb {
        None => overview::show(&mut output),
        Some(Verb::Run(args)) => run::run(&args, &mut output),
        Some(Verb::Demo) => demo::demo(&mut output),
        Some(Verb::Explain(args)) => explain::explain(&args, &mut output),
        Some(Verb::Policy(verb)) => policy::policy(&verb, &mut output),
        Some(Verb::Lanes(verb)) => lanes::lanes(&verb, &mut output),
        Some(Verb::Topo(verb)) => topo::topo(&verb, &mut output),
        Some(Verb::Audit(verb)) => audit::audit(&verb, &mut output),
        Some(Verb::Task(verb)) => task::task(&verb, &mut output),
        Some(Verb::Journal(verb)) => journal::journal(&verb, &mut output),
        Some(Verb::Completions(args)) => completions::write(&args, &mut output),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(failure) => failure.report(&mut output),
    }
}
