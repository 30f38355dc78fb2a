//! Who sends what to where, as a function of a message's number; and the product that it is done with.

use std::sync::Arc;

use fak_a2achan::{Bus, BusConfig, Endpoint};
use fak_abi::{CapSet, Capability, ChannelKey, Id, PrincipalSpec};
use fak_adjudicate::{Audit, Kernel};
use fak_sharedtask::{Domain, StoreConfig, TaskId, TaskStore};

use super::Options;
use crate::error::TaskError;

/// The load as numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) agents: u64,
    pub(super) mailboxes: u64,
    pub(super) messages: u64,
    pub(super) tasks: u64,
    pub(super) notes: u64,
    pub(super) journals: u64,
    pub(super) threads: u64,
    /// Neighbouring messages go to mailboxes so far apart.
    stride: u64,
}

impl Plan {
    pub(super) fn new(options: &Options) -> Self {
        let mailboxes = u64::from(options.mailboxes);
        Self {
            agents: u64::from(options.agents),
            mailboxes,
            messages: options.messages,
            tasks: u64::from(options.tasks),
            notes: u64::from(options.notes),
            journals: u64::from(options.journals.min(options.tasks)),
            threads: u64::from(options.threads),
            // A prime: each mailbox gets its share unless it divides their number.
            stride: if mailboxes.is_multiple_of(7_919) { 1 } else { 7_919 },
        }
    }

    /// Who sends a message: another at each round, so that a mailbox has many senders.
    pub(super) const fn sender(&self, message: u64) -> u64 {
        (message + message / self.mailboxes) % self.agents
    }

    /// The mailbox that a message goes to.
    pub(super) const fn mailbox(&self, message: u64) -> u64 {
        // Below the number of mailboxes each: the product fits.
        (message % self.mailboxes) * self.stride % self.mailboxes
    }

    /// Who has bound a mailbox.
    pub(super) const fn owner(&self, mailbox: u64) -> u64 {
        mailbox % self.agents
    }

    pub(super) fn key(mailbox: u64) -> Result<ChannelKey, TaskError> {
        format!("in_kernel:box-{mailbox}").parse().map_err(failed)
    }

    pub(super) fn task(number: u64) -> Result<TaskId, TaskError> {
        TaskId::new(&format!("task_{number}")).ok_or_else(|| failed("a task id is refused"))
    }
}

/// A step that this load may not be refused.
pub(super) fn failed(why: impl std::fmt::Display) -> TaskError {
    TaskError::Load(why.to_string())
}

/// The product: one kernel, one bus, one store.
pub(super) struct World {
    pub(super) bus: Bus,
    pub(super) store: TaskStore,
    pub(super) agents: Vec<Endpoint>,
}

impl World {
    /// Builds the kernel and attaches every agent.
    pub(super) fn new(plan: &Plan, audit: Option<Audit>) -> Result<Self, TaskError> {
        let per_agent = plan.mailboxes.div_ceil(plan.agents);
        let per_mailbox = plan.messages.div_ceil(plan.mailboxes);
        let mut config = BusConfig::default();
        // All may be sent before the first is received; and a mailbox may get its messages from one sender alone.
        config.capacity = config.capacity.max(usize::try_from(per_mailbox * 2).unwrap_or(usize::MAX));
        config.limits.mailboxes = config.limits.mailboxes.max(u32::try_from(per_agent).unwrap_or(u32::MAX));
        let bus = Bus::new(config).map_err(failed)?;
        let id = |text: &str| Id::new(text).map_err(failed);
        let domain = Domain { fleet: Some(id("load")?), tenant: None };
        let store = TaskStore::new(StoreConfig { domain, ..StoreConfig::default() });
        let mut builder = Kernel::builder().driver(bus.driver()).driver(store.driver());
        if let Some(audit) = audit {
            builder = builder.audit(Arc::new(audit));
        }
        let kernel = builder.build().map_err(failed)?;
        let caps: CapSet = [
            Capability::A2aSend,
            Capability::A2aRecv,
            Capability::RefWiden,
            Capability::SharedtaskWrite,
            Capability::SharedtaskRead,
        ]
        .into();
        let attach = |number: u64| {
            let spec = PrincipalSpec::agent(id(&format!("agent-{number}"))?).fleet(id("load")?).caps(caps);
            kernel.attach(spec).map(|handle| bus.endpoint(&handle)).map_err(failed)
        };
        let agents = (0..plan.agents).map(attach).collect::<Result<Vec<_>, TaskError>>()?;
        Ok(Self { bus, store, agents })
    }

    pub(super) fn agent(&self, number: u64) -> Result<&Endpoint, TaskError> {
        let agent = usize::try_from(number).ok().and_then(|at| self.agents.get(at));
        agent.ok_or_else(|| failed("an agent is missing"))
    }
}
