//! Every scenario of `examples/scenarios` and `examples/incidents`, performed by the `fak` program and by the library. That they
//! are valid is `fixtures`' to say.

use std::path::PathBuf;

use serde_json::Value;

use super::clauses::{Number, citations};
use crate::{
    cargo::{self, Program},
    error::TaskError,
    repo::Repo,
    report::Report,
};

/// Where the scenarios are.
pub(super) const FOLDERS: &[&str] = &["examples/scenarios", "examples/incidents"];

/// One scenario and how it ended.
#[derive(Clone, Debug)]
pub(super) struct Performed {
    /// The file, relative to the root.
    pub(super) file: String,
    /// The clauses its `about` cites.
    pub(super) clauses: Vec<Number>,
    /// Whether it held, by program and by library.
    pub(super) held: bool,
}

/// Performs every scenario.
pub(super) fn perform(
    repo: &Repo,
    fak: Option<&Program>,
    report: &mut Report,
) -> Result<Vec<Performed>, TaskError> {
    let mut performed = Vec::new();
    for folder in FOLDERS {
        let files = scenario_files(repo, folder)?;
        if files.is_empty() {
            report.missing(format!("scenarios in {folder}"));
        }
        let mut held = 0;
        for (path, scenario) in &files {
            let file = repo.show(path);
            let before = report.findings.len();
            by_program(repo, fak, &file, report)?;
            let about = scenario.get("about").and_then(Value::as_str).unwrap_or_default();
            let held_here = before == report.findings.len() && fak.is_some();
            held += usize::from(held_here);
            performed.push(Performed { file, clauses: citations(about), held: held_here });
        }
        report.fact(format!("{folder}: {held} of {} hold", files.len()));
    }
    Ok(performed)
}

/// The JSON files of a folder that are scenarios; others are what scenarios refer to.
fn scenario_files(repo: &Repo, folder: &str) -> Result<Vec<(PathBuf, Value)>, TaskError> {
    let mut found = Vec::new();
    for path in repo.files(folder, "json")? {
        let value = repo.json(&path)?;
        if value.get("schema").and_then(Value::as_str) == Some("fak.scenario.v1") {
            found.push((path, value));
        }
    }
    Ok(found)
}

/// Performs a scenario as a user does.
fn by_program(repo: &Repo, fak: Option<&Program>, file: &str, report: &mut Report) -> Result<(), TaskError> {
    let Some(fak) = fak else { return Ok(()) };
    let arguments = ["run", "--json", file].map(str::to_owned);
    let output = cargo::output(&fak.path, &arguments, repo.root())?;
    if !output.status.success() {
        let said =
            String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr })
                .into_owned();
        let said: Vec<&str> = said.lines().take(6).collect();
        report.finding(
            file,
            format!("`fak run` ended with {}: {}", output.status, said.join(" / ")),
            format!("see `fak run {file}`"),
        );
    }
    Ok(())
}
