//! Every scenario of `examples/scenarios` and `examples/incidents`, performed by the `fak` program and by the library, which must
//! say the same. That they are valid is `fixtures`' to say.

use std::path::{Path, PathBuf};

use fak_scenario::{Performance, Reach, RunReport, Scenario, Summary};
use serde_json::Value;

use super::clauses::{Number, citations};
use crate::{
    cargo::{self, Program},
    error::TaskError,
    repo::Repo,
    report::Report,
    schemas::Schemas,
};

/// Where the scenarios are.
const FOLDERS: &[&str] = &["examples/scenarios", "examples/incidents"];

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
    if fak.is_none() {
        report.missing("the `fak` program");
    }
    let schemas = Schemas::load(repo, "schemas", report)?;
    let mut performed = Vec::new();
    for folder in FOLDERS {
        let files = scenario_files(repo, folder)?;
        if files.is_empty() {
            report.missing(format!("scenarios in {folder}"));
        }
        let mut holding = 0;
        for (path, scenario) in &files {
            let file = repo.show(path);
            let by_program = match fak {
                Some(fak) => by_program(repo, fak, &file, &schemas, report)?,
                None => Answer { held: false, steps: None, said: "there is no `fak` program".to_owned() },
            };
            let by_library = by_library(path);
            let held = by_program.held && by_library.held && by_program.steps == by_library.steps;
            if !held {
                report.finding(
                    &file,
                    disagreement(&by_program, &by_library),
                    format!("see `fak run {file}`"),
                );
            }
            holding += usize::from(held);
            let about = scenario.get("about").and_then(Value::as_str).unwrap_or_default();
            performed.push(Performed { file, clauses: citations(about), held });
        }
        report.fact(format!("{folder}: {holding} of {} hold, by program and by library", files.len()));
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

/// What came of a scenario, one way.
struct Answer {
    held: bool,
    /// Each act's line of the report.
    steps: Option<Value>,
    /// Why it did not hold.
    said: String,
}

/// Performs a scenario as a user does.
fn by_program(
    repo: &Repo,
    fak: &Program,
    file: &str,
    schemas: &Schemas,
    report: &mut Report,
) -> Result<Answer, TaskError> {
    let arguments = ["run", "--json", file].map(str::to_owned);
    let output = cargo::output(&fak.path, &arguments, repo.root())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().take(4).collect();
    let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    if let Some((answer, schema)) = answer.as_ref().and_then(|answer| Some((answer, schemas.of(answer)?))) {
        for fault in schema.faults(answer) {
            let place = format!("{file}: its report, at \"{}\"", fault.path);
            report.finding(place, fault.message, format!("make it valid: {}", schema.file));
        }
    }
    Ok(Answer {
        held: output.status.success(),
        steps: answer.as_ref().and_then(steps),
        said: format!("{}: {}", output.status, said.join(" / ")),
    })
}

/// Performs a scenario as a host program does.
fn by_library(path: &Path) -> Answer {
    let report = match Scenario::load(path, Reach::Folder)
        .and_then(|scenario| scenario.perform(&Performance::default()))
    {
        Ok(report) => report,
        Err(error) => return Answer { held: false, steps: None, said: error.to_string() },
    };
    let mut summary = Summary::default();
    summary.add(&report);
    let mismatch = report.steps.iter().find_map(|step| Some((step, step.mismatches.first()?)));
    let said =
        mismatch.map_or_else(String::new, |(step, mismatch)| format!("step {}: {mismatch}", step.number));
    let held = report.held();
    let text = RunReport::new(summary, &[report], &[]).to_json();
    Answer { held, steps: serde_json::from_str(&text).ok().as_ref().and_then(steps), said }
}

/// The acts of a report, without what differs by where the file is.
fn steps(report: &Value) -> Option<Value> {
    report.pointer("/scenarios/0/steps").cloned()
}

fn disagreement(program: &Answer, library: &Answer) -> String {
    match (program.held, library.held) {
        (true, true) => "the program and the library report different acts".to_owned(),
        (true, false) => format!("holds by the program and not by the library: {}", library.said),
        (false, true) => format!("holds by the library and not by the program: {}", program.said),
        (false, false) => {
            format!("does not hold: {}", if library.said.is_empty() { &program.said } else { &library.said })
        }
    }
}
