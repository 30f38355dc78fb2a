//! The roll: who is attached to a kernel, and the seal it makes them with (§2.3).

use std::collections::HashMap;
use std::sync::Arc;

use fak_abi::{AttachError, CapSet, Id, KernelSeal, Peer, Principal, PrincipalSpec};
use parking_lot::RwLock;

use crate::seams::Grants;

pub(crate) struct Roll {
    pub(crate) seal: KernelSeal,
    registered: CapSet,
    grants: Option<Arc<dyn Grants>>,
    attached: RwLock<Attached>,
}

#[derive(Default)]
struct Attached {
    by_id: HashMap<Id, Arc<Principal>>,
    traces: HashMap<Id, Id>,
    domains: Domains,
    incarnations: u64,
}

/// The fleets and tenants of those who are attached, with how many are in each. Whoever shares one
/// holds the same text, so that the flow rule mostly compares pointers.
#[derive(Default)]
struct Domains(HashMap<Id, usize>);

impl Domains {
    /// The same name, by the text that others hold.
    fn shared(&self, name: Option<Id>) -> Option<Id> {
        name.map(|name| self.0.get_key_value(&name).map_or(name, |(shared, _)| shared.clone()))
    }

    fn enter(&mut self, who: &Principal) {
        for name in [who.fleet(), who.tenant()].into_iter().flatten() {
            *self.0.entry(name.clone()).or_default() += 1;
        }
    }

    fn leave(&mut self, who: &Principal) {
        for name in [who.fleet(), who.tenant()].into_iter().flatten() {
            if let Some(count) = self.0.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(name);
                }
            }
        }
    }
}

impl Roll {
    pub(crate) fn new(seal: KernelSeal, registered: CapSet, grants: Option<Arc<dyn Grants>>) -> Self {
        Self { seal, registered, grants, attached: RwLock::default() }
    }

    /// Granted = advertised ∩ registered ∩ what the grant policy allows.
    fn granted(&self, spec: &PrincipalSpec) -> CapSet {
        let caps = spec.caps.and(self.registered);
        match &self.grants {
            None => caps,
            Some(grants) => caps.iter().filter(|cap| grants.may_have(spec, *cap)).collect(),
        }
    }

    pub(crate) fn attach(&self, spec: PrincipalSpec) -> Result<Arc<Principal>, AttachError> {
        // The grant policy is user code: asked before the lock is taken.
        let granted = self.granted(&spec);
        let mut attached = self.attached.write();
        if attached.by_id.contains_key(&spec.id) {
            return Err(AttachError::Id(spec.id));
        }
        attached.incarnations += 1;
        let (fleet, tenant) =
            (attached.domains.shared(spec.fleet.clone()), attached.domains.shared(spec.tenant.clone()));
        let spec = PrincipalSpec { fleet, tenant, ..spec };
        let principal = self.seal.principal(spec, attached.incarnations, granted);
        if attached.traces.contains_key(principal.trace()) {
            return Err(AttachError::Trace(principal.trace().clone()));
        }
        attached.domains.enter(&principal);
        attached.traces.insert(principal.trace().clone(), principal.id().clone());
        attached.by_id.insert(principal.id().clone(), Arc::clone(&principal));
        Ok(principal)
    }

    pub(crate) fn detach(&self, id: &Id) -> Result<Arc<Principal>, AttachError> {
        let mut attached = self.attached.write();
        let Some(principal) = attached.by_id.remove(id) else {
            return Err(AttachError::Absent(id.clone()));
        };
        attached.traces.remove(principal.trace());
        attached.domains.leave(&principal);
        self.seal.detach(&principal);
        Ok(principal)
    }

    pub(crate) fn find(&self, id: &Id) -> Option<Arc<Principal>> {
        self.attached.read().by_id.get(id).cloned()
    }

    /// Itself and those who share its fleet or tenant, by id.
    pub(crate) fn seen_by(&self, asker: &Principal) -> Vec<Peer> {
        let attached = self.attached.read();
        let mut peers: Vec<_> = attached
            .by_id
            .values()
            .filter(|peer| std::ptr::eq(Arc::as_ptr(peer), asker) || peer.shares_domain(asker))
            .map(|peer| Peer { id: peer.id().clone(), kind: peer.kind(), last_act: peer.last_act() })
            .collect();
        drop(attached);
        peers.sort_by(|a, b| a.id.cmp(&b.id));
        peers
    }
}
