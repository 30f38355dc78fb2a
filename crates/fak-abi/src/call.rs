//! Calls: the shape in which every coordination act is presented to a kernel (§2.5).
//! Deciding, queueing and running them is the kernel's business.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::address::{Address, OwnedAddress};
use crate::capability::{Act, CapSet};
use crate::closed::closed_enum;
use crate::handle::AgentHandle;
use crate::id::Id;
use crate::principal::{KernelTag, Principal};
use crate::reference::Ref;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// A tool's name as one kernel knows it. Means nothing to another kernel (§3.3).
///
/// Made by [`Gate::tool`](crate::Gate::tool); a token of another kernel is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolToken {
    tag: KernelTag,
    name: Id,
    index: Option<u32>,
    act: Option<Act>,
}

impl ToolToken {
    #[inline]
    pub(crate) fn new(tag: KernelTag, name: Id, index: Option<u32>) -> Self {
        let act = name.parse().ok();
        Self { tag, name, index, act }
    }

    /// The act, if the name is an act's: such a token is decided as the act (§1.4).
    #[must_use]
    #[inline]
    pub const fn act(&self) -> Option<Act> {
        self.act
    }

    /// The kernel it belongs to.
    #[must_use]
    #[inline]
    pub const fn tag(&self) -> &KernelTag {
        &self.tag
    }

    /// The tool's name.
    #[must_use]
    #[inline]
    pub const fn name(&self) -> &Id {
        &self.name
    }

    /// Its place in the kernel's chains; `None` if the kernel was not told of it when it was built.
    #[must_use]
    #[inline]
    pub const fn index(&self) -> Option<u32> {
        self.index
    }
}

/// The tool a call names: an act of the protocol, whose id is a constant, or a host's own tool (§2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool<'a> {
    /// One of the closed acts.
    Act(Act),
    /// A tool of the host.
    Outside(&'a ToolToken),
}

impl<'a> Tool<'a> {
    /// The tool's name.
    #[must_use]
    #[inline]
    pub fn name(self) -> &'a str {
        match self {
            Self::Act(act) => act.tool(),
            Self::Outside(token) => token.name(),
        }
    }

    /// The act, if it is one.
    #[must_use]
    #[inline]
    pub const fn act(self) -> Option<Act> {
        match self {
            Self::Act(act) => Some(act),
            Self::Outside(_) => None,
        }
    }
}

impl From<Act> for Tool<'_> {
    #[inline]
    fn from(act: Act) -> Self {
        Self::Act(act)
    }
}

impl<'a> From<&'a ToolToken> for Tool<'a> {
    #[inline]
    fn from(token: &'a ToolToken) -> Self {
        Self::Outside(token)
    }
}

/// A value of a call's open metadata (§2.5).
#[derive(Debug, Clone, PartialEq)]
pub enum MetaValue {
    /// A number, such as the `cost` that the budget rung charges (§3.8).
    Number(f64),
    /// A word.
    Text(Id),
    /// A flag.
    Flag(bool),
}

/// What rides along with a call: deadline, cancellation and open metadata (§2.5).
///
/// Inherited by whatever the act starts. Unknown metadata keys are ignored by every rung.
///
/// ```
/// use fak_abi::{Cancel, Id, MetaValue, Rider};
///
/// let cancel = Cancel::new();
/// let rider = Rider {
///     deadline: Some("2026-01-01T00:00:05Z".parse()?),
///     cancel: Some(cancel.clone()),
///     meta: [(Id::new("cost")?, MetaValue::Number(0.25))].into(),
/// };
/// cancel.cancel();
/// assert!(rider.cancel.is_some_and(|cancel| cancel.is_cancelled()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Rider {
    /// When the act stops being wanted.
    pub deadline: Option<Timestamp>,
    /// Turned by whoever no longer wants it.
    pub cancel: Option<Cancel>,
    /// Open metadata.
    pub meta: BTreeMap<Id, MetaValue>,
}

/// A switch that says an act is no longer wanted (§2.5). Clones share it; it never turns back.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A switch that was not turned.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns it. Acts not yet begun are refused; waits end when they are next polled.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True once it was turned.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// An act as a call: a borrowed view, made only from an [`AgentHandle`] (§2.3, §2.5).
///
/// No sender's name and no capability is an argument: the handle is the authority.
#[derive(Clone, Copy)]
pub struct ToolCall<'a> {
    tool: Tool<'a>,
    principal: &'a Arc<Principal>,
    args: Option<&'a Ref>,
    address: Address<'a>,
    recipient: Option<&'a Arc<Principal>>,
    rider: Option<&'a Rider>,
}

impl<'a> ToolCall<'a> {
    /// `agent` performs `tool`.
    #[must_use]
    #[inline]
    pub fn new(agent: &'a AgentHandle, tool: impl Into<Tool<'a>>) -> Self {
        Self {
            tool: tool.into(),
            principal: agent.principal(),
            args: None,
            address: Address::None,
            recipient: None,
            rider: None,
        }
    }

    /// The same call of another tool: for kernels, which decide a token that carries an act's name
    /// as that act.
    #[must_use]
    #[inline]
    pub fn retool(self, tool: impl Into<Tool<'a>>) -> Self {
        Self { tool: tool.into(), ..self }
    }

    /// With this body.
    #[must_use]
    #[inline]
    pub const fn args(self, args: &'a Ref) -> Self {
        Self { args: Some(args), ..self }
    }

    /// At this address.
    #[must_use]
    #[inline]
    pub const fn address(self, address: Address<'a>) -> Self {
        Self { address, ..self }
    }

