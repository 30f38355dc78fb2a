//! What came of a run: a line per act and every expectation that did not hold, as data. `render` makes text of it.

use std::{collections::BTreeMap, fmt};

use fak_abi::{Explanation, Reason, RungOpinion};
use serde::Serialize;
use serde_json::Value;

use crate::expect::Mismatch;

/// One scenario performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The file, or the name the text was given.
    pub file: String,
    /// The scenario's name.
    pub name: String,
    /// Its steps, in order.
    pub steps: Vec<StepReport>,
}

/// One act performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Counted from 1.
    pub number: usize,
    /// The line it stands on.
    pub line: usize,
    /// The act.
    pub act: &'static str,
    /// Who performed it; nobody is the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The address, as `locale:id`, `task:id`, `cell:key`, `lane:name` or `group:name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What was answered: a verdict's name, or `done` where an act has none.
    pub verdict: String,
    /// The reason of a refusal or of a merge outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rung that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// The check that refused, for `fak explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The capability that was missing, if that is why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<&'static str>,
    /// What else it answered, by the name under which `expect` asks for it: a revision, a fence, the text received.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<&'static str, Value>,
    /// What its line says at the end, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Every rung's opinion before it was performed, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<StepExplanation>,
    /// What whoever wrote the scenario should look at, if it was explained or answered otherwise than expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The expectations that did not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<Mismatch>,
    /// An earlier step that failed and has to do with the same names or place: this one may have failed only because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<usize>,
}

/// What would be answered to an act, and why (§3.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepExplanation {
    /// The verdict.
    pub verdict: &'static str,
    /// Its reason, if it is a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The rung that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// The check that refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What that check refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuses: Option<&'static str>,
    /// The clause it enforces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clause: Option<&'static str>,
    /// What to do next.
    pub next: String,
    /// Every rung's opinion, in order; a layer that refuses after them comes last.
    pub rungs: Vec<RungReport>,
    /// The same for people.
    #[serde(skip)]
    pub(crate) text: String,
}

/// One rung's opinion of an act, as `expect` has it under `rungs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RungReport {
    /// The rung.
    pub by: &'static str,
    /// What it argues for.
    pub verdict: &'static str,
    /// Its reason, if it denies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The check that refuses, if it denies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl StepExplanation {
    /// Of what the kernel and its layers say.
    pub(crate) fn of(explanation: &Explanation) -> Self {
        let Explanation { rungs, verdict, site, next } = explanation;
        let rung = |rung: &RungOpinion| RungReport {
            by: rung.by,
            verdict: rung.verdict.name(),
            reason: rung.reason.map(Reason::name),
            at: rung.site.filter(|_| rung.reason.is_some()).map(|site| site.to_string()),
        };
        Self {
            verdict: verdict.kind().name(),
            reason: verdict.reason().map(Reason::name),
            rung: Some(verdict.by().to_owned()).filter(|by| !by.is_empty()),
            at: verdict.refusal().map(|refusal| refusal.site.to_string()),
            refuses: site.map(|site| site.refuses),
            clause: site.map(|site| site.clause),
            next: next.clone(),
            rungs: rungs.iter().map(rung).collect(),
            text: explanation.to_string(),
        }
    }
}

impl fmt::Display for StepExplanation {
    /// Several lines: the verdict, each rung, the check, and what to do next.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The sum of a run over many files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Scenarios whose every expectation held.
    pub passed: usize,
    /// Scenarios with one that did not.
    pub failed: usize,
    /// Files that could not be read.
    pub unreadable: usize,
    /// Acts performed.
    pub acts: usize,
}

impl Report {
    /// Whether every expectation held.
    #[must_use]
    pub fn held(&self) -> bool {
        self.steps.iter().all(|step| step.mismatches.is_empty())
    }

    /// The first step with an expectation that did not hold.
    #[must_use]
    pub fn first_failed(&self) -> Option<&StepReport> {
        self.steps.iter().find(|step| !step.mismatches.is_empty())
    }
}

impl Summary {
    /// Counts a performed scenario.
    pub fn add(&mut self, report: &Report) {
        self.acts += report.steps.len();
        if report.held() {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    /// The exit status the run ends with: 0 if every expectation held, 1 if one did not, 2 if a file could not be read.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match (self.unreadable, self.failed) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        }
    }
}
