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
    /// Look into a lane table: what overlaps, and what may run together.
    #[command(subcommand)]
    Lanes(LanesVerb),
    /// Draw a topology.
    #[command(subcommand)]
    Topo(TopoVerb),
    /// Write completions for a shell.
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LanesVerb {
    /// Report duplicates, lanes without trees, trees without lanes, and overlaps.
    #[command(after_help = LANES_LINT)]
    Lint(LanesLintArgs),
    /// Say whether lanes may run together, and if not why.
    #[command(after_help = LANES_CHECK)]
    Check(LanesCheckArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TopoVerb {
    /// Write a topology as DOT or Mermaid.
    #[command(after_help = TOPO_RENDER)]
    Render(TopoRenderArgs),
}

const LANES_LINT: &str = "\
Example:
  fak lanes lint examples/lanes/workspace.toml

Exit status: 0 whatever is found, 2 if the table cannot be read.";

const LANES_CHECK: &str = "\
Example:
  fak lanes check examples/lanes/workspace.toml --lane docs --lane cmd

Exit status: 0 they may run together, 1 they may not, 2 the table cannot be read or has no such lane.";

const TOPO_RENDER: &str = "\
The file is JSON: {\"name\": …, \"edges\": [[from, to], …], \"members\": […]}, where members are optional.

Example:
  fak topo render wave.json --format mermaid

Exit status: 0, or 2 if the topology cannot be read or declared.";

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

#[derive(Debug, Args)]
pub(crate) struct LanesLintArgs {
    /// The lane table, TOML.
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct LanesCheckArgs {
    /// The lane table, TOML.
    pub(crate) file: PathBuf,
    /// A lane that is to run; give at least two.
    #[arg(long = "lane", required = true, value_name = "NAME")]
    pub(crate) lanes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopoRenderArgs {
    /// The topology, JSON.
    pub(crate) file: PathBuf,
    /// The language to draw it in.
    #[arg(long, value_enum, default_value_t = TopoFormat::Dot)]
    pub(crate) format: TopoFormat,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum TopoFormat {
    /// For graphviz.
    Dot,
    /// For Markdown.
    Mermaid,
}