    /// Which resolves to this principal (§2.5): the binder, session owner, subscriber or member.
    #[must_use]
    #[inline]
    pub const fn recipient(self, recipient: Option<&'a Arc<Principal>>) -> Self {
        Self { recipient, ..self }
    }

    /// With deadline, cancellation and metadata.
    #[must_use]
    #[inline]
    pub const fn rider(self, rider: Option<&'a Rider>) -> Self {
        Self { rider, ..self }
    }

    /// The tool.
    #[must_use]
    #[inline]
    pub const fn tool(&self) -> Tool<'a> {
        self.tool
    }

    /// Who acts.
    #[must_use]
    #[inline]
    pub const fn principal(&self) -> &'a Arc<Principal> {
        self.principal
    }

    /// What it was granted.
    #[must_use]
    #[inline]
    pub fn caps(&self) -> CapSet {
        self.principal.caps()
    }

    /// The body, if it has one.
    #[must_use]
    #[inline]
    pub const fn body(&self) -> Option<&'a Ref> {
        self.args
    }

    /// What is addressed.
    #[must_use]
    #[inline]
    pub const fn target(&self) -> Address<'a> {
        self.address
    }

    /// Whom the address resolves to, where there is one.
    #[must_use]
    #[inline]
    pub const fn resolved(&self) -> Option<&'a Arc<Principal>> {
        self.recipient
    }

    /// True if anything rides along.
    #[must_use]
    #[inline]
    pub const fn has_rider(&self) -> bool {
        self.rider.is_some()
    }

    /// When the act stops being wanted.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.rider.and_then(|rider| rider.deadline)
    }

    /// True once whoever wanted the act no longer does.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.rider.and_then(|rider| rider.cancel.as_ref()).is_some_and(Cancel::is_cancelled)
    }

    /// A value of the open metadata.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&'a MetaValue> {
        self.rider.and_then(|rider| rider.meta.get(key))
    }

    /// A call that outlives this one, by counts, not copies. It does not hold the handle.
    #[must_use]
    pub fn to_owned(&self, seq: u64) -> OwnedCall {
        OwnedCall {
            seq,
            tool: match self.tool {
                Tool::Act(act) => OwnedTool::Act(act),
                Tool::Outside(token) => OwnedTool::Outside(token.clone()),
            },
            principal: Arc::clone(self.principal),
            args: self.args.cloned(),
            address: self.address.to_owned(),
            recipient: self.recipient.cloned(),
            rider: self.rider.cloned(),
        }
    }
}

impl fmt::Debug for ToolCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} {}", self.principal, self.tool.name(), self.address)
    }
}

#[derive(Debug, Clone)]
enum OwnedTool {
    Act(Act),
    Outside(ToolToken),
}

/// An admitted call, waiting to be reaped (§3.3).
#[derive(Debug, Clone)]
pub struct OwnedCall {
    seq: u64,
    tool: OwnedTool,
    principal: Arc<Principal>,
    args: Option<Ref>,
    address: OwnedAddress,
    recipient: Option<Arc<Principal>>,
    rider: Option<Rider>,
}

impl OwnedCall {
    /// A borrowed view, as rungs and engines take it.
    #[must_use]
    #[inline]
    pub fn view(&self) -> ToolCall<'_> {
        ToolCall {
            tool: match &self.tool {
                OwnedTool::Act(act) => Tool::Act(*act),
                OwnedTool::Outside(token) => Tool::Outside(token),
            },
            principal: &self.principal,
            args: self.args.as_ref(),
            address: self.address.view(),
            recipient: self.recipient.as_ref(),
            rider: self.rider.as_ref(),
        }
    }

    /// The number the kernel gave it.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The same call with other arguments: what an accepted transform leaves.
    #[must_use]
    pub fn with_args(self, args: Ref) -> Self {
        Self { args: Some(args), ..self }
    }
}

closed_enum! {
    /// How far a call has come (§2.5).
    pub enum Status: u8, "status", "ok, error, pending" {
        /// It ran.
        Ok = 0 => "ok",
        /// It was refused, or its engine failed.
        Error = 1 => "error",
        /// Its engine is not done; reap again.
        Pending = 2 => "pending",
    }
}

/// What a reaped call yields (§2.5, §3.3).
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// How far it has come.
    pub status: Status,
    /// What it made, if anything.
    pub payload: Option<Ref>,
    /// The verdict, where the call was refused or what it made is held.
    pub refused: Option<Verdict>,
    /// Open metadata.
    pub meta: BTreeMap<Id, MetaValue>,
}

impl ToolResult {
    /// It ran and made this.
    #[must_use]
    pub const fn ok(payload: Option<Ref>) -> Self {
        Self { status: Status::Ok, payload, refused: None, meta: BTreeMap::new() }
    }

    /// Its engine failed, or there is none.
    #[must_use]
    pub fn error() -> Self {
        Self { status: Status::Error, ..Self::ok(None) }
    }

    /// Its engine is not done.
    #[must_use]
    pub fn pending() -> Self {
        Self { status: Status::Pending, ..Self::ok(None) }
    }

    /// It was refused: reason, disposition, rung and retry-after are in the verdict (§3.3).
    #[must_use]
    pub fn refuse(verdict: Verdict) -> Self {
        Self { refused: Some(verdict), ..Self::error() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_small_view() {
        assert!(size_of::<ToolCall<'_>>() <= 72, "{}", size_of::<ToolCall<'_>>());
    }
}
