//! The kernel: an immutable snapshot that every act is folded over (§3.1, §3.2).
//! The fold itself, the roll, pending calls and explanations have files of their own.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fak_abi::{
    Act, Admission, AgentHandle, AttachError, AuditSlot, Clock, Desk, Driver, Edges, Emitter, Engine, Event,
    EventKind, EventKinds, Id, KernelSeal, KernelTag, Needs, Opinion, Permit, Principal, PrincipalSpec,
    Reason, Ref, Refusal, ResolveError, Resolver, RungName, Sequence, Settle, Timer, Timestamp, Tool,
    ToolCall, Verdict, WitnessResolver,
};

use crate::attach::Roll;
use crate::builder::KernelBuilder;
use crate::chain::{Chain, Chains};
use crate::clock::{KernelClock, SystemClock, SystemTimer};
use crate::fold::{Folded, Walk, conclude, refold_floor, walk};
use crate::pending::Pending;
use crate::seams::{Auditor, Reservation};
use crate::sites;

/// Stamped on what the kernel itself refuses.
pub(crate) const KERNEL: RungName = "kernel";
/// Stamped on every act of a principal that was detached (§2.3).
pub(crate) const DETACHED: RungName = "detached";
/// Stamped on what the audit log refuses (§3.6).
pub(crate) const AUDIT: RungName = "audit";

/// The rung that allows, with what a transform leaves; or the refusal.
pub(crate) type Judged = Result<(RungName, Option<Ref>), (Refusal, RungName)>;

/// One kernel: the rungs, engines and principals that belong together (§3.1). Two kernels share nothing.
///
/// The host keeps the `Arc`; agents get [`AgentHandle`]s from [`Kernel::attach`].
///
/// ```
/// use fak_abi::{Gate as _, Id, PrincipalSpec, Reason, ToolCall};
/// use fak_adjudicate::Kernel;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A kernel without rungs allows nothing.
/// let kernel = Kernel::builder().build()?;
/// let alpha = kernel.attach(PrincipalSpec::agent(Id::new("alpha")?))?;
/// let deploy = kernel.tool(&Id::new("site.deploy")?);
/// let call = ToolCall::new(&alpha, &deploy);
/// assert_eq!(alpha.decide(&call).reason(), Some(Reason::DefaultDeny));
/// assert_eq!(alpha.decide(&call).by(), "empty-policy");
/// // Why, and what to do, without doing it.
/// assert!(kernel.explain(&call).rungs.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct Kernel {
    pub(crate) chains: Chains,
    pub(crate) roll: Roll,
    pub(crate) engines: HashMap<String, Arc<dyn Engine>>,
    drivers: Vec<Arc<dyn Driver>>,
    witnesses: Vec<Box<dyn WitnessResolver>>,
    emitters: Vec<Box<dyn Emitter>>,
    wanted: EventKinds,
    /// An audit log is installed, or an emitter wants every decision.
    observed: bool,
    /// Only the audit log wants to know of every decision.
    booked: bool,
    pub(crate) edges: Vec<Arc<dyn Edges>>,
    audit: Option<Arc<dyn Auditor>>,
    pub(crate) pending: Pending,
    sequence: Arc<Sequence>,
    pub(crate) clock: KernelClock,
    pub(crate) timer: Arc<dyn Timer>,
}

/// What a builder hands over.
pub(crate) struct Assembly {
    pub(crate) chains: Chains,
    pub(crate) roll: Roll,
    pub(crate) engines: HashMap<String, Arc<dyn Engine>>,
    pub(crate) drivers: Vec<Arc<dyn Driver>>,
    pub(crate) witnesses: Vec<Box<dyn WitnessResolver>>,
    pub(crate) emitters: Vec<Box<dyn Emitter>>,
    pub(crate) edges: Vec<Arc<dyn Edges>>,
    pub(crate) audit: Option<Arc<dyn Auditor>>,
    pub(crate) pending: Pending,
    pub(crate) sequence: Arc<Sequence>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timer: Arc<dyn Timer>,
}

