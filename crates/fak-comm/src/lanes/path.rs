//! Paths, globs and trees: which paths a lane or a lease covers, and whether two trees can meet. By component,
//! never by character; nothing here touches a file system.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Longest path or glob, in bytes.
const MAX_PATH_BYTES: usize = 1_024;
/// Most components of a path or glob; with the longest tree this bounds what one decision costs.
const MAX_COMPONENTS: usize = 64;
/// Most globs of a tree.
pub(crate) const MAX_GLOBS: usize = 256;

/// Why a text is no path inside the workspace (§6.7): MALFORMED.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PathFault {
    /// It starts at a root or a drive.
    Absolute,
    /// A `..` component, which climbs.
    Parent,
    /// A `.` component, which gives one path two spellings.
    Current,
    /// A backslash, which some systems take for a separator.
    Backslash,
    /// Nothing at all, or nothing between two slashes or after the last.
    EmptyComponent,
    /// A control character.
    Control,
    /// More than 1,024 bytes, or more than 64 components.
    TooLong,
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absolute => "is absolute, expected one relative to the workspace",
            Self::Parent => "has a `..` component",
            Self::Current => "has a `.` component",
            Self::Backslash => "has a backslash, expected `/` between components",
            Self::EmptyComponent => "has an empty component",
            Self::Control => "has a control character",
            Self::TooLong => "is too long, expected at most 1024 bytes and 64 components",
        })
    }
}

type Components = SmallVec<[Box<str>; 4]>;

/// The components of `text` after normalisation.
fn components(text: &str) -> Result<Components, PathFault> {
    if text.len() > MAX_PATH_BYTES {
        return Err(PathFault::TooLong);
    }
    let normal;
    let text = if is_nfc(text) {
        text
    } else {
        normal = text.nfc().collect::<String>();
        &normal
    };
    if text.contains('\\') {
        return Err(PathFault::Backslash);
    }
    if text.starts_with('/') || has_drive(text) {
        return Err(PathFault::Absolute);
    }
    if text.contains(char::is_control) {
        return Err(PathFault::Control);
    }
    let mut found = Components::new();
    for component in text.split('/') {
        match component {
            "" => return Err(PathFault::EmptyComponent),
            "." => return Err(PathFault::Current),
            ".." => return Err(PathFault::Parent),
            _ if found.len() == MAX_COMPONENTS => return Err(PathFault::TooLong),
            component => found.push(component.into()),
        }
    }
    Ok(found)
}

/// `C:` and the like.
fn has_drive(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic()) && bytes.next() == Some(b':')
}

/// A path inside the workspace, normalised to NFC (§6.7).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LanePath {
    components: Components,
}

impl LanePath {
    /// Reads a path: components between single slashes, relative, never climbing.
    ///
    /// # Errors
    ///
    /// What makes it no such path.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        Ok(Self { components: components(text)? })
    }
}

/// A glob over paths. A component with a wildcard character (`*`, `?`, `[` or `{`) stands for any run of
/// components, none included; a glob covers what lies below what it names (§6.7). Both make it wider than a
/// shell's, so that two workers are kept apart rather than let meet.
#[derive(Clone, Debug)]
pub struct Glob {
    text: Box<str>,
    /// What every path begins with that it covers.
    head: Components,
    /// Then, each after any run of components, these in order; and then anything.
    runs: Box<[Components]>,
    /// Whether it names no component at all.
    all: bool,
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    ///
    /// As [`LanePath::parse`].
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let mut parts = vec![Components::new()];
        for component in components(text)? {
            if component.contains(['*', '?', '[', '{']) {
                parts.push(Components::new());
            } else if let Some(part) = parts.last_mut() {
                part.push(component);
            }
        }
        let mut parts = parts.into_iter();
        let head = parts.next().unwrap_or_default();
        let runs: Box<[Components]> = parts.filter(|run| !run.is_empty()).collect();
        let all = head.is_empty() && runs.is_empty();
        Ok(Self { text: text.into(), head, runs, all })
    }

    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it covers every path.
    #[must_use]
    pub const fn covers_all(&self) -> bool {
        self.all
    }

    /// Whether it covers `path`.
    #[must_use]
    pub fn covers(&self, path: &LanePath) -> bool {
        let Some(mut rest) = path.components.strip_prefix(self.head.as_slice()) else { return false };
        // Anything may follow each run, so that the first place it fits leaves the most to those after it.
        for run in &self.runs {
            let Some(at) = rest.windows(run.len()).position(|window| window == run.as_slice()) else {
                return false;
            };
            rest = rest.get(at + run.len()..).unwrap_or_default();
        }
        true
    }

    /// Whether some path is covered by both.
    ///
    /// Every glob ends in anything, so that what one demands after its first wildcard can be put behind what the
    /// other demands: two globs meet iff they agree as far as both are literal.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.head.iter().zip(&other.head).all(|(ours, theirs)| ours == theirs)
    }
}

