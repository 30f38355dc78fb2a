//! Asking a taxonomy which lanes may run together, before anybody leases anything (§6.7).

use std::fmt;

use fak_abi::Id;

use super::decide::{Region, Why};
use super::taxonomy::{Lane, Taxonomy};

/// Whether lanes may run together, as data: unknown names, and every pair that conflicts with the reason (§6.7).
#[derive(Clone, Debug, Default, Eq, PartialEq, serde::Serialize)]
pub struct Together {
    /// Names that are no lane, each with the nearest lane if one is near.
    pub unknown: Vec<(String, Option<Id>)>,
    /// Pairs that may not run together, in the order asked.
    pub conflicts: Vec<(Id, Id, Why)>,
}

impl Together {
    /// Whether every name is a lane and no pair conflicts.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.unknown.is_empty() && self.conflicts.is_empty()
    }
}

impl fmt::Display for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, nearest) in &self.unknown {
            write!(f, "unknown lane: {name:?}")?;
            match nearest {
                Some(nearest) => writeln!(f, ", the nearest known is {nearest:?}")?,
                None => writeln!(f)?,
            }
        }
        for (one, other, why) in &self.conflicts {
            writeln!(f, "conflict: lanes {one:?} and {other:?}: {why}")?;
        }
        Ok(())
    }
}

/// May these lanes be leased at once (§6.7)? A lane named twice conflicts with itself.
#[must_use]
pub fn run_together(taxonomy: &Taxonomy, names: &[&str]) -> Together {
    let mut together = Together::default();
    let mut lanes: Vec<(&Lane, Region)> = Vec::with_capacity(names.len());
    for name in names {
        let Some(lane) = taxonomy.lane(name) else {
            together.unknown.push(((*name).to_owned(), taxonomy.nearest(name).cloned()));
            continue;
        };
        let region = Region::from(lane);
        for (before, held) in &lanes {
            if let Some(why) = held.conflicts(&region) {
                together.conflicts.push((before.name.clone(), lane.name.clone(), why));
            }
        }
        lanes.push((lane, region));
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        [lanes]
        concurrent = ["docs", "model", "route", "bare"]
        exclusive = ["abi"]
        [lanes.trees]
        docs = ["docs/**"]
        model = ["src/model/**"]
        route = ["src/model_route/**"]
        abi = ["src/abi/**"]
    "#;

    #[test]
    fn lanes_together_name_every_pair_that_may_not() {
        let taxonomy = TABLE.parse().unwrap();
        assert!(run_together(&taxonomy, &["docs", "model", "route"]).is_clear());
        // A name that is no lane, or a conflict, is enough.
        for names in [&["docs", "dcos"][..], &["docs", "abi"], &["abi", "dcos", "docs"]] {
            assert!(!run_together(&taxonomy, names).is_clear(), "{names:?}");
        }
        let together = run_together(&taxonomy, &["docs", "abi", "docs", "dcos"]);
        assert_eq!(together.unknown, [("dcos".to_owned(), Some(Id::new("docs").unwrap()))]);
        let text = together.to_string();
        assert!(text.contains("unknown lane: \"dcos\", the nearest known is \"docs\""), "{text}");
        assert!(text.contains("conflict: lanes \"docs\" and \"abi\": one of them runs alone"), "{text}");
        let bare = run_together(&taxonomy, &["bare", "docs"]).to_string();
        assert_eq!(
            bare,
            "conflict: lanes \"bare\" and \"docs\": their trees overlap, by everything and \"docs/**\"\n"
        );
        let pairs: Vec<_> =
            together.conflicts.iter().map(|(a, b, why)| (a.as_str(), b.as_str(), why.clone())).collect();
        assert_eq!(
            pairs,
            [
                ("docs", "abi", Why::Exclusive),
                ("docs", "docs", Why::SameLane),
                ("abi", "docs", Why::Exclusive)
            ]
        );
    }
}
