//! What is wrong with the text of a policy, where, and what was expected.

use std::fmt;
use std::ops::Range;

use fak_abi::json::Place;
use thiserror::Error;

/// A policy that was refused (§3.7, §8): file, line, key, and the line with a caret under it. Its debug form is the same text, so
/// that a `main` that answers it shows something to go by.
#[derive(Clone, PartialEq, Eq)]
pub struct PolicyError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    file: String,
    place: Place,
    key: String,
    problem: PolicyProblem,
    excerpt: Excerpt,
    /// What else is wrong; none of these has more.
    more: Vec<PolicyError>,
}

/// What is wrong with a policy (§3.7).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyProblem {
    /// The text is not TOML, or not JSON.
    #[error("{0}")]
    Syntax(String),
    /// A key that may not stand there.
    #[error("unknown key {name:?}{}", meant(.nearest))]
    UnknownKey {
        /// The key, as written.
        name: String,
        /// The nearest key that may.
        nearest: Option<&'static str>,
    },
    /// A key that must stand there.
    #[error("missing key {0:?}{needed}", needed = needed(.0))]
    MissingKey(&'static str),
    /// A word that is not in its vocabulary.
    #[error("unknown {what} {given:?}{}", nearest.map_or_else(|| format!(", expected one of {expected}"), |_| meant(.nearest)))]
    UnknownWord {
        /// Which vocabulary.
        what: &'static str,
        /// The word, as written, cut to 64 characters.
        given: String,
        /// The nearest word in it.
        nearest: Option<&'static str>,
        /// The words in it.
        expected: String,
    },
    /// A value of another type was expected.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The type expected.
        expected: &'static str,
        /// The type found.
        found: &'static str,
    },
    /// A value of the right type that is not acceptable.
    #[error("expected {0}")]
    Invalid(&'static str),
    /// The text is longer than a policy may be.
    #[error("too large, expected at most {0} bytes")]
    TooLarge(usize),
    /// More rules than a policy may have.
    #[error("too many rules, expected at most {0}")]
    TooMany(usize),
}

/// What a key that every policy has is to say.
fn needed(key: &str) -> &'static str {
    if key == "version" { ": a policy begins with its version, which is 1" } else { "" }
}

fn meant(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |near| format!(", did you mean {near:?}?"))
}

#[derive(Clone, PartialEq, Eq)]
struct Excerpt {
    line: String,
    /// Characters before the caret, and under it.
    lead: usize,
    width: usize,
}

/// Characters of a line that an error shows.
const SHOWN: usize = 120;

impl Excerpt {
    fn of(text: &str, span: &Range<usize>, place: Place) -> Self {
        let line = text.lines().nth(place.line - 1).unwrap_or_default();
        let before = line.get(..place.column - 1).unwrap_or_default().chars().count();
        // Of a long line, the part around the place.
        let skip = before.saturating_sub(SHOWN / 2);
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = line.chars().skip(skip).take(SHOWN).map(plain).collect();
        let under = text.get(span.clone()).unwrap_or_default();
        let lead = before - skip;
        let room = shown.chars().count().saturating_sub(lead).max(1);
        let width = under.lines().next().unwrap_or_default().chars().count().clamp(1, room);
        Self { line: shown, lead, width }
    }
}

impl PolicyError {
    pub(super) fn new(
        file: &str,
        text: &str,
        span: Range<usize>,
        key: impl Into<String>,
        problem: PolicyProblem,
    ) -> Self {
        let start = (0..=span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let place = Place::of(text.as_bytes(), start.unwrap_or_default());
        let excerpt = Excerpt::of(text, &span, place);
        Self(Box::new(Inner {
            file: file.to_owned(),
            place,
            key: key.into(),
            problem,
            excerpt,
            more: Vec::new(),
        }))
    }

    /// Of everything that is wrong, in the order of the text; nothing if nothing is.
    pub(super) fn of_all(mut faults: Vec<Self>) -> Option<Self> {
        faults.sort_by_key(|fault| fault.place().offset);
        let mut faults = faults.into_iter();
        let mut first = faults.next()?;
        first.0.more = faults.collect();
        Some(first)
    }

    /// Each thing that is wrong: the first, which the others of these methods speak of, and what else is.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let first = Self(Box::new(Inner { more: Vec::new(), ..(*self.0).clone() }));
        std::iter::once(first).chain(self.0.more.clone())
    }

    /// The file, as the host named it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// Where in the text.
    #[must_use]
    pub fn place(&self) -> Place {
        self.0.place
    }

    /// Which key: `deny[2].reason`, counted from 1; empty for the text itself.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &PolicyProblem {
        &self.0.problem
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { file, place, key, problem, excerpt, more } = &*self.0;
        let Excerpt { line, lead, width } = excerpt;
        write!(f, "{file}:{}:{}: ", place.line, place.column)?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        write!(f, "{problem}\n {number} | {line}\n {margin} | ")?;
        write!(f, "{}{}", " ".repeat(*lead), "^".repeat(*width))?;
        more.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

impl fmt::Debug for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for PolicyError {}