/// The globs of a lane or a lease. One without globs covers everything (§6.7).
#[derive(Clone, Debug, Default)]
pub struct Tree {
    globs: Arc<[Glob]>,
}

impl Tree {
    /// The tree of these globs.
    #[must_use]
    pub fn new(globs: Vec<Glob>) -> Self {
        Self { globs: globs.into() }
    }

    /// The globs in the order given.
    #[must_use]
    pub fn globs(&self) -> &[Glob] {
        &self.globs
    }

    /// Whether it covers every path.
    #[must_use]
    pub fn covers_all(&self) -> bool {
        self.globs.is_empty() || self.globs.iter().any(Glob::covers_all)
    }

    /// Whether it covers `path`.
    #[must_use]
    pub fn covers(&self, path: &LanePath) -> bool {
        self.globs.is_empty() || self.globs.iter().any(|glob| glob.covers(path))
    }

    /// Where two trees meet: the first pair of globs that overlap, absent on a side that covers everything
    /// because it has no globs. `None` if no path is in both.
    #[must_use]
    pub fn meets<'a>(&'a self, other: &'a Self) -> Option<Meeting<'a>> {
        if self.globs.is_empty() || other.globs.is_empty() {
            return Some(Meeting { ours: self.globs.first(), theirs: other.globs.first() });
        }
        self.globs.iter().find_map(|ours| {
            let theirs = other.globs.iter().find(|theirs| ours.overlaps(theirs))?;
            Some(Meeting { ours: Some(ours), theirs: Some(theirs) })
        })
    }
}