impl Kernel {
    /// Begins a kernel on the system's clock.
    pub fn builder() -> KernelBuilder {
        KernelBuilder::new(Arc::new(SystemClock), Arc::new(SystemTimer::new()))
    }

    pub(crate) fn assemble(parts: Assembly) -> Self {
        let Assembly { chains, roll, engines, drivers, witnesses, emitters, edges, audit, pending, .. } =
            parts;
        if let Some(audit) = &audit {
            audit.adopt(roll.seal.tag());
        }
        let wanted = emitters.iter().fold(EventKinds::NONE, |set, emitter| set.or(emitter.kinds()));
        Self {
            chains,
            roll,
            engines,
            drivers,
            witnesses,
            emitters,
            wanted,
            observed: audit.is_some() || wanted.holds(EventKind::Decide),
            booked: audit.is_some() && !wanted.holds(EventKind::Decide),
            edges,
            audit,
            pending,
            sequence: parts.sequence,
            clock: KernelClock(parts.clock),
            timer: parts.timer,
        }
    }

    pub(crate) fn drivers(&self) -> &[Arc<dyn Driver>] {
        &self.drivers
    }

    pub(crate) const fn seal(&self) -> &KernelSeal {
        &self.roll.seal
    }

    pub(crate) fn witnesses(&self) -> &[Box<dyn WitnessResolver>] {
        &self.witnesses
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.sequence.next()
    }

