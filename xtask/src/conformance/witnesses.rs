//! `cargo xtask witnesses`: writes the lines `Witness: …` of docs/protocol.md and docs/incidents.md anew, from what scenarios and
//! tests cite. Conformance asks that the tests these lines name are there; that they hold is for its tables to say.

use serde_json::Value;

use super::{
    clauses::{self, Number, citations},
    incidents,
    tests::{self, Citing},
};
use crate::{error::TaskError, repo::Repo, report::Report};

/// Scenarios and tests that a line of the protocol names; of more it says that there are more.
const SCENARIOS: usize = 6;
const TESTS: usize = 4;

/// A scenario, and what it says it shows.
struct Cited {
    /// The file, relative to the root.
    file: String,
    clauses: Vec<Number>,
    incident: Option<u32>,
}

/// Writes the lines that are not as they would be now.
pub(crate) fn run(repo: &Repo) -> Result<Report, TaskError> {
    let mut report = Report::new("witnesses");
    let scenarios = scenarios(repo)?;
    let citing = tests::citing(repo, &mut report)?;
    let mut written = 0;
    for (file, line) in [
        (clauses::FILE, of_clause as fn(&str, &[Cited], &[Citing]) -> Option<String>),
        (incidents::FILE, of_incident),
    ] {
        let path = repo.path(file);
        let text = repo.text(&path)?;
        let new = rewritten(&text, |heading| line(heading, &scenarios, &citing));
        written += text.lines().zip(new.lines()).filter(|(old, new)| old != new).count();
        if new != text {
            repo.write(&path, &new)?;
        }
    }
    report.fact(format!("{written} lines written"));
    Ok(report)
}

/// Every test that a line names is one that cites something, and is where the line says.
pub(super) fn check(repo: &Repo, citing: &[Citing], report: &mut Report) -> Result<(), TaskError> {
    for file in [clauses::FILE, incidents::FILE] {
        let Some(text) = repo.text_if_there(&repo.path(file))? else { continue };
        for (index, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("Witness:")) {
            for (name, path) in named(line) {
                if !citing.iter().any(|test| test.function() == name && test.file() == path) {
                    report.finding(
                        format!("{file}:{}", index + 1),
                        format!("names the test \"{name}\" in {path}, which cites nothing or is not there"),
                        "run `cargo xtask witnesses`",
                    );
                }
            }
        }
    }
    Ok(())
}

/// The tests a line names, with their files.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`: ")?.1.split_once("](../")?;
        Some((name, rest.split_once(')')?.0))
    })
}

fn scenarios(repo: &Repo) -> Result<Vec<Cited>, TaskError> {
    let mut found = Vec::new();
    for folder in ["examples/incidents", "examples/scenarios"] {
        for path in repo.files(folder, "json")? {
            let file = repo.show(&path);
            let about = repo.json(&path)?.get("about").and_then(Value::as_str).map(citations);
            let incident = file.rsplit('/').next().and_then(incidents::named);
            found.push(Cited { file, clauses: about.unwrap_or_default(), incident });
        }
    }
    Ok(found)
}

/// The text with each line of witnesses as the heading before it has it.
fn rewritten(text: &str, line: impl Fn(&str) -> Option<String>) -> String {
    let mut heading = "";
    let mut out = String::with_capacity(text.len());
    for old in text.lines() {
        if old.starts_with('#') {
            heading = old;
        }
        match old.starts_with("Witness:").then(|| line(heading)).flatten() {
            Some(new) => out.push_str(&format!("Witness: {new}.")),
            None => out.push_str(old),
        }
        out.push('\n');
    }
    out
}

/// What bears witness to the clause of a heading; none if only this program's own checks do.
fn of_clause(heading: &str, scenarios: &[Cited], citing: &[Citing]) -> Option<String> {
    let number = *citations(heading).first()?;
    let files: Vec<&str> = scenarios
        .iter()
        .filter(|scenario| scenario.clauses.contains(&number))
        .map(|scenario| &*scenario.file)
        .collect();
    let tests: Vec<&Citing> = citing.iter().filter(|test| test.clauses.contains(&number)).collect();
    let mut parts = Vec::new();
    if !files.is_empty() {
        let shown: Vec<String> = files.iter().take(SCENARIOS).map(|file| scenario(file)).collect();
        parts.push(format!("scenarios {}{}", shown.join(", "), more(files.len(), SCENARIOS)));
    }
    if !tests.is_empty() {
        let shown: Vec<String> = tests.iter().take(TESTS).map(|citing| test(citing)).collect();
        parts.push(format!("tests {}{}", shown.join(", "), more(tests.len(), TESTS)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What bears witness to the incident of a heading, all of it.
fn of_incident(heading: &str, scenarios: &[Cited], citing: &[Citing]) -> Option<String> {
    let id = *incidents::cited(heading).first()?;
    let files =
        scenarios.iter().filter(|cited| cited.incident == Some(id)).map(|cited| scenario(&cited.file));
    let tests = citing.iter().filter(|citing| citing.incidents.contains(&id)).map(test);
    let all: Vec<String> = files.chain(tests).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn scenario(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".json");
    format!("[{name}](../{file})")
}

fn test(citing: &Citing) -> String {
    format!("[`{}`: {}](../{})", citing.package, citing.function(), citing.file())
}

fn more(count: usize, shown: usize) -> &'static str {
    if count > shown { " and more" } else { "" }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn lines_follow_their_heading_and_nothing_else_changes() {
        let text = "# §1.1 A\n\nprose\nWitness: old.\n\n# §1.2 B\nWitness: by checks.\n";
        let new = rewritten(text, |heading| heading.contains("1.1").then(|| "new".to_owned()));
        assert_eq!(new, "# §1.1 A\n\nprose\nWitness: new.\n\n# §1.2 B\nWitness: by checks.\n");
    }

    #[test]
    fn the_tests_a_line_names_are_read_back() {
        let line = "Witness: scenarios [a](../examples/a.json); tests [`fak-x`: one](../crates/x/src/a.rs), [`fak-y`: two](../b.rs) and more.";
        let read: Vec<_> = named(line).collect();
        assert_eq!(read, [("one", "crates/x/src/a.rs"), ("two", "b.rs")]);
    }
}
