//! Journals: a record's first revision and every accepted event and record after it, chained (§5.10). Written, verified and
//! loaded as streams: memory is one record.

mod canonical;
mod check;
mod load;
mod write;

use std::io::Read;

use fak_abi::Digest;
use fak_abi::json::{self, StreamError};

use crate::envelope::{Hash, Limits, TaskId};
pub use load::Tear;
pub(crate) use load::{head, load};
pub(crate) use write::write;

/// The schema of a journal.
pub const JOURNAL_SCHEMA: &str = "fak.shared-task-journal.v1";

/// A place in a journal kept outside it: exposes a journal that was cut and digested anew (§5.10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The record.
    pub task_id: TaskId,
    /// How many entries there were: the number of the revision.
    pub revision: usize,
    /// The digest of the last event; of the initial revision, if there was none.
    pub head: Digest,
}

/// How strictly a journal is verified (§5.10).
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Whether a journal whose chain holds placeholders may pass, as far as it can be checked.
    pub allow_opaque: bool,
    /// What the journal must still contain.
    pub checkpoint: Option<Checkpoint>,
    /// How large its records may be.
    pub limits: Limits,
}

/// What a verified journal holds (§5.10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalSummary {
    /// The record.
    pub task_id: TaskId,
    /// How many entries: the number of its last revision.
    pub entries: usize,
    /// Its last revision.
    pub rev: Hash,
    /// The digest of the last event; of the initial revision, if there is none. None if that is opaque.
    pub head: Option<Digest>,
    /// The journal's own digest, as written.
    pub digest: Hash,
    /// Where the first placeholder in the chain stands, if there is one: the journal is opaque (§5.10).
    pub opaque: Option<JournalPlace>,
}

impl JournalSummary {
    /// A checkpoint of the journal's end.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        Some(Checkpoint { task_id: self.task_id.clone(), revision: self.entries, head: self.head? })
    }
}

/// A member of a journal (§5.10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPlace {
    /// The entry, from 0; none for the journal's own members and the initial record.
    pub entry: Option<usize>,
    /// The member.
    pub member: &'static str,
}

impl std::fmt::Display for JournalPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.entry {
            Some(entry) => write!(f, "entry {entry}, {}", self.member),
            None => f.write_str(self.member),
        }
    }
}

/// Why a journal is not what it says (§5.10).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It cannot be read: the text is wrong, or the reader failed.
    #[error(transparent)]
    Read(#[from] StreamError),
    /// It cannot be written.
    #[error("cannot write the journal: {0}")]
    Write(#[from] std::io::Error),
    /// A link or digest does not hold.
    #[error("{place}: expected {expected}")]
    Broken {
        /// Where.
        place: JournalPlace,
        /// What would have held.
        expected: &'static str,
    },
    /// Its chain holds a placeholder, so that it proves nothing.
    #[error("{place}: the journal is opaque, expected \"sha256:\" and 64 lower-case hex digits")]
    Opaque {
        /// The first placeholder.
        place: JournalPlace,
    },
    /// It does not contain what the checkpoint saw.
    #[error("the journal (entries: {entries}) does not contain revision {revision} as the checkpoint saw it")]
    Cut {
        /// Entries there are.
        entries: usize,
        /// The revision of the checkpoint.
        revision: usize,
    },
    /// It verifies, and its records are not a history that patches make.
    #[error("{place}: expected {expected}")]
    NoHistory {
        /// Where.
        place: JournalPlace,
        /// What a patch would have left.
        expected: &'static str,
    },
}

impl JournalError {
    /// The first bad entry, from 0, if it is an entry.
    #[must_use]
    pub fn entry(&self) -> Option<usize> {
        match self {
            Self::Broken { place, .. } | Self::Opaque { place } | Self::NoHistory { place, .. } => {
                place.entry
            }
            Self::Read(StreamError::Json(error)) => {
                error.path().strip_prefix("/entries/")?.split('/').next()?.parse().ok()
            }
            _ => None,
        }
    }

    /// Whether the text merely ends too early: a torn journal.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        matches!(
            self,
            Self::Read(StreamError::Json(error)) if matches!(error.problem(), json::Problem::EndOfText { .. })
        )
    }
}

/// Verifies a journal: every revision, record digest, event link and the journal's digest (§5.10). Streams: memory is one
/// record. Repeated ids, odd times and a recurring revision, all of which Go writes, are no errors.
///
/// # Errors
/// For the first entry or member that is wrong.
pub fn verify_journal<R: Read>(input: R, options: &VerifyOptions) -> Result<JournalSummary, JournalError> {
    let mut walk = check::Walk::new(input, &options.limits);
    while walk.next_entry()?.is_some() {}
    let summary = walk.finish()?;
    if let Some(place) = &summary.opaque
        && !options.allow_opaque
    {
        return Err(JournalError::Opaque { place: place.clone() });
    }
    Ok(summary).and_then(|summary| contains(&walk, summary, options.checkpoint.as_ref()))
}

fn contains<R: Read>(
    walk: &check::Walk<'_, R>,
    summary: JournalSummary,
    checkpoint: Option<&Checkpoint>,
) -> Result<JournalSummary, JournalError> {
    let Some(checkpoint) = checkpoint else { return Ok(summary) };
    if checkpoint.task_id != summary.task_id {
        let place = JournalPlace { entry: None, member: "task_id" };
        return Err(JournalError::Broken { place, expected: "the task of the checkpoint" });
    }
    if walk.head_at(checkpoint.revision) != Some(checkpoint.head) {
        return Err(JournalError::Cut { entries: summary.entries, revision: checkpoint.revision });
    }
    Ok(summary)
}
