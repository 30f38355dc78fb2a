//! A scenario in memory: what it sets up and what is done. How it is read is `parse`'s, how it is done `perform`'s.

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use fak_abi::{Id, PrincipalSpec, ShareScope, Timestamp};
use fak_adjudicate::Policy;
use fak_agenttopo::Topology;
use fak_comm::Taxonomy;
use fak_sharedtask::ApprovalRule;

use crate::act::{RawJson, Step};

/// A scenario, read and checked: every name its steps use is known, and no step expects what its act does not answer.
///
/// ```
/// use std::path::Path;
/// use fak_scenario::{Performance, Reach, Scenario};
///
/// let text = br#"{"schema": "fak.scenario.v1", "name": "nobody may send", "agents": {"alpha": {"caps": []}},
///   "steps": [{"do": "send", "by": "alpha", "to": "in_kernel:x", "body": {"text": "x"},
///              "expect": {"verdict": "deny", "reason": "DEFAULT_DENY"}}]}"#;
/// let report = Scenario::parse(text, Path::new("none.json"), Reach::Folder)?.perform(&Performance::default())?;
/// assert!(report.held());
/// assert_eq!(report.steps.first().and_then(|step| step.at.as_deref()), Some("a2achan/no-send"));
/// # Ok::<(), fak_scenario::ScenarioError>(())
/// ```
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
    /// The policy.
    pub(crate) policy: Option<Policy>,
    /// The first rule of a policy inside the scenario that names nobody in it.
    pub(crate) idle_rule: Option<String>,
    /// Bounds of the bus and the kernel.
    pub(crate) limits: Limits,
    /// The lane tables.
    pub(crate) lanes: Option<Taxonomy>,
    /// The enforced topology.
    pub(crate) topology: Option<Topology>,
    /// The record store.
    pub(crate) store: StoreSpec,
    /// Records the host creates.
    pub(crate) tasks: Tasks,
    /// The starting time.
    pub(crate) clock: Timestamp,
}

/// Records the host creates.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// Each as it stands in its file.
    pub(crate) records: Vec<RawJson>,
    /// The file, if it is not the scenario's.
    pub(crate) file: Option<PathBuf>,
}

/// An agent of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct AgentSpec {
    /// Its name in the scenario, which is its id.
    pub(crate) name: String,
    /// As what it is attached.
    pub(crate) principal: PrincipalSpec,
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
    pub(crate) burst: NonZeroU32,
    /// Milliseconds a token takes.
    pub(crate) per_ms: u64,
}

/// The domain of the record store.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreSpec {
    /// Its fleet.
    pub(crate) fleet: Option<Id>,
    /// Its tenant.
    pub(crate) tenant: Option<Id>,
    /// The widest scope a patch may have.
    pub(crate) max_scope: Option<ShareScope>,
    /// When approval is required.
    pub(crate) approval: Vec<ApprovalRule>,
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

    /// The principals its agents are attached as, in the order written.
    pub fn principals(&self) -> impl Iterator<Item = &PrincipalSpec> {
        self.setup.agents.iter().map(|agent| &agent.principal)
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
