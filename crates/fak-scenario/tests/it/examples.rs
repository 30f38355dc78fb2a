//! The scenarios this project ships: readable, each citing the clauses it shows.

use std::path::{Path, PathBuf};

use fak_scenario::{Reach, Scenario, find};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn all(name: &str) -> Vec<Scenario> {
    let mut wrong = Vec::new();
    let mut read = Vec::new();
    for path in find(&folder(name)).unwrap() {
        match Scenario::load(&path, Reach::Folder) {
            Ok(scenario) => read.push(scenario),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    read
}

#[test]
fn every_example_is_read_and_cites_its_clauses() {
    for scenario in all("scenarios").iter().chain(&all("incidents")) {
        assert!(
            scenario.about().is_some_and(|about| about.contains('§')),
            "{}: \"about\" cites no clause",
            scenario.path().display()
        );
        assert!(!scenario.is_empty(), "{}", scenario.path().display());
    }
}