    pub(crate) fn desk(&self) -> Desk<'_> {
        Desk { resolver: self, clock: &self.clock }
    }

    /// Attaches a principal and hands out the only thing that can act as it (§2.3).
    ///
    /// # Errors
    /// [`AttachError`] if its id or trace id is in use.
    pub fn attach(self: &Arc<Self>, spec: PrincipalSpec) -> Result<AgentHandle, AttachError> {
        let principal = self.roll.attach(spec)?;
        for driver in &self.drivers {
            driver.attached(&principal);
        }
        let gate: Arc<dyn fak_abi::Gate> = Arc::clone(self) as _;
        let id = principal.id().clone();
        let handle = self.seal().handle(&principal, gate).ok_or(AttachError::Absent(id))?;
        self.announce(
            |at| Event { principal: Some(&principal), ..Event::new(EventKind::Attach, at) },
            EventKind::Attach,
        );
        Ok(handle)
    }

    /// The kill switch (§2.3): every clone of the handle is dead from here on, its waits wake, its
    /// bindings, leases and subscriptions are freed, its pending calls are dropped.
    ///
    /// # Errors
    /// [`AttachError::Absent`] if no principal of that id is attached.
    pub fn detach(&self, id: &Id) -> Result<(), AttachError> {
        let principal = self.roll.detach(id)?;
        self.pending.forget(&principal);
        for driver in &self.drivers {
            driver.detached(&principal);
        }
        self.announce(
            |at| Event { principal: Some(&principal), ..Event::new(EventKind::Detach, at) },
            EventKind::Detach,
        );
        Ok(())
    }

    /// The host labels a value: quarantined by its own judgement, or trusted at the source.
    /// `None` for a Ref of another kernel.
    #[must_use]
    pub fn label(&self, body: &Ref, taint: fak_abi::Taint) -> Option<Ref> {
        self.seal().relabel(body, taint, body.scope()).ok()
    }

    /// Tells observers that a rung's policy was replaced.
    pub fn reloaded(&self) {
        self.announce(|at| Event::new(EventKind::Reload, at), EventKind::Reload);
    }

    /// Calls that were submitted and not yet reaped.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Builds and emits an event, if any emitter wants its kind.
    pub(crate) fn announce<'a>(&self, build: impl FnOnce(Timestamp) -> Event<'a>, kind: EventKind) {
        if self.wanted.holds(kind) {
            self.deliver(&build(self.clock.now()));
        }
    }

    pub(crate) fn deliver(&self, event: &Event<'_>) {
        for emitter in self.emitters.iter().filter(|emitter| emitter.kinds().holds(event.kind)) {
            // An observer's defect is not the act's; there is nobody left to tell.
            let _ = catch_unwind(AssertUnwindSafe(|| emitter.emit(event)));
        }
    }

    /// Runs user code; `None` if it panicked.
    pub(crate) fn guarded<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(run)).ok()
    }

    pub(crate) fn report_panic(&self, by: RungName) {
        self.announce(|at| Event { cause: by, ..Event::new(EventKind::Panic, at) }, EventKind::Panic);
    }

    /// The chain of a call that may be folded at all; `None` if [`Kernel::unready`] refuses it
    /// (§4.3 row 0, §3.3).
    #[inline]
    pub(crate) fn ready(&self, call: &ToolCall<'_>) -> Option<&Chain> {
        let principal = call.principal();
        if principal.tag() != self.seal().tag() || !principal.is_attached() {
            return None;
        }
        match call.tool() {
            Tool::Act(act) => self.seal().acted(principal, act),
            // The name of an act is that act, with its floor, or nothing.
            Tool::Outside(token) if token.tag() != self.seal().tag() || token.act().is_some() => return None,
            Tool::Outside(_) => {}
        }
        if call.has_rider() && self.is_over(call) {
            return None;
        }
        self.chains.of(call.tool())
    }

    #[cold]
    fn is_over(&self, call: &ToolCall<'_>) -> bool {
        call.is_cancelled() || call.deadline().is_some_and(|deadline| self.clock.now() >= deadline)
    }

    /// Why a call may not be folded.
    #[cold]
    pub(crate) fn unready(&self, call: &ToolCall<'_>) -> (Refusal, RungName) {
        let tag = self.seal().tag();
        let (reason, site, by) = if call.principal().tag() != tag {
            (Reason::TrustViolation, sites::FOREIGN, KERNEL)
        } else if !call.principal().is_attached() {
            (Reason::DefaultDeny, sites::DETACHED, DETACHED)
        } else if matches!(call.tool(), Tool::Outside(token) if token.tag() != tag) {
            (Reason::UnknownTool, sites::FOREIGN_TOOL, KERNEL)
        } else if self.is_over(call) {
            (Reason::Misroute, sites::EXPIRED, KERNEL)
        } else {
            (Reason::UnknownTool, sites::UNKNOWN_TOOL, KERNEL)
        };
        (Refusal::new(reason, site.site()), by)
    }

    /// What the rungs of `chain` come to.
    pub(crate) fn judged(&self, chain: &Chain, call: &ToolCall<'_>) -> Judged {
        let mut rest = Walk::Nobody;
        match walk(chain, call, &self.desk(), &mut rest) {
            Some(rung) => Ok((rung.name, None)),
            None => self.conclude(rest, chain, call),
        }
    }

    /// What a walk amounts to that was no plain allow, with what a transform asks for besides.
    pub(crate) fn conclude(&self, walk: Walk, chain: &Chain, call: &ToolCall<'_>) -> Judged {
        match conclude(walk, chain, call, &self.desk(), &self.witnesses) {
            Folded::Allow(by) => Ok((by, None)),
            Folded::Deny(refusal, by) => Err((refusal, by)),
            Folded::Panic(by) => Err(self.panicked(by)),
            Folded::Transform(args, by) => match refold_floor(chain, &call.args(&args), &self.desk()) {
                None => Ok((by, Some(args))),
                Some(Folded::Deny(refusal, by)) => Err((refusal, by)),
                // Of the floor's rung, where it says so: it is the one that could not answer.
                Some(Folded::Panic(by)) => Err(self.panicked(by)),
                Some(_) => Err(self.panicked(by)),
            },
        }
    }

    #[cold]
    pub(crate) fn panicked(&self, by: RungName) -> (Refusal, RungName) {
        self.report_panic(by);
        (Refusal::new(Reason::DefaultDeny, sites::PANIC.site()), by)
    }

    /// True if somebody wants to know about every decision.
    #[inline]
    pub(crate) const fn observes(&self) -> bool {
        self.observed
    }

    /// A place in the audit queue, or the refusal by `audit`.
    #[inline]
    fn reserve(&self, call: &ToolCall<'_>) -> Result<AuditSlot, Verdict> {
        let Some(audit) = &self.audit else { return Ok(AuditSlot::None) };
        let (reason, site) = match audit.reserve(call.principal()) {
            Reservation::Reserved => return Ok(AuditSlot::Reserved),
            Reservation::Full => (Reason::RateLimited, sites::AUDIT_FULL),
            Reservation::Share => (Reason::RateLimited, sites::AUDIT_SHARE),
            Reservation::Failed => (Reason::DefaultDeny, sites::AUDIT_FAILED),
        };
        let verdict = Verdict::deny(Refusal::new(reason, site.site()), AUDIT);
        self.missed(&**audit, call, &verdict);
        Err(verdict)
    }

    /// An act that `audit` refused has no entry of its own; observers see it.
    #[cold]
    fn missed(&self, audit: &dyn Auditor, call: &ToolCall<'_>, verdict: &Verdict) {
        let seq = self.next_seq();
        audit.miss(self.clock.now(), seq);
        for kind in [EventKind::Decide, EventKind::AuditGap] {
            self.announce(|at| Event { verdict: Some(verdict), ..about(call, kind, at, seq) }, kind);
        }
    }

    /// The admission of a call whose handle may be of any kernel. `seq` is the number it has
    /// already, or 0.
    #[inline]
    pub(crate) fn admission<'a>(&'a self, call: &'a ToolCall<'a>, seq: u64) -> Admission<'a> {
        let slot = match self.reserve(call) {
            Ok(slot) => slot,
            Err(verdict) => return Admission::Refuse(verdict),
        };
        let Some(chain) = self.ready(call) else {
            let (refusal, by) = self.unready(call);
            return Admission::Refuse(self.refused(call, (refusal, by), seq, slot));
        };
        let needs = Needs { counts: chain.counts, observed: self.observed };
        let mut rest = Walk::Nobody;
        if let Some(rung) = walk(chain, call, &self.desk(), &mut rest) {
            return Admission::Permit(Permit::new(self, call, rung.name, needs, slot));
        }
        match self.conclude(rest, chain, call) {
            Ok((by, args)) => Admission::Permit(Permit::new(self, call, by, needs, slot).transform(args)),
            Err((refusal, by)) => Admission::Refuse(self.refused(call, (refusal, by), seq, slot)),
        }
    }

    /// The verdict of a refusal, after it went into the books.
    #[inline]
    pub(crate) fn refused(
        &self,
        call: &ToolCall<'_>,
        (refusal, by): (Refusal, RungName),
        seq: u64,
        slot: AuditSlot,
    ) -> Verdict {
        let verdict = Verdict::deny(refusal, by);
        if self.observes() {
            self.settle(call, &verdict, seq, slot);
        }
        verdict
    }

    pub(crate) fn audit(&self) -> Option<&dyn Auditor> {
        self.audit.as_deref()
    }

    /// The audit log, if nobody else wants to know of every decision.
    #[inline]
    pub(crate) fn books(&self) -> Option<&dyn Auditor> {
        if self.booked { self.audit() } else { None }
    }
}

