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
    rows::{LAST, ROWS, WEIGHED, Weighed, Weight},
};
use crate::{cargo, error::TaskError, measure::Scales, out, repo::Repo};

/// Where the whole of it is written.
const REPORT: &str = "target/bench-report.json";

/// Seconds of each benchmark in each round. Short ones and several rounds set subject and rival beside each other in time, which
/// long ones of one after the other do not.
const WARM_UP: &str = "1";
const MEASUREMENT: &str = "3";

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Numbers of rows; all of them if none is given
    rows: Vec<u32>,
    /// Compare what was measured before, and measure nothing
    #[arg(long, conflicts_with = "rounds")]
    no_run: bool,
    /// Measure so many times, subject and rival in turn, and take the median of the ratios
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
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
    /// The same of the floor, where there is one.
    floor: Option<Span>,
    /// Nanoseconds that a cache line took from core to core meanwhile, where that decides; of each round.
    lines: Vec<f64>,
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
            let of = |pick: fn(&Ratios) -> Option<Span>| {
                let spans: Vec<Span> = rounds.iter().filter_map(|round| pick(round.get(index)?)).collect();
                Span::middle(&spans)
            };
            let line = |round: &Vec<Ratios>| round.get(index)?.line.map(|line| line.median);
            let lines = rounds.iter().filter_map(line).collect();
            judge(comparison, of(|ratios| ratios.subject), of(|ratios| ratios.floor), lines)
        })
        .collect();
    let weighed: Vec<&Weighed> = WEIGHED.iter().filter(|weighed| asked(&weighed.row)).collect();
    if !weighed.is_empty() {
        let scales = if options.no_run { None } else { Some(Scales::new(repo)?) };
        for weighed in weighed {
            results.push(weigh(scales.as_ref(), weighed)?);
        }
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
        let cargo = ["bench", "--quiet", "--locked", "--package", package, "--bench", bench, "--"];
        let criterion = ["--warm-up-time", WARM_UP, "--measurement-time", MEASUREMENT, &filter];
        if !command(repo, &[&cargo[..], &criterion].concat())? {
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

/// Weighs, if there are scales, and sets it beside its target.
fn weigh(scales: Option<&Scales<'_>>, weighed: &Weighed) -> Result<Measured, TaskError> {
    let Weighed { row, what, weight, at_most } = *weighed;
    let mut outcome = Outcome::Missing;
    let mut measured = None;
    if let Some(scales) = scales {
        let bytes = match weight {
            Weight::Thing(thing) => scales.weigh(thing)?,
            Weight::Verifying => scales.verify()?.resident,
        };
        let mebibytes = bytes / f64::from(1 << 20);
        outcome = if mebibytes <= at_most { Outcome::Ok } else { Outcome::Short };
        measured = Some(Span::exactly(mebibytes));
    }
    Ok(Measured {
        row,
        what,
        target: format!("≤ {at_most} MiB"),
        measured,
        floor: None,
        lines: Vec::new(),
        close: false,
        outcome,
    })
}

/// A subject over its rival, and the floor over it; and what a cache line took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Ratios {
    subject: Option<Span>,
    floor: Option<Span>,
    line: Option<Span>,
}

/// What was measured of each comparison.
fn read(
    wanted: &[&Comparison],
    estimates: &Estimates<'_>,
    failed: &[&str],
) -> Result<Vec<Ratios>, TaskError> {
    let one = |comparison: &&Comparison| {
        // What is there is of a run before this one.
        if failed.contains(&comparison.group) {
            return Ok(Ratios::default());
        }
        let rival = match comparison.rival {
            Some(rival) => estimates.median(comparison.group, rival)?,
            None => Some(Span::exactly(1.0)),
        };
        let against = |bench: Option<Span>| bench.zip(rival).map(|(it, rival)| comparison.value(it, rival));
        let floor = comparison.floor.map(|floor| estimates.median(comparison.group, floor)).transpose()?;
        let subject = estimates.median(comparison.group, comparison.subject)?;
        let line =
            comparison.line.map(|line| estimates.median(comparison.group, line)).transpose()?.flatten();
        Ok(Ratios { subject: against(subject), floor: against(floor.flatten()), line })
    };
    wanted.iter().map(one).collect()
}

/// Sets one comparison beside its target.
fn judge(comparison: &Comparison, measured: Option<Span>, floor: Option<Span>, lines: Vec<f64>) -> Measured {
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
        floor,
        lines,
        close,
        outcome,
    }
}

/// A row that no benchmark measures.
fn unmeasured(row: u32) -> Measured {
    let (what, target) = ("no benchmark of this row", String::new());
    Measured {
        row,
        what,
        target,
        measured: None,
        floor: None,
        lines: Vec::new(),
        close: false,
        outcome: Outcome::Missing,
    }
}

fn print(results: &[Measured]) -> Result<(), TaskError> {
    let mut rows =
        vec![["row", "target", "measured", "spread", "floor", "outcome", "what"].map(str::to_owned).to_vec()];
    rows.extend(results.iter().map(|result| {
        let (measured, spread) = result.measured.map_or_else(
            || ("-".to_owned(), String::new()),
            |span| {
                // A thousandth has to be told from two.
                let digits = if span.median < 0.1 { 5 } else { 3 };
                let shown = |value: f64| format!("{value:.digits$}");
                (shown(span.median), format!("{}–{}", shown(span.low), shown(span.high)))
            },
        );
        let outcome = match result.outcome {
            Outcome::Ok => "ok",
            Outcome::Short => "SHORT",
            Outcome::Missing => "not measured",
        };
        let outcome = if result.close { format!("{outcome} (close)") } else { outcome.to_owned() };
        let floor = result.floor.map_or_else(String::new, |span| format!("{:.3}", span.median));
        let (row, target) = (result.row.to_string(), result.target.clone());
        vec![row, target, measured, spread, floor, outcome, result.what.to_owned()]
    }));
    out::line("")?;
    out::table(&rows)?;
    for result in results.iter().filter(|result| !result.lines.is_empty()) {
        let lines: Vec<String> = result.lines.iter().map(|line| format!("{line:.0}")).collect();
        let Measured { row, what, .. } = result;
        let lines = lines.join(", ");
        out::line(&format!("row {row}, {what}: a cache line took {lines} ns from core to core meanwhile"))?;
    }
    Ok(())
}
