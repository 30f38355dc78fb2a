//! The acceptance table: what the project promises, the artefact that keeps the promise, and the command that shows it. The
//! command is run; each promise is listed in docs/acceptance.md.

use serde::Serialize;

use super::{clauses::Number, scenarios::Performed};
use crate::{
    cargo::{self, Program},
    error::TaskError,
    repo::Repo,
    report::Report,
};

/// Where they are listed for people, with commands that the check of the documents runs.
const FILE: &str = "docs/acceptance.md";

/// One promise.
struct Promise {
    /// What is promised.
    what: &'static str,
    /// The files and folders that have to be there.
    artefacts: &'static [&'static str],
    /// How it is shown.
    witness: Witness,
}

/// What shows that a promise is kept.
enum Witness {
    /// `fak` with these arguments ends well.
    Program(&'static [&'static str]),
    /// Every scenario that cites one of these sections or clauses (`5.11`, or a whole `6.`) holds.
    Scenarios(&'static [&'static str]),
    /// The clause table has no gap.
    ClauseTable,
}

const PROMISES: &[Promise] = &[
    Promise {
        what: "message passing",
        artefacts: &["crates/fak-a2achan/src/lib.rs"],
        witness: Witness::Program(&["demo"]),
    },
    Promise {
        what: "message passing: every rule",
        artefacts: &["examples/scenarios"],
        witness: Witness::Scenarios(&["4."]),
    },
    Promise {
        what: "shared key-value space",
        artefacts: &["crates/fak-sharedtask/src/lib.rs"],
        witness: Witness::Scenarios(&["5.11"]),
    },
    Promise {
        what: "shared cache",
        artefacts: &["crates/fak-adjudicate/src/lib.rs"],
        witness: Witness::Scenarios(&["3.9"]),
    },
    Promise {
        what: "shared task record",
        artefacts: &[
            "crates/fak-sharedtask/src/lib.rs",
            "schemas/shared-task.v1.json",
            "examples/peer/journals/journal-a.json",
        ],
        witness: Witness::Program(&["journal", "verify", "examples/peer/journals/journal-a.json"]),
    },
    Promise {
        what: "coordination: barriers, collectives, splits",
        artefacts: &["crates/fak-comm/src/lib.rs"],
        witness: Witness::Scenarios(&["6.2", "6.3", "6.4", "6.5", "6.6"]),
    },
    Promise {
        what: "coordination: lane leases",
        artefacts: &["crates/fak-comm/src/lib.rs", "examples/lanes/workspace.toml"],
        witness: Witness::Scenarios(&["6.7"]),
    },
    Promise {
        what: "coordination: enforced topology",
        artefacts: &["crates/fak-agenttopo/src/lib.rs"],
        witness: Witness::Scenarios(&["6.9"]),
    },
    Promise {
        what: "one kernel for every act",
        artefacts: &["crates/fak-adjudicate/src/lib.rs"],
        witness: Witness::Scenarios(&["1.4", "3."]),
    },
    Promise {
        what: "specification",
        artefacts: &["docs/protocol.md", "schemas/scenario.v1.json", "schemas/policy.v1.json"],
        witness: Witness::ClauseTable,
    },
];

/// A promise and whether it was kept.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) artefacts: String,
    pub(super) witness: String,
    pub(super) kept: bool,
}

/// Keeps the table honest: the artefacts are there and the witnesses hold.
pub(super) fn check(
    repo: &Repo,
    fak: Option<&Program>,
    scenarios: &[Performed],
    clauses_covered: bool,
    report: &mut Report,
) -> Result<Vec<Row>, TaskError> {
    let mut rows = Vec::new();
    let document = repo.text_if_there(&repo.path(FILE))?;
    if document.is_none() {
        report.missing(FILE);
    }
    for promise in PROMISES {
        let row = format!("| {} |", promise.what);
        if document.as_ref().is_some_and(|text| !text.contains(&row)) {
            report.finding(FILE, format!("does not list \"{}\"", promise.what), "list it with its witness");
        }
        let absent: Vec<&str> =
            promise.artefacts.iter().copied().filter(|artefact| !repo.path(artefact).exists()).collect();
        for artefact in &absent {
            report.missing(format!("{artefact} ({})", promise.what));
        }
        let (witness, holds) = match &promise.witness {
            Witness::Program(arguments) => by_program(repo, fak, arguments)?,
            Witness::Scenarios(clauses) => by_scenarios(promise.what, clauses, scenarios, report),
            Witness::ClauseTable => ("cargo xtask conformance".to_owned(), clauses_covered),
        };
        let kept = holds && absent.is_empty();
        if !kept {
            report.finding(promise.what, "this promise is not kept", format!("see `{witness}`"));
        }
        rows.push(Row { what: promise.what, artefacts: promise.artefacts.join(", "), witness, kept });
    }
    report.fact(format!("{} of {} promises kept", rows.iter().filter(|row| row.kept).count(), rows.len()));
    Ok(rows)
}

fn by_program(repo: &Repo, fak: Option<&Program>, arguments: &[&str]) -> Result<(String, bool), TaskError> {
    let shown = format!("fak {}", arguments.join(" "));
    let Some(fak) = fak else { return Ok((shown, false)) };
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let output = cargo::output(&fak.path, &arguments, repo.root())?;
    // A program that says nothing shows nothing.
    let holds = output.status.success() && !output.stdout.is_empty();
    Ok((shown, holds))
}

fn by_scenarios(
    what: &str,
    clauses: &[&str],
    scenarios: &[Performed],
    report: &mut Report,
) -> (String, bool) {
    let citing: Vec<&Performed> = scenarios
        .iter()
        .filter(|scenario| scenario.clauses.iter().any(|number| among(*number, clauses)))
        .collect();
    let shown = match citing.as_slice() {
        [] => "no scenario".to_owned(),
        [one] => format!("fak run {}", one.file),
        [first, rest @ ..] => format!("fak run {} … ({} more)", first.file, rest.len()),
    };
    if citing.is_empty() {
        report.missing(format!(
            "a scenario that cites {} ({what})",
            clauses.iter().map(|clause| format!("§{clause}")).collect::<Vec<_>>().join(" or ")
        ));
    }
    (shown, !citing.is_empty() && citing.iter().all(|scenario| scenario.held))
}

/// Whether a clause is one of those written down, or of a section written `6.`.
fn among(number: Number, clauses: &[&str]) -> bool {
    let shown = number.to_string();
    let shown = shown.trim_start_matches('§');
    clauses
        .iter()
        .any(|clause| if clause.ends_with('.') { shown.starts_with(clause) } else { shown == *clause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_chosen_one_by_one_or_by_section() {
        let number = |section, part| Number { section, part: Some(part) };
        assert!(among(number(6, 5), &["6.5"]) && among(number(6, 5), &["6."]));
        assert!(!among(number(6, 5), &["6.50", "5."]) && !among(number(6, 50), &["6.5"]));
    }
}
