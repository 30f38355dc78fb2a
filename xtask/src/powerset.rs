//! `cargo xtask powerset`: each crate by itself builds with every set of its features. In a build of the whole workspace the
//! features that one crate asks for are there for all, and hide that another forgot to ask.

use crate::{cargo, error::TaskError, repo::Repo, report::Report};

/// Above so many features of one crate the sets that matter have to be named.
const MOST: usize = 5;

/// Checks every library and program of the workspace but this one.
pub(crate) fn check(repo: &Repo) -> Result<Report, TaskError> {
    let mut report = Report::new("powerset");
    let metadata = cargo::metadata(repo)?;
    let (mut crates, mut builds) = (0, 0);
    for package in metadata.workspace_packages() {
        if package.name.as_str() == env!("CARGO_PKG_NAME") {
            continue;
        }
        crates += 1;
        let features: Vec<&str> =
            package.features.keys().map(String::as_str).filter(|name| *name != "default").collect();
        if features.len() > MOST {
            let what = format!("has {} features, so that their sets are too many to build", features.len());
            report.finding(
                package.name.to_string(),
                what,
                "name the sets that matter in xtask/src/powerset.rs",
            );
            continue;
        }
        for set in sets(&features) {
            builds += 1;
            let set = set.join(",");
            let arguments =
                ["check", "--package", &package.name, "--no-default-features", "--features", &set];
            cargo::build_or_report(repo, &arguments, &mut report)?;
        }
    }
    report.fact(format!("{crates} crates, {builds} sets of features"));
    Ok(report)
}

/// Every subset, the empty one first and all of them last.
fn sets<'f>(features: &[&'f str]) -> Vec<Vec<&'f str>> {
    features.iter().fold(vec![Vec::new()], |sets, feature| {
        let with: Vec<Vec<&str>> = sets.iter().map(|set| [set.as_slice(), &[*feature]].concat()).collect();
        [sets, with].concat()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_once() {
        assert_eq!(sets(&[]), [[""; 0]]);
        let mut found = sets(&["a", "b", "c"]);
        assert_eq!((found.len(), found.first().unwrap().len(), found.last().unwrap().len()), (8, 0, 3));
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 8);
    }
}
