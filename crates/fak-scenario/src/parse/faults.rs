//! What is wrong with a scenario's text, gathered: a part that cannot be read does not hide what is wrong with the others.

use std::path::Path;

use fak_abi::json::{self, Cursor};

use super::placed;
use crate::error::{Problem, ScenarioError};

/// The most errors of one file that are kept; further ones are counted.
pub(super) const KEPT: usize = 20;

/// Why a part could not be read: with its place in this text, or already complete.
#[derive(Debug)]
pub(super) enum Fault {
    /// In the text at hand.
    Here(Box<(json::Error, Option<Problem>)>),
    /// In a file it names.
    Elsewhere(Box<ScenarioError>),
    /// More than one thing, of parts that do not depend on each other.
    Several(Faults),
}

pub(super) type Parsed<T> = Result<T, Fault>;

/// Faults of one object and of what is in it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Each with the offset it is sorted by.
    found: Vec<(usize, Fault)>,
    /// Those that were found when there were enough.
    more: usize,
    /// The offset of the object, once it has shown a member that it cannot have: what it lacks then is most likely that one,
    /// misspelt, and no fault of its own.
    misspelt: Option<usize>,
}

impl Fault {
    pub(super) fn here(error: json::Error, problem: Option<Problem>) -> Self {
        Self::Here(Box::new((error, problem)))
    }

    pub(super) fn elsewhere(error: impl Into<ScenarioError>) -> Self {
        Self::Elsewhere(Box::new(error.into()))
    }
}

impl From<json::Error> for Fault {
    fn from(error: json::Error) -> Self {
        Self::here(error, None)
    }
}

impl Faults {
    /// The faults of an object, whose members are of this list: unknown ones are the first.
    pub(super) fn of(cursor: Cursor<'_>, known: &[&'static str]) -> Self {
        Self::of_but(cursor, known, |_| None)
    }

    /// The same, where something better may be known of a member than the name that is nearest.
    pub(super) fn of_but(
        cursor: Cursor<'_>,
        known: &[&'static str],
        better: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let mut faults = Self::default();
        if let Err(fault) = super::closed_but(cursor, known, better) {
            faults.add(cursor, fault);
            faults.misspelt = Some(cursor.value().offset());
        }
        faults
    }

    /// Whether the object has shown a member that it cannot have.
    pub(super) fn misspelt(&self) -> bool {
        self.misspelt.is_some()
    }

    /// Whether a further one would be shown.
    pub(super) fn has_room(&self) -> bool {
        self.found.len() < KEPT
    }

    /// What was read, or nothing: then why is kept. `cursor` is the part it is about.
    pub(super) fn keep<T>(&mut self, cursor: Cursor<'_>, parsed: Parsed<T>) -> Option<T> {
        parsed.map_err(|fault| self.add(cursor, fault)).ok()
    }

    fn add(&mut self, cursor: Cursor<'_>, fault: Fault) {
        match fault {
            Fault::Several(others) => {
                self.more += others.more;
                for (offset, fault) in others.found {
                    self.add_one(offset, fault);
                }
            }
            Fault::Here(here) => self.add_one(here.0.place().offset, Fault::Here(here)),
            Fault::Elsewhere(error) => {
                let at = cursor.value().offset();
                match *error {
                    ScenarioError::Several { errors, more } => {
                        self.more += more;
                        errors.into_iter().for_each(|error| self.add_one(at, Fault::elsewhere(error)));
                    }
                    one => self.add_one(at, Fault::elsewhere(one)),
                }
            }
        }
    }

    fn add_one(&mut self, offset: usize, fault: Fault) {
        if self.misspelt == Some(offset) && matches!(fault, Fault::Here(_)) {
            return;
        }
        let known = self.found.iter().any(|(_, other)| match (other, &fault) {
            (Fault::Here(one), Fault::Here(other)) => one == other,
            _ => false,
        });
        match () {
            () if known => {}
            () if self.found.len() < KEPT => self.found.push((offset, fault)),
            () => self.more += 1,
        }
    }

    /// What was read if nothing is wrong.
    pub(super) fn settle<T>(mut self, read: Option<T>) -> Parsed<T> {
        match read {
            Some(read) if self.found.is_empty() => Ok(read),
            _ if self.found.len() == 1 && self.more == 0 => match self.found.pop() {
                Some((_, fault)) => Err(fault),
                None => Err(Fault::Several(self)),
            },
            _ => Err(Fault::Several(self)),
        }
    }

    /// As the error of a file, in the order of its text.
    pub(super) fn into_error(mut self, path: &Path, root: Cursor<'_>) -> ScenarioError {
        self.found.sort_by_key(|(offset, _)| *offset);
        let mut errors: Vec<_> =
            self.found.into_iter().map(|(_, fault)| fault.into_error(path, root)).collect();
        match errors.pop() {
            Some(only) if errors.is_empty() && self.more == 0 => only,
            last => {
                errors.extend(last);
                ScenarioError::Several { errors, more: self.more }
            }
        }
    }
}

impl Fault {
    /// As the error of a file.
    pub(super) fn into_error(self, path: &Path, root: Cursor<'_>) -> ScenarioError {
        match self {
            Self::Here(here) => placed(path, here.0, here.1, Some(root)),
            Self::Elsewhere(error) => *error,
            Self::Several(faults) => faults.into_error(path, root),
        }
    }
}
