//! The two faces of a kernel: the gate an agent handle carries, and the proof value that an
//! admitted act must settle (§2.9, §3). Implemented by `fak-adjudicate`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use thiserror::Error;

use crate::call::{ToolCall, ToolResult, ToolToken};
use crate::driver::LayerKey;
use crate::event::Peer;
use crate::explain::Explanation;
use crate::handle::AgentHandle;
use crate::id::Id;
use crate::principal::{KernelTag, Principal, PrincipalSpec};
use crate::reference::Ref;
use crate::seam::Resolver;
use crate::taint::{ShareScope, Taint};
use crate::time::{Clock, Timer};
use crate::verdict::{Claim, Opinion, Outcome, Refusal, RungName, Verdict};

/// What an agent handle may ask of its kernel (§2.9). Nothing here is the host's.
///
/// Architecture invariant: no method takes a sender's name or capabilities, hands out bytes, or
/// writes an audit entry that did not come from deciding an act.
pub trait Gate: Send + Sync {
    /// The kernel's identity.
    fn tag(&self) -> &KernelTag;

    /// Decides an act that needs nothing but the decision: fold, count and audit in one (§3.2).
    fn decide(&self, call: &ToolCall<'_>) -> Verdict;

    /// Folds an act whose layer has checks of its own to make before it happens (§4.3 rows 8–10).
    /// The permit must be settled; an act that happens without one cannot be written. `layer` shows
    /// that a layer of this kernel asks: an agent that could settle permits of its own could write
    /// entries for acts that never happened.
    fn admit<'a>(&'a self, call: &'a ToolCall<'a>, layer: &LayerKey) -> Admission<'a>;

    /// As [`Gate::admit`] where nothing needs settling: nobody keeps books, no rung counts and the
    /// opinions are the common ones. Then there is no permit to carry about.
    fn pass(&self, call: &ToolCall<'_>, layer: &LayerKey) -> Pass;

    /// As [`Gate::pass`] where the entry in the audit log is all that is left to settle (§3.6): a
    /// slot is reserved, no rung counts, and no observer is told of decisions. The shorter form of
    /// [`Gate::admit`], which answers for everything else.
    fn book<'a>(&'a self, _call: &'a ToolCall<'a>, _layer: &LayerKey) -> Booking<'a> {
        Booking::Closely
    }

    /// Decides and, if allowed, enqueues for the tool's engine (§3.3). Never blocks.
    fn submit(&self, call: &ToolCall<'_>) -> Ticket;

    /// Runs what was submitted, as far as it can come now (§3.3). A call that was refused reaps as
    /// the structured refusal.
    ///
    /// # Errors
    /// [`TicketError`] if the ticket is not `agent`'s, of another kernel, or spent.
    fn poll_reap(
        &self,
        agent: &AgentHandle,
        ticket: &Ticket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ToolResult, TicketError>>;

    /// Takes an admitted call back before it is reaped, releasing what its engine claimed (§3.3).
    ///
    /// # Errors
    /// As [`Gate::poll_reap`].
    fn withdraw(&self, agent: &AgentHandle, ticket: &Ticket) -> Result<(), TicketError>;

    /// Folds the result admitters over a value that is about to enter `call`'s principal's
    /// context (§4.4): allow, quarantine or deny, with the rung that said so.
    fn screen(&self, call: &ToolCall<'_>, body: &Ref) -> Verdict;

    /// True unless an installed topology has no edge from `from` to `to` (§6.9).
    fn may_hand(&self, from: &Principal, to: &Principal) -> bool;

    /// True if a topology is installed, so that layers can skip asking.
    fn has_edges(&self) -> bool;

    /// Every rung's opinion of an act, the verdict, and what to do next (§3.5). No side effects.
    fn explain(&self, call: &ToolCall<'_>) -> Explanation;

    /// The act `ref.widen` (§2.4).
    fn widen(&self, agent: &AgentHandle, body: &Ref, scope: ShareScope) -> Outcome<Ref>;

    /// The act `ref.trust` (§2.4): needs `claim` confirmed.
    fn trust(&self, agent: &AgentHandle, body: &Ref, claim: Claim) -> Outcome<Ref>;

    /// A Ref of the same value with at least this taint. Raising is free; it emits an event (§2.4).
    fn raise(&self, agent: &AgentHandle, body: &Ref, taint: Taint) -> Ref;

    /// The attached agents that `agent` may see: itself and those who share its fleet or tenant
    /// (§4.10). Needs no capability.
    fn who(&self, agent: &AgentHandle) -> Vec<Peer>;

    /// The token of a tool, known to the kernel or not. An act's name yields a token that is
    /// decided as the act.
    fn tool(&self, name: &Id) -> ToolToken;

    /// The kernel's clock.
    fn clock(&self) -> &Arc<dyn Clock>;

    /// The kernel's timer.
    fn timer(&self) -> &Arc<dyn Timer>;
}

/// The host's face of a kernel (§2.9): what may attach principals and see bytes. An agent handle
/// carries only the [`Gate`].
pub trait Kernel: Gate {
    /// Attaches a principal and hands out the only thing that can act as it (§2.3).
    ///
    /// # Errors
    /// [`AttachError`] if its id or trace id is in use.
    fn attach(self: Arc<Self>, spec: PrincipalSpec) -> Result<AgentHandle, AttachError>;

    /// The kill switch (§2.3): every clone of the handle is dead from here on.
    ///
    /// # Errors
    /// [`AttachError::Absent`] if no principal of that id is attached.
    fn detach(&self, id: &Id) -> Result<(), AttachError>;

    /// The bytes behind a Ref, for the host and its rungs.
    fn resolver(&self) -> &dyn Resolver;
}

/// Why a principal could not be attached or detached (§2.3).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The id is attached.
    #[error("an agent with the id {} is attached", .0.quoted())]
    Id(Id),
    /// The trace id belongs to an attached agent.
    #[error("the trace id {} is in use by an attached agent", .0.quoted())]
    Trace(Id),
    /// No such principal is attached.
    #[error("no agent with the id {} is attached", .0.quoted())]
    Absent(Id),
}

/// Why a ticket cannot be reaped or withdrawn (§3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TicketError {
    /// It was reaped or withdrawn, or its call is over.
    #[error("the ticket is spent")]
    Spent,
    /// It belongs to another principal or another kernel.
    #[error("the ticket belongs to somebody else")]
    Foreign,
}

/// The claim check of a submission (§3.3). Cannot be made, copied or guessed: only the kernel that
/// numbered the submission mints it.
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    tag: KernelTag,
    seq: u64,
    verdict: Verdict,
    spent: AtomicBool,
}

