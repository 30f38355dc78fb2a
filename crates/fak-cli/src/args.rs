//! The arguments of `fak` and the text of its help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

const EXITS: &str = "\
Exit status:
  0  everything held
  1  an expectation did not hold, or something was refused
  2  an argument or a file could not be read; the message says where and what was expected";

/// Multi-agent coordination in which every act is an adjudicated tool call.
#[derive(Debug, Parser)]
#[command(name = "fak", version, after_help = EXITS, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do; without it an overview is shown.
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    /// Write JSON for programs instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Perform scenarios and check what they expect.
    #[command(after_help = RUN)]
    Run(RunArgs),
    /// Watch agents coordinate under the floor, act by act.
    #[command(after_help = DEMO)]
    Demo,
    /// Explain a reason, a check, or the acts of a scenario.
    #[command(after_help = EXPLAIN)]
    Explain(ExplainArgs),
    /// Write completions for a shell.
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArgs),
}

const RUN: &str = "\
Examples:
  fak run examples/scenarios             every scenario of a folder
  fak run my.json --audit run.jsonl      and keep the audit log
  fak run my.json --json | jq .failed    for programs

Exit status: 0 every expectation held, 1 one did not, 2 a file could not be read.";

const DEMO: &str = "\
Example:
  fak demo

Exit status: 0 if every leg went as it must, 1 otherwise.";

const EXPLAIN: &str = "\
Examples:
  fak explain TRUST_VIOLATION            what a reason means and what to do about it
  fak explain a2achan/private            what a check refuses
  fak explain my.json --step 3           every rung's opinion of a step, before it is performed
  fak explain                            the twelve reasons

Exit status: 0, or 2 if there is no such reason, check or scenario.";

const COMPLETIONS: &str = "\
Example:
  fak completions bash > ~/.local/share/bash-completion/completions/fak";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Scenario files, or folders of them.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Let scenarios name files outside their folder.
    #[arg(long)]
    pub(crate) allow_outside: bool,
    /// Keep the audit log of the run in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// Show only what did not hold, and the summary.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A reason, a check's name, or a scenario file.
    #[arg(value_name = "REASON|CHECK|FILE")]
    pub(crate) what: Option<String>,
    /// Only this step of the scenario, counted from 1.
    #[arg(long, value_name = "N")]
    pub(crate) step: Option<usize>,
    /// Let the scenario name files outside its folder.
    #[arg(long)]
    pub(crate) allow_outside: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: Shell,
}
