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
mod task;
mod topo;
mod word;

use std::process::ExitCode;

use clap::{
    CommandFactory as _, Parser as _,
    error::{ContextKind, ContextValue},
};

use crate::{
    args::{Cli, Verb},
    output::Output,
};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| suggest(error).exit());
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

/// Verbs, and what they are elsewhere called.
const CALLED: &[(&str, &[&str])] = &[
    ("run", &["test", "validate", "check", "exec", "play", "perform"]),
    ("policy lint", &["lint"]),
    ("audit verify", &["verify"]),
    ("explain", &["why", "describe", "info", "list", "checks", "reasons"]),
    ("demo", &["example", "examples", "tour", "start", "init", "new"]),
];

/// Names the verb that was meant where a swap or a slip makes it unlike for clap, but not for us.
fn suggest(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let command = Cli::command();
    let called = CALLED.iter().find(|(_, names)| names.contains(&&**given)).map(|(verb, _)| *verb);
    let near = called
        .or_else(|| fak_abi::json::nearest(given, command.get_subcommands().map(clap::Command::get_name)))
        .map(str::to_owned);
    let near = if given.ends_with(".json") { Some(format!("run {given}")) } else { near };
    if let (Some(near), None) = (near, error.get(ContextKind::SuggestedSubcommand)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
    }
    error
}
