//! Building a kernel: a list of decisions, after which nothing about it changes but policies
//! that reload themselves (§3.1).

use std::sync::{Arc, Weak};

use fak_abi::{
    Adjudicator, CapSet, Clock, Driver, DriverLink, Edges, Emitter, Engine, Id, IdError, InstallError,
    KernelSeal, ResultAdmitter, RungName, Sequence, Timer, ToolScope, WitnessResolver, json,
};
use thiserror::Error;

use crate::attach::Roll;
use crate::chain::{Chains, Parts, Rung, Screen};
use crate::kernel::Kernel;
use crate::pending::Pending;
use crate::refs::RefsRung;
use crate::seams::{Auditor, Grants};
use crate::tools;

/// Where a host rung stands among the others: lower is asked earlier. The floor always comes
/// first, whatever the rank (§3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rank(pub i32);

/// Bounds of a kernel (§3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelLimits {
    /// Calls submitted and not yet reaped, in all (default 65,536).
    pub pending: usize,
    /// Of one principal (default 16,384), so that one cannot exhaust the others (§4.12).
    pub pending_each: usize,
}

impl Default for KernelLimits {
    fn default() -> Self {
        Self { pending: 65_536, pending_each: 16_384 }
    }
}

/// Why a kernel could not be built (§3.1).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A driver belongs to another kernel.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Two engines serve one tool; which one runs may not depend on order.
    #[error("both {first} and {second} serve the tool {tool:?}; exactly one engine may")]
    Engines {
        /// The tool.
        tool: String,
        /// The engine registered first.
        first: RungName,
        /// The engine registered second.
        second: RungName,
    },
    /// A rung, admitter or engine names a tool that cannot be named.
    #[error("{by} names a tool that is no id: {source}")]
    Tool {
        /// Who names it.
        by: RungName,
        /// What is wrong with the name.
        source: IdError,
    },
    /// A rung or admitter names a tool that is no act, that no engine serves and that the host does not list, and that looks like an
    /// act mistyped: it is of a family of the protocol, or near an act's name. It would never be asked (§2.9).
    #[error("{by} names the tool {tool:?}, which is no act, and which nothing serves or lists{}", meant(.nearest))]
    Mistyped {
        /// Who names it.
        by: RungName,
        /// The tool.
        tool: String,
        /// The nearest name of an act, or of a tool that is served or listed.
        nearest: Option<String>,
    },
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}

/// Collects what a kernel is made of (§3.1).
///
/// ```
/// use fak_adjudicate::Kernel;
/// use fak_abi::{Id, PrincipalSpec};
/// let kernel = Kernel::builder().build()?;
/// let alpha = kernel.attach(PrincipalSpec::agent(Id::new("alpha")?))?;
/// assert_eq!(alpha.principal().id().as_str(), "alpha");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct KernelBuilder {
    drivers: Vec<Arc<dyn Driver>>,
    rungs: Vec<(Rank, Arc<dyn Adjudicator>)>,
    admitters: Vec<(Rank, Arc<dyn ResultAdmitter>)>,
    engines: Vec<Arc<dyn Engine>>,
    witnesses: Vec<Box<dyn WitnessResolver>>,
    emitters: Vec<Box<dyn Emitter>>,
    edges: Vec<Arc<dyn Edges>>,
    grants: Option<Arc<dyn Grants>>,
    audit: Option<Arc<dyn Auditor>>,
    tools: Option<Vec<Id>>,
    limits: KernelLimits,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
}

impl KernelBuilder {
    pub(crate) fn new(clock: Arc<dyn Clock>, timer: Arc<dyn Timer>) -> Self {
        Self {
            drivers: Vec::new(),
            rungs: Vec::new(),
            admitters: Vec::new(),
            engines: Vec::new(),
            witnesses: Vec::new(),
            emitters: Vec::new(),
            edges: Vec::new(),
            grants: None,
            audit: None,
            tools: None,
            limits: KernelLimits::default(),
            clock,
            timer,
        }
    }

    /// With this layer: its floor, engines and capabilities.
    pub fn driver(mut self, driver: Arc<dyn Driver>) -> Self {
        self.drivers.push(driver);
        self
    }

    /// With this rung at this rank; equal ranks keep the order of registration.
    pub fn rung(mut self, rank: Rank, rung: Arc<dyn Adjudicator>) -> Self {
        self.rungs.push((rank, rung));
        self
    }

    /// With this result admitter at this rank (§4.4).
    pub fn admitter(mut self, rank: Rank, admitter: Arc<dyn ResultAdmitter>) -> Self {
        self.admitters.push((rank, admitter));
        self
    }

    /// With this engine for the tools it serves.
    pub fn engine(mut self, engine: Arc<dyn Engine>) -> Self {
        self.engines.push(engine);
        self
    }

    /// With this resolver of witnesses (§3.4).
    pub fn witness(mut self, witness: impl WitnessResolver + 'static) -> Self {
        self.witnesses.push(Box::new(witness));
        self
    }

    /// With this observer.
    pub fn emitter(mut self, emitter: impl Emitter + 'static) -> Self {
        self.emitters.push(Box::new(emitter));
        self
    }

    /// With this judge of hand-overs: a topology, which is usually also a rung (§6.9).
    pub fn edges(mut self, edges: Arc<dyn Edges>) -> Self {
        self.edges.push(edges);
        self
    }

    /// With this grant policy (§2.3).
    pub fn grants(mut self, grants: Arc<dyn Grants>) -> Self {
        self.grants = Some(grants);
        self
    }

