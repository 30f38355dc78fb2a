//! What a scenario is performed in: one kernel and what is built into it, the agents' handles, and what steps have kept.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use fak_a2achan::Message;
use fak_abi::{
    AgentHandle, AttachError, CapSet, Claim, Id, Outcome, PrincipalSpec, Ref, ShareScope, Taint, Testimony,
    Ticket, ToolCall, WitnessResolver,
};
use fak_adjudicate::{
    Kernel, KernelLimits, ManualClock, PolicyRung, Pool, PoolOptions, Rank, RateLimit, RateOptions, RateRung,
};
use fak_agenttopo::Enforced;
use fak_sharedtask::SharedTaskError;

use super::{
    Performance,
    channel::Channels,
    done::Stop,
    exchange::Exchanges,
    log::{Decided, Log, Tally},
    record::Records,
    steer::Steering,
    wave::Waves,
};
use crate::{
    act::{Actor, Body, Source, Subject},
    error::{Place, Problem, ScenarioError},
    model::{Rate, Scenario},
};

/// What a step kept with `save`.
#[derive(Clone)]
pub(super) enum Kept {
    /// A value.
    Ref(Ref),
    /// The decision under which a patch is held.
    Decision(String),
    /// A journal.
    Journal(Vec<u8>),
    /// A message that was received: its body is a value, and it may be a request to reply to.
    Message(Arc<Message>),
}

/// Where the acts happen.
pub(super) struct World {
    pub(super) kernel: Arc<Kernel>,
    /// The rung of the policy, if there is one.
    pub(super) policy: Option<Arc<PolicyRung>>,
    pub(super) pool: Arc<Pool>,
    pub(super) clock: ManualClock,
    log: Log,
    pub(super) channels: Channels,
    pub(super) exchanges: Exchanges,
    pub(super) steering: Steering,
    pub(super) records: Records,
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

/// The host's witness: it knows of a claim what the step says it does (§3.4).
struct HostWitness;

impl WitnessResolver for HostWitness {
    fn resolve(&self, claim: &Claim, _call: &ToolCall<'_>) -> Testimony {
        match claim.evidence.as_ref().map(Id::as_str) {
            Some("confirmed") => Testimony::Confirm,
            Some("refuted") => Testimony::Refute,
            _ => Testimony::Abstain,
        }
    }
}

impl World {
    pub(super) fn new(scenario: &Scenario, how: &Performance) -> Result<Self, ScenarioError> {
        let setup = &scenario.setup;
        let clock = ManualClock::at(setup.clock);
        let mut limits = KernelLimits::default();
        if let Some(pending) = setup.limits.pending {
            limits.pending = usize::try_from(pending).unwrap_or(usize::MAX);
        }
        let (audit, log) = Log::open(how.audit.as_deref(), setup.clock)?;
        let channels = Channels::new(&setup.limits)
            .map_err(|error| setup_error(scenario, "limits", &error.to_string()))?;
        let records = Records::new(&setup.store);
        let waves = Waves::new(setup.lanes.clone().unwrap_or_default());
        let mut builder = Kernel::builder();
        if let Some(topology) = &setup.topology {
            let enforced = Arc::new(Enforced::new(topology.clone()));
            builder = builder.rung(Rank(0), Arc::clone(&enforced) as _).edges(enforced);
        }
        if let Some(Rate { burst, per_ms }) = setup.limits.rate {
            // One bucket for each agent and address; what has no address, such as a widening, is not counted.
            let address = Some(RateLimit { burst, per: Duration::from_millis(per_ms) });
            let rung = RateRung::new(RateOptions { address, ..RateOptions::default() });
            builder = builder.rung(Rank(20), Arc::new(rung));
        }
        let mut policy_rung = None;
        if let Some(policy) = how.policy.as_ref().or(setup.policy.as_ref()) {
            let rung = Arc::new(PolicyRung::new(policy.clone()));
            builder = builder
                .rung(Rank(10), Arc::clone(&rung) as _)
                .admitter(Rank(10), Arc::clone(&rung) as _)
                .grants(Arc::clone(&rung) as _);
            policy_rung = Some(rung);
        }
        let pool = Arc::new(Pool::new(PoolOptions::default()));
        let kernel = builder
            .driver(Arc::clone(&pool) as _)
            .driver(channels.bus.driver())
            .driver(records.store.driver())
            .driver(records.space.driver())
            .driver(Arc::clone(&waves.comm) as _)
            .driver(Arc::clone(&waves.arbiter) as _)
            .witness(HostWitness)
            .audit(Arc::new(audit))
            .time(Arc::new(clock.clone()))
            .limits(limits)
            .build()
            .map_err(|error| setup_error(scenario, "", &error.to_string()))?;
        let mut world = Self {
            kernel,
            policy: policy_rung,
            pool,
            clock,
            log,
            channels,
            exchanges: Exchanges::default(),
            steering: Steering::default(),
            records,
            waves,
            elsewhere: None,
            specs: HashMap::new(),
            handles: HashMap::new(),
            kept: HashMap::new(),
            tickets: Vec::new(),
        };
        for agent in &setup.agents {
            let wrong = |text: String| setup_error(scenario, &format!("agents/{}", agent.name), &text);
            world.specs.insert(agent.name.clone(), agent.principal.clone());
            world.attach(&agent.name).map_err(wrong)?;
        }
        for (index, task) in setup.tasks.records.iter().enumerate() {
            world.records.store.create_json(task.text.as_bytes()).map_err(|error| {
                let (path, list) = match &setup.tasks.file {
                    Some(path) => (path, String::new()),
                    None => (&scenario.path, "tasks/".to_owned()),
                };
                match error {
                    SharedTaskError::Json(error) => {
                        let line = task.line + error.place().line - 1;
                        let problem = Problem::Json { problem: error.problem().clone(), known: Vec::new() };
                        placed(path, line, &format!("{list}{index}{}", error.path()), problem)
                    }
                    error => {
                        placed(path, task.line, &format!("{list}{index}"), Problem::Rule(error.to_string()))
                    }
                }
            })?;
        }
        // What was set up is no step's.
        world.decided()?;
        Ok(world)
    }

