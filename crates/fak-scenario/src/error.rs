//! Why a scenario could not be read or begun: the file, the line, the step, the member, and what to write instead. What a step
//! answers wrongly is no error but a [`Mismatch`](crate::Mismatch).

use std::{
    cmp::Reverse,
    fmt,
    path::{Path, PathBuf},
};

use fak_abi::json;

use crate::render::printable;

/// A scenario that cannot be read or begun (§8).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be opened or read.
    #[error("cannot read \"{}\": {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than a scenario may be.
    #[error("\"{}\" is larger than the {limit} bytes a file may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A file named by a scenario climbs out of its folder.
    #[error(
        "{place}: the path {wanted:?} climbs out of the scenario's folder; move the file there, or run with --allow-outside"
    )]
    Outside {
        /// Where it is named.
        place: Box<Place>,
        /// The path as written.
        wanted: String,
    },
    /// The text is not what a scenario is made of.
    #[error("{place}: {problem}")]
    Invalid {
        /// Where.
        place: Box<Place>,
        /// What is wrong and what was expected.
        problem: Problem,
    },
    /// No scenario was found where one was asked for.
    #[error("no scenario in \"{}\"; a folder must hold scenarios in files that end in .json", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A file named by a scenario is not what it is named for.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        problem: String,
    },
    /// Several things are wrong with the file, in the order they stand in it.
    #[error("{}{}", lines(.errors), besides(*.more))]
    Several {
        /// The first of them; none is of this variant.
        errors: Vec<ScenarioError>,
        /// How many there are besides.
        more: usize,
    },
    /// The policy cannot be read.
    #[error(transparent)]
    Policy(fak_adjudicate::PolicyError),
    /// The log of a run that is kept in memory cannot be written.
    #[error(transparent)]
    Audit(#[from] fak_adjudicate::AuditError),
    /// The file that the log of a run is kept in cannot be opened, continued or written.
    #[error("{}: {source}", path.display())]
    AuditFile {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        source: Box<fak_adjudicate::AuditError>,
    },
}

impl ScenarioError {
    /// Where in a scenario it is, if it is in one.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Outside { place, .. } | Self::Invalid { place, .. } => Some(place),
            Self::Several { errors, .. } => errors.first()?.place(),
            _ => None,
        }
    }

    /// Each thing that is wrong, by itself: the error, or those it is made of.
    pub fn each(&self) -> impl Iterator<Item = &Self> {
        match self {
            Self::Several { errors, .. } => errors.as_slice(),
            one => std::slice::from_ref(one),
        }
        .iter()
    }

    /// The file or folder it is about.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Empty { path }
            | Self::AuditFile { path, .. }
            | Self::File { path, .. } => Some(path),
            Self::Policy(error) => Some(Path::new(error.file())),
            Self::Outside { place, .. } | Self::Invalid { place, .. } => Some(&place.path),
            Self::Several { errors, .. } => errors.first()?.path(),
            Self::Audit(_) => None,
        }
    }
}

impl From<fak_adjudicate::PolicyError> for ScenarioError {
    fn from(error: fak_adjudicate::PolicyError) -> Self {
        let mut errors: Vec<Self> = error.each().map(Self::Policy).collect();
        match (errors.pop(), errors.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                errors.extend(last);
                Self::Several { errors, more: 0 }
            }
        }
    }
}

/// Where in a scenario something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1.
    pub column: usize,
    /// The step, counted from 1, and what it does.
    pub step: Option<(usize, String)>,
    /// The member, as a JSON pointer.
    pub member: String,
}

/// What is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not the JSON a scenario is made of.
    #[error("{problem}{}", lists(.known))]
    Json {
        /// What the reader found.
        problem: json::Problem,
        /// The members known there, where one was unknown and none is near.
        known: Vec<String>,
    },
    /// A member of `expect` that the act does not answer.
    #[error("\"{act}\" does not answer {name:?}{}", suggest(.name, .nearest.as_deref(), .known))]
    NotAnswered {
        /// The act.
        act: &'static str,
        /// The member.
        name: String,
        /// The known name most like it.
        nearest: Option<String>,
        /// What the act answers.
        known: Vec<String>,
    },
    /// A name that stands for nothing.
    #[error("unknown {what} {name:?}{}{}", suggest(.name, .nearest.as_deref(), .known), told(.what, .nearest.is_some()))]
    UnknownName {
        /// What kind of name.
        what: &'static str,
        /// The name.
        name: String,
        /// The known name most like it.
        nearest: Option<String>,
        /// The names known there.
        known: Vec<String>,
    },
    /// Members that exclude or need each other, or a value out of its range.
    #[error("{0}")]
    Rule(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)?;
        if let Some((number, act)) = &self.step {
            write!(f, ": step {number}")?;
            if !act.is_empty() {
                write!(f, " ({act})")?;
            }
        }
        if !self.member.is_empty() {
            write!(f, ": {}", printable(&self.member))?;
        }
        Ok(())
    }
}

/// Errors, a line each.
fn lines(errors: &[ScenarioError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What is not shown of many.
fn besides(count: usize) -> String {
    if count == 0 { String::new() } else { format!("\nand {count} more: mend these first") }
}

/// The nearest known name, or the known names if none is near.
fn suggest(name: &str, nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(nearest) => format!(", did you mean {nearest:?}?"),
        None => {
            // What begins alike first: of many, not all are shown.
            let alike = |other: &str| other.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
            let mut known = known.to_vec();
            known.sort_by_key(|other| Reverse(alike(other)));
            lists(&known)
        }
    }
}

/// Where all names of a kind are told with what they mean.
fn told(what: &str, near: bool) -> &'static str {
    match what {
        "reason" if !near => "; `fak explain` says what each means",
        "check" if !near => "; `fak explain --checks` lists them all",
        _ => "",
    }
}

/// The names known there, the first dozen.
fn lists(known: &[String]) -> String {
    const SHOWN: usize = 12;
    if known.is_empty() {
        return String::new();
    }
    let shown: Vec<&str> = known.iter().take(SHOWN).map(String::as_str).collect();
    match known.len().saturating_sub(SHOWN) {
        0 => format!("; known here: {}", printable(&shown.join(", "))),
        more => format!("; known here: {} and {more} more", printable(&shown.join(", "))),
    }
}
