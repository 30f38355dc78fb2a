//! `cargo xtask schemas`: this project's schemas obey their meta-schema, say what each member is, agree with each other, and
//! accept what the public ones accept. `set` loads them, `form` judges them, `compare` sets them beside the public ones.

mod compare;
mod form;
mod set;

pub(crate) use self::set::{Schema, Schemas};
use crate::{error::TaskError, repo::Repo, report::Report};

/// Where the public schemas and their fixtures are.
pub(crate) const PEER: &str = "examples/peer";

/// The schemas that have to be there, by the name an envelope declares.
const EXPECTED: &[&str] = &[
    "fak.a2a.correction-ack.v1",
    "fak.a2a.correction-audit.v1",
    "fak.a2a.correction.v1",
    "fak.a2a.worker-status.v1",
    "fak.audit.v1",
    "fak.policy.v1",
    "fak.run-report.v1",
    "fak.scenario.v1",
    "fak.shared-artifact-ref.v1",
    "fak.shared-event.v1",
    "fak.shared-held.v1",
    "fak.shared-patch-result.v1",
    "fak.shared-patch.v1",
    "fak.shared-task-journal.v1",
    "fak.shared-task.v1",
];

/// Judges every schema of `schemas/`.
pub(crate) fn check(repo: &Repo) -> Result<Report, TaskError> {
    let mut report = Report::new("schemas");
    let schemas = Schemas::load(repo, "schemas", &mut report)?;
    for name in EXPECTED.iter().filter(|name| schemas.named(name).is_none()) {
        report.missing(format!("the schema of {name} in schemas/"));
    }
    for schema in schemas.iter() {
        form::judge(schema, &mut report);
    }
    form::agree(&schemas, &mut report);
    report.fact(format!("{} schemas valid against their meta-schema", schemas.iter().count()));
    compare::compare(repo, &schemas, &mut report)?;
    Ok(report)
}
