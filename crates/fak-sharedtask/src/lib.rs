//! The shared task record and the space: state that many agents edit by adjudicated patch.

mod envelope;
mod journal;
mod merge;
mod plan;
mod rules;
mod sight;
mod task;

pub use envelope::*;
pub use journal::{
    Checkpoint, JOURNAL_SCHEMA, JournalError, JournalPlace, JournalSummary, Tear, VerifyOptions,
    verify_journal,
};
pub use rules::{ApprovalRule, Rules};
pub use sight::{Domain, Sight};
