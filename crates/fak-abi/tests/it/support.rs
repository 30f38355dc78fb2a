//! A gate that decides nothing and writes down what it was asked: enough of a kernel for what is decided in this crate.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use fak_abi::{
    Admission, AgentHandle, AuditSlot, CapSet, Claim, Clock, Event, Explanation, Gate, Host, Id, KernelSeal,
    KernelTag, LayerKey, Outcome, Pass, Peer, Principal, PrincipalKind, PrincipalSpec, Reason, Ref, Refusal,
    ResolveError, Resolver, Settle, ShareScope, Site, Taint, Ticket, TicketError, Timer, Timestamp, ToolCall,
    ToolResult, ToolToken, Verdict, WakeUp,
};

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// The refusal of a check that is no real one.
pub(crate) fn refusal() -> Refusal {
    Refusal::new(Reason::PolicyBlock, Site::new("stub/no"))
}

#[derive(Default)]
struct Still(Timestamp);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }
}

impl Timer for Still {
    fn wake_at(&self, _: Timestamp, _: Waker) -> WakeUp {
        WakeUp::done()
    }
}

pub(crate) struct Stub {
    pub(crate) seal: KernelSeal,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    asked: Mutex<Vec<String>>,
}

impl Stub {
    pub(crate) fn new() -> Arc<Self> {
        let (clock, timer) = (Arc::new(Still::default()), Arc::new(Still::default()));
        Arc::new(Self { seal: KernelSeal::new(), clock, timer, asked: Mutex::default() })
    }

    /// The handle of a fresh principal.
    pub(crate) fn agent(self: &Arc<Self>, spec: PrincipalSpec, incarnation: u64) -> AgentHandle {
        let granted = spec.caps;
        let principal = self.seal.principal(spec, incarnation, granted);
        self.seal.handle(&principal, Arc::<Self>::clone(self)).unwrap()
    }

    /// What was asked since the last look.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }
}

impl Gate for Stub {
    fn tag(&self) -> &KernelTag {
        self.seal.tag()
    }

    fn decide(&self, call: &ToolCall<'_>) -> Verdict {
        self.note(format!("decide {call:?}"));
        Verdict::deny(refusal(), "stub")
    }

    fn admit<'a>(&'a self, call: &'a ToolCall<'a>, _: &LayerKey) -> Admission<'a> {
        Admission::Refuse(self.decide(call))
    }

    fn pass(&self, _: &ToolCall<'_>, _: &LayerKey) -> Pass {
        Pass::Closely
    }

    fn submit(&self, call: &ToolCall<'_>) -> Ticket {
        self.note(format!("submit {call:?}"));
        self.seal.ticket(7, Verdict::allow("stub"))
    }

    fn poll_reap(
        &self,
        agent: &AgentHandle,
        ticket: &Ticket,
        _: &mut Context<'_>,
    ) -> Poll<Result<ToolResult, TicketError>> {
        self.note(format!("reap {} {}", agent.principal(), ticket.seq()));
        Poll::Ready(if ticket.spend() { Ok(ToolResult::ok(None)) } else { Err(TicketError::Spent) })
    }

    fn withdraw(&self, agent: &AgentHandle, ticket: &Ticket) -> Result<(), TicketError> {
        self.note(format!("withdraw {} {}", agent.principal(), ticket.seq()));
        ticket.spend().then_some(()).ok_or(TicketError::Spent)
    }

    fn screen(&self, _: &ToolCall<'_>, _: &Ref) -> Verdict {
        Verdict::allow("stub")
    }

    fn may_hand(&self, _: &Principal, _: &Principal) -> bool {
        true
    }

    fn has_edges(&self) -> bool {
        false
    }

    fn explain(&self, call: &ToolCall<'_>) -> Explanation {
        Explanation { rungs: Vec::new(), verdict: self.decide(call), site: None, next: String::new() }
    }

    fn widen(&self, _: &AgentHandle, body: &Ref, scope: ShareScope) -> Outcome<Ref> {
        self.note(format!("widen to {scope}"));
        Outcome::Allow { value: self.seal.relabel(body, body.taint(), scope).unwrap(), by: "stub" }
    }

    fn trust(&self, _: &AgentHandle, _: &Ref, claim: Claim) -> Outcome<Ref> {
        self.note(format!("trust since {}", claim.statement));
        Outcome::deny(refusal(), "stub")
    }

    fn raise(&self, _: &AgentHandle, body: &Ref, taint: Taint) -> Ref {
        self.note(format!("raise to {taint}"));
        body.tainted_at_least(taint)
    }

    fn who(&self, agent: &AgentHandle) -> Vec<Peer> {
        vec![Peer { id: agent.principal().id().clone(), kind: PrincipalKind::Agent, last_act: None }]
    }

    fn tool(&self, name: &Id) -> ToolToken {
        self.seal.tool(name.clone(), None)
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    fn timer(&self) -> &Arc<dyn Timer> {
        &self.timer
    }
}

