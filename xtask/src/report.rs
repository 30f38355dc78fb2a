//! What a check found: facts, things that are not there yet, and faults each with its fix.

use std::fmt;

use serde::Serialize;

/// One fault, where it is, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// File and line, crate edge, or clause.
    pub(crate) place: String,
    /// What is wrong.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) fix: String,
}

/// How a check ended, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// Everything looked at is right, and everything that must exist was there to be looked at.
    Ok,
    /// Nothing looked at is wrong, but something that must exist does not yet.
    Incomplete,
    /// Something is wrong.
    Failed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Incomplete => "incomplete",
            Self::Failed => "FAILED",
        })
    }
}

/// The outcome of one check.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The check's name, as on the command line.
    pub(crate) name: &'static str,
    /// What was looked at, for a person.
    pub(crate) facts: Vec<String>,
    /// What has to exist and does not.
    pub(crate) missing: Vec<String>,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    /// An empty report.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, facts: Vec::new(), missing: Vec::new(), findings: Vec::new() }
    }

    /// Notes something that was looked at.
    pub(crate) fn fact(&mut self, text: impl Into<String>) {
        self.facts.push(text.into());
    }

    /// Notes something that has to exist and does not.
    pub(crate) fn missing(&mut self, text: impl Into<String>) {
        self.missing.push(text.into());
    }

    /// Notes a fault.
    pub(crate) fn finding(
        &mut self,
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.findings.push(Finding { place: place.into(), what: what.into(), fix: fix.into() });
    }

    /// How the check ended.
    pub(crate) fn status(&self) -> Status {
        match (self.findings.is_empty(), self.missing.is_empty()) {
            (false, _) => Status::Failed,
            (true, false) => Status::Incomplete,
            (true, true) => Status::Ok,
        }
    }

    /// Whether a build may go on: an incomplete check is no pass.
    pub(crate) fn passed(&self) -> bool {
        self.status() == Status::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_report_is_no_pass_and_a_fault_outweighs_it() {
        let mut report = Report::new("x");
        assert!(report.passed());
        report.missing("y");
        assert_eq!((report.status(), report.passed()), (Status::Incomplete, false));
        report.finding("a", "b", "c");
        assert_eq!(report.status(), Status::Failed);
    }
}
