//! The taxonomy: which lanes there are, which of them run alone, and each one's tree. Reading it from TOML is in
//! `text`, judging it in `lint`.

use std::collections::{BTreeMap, BTreeSet};

use fak_abi::Id;
use fak_abi::json::nearest;

use super::path::{Glob, MAX_GLOBS, Tree};
use crate::error::{CommError, Place};

/// Most lanes and trees of a taxonomy: the lint compares them in pairs.
const MAX_LANES: usize = 4_096;

/// Most globs of all trees together: the lint compares them in pairs.
const MAX_TREE_GLOBS: usize = 16_384;

/// A name as a list gives it, with its line when it came as text (§6.7).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Listing {
    /// The lane's name.
    pub name: String,
    /// Line, from 1; absent for a table that was not read from text.
    pub line: Option<usize>,
}

impl From<&str> for Listing {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), line: None }
    }
}

/// A lane table before it is checked (§6.7): what `[lanes]` and `[lanes.trees]` say.
#[derive(Clone, Debug, Default)]
pub struct LaneSpec {
    /// Lanes that run beside others.
    pub concurrent: Vec<Listing>,
    /// Lanes that run alone.
    pub exclusive: Vec<Listing>,
    /// Globs by lane.
    pub trees: Vec<(Listing, Vec<Listing>)>,
}

/// A key of a lane table that means nothing here: noted, not refused (§6.7).
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct Note {
    /// Dotted key.
    pub key: String,
    /// Line, from 1.
    pub line: usize,
}

/// One lane (§6.7).
#[derive(Clone, Debug)]
pub struct Lane {
    pub(super) name: Id,
    pub(super) exclusive: bool,
    pub(super) tree: Tree,
}

impl Lane {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Id {
        &self.name
    }

    /// Whether it runs alone.
    #[must_use]
    pub const fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Its tree; one without globs covers everything.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }
}

/// The lanes of a workspace (§6.7). Immutable once read.
///
/// ```
/// use fak_comm::Taxonomy;
///
/// let lanes: Taxonomy = "[lanes]\nconcurrent = [\"docs\", \"code\"]\n[lanes.trees]\ndocs = [\"docs/**\"]\n".parse()?;
/// assert_eq!(lanes.lanes().len(), 2);
/// assert_eq!(lanes.nearest("dcos").map(|lane| lane.as_str()), Some("docs"));
/// // A lane without a tree claims everything, which the lint says.
/// assert_eq!(lanes.lint().without_tree.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Taxonomy {
    pub(super) lanes: BTreeMap<Id, Lane>,
    /// Every mention in the two lists, in order, for the lint.
    pub(super) listings: Vec<Listing>,
    /// Trees whose name is in neither list.
    pub(super) orphans: Vec<Listing>,
    pub(super) notes: Vec<Note>,
}

impl Taxonomy {
    /// Checks a lane table. A lane in both lists runs alone.
    ///
    /// # Errors
    ///
    /// [`CommError::Lanes`] for a name that is not an id, a tree given twice, or more lanes or globs than
    /// the limits; [`CommError::Path`] for a glob that leaves the workspace.
    pub fn new(spec: LaneSpec) -> Result<Self, CommError> {
        let LaneSpec { concurrent, exclusive, trees } = spec;
        let mentions = concurrent.len().saturating_add(exclusive.len()).saturating_add(trees.len());
        if mentions > MAX_LANES {
            return Err(fault(None, "lanes", format!("{mentions} names, expected at most {MAX_LANES}")));
        }
        let globs: usize = trees.iter().map(|(_, globs)| globs.len()).sum();
        if globs > MAX_TREE_GLOBS {
            return Err(fault(
                None,
                "lanes.trees",
                format!("{globs} globs, expected at most {MAX_TREE_GLOBS}"),
            ));
        }
        let mut taxonomy = Self::default();
        for (list, names, alone) in
            [("lanes.concurrent", concurrent, false), ("lanes.exclusive", exclusive, true)]
        {
            for listing in names {
                let name = name_of(&listing, list)?;
                let lane = taxonomy.lanes.entry(name.clone()).or_insert_with(|| Lane {
                    name,
                    exclusive: false,
                    tree: Tree::default(),
                });
                lane.exclusive |= alone;
                taxonomy.listings.push(listing);
            }
        }
        let mut seen: BTreeSet<Id> = BTreeSet::new();
        for (listing, globs) in trees {
            let name = name_of(&listing, "lanes.trees")?;
            let key = format!("lanes.trees.{}", listing.name);
            if !seen.insert(name.clone()) {
                return Err(fault(
                    listing.line,
                    &key,
                    "the tree is given twice, expected it once".to_owned(),
                ));
            }
            let tree = read_tree(&key, listing.line, globs)?;
            match taxonomy.lanes.get_mut(&name) {
                Some(lane) => lane.tree = tree,
                None => taxonomy.orphans.push(listing),
            }
        }
        Ok(taxonomy)
    }

