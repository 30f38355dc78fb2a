//! Refs: addressable bytes with a provenance that nobody outside a kernel can set (§2.1).
//! There is no accessor to the bytes here: `AgentHandle::read` applies the flow rule first.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::closed::closed_enum;
use crate::digest::Digest;
use crate::flow::{Domains, may_flow};
use crate::principal::Principal;
use crate::taint::{ShareScope, Taint};

closed_enum! {
    /// Where the bytes of a [`Ref`] live (§2.1).
    #[derive(Default)]
    pub enum Location: u8, "location", "inline, blob, region" {
        /// With the Ref.
        #[default]
        Inline = 0 => "inline",
        /// In a kernel's content-addressed pool; the Ref pins them there.
        Blob = 1 => "blob",
        /// A slice of a larger shared buffer, which the Ref keeps alive.
        Region = 2 => "region",
    }
}

/// An addressable handle to bytes, with their provenance (§2.1).
///
/// Cloning bumps a count; neither bytes nor provenance ever change. Taint, scope and owner are
/// set by the kernel whose agent made it and change only into *new* Refs, by the acts of §2.4.
///
/// ```compile_fail
/// fn peek(body: &fak_abi::Ref) -> &[u8] {
///     body.bytes() // there is no such accessor
/// }
/// ```
#[derive(Clone)]
pub struct Ref(Arc<Inner>);

/// Aligned so that the reference count does not share a cache line with what rungs read.
#[derive(Clone)]
#[repr(align(64))]
struct Inner {
    owner: Arc<Principal>,
    bytes: Bytes,
    taint: Taint,
    scope: ShareScope,
    location: Location,
    derived: bool,
    digest: OnceLock<Digest>,
}

impl Ref {
    pub(crate) fn new(owner: Arc<Principal>, bytes: Bytes, taint: Taint, scope: ShareScope) -> Self {
        let digest = OnceLock::new();
        Self(Arc::new(Inner {
            owner,
            bytes,
            taint,
            scope,
            location: Location::Inline,
            derived: false,
            digest,
        }))
    }

    /// A Ref that differs from this one as `change` says; shares bytes and a known digest.
    fn changed(&self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Inner::clone(&self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }

    pub(crate) fn relabelled(&self, taint: Taint, scope: ShareScope) -> Self {
        self.changed(|inner| (inner.taint, inner.scope) = (taint, scope))
    }

    pub(crate) fn located(&self, location: Location, bytes: Bytes) -> Self {
        self.changed(|inner| (inner.location, inner.bytes) = (location, bytes))
    }

    pub(crate) fn derived(&self) -> Self {
        self.changed(|inner| inner.derived = true)
    }

    /// Other bytes under the same provenance: what a transforming rung offers.
    pub(crate) fn rewritten(&self, bytes: Bytes) -> Self {
        self.changed(|inner| {
            (inner.bytes, inner.location, inner.digest) = (bytes, Location::Inline, OnceLock::new());
        })
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// The digest of the bytes; hashed on first use, linear in their number.
    #[must_use]
    #[inline]
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| Digest::of(&self.0.bytes))
    }

    /// How many bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.0.bytes.len()
    }

    /// True for no bytes.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.bytes.is_empty()
    }

    /// How far it is trusted.
    #[must_use]
    #[inline]
    pub fn taint(&self) -> Taint {
        self.0.taint
    }

    /// Whom it may reach.
    #[must_use]
    #[inline]
    pub fn scope(&self) -> ShareScope {
        self.0.scope
    }

    /// Where its bytes live.
    #[must_use]
    #[inline]
    pub fn location(&self) -> Location {
        self.0.location
    }

    /// The principal that made it, as it was then.
    #[must_use]
    #[inline]
    pub fn owner(&self) -> &Principal {
        &self.0.owner
    }

    /// True if it was made from parts that other principals own; it can then never be widened
    /// (§2.4, §6.4).
    #[must_use]
    #[inline]
    pub fn is_derived(&self) -> bool {
        self.0.derived
    }

    /// True if `principal` is the very incarnation that made it.
    #[must_use]
    #[inline]
    pub fn is_owned_by(&self, principal: &Principal) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.0.owner), principal)
    }

    /// The flow rule (§2.4) for this Ref. Refs of another kernel flow to nobody here.
    #[must_use]
    #[inline]
    pub fn may_flow_to(&self, reader: &Principal) -> bool {
        self.0.taint != Taint::Quarantined && self.would_flow_to(reader)
    }

    /// The flow rule as if the Ref were not quarantined: whom forensics may show it to (§4.4).
    #[must_use]
    #[inline]
    pub fn would_flow_to(&self, reader: &Principal) -> bool {
        let owner = self.owner();
        owner.tag() == reader.tag()
            && may_flow(
                Taint::Trusted,
                self.0.scope,
                self.is_owned_by(reader),
                Domains::of(owner),
                Domains::of(reader),
            )
    }
}

impl fmt::Debug for Ref {
    /// Provenance and length, never bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref")
            .field("len", &self.len())
            .field("taint", &self.taint())
            .field("scope", &self.scope())
            .field("owner", &self.owner().id())
            .finish_non_exhaustive()
    }
}