    /// Attaches an agent of the scenario; its handle replaces that of an earlier incarnation.
    pub(super) fn attach(&mut self, name: &str) -> Result<(), String> {
        let spec = self.specs.get(name).cloned().ok_or_else(|| format!("unknown agent \"{name}\""))?;
        let handle = self.kernel.attach(spec).map_err(|error| attach_error(&error))?;
        self.handles.insert(name.to_owned(), handle);
        Ok(())
    }

    /// Detaches an agent of the scenario. Its handle stays, and does nothing any more.
    pub(super) fn detach(&self, name: &str) -> Result<(), String> {
        let spec = self.specs.get(name).ok_or_else(|| format!("unknown agent \"{name}\""))?;
        self.kernel.detach(&spec.id).map_err(|error| attach_error(&error))
    }

    /// Writes the audit log so far, and says what it has of the last act that was decided since this was asked before.
    pub(super) fn decided(&mut self) -> Result<Option<Decided>, ScenarioError> {
        self.log.decided()
    }

    /// What the audit log says so far.
    pub(super) fn tally(&mut self) -> Result<Tally, ScenarioError> {
        self.log.tally()
    }

    /// The handle that acts: that of an agent, also after it was detached, or a stranger's.
    pub(super) fn handle(&mut self, actor: &Actor) -> Result<AgentHandle, Stop> {
        match actor {
            Actor::Agent(name) => self
                .handles
                .get(name)
                .cloned()
                .ok_or_else(|| Stop::missing(format!("agent \"{name}\" was never attached"))),
            Actor::Stranger(name) => self.stranger(name).map_err(Stop::missing),
            Actor::Host => Err(Stop::missing("nobody performs it; say who with \"by\"")),
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
            Kept::Message(message) => Ok(message.body().clone()),
            Kept::Decision(_) | Kept::Journal(_) => Err(format!("\"{name}\" is no value")),
        }
    }

    /// Makes a body: its bytes by its owner, widened by its owner, labelled by the host, in this order.
    pub(super) fn body(&mut self, by: &Actor, body: &Body) -> Result<Ref, Stop> {
        let maker = match &body.owner {
            Some(owner) => self.handle(&Actor::Agent(owner.clone()))?,
            None => self.handle(by)?,
        };
        let mut made = match &body.source {
            Source::Bytes(bytes) => maker.mint(bytes.clone()),
            Source::Saved(name) => self.value(name).map_err(Stop::missing)?,
        };
        if let Some(scope) = body.scope.filter(|scope| *scope != ShareScope::Agent) {
            let outcome = maker.widen(&made, scope);
            made = match outcome {
                Outcome::Allow { value, .. } => value,
                Outcome::Refuse(verdict) => {
                    let explanation = Box::new(self.kernel.explain_widen(&maker, &made, scope));
                    return Err(Stop::Unshared(verdict, scope, explanation));
                }
            };
        }
        match body.taint {
            Some(taint) => self
                .label(&made, taint)
                .ok_or_else(|| Stop::Missing("the value is of another kernel".to_owned())),
            None => Ok(made),
        }
    }

    /// The host's label on a value, whichever kernel made it.
    fn label(&self, body: &Ref, taint: Taint) -> Option<Ref> {
        self.kernel.label(body, taint).or_else(|| self.elsewhere.as_ref()?.label(body, taint))
    }

    /// The value of a `body` or `ref`.
    pub(super) fn subject(&mut self, by: &Actor, subject: &Subject) -> Result<Ref, Stop> {
        match subject {
            Subject::Body(body) => self.body(by, body),
            Subject::Saved(name) => self.value(name).map_err(Stop::missing),
        }
    }
}

/// Why an agent could not be attached or detached, as `kind: text`.
fn attach_error(error: &AttachError) -> String {
    let kind = match error {
        AttachError::Id(_) => "id",
        AttachError::Trace(_) => "trace",
        AttachError::Absent(_) => "absent",
        _ => "attach",
    };
    format!("{kind}: {error}")
}

/// What stands before the steps cannot be set up.
fn setup_error(scenario: &Scenario, member: &str, text: &str) -> ScenarioError {
    placed(&scenario.path, 1, member, Problem::Rule(text.to_owned()))
}

fn placed(path: &Path, line: usize, member: &str, problem: Problem) -> ScenarioError {
    ScenarioError::Invalid {
        place: Box::new(Place {
            path: path.to_owned(),
            line,
            column: 1,
            step: None,
            member: member.to_owned(),
        }),
        problem,
    }
}
