//! The shared task record and the space: state that many agents edit by adjudicated patch.

mod envelope;
mod error;
mod journal;
mod merge;
mod plan;
mod rules;
mod sight;
mod space;
mod store;
mod task;

pub use envelope::{
    Actor, Approval, ArtifactRef, BodyRef, Conflict, Decision, Denial, Durability, Envelope, EventId, Hash,
    HeldPatch, HeldState, LOCAL_STORE, Limits, List, MergeReason, MergeVerdict, Note, NoteKind, Op, OpKind,
    Patch, PatchResult, Quarantine, Record, TaskEvent, TaskId,
};
pub use error::SharedTaskError;
pub use journal::{
    Checkpoint, JOURNAL_SCHEMA, JournalError, JournalPlace, JournalSummary, Tear, VerifyOptions,
    verify_journal,
};
pub use rules::{ApprovalRule, Rules};
pub use sight::{Domain, Sight};
pub use space::{CellChange, CellEvent, CellView, CellWatch, CellWrite, SPACE_SITES, Space, SpaceConfig};
pub use store::{
    Bounds, EventView, EventsView, Patched, STORE_SITES, StoreConfig, TaskStore, TaskView, TaskWatch, Watched,
};