/// A pair of globs that overlap (§6.7).
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'a> {
    /// The glob of the tree asked.
    pub ours: Option<&'a Glob>,
    /// The glob of the other.
    pub theirs: Option<&'a Glob>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn overlap(a: &str, b: &str) -> bool {
        let (a, b) = (Glob::parse(a).unwrap(), Glob::parse(b).unwrap());
        assert_eq!(a.overlaps(&b), b.overlaps(&a));
        a.overlaps(&b)
    }

    #[test]
    fn components_not_characters_decide() {
        assert!(!overlap("src/model/**", "src/model_route/**"));
        assert!(overlap("src/model/**", "src/model/deep/er/x.rs"));
        assert!(overlap("docs/**", "docs/releases/**"));
        assert!(overlap("README.md", "**/*"));
        assert!(!overlap("README.md", "docs/**"));
        assert!(overlap("src", "src/lib.rs"), "what lies below a name is covered by it");
    }

    #[test]
    fn a_wildcard_component_is_any_run() {
        assert!(overlap("src/*.rs", "src/a/b/c.rs"));
        assert!(overlap("a/*/z", "a/b/c/z"));
        assert!(overlap("*/x", "a/b/x"));
        assert!(overlap("a/[bc]/d", "a/{b,e}/d"));
        assert!(!overlap("a/*/z", "b/*/z"));
    }

    #[test]
    fn one_path_has_one_spelling() {
        assert!(overlap("caf\u{e9}/**", "cafe\u{301}/x"));
        let tree = Tree::new(vec![Glob::parse("caf\u{e9}/**").unwrap()]);
        assert!(tree.covers(&LanePath::parse("cafe\u{301}/menu").unwrap()));
    }

    #[test]
    fn a_path_that_could_leave_the_workspace_is_refused() {
        for (text, fault) in [
            ("", PathFault::EmptyComponent),
            ("/etc", PathFault::Absolute),
            ("C:/x", PathFault::Absolute),
            ("a/../b", PathFault::Parent),
            ("..", PathFault::Parent),
            ("./a", PathFault::Current),
            ("a\\b", PathFault::Backslash),
            ("a//b", PathFault::EmptyComponent),
            ("a/", PathFault::EmptyComponent),
            ("a/\u{7}", PathFault::Control),
        ] {
            assert_eq!(LanePath::parse(text), Err(fault), "{text:?}");
            assert_eq!(Glob::parse(text).unwrap_err(), fault, "{text:?}");
        }
        assert_eq!(LanePath::parse(&"a/".repeat(100_000)), Err(PathFault::TooLong));
        assert_eq!(LanePath::parse(&["a"; 65].join("/")), Err(PathFault::TooLong));
        assert!(LanePath::parse(&["a"; 64].join("/")).is_ok());
        assert!(LanePath::parse(&"a".repeat(1_024)).is_ok());
        assert_eq!(LanePath::parse(&"a".repeat(1_025)), Err(PathFault::TooLong));
        assert!(LanePath::parse("a/..b/...").is_ok());
    }

    #[test]
    fn a_component_counts_once() {
        let glob = Glob::parse("*/a/*/a").unwrap();
        assert!(!glob.covers(&LanePath::parse("a").unwrap()));
        assert!(glob.covers(&LanePath::parse("a/a").unwrap()));
        assert!(glob.covers(&LanePath::parse("x/a/y/a/z").unwrap()));
    }

    #[test]
    fn a_wildcard_in_a_path_is_a_character() {
        let tree = Tree::new(vec![Glob::parse("a/b").unwrap()]);
        assert!(!tree.covers(&LanePath::parse("a/*").unwrap()));
    }

    #[test]
    fn a_tree_of_nothing_covers_everything() {
        let none = Tree::default();
        assert!(none.covers(&LanePath::parse("a").unwrap()));
        assert!(none.covers_all() && none.meets(&Tree::default()).is_some());
        assert!(none.meets(&Tree::new(vec![Glob::parse("a").unwrap()])).is_some());
    }

    /// The slow way: does `glob` cover `path`, trying every length of run? Anything may follow at the end.
    fn naive(glob: &[&str], path: &[&str]) -> bool {
        match glob.split_first() {
            None => true,
            Some((&"*", rest)) => (0..=path.len()).any(|n| naive(rest, &path[n..])),
            Some((name, rest)) => {
                path.split_first().is_some_and(|(first, tail)| first == name && naive(rest, tail))
            }
        }
    }

    proptest! {
        /// Two globs overlap iff some path of a small universe is covered by both: three names, up to six deep,
        /// is enough for globs of at most three components.
        #[test]
        fn overlap_is_what_expanding_both_says(a in "[ab*](/[ab*]){0,2}", b in "[ab*](/[ab*]){0,2}") {
            let (one, other) = (Glob::parse(&a).unwrap(), Glob::parse(&b).unwrap());
            let (a, b): (Vec<&str>, Vec<&str>) = (a.split('/').collect(), b.split('/').collect());
            let mut universe: Vec<Vec<&str>> = vec![vec![]];
            let mut from = 0;
            for _ in 0..6 {
                let upto = universe.len();
                for at in from..upto {
                    for name in ["a", "b", "c"] {
                        let mut path = universe[at].clone();
                        path.push(name);
                        universe.push(path);
                    }
                }
                from = upto;
            }
            let both = universe.iter().any(|p| naive(&a, p) && naive(&b, p));
            prop_assert_eq!(one.overlaps(&other), both);
            prop_assert_eq!(other.overlaps(&one), both);
            for path in universe.iter().filter(|p| (1..4).contains(&p.len())) {
                let parsed = LanePath::parse(&path.join("/")).unwrap();
                prop_assert_eq!(one.covers(&parsed), naive(&a, path));
            }
        }
    }
}
