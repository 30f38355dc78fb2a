//! What a scenario is performed in: one kernel and what is built into it, the agents' handles, and what steps have kept.

use std::{collections::HashMap, path::Path, sync::Arc};

use fak_abi::{
    AgentHandle, CapSet, Gate as _, Id, PrincipalKind, PrincipalSpec, Ref, ShareScope, Taint, Ticket, Verdict,
};
use fak_adjudicate::{Kernel, KernelLimits, ManualClock, Rank};
use fak_agenttopo::{Enforced, Topology};

use super::{
    done::Done,
    log::{Log, Tally},
    wave::Waves,
};
use crate::{
    act::{Actor, Body, Source, Subject},
    error::{Place, Problem, ScenarioError},
    model::{AgentSpec, Scenario, TopologySpec},
};

/// What a step kept with `save`.
#[derive(Clone)]
pub(super) enum Kept {
    /// A value.
    Ref(Ref),
}

/// Where the acts happen.
pub(super) struct World {
    pub(super) kernel: Arc<Kernel>,
    pub(super) clock: ManualClock,
    log: Log,
    pub(super) waves: Waves,
    /// Another kernel: its handles are those of principals that were never attached to this one.
    elsewhere: Option<Arc<Kernel>>,
    specs: HashMap<String, PrincipalSpec>,
    /// The handles by name, those of strangers with their `?`.
    handles: HashMap<String, AgentHandle>,
    kept: HashMap<String, Kept>,
    /// Admitted calls; they stay pending, because no act reaps them.
    pub(super) tickets: Vec<Ticket>,
}

/// Why a body could not be made: the kernel's refusal, or something that was never kept.
pub(super) enum Unmade {
    /// Its widening was refused; that is the step's verdict.
    Refused(Verdict),
    /// It refers to nothing.
    Missing(String),
}

impl World {
    pub(super) fn new(scenario: &Scenario, audit: Option<&Path>) -> Result<Self, ScenarioError> {
        let setup = &scenario.setup;
        let clock = ManualClock::at(setup.clock);
        let mut limits = KernelLimits::default();
        if let Some(pending) = setup.limits.pending {
            limits.pending = usize::try_from(pending).unwrap_or(usize::MAX);
        }
        let (audit, log) = Log::open(audit, setup.clock)?;
        let waves = Waves::new(setup.lanes.as_ref())
            .map_err(|error| setup_error(scenario, "lanes", &error.to_string()))?;
        let mut builder = Kernel::builder();
        if let Some(spec) = &setup.topology {
            let topology = topology(spec).map_err(|text| setup_error(scenario, "topology", &text))?;
            let enforced = Arc::new(Enforced::new(topology));
            builder = builder.rung(Rank(0), Arc::clone(&enforced) as _).edges(enforced);
        }
        let kernel = builder
            .driver(Arc::clone(&waves.comm) as _)
            .driver(Arc::clone(&waves.arbiter) as _)
            .audit(Arc::new(audit))
            .time(Arc::new(clock.clone()))
            .limits(limits)
            .build()
            .map_err(|error| setup_error(scenario, "", &error.to_string()))?;
        let mut world = Self {
            kernel,
            clock,
            log,
            waves,
            elsewhere: None,
            specs: HashMap::new(),
            handles: HashMap::new(),
            kept: HashMap::new(),
            tickets: Vec::new(),
        };
        for agent in &setup.agents {
            let wrong = |text: String| setup_error(scenario, &format!("agents/{}", agent.name), &text);
            let spec = spec(agent).map_err(wrong)?;
            world.specs.insert(agent.name.clone(), spec);
            world.attach(&agent.name).map_err(wrong)?;
        }
        Ok(world)
    }

    /// Attaches an agent of the scenario; its handle replaces that of an earlier incarnation.
    pub(super) fn attach(&mut self, name: &str) -> Result<(), String> {
        let spec = self.specs.get(name).cloned().ok_or_else(|| format!("unknown agent \"{name}\""))?;
        let handle = self.kernel.attach(spec).map_err(|error| error.to_string())?;
        self.handles.insert(name.to_owned(), handle);
        Ok(())
    }

    /// Writes the audit log so far.
    pub(super) fn drain(&mut self) -> Result<(), ScenarioError> {
        self.log.drain()
    }

    /// What the audit log says so far.
    pub(super) fn tally(&mut self) -> Result<Tally, ScenarioError> {
        self.log.tally()
    }

    /// The handle that acts: that of an agent, also after it was detached, or a stranger's.
    pub(super) fn handle(&mut self, actor: &Actor) -> Result<AgentHandle, Done> {
        match actor {
            Actor::Agent(name) => self
                .handles
                .get(name)
                .cloned()
                .ok_or_else(|| Done::failed(format!("agent \"{name}\" was never attached"))),
            Actor::Stranger(name) => self.stranger(name).map_err(Done::failed),
            Actor::Host => Err(Done::failed("an agent to perform it")),
        }
    }

