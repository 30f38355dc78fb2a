//! What came of a run: a line per act and every expectation that did not hold, as data. `render` makes text of it.

use serde::Serialize;

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
    pub site: Option<String>,
    /// The capability that was missing, if that is why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<&'static str>,
    /// What else there is to say of it, such as the text received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Every rung's opinion before it was performed, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
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

/// The sum of a run over many files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Scenarios whose every expectation held.
    pub held: usize,
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
            self.held += 1;
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
