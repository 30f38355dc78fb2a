//! The `fak` command: run scenarios, explain verdicts, check policies, journals, lanes and audit logs.
//!
//! Here live the arguments, what is printed, and the exit status: 0 if everything held, 1 if something was refused or did not
//! hold, 2 if something could not be read or written. What the verbs do is the libraries'.

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
    failure::Failure,
    output::Output,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            return Failure::Arguments(suggest::better(error)).report(&mut Output::new(wants_json()));
        }
    };
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

/// Whether a program reads what is wrong with the arguments, which then are not there to say so.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}