impl Kernel {
    fn settle_as(
        &self,
        cause: &'static str,
        call: &ToolCall<'_>,
        verdict: &Verdict,
        seq: u64,
        slot: AuditSlot,
    ) {
        let seq = if seq == 0 { self.next_seq() } else { seq };
        let decided = about(call, EventKind::Decide, self.clock.now(), seq);
        let event = Event { verdict: Some(verdict), cause, ..decided };
        match (&self.audit, slot) {
            (Some(audit), AuditSlot::Reserved) => audit.record(&event),
            (Some(audit), AuditSlot::None) => audit.note(&event),
            (None, _) => {}
        }
        if self.wanted.holds(EventKind::Decide) {
            self.deliver(&event);
        }
    }
}

/// An event about an act.
pub(crate) fn about<'a>(call: &ToolCall<'a>, kind: EventKind, at: Timestamp, seq: u64) -> Event<'a> {
    Event {
        seq,
        principal: Some(call.principal()),
        tool: Some(call.tool()),
        address: call.target(),
        body: call.body(),
        label: call.body().map(|body| (body.taint(), body.scope())),
        ..Event::new(kind, at)
    }
}

impl Settle for Kernel {
    fn charge(&self, call: &ToolCall<'_>) -> Option<Verdict> {
        let chain = self.chains.of(call.tool())?;
        let desk = self.desk();
        let counting = || chain.rungs.iter().filter(|rung| rung.counts);
        for (done, rung) in counting().enumerate() {
            let (refusal, by) = match self.guarded(|| rung.judge.commit(call, &desk)) {
                Some(Opinion::Deny(refusal)) => (refusal, rung.name),
                Some(_) => continue,
                None => self.panicked(rung.name),
            };
            for counted in counting().take(done) {
                if self.guarded(|| counted.judge.revert(call, &desk)).is_none() {
                    self.report_panic(counted.name);
                }
            }
            return Some(Verdict::deny(refusal, by));
        }
        None
    }

