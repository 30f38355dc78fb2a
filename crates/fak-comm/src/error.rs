//! What can be wrong with the data handed to this crate. Refusals are not here: a refusal is a value.

use std::fmt;

use fak_abi::{Id, IdError};

use crate::lanes::PathFault;

/// An input this crate cannot work with (§6.1, §6.4, §6.7, §8).
///
/// No message contains the bytes of an output: the reader of the message may not be a reader of the output.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CommError {
    /// A group or a reduction of nothing (`empty`).
    #[error("{what} is empty, expected at least one member")]
    Empty {
        /// What was empty: `group`, `outputs`.
        what: &'static str,
    },
    /// A colour, or the name of a part, that is not an id (`id`).
    #[error("{what}: {source}")]
    Id {
        /// What the id would have named.
        what: &'static str,
        /// Why it is none.
        source: IdError,
    },
    /// Two members with one id (`duplicate`).
    #[error("member {id:?} is listed twice")]
    Duplicate {
        /// The id listed twice.
        id: Id,
    },
    /// A weight that is not a finite number above zero (`weight`).
    #[error("weight of member {member:?} is {weight}, expected a finite number above zero")]
    Weight {
        /// Whose weight.
        member: Id,
        /// The weight given.
        weight: f64,
    },
    /// An id that is not in the group (`no_member`).
    #[error("no member {id:?} in the group")]
    NoMember {
        /// The id asked for.
        id: Id,
    },
    /// One value per rank was expected (`arity`).
    #[error("{got} {what} for {expected} members, expected one a rank")]
    Arity {
        /// What was counted: `goals`, `outputs`, `scores`.
        what: &'static str,
        /// How many members there are.
        expected: usize,
        /// How many values there were.
        got: usize,
    },
    /// An output that is not a number (`not_numeric`).
    #[error("output of member {member:?} is not a number")]
    NotNumeric {
        /// Whose output.
        member: Id,
    },
    /// A number, or a sum reached at this member, that is not finite (`not_finite`).
    #[error("output of member {member:?} is not finite, or makes the sum not finite")]
    NotFinite {
        /// Whose output.
        member: Id,
    },
    /// A score that is not a number (`nan_score`).
    #[error("score of member {member:?} is not a number")]
    NanScore {
        /// Whose score.
        member: Id,
    },
    /// A reduction that does not exist (`unknown_reduction`).
    #[error("unknown reduction {name:?}, expected first, concat, vote, best_of or all_reduce")]
    UnknownReduction {
        /// The name given.
        name: String,
    },
    /// A lane table that is not TOML (`toml`).
    #[error("line {line}: {message}")]
    Toml {
        /// Line, from 1.
        line: usize,
        /// What the TOML reader expected.
        message: String,
    },
    /// A lane table with the wrong value under a key (`lanes`).
    #[error("{at}: {expected}")]
    Lanes {
        /// Where.
        at: Place,
        /// What was expected there, and what was found.
        expected: String,
    },
    /// A tree with a path that is not a path inside the workspace (`path`).
    #[error("{at}: path {path:?} {fault}")]
    Path {
        /// Where.
        at: Place,
        /// The path.
        path: String,
        /// What is wrong with it.
        fault: PathFault,
    },
}

impl CommError {
    /// The kind as one word, stable across versions; the reductions' kinds are those of §6.4.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "empty",
            Self::Id { .. } => "id",
            Self::Duplicate { .. } => "duplicate",
            Self::Weight { .. } => "weight",
            Self::NoMember { .. } => "no_member",
            Self::Arity { .. } => "arity",
            Self::NotNumeric { .. } => "not_numeric",
            Self::NotFinite { .. } => "not_finite",
            Self::NanScore { .. } => "nan_score",
            Self::UnknownReduction { .. } => "unknown_reduction",
            Self::Toml { .. } => "toml",
            Self::Lanes { .. } => "lanes",
            Self::Path { .. } => "path",
        }
    }
}

/// Where in a lane table something is: its key, and its line when the table came as text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Line, from 1; absent for a table that was not read from text.
    pub line: Option<usize>,
    /// Dotted key, such as `lanes.trees.docs`.
    pub key: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}, key {:?}", self.key),
            None => write!(f, "key {:?}", self.key),
        }
    }
}
