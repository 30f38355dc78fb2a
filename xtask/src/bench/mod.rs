//! `cargo xtask bench [ROW…]`: runs the criterion groups of the rows asked for, sets each measured ratio beside its target, and
//! writes them down. What is compared with what is in `rows`; how criterion's files are read is in `estimates`.

mod comparison;
mod estimates;
mod rows;

use std::process::{Command, Stdio};

use serde::Serialize;

use self::{
    comparison::Comparison,
    estimates::{Estimates, Span},
    rows::{LAST, PINNED, Pinned, ROWS},
};
use crate::{cargo, error::TaskError, out, repo::Repo};

/// Where the whole of it is written.
const REPORT: &str = "target/bench-report.json";

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Numbers of rows; all of them if none is given
    rows: Vec<u32>,
    /// Compare what was measured before, and measure nothing
    #[arg(long, conflicts_with = "rounds")]
    no_run: bool,
    /// Measure so many times, and take the median of the ratios
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
}

/// How a comparison came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    /// The target is met.
    Ok,
    /// It is not.
    Short,
    /// There is no measurement.
    Missing,
}

/// One comparison measured.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    row: u32,
    what: &'static str,
    target: String,
    /// Of the medians, with the span that their confidence intervals leave.
    measured: Option<Span>,
    /// Whether the target lies inside that span, so that another run may answer otherwise.
    close: bool,
    outcome: Outcome,
}

/// Runs and compares; `false` if a row is short or was not measured.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<bool, TaskError> {
    if let Some(row) = options.rows.iter().find(|row| !(1..=LAST).contains(*row)) {
        let known = format!("1 to {LAST}");
        return Err(TaskError::Unknown { kind: "row", name: row.to_string(), known });
    }
    let wanted: Vec<&Comparison> = ROWS
        .iter()
        .filter(|comparison| options.rows.is_empty() || options.rows.contains(&comparison.row))
        .collect();
    let asked = |row: &u32| options.rows.is_empty() || options.rows.contains(row);
    let estimates = Estimates::new(repo);
    let mut rounds = Vec::new();
    if options.no_run {
        rounds.push(read(&wanted, &estimates, &[])?);
    } else {
        for _ in 0..options.rounds {
            let failed = measure(repo, &wanted)?;
            rounds.push(read(&wanted, &estimates, &failed)?);
        }
    }
    let mut results: Vec<Measured> = wanted
        .iter()
        .enumerate()
        .map(|(index, comparison)| {
            let spans: Vec<Span> = rounds.iter().filter_map(|round| *round.get(index)?).collect();
            judge(comparison, Span::middle(&spans))
        })
        .collect();
    for pinned in PINNED.iter().filter(|pinned| asked(&pinned.row)) {
        results.push(hold(repo, pinned, options.no_run)?);
    }
    let bare = (1..=LAST).filter(asked).filter(|row| !results.iter().any(|result| result.row == *row));
    let bare: Vec<Measured> = bare.map(unmeasured).collect();
    results.extend(bare);
    results.sort_by_key(|result| result.row);
    print(&results)?;
    let path = repo.write_json(REPORT, &results)?;
    let met = results.iter().filter(|result| result.outcome == Outcome::Ok).count();
    out::line(&format!("\nbench: {met} of {} targets met ({})", results.len(), repo.show(&path)))?;
    Ok(met == results.len())
}

/// Runs each group once, with cargo's own output going to the terminal; returns the groups that did not run.
fn measure(repo: &Repo, wanted: &[&Comparison]) -> Result<Vec<&'static str>, TaskError> {
    let mut groups: Vec<(&str, &str, &'static str)> =
        wanted.iter().map(|comparison| (comparison.package, comparison.bench, comparison.group)).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut failed = Vec::new();
    for (package, bench, group) in groups {
        let filter = format!("^{group}/");
        let arguments =
            ["bench", "--quiet", "--locked", "--package", package, "--bench", bench, "--", &filter];
        if !command(repo, &arguments)? {
            failed.push(group);
        }
    }
    Ok(failed)
}

