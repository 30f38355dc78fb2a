//! What can be wrong with an audit log.

use std::io;

use fak_abi::json;
use thiserror::Error;

/// An audit log that cannot be read, written or believed (§3.6, §8).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A line is wrong: the first that is.
    #[error("audit line {line}: {fault}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        fault: AuditFault,
    },
    /// What was read is not what would be appended to.
    #[error("the audit log to append to has {actual} bytes, expected the {expected} that were read from it")]
    Mismatch {
        /// Bytes read.
        expected: u64,
        /// Bytes of the sink.
        actual: u64,
    },
    /// The reader failed.
    #[error("cannot read the audit log: {0}")]
    Read(#[source] io::Error),
    /// The sink failed. What was not written stays queued; drain again once it can be.
    #[error("cannot write the audit log: {0}")]
    Write(#[source] io::Error),
    /// A checkpoint is not one.
    #[error("audit checkpoint: {0}")]
    Checkpoint(#[source] json::Error),
}

/// What is wrong with a line of an audit log (§3.6).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AuditFault {
    /// It is the last and has no line feed: a write that was cut short. Opening the log repairs it.
    #[error("torn: the line has no end")]
    Torn,
    /// It is longer than any entry.
    #[error("too long, expected at most {0} bytes")]
    Long(usize),
    /// It does not end with the sum of what stands before.
    #[error("expected an entry that ends with its \"sum\"")]
    Shape,
    /// It was changed: its sum is of other bytes.
    #[error("edited: the line is not what its \"sum\" was taken of")]
    Sum,
    /// It is no entry.
    #[error("at {:?}: {}", .0.path(), .0.problem())]
    Entry(json::Error),
    /// Lines were removed, inserted, repeated or moved: here stands another entry.
    #[error("expected entry {expected}, found entry {found}")]
    Number {
        /// The entry that should stand here.
        expected: u64,
        /// The entry that does.
        found: u64,
    },
    /// It has the right number but was written after another line than the one before it.
    #[error("it does not follow the line before: that one was replaced, or this one")]
    Chain,
    /// The log ends before this line, which a checkpoint knows.
    #[error("cut off: the log ends after {found} lines, its checkpoint knows {expected}")]
    Cut {
        /// Lines the checkpoint knows.
        expected: u64,
        /// Lines there are.
        found: u64,
    },
    /// It is not the line that a checkpoint names.
    #[error("rewritten: it is not the line that the checkpoint names")]
    Head,
}
