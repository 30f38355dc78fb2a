//! The acts on the shared record and the space (§5).

use fak_sharedtask::Patch;

use super::{Body, RawJson};

/// An act on the record or the space.
#[derive(Clone, Debug)]
pub(crate) enum RecordAct {
    /// `create` a record.
    Create { record: RawJson },
    /// `patch` a record.
    Patch { patch: Box<Patch>, base: Base, key: Option<String> },
    /// `approve` a held patch (§5.7).
    Approve { task: String, decision: String },
    /// `reject` a held patch (§5.7).
    Reject { task: String, decision: String },
    /// `view` a record (§5.8).
    View { task: String },
    /// `events` of a record (§5.8).
    Events { task: String },
    /// `watch` a record or the space (§5.9, §5.11).
    Watch { what: Watched, name: String },
    /// `next` of a watch.
    Next { name: String },
    /// `journal` of a record (§5.10).
    Journal { task: String },
    /// `load` a journal into a new store (§5.10).
    Load { journal: JournalSource },
    /// `put` a new cell (§5.11).
    Put { key: String, body: Body },
    /// `cas` a cell (§5.11).
    Cas { key: String, body: Body, version: u64, scope: Option<fak_abi::ShareScope> },
    /// `get` a cell (§5.11).
    Get { key: String, scope: Option<fak_abi::ShareScope> },
    /// `delete` a cell (§5.11).
    Delete { key: String, version: u64, scope: Option<fak_abi::ShareScope> },
    /// `list` cells (§5.11).
    List { prefix: String, scope: Option<fak_abi::ShareScope> },
}

/// The base of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// As it stands in the patch.
    Written,
    /// `"@current"`: the revision in force when the step is performed.
    Current,
    /// `"@0"`, `"@1"`, …: the revision of that number.
    Number(usize),
}

/// What a watch follows.
#[derive(Clone, Debug)]
pub(crate) enum Watched {
    /// A record's events.
    Task(String),
    /// The cells under a prefix.
    Prefix(String),
}

/// Where a journal to load comes from.
#[derive(Clone, Debug)]
pub(crate) enum JournalSource {
    /// Kept by an earlier `journal` with `save`.
    Saved(String),
    /// Written in the scenario, or read from the file it names.
    Text(RawJson),
}
