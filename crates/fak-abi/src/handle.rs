//! The agent handle: the only thing that can act as a principal (§2.3).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::call::{ToolCall, ToolResult};
use crate::event::Peer;
use crate::gate::{Gate, Ticket, TicketError};
use crate::principal::{KernelTag, Principal};
use crate::reason::Reason;
use crate::reference::Ref;
use crate::taint::{ShareScope, Taint};
use crate::verdict::{Claim, Outcome, Refusal, SiteInfo, Verdict};

/// What `read` checks; it is no act and has no chain (§2.8).
pub(crate) const READ: &str = "read";

const READ_DETACHED: SiteInfo = SiteInfo {
    check: "read/detached",
    clause: "§2.3",
    refuses: "a read by a principal that was detached",
    next: "the host has ended this agent; attach it again for a new incarnation",
};
const READ_FLOW: SiteInfo = SiteInfo {
    check: "read/flow",
    clause: "§2.4",
    refuses: "a read of a value that may not flow to the reader",
    next: "ask its owner to widen the scope to a fleet or tenant that you share",
};

/// The checks of `read`, for explain.
pub const READ_SITES: &[SiteInfo] = &[READ_DETACHED, READ_FLOW];

/// The authority to act as one principal (§2.3). Cheap to clone, `Send + Sync`; every clone dies
/// when the host detaches the principal.
///
/// There is no other way in: sender and capabilities are never arguments.
///
/// ```compile_fail
/// // A handle cannot be made without a kernel's seal.
/// let forged = fak_abi::AgentHandle { };
/// ```
#[derive(Clone)]
pub struct AgentHandle(Arc<Inner>);

struct Inner {
    principal: Arc<Principal>,
    gate: Arc<dyn Gate>,
}

impl AgentHandle {
    pub(crate) fn new(principal: Arc<Principal>, gate: Arc<dyn Gate>) -> Self {
        Self(Arc::new(Inner { principal, gate }))
    }

    /// As whom it acts.
    #[must_use]
    #[inline]
    pub fn principal(&self) -> &Arc<Principal> {
        &self.0.principal
    }

    /// The kernel that decides its acts.
    #[must_use]
    #[inline]
    pub fn gate(&self) -> &dyn Gate {
        &*self.0.gate
    }

    /// The identity of its kernel.
    #[must_use]
    #[inline]
    pub fn tag(&self) -> &KernelTag {
        self.0.principal.tag()
    }

    /// Makes a value of one's own: `(tainted, agent)`, private and untrusted, until it is
    /// widened (§1.1).
    #[must_use]
    pub fn mint(&self, bytes: impl Into<Bytes>) -> Ref {
        Ref::new(Arc::clone(self.principal()), bytes.into(), Taint::default(), ShareScope::default())
    }

