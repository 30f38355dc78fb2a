//! The product as an episode drives it: one kernel with every layer, on a clock that is moved by hand.

pub(crate) mod rungs;
pub(crate) mod task;
pub(crate) mod topology;

use std::sync::Arc;

use fak_a2achan::{
    Addressing, Binding, Bus, BusConfig, Correction, Endpoint, LeasedMessage, Limits, Message, PendingReply,
    Subscription,
};
use fak_abi::{Capability, Id, PrincipalSpec, Ref};
use fak_adjudicate::{
    Audit, AuditLog, AuditOptions, Kernel, ManualClock, Policy, PolicyRung, Pool, PoolOptions, Rank,
};

use fak_comm::{Barrier, Comm, Communicator, Group, GroupSpec, LaneArbiter, Lease, Member, PendingDelivery};
use fak_sharedtask::{
    ApprovalRule, Bounds, CellWatch, Domain, Patch, Rules, Space, SpaceConfig, StoreConfig, TaskStore,
    TaskWatch,
};

use self::rungs::{Admitter, Disk, Fickle, Leak, Meter, Oracle, State, Watcher};
use self::task::Task;
use self::topology::Edged;
use super::fault::Fault;
use super::model::groups::{self, PARENT};
use super::model::host::{FICKLE, POLICIES};
use super::model::topology::FIRST;
use super::model::watch::{BACKLOG, LAG};
use super::model::{Agent, Cap};
use super::setup::Setup;

/// Where every episode begins.
pub(crate) const START: u64 = 1_767_225_600_000_000;

const LANES: &str = "[lanes]\nconcurrent = [\"docs\", \"src\", \"guide\"]\nexclusive = [\"abi\"]\n\
    [lanes.trees]\ndocs = [\"docs/**\"]\nsrc = [\"src/**\"]\nguide = [\"docs/guide/**\"]\nabi = [\"abi/**\"]\n";

/// The product.
pub(crate) struct World {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) bus: Bus,
    pub(crate) clock: ManualClock,
    pub(crate) state: Arc<State>,
    pub(crate) policy: Option<Arc<PolicyRung>>,
    pub(crate) audit: AuditLog<Disk>,
    pub(crate) leak: Arc<Leak>,
    /// One for each attachment, as in the model.
    pub(crate) agents: Vec<Endpoint>,
    pub(crate) bodies: Vec<Ref>,
    pub(crate) subs: Vec<Option<Subscription>>,
    pub(crate) bindings: Vec<Option<Bound>>,
    /// One for each guard of the model.
    pub(crate) guards: Vec<Option<LeasedMessage>>,
    pub(crate) tasks: Vec<Task>,
    /// One for each request of the model, and requests that were received.
    pub(crate) asked: Vec<Option<PendingReply>>,
    pub(crate) inbox: Vec<Received>,
    pub(crate) space: Space,
    pub(crate) store: TaskStore,
    pub(crate) arbiter: Arc<LaneArbiter>,
    /// Every token that was ever granted.
    pub(crate) tokens: Vec<Lease>,
    /// The kernel's half of the audit log.
    pub(crate) queue: Arc<Audit>,
    /// One for each correction of the model, and each window.
    pub(crate) corrections: Vec<Correction>,
    pub(crate) windows: Vec<Id>,
    pub(crate) comm: Arc<Comm>,
    pub(crate) pool: Arc<Pool>,
    /// Refs that pin what is in the pool, with the model's number of it.
    pub(crate) pins: Vec<(u64, Ref)>,
    pub(crate) edges: Option<Arc<Edged>>,
    /// One for each group of the model, and each barrier.
    pub(crate) groups: Vec<Communicator>,
    pub(crate) barriers: Vec<Barrier>,
    /// Hand-overs that are neither completed nor withdrawn, by the model's number.
    pub(crate) pending: Vec<(usize, PendingDelivery)>,
    /// One for each held patch of the model, and each watch.
    pub(crate) held: Vec<(Patch, String)>,
    pub(crate) task_watches: Vec<Option<TaskWatch>>,
    pub(crate) cell_watches: Vec<Option<CellWatch>>,
}

