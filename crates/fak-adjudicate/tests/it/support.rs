//! What the tests build kernels from.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fak_abi::{
    Adjudicator, AgentHandle, CapSet, Claim, Desk, Id, Opinion, PrincipalSpec, RungName, Testimony, ToolCall,
    ToolScope, WitnessResolver,
};
use fak_adjudicate::Kernel;

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// Attaches an agent of fleet `f1` and tenant `t1` that advertises everything.
pub(crate) fn attach(kernel: &Arc<Kernel>, name: &str) -> AgentHandle {
    kernel.attach(spec(name)).unwrap()
}

pub(crate) fn spec(name: &str) -> PrincipalSpec {
    PrincipalSpec::agent(id(name)).fleet(id("f1")).tenant(id("t1")).caps(CapSet::ALL)
}

/// Keeps the panics that tests plant (they say `broke`) out of the output, and no others.
pub(crate) fn quiet() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let planted = info.payload().downcast_ref::<&str>().is_some_and(|text| text.ends_with("broke"));
        if !planted {
            loud(info);
        }
    }));
}

type Judge = Box<dyn Fn(&ToolCall<'_>, &Desk<'_>) -> Opinion + Send + Sync>;

/// A rung that answers what the test says, and counts how often it was asked and committed.
pub(crate) struct Says {
    pub(crate) name: RungName,
    pub(crate) tools: ToolScope,
    pub(crate) judge: Judge,
    pub(crate) committed: AtomicUsize,
    pub(crate) reverted: AtomicUsize,
    pub(crate) commit: Option<Opinion>,
}

impl Says {
    pub(crate) fn new(
        name: RungName,
        judge: impl Fn(&ToolCall<'_>, &Desk<'_>) -> Opinion + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            tools: ToolScope::Every,
            judge: Box::new(judge),
            committed: AtomicUsize::new(0),
            reverted: AtomicUsize::new(0),
            commit: None,
        }
    }

    pub(crate) fn only(self, tool: &str) -> Self {
        Self { tools: ToolScope::only([tool]), ..self }
    }

    pub(crate) fn counting(self, commit: Opinion) -> Self {
        Self { commit: Some(commit), ..self }
    }

    pub(crate) fn counts_now(&self) -> usize {
        self.committed.load(Ordering::SeqCst) - self.reverted.load(Ordering::SeqCst)
    }
}

impl Adjudicator for Says {
    fn name(&self) -> RungName {
        self.name
    }
    fn tools(&self) -> ToolScope {
        self.tools.clone()
    }
    fn counts(&self) -> bool {
        self.commit.is_some()
    }
    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        (self.judge)(call, desk)
    }
    fn commit(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        self.committed.fetch_add(1, Ordering::SeqCst);
        let answer = self.commit.clone().unwrap_or(Opinion::Defer);
        if matches!(answer, Opinion::Deny(_)) {
            self.committed.fetch_sub(1, Ordering::SeqCst);
        }
        answer
    }
    fn revert(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) {
        self.reverted.fetch_add(1, Ordering::SeqCst);
    }
}

/// Confirms claims that say `confirmed`, refutes those that say `refuted`.
pub(crate) struct ByWord;

impl WitnessResolver for ByWord {
    fn resolve(&self, claim: &Claim, _call: &ToolCall<'_>) -> Testimony {
        match claim.statement.as_str() {
            "confirmed" => Testimony::Confirm,
            "refuted" => Testimony::Refute,
            "panic" => panic!("the witness broke"),
            _ => Testimony::Abstain,
        }
    }
}

pub(crate) fn claim(word: &str) -> Claim {
    Claim { statement: id(word), subject: None, evidence: None }
}