impl Ticket {
    #[inline]
    pub(crate) const fn new(tag: KernelTag, seq: u64, verdict: Verdict) -> Self {
        Self { tag, seq, verdict, spent: AtomicBool::new(false) }
    }

    /// Marks it spent; false if it was. For kernels, so that a refused call reaps once as well.
    pub fn spend(&self) -> bool {
        !self.spent.swap(true, Ordering::AcqRel)
    }

    /// The number the kernel gave the submission.
    #[must_use]
    #[inline]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// What was decided.
    #[inline]
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The kernel it belongs to.
    #[must_use]
    #[inline]
    pub const fn tag(&self) -> &KernelTag {
        &self.tag
    }
}

/// What [`Gate::admit`] answers (§3.3).
#[must_use]
pub enum Admission<'a> {
    /// Every rung is content; the act happens when the permit is settled.
    Permit(Permit<'a>),
    /// It is refused, and the refusal is audited already.
    Refuse(Verdict),
}

/// What [`Gate::pass`] answers (§3.2).
#[must_use]
pub enum Pass {
    /// Every rung is content, and nothing is left to settle. The rung that allowed it.
    Allow(RungName),
    /// It is refused.
    Refuse(Verdict),
    /// There is more to it: ask [`Gate::admit`]. Nothing was counted or written.
    Closely,
}

/// What [`Gate::book`] answers (§3.6).
#[must_use]
pub enum Booking<'a> {
    /// Every rung is content, and only the entry is left to write.
    Allow(Due<'a>),
    /// It is refused, and the refusal is audited already.
    Refuse(Verdict),
    /// There is more to it: ask [`Gate::admit`]. Nothing was counted or written.
    Closely,
}