    /// A handle that looks like any other, minted by another kernel.
    fn stranger(&mut self, name: &str) -> Result<AgentHandle, String> {
        let key = format!("?{name}");
        if let Some(handle) = self.handles.get(&key) {
            return Ok(handle.clone());
        }
        let elsewhere = match &self.elsewhere {
            Some(kernel) => Arc::clone(kernel),
            None => Kernel::builder()
                .time(Arc::new(self.clock.clone()))
                .build()
                .map_err(|error| error.to_string())?,
        };
        let id = Id::new(name).map_err(|error| error.to_string())?;
        let handle = elsewhere
            .attach(PrincipalSpec::agent(id).caps(CapSet::ALL))
            .map_err(|error| error.to_string())?;
        self.elsewhere = Some(elsewhere);
        self.handles.insert(key, handle.clone());
        Ok(handle)
    }

    /// Keeps what a step yields.
    pub(super) fn keep(&mut self, name: &str, kept: Kept) {
        self.kept.insert(name.to_owned(), kept);
    }

    /// What a step kept.
    pub(super) fn kept(&self, name: &str) -> Result<&Kept, String> {
        self.kept
            .get(name)
            .ok_or_else(|| format!("nothing was kept as \"{name}\": the step that saves it did not succeed"))
    }

    /// The value a step kept.
    pub(super) fn value(&self, name: &str) -> Result<Ref, String> {
        match self.kept(name)? {
            Kept::Ref(body) => Ok(body.clone()),
        }
    }

    /// Makes a body: its bytes by its owner, widened by its owner, labelled by the host, in this order.
    pub(super) fn body(&mut self, by: &Actor, body: &Body) -> Result<Ref, Unmade> {
        let missing = |done: Done| Unmade::Missing(done.why());
        let maker = match &body.owner {
            Some(owner) => self.handle(&Actor::Agent(owner.clone())).map_err(missing)?,
            None => self.handle(by).map_err(missing)?,
        };
        let mut made = match &body.source {
            Source::Bytes(bytes) => maker.mint(bytes.clone()),
            Source::Saved(name) => self.value(name).map_err(Unmade::Missing)?,
        };
        if let Some(scope) = body.scope.filter(|scope| *scope != ShareScope::Agent) {
            let outcome = maker.widen(&made, scope);
            made = match outcome {
                fak_abi::Outcome::Allow { value, .. } => value,
                fak_abi::Outcome::Refuse(verdict) => return Err(Unmade::Refused(verdict)),
            };
        }
        match body.taint {
            Some(taint) => {
                self.label(&made, taint).ok_or_else(|| Unmade::Missing("a value of this kernel".to_owned()))
            }
            None => Ok(made),
        }
    }

    /// The host's label on a value, whichever kernel made it.
    fn label(&self, body: &Ref, taint: Taint) -> Option<Ref> {
        self.kernel.label(body, taint).or_else(|| self.elsewhere.as_ref()?.label(body, taint))
    }

    /// The value of a `body` or `ref`.
    pub(super) fn subject(&mut self, by: &Actor, subject: &Subject) -> Result<Ref, Unmade> {
        match subject {
            Subject::Body(body) => self.body(by, body),
            Subject::Saved(name) => self.value(name).map_err(Unmade::Missing),
        }
    }
}

impl From<Unmade> for Done {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Refused(verdict) => Self::decided(&verdict),
            Unmade::Missing(why) => Self::failed(why),
        }
    }
}

fn spec(agent: &AgentSpec) -> Result<PrincipalSpec, String> {
    let id = |text: &str| Id::new(text).map_err(|error| error.to_string());
    Ok(PrincipalSpec {
        id: id(&agent.name)?,
        kind: if agent.human { PrincipalKind::Human } else { PrincipalKind::Agent },
        fleet: agent.fleet.as_deref().map(id).transpose()?,
        tenant: agent.tenant.as_deref().map(id).transpose()?,
        trace: Some(id(&agent.trace_id)?),
        caps: agent.caps,
    })
}

fn topology(spec: &TopologySpec) -> Result<Topology, String> {
    let id = |text: &str| Id::new(text).map_err(|error| error.to_string());
    let edges =
        spec.edges.iter().map(|(from, to)| Ok((id(from)?, id(to)?))).collect::<Result<Vec<_>, String>>()?;
    Topology::over(id(&spec.name)?, &edges).map_err(|error| error.to_string())
}

/// What stands before the steps cannot be set up.
fn setup_error(scenario: &Scenario, member: &str, text: &str) -> ScenarioError {
    ScenarioError::Invalid {
        place: Box::new(Place {
            path: scenario.path.clone(),
            line: 1,
            column: 1,
            step: None,
            member: member.to_owned(),
        }),
        problem: Problem::Rule(text.to_owned()),
    }
}
