//! A scenario in memory: what it sets up and what is done. How it is read is `parse`'s, how it is done `perform`'s.

use std::path::{Path, PathBuf};

use crate::act::{RawJson, Step};

/// A scenario, read and checked: every name its steps use is known, and no step expects what its act does not answer.
#[derive(Debug)]
pub struct Scenario {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) about: Option<String>,
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
}

/// What stands before the first step.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The agents, in the order written.
    pub(crate) agents: Vec<AgentSpec>,
    /// The policy's text.
    pub(crate) policy: Option<Attached>,
    /// Bounds of the bus and the kernel.
    pub(crate) limits: Limits,
    /// The lane tables.
    pub(crate) lanes: Option<Lanes>,
    /// The enforced topology.
    pub(crate) topology: Option<TopologySpec>,
    /// The record store.
    pub(crate) store: StoreSpec,
    /// Records the host creates.
    pub(crate) tasks: Vec<RawJson>,
    /// The starting time.
    pub(crate) clock: fak_abi::Timestamp,
}

/// An agent of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct AgentSpec {
    /// Its id.
    pub(crate) name: String,
    /// Whether it is a human.
    pub(crate) human: bool,
    /// Its fleet.
    pub(crate) fleet: Option<String>,
    /// Its tenant.
    pub(crate) tenant: Option<String>,
    /// Its trace id.
    pub(crate) trace_id: String,
    /// What it advertises.
    pub(crate) caps: fak_abi::CapSet,
}

/// Text of a rule file or of an inline member, for the crate that reads it.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    /// The file it stands in, for errors.
    pub(crate) path: PathBuf,
    /// The text.
    pub(crate) text: String,
    /// The line its text starts on.
    pub(crate) line: usize,
}

/// Bounds of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// Messages a mailbox or inbox holds.
    pub(crate) mailbox_capacity: Option<u64>,
    /// Bytes of an inline body.
    pub(crate) max_body_bytes: Option<u64>,
    /// Calls admitted and not yet reaped.
    pub(crate) pending: Option<u64>,
    /// Times a leased message is put back.
    pub(crate) redeliveries: Option<u64>,
    /// Whether keys must be declared before they are sent to.
    pub(crate) declared: bool,
    /// The token bucket.
    pub(crate) rate: Option<Rate>,
}

/// A token bucket: `burst` tokens, one more each `per_ms`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Its size.
    pub(crate) burst: u64,
    /// Milliseconds a token takes.
    pub(crate) per_ms: u64,
}

/// The lane tables of a scenario.
#[derive(Clone, Debug)]
pub(crate) enum Lanes {
    /// Written in the scenario.
    Inline {
        /// Lanes that may run together.
        concurrent: Vec<String>,
        /// Lanes that run alone.
        exclusive: Vec<String>,
        /// The trees of the lanes.
        trees: Vec<(String, Vec<String>)>,
    },
    /// Read from a TOML file.
    File(Attached),
}

/// A topology, enforced over the agents its edges name.
#[derive(Clone, Debug)]
pub(crate) struct TopologySpec {
    /// Its name.
    pub(crate) name: String,
    /// Its edges, in the order declared.
    pub(crate) edges: Vec<(String, String)>,
    /// The line it stands on.
    pub(crate) line: usize,
}

/// The domain of the record store.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreSpec {
    /// Its fleet.
    pub(crate) fleet: Option<String>,
    /// Its tenant.
    pub(crate) tenant: Option<String>,
    /// The widest scope a patch may have.
    pub(crate) max_scope: Option<fak_abi::ShareScope>,
    /// When approval is required.
    pub(crate) require_approval: Option<RawJson>,
}

impl Scenario {
    /// What the scenario shows, in a few words.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Prose about it, citing clauses.
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }

    /// The file it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many steps it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether it has no step.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