/// A request that was received: outright, or under the guard of that number.
pub(crate) enum Received {
    Message(Message),
    Guard(usize),
}

/// A binding, with what the model knows it by.
pub(crate) struct Bound {
    pub(crate) binding: Binding,
    pub(crate) who: usize,
    pub(crate) key: super::model::Key,
    pub(crate) number: u64,
}

/// What cannot be set up is a fault of the simulation.
pub(crate) fn broken(what: impl std::fmt::Display) -> Fault {
    Fault::new(format!("the simulation itself: {what}"))
}

/// The policy of that number.
pub(crate) fn policy(number: u8) -> Result<Policy, Fault> {
    let text = POLICIES.get(usize::from(number)).copied().unwrap_or_default();
    Policy::from_toml("policy.toml", text).map_err(broken)
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Result<Self, Fault> {
        let config = BusConfig {
            capacity: setup.capacity,
            max_body_bytes: setup.max_body,
            addressing: if setup.declared { Addressing::Declared } else { Addressing::Open },
            redeliveries: setup.redeliveries,
            limits: Limits {
                mailboxes: setup.mailboxes,
                queued_bytes: setup.queued_bytes,
                subscriptions: setup.subscriptions,
                waits: setup.waits,
                leases: setup.leases,
                remembered_keys: setup.remembered,
                ..Limits::default()
            },
            ..BusConfig::default()
        };
        let bus = Bus::new(config).map_err(broken)?;
        let space = Space::new(SpaceConfig { backlog: BACKLOG, ..SpaceConfig::default() });
        let approval = if setup.approval {
            vec![ApprovalRule::Path("/title".to_owned()), ApprovalRule::Scope(fak_abi::ShareScope::Tenant)]
        } else {
            Vec::new()
        };
        let domain = |id: &str| Id::new(id).map(Some).map_err(broken);
        let store = TaskStore::new(StoreConfig {
            domain: Domain { fleet: domain("f0")?, tenant: domain("t0")? },
            rules: Rules { max_scope: fak_abi::ShareScope::Tenant, approval, ..Rules::default() },
            bounds: Bounds { lag: LAG, ..Bounds::default() },
            ..StoreConfig::default()
        });
        let arbiter = Arc::new(LaneArbiter::new(LANES.parse().map_err(broken)?));
        let start = fak_abi::Timestamp::from_micros(START);
        let clock = ManualClock::at(start);
        let state = Arc::new(State::default());
        let leak = Arc::new(Leak::default());
        let slots = std::num::NonZeroUsize::new(setup.audit).ok_or_else(|| broken("no audit slots"))?;
        let options = AuditOptions { capacity: slots, share: None };
        let disk = Disk { bytes: Vec::new(), state: Arc::clone(&state) };
        let (audit, log, _) = AuditLog::open(&b""[..], disk, start, options).map_err(broken)?;
        let queue = Arc::new(audit);
        let comm = Arc::new(Comm::new());
        let bytes = std::num::NonZeroUsize::new(setup.pool).ok_or_else(|| broken("no pool"))?;
        let pool = Arc::new(Pool::new(PoolOptions { bytes, share: None }));
        let mut builder = Kernel::builder()
            .time(Arc::new(clock.clone()))
            .driver(bus.driver())
            .driver(space.driver())
            .driver(store.driver())
            .driver(Arc::clone(&arbiter) as _)
            .driver(Arc::clone(&comm) as _)
            .driver(Arc::clone(&pool) as _)
            .audit(Arc::clone(&queue) as _)
            .emitter(Watcher { leak: Arc::clone(&leak), state: Arc::clone(&state) })
            .witness(Oracle)
            .admitter(Rank(0), Arc::new(Admitter(Arc::clone(&state))));
        let before = FICKLE.len() / 2;
        if setup.fickle {
            for (at, tool) in FICKLE.iter().enumerate() {
                let rank = Rank(if at < before { -10 } else { 10 });
                let rung = Fickle { at, tool, state: Arc::clone(&state) };
                builder = builder.rung(rank, Arc::new(rung));
            }
        }
        let rung = if setup.policy { Some(Arc::new(PolicyRung::new(policy(0)?))) } else { None };
        if let Some(rung) = &rung {
            builder = builder.rung(Rank(0), Arc::clone(rung) as _);
        }
        let edges = if setup.edges { Some(Arc::new(Edged::new(&FIRST)?)) } else { None };
        if let Some(edges) = &edges {
            builder = builder.rung(Rank(5), Arc::clone(edges) as _).edges(Arc::clone(edges) as _);
        }
        if setup.metered {
            builder = builder.rung(Rank(20), Arc::new(Meter(Arc::clone(&state))));
        }
        let groups = groups::first().into_iter().map(|group| {
            let id = |text: &str| Id::new(text).map_err(broken);
            let members = group.members.iter().map(|(member, lane)| {
                let member = Member::new(id(member)?);
                Ok(match lane {
                    Some(lane) => member.in_lane(id(lane)?),
                    None => member,
                })
            });
            let spec = GroupSpec::new(id(&group.name)?, members.collect::<Result<_, Fault>>()?);
            let spec = if group.has_parent { spec.under(id(PARENT)?) } else { spec };
            Ok(comm.open(Group::new(spec).map_err(broken)?))
        });
        let groups = groups.collect::<Result<Vec<_>, Fault>>()?;
        Ok(Self {
            queue,
            corrections: Vec::new(),
            windows: Vec::new(),
            groups,
            comm,
            pool,
            pins: Vec::new(),
            edges,
            barriers: Vec::new(),
            pending: Vec::new(),
            held: Vec::new(),
            task_watches: Vec::new(),
            cell_watches: Vec::new(),
            kernel: builder.build().map_err(broken)?,
            bus,
            clock,
            state,
            policy: rung,
            audit: log,
            leak,
            agents: Vec::new(),
            bodies: Vec::new(),
            subs: Vec::new(),
            bindings: Vec::new(),
            guards: Vec::new(),
            tasks: Vec::new(),
            asked: Vec::new(),
            inbox: Vec::new(),
            space,
            store,
            arbiter,
            tokens: Vec::new(),
        })
    }

    /// How the model's agent is attached.
    pub(crate) fn spec(agent: &Agent) -> Result<PrincipalSpec, Fault> {
        let id = |text: &str| Id::new(text).map_err(broken);
        let mut spec = if agent.human {
            PrincipalSpec::human(id(&agent.id)?)
        } else {
            PrincipalSpec::agent(id(&agent.id)?)
        };
        if let Some(fleet) = agent.fleet {
            spec = spec.fleet(id(&format!("f{fleet}"))?);
        }
        if let Some(tenant) = agent.tenant {
            spec = spec.tenant(id(&format!("t{tenant}"))?);
        }
        let caps: fak_abi::CapSet = agent.caps.iter().map(|cap| capability(*cap)).collect();
        Ok(spec.trace(id(&agent.trace)?).caps(caps))
    }
}

const fn capability(cap: Cap) -> Capability {
    match cap {
        Cap::Send => Capability::A2aSend,
        Cap::Recv => Capability::A2aRecv,
        Cap::Widen => Capability::RefWiden,
        Cap::SpaceWrite => Capability::SpaceWrite,
        Cap::SpaceRead => Capability::SpaceRead,
        Cap::TaskWrite => Capability::SharedtaskWrite,
        Cap::TaskRead => Capability::SharedtaskRead,
        Cap::Approve => Capability::SharedtaskApprove,
        Cap::Lane => Capability::LaneLease,
        Cap::Collective => Capability::CommCollective,
        Cap::PoolWrite => Capability::PoolWrite,
        Cap::PoolRead => Capability::PoolRead,
    }
}
