//! `cargo xtask layering`: every edge between crates of the workspace goes down the layers, towards `fak-abi`, and is one of
//! those drawn. What the layers are is in `table`; how an edge is judged is in `judge`; that they are drawn so is `drawing`'s.

mod drawing;
mod judge;
mod table;

use cargo_metadata::DependencyKind;

use self::judge::{Edge, Use};
pub(crate) use self::table::place;
use crate::{cargo, error::TaskError, repo::Repo, report::Report};

/// Judges the workspace as cargo describes it.
pub(crate) fn check(repo: &Repo) -> Result<Report, TaskError> {
    let metadata = cargo::metadata(repo)?;
    let mut crates = Vec::new();
    let mut edges = Vec::new();
    for package in metadata.workspace_packages() {
        crates.push(package.name.to_string());
        for dependency in &package.dependencies {
            let used_for = match dependency.kind {
                DependencyKind::Development => Use::Tests,
                _ => Use::Product,
            };
            edges.push(Edge { from: package.name.to_string(), to: dependency.name.clone(), used_for });
        }
    }
    let mut report = Report::new("layering");
    let own = edges.iter().filter(|edge| crates.contains(&edge.to)).count();
    report.fact(format!("{} crates, {own} edges between them", crates.len()));
    report.findings = judge::judge(&crates, &edges);
    match repo.text_if_there(&repo.path(drawing::FILE))? {
        Some(text) => drawing::check(&text, &mut report),
        None => report.missing(drawing::FILE),
    }
    Ok(report)
}
