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

type Components = SmallVec<[Component; 4]>;

#[derive(Clone, Debug, Eq, PartialEq)]
enum Component {
    /// Exactly this component.
    Literal(Box<str>),
    /// Any run of components, none included.
    Any,
}

/// The components of `text` after normalisation, each as a literal.
fn components(text: &str) -> Result<SmallVec<[Box<str>; 4]>, PathFault> {
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
    let mut found = SmallVec::new();
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
        Ok(Self { components: components(text)?.into_iter().map(Component::Literal).collect() })
    }
}

/// A glob over paths. A component with a wildcard character (`*`, `?`, `[` or `{`) stands for any run of
/// components, none included; a glob covers what lies below what it names (§6.7). Both make it wider than a
/// shell's, so that two workers are kept apart rather than let meet.
#[derive(Clone, Debug)]
pub struct Glob {
    text: Box<str>,
    components: Components,
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    ///
    /// As [`LanePath::parse`].
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let mut found = Components::new();
        for component in components(text)? {
            if !component.contains(['*', '?', '[', '{']) {
                found.push(Component::Literal(component));
            } else if found.last() != Some(&Component::Any) {
                found.push(Component::Any);
            }
        }
        if found.last() != Some(&Component::Any) {
            found.push(Component::Any);
        }
        Ok(Self { text: text.into(), components: found })
    }

    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it covers every path.
    #[must_use]
    pub fn covers_all(&self) -> bool {
        matches!(self.components.as_slice(), [Component::Any])
    }

    /// Whether it covers `path`.
    #[must_use]
    pub fn covers(&self, path: &LanePath) -> bool {
        meet(&self.components, &path.components)
    }

    /// Whether some path is covered by both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        meet(&self.components, &other.components)
    }
}

/// Whether some sequence of components matches both patterns. Row by row over (position in `a`, position in
/// `b`); no recursion, at most 65 × 65 steps.
fn meet(a: &[Component], b: &[Component]) -> bool {
    // Most pairs differ before their first wildcard.
    for pair in a.iter().zip(b) {
        match pair {
            (Component::Literal(x), Component::Literal(y)) if x != y => return false,
            (Component::Literal(_), Component::Literal(_)) => {}
            _ => break,
        }
    }
    let mut row: SmallVec<[bool; 16]> = SmallVec::from_elem(false, b.len() + 1);
    if let Some(start) = row.first_mut() {
        *start = true;
    }
    for at in 0..=a.len() {
        let here = a.get(at);
        let mut next: SmallVec<[bool; 16]> = SmallVec::from_elem(false, b.len() + 1);
        let mut from_left = false;
        for (j, cell) in row.iter_mut().enumerate() {
            *cell |= from_left;
            let there = b.get(j);
            // `a` takes this component of `b` into its run, or `b` ends its run.
            from_left =
                *cell && matches!((here, there), (Some(Component::Any), Some(_)) | (_, Some(Component::Any)));
            if !*cell {
                continue;
            }
            let stays = match (here, there) {
                (Some(Component::Any), _) | (Some(_), Some(Component::Any)) => next.get_mut(j),
                (Some(Component::Literal(x)), Some(Component::Literal(y))) if x == y => next.get_mut(j + 1),
                _ => None,
            };
            if let Some(cell) = stays {
                *cell = true;
            }
        }
        if at == a.len() {
            break;
        }
        row = next;
    }
    row.last().copied().unwrap_or(false)
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

/// A pair of globs that overlap.
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
        assert!(LanePath::parse("a/..b/...").is_ok());
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

    /// The slow way: does `glob` cover `path`, trying every length of run?
    fn naive(glob: &[Component], path: &[&str]) -> bool {
        match glob.split_first() {
            None => path.is_empty(),
            Some((Component::Literal(x), rest)) => {
                path.split_first().is_some_and(|(p, t)| **p == **x && naive(rest, t))
            }
            Some((Component::Any, rest)) => (0..=path.len()).any(|n| naive(rest, &path[n..])),
        }
    }

    proptest! {
        /// Two globs overlap iff some path of a small universe is covered by both: three names, up to six deep,
        /// is enough for globs of at most three components.
        #[test]
        fn overlap_is_what_expanding_both_says(a in "[ab*](/[ab*]){0,2}", b in "[ab*](/[ab*]){0,2}") {
            let (a, b) = (Glob::parse(&a).unwrap(), Glob::parse(&b).unwrap());
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
            let both = universe.iter().any(|p| naive(&a.components, p) && naive(&b.components, p));
            prop_assert_eq!(a.overlaps(&b), both);
            for path in universe.iter().filter(|p| (1..4).contains(&p.len())) {
                let parsed = LanePath::parse(&path.join("/")).unwrap();
                prop_assert_eq!(a.covers(&parsed), naive(&a.components, path));
            }
        }
    }
}