impl Resolver for Stub {
    fn bytes(&self, body: &Ref) -> Result<bytes::Bytes, ResolveError> {
        self.seal.bytes(body)
    }

    fn rewrite(&self, body: &Ref, bytes: bytes::Bytes) -> Result<Ref, ResolveError> {
        self.seal.rewrite(body, bytes)
    }
}

/// A host of layers that leaves out whatever may be left out.
impl Host for Stub {
    fn admit_any<'a>(&'a self, call: &'a ToolCall<'a>) -> Admission<'a> {
        Admission::Refuse(self.decide(call))
    }

    fn note(&self, _: &Event<'_>) {}

    fn issue(
        &self,
        owner: &Arc<Principal>,
        bytes: bytes::Bytes,
        taint: Taint,
        scope: ShareScope,
    ) -> Option<Ref> {
        self.seal.issue(owner, bytes, taint, scope).ok()
    }

    fn attached(&self, _: &Id) -> Option<Arc<Principal>> {
        None
    }

    fn resolver(&self) -> &dyn Resolver {
        self
    }
}

/// The books of a kernel, as a list; every charge is refused if `broke`.
#[derive(Default)]
pub(crate) struct Books {
    broke: bool,
    written: Mutex<Vec<String>>,
}

impl Books {
    pub(crate) fn broke() -> Self {
        Self { broke: true, ..Self::default() }
    }

    /// What was written since the last look.
    pub(crate) fn written(&self) -> Vec<String> {
        std::mem::take(&mut self.written.lock().unwrap())
    }

    fn write(&self, what: &str, call: &ToolCall<'_>, rest: &str) {
        let body = call.body().map_or(0, Ref::len);
        self.written.lock().unwrap().push(format!("{what} {} {body}{rest}", call.tool().name()));
    }
}

impl Settle for Books {
    fn charge(&self, call: &ToolCall<'_>) -> Option<Verdict> {
        self.write("charge", call, "");
        self.broke.then(|| Verdict::deny(refusal(), "stub/broke"))
    }

    fn revert(&self, call: &ToolCall<'_>) {
        self.write("revert", call, "");
    }

    fn settle(&self, call: &ToolCall<'_>, verdict: &Verdict, seq: u64, slot: AuditSlot) {
        let (kind, by) = (verdict.kind(), verdict.by());
        self.write("settle", call, &format!(" {kind} by {by} as {seq} in {slot:?}"));
    }

    fn release(&self, slot: AuditSlot) {
        self.written.lock().unwrap().push(format!("release {slot:?}"));
    }
}

/// A principal that a kernel would grant what it asks for.
pub(crate) fn crew(name: &str, caps: CapSet) -> PrincipalSpec {
    PrincipalSpec::agent(id(name)).fleet(id("crew")).caps(caps)
}
