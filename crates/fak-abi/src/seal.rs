//! The seal: the secret with which one kernel makes principals, handles, tickets and labelled
//! Refs. Whoever lacks it can only pass Refs along (§2.1, §2.3).

use std::sync::Arc;

use bytes::Bytes;

use crate::call::ToolToken;
use crate::capability::{Act, CapSet};
use crate::driver::LayerKey;
use crate::gate::{Gate, Ticket};
use crate::handle::AgentHandle;
use crate::id::Id;
use crate::principal::{KernelTag, Principal, PrincipalSpec};
use crate::reference::{Location, Ref};
use crate::seam::ResolveError;
use crate::taint::{ShareScope, Taint};
use crate::verdict::Verdict;

/// Makes what only a kernel may make (§3.1). A kernel creates one, keeps it private and never lends it.
///
/// Anybody can create a seal, and so a kernel of their own; what it makes carries its own tag and
/// is refused everywhere else, and it opens no Ref but its own.
#[derive(Debug)]
pub struct KernelSeal(KernelTag);

impl Default for KernelSeal {
    fn default() -> Self {
        Self::new()
    }
}

impl KernelSeal {
    /// A seal with a fresh identity.
    #[must_use]
    pub fn new() -> Self {
        Self(KernelTag::new())
    }

    /// The identity that everything made with this seal carries.
    #[must_use]
    #[inline]
    pub const fn tag(&self) -> &KernelTag {
        &self.0
    }

    /// Makes a principal, attached. `incarnation` must never repeat.
    #[must_use]
    pub fn principal(&self, spec: PrincipalSpec, incarnation: u64, granted: CapSet) -> Arc<Principal> {
        Arc::new(Principal::new(self.0.clone(), spec, incarnation, granted))
    }

    /// Makes the handle of a principal of this seal; `None` for one of another.
    #[must_use]
    pub fn handle(&self, principal: &Arc<Principal>, gate: Arc<dyn Gate>) -> Option<AgentHandle> {
        (principal.tag() == &self.0).then(|| AgentHandle::new(Arc::clone(principal), gate))
    }

    /// Turns the kill switch of a principal of this seal; false if it was turned, or is foreign.
    pub fn detach(&self, principal: &Principal) -> bool {
        principal.tag() == &self.0 && principal.detach()
    }

    /// Remembers what a principal of this seal did last, for `who`.
    #[inline]
    pub fn acted(&self, principal: &Principal, act: Act) {
        if principal.tag() == &self.0 {
            principal.acted(act);
        }
    }

    /// Mints the claim check of a submission.
    pub fn ticket(&self, seq: u64, verdict: Verdict) -> Ticket {
        Ticket::new(self.0.clone(), seq, verdict)
    }

    /// Mints what a layer built into this kernel shows when it asks for permits.
    #[must_use]
    pub fn layer_key(&self) -> LayerKey {
        LayerKey::new(self.0.clone())
    }

    /// Mints a tool token.
    #[must_use]
    pub fn tool(&self, name: Id, index: Option<u32>) -> ToolToken {
        ToolToken::new(self.0.clone(), name, index)
    }

    fn own(&self, body: &Ref) -> Result<(), ResolveError> {
        (body.owner().tag() == &self.0).then_some(()).ok_or(ResolveError)
    }

    /// The bytes of a Ref of this seal.
    ///
    /// # Errors
    /// [`ResolveError`] for any other.
    pub fn bytes(&self, body: &Ref) -> Result<Bytes, ResolveError> {
        self.own(body).map(|()| body.bytes().clone())
    }

    /// What an adjudicated fold made of `parts` (§6.4), their taint joined.
    ///
    /// # Errors
    /// [`ResolveError`] if `owner` is of another seal.
    pub fn derive(&self, owner: &Arc<Principal>, bytes: Bytes, parts: &[Ref]) -> Result<Ref, ResolveError> {
        if owner.tag() != &self.0 {
            return Err(ResolveError);
        }
        Ok(Ref::derived_from(owner, bytes, parts))
    }

    /// A Ref made by an act rather than by its owner: the bodies of §4.9, the entries of a pool.
    ///
    /// # Errors
    /// [`ResolveError`] if `owner` is of another seal.
    pub fn issue(
        &self,
        owner: &Arc<Principal>,
        bytes: Bytes,
        taint: Taint,
        scope: ShareScope,
    ) -> Result<Ref, ResolveError> {
        if owner.tag() != &self.0 {
            return Err(ResolveError);
        }
        Ok(Ref::new(Arc::clone(owner), bytes, taint, scope))
    }

    /// The same value under another label: an adjudicated widening, trusting or raising.
    ///
    /// # Errors
    /// [`ResolveError`] for a Ref of another seal.
    pub fn relabel(&self, body: &Ref, taint: Taint, scope: ShareScope) -> Result<Ref, ResolveError> {
        self.own(body).map(|()| body.relabelled(taint, scope))
    }

    /// The same value at another place; `bytes` must be equal.
    ///
    /// # Errors
    /// [`ResolveError`] for a Ref of another seal, or other bytes.
    pub fn relocate(&self, body: &Ref, location: Location, bytes: Bytes) -> Result<Ref, ResolveError> {
        self.own(body)?;
        // The usual case is the same memory, which need not be compared.
        let same = (body.bytes().as_ptr(), body.len()) == (bytes.as_ptr(), bytes.len());
        if !same && body.bytes() != &bytes {
            return Err(ResolveError);
        }
        Ok(body.located(location, bytes))
    }

    /// Other bytes under the same provenance (§3.2).
    ///
    /// # Errors
    /// [`ResolveError`] for a Ref of another seal.
    pub fn rewrite(&self, body: &Ref, bytes: Bytes) -> Result<Ref, ResolveError> {
        self.own(body).map(|()| body.rewritten(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;

    /// §2.1: a Ref moves to another place with the bytes it has, and with no others.
    #[test]
    fn a_ref_is_not_relocated_onto_other_bytes() {
        let (seal, other) = (KernelSeal::new(), KernelSeal::new());
        let owner = seal.principal(PrincipalSpec::agent(Id::new("a").unwrap()), 1, CapSet::NONE);
        let bytes = Bytes::from_static(b"the value");
        let body = seal.issue(&owner, bytes.clone(), Taint::Tainted, ShareScope::Fleet).unwrap();
        let nothing = seal.issue(&owner, Bytes::new(), Taint::Tainted, ShareScope::Fleet).unwrap();
        assert!(nothing.is_empty() && !body.is_empty());
        for same in [bytes.clone(), Bytes::copy_from_slice(&bytes)] {
            let moved = seal.relocate(&body, Location::Blob, same).unwrap();
            assert_eq!(
                (moved.location(), moved.digest(), moved.scope()),
                (Location::Blob, body.digest(), body.scope())
            );
            assert_eq!(seal.bytes(&moved).unwrap(), bytes);
        }
        for wrong in [bytes.slice(..8), bytes.slice(1..), Bytes::from_static(b"The value"), Bytes::new()] {
            assert!(seal.relocate(&body, Location::Blob, wrong).is_err());
        }
        assert!(other.relocate(&body, Location::Blob, bytes).is_err());
    }
}
