//! The lint of a taxonomy: what in it is allowed but will surprise (§6.7). A report as data, and as text.

use std::collections::BTreeMap;
use std::fmt;

use fak_abi::Id;

use super::path::Meeting;
use super::taxonomy::{Lane, Listing, Note, Taxonomy};

/// Most overlaps a report lists; the rest is counted.
const MAX_OVERLAPS: usize = 10_000;

/// A lane listed more than once (§6.7).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Duplicate {
    /// Its name.
    pub lane: String,
    /// Every line that lists it, if it came as text.
    pub lines: Vec<usize>,
    /// How often it is listed, at least twice.
    pub times: usize,
}

/// Two lanes whose trees overlap, so that they never run together (§6.7).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Overlap {
    /// The two lanes, sorted.
    pub lanes: (Id, Id),
    /// The first pair of globs that overlap, in the same order.
    pub globs: (String, String),
}

/// What there is to say about a taxonomy (§6.7).
#[derive(Clone, Debug, Default, Eq, PartialEq, serde::Serialize)]
pub struct Lint {
    /// Lanes listed more than once, in order of first mention.
    pub duplicates: Vec<Duplicate>,
    /// Lanes without a tree: they overlap everything.
    pub without_tree: Vec<Id>,
    /// Trees whose name is no lane: nobody can lease them.
    pub without_lane: Vec<Listing>,
    /// Lanes with a glob that covers everything, each reported once and in no overlap.
    pub cover_all: Vec<Id>,
    /// Overlaps between any two other lanes.
    pub overlaps: Vec<Overlap>,
    /// Overlaps beyond the 10,000 listed.
    pub more_overlaps: usize,
    /// Keys that mean nothing here.
    pub notes: Vec<Note>,
}

impl Lint {
    /// Whether there is nothing to fix; notes need no fix.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings() == 0
    }

    /// How many findings there are, notes not counted.
    #[must_use]
    pub fn findings(&self) -> usize {
        self.duplicates.len()
            + self.without_tree.len()
            + self.without_lane.len()
            + self.cover_all.len()
            + self.overlaps.len()
            + self.more_overlaps
    }
}

impl Taxonomy {
    /// Reports what will surprise (§6.7).
    ///
    /// # Complexity
    ///
    /// Quadratic in the lanes, of which a taxonomy has at most 4,096.
    #[must_use]
    pub fn lint(&self) -> Lint {
        let mut lint = Lint {
            duplicates: duplicates(&self.listings),
            without_lane: self.orphans.clone(),
            notes: self.notes.clone(),
            ..Lint::default()
        };
        let mut narrow: Vec<&Lane> = Vec::new();
        for lane in self.lanes.values() {
            if lane.tree.globs().is_empty() {
                lint.without_tree.push(lane.name.clone());
            } else if lane.tree.covers_all() {
                lint.cover_all.push(lane.name.clone());
            } else {
                narrow.push(lane);
            }
        }
        for (at, lane) in narrow.iter().enumerate() {
            for other in narrow.iter().skip(at + 1) {
                let Some(Meeting { ours: Some(ours), theirs: Some(theirs) }) = lane.tree.meets(&other.tree)
                else {
                    continue;
                };
                if lint.overlaps.len() == MAX_OVERLAPS {
                    lint.more_overlaps += 1;
                    continue;
                }
                lint.overlaps.push(Overlap {
                    lanes: (lane.name.clone(), other.name.clone()),
                    globs: (ours.as_str().to_owned(), theirs.as_str().to_owned()),
                });
            }
        }
        lint
    }
}

fn duplicates(listings: &[Listing]) -> Vec<Duplicate> {
    let mut seen: BTreeMap<&str, (usize, Duplicate)> = BTreeMap::new();
    for (at, listing) in listings.iter().enumerate() {
        let (_, entry) = seen
            .entry(&listing.name)
            .or_insert_with(|| (at, Duplicate { lane: listing.name.clone(), lines: Vec::new(), times: 0 }));
        entry.times += 1;
        entry.lines.extend(listing.line);
    }
    let mut found: Vec<_> = seen.into_values().filter(|(_, d)| d.times > 1).collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, duplicate)| duplicate).collect()
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Duplicate { lane, lines, times } in &self.duplicates {
            write!(f, "duplicate: lane {lane:?} is listed {times} times")?;
            if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
                if first == last {
                    write!(f, " (line {first})")?;
                } else {
                    write!(f, " (lines {first} to {last})")?;
                }
            }
            writeln!(f)?;
        }
        for lane in &self.without_tree {
            writeln!(f, "lane without a tree: {lane:?} overlaps everything")?;
        }
        for tree in &self.without_lane {
            write!(f, "tree without a lane: {:?} cannot be leased", tree.name)?;
            match tree.line {
                Some(line) => writeln!(f, " (line {line})")?,
                None => writeln!(f)?,
            }
        }
        for lane in &self.cover_all {
            writeln!(f, "covers everything: lane {lane:?} runs beside no other")?;
        }
        for Overlap { lanes, globs } in &self.overlaps {
            writeln!(
                f,
                "overlap: lanes {:?} and {:?}, by {:?} and {:?}",
                lanes.0, lanes.1, globs.0, globs.1
            )?;
        }
        if self.more_overlaps > 0 {
            writeln!(f, "overlap: {} more", self.more_overlaps)?;
        }
        for Note { key, line } in &self.notes {
            writeln!(f, "note: key {key:?} means nothing here (line {line})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = include_str!("../../../../examples/lanes/workspace.toml");

    #[test]
    fn a_real_workspace_has_ten_duplicates_one_overlap_two_orphans_and_one_that_covers_all() {
        let lint = WORKSPACE.parse::<Taxonomy>().unwrap().lint();
        let names: Vec<_> = lint.duplicates.iter().map(|d| d.lane.as_str()).collect();
        assert_eq!(names.len(), 10);
        assert!(names.contains(&"devindex") && names.contains(&"slackoutbox"));
        assert!(lint.duplicates.iter().all(|d| d.times == 2 && d.lines.len() == 2));
        let overlaps: Vec<_> =
            lint.overlaps.iter().map(|o| (o.lanes.0.as_str(), o.lanes.1.as_str())).collect();
        assert_eq!(overlaps, [("docs", "release")]);
        let orphans: Vec<_> = lint.without_lane.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(orphans, ["capindex", "capindexgw"]);
        assert_eq!(lint.cover_all, [Id::new("global").unwrap()]);
        assert!(lint.without_tree.is_empty());
        assert_eq!(lint.notes.len(), 1);
        assert!(!lint.is_clean() && lint.findings() == 14);
        let text = lint.to_string();
        assert!(
            text.contains("overlap: lanes \"docs\" and \"release\", by \"docs/**\" and \"docs/releases/**\"")
        );
        assert!(text.contains("tree without a lane: \"capindex\" cannot be leased (line "));
    }

    #[test]
    fn a_lane_without_a_tree_is_reported_and_a_clean_table_is_clean() {
        let lint = "[lanes]\nconcurrent = [\"a\"]".parse::<Taxonomy>().unwrap().lint();
        assert_eq!(lint.to_string(), "lane without a tree: \"a\" overlaps everything\n");
        let lint =
            "[lanes]\nconcurrent = [\"a\"]\n[lanes.trees]\na = [\"a\"]".parse::<Taxonomy>().unwrap().lint();
        assert!(lint.is_clean());
        assert_eq!(lint.to_string(), "");
    }
}
