//! The arguments of `fak`; what their help says besides is in `help`.

mod help;

use std::{path::PathBuf, str::FromStr};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use fak_abi::{Digest, Id, Reason, Timestamp, VerdictKind};
use fak_scenario::meant;

use self::help::{
    AUDIT, AUDIT_SHOW, AUDIT_VERIFY, COMPLETIONS, DEMO, EXITS, EXPLAIN, JOURNAL, JOURNAL_LOAD, JOURNAL_SHOW,
    JOURNAL_VERIFY, LANES, LANES_CHECK, LANES_LINT, POLICY, POLICY_LINT, POLICY_TEST, RUN, TASK, TASK_APPLY,
    TASK_LOG, TASK_NEW, TASK_VIEW, TOPO, TOPO_RENDER,
};

/// Multi-agent coordination in which every act is an adjudicated tool call.
#[derive(Debug, Parser)]
#[command(name = "fak", version, after_help = EXITS, max_term_width = 100)]
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
    /// Explain a reason, a check or another word, or the acts of a scenario.
    #[command(after_help = EXPLAIN)]
    Explain(ExplainArgs),
    /// Check a policy, or try it on scenarios.
    #[command(subcommand, after_help = POLICY)]
    Policy(PolicyVerb),
    /// Look into a lane table: what overlaps, and what may run together.
    #[command(subcommand, after_help = LANES)]
    Lanes(LanesVerb),
    /// Draw a topology.
    #[command(subcommand, after_help = TOPO)]
    Topo(TopoVerb),
    /// Check an audit log, or look into it.
    #[command(subcommand, after_help = AUDIT)]
    Audit(AuditVerb),
    /// Work on a shared record that is kept as a journal in a file.
    #[command(subcommand, after_help = TASK)]
    Task(TaskVerb),
    /// Check a journal of a shared record, or look into it.
    #[command(subcommand, after_help = JOURNAL)]
    Journal(JournalVerb),
    /// Write completions for a shell.
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Name rules that can never match.
    #[command(after_help = POLICY_LINT)]
    Lint(PolicyLintArgs),
    /// Perform scenarios under the policy instead of their own.
    #[command(after_help = POLICY_TEST)]
    Test(PolicyTestArgs),
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

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// Check every line against the one before it, and name the first that is wrong.
    #[command(after_help = AUDIT_VERIFY)]
    Verify(AuditVerifyArgs),
    /// Show entries, filtered.
    #[command(after_help = AUDIT_SHOW)]
    Show(AuditShowArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum JournalVerb {
    /// Check every revision, digest and link, and name the first entry that is wrong.
    #[command(after_help = JOURNAL_VERIFY)]
    Verify(JournalVerifyArgs),
    /// Show a line per entry. It is not checked: use verify.
    #[command(after_help = JOURNAL_SHOW)]
    Show(JournalShowArgs),
    /// Rebuild the record of a journal, and say where it stands.
    #[command(after_help = JOURNAL_LOAD)]
    Load(JournalShowArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskVerb {
    /// Begin a record, and write its journal.
    #[command(after_help = TASK_NEW)]
    New(TaskNewArgs),
    /// Apply a patch as somebody; the journal is written again if it was accepted.
    #[command(after_help = TASK_APPLY)]
    Apply(TaskApplyArgs),
    /// Show the record as somebody may see it.
    #[command(after_help = TASK_VIEW)]
    View(TaskViewArgs),
    /// Show the record's events as somebody may see them.
    #[command(after_help = TASK_LOG)]
    Log(TaskViewArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Scenario files, or folders of them.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Let scenarios name files outside their folder.
    #[arg(long)]
    pub(crate) allow_outside: bool,
    /// Append the audit log of the run to this file, after verifying what is in it.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// Show only the scenarios that did not hold, and the summary.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A reason, a check or another word that is met; or a scenario file.
    #[arg(value_name = "WORD|FILE")]
    pub(crate) what: Option<String>,
    /// List every check there is, with its clause.
    #[arg(long, conflicts_with = "what")]
    pub(crate) checks: bool,
    /// List every act of scenarios, with what it may be told.
    #[arg(long, conflicts_with_all = ["what", "checks"])]
    pub(crate) acts: bool,
    /// Only this step of the scenario, counted from 1.
    #[arg(long, value_name = "N", requires = "what", allow_negative_numbers = true)]
    pub(crate) step: Option<String>,
    /// Explain under this policy instead of the scenario's own; TOML, or JSON if its name ends in .json.
    #[arg(long, value_name = "FILE", requires = "what")]
    pub(crate) policy: Option<PathBuf>,
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
    /// A lane that is to run; give it twice or more.
    #[arg(long = "lane", required = true, value_name = "NAME")]
    pub(crate) lanes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopoRenderArgs {
    /// The topology, JSON; or a scenario that has one.
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

#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// The log, JSON lines; - is standard input.
    pub(crate) file: PathBuf,
    /// A checkpoint that was kept elsewhere: the file, or what an earlier verify printed.
    #[arg(long, value_name = "FILE|COUNT:HEAD")]
    pub(crate) checkpoint: Option<String>,
    /// Write a checkpoint of the end, to be kept elsewhere.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_checkpoint: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditShowArgs {
    /// The log, JSON lines; - is standard input.
    pub(crate) file: PathBuf,
    /// Only acts of this agent.
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Only acts with this verdict, such as deny.
    #[arg(long, value_parser = verdict)]
    pub(crate) verdict: Option<VerdictKind>,
    /// Only refusals for this reason.
    #[arg(long, value_parser = reason)]
    pub(crate) reason: Option<Reason>,
    /// Only entries from this time on, RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Timestamp>,
    /// Only entries before this time, RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Timestamp>,
}

/// A reason, in any case.
fn reason(text: &str) -> Result<Reason, String> {
    word("reason", text, Reason::ALL, Reason::name)
}

/// A verdict, in any case.
fn verdict(text: &str) -> Result<VerdictKind, String> {
    word("verdict", text, VerdictKind::ALL, VerdictKind::name)
}

/// One of a few words, with the one that is meant where it is none.
fn word<T: Copy>(what: &str, text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    if let Some(known) = all.iter().copied().find(|known| name(*known).eq_ignore_ascii_case(text)) {
        return Ok(known);
    }
    let names = || all.iter().copied().map(name);
    Err(match meant(text, names()) {
        Some(near) => format!("unknown {what}, did you mean \"{near}\"?"),
        None => format!("unknown {what}, expected one of {}", names().collect::<Vec<_>>().join(", ")),
    })
}

#[derive(Debug, Args)]
pub(crate) struct JournalVerifyArgs {
    /// The journal, JSON; or several.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Accept a chain with placeholders, as far as it can be checked.
    #[arg(long)]
    pub(crate) allow_opaque: bool,
    /// What an earlier verify printed as its checkpoint; for one journal.
    #[arg(long, value_name = "REVISION:HEAD")]
    pub(crate) checkpoint: Option<JournalPoint>,
}

/// `REVISION:HEAD`, as `fak journal verify` prints it.
#[derive(Clone, Debug)]
pub(crate) struct JournalPoint {
    /// The number of the revision.
    pub(crate) revision: usize,
    /// The digest of its event.
    pub(crate) head: Digest,
}

impl FromStr for JournalPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected REVISION:HEAD, such as 12:sha256:…, as verify prints it";
        let (revision, head) = text.split_once(':').ok_or(expected)?;
        Ok(Self {
            revision: revision.parse().map_err(|_| expected)?,
            head: head.parse().map_err(|_| expected)?,
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct JournalShowArgs {
    /// The journal, JSON.
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyLintArgs {
    /// The policy, TOML, or JSON if its name ends in .json.
    pub(crate) file: PathBuf,
    /// A tool of the host's own that rules may name.
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTestArgs {
    /// The policy, TOML, or JSON if its name ends in .json.
    pub(crate) file: PathBuf,
    /// Scenario files, or folders of them.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Let scenarios name files outside their folder.
    #[arg(long)]
    pub(crate) allow_outside: bool,
    /// Show only the scenarios that did not hold, and the summary.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskNewArgs {
    /// The record, JSON.
    pub(crate) record: PathBuf,
    /// The journal to write; it must not be there yet.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TaskApplyArgs {
    /// The record's journal.
    pub(crate) journal: PathBuf,
    /// The patch, JSON.
    pub(crate) patch: PathBuf,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
    /// Base the patch on this revision, whatever base it names: `current`, or a number.
    #[arg(long, value_name = "REVISION")]
    pub(crate) base: Option<BaseArg>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskViewArgs {
    /// The record's journal.
    pub(crate) journal: PathBuf,
    #[command(flatten)]
    pub(crate) who: WhoArgs,
}

/// As whom something is done to a record, and whom its store serves.
#[derive(Debug, Args)]
pub(crate) struct WhoArgs {
    /// As whom.
    #[arg(long = "as", value_name = "ID")]
    pub(crate) id: Id,
    /// It is a person.
    #[arg(long)]
    pub(crate) human: bool,
    /// Its fleet.
    #[arg(long, value_name = "FLEET")]
    pub(crate) fleet: Option<Id>,
    /// Its tenant.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<Id>,
    /// The fleet the record's store serves; by default that of the one who acts.
    #[arg(long, value_name = "FLEET")]
    pub(crate) store_fleet: Option<Id>,
    /// The tenant the record's store serves; by default that of the one who acts.
    #[arg(long, value_name = "TENANT")]
    pub(crate) store_tenant: Option<Id>,
}

/// The revision a patch is based on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BaseArg {
    /// The one in force.
    Current,
    /// The one of this number.
    Number(usize),
}

impl FromStr for BaseArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A scenario writes "@current" and "@0".
        match text.strip_prefix('@').unwrap_or(text) {
            "current" => Ok(Self::Current),
            number => number.parse().map(Self::Number).map_err(|_| {
                "expected \"current\", or the number of a revision: 0 for the record as it was made"
                    .to_owned()
            }),
        }
    }
}
