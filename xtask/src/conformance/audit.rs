//! The audit log of a run (§3.6): each line is valid against its schema, the log verifies, and a copy without its second line does
//! not.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    cargo::{self, Program},
    error::TaskError,
    repo::Repo,
    report::Report,
    schemas::Schemas,
};

/// What is run to have a log.
const SCENARIOS: &str = "examples/scenarios";
const LOG: &str = "target/conformance/audit.jsonl";
const CUT: &str = "target/conformance/audit-cut.jsonl";

/// Makes a log and looks at it.
pub(super) fn check(repo: &Repo, fak: Option<&Program>, report: &mut Report) -> Result<(), TaskError> {
    let (Some(fak), true) = (fak, repo.path(SCENARIOS).is_dir()) else {
        report.missing("an audit log: the `fak` program and scenarios make one");
        return Ok(());
    };
    let log = repo.path(LOG);
    remove(&log)?;
    let arguments = ["run", "--quiet", "--audit", LOG, SCENARIOS].map(str::to_owned);
    cargo::output(&fak.path, &arguments, repo.root())?;
    let Some(text) = repo.text_if_there(&log)?.filter(|text| text.lines().count() > 2) else {
        report.finding(LOG, "the run left no log", format!("see `fak {}`", arguments.join(" ")));
        return Ok(());
    };
    lines(repo, &text, report)?;
    let cut: Vec<&str> = text.lines().take(1).chain(text.lines().skip(2)).collect();
    let path = repo.path(CUT);
    fs::write(&path, cut.join("\n") + "\n").map_err(|source| TaskError::Io {
        verb: "write",
        path,
        source,
    })?;
    for (file, wanted) in [(LOG, 0), (CUT, 1)] {
        let arguments = ["audit", "verify", file].map(str::to_owned);
        let status = cargo::output(&fak.path, &arguments, repo.root())?.status;
        if status.code() != Some(wanted) {
            let what = format!("`fak audit verify` ended with {status} and not with {wanted}");
            report.finding(file, what, format!("see `fak audit verify {file}`"));
        }
    }
    Ok(())
}

/// Holds each line to the schema; one finding is enough.
fn lines(repo: &Repo, text: &str, report: &mut Report) -> Result<(), TaskError> {
    let schemas = Schemas::load(repo, "schemas", report)?;
    let Some(schema) = schemas.named("fak.audit.v1") else {
        report.missing("the schema of fak.audit.v1");
        return Ok(());
    };
    let mut count = 0;
    for (index, line) in text.lines().enumerate() {
        count += 1;
        let place = format!("{LOG}:{}", index + 1);
        let value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            Err(error) => {
                report.finding(place, format!("is not JSON: {error}"), "mend what writes the log");
                break;
            }
        };
        if let Some(fault) = schema.faults(&value).into_iter().next() {
            let what = format!("at \"{}\": {}", fault.path, fault.message);
            report.finding(place, what, format!("mend what writes the log, or {}", schema.file));
            break;
        }
    }
    report.fact(format!("{count} lines of an audit log are valid"));
    Ok(())
}

fn remove(path: &Path) -> Result<(), TaskError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TaskError::Io { verb: "remove", path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
