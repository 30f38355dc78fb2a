//! Who acts: principals, and the seal with which one kernel makes them and its Refs (§2.1, §2.3).
//! The handle that acts as a principal is in `handle`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::capability::{Act, CapSet};
use crate::closed::closed_enum;
use crate::id::Id;

closed_enum! {
    /// What a principal is (§2.3).
    #[derive(Default)]
    pub enum PrincipalKind: u8, "principal kind", "agent, human" {
        /// A program.
        #[default]
        Agent = 0 => "agent",
        /// A person; only one may approve held patches (§5.7).
        Human = 1 => "human",
    }
}

/// The identity of one kernel, compared by pointer: it cannot be guessed, forged or reused (§3.1).
///
/// Everything a kernel makes carries it. Holding a tag proves nothing; being *made with* the seal
/// it belongs to does.
#[derive(Clone)]
pub struct KernelTag(Arc<Marker>);

/// Not zero-sized, so that two tags never share an address.
struct Marker(#[expect(dead_code, reason = "gives the allocation its own address")] u8);

impl PartialEq for KernelTag {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for KernelTag {}

impl KernelTag {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Marker(0)))
    }
}

impl fmt::Debug for KernelTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelTag")
    }
}

/// What a host says of a principal when it attaches it (§2.3).
///
/// ```
/// use fak_abi::{Capability::*, Id, PrincipalSpec};
///
/// let coder = PrincipalSpec::agent(Id::new("coder")?)
///     .fleet(Id::new("crew")?)
///     .tenant(Id::new("acme")?)
///     .caps([A2aSend, A2aRecv, RefWiden]);
/// // What is advertised is not yet granted: the kernel that attaches it has a say.
/// assert!(coder.caps.holds(A2aSend) && !coder.caps.holds(ForensicsRead));
/// # Ok::<(), fak_abi::IdError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PrincipalSpec {
    /// Its name, unique among the attached.
    pub id: Id,
    /// Agent or human.
    pub kind: PrincipalKind,
    /// Its fleet, if any.
    pub fleet: Option<Id>,
    /// Its tenant, if any.
    pub tenant: Option<Id>,
    /// Its session; `trace-<id>` unless said otherwise, unique among the attached.
    pub trace: Option<Id>,
    /// The capabilities it advertises. What it is granted may be less.
    pub caps: CapSet,
}

impl PrincipalSpec {
    /// An agent of this name with no fleet, no tenant and no capability.
    #[must_use]
    pub const fn agent(id: Id) -> Self {
        Self { id, kind: PrincipalKind::Agent, fleet: None, tenant: None, trace: None, caps: CapSet::NONE }
    }

    /// A human of this name with no fleet, no tenant and no capability.
    #[must_use]
    pub fn human(id: Id) -> Self {
        Self { kind: PrincipalKind::Human, ..Self::agent(id) }
    }

    /// In this fleet.
    #[must_use]
    #[inline]
    pub fn fleet(self, fleet: Id) -> Self {
        Self { fleet: Some(fleet), ..self }
    }

    /// Of this tenant.
    #[must_use]
    #[inline]
    pub fn tenant(self, tenant: Id) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// In this session.
    #[must_use]
    #[inline]
    pub fn trace(self, trace: Id) -> Self {
        Self { trace: Some(trace), ..self }
    }

    /// Advertising these capabilities.
    #[must_use]
    #[inline]
    pub fn caps(self, caps: impl Into<CapSet>) -> Self {
        Self { caps: caps.into(), ..self }
    }
}

impl<const N: usize> From<[crate::capability::Capability; N]> for CapSet {
    fn from(caps: [crate::capability::Capability; N]) -> Self {
        caps.into_iter().collect()
    }
}

/// One attachment of one identity to one kernel (§2.3). Immutable but for the kill switch.
///
/// Attaching the same id again makes another incarnation, which owns nothing of this one.
pub struct Principal {
    tag: KernelTag,
    caps: CapSet,
    attached: AtomicBool,
    last_act: AtomicU8,
    kind: PrincipalKind,
    incarnation: u64,
    id: Id,
    fleet: Option<Id>,
    tenant: Option<Id>,
    trace: Id,
}

impl Principal {
    pub(crate) fn new(tag: KernelTag, spec: PrincipalSpec, incarnation: u64, caps: CapSet) -> Self {
        let PrincipalSpec { id, kind, fleet, tenant, trace, caps: _ } = spec;
        let trace = trace.unwrap_or_else(|| default_trace(&id));
        Self {
            tag,
            caps,
            attached: AtomicBool::new(true),
            last_act: AtomicU8::new(u8::MAX),
            kind,
            incarnation,
            id,
            fleet,
            tenant,
            trace,
        }
    }

    /// Its name.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> &Id {
        &self.id
    }

    /// Agent or human.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> PrincipalKind {
        self.kind
    }

    /// Its fleet, if any.
    #[must_use]
    #[inline]
    pub const fn fleet(&self) -> Option<&Id> {
        self.fleet.as_ref()
    }

    /// Its tenant, if any.
    #[must_use]
    #[inline]
    pub const fn tenant(&self) -> Option<&Id> {
        self.tenant.as_ref()
    }

    /// Its session.
    #[must_use]
    #[inline]
    pub const fn trace(&self) -> &Id {
        &self.trace
    }

    /// Which attachment of its kernel this is; numbers are never used twice by one kernel.
    #[must_use]
    #[inline]
    pub const fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The kernel it is attached to.
    #[must_use]
    #[inline]
    pub const fn tag(&self) -> &KernelTag {
        &self.tag
    }

    /// What it was granted.
    #[must_use]
    #[inline]
    pub const fn caps(&self) -> CapSet {
        self.caps
    }

    /// False once it was detached; never true again.
    #[must_use]
    #[inline]
    pub fn is_attached(&self) -> bool {
        self.attached.load(Ordering::Acquire)
    }

    /// The act it performed last, if any (§4.10).
    #[must_use]
    #[inline]
    pub fn last_act(&self) -> Option<Act> {
        Act::ALL.get(usize::from(self.last_act.load(Ordering::Relaxed))).copied()
    }

    /// Remembers an act; writes only on change, so that clones on several cores do not contend.
    #[inline]
    pub(crate) fn acted(&self, act: Act) {
        if self.last_act.load(Ordering::Relaxed) != act.code() {
            self.last_act.store(act.code(), Ordering::Relaxed);
        }
    }

    pub(crate) fn detach(&self) -> bool {
        self.attached.swap(false, Ordering::AcqRel)
    }

    /// True if both are of one kernel and share a fleet or a tenant: the bound on what names an
    /// explanation may show (§3.5) and whom `who` lists.
    #[must_use]
    pub fn shares_domain(&self, other: &Self) -> bool {
        let shared = |a: Option<&Id>, b: Option<&Id>| a.is_some() && a == b;
        self.tag == other.tag
            && (shared(self.fleet(), other.fleet()) || shared(self.tenant(), other.tenant()))
    }
}

/// `trace-<id>`, or the id itself where that would be too long.
fn default_trace(id: &Id) -> Id {
    Id::from_str(&format!("trace-{id}")).unwrap_or_else(|_| id.clone())
}

impl fmt::Display for Principal {
    /// Its id, as that is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.id, f)
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}#{}", self.kind, self.id, self.incarnation)
    }
}
