//! The incidents of docs/incidents.md: each has a witness, a scenario named after it (`i09-….json`) that holds or a test that
//! cites it (`I09` in its comment, `i09_` in its name) and passed, and each is listed in the document.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    scenarios::Performed,
    tests::{Citing, Known, Tests},
};
use crate::{error::TaskError, repo::Repo, report::Report};

/// Where they are listed.
pub(super) const FILE: &str = "docs/incidents.md";

/// Incidents are numbered from 1 to this.
const LAST: u32 = 32;

/// One incident and its witnesses.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) incident: String,
    pub(super) witnesses: Vec<String>,
}

/// Sets the witnesses beside the incidents.
pub(super) fn check(
    repo: &Repo,
    scenarios: &[Performed],
    citing: &[Citing],
    tests: &Tests,
    report: &mut Report,
) -> Result<Vec<Row>, TaskError> {
    let mut witnesses: BTreeMap<u32, Vec<String>> = (1..=LAST).map(|id| (id, Vec::new())).collect();
    let mut bears = |id: u32, witness: String, report: &mut Report| match witnesses.get_mut(&id) {
        Some(list) => list.push(witness),
        None => report.finding(
            witness,
            format!("cites {}, which there is not", shown(id)),
            "cite one that exists",
        ),
    };
    for scenario in scenarios {
        let name = scenario.file.rsplit('/').next().unwrap_or_default();
        if let Some(id) = named(name)
            && scenario.held
        {
            bears(id, scenario.file.clone(), report);
        }
    }
    for test in citing {
        if let Known::Passed(name) = tests.known(test) {
            for id in &test.incidents {
                bears(*id, format!("{}: {name}", test.package), report);
            }
        }
    }
    let listed = match repo.text_if_there(&repo.path(FILE))? {
        Some(text) => cited(&text),
        None => {
            report.missing(FILE);
            (1..=LAST).collect()
        }
    };
    for (id, list) in &witnesses {
        if list.is_empty() {
            let fix =
                format!("write examples/incidents/i{id:02}-….json, or a test that cites {}", shown(*id));
            report.finding(shown(*id), "has no witness that holds", fix);
        }
        if !listed.contains(id) {
            report.finding(FILE, format!("does not list {}", shown(*id)), "list it with its witness");
        }
    }
    let with = witnesses.values().filter(|list| !list.is_empty()).count();
    report.fact(format!("{with} of {LAST} incidents have a witness"));
    Ok(witnesses.into_iter().map(|(id, witnesses)| Row { incident: shown(id), witnesses }).collect())
}

fn shown(id: u32) -> String {
    format!("I{id:02}")
}

/// The incident a scenario's file is named after.
pub(super) fn named(file: &str) -> Option<u32> {
    let digits = file.strip_prefix('i')?.split('-').next()?;
    (digits.len() == 2).then(|| digits.parse().ok()).flatten()
}

/// The incidents a text cites: `I09` as a word, or `i09_` at the start of a name.
pub(super) fn cited(text: &str) -> Vec<u32> {
    let words = text.split(|character: char| !character.is_alphanumeric());
    let mut found: Vec<u32> = words
        .filter_map(|word| word.strip_prefix(['I', 'i']))
        .filter(|digits| digits.len() == 2)
        .filter_map(|digits| digits.parse().ok())
        // `i16` and `i32` are types; in code only the capital counts unless it opens a name.
        .collect();
    found.retain(|id| text.contains(&shown(*id)) || text.contains(&format!("fn i{id:02}_")));
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn incidents_are_cited_in_words_and_names() {
        assert_eq!(cited("/// I09, I31–I32 (§4.4)"), [9, 31, 32]);
        assert_eq!(cited("fn i07_names_cannot_fake_a_header() {"), [7]);
        assert_eq!(cited("fn f(x: i32, y: i16) -> I8 {"), [0; 0]);
    }

    #[test]
    fn a_scenario_is_named_after_its_incident() {
        assert_eq!(named("i01-a-mistyped-name.json"), Some(1));
        assert_eq!(named("inbox-01.json"), None);
    }
}
