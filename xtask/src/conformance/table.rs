//! The clause table: every clause, and what bears witness to it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    clauses::{Clause, FILE, Number, citations},
    scenarios::Performed,
    tests::{Citing, Known, Tests},
};
use crate::{error::TaskError, repo::Repo, report::Report};

/// One clause and its witnesses.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) clause: Number,
    pub(super) title: String,
    /// Scenarios that cite it and held.
    pub(super) scenarios: Vec<String>,
    /// Tests that cite it and passed.
    pub(super) tests: Vec<String>,
    /// Checks of this program that show it and found nothing wrong.
    pub(super) checks: Vec<&'static str>,
}

/// The checks of this program that are themselves witnesses.
const SHOWN_BY_CHECKS: &[(&str, &str)] = &[
    ("schemas", "§5.1"),
    ("fixtures", "§5.1"),
    ("audit log", "§3.6"),
    ("peer journals", "§5.10"),
    ("peer journals", "§7.2"),
];

impl Row {
    /// Whether anything bears witness.
    pub(super) fn covered(&self) -> bool {
        !self.scenarios.is_empty() || !self.tests.is_empty() || !self.checks.is_empty()
    }

    /// One witness, for the table.
    pub(super) fn witness(&self) -> &str {
        let check = self.checks.first().copied();
        self.scenarios.first().or(self.tests.first()).map(String::as_str).or(check).unwrap_or("NONE")
    }
}

/// Sets the witnesses beside the clauses.
pub(super) fn build(
    clauses: &[Clause],
    checks: &[Report],
    scenarios: &[Performed],
    citing: &[Citing],
    tests: &Tests,
    report: &mut Report,
) -> Vec<Row> {
    let row = |clause: &Clause| {
        let shows = |check: &&Report| {
            check.passed() && SHOWN_BY_CHECKS.contains(&(check.name, clause.number.to_string().as_str()))
        };
        let row = Row {
            clause: clause.number,
            title: clause.title.clone(),
            scenarios: Vec::new(),
            tests: Vec::new(),
            checks: checks.iter().filter(shows).map(|check| check.name).collect(),
        };
        (clause.number, row)
    };
    let mut rows: BTreeMap<Number, Row> = clauses.iter().map(row).collect();
    for scenario in scenarios {
        for number in &scenario.clauses {
            known(*number, clauses, &scenario.file, report);
            if let Some(row) = rows.get_mut(number)
                && scenario.held
            {
                row.scenarios.push(scenario.file.clone());
            }
        }
    }
    for test in citing {
        let passed = match tests.known(test) {
            Known::Passed(name) => Some(format!("{}: {name}", test.package)),
            Known::Failed(name) => {
                report.finding(&test.place, format!("the test {name} failed"), "see `cargo test`");
                None
            }
            Known::NotRun(name) => {
                report.finding(
                    &test.place,
                    format!("there is no word that the test {name} ran"),
                    "give a log of a whole `cargo test --workspace`",
                );
                None
            }
            // If nothing was built, that has been said already.
            Known::Absent if tests.count() == 0 => None,
            Known::Absent => {
                report.finding(
                    &test.place,
                    "cites a clause and is not among the tests that were built",
                    "build it always, or let it cite none",
                );
                None
            }
        };
        for number in &test.clauses {
            known(*number, clauses, &test.place, report);
            if let (Some(row), Some(name)) = (rows.get_mut(number), &passed) {
                row.tests.push(name.clone());
            }
        }
    }
    let rows: Vec<Row> = rows.into_values().collect();
    for row in rows.iter().filter(|row| !row.covered()) {
        report.finding(
            format!("{FILE} {}", row.clause),
            format!("nothing bears witness to \"{}\"", row.title),
            format!(
                "cite {} in the `about` of a scenario that shows it, or in the comment of a test",
                row.clause
            ),
        );
    }
    rows
}

/// Every citation in the sources and documents is of a clause that exists, whether or not a witness makes it.
pub(super) fn check_citations(repo: &Repo, clauses: &[Clause], report: &mut Report) -> Result<(), TaskError> {
    let mut files = repo.files("crates", "rs")?;
    files.extend(repo.files("docs", "md")?);
    files.extend(repo.files("schemas", "json")?);
    files.extend(repo.files("examples", "json")?);
    let mut count = 0;
    for path in files {
        let file = repo.show(&path);
        for (index, line) in repo.text(&path)?.lines().enumerate() {
            for number in citations(line) {
                count += 1;
                known(number, clauses, &format!("{file}:{}", index + 1), report);
            }
        }
    }
    report.fact(format!("{count} citations of clauses in sources, schemas, documents and examples"));
    Ok(())
}

/// Names a citation of a clause that does not exist. A whole section may be cited, though it bears witness to no clause.
fn known(number: Number, clauses: &[Clause], place: &str, report: &mut Report) {
    let exists = clauses.iter().any(|clause| {
        clause.number == number || number.part.is_none() && clause.number.section == number.section
    });
    let said = report
        .findings
        .iter()
        .any(|finding| finding.place == place && finding.what.contains(&format!("{number},")));
    if !exists && !said {
        report.finding(
            place,
            format!("cites {number}, which {FILE} does not have"),
            "cite a clause that exists",
        );
    }
}

#[cfg(test)]
mod unit {
    use super::{
        super::{
            clauses::clauses,
            tests::unit::{citing_f, made_up},
        },
        *,
    };

    const TEXT: &str = "## 1. One\n1.1 First.\n1.2 Second.\n";
    const PASSED: &str = "Running it (a-1)\ntest m::f ... ok";

    /// The faults of a table with one scenario and one test, by what they cite.
    fn faults(scenario: &str, held: bool, test: &str, log: &str) -> Vec<String> {
        let mut report = Report::new("x");
        let clauses = clauses(TEXT, &mut report);
        let scenario = Performed { file: "s.json".to_owned(), clauses: citations(scenario), held };
        let tests = made_up(&["m::f"], log);
        build(&clauses, &[], &[scenario], &[citing_f(test)], &tests, &mut report);
        report.findings.into_iter().map(|finding| format!("{}: {}", finding.place, finding.what)).collect()
    }

    #[test]
    fn every_clause_needs_a_witness_that_holds() {
        assert_eq!(faults("§1.1", true, "§1.2", PASSED), [""; 0]);
        assert_eq!(
            faults("§1.1", false, "§1.2", PASSED),
            ["docs/protocol.md §1.1: nothing bears witness to \"First\""]
        );
        assert_eq!(faults("§1.1, §1.2", true, "§1.2", "").len(), 1, "a test that did not run is named");
        assert_eq!(faults("§1.1", true, "§1.2", "").len(), 2, "and bears no witness");
    }

    #[test]
    fn a_witness_of_an_unknown_clause_is_a_fault() {
        assert_eq!(
            faults("§1.1, §1.2, §7.7", true, "§1.1", PASSED),
            ["s.json: cites §7.7, which docs/protocol.md does not have"]
        );
        assert_eq!(faults("§1.1, §1.2, §1", true, "§1", PASSED), [""; 0], "a section may be cited");
    }
}
