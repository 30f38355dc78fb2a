//! Performing a scenario: each on a fresh kernel with a clock of its own that moves by `tick` alone. One file per family of
//! acts; what was answered is compared in `expect`.

mod advice;
mod apart;
mod cell;
mod channel;
mod done;
mod exchange;
mod explain;
mod follow;
mod kernel;
mod log;
mod record;
mod steer;
mod wave;
mod world;

use std::path::PathBuf;

use fak_abi::{Capability, Explanation};
use fak_adjudicate::Policy;

use self::{advice::Looks, done::Done, world::World};
use crate::{
    act::{Act, Actor, CORE_REASONS, Step, WaveAct},
    checks::{answers, check},
    error::ScenarioError,
    expect::Answer,
    model::Scenario,
    report::{Report, StepExplanation, StepReport},
};

/// How a scenario is performed.
///
/// ```
/// use std::path::Path;
/// use fak_adjudicate::Policy;
/// use fak_scenario::{Explaining, Performance, Reach, Scenario};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = br#"{"schema": "fak.scenario.v1", "name": "share", "agents": {"alpha": {"fleet": "f1", "caps": ["ref.widen"]}},
///   "steps": [{"do": "widen", "by": "alpha", "body": {"text": "x"}, "scope": "fleet"}]}"#;
/// let scenario = Scenario::parse(text, Path::new("share.json"), Reach::Folder)?;
/// assert!(scenario.perform(&Performance::default())?.held());
/// // The same under a policy that forbids it, and why.
/// let none = Policy::from_toml("none.toml", "version = 1")?;
/// let report = scenario.perform(&Performance::default().policy(none).explain(Explaining::Everything))?;
/// let step = report.steps.first().ok_or("no step")?;
/// assert_eq!(step.reason.as_deref(), Some("DEFAULT_DENY"));
/// assert_eq!(step.explanation.as_ref().ok_or("not explained")?.at.as_deref(), Some("policy/default"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Performance {
    audit: Option<PathBuf>,
    explain: Explaining,
    policy: Option<Policy>,
}

/// Which steps are explained before they are performed (§3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Explaining {
    /// None.
    #[default]
    Nothing,
    /// The one of this number, counted from 1.
    Step(usize),
    /// All that can be.
    Everything,
}

impl Performance {
    /// Keeps the audit log in a file, appending to one that verifies (§3.6).
    #[must_use]
    pub fn audit(self, path: PathBuf) -> Self {
        Self { audit: Some(path), ..self }
    }

    /// Performs under this policy instead of the scenario's own: what would it change?
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// Explains steps before they are performed.
    #[must_use]
    pub fn explain(self, explain: Explaining) -> Self {
        Self { explain, ..self }
    }
}

impl Scenario {
    /// Performs the steps in order on a fresh kernel and compares what each answers with what it expects. A step that answers
    /// otherwise does not end the run.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if what stands before the steps cannot be set up, or the audit log cannot be written.
    pub fn perform(&self, how: &Performance) -> Result<Report, ScenarioError> {
        let mut world = World::new(self, how)?;
        let mut steps = Vec::with_capacity(self.steps.len());
        let mut looks = Looks::default();
        for step in &self.steps {
            let wanted = match how.explain {
                Explaining::Nothing => false,
                Explaining::Step(number) => number == step.number,
                Explaining::Everything => true,
            };
            let explanation = wanted.then(|| world.explained(step)).flatten();
            let (mut report, empty) = world.step(step, explanation)?;
            if wanted || !report.mismatches.is_empty() {
                report.hint = self.advice(step, &report, (empty, how.policy.is_none()), &mut looks);
            }
            steps.push(report);
        }
        follow::mark(&self.steps, &mut steps);
        Ok(Report { file: self.path.display().to_string(), name: self.name.clone(), steps })
    }
}

impl World {
    /// Performs one step; and whether nothing was there.
    fn step(
        &mut self,
        step: &Step,
        explanation: Option<Explanation>,
    ) -> Result<(StepReport, bool), ScenarioError> {
        let mut done = self.act(&step.by, &step.act);
        // An act that hands something over says what, and not who permitted it.
        let decided = self.decided()?;
        let by = decided.as_ref().and_then(|decided| decided.by.clone());
        if let Some(by) = by.filter(|_| done.rung.is_none() && answers(step.shape.expect, "rung")) {
            done.answers.set("rung", &*by);
            done.rung = Some(by);
        }
        if let (Some(name), Some(kept)) = (&step.save, done.yields.take()) {
            self.keep(name, kept);
        }
        if let Some(site) = &done.site {
            done.answers.set("at", site.as_str());
        }
        if !answers(step.shape.expect, "act") {
            done.answers.unset("act");
        }
        let mismatches = done.mismatches(&step.expect);
        let empty = done.answers.of("empty") == Some(&Answer::Flag(true));
        let explanation =
            explanation.map(|explanation| StepExplanation::of(&completed(explanation, &step.act, &done)));
        let report = StepReport {
            number: step.number,
            line: step.line,
            act: step.shape.name,
            by: match &step.by {
                Actor::Agent(name) => Some(name.clone()),
                Actor::Stranger(name) => Some(format!("?{name}")),
                // Arriving is a member's act and a lease its holder's, also where the step does not say so.
                Actor::Host => decided.and_then(|decided| decided.principal),
            },
            verdict: match done.line() {
                // What the host does is adjudicated by nobody.
                line if step.by == Actor::Host && done.rung.is_none() && line == "allow" => "done".to_owned(),
                line => line,
            },
            reason: done.answers.text("reason").map(str::to_owned),
            // What its body was made of may have been refused before it went anywhere.
            address: done.address.or_else(|| advice::address(&step.act).map(ToString::to_string)),
            answers: done.answers.besides(&["verdict", "reason", "rung", "at"]),
            rung: done.rung,
            at: done.site,
            lacks: done.lacks.map(Capability::name),
            note: done.note,
            explanation,
            hint: None,
            mismatches,
            follows: None,
        };
        Ok((report, empty))
    }

    fn act(&mut self, by: &Actor, act: &Act) -> Done {
        match act {
            Act::Channel(act) => self.channel(by, act),
            Act::Kernel(act) => self.kernel(by, act),
            Act::Wave(act) => self.wave(by, act),
            Act::Record(act) => self.record(by, act),
            Act::Explain { by, of } => self.explain(by, of),
        }
    }
}

/// What was known before an act, with what only the act itself could show: the refusal of a layer that explains nothing
/// beforehand, and how a merge ended.
fn completed(mut explanation: Explanation, act: &Act, done: &Done) -> Explanation {
    if !explanation.verdict.is_allow() {
        return explanation;
    }
    let by_rungs_alone = matches!(
        act,
        Act::Wave(
            WaveAct::Depart { .. } | WaveAct::Renew { .. } | WaveAct::Release { .. } | WaveAct::Check { .. }
        )
    );
    if let Some(verdict) = done.refused.as_ref().filter(|_| by_rungs_alone) {
        let site = done.site.as_deref().and_then(check);
        let next = site.map_or_else(String::new, |site| site.next.to_owned());
        return explanation.decided(verdict.clone(), site, next);
    }
    if done.answers.text("reason").is_some_and(|reason| !CORE_REASONS.contains(&reason)) {
        explanation.next = "every rung permits the act: what the merge made of it is the store's".to_owned();
    }
    explanation
}