    fn revert(&self, call: &ToolCall<'_>) {
        let Some(chain) = self.chains.of(call.tool()) else { return };
        for rung in chain.rungs.iter().filter(|rung| rung.counts) {
            if self.guarded(|| rung.judge.revert(call, &self.desk())).is_none() {
                self.report_panic(rung.name);
            }
        }
    }

    fn settle(&self, call: &ToolCall<'_>, verdict: &Verdict, seq: u64, slot: AuditSlot) {
        self.settle_as("", call, verdict, seq, slot);
    }

    fn repeat(&self, call: &ToolCall<'_>, verdict: &Verdict, seq: u64, slot: AuditSlot) {
        self.settle_as("replay", call, verdict, seq, slot);
    }

    #[inline]
    fn book(&self, call: &ToolCall<'_>, by: RungName, seq: u64) {
        let Some(audit) = self.books() else {
            return self.settle(call, &Verdict::allow(by), seq, AuditSlot::Reserved);
        };
        let seq = if seq == 0 { self.next_seq() } else { seq };
        audit.book(call, by, self.clock.now(), seq);
    }

    fn release(&self, slot: AuditSlot) {
        if let (Some(audit), AuditSlot::Reserved) = (&self.audit, slot) {
            audit.release();
        }
    }
}

impl Resolver for Kernel {
    fn bytes(&self, body: &Ref) -> Result<bytes::Bytes, ResolveError> {
        self.seal().bytes(body)
    }

    fn rewrite(&self, body: &Ref, bytes: bytes::Bytes) -> Result<Ref, ResolveError> {
        self.seal().rewrite(body, bytes)
    }
}

impl fak_abi::Kernel for Kernel {
    fn attach(self: Arc<Self>, spec: PrincipalSpec) -> Result<AgentHandle, AttachError> {
        Self::attach(&self, spec)
    }

    fn detach(&self, id: &Id) -> Result<(), AttachError> {
        Self::detach(self, id)
    }

    fn resolver(&self) -> &dyn Resolver {
        self
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

impl Kernel {
    /// The identity that everything this kernel makes carries.
    #[must_use]
    pub const fn tag(&self) -> &KernelTag {
        self.roll.seal.tag()
    }

    /// The attached principal of that id: the host's view.
    #[must_use]
    pub fn principal(&self, id: &Id) -> Option<Arc<Principal>> {
        self.roll.find(id)
    }

    /// The names of tools the kernel knows besides the acts.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.chains.names().chain(Act::ALL.iter().map(|act| act.tool()))
    }
}