/// Runs cargo; whether it ended well.
fn command(repo: &Repo, arguments: &[&str]) -> Result<bool, TaskError> {
    let shown = format!("cargo {}", arguments.join(" "));
    out::line(&shown)?;
    let status = Command::new(cargo::cargo())
        .args(arguments)
        .current_dir(repo.root())
        .stdin(Stdio::null())
        .status()
        .map_err(|source| TaskError::Start { command: shown.clone(), source })?;
    if !status.success() {
        out::line(&format!("`{shown}` failed ({status})"))?;
    }
    Ok(status.success())
}

/// Runs a test that holds a target.
fn hold(repo: &Repo, pinned: &Pinned, no_run: bool) -> Result<Measured, TaskError> {
    let Pinned { row, what, target, package, test } = *pinned;
    let arguments =
        ["test", "--quiet", "--locked", "--package", package, "--test", "it", "--", "--exact", test];
    let mut outcome = Outcome::Missing;
    if !no_run {
        let arguments = arguments.map(str::to_owned);
        out::line(&cargo::shown(&cargo::cargo(), &arguments))?;
        let output = cargo::output(&cargo::cargo(), &arguments, repo.root())?;
        // A name that no test has would pass as well.
        let ran = String::from_utf8_lossy(&output.stdout).contains(" 1 passed;");
        outcome = match (ran, output.status.success()) {
            (true, true) => Outcome::Ok,
            (false, true) => Outcome::Missing,
            (_, false) => Outcome::Short,
        };
    }
    Ok(Measured { row, what, target: target.to_owned(), measured: None, close: false, outcome })
}

/// What was measured of each comparison.
fn read(
    wanted: &[&Comparison],
    estimates: &Estimates<'_>,
    failed: &[&str],
) -> Result<Vec<Option<Span>>, TaskError> {
    let one = |comparison: &&Comparison| {
        // What is there is of a run before this one.
        if failed.contains(&comparison.group) {
            return Ok(None);
        }
        let subject = estimates.median(comparison.group, comparison.subject)?;
        let rival = match comparison.rival {
            Some(rival) => estimates.median(comparison.group, rival)?,
            None => Some(Span::exactly(1.0)),
        };
        Ok(subject.zip(rival).map(|(subject, rival)| comparison.value(subject, rival)))
    };
    wanted.iter().map(one).collect()
}

/// Sets one comparison beside its target.
fn judge(comparison: &Comparison, measured: Option<Span>) -> Measured {
    let outcome = match measured {
        None => Outcome::Missing,
        Some(measured) if comparison.met(measured.median) => Outcome::Ok,
        Some(_) => Outcome::Short,
    };
    let close =
        measured.is_some_and(|measured| comparison.met(measured.low) != comparison.met(measured.high));
    Measured {
        row: comparison.row,
        what: comparison.what,
        target: comparison.target(),
        measured,
        close,
        outcome,
    }
}

/// A row that no benchmark measures.
fn unmeasured(row: u32) -> Measured {
    let (what, target) = ("no benchmark of this row", String::new());
    Measured { row, what, target, measured: None, close: false, outcome: Outcome::Missing }
}

fn print(results: &[Measured]) -> Result<(), TaskError> {
    let mut rows =
        vec![["row", "target", "measured", "spread", "outcome", "what"].map(str::to_owned).to_vec()];
    rows.extend(results.iter().map(|result| {
        let (measured, spread) = result.measured.map_or_else(
            || ("-".to_owned(), String::new()),
            |span| (format!("{:.3}", span.median), format!("{:.3}–{:.3}", span.low, span.high)),
        );
        let outcome = match result.outcome {
            Outcome::Ok => "ok",
            Outcome::Short => "SHORT",
            Outcome::Missing => "not measured",
        };
        let outcome = if result.close { format!("{outcome} (close)") } else { outcome.to_owned() };
        vec![result.row.to_string(), result.target.clone(), measured, spread, outcome, result.what.to_owned()]
    }));
    out::line("")?;
    out::table(&rows)
}
