//! What the schemas refuse the program refuses too: each scenario of `examples/negative/` handed to `fak run`, which must call it
//! unreadable. Schema and parser were written apart; this keeps them together.

use std::fs;

use crate::{
    cargo::{self, Program},
    error::TaskError,
    fixtures,
    repo::Repo,
    report::Report,
};

/// Where the scenarios are written to be read by the program.
const FOLDER: &str = "target/conformance/negative";

/// `fak run` ends so when a file could not be read as a scenario.
const UNREADABLE: i32 = 2;

/// Shows each to the program.
pub(super) fn check(repo: &Repo, fak: Option<&Program>, report: &mut Report) -> Result<(), TaskError> {
    let Some(fak) = fak else { return Ok(()) };
    let mut refused = 0;
    for (name, negative) in fixtures::negatives(repo)? {
        if negative.schema != "fak.scenario.v1" {
            continue;
        }
        let path = repo.write_json(&format!("{FOLDER}/{name}"), &negative.value)?;
        let file = repo.show(&path);
        let output = cargo::output(&fak.path, &["run".to_owned(), file.clone()], repo.root())?;
        if output.status.code() == Some(UNREADABLE) {
            refused += 1;
            continue;
        }
        report.finding(
            format!("examples/negative/{name}"),
            format!("`fak run` ended with {} and not with {UNREADABLE}", output.status),
            format!("make the parser refuse it, or the schema accept it: {}", negative.about),
        );
    }
    let folder = repo.path(FOLDER);
    if folder.is_dir() {
        fs::remove_dir_all(&folder).map_err(|source| TaskError::Io {
            verb: "remove",
            path: folder,
            source,
        })?;
    }
    report.fact(format!("{refused} scenarios that the schema refuses are unreadable to `fak run`"));
    Ok(())
}