    /// A value made of others (§6.4): private to this principal, as tainted as the worst of
    /// `parts` and never less than tainted, since nobody has witnessed that the bytes are what the
    /// parts say. Unless every part is this principal's own, it cannot be widened.
    #[must_use]
    pub fn derive<'a>(&self, bytes: impl Into<Bytes>, parts: impl IntoIterator<Item = &'a Ref>) -> Ref {
        Ref::derived_from(self.principal(), bytes.into(), parts).tainted_at_least(Taint::default())
    }

    /// Reads a value that may flow to this principal (§2.4). No act: it needs no capability and
    /// leaves no audit entry. Copies no bytes.
    pub fn read(&self, body: &Ref) -> Outcome<Bytes> {
        if !self.principal().is_attached() {
            return Outcome::deny(Refusal::new(Reason::DefaultDeny, READ_DETACHED.site()), READ);
        }
        if !body.may_flow_to(self.principal()) {
            return Outcome::deny(Refusal::new(Reason::TrustViolation, READ_FLOW.site()), READ);
        }
        Outcome::Allow { value: body.bytes().clone(), by: READ }
    }

    /// Widens the scope of one's own value (§2.4): an adjudicated, audited act.
    pub fn widen(&self, body: &Ref, scope: ShareScope) -> Outcome<Ref> {
        self.gate().widen(self, body, scope)
    }

    /// Has a tainted value trusted, if `claim` is confirmed (§2.4, §3.4).
    pub fn trust(&self, body: &Ref, claim: Claim) -> Outcome<Ref> {
        self.gate().trust(self, body, claim)
    }

    /// The same value with at least this taint. Free; emits an event (§2.4).
    #[must_use]
    #[inline]
    pub fn raise(&self, body: &Ref, taint: Taint) -> Ref {
        if taint <= body.taint() {
            return body.clone();
        }
        self.gate().raise(self, body, taint)
    }

    /// Decides a call of this agent (§3.2), and performs nothing: an allow of `a2a.send` has sent no message.
    /// Layers use [`Gate::admit`] for acts that happen only after checks of their own.
    #[inline]
    pub fn decide(&self, call: &ToolCall<'_>) -> Verdict {
        self.gate().decide(call)
    }

    /// Decides a call and, if it is allowed, queues it for its engine (§3.3). Never blocks.
    #[inline]
    pub fn submit(&self, call: &ToolCall<'_>) -> Ticket {
        self.gate().submit(call)
    }

    /// Waits for what was submitted (§3.3).
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing: the ticket can be reaped again or withdrawn.
    pub const fn reap<'a>(&'a self, ticket: &'a Ticket) -> Reap<'a> {
        Reap { agent: self, ticket }
    }

    /// Takes an admitted call back before it is reaped (§3.3).
    ///
    /// # Errors
    /// [`TicketError`] if the ticket is somebody else's, or spent.
    pub fn withdraw(&self, ticket: &Ticket) -> Result<(), TicketError> {
        self.gate().withdraw(self, ticket)
    }

    /// Submits a call and waits for its result: a system call.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the call unless it has been reaped.
    pub fn syscall(&self, call: &ToolCall<'_>) -> Syscall<'_> {
        Syscall { agent: self, ticket: self.submit(call) }
    }

    /// The attached agents this one may see (§4.10).
    #[must_use]
    pub fn who(&self) -> Vec<Peer> {
        self.gate().who(self)
    }
}

/// Waits for a submission; see [`AgentHandle::reap`] (§3.3).
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Reap<'a> {
    agent: &'a AgentHandle,
    ticket: &'a Ticket,
}

impl Future for Reap<'_> {
    type Output = Result<ToolResult, TicketError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.agent.gate().poll_reap(self.agent, self.ticket, cx)
    }
}

/// A submission that waits for its own result; see [`AgentHandle::syscall`] (§3.3).
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Syscall<'a> {
    agent: &'a AgentHandle,
    ticket: Ticket,
}

impl Future for Syscall<'_> {
    type Output = ToolResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ToolResult> {
        let reaped = self.agent.gate().poll_reap(self.agent, &self.ticket, cx);
        // The ticket is ours and unspent, so an error can only mean that the call is over.
        reaped.map(|result| result.unwrap_or_else(|_| ToolResult::error()))
    }
}

impl Drop for Syscall<'_> {
    fn drop(&mut self) {
        // Spent after a completed run: then there is nothing to take back.
        let _ = self.agent.withdraw(&self.ticket);
    }
}

impl Ref {
    /// What a fold of `parts` made, with their taint joined (§6.4). Only a kernel may vouch for it.
    pub(crate) fn derived_from<'a>(
        owner: &Arc<Principal>,
        bytes: Bytes,
        parts: impl IntoIterator<Item = &'a Self>,
    ) -> Self {
        let (mut taint, mut foreign) = (None, false);
        for part in parts {
            taint = Some(taint.unwrap_or(Taint::Trusted).join(part.taint()));
            foreign |= part.is_derived() || !part.is_owned_by(owner);
        }
        let made = Self::new(Arc::clone(owner), bytes, taint.unwrap_or_default(), ShareScope::Agent);
        if foreign { made.derived() } else { made }
    }

    /// The same value with at least this taint, without an event: for layers that join taint over
    /// parts, and for kernels.
    #[must_use]
    #[inline]
    pub fn tainted_at_least(&self, taint: Taint) -> Self {
        if taint <= self.taint() { self.clone() } else { self.relabelled(taint, self.scope()) }
    }
}

impl fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentHandle({:?})", self.principal())
    }
}