    /// The lane of that name.
    #[must_use]
    pub fn lane(&self, name: &str) -> Option<&Lane> {
        self.lanes.get(name)
    }

    /// The lane whose name is nearest to one that is none, if one is near.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&Id> {
        let known = nearest(name, self.lanes.keys().map(Id::as_str))?;
        self.lanes.get(known).map(Lane::name)
    }

    /// Every lane, sorted by name.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = &Lane> {
        self.lanes.values()
    }

    /// Keys of the text that mean nothing here.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

fn read_tree(key: &str, line: Option<usize>, globs: Vec<Listing>) -> Result<Tree, CommError> {
    if globs.len() > MAX_GLOBS {
        return Err(fault(line, key, format!("{} globs, expected at most {MAX_GLOBS}", globs.len())));
    }
    let mut tree = Vec::with_capacity(globs.len());
    for glob in globs {
        let read = Glob::parse(&glob.name).map_err(|fault| CommError::Path {
            at: Place { line: glob.line, key: key.to_owned() },
            path: glob.name.clone(),
            fault,
        })?;
        tree.push(read);
    }
    Ok(Tree::new(tree))
}

fn name_of(listing: &Listing, key: &str) -> Result<Id, CommError> {
    Id::new(&listing.name).map_err(|err| fault(listing.line, key, format!("expected a lane name: {err}")))
}

pub(super) fn fault(line: Option<usize>, key: &str, expected: String) -> CommError {
    CommError::Lanes { at: Place { line, key: key.to_owned() }, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(concurrent: &[&str], trees: &[(&str, &[&str])]) -> LaneSpec {
        LaneSpec {
            concurrent: concurrent.iter().map(|n| Listing::from(*n)).collect(),
            exclusive: vec!["abi".into()],
            trees: trees
                .iter()
                .map(|(name, globs)| {
                    (Listing::from(*name), globs.iter().map(|g| Listing::from(*g)).collect())
                })
                .collect(),
        }
    }

    #[test]
    fn a_lane_in_both_lists_runs_alone() {
        let taxonomy = Taxonomy::new(spec(&["abi", "docs"], &[])).unwrap();
        assert!(taxonomy.lane("abi").unwrap().is_exclusive());
        assert!(!taxonomy.lane("docs").unwrap().is_exclusive());
    }

    #[test]
    fn what_cannot_be_a_table_is_an_error_naming_its_key() {
        let err = Taxonomy::new(spec(&["docs"], &[("docs", &["../up"])])).unwrap_err();
        assert_eq!(err.to_string(), "key \"lanes.trees.docs\": path \"../up\" has a `..` component");
        let err = Taxonomy::new(spec(&["a\u{202e}b"], &[])).unwrap_err();
        assert_eq!(err.kind(), "lanes");
        let err = Taxonomy::new(spec(&["a"], &[("a", &[]), ("a", &[])])).unwrap_err();
        assert_eq!(err.kind(), "lanes");
        let many: Vec<String> = (0..5_000).map(|n| format!("l{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(Taxonomy::new(spec(&many, &[])).unwrap_err().kind(), "lanes");
        let globs = vec!["a"; 257];
        assert_eq!(Taxonomy::new(spec(&["a"], &[("a", &globs)])).unwrap_err().kind(), "lanes");
        let names: Vec<String> = (0..65).map(|n| format!("l{n}")).collect();
        let trees: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &globs[..256])).collect();
        assert_eq!(Taxonomy::new(spec(&[], &trees)).unwrap_err().kind(), "lanes");
    }
}
