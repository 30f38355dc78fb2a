//! `cargo xtask tidy`: house rules that neither rustc nor clippy knows. `source` reads Rust far enough to tell code from
//! comments, strings and tests; `rules` are the rules over it.

mod rules;
mod source;

use self::source::Source;
pub(crate) use self::source::blank;
use crate::{error::TaskError, repo::Repo, report::Report};

/// Holds every Rust file of the workspace to the rules.
pub(crate) fn check(repo: &Repo) -> Result<Report, TaskError> {
    let mut report = Report::new("tidy");
    let mut files = repo.files("crates", "rs")?;
    files.extend(repo.files("xtask", "rs")?);
    let mut lines = 0;
    let mut excused = Vec::new();
    for path in &files {
        let source = Source::read(&repo.show(path), &repo.text(path)?);
        lines += source.lines.len();
        for fault in rules::faults(&source) {
            let place = format!("{}:{}", source.path, fault.line);
            match source.excuse(fault.line, fault.rule) {
                Some(reason) => excused.push(format!("excused {place} from {}: {reason}", fault.rule)),
                None => report.finding(place, format!("{} ({})", fault.what, fault.rule), fault.fix),
            }
        }
    }
    report.fact(format!("{} files, {lines} lines, {} rules", files.len(), rules::COUNT));
    report.facts.append(&mut excused);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_crate_is_tidy() {
        let repo = Repo::locate().unwrap();
        for path in repo.files("xtask", "rs").unwrap() {
            let source = Source::read(&repo.show(&path), &repo.text(&path).unwrap());
            let faults = rules::faults(&source);
            assert!(faults.is_empty(), "{}: {faults:?}", source.path);
        }
    }
}
