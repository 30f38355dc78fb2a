//! Drivers: what a layer (channels, groups, records) brings to the kernel it is built into, and
//! the link the kernel gives it in return. The layers meet here; they do not know each other.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use thiserror::Error;

use crate::call::{Tool, ToolCall};
use crate::capability::CapSet;
use crate::event::Event;
use crate::gate::{Admission, Gate, Sequence};
use crate::id::Id;
use crate::principal::{KernelTag, Principal};
use crate::reference::{Location, Ref};
use crate::seam::{Adjudicator, Engine, Resolver};
use crate::taint::{ShareScope, Taint};
use crate::time::{Clock, Timer};
use crate::verdict::{Claim, RungName};

/// A layer, as the kernel sees it (§3.1). Built first, then handed to the kernel's builder, which owns
/// it; the layer keeps only the weak [`DriverLink`], so both can be dropped.
pub trait Driver: Send + Sync {
    /// Its name.
    fn name(&self) -> RungName;

    /// The capabilities it registers: without it nobody is granted them (§2.3).
    fn capabilities(&self) -> CapSet;

    /// Its floor rungs, which come before every host rung whatever rank that has (§3.2).
    fn floor(&self) -> Vec<Arc<dyn Adjudicator>>;

    /// Its engines.
    fn engines(&self) -> Vec<Arc<dyn Engine>> {
        Vec::new()
    }

    /// Called once, when the kernel is built.
    ///
    /// # Errors
    /// [`InstallError`] if it already belongs to a kernel: two rule sets over one mailbox would
    /// void each other's floor (§3.1).
    fn install(&self, link: DriverLink) -> Result<(), InstallError>;

    /// `principal` is attached, before anyone holds its handle: reserve what is its own (§4.6).
    fn attached(&self, _principal: &Arc<Principal>) {}

    /// `principal` was detached: free what it held, wake its waits (§2.3).
    fn detached(&self, _principal: &Arc<Principal>) {}
}

/// A driver that is built into a kernel already (§3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} belongs to a kernel already; a bus, store, space or arbiter belongs to exactly one")]
pub struct InstallError(pub RungName);

/// What a kernel does for the layers built into it, beyond what any agent may ask of its gate (§2.9).
pub trait Host: Gate {
    /// As [`Gate::admit`], also for handles of another kernel, which are refused and audited here.
    fn admit_any<'a>(&'a self, call: &'a ToolCall<'a>) -> Admission<'a>;

    /// Appends an audit entry that cites an earlier act: a dead letter, a held message, a
    /// withdrawal (§3.6). Where there is no place it is counted in the next gap entry.
    fn note(&self, event: &Event<'_>);

    /// A body made by an act itself (§4.9), owned by `owner`.
    fn issue(&self, owner: &Arc<Principal>, bytes: Bytes, taint: Taint, scope: ShareScope) -> Option<Ref>;

    /// What an adjudicated fold made of `parts` (§6.4): owned by `owner`, scope `agent`, the taint
    /// joined over the parts, not to be widened unless every part is the owner's own. `None` for
    /// an owner of another kernel.
    fn derive(&self, _owner: &Arc<Principal>, _bytes: Bytes, _parts: &[Ref]) -> Option<Ref> {
        None
    }

    /// True unless no result admitter concerns itself with `tool`: a layer then need not put what it
    /// hands over into a Ref only to have it screened.
    fn screens(&self, _tool: Tool<'_>) -> bool {
        true
    }

    /// True if some witness confirms `claim` for `call` and none refutes it (§3.4).
    fn confirms(&self, _claim: &Claim, _call: &ToolCall<'_>) -> bool {
        false
    }

    /// The same value at another place, where `bytes` are equal to its own: the entries of a pool
    /// (§3.9).
    fn relocate(&self, _body: &Ref, _location: Location, _bytes: Bytes) -> Option<Ref> {
        None
    }

    /// The attached principal of that id.
    fn attached(&self, id: &Id) -> Option<Arc<Principal>>;

    /// The bytes behind Refs.
    fn resolver(&self) -> &dyn Resolver;
}

/// Shows that its holder is a layer built into one kernel (§3.1). Minted with that kernel's seal and
/// handed out in the [`DriverLink`] alone: no agent can come by one.
#[derive(Debug, Clone)]
pub struct LayerKey(KernelTag);

impl LayerKey {
    pub(crate) const fn new(tag: KernelTag) -> Self {
        Self(tag)
    }

    /// The kernel it is good for.
    #[must_use]
    #[inline]
    pub const fn tag(&self) -> &KernelTag {
        &self.0
    }
}

/// A layer's tie to its kernel: identity, clock, timer and numbers at hand, the rest behind a
/// weak pointer (§3.1).
#[derive(Clone)]
pub struct DriverLink {
    key: LayerKey,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    sequence: Arc<Sequence>,
    host: Weak<dyn Host>,
}

impl DriverLink {
    /// For kernels.
    #[must_use]
    pub fn new(
        key: LayerKey,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
        sequence: Arc<Sequence>,
        host: Weak<dyn Host>,
    ) -> Self {
        Self { key, clock, timer, sequence, host }
    }

    /// The kernel's identity, to compare with that of a handle on every act.
    #[must_use]
    #[inline]
    pub const fn tag(&self) -> &KernelTag {
        self.key.tag()
    }

    /// What the kernel asks of a layer that wants a permit.
    #[must_use]
    #[inline]
    pub const fn key(&self) -> &LayerKey {
        &self.key
    }

    /// The kernel's clock.
    #[must_use]
    #[inline]
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The kernel's timer.
    #[must_use]
    #[inline]
    pub fn timer(&self) -> &dyn Timer {
        &*self.timer
    }

    /// The kernel's numbers: draw a message's under the lock that orders it.
    #[must_use]
    #[inline]
    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// The kernel, unless it is gone.
    #[must_use]
    pub fn host(&self) -> Option<Arc<dyn Host>> {
        self.host.upgrade()
    }
}