    /// With this audit log (§3.6).
    pub fn audit(mut self, audit: Arc<dyn Auditor>) -> Self {
        self.audit = Some(audit);
        self
    }

    /// With this closed list of host tools: any other is refused UNKNOWN_TOOL. The acts of the
    /// protocol are always known (§3.3).
    pub fn tools(mut self, tools: impl IntoIterator<Item = Id>) -> Self {
        self.tools.get_or_insert_default().extend(tools);
        self
    }

    /// With these bounds.
    pub const fn limits(mut self, limits: KernelLimits) -> Self {
        self.limits = limits;
        self
    }

    /// On this clock and timer instead of the system's.
    pub fn time<T: Clock + Timer + 'static>(mut self, time: Arc<T>) -> Self {
        self.clock = Arc::clone(&time) as Arc<dyn Clock>;
        self.timer = time;
        self
    }

    /// Builds the kernel and installs every driver into it.
    ///
    /// # Errors
    /// [`BuildError`] if a driver belongs to another kernel, two engines serve one tool, a tool's name is no id, or a rung or admitter
    /// is for a tool whose name looks like an act's and is none.
    pub fn build(self) -> Result<Arc<Kernel>, BuildError> {
        let Self { drivers, rungs, admitters, mut engines, tools, .. } = self;
        for driver in &drivers {
            engines.extend(driver.engines());
        }
        let mut floor: Vec<Rung> = vec![rung(Arc::new(RefsRung), true)];
        floor.extend(drivers.iter().flat_map(|d| d.floor()).map(|judge| rung(judge, true)));
        let mut hosts = rungs;
        hosts.sort_by_key(|(rank, _)| *rank);
        floor.extend(hosts.into_iter().map(|(_, judge)| rung(judge, false)));
        let mut screens = admitters;
        screens.sort_by_key(|(rank, _)| *rank);
        let screens: Vec<_> =
            screens.into_iter().map(|(_, admitter)| Screen { name: admitter.name(), admitter }).collect();

        let closed = tools.is_some();
        let mut names = tools.unwrap_or_default();
        let served = serve(&engines)?;
        for (tool, engine) in &served {
            names.push(named(engine.name(), tool)?);
        }
        let known = names.clone();
        for rung in &floor {
            collect(rung.name, &rung.judge.tools(), &known, &mut names)?;
        }
        for screen in &screens {
            collect(screen.name, &screen.admitter.tools(), &known, &mut names)?;
        }
        let chains = Chains::new(Parts { rungs: floor, screens, tools: names, closed });

        let registered = drivers
            .iter()
            .fold(Kernel::OWN_CAPABILITIES, |caps: CapSet, driver| caps.or(driver.capabilities()));
        let seal = KernelSeal::new();
        let sequence = Arc::new(Sequence::new());
        let key = seal.layer_key();
        let (clock, timer) = (Arc::clone(&self.clock), Arc::clone(&self.timer));
        let kernel = Arc::new(Kernel::assemble(crate::kernel::Assembly {
            roll: Roll::new(seal, registered, self.grants),
            chains,
            engines: served.into_iter().collect(),
            drivers,
            witnesses: self.witnesses,
            emitters: self.emitters,
            edges: self.edges,
            audit: self.audit,
            pending: Pending::new(self.limits),
            sequence: Arc::clone(&sequence),
            clock: self.clock,
            timer: self.timer,
        }));
        let host: Weak<Kernel> = Arc::downgrade(&kernel);
        for driver in kernel.drivers() {
            let host: Weak<dyn fak_abi::Host> = host.clone();
            driver.install(DriverLink::new(
                key.clone(),
                Arc::clone(&clock),
                Arc::clone(&timer),
                Arc::clone(&sequence),
                host,
            ))?;
        }
        Ok(kernel)
    }
}

fn rung(judge: Arc<dyn Adjudicator>, floor: bool) -> Rung {
    Rung { name: judge.name(), counts: judge.counts(), judge, floor }
}

fn named(by: RungName, tool: &str) -> Result<Id, BuildError> {
    Id::new(tool).map_err(|source| BuildError::Tool { by, source })
}

/// Adds the tools of a scope to `names`. A tool of the host's own needs no other mention than this one, so a name is wrong only if
/// it looks like an act; `known` are the tools that have another.
fn collect(by: RungName, scope: &ToolScope, known: &[Id], names: &mut Vec<Id>) -> Result<(), BuildError> {
    let ToolScope::Only(only) = scope else { return Ok(()) };
    for tool in only {
        let id = named(by, tool)?;
        if !tools::protocol().any(|name| name == &*id) && !known.contains(&id) {
            let near = || json::nearest(&id, tools::protocol().chain(known.iter().map(Id::as_str)));
            let nearest = near().map(str::to_owned);
            if nearest.is_some() || tools::in_family(&id) {
                return Err(BuildError::Mistyped { by, tool: id.as_str().to_owned(), nearest });
            }
        }
        names.push(id);
    }
    Ok(())
}

type Served = Vec<(String, Arc<dyn Engine>)>;

fn serve(engines: &[Arc<dyn Engine>]) -> Result<Served, BuildError> {
    let mut served: Served = Vec::new();
    for engine in engines {
        for tool in engine.serves() {
            if let Some((_, first)) = served.iter().find(|(name, _)| *name == tool) {
                return Err(BuildError::Engines { tool, first: first.name(), second: engine.name() });
            }
            served.push((tool, Arc::clone(engine)));
        }
    }
    Ok(served)
}
