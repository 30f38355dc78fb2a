//! What came of one act: its answers, what it yields, and what its line says.

use fak_abi::{Capability, Explanation, Outcome, Ref, ShareScope, Verdict, VerdictKind};
use serde_json::json;

use super::world::Kept;
use crate::expect::{Answer, Answers, Expectations, Mismatch};

/// What came of one act.
#[derive(Default)]
pub(super) struct Done {
    /// The members of `expect` it answers.
    pub(super) answers: Answers,
    /// What `save` keeps.
    pub(super) yields: Option<Kept>,
    /// Where it was done.
    pub(super) address: Option<String>,
    /// The rung that decided.
    pub(super) rung: Option<String>,
    /// The check that refused.
    pub(super) site: Option<String>,
    /// The refusal, if it is one.
    pub(super) refused: Option<Verdict>,
    /// The capability that was missing.
    pub(super) lacks: Option<Capability>,
    /// What else its line says.
    pub(super) note: Option<String>,
    /// Why it could not be tried at all: something it refers to was never kept.
    pub(super) failure: Option<String>,
}

/// Why an act was not even tried: what it is made of was refused, or was never kept.
pub(super) enum Stop {
    /// Its address is none; that is the step's verdict.
    Refused(Verdict),
    /// Its body could not be widened to that scope: that is the step's verdict, and why it would be answered so again.
    Unshared(Verdict, ShareScope, Box<Explanation>),
    /// It refers to nothing.
    Missing(String),
}

impl Stop {
    /// It refers to nothing.
    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::Missing(what.into())
    }
}

impl From<Stop> for Done {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(verdict) => {
                let mut done = Self::decided(&verdict);
                done.answers.set("act", verdict.kind().name());
                done
            }
            Stop::Unshared(verdict, scope, _) => {
                let note = format!("its body is to be widened to {scope} first (ref.widen)");
                Self { note: Some(note), ..Self::from(Stop::Refused(verdict)) }
            }
            Stop::Missing(why) => Self::failed(why),
        }
    }
}

impl Done {
    /// Something the host did.
    pub(super) fn host() -> Self {
        let mut done = Self::default();
        done.answers.set("verdict", "allow");
        done
    }

    /// It could not be tried.
    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self { failure: Some(why.into()), ..Self::default() }
    }

    /// What the kernel answered.
    pub(super) fn decided(verdict: &Verdict) -> Self {
        let mut done = Self::default();
        done.answers.set("verdict", verdict.kind().name());
        if !verdict.by().is_empty() {
            done.answers.set("rung", verdict.by());
            done.rung = Some(verdict.by().to_owned());
        }
        if let Some(refusal) = verdict.refusal() {
            done.answers.set("reason", refusal.reason.name());
            done.site = Some(refusal.site.to_string());
            done.refused = Some(verdict.clone());
            done.lacks = refusal.lacks;
            if let Some(ms) = refusal.retry_after_ms {
                done.answers.set("retry_after", u64::from(ms));
            }
        }
        done
    }

    /// An act that yields a Ref.
    pub(super) fn outcome(outcome: Outcome<Ref>) -> Self {
        let mut done = Self::decided(&outcome.verdict());
        done.yields = outcome.allowed().map(Kept::Ref);
        done
    }

    /// Every rung's opinion.
    pub(super) fn explained(explanation: &Explanation) -> Self {
        let mut done = Self::decided(&explanation.verdict);
        let rungs: Vec<_> = explanation
            .rungs
            .iter()
            .map(|rung| {
                let mut entry = json!({ "by": rung.by, "verdict": rung.verdict.name() });
                if let (Some(reason), Some(entry)) = (rung.reason, entry.as_object_mut()) {
                    entry.insert("reason".to_owned(), reason.name().into());
                }
                entry
            })
            .collect();
        done.answers.set("rungs", serde_json::Value::from(rungs));
        done.answers.set("hint", explanation.next.clone());
        done.note = (explanation.verdict.kind() == VerdictKind::Deny).then(|| explanation.next.clone());
        done
    }

    /// The text an act handed over.
    pub(super) fn text(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.note = Some(format!("{text:?}"));
        self.answers.set("text", text);
    }

    /// At this address.
    pub(super) fn at(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// What its line says it answered.
    pub(super) fn line(&self) -> String {
        if self.failure.is_some() {
            return "failed".to_owned();
        }
        // An act that was refused says that; one that was allowed says what it came to.
        match (self.answers.text("act"), self.answers.text("verdict")) {
            (Some("allow") | None, Some(verdict)) => verdict,
            (Some(act), _) => act,
            (None, None) if self.answers.of("ok") == Some(&Answer::Flag(false)) => "failed",
            (None, None) => "done",
        }
        .to_owned()
    }

    /// What of `expected` does not hold.
    pub(super) fn mismatches(&self, expected: &Expectations) -> Vec<Mismatch> {
        match &self.failure {
            Some(why) => vec![Mismatch::untried(why)],
            None => self.answers.mismatches(expected),
        }
    }
}
