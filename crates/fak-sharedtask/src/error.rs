//! What can go wrong with input and hosting. A refusal is never one of these: it is a verdict or a result.

use fak_abi::json;

use crate::envelope::MergeReason;
use crate::journal::JournalError;

/// Why a store could not do what a host or an agent asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedTaskError {
    /// The envelope is wrong.
    #[error(transparent)]
    Json(#[from] json::Error),
    /// The journal is wrong.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is a record of that id.
    #[error("a record {0:?} is there already")]
    Exists(String),
    /// There is no record of that id.
    #[error("there is no record {0:?}")]
    Unknown(String),
    /// The record is none that patches could have made.
    #[error("the record cannot be created: {reason} at {path:?}")]
    Refused {
        /// Where in the record.
        path: String,
        /// What a patch that brought the same would be answered.
        reason: MergeReason,
    },
}