/// The kernel's side of a permit. Reachable only through one.
pub trait Settle: Send + Sync {
    /// Lets the counting rungs count (§2.9 `commit`). `Some` if one of them refuses after all;
    /// those before it have then been reverted.
    fn charge(&self, call: &ToolCall<'_>) -> Option<Verdict>;

    /// Takes back what [`Settle::charge`] counted.
    fn revert(&self, call: &ToolCall<'_>);

    /// The act is over: audited with its final verdict.
    fn settle(&self, call: &ToolCall<'_>, verdict: &Verdict, seq: u64, slot: AuditSlot);

    /// As [`Settle::settle`], for an act that repeats the one of that number (§4.13).
    fn repeat(&self, call: &ToolCall<'_>, verdict: &Verdict, seq: u64, slot: AuditSlot) {
        self.settle(call, verdict, seq, slot);
    }

    /// The act is over: audited as allowed by `by`, in the slot that was reserved (§3.6).
    fn book(&self, call: &ToolCall<'_>, by: RungName, seq: u64) {
        self.settle(call, &Verdict::allow(by), seq, AuditSlot::Reserved);
    }

    /// The act was given up before it happened; gives the slot back. No entry.
    fn release(&self, slot: AuditSlot);
}

/// A place in the audit queue, reserved before an act is allowed (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditSlot {
    /// No audit is installed.
    None,
    /// One place is reserved.
    Reserved,
}

/// Proof that every rung allows an act (§3.2). Settling it makes the act happen in the books: exactly
/// one of [`Cleared::allow`] and `refuse`, or dropping it, which gives the act up.
#[must_use]
pub struct Permit<'a> {
    settle: &'a dyn Settle,
    call: &'a ToolCall<'a>,
    by: RungName,
    args: Option<Ref>,
    needs: Needs,
    slot: AuditSlot,
    /// The number it has already, where the kernel numbered it before deciding; else 0.
    seq: u64,
    open: bool,
}

/// What settling a permit has to do, so that what is not needed costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Some rung on the chain counts, so charging runs rungs' code.
    pub counts: bool,
    /// An audit log or an emitter wants to know.
    pub observed: bool,
}

impl<'a> Permit<'a> {
    /// For kernels: `call` is allowed by `by`.
    #[inline]
    pub fn new(
        settle: &'a dyn Settle,
        call: &'a ToolCall<'a>,
        by: RungName,
        needs: Needs,
        slot: AuditSlot,
    ) -> Self {
        Self { settle, call, by, args: None, needs, slot, seq: 0, open: true }
    }

    /// Under the number that a submission has from the start: its entry carries it whatever becomes
    /// of it (§3.3).
    #[inline]
    pub fn numbered(self, seq: u64) -> Self {
        let mut permit = self;
        permit.seq = seq;
        permit
    }

    /// With the arguments that an accepted transform left.
    #[inline]
    pub fn transform(self, args: Option<Ref>) -> Self {
        // Field by field: the permit has a destructor.
        let mut permit = self;
        permit.args = args;
        permit
    }

    /// The body the act happens with, if it was transformed.
    #[must_use]
    #[inline]
    pub const fn transformed(&self) -> Option<&Ref> {
        self.args.as_ref()
    }

    /// The rung that allowed it.
    #[must_use]
    #[inline]
    pub const fn by(&self) -> RungName {
        self.by
    }

    /// True if settling runs rungs' code. A layer then reserves what the act needs, charges, and
    /// fills the reservation, so that no user code runs under its locks.
    #[must_use]
    #[inline]
    pub const fn counts(&self) -> bool {
        self.needs.counts
    }

    /// Lets the counting rungs count. Free when there are none.
    #[inline]
    pub fn charge(mut self) -> Charge<'a> {
        if self.needs.counts
            && let Some(verdict) = self.settle.charge(&self.effective())
        {
            self.close(&verdict, 0);
            return Charge::Refuse(verdict);
        }
        Charge::Cleared(Cleared(self))
    }

    /// The layer refuses after all; audited with its reason, stamped `by`.
    #[inline]
    pub fn refuse(mut self, refusal: Refusal, by: RungName) -> Verdict {
        let verdict = Verdict::deny(refusal, by);
        self.close(&verdict, 0);
        verdict
    }

    /// What the act would hand over is held (§4.4); audited as such.
    #[inline]
    pub fn hold(mut self, by: RungName, seq: u64) -> Verdict {
        let verdict = Verdict::Quarantine { by };
        self.close(&verdict, seq);
        verdict
    }

    /// The call as it happens: with the arguments a transform left.
    #[inline]
    fn effective(&self) -> ToolCall<'_> {
        self.args.as_ref().map_or(*self.call, |args| self.call.args(args))
    }

    #[inline]
    fn close(&mut self, verdict: &Verdict, seq: u64) {
        self.open = false;
        if self.needs.observed {
            let seq = if seq == 0 { self.seq } else { seq };
            self.settle.settle(&self.effective(), verdict, seq, self.slot);
        }
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.open && self.slot == AuditSlot::Reserved {
            self.settle.release(self.slot);
        }
    }
}

