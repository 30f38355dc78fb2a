//! The shared task record and the space: state that many agents edit by adjudicated patch.
//!
//! A [`TaskStore`] holds records. A record advances only by [`Patch`]; a stale patch merges where it can and otherwise
//! conflicts with the value its writer saw, the value now and the value proposed (§5.3). Every revision is a digest over the
//! public encoding (§7), every accepted patch an event that names the one before, and the whole history a journal that any
//! implementation can verify (§5.10). A [`Space`] holds named cells for one run (§5.11). Every verb of both is an act that
//! the kernel of the acting agent decides: a verdict says whether it may happen, a [`PatchResult`] what the merge made of it.
//!
//! ```
//! use fak_abi::{CapSet, Id, PrincipalSpec, ShareScope, Timestamp};
//! use fak_adjudicate::Kernel;
//! use fak_sharedtask::{BodyRef, Domain, Patch, Record, StoreConfig, TaskId, TaskStore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let domain = Domain { fleet: Some(Id::new("f1")?), tenant: None };
//! let store = TaskStore::new(StoreConfig { domain, ..StoreConfig::default() });
//! let kernel = Kernel::builder().driver(store.driver()).build()?;
//! let planner = kernel.attach(PrincipalSpec::agent(Id::new("planner")?).fleet(Id::new("f1")?).caps(CapSet::ALL))?;
//!
//! let task = TaskId::new("task_release").ok_or("no id")?;
//! let body = BodyRef::of(b"what has to be done", ShareScope::Fleet);
//! let record = Record::new(task.clone(), planner.principal(), "Ship it", body, Timestamp::default());
//! let base = store.create_by(&planner, &record).ok()??;
//!
//! let patch = Patch::new(task.clone(), base, planner.principal()).state("done").message("shipped");
//! let first = store.patch(&planner, &patch, None).ok()?;
//! assert!(first.result.is_accepted());
//!
//! // The same patch again stands on a base that is no longer current: it is told what changed.
//! let again = store.patch(&planner, &patch, None).ok()?;
//! let conflict = again.result.conflict.ok_or("no conflict")?;
//! assert_eq!(&*again.result.reason, "STALE_BASE");
//! assert_eq!((conflict.base_value.as_str(), conflict.current_value.as_str()), (Some("open"), Some("done")));
//!
//! assert_eq!(&*store.view(&planner, &task).ok()?.state, "done");
//! # Ok(())
//! # }
//! ```
//!
//! Clauses (`§5.3`) are those of [the protocol](https://github.com/fak-protocol/fak/blob/main/docs/protocol.md).
//!
//! # Architecture invariants
//! No file is opened here: journals stream through `Read` and `Write` handed in. No foreign code (rungs, witnesses,
//! admitters, emitters, wakers) runs under a lock. Nothing that may not flow to a reader is in anything the reader is
//! handed: views, events, conflicts, held patches, errors.

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
    HashFormError, HeldPatch, HeldState, IdFormError, LOCAL_STORE, Limits, List, MergeReason, MergeVerdict,
    Note, NoteKind, Op, OpKind, Patch, PatchResult, Quarantine, Record, TaskEvent, TaskId,
};
pub use error::SharedTaskError;
pub use journal::{
    Checkpoint, JOURNAL_SCHEMA, JournalError, JournalPlace, JournalSummary, Tear, VerifyOptions,
    verify_journal,
};
pub use merge::PatchFault;
pub use rules::{ApprovalRule, Rules};
pub use sight::Domain;
pub use space::{CellChange, CellEvent, CellView, CellWatch, CellWrite, SPACE_SITES, Space, SpaceConfig};
pub use store::{
    Bounds, EventView, EventsView, Patched, STORE_SITES, StoreConfig, TaskStore, TaskView, TaskWatch, Watched,
};
