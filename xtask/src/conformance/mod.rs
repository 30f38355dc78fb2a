//! `cargo xtask conformance`: every other check, every scenario through the program and the library, the peer's journals, an audit log, the
//! documents, the example programs, and two tables: each clause of docs/protocol.md with what bears witness to it, and each
//! promise with the command that shows it. What is not there yet is said to be missing, and is no pass.

mod acceptance;
mod audit;
mod clauses;
mod docs;
mod incidents;
mod negatives;
mod peer;
mod scenarios;
#[cfg(test)]
mod sites;
mod table;
mod tests;
mod witnesses;

use std::path::PathBuf;

use serde::Serialize;

use crate::{
    api,
    cargo::{self, Place, Program},
    error::TaskError,
    examples, fixtures, layering, out,
    repo::Repo,
    report::{Report, Status},
    schemas, tidy,
};

pub(crate) use self::witnesses::run as write_witnesses;

/// Where the whole of it is written.
const REPORT: &str = "target/conformance/report.json";

/// How the tests are known to have passed.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// What `cargo test --workspace` printed; without it, the tests that cite clauses are run
    #[arg(long, value_name = "FILE")]
    test_log: Option<PathBuf>,
}

/// Everything that was found.
#[derive(Serialize)]
struct Whole {
    status: Status,
    checks: Vec<Report>,
    clauses: Vec<table::Row>,
    incidents: Vec<incidents::Row>,
    acceptance: Vec<acceptance::Row>,
}

/// Looks at everything, prints it, and writes it down.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<bool, TaskError> {
    let mut checks =
        vec![layering::check(repo)?, tidy::check(repo)?, schemas::check(repo)?, fixtures::check(repo)?];
    checks.push(api::check(repo, &api::Options::default())?);
    checks.push(examples::check(repo, &examples::Options::default())?);

    let mut report = Report::new("scenarios");
    let fak = program(repo, &mut report)?;
    let scenarios = scenarios::perform(repo, fak.as_ref(), &mut report)?;
    negatives::check(repo, fak.as_ref(), &mut report)?;
    checks.push(report);

    let mut report = Report::new("peer journals");
    peer::check(repo, fak.as_ref(), &mut report)?;
    checks.push(report);

    let mut report = Report::new("audit log");
    audit::check(repo, fak.as_ref(), &mut report)?;
    checks.push(report);

    let mut report = Report::new("documents");
    docs::check(repo, fak.as_ref(), &mut report)?;
    checks.push(report);

    let mut report = Report::new("clauses");
    let citing = tests::citing(repo, &mut report)?;
    let tests = tests::Tests::load(repo, options.test_log.as_deref(), &citing, &mut report)?;
    let clauses = clauses(repo, &checks, &scenarios, &citing, &tests, &mut report)?;
    let covered = report.passed();
    checks.push(report);

    let mut report = Report::new("incidents");
    let incidents = incidents::check(repo, &scenarios, &citing, &tests, &mut report)?;
    checks.push(report);

    let mut report = Report::new("acceptance");
    let acceptance = acceptance::check(repo, fak.as_ref(), &scenarios, covered, &mut report)?;
    checks.push(report);

    let status = checks.iter().map(Report::status).max().unwrap_or(Status::Incomplete);
    let whole = Whole { status, checks, clauses, incidents, acceptance };
    print(&whole)?;
    let path = repo.write_json(REPORT, &whole)?;
    out::line(&format!("\nconformance: {status} ({})", repo.show(&path)))?;
    Ok(status == Status::Ok)
}

/// The clause table.
fn clauses(
    repo: &Repo,
    checks: &[Report],
    scenarios: &[scenarios::Performed],
    citing: &[tests::Citing],
    tests: &tests::Tests,
    report: &mut Report,
) -> Result<Vec<table::Row>, TaskError> {
    let Some(text) = repo.text_if_there(&repo.path(clauses::FILE))? else {
        report.missing(clauses::FILE);
        return Ok(Vec::new());
    };
    let clauses = clauses::clauses(&text, report);
    let rows = table::build(&clauses, checks, scenarios, citing, tests, report);
    table::check_citations(repo, &clauses, report)?;
    witnesses::check(repo, citing, report)?;
    let covered = rows.iter().filter(|row| row.covered()).count();
    report.fact(format!(
        "{covered} of {} clauses have a witness; {} tests in all",
        rows.len(),
        tests.count()
    ));
    Ok(rows)
}

/// The `fak` program, built from this tree; there may be no such target yet.
fn program(repo: &Repo, report: &mut Report) -> Result<Option<Program>, TaskError> {
    let programs = cargo::build_or_report(repo, &["build", "--package", "fak-cli", "--bins"], report)?;
    Ok(programs.into_iter().find(|program| program.place == Place::Source && program.target == "fak"))
}

/// Prints the checks and both tables.
fn print(whole: &Whole) -> Result<(), TaskError> {
    for check in &whole.checks {
        out::report(check)?;
    }
    let mut rows = vec![["clause", "scenarios", "tests", "what", "witness"].map(str::to_owned).to_vec()];
    rows.extend(whole.clauses.iter().map(|row| {
        vec![
            row.clause.to_string(),
            row.scenarios.len().to_string(),
            row.tests.len().to_string(),
            row.title.clone(),
            row.witness().to_owned(),
        ]
    }));
    out::line("\nclause table")?;
    out::table(&rows)?;
    let mut rows = vec![["promise", "kept", "artefacts", "witness"].map(str::to_owned).to_vec()];
    rows.extend(whole.acceptance.iter().map(|row| {
        let kept = if row.kept { "yes" } else { "NO" };
        vec![row.what.to_owned(), kept.to_owned(), row.artefacts.clone(), row.witness.clone()]
    }));
    out::line("\nacceptance table")?;
    out::table(&rows)
}