/// What [`Permit::charge`] answers (§3.8).
#[must_use]
pub enum Charge<'a> {
    /// Everything is counted; the act may happen.
    Cleared(Cleared<'a>),
    /// A counting rung ran out; audited already.
    Refuse(Verdict),
}

/// A permit whose counting is done (§3.8). The act happens now.
#[must_use]
pub struct Cleared<'a>(Permit<'a>);

impl Cleared<'_> {
    /// The act happened under the number `seq` (0 if it has none).
    #[inline]
    pub fn allow(mut self, seq: u64) -> Verdict {
        let verdict = Verdict::allow(self.0.by);
        self.0.close(&verdict, seq);
        verdict
    }

    /// The first outcome once more: audited as a replay of the act of that number (§4.13), by one
    /// entry.
    pub fn repeat(mut self, seq: u64) -> Verdict {
        let verdict = Verdict::allow(self.0.by);
        self.0.open = false;
        if self.0.needs.observed {
            self.0.settle.repeat(&self.0.effective(), &verdict, seq, self.0.slot);
        }
        verdict
    }

    /// The act could not happen after all: what was counted is taken back, and it is audited as
    /// refused.
    #[inline]
    pub fn refuse(mut self, refusal: Refusal, by: RungName) -> Verdict {
        if self.0.needs.counts {
            self.0.settle.revert(&self.0.effective());
        }
        let verdict = Verdict::deny(refusal, by);
        self.0.close(&verdict, 0);
        verdict
    }

    /// The body the act happens with, if it was transformed.
    #[must_use]
    #[inline]
    pub const fn transformed(&self) -> Option<&Ref> {
        self.0.transformed()
    }
}

/// Proof that every rung allows an act of which only the entry is left to write (§3.6): a permit
/// with nothing to charge. Exactly one of [`Due::allow`] and [`Due::refuse`], or dropping it, which
/// gives the act up and leaves no entry.
#[must_use]
pub struct Due<'a> {
    settle: &'a dyn Settle,
    call: &'a ToolCall<'a>,
    by: RungName,
}

impl<'a> Due<'a> {
    /// For kernels: `call` is allowed by `by`, and a slot is reserved for its entry.
    #[inline]
    pub const fn new(settle: &'a dyn Settle, call: &'a ToolCall<'a>, by: RungName) -> Self {
        Self { settle, call, by }
    }

    /// The act happened under the number `seq` (0 if it has none).
    #[inline]
    pub fn allow(self, seq: u64) -> Verdict {
        let (settle, call, by) = (self.settle, self.call, self.by);
        std::mem::forget(self);
        settle.book(call, by, seq);
        Verdict::allow(by)
    }

    /// The layer refuses after all; audited with its reason, stamped `by`.
    #[inline]
    pub fn refuse(self, refusal: Refusal, by: RungName) -> Verdict {
        let (settle, call) = (self.settle, self.call);
        std::mem::forget(self);
        let verdict = Verdict::deny(refusal, by);
        settle.settle(call, &verdict, 0, AuditSlot::Reserved);
        verdict
    }
}

impl Drop for Due<'_> {
    #[inline]
    fn drop(&mut self) {
        self.settle.release(AuditSlot::Reserved);
    }
}

/// The numbers of one kernel: strictly increasing, shared by its acts and messages, so that an
/// audit entry and a message that belong together carry the same one (§4.2).
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Sequence(AtomicU64);

impl Sequence {
    /// A sequence whose first number is 1.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next number.
    #[inline]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last number that was given out.
    #[must_use]
    #[inline]
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The opinion of a fold of result admitters, as a verdict (§4.4): helper for kernels.
impl From<(Opinion, RungName)> for Verdict {
    fn from((opinion, by): (Opinion, RungName)) -> Self {
        match opinion {
            Opinion::Allow => Self::Allow { by },
            Opinion::Defer => Self::Defer { by },
            Opinion::Indeterminate => Self::Indeterminate { by },
            Opinion::Transform(args) => Self::Transform { args, by },
            Opinion::Quarantine => Self::Quarantine { by },
            Opinion::RequireWitness(claim) => Self::RequireWitness { claim, by },
            Opinion::Deny(refusal) => Self::Deny { refusal, by },
        }
    }
}
