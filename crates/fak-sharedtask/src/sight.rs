//! Who sees what of a record: the flow rule (§2.4) over a store's domain and a reader (§5.2, §5.8).

use fak_abi::{Domains, Id, Principal, ShareScope, Taint, may_flow};

use crate::envelope::Actor;

/// The fleet, tenant, or both that a store serves (§5.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Domain {
    /// The fleet whose members `fleet`-scoped content flows to.
    pub fleet: Option<Id>,
    /// The tenant whose members `tenant`-scoped content flows to.
    pub tenant: Option<Id>,
}

impl Domain {
    /// Borrowed, for the flow rule.
    #[must_use]
    pub const fn view(&self) -> Domains<'_> {
        Domains { fleet: self.fleet.as_ref(), tenant: self.tenant.as_ref() }
    }

    /// Whether somebody of these domains is admitted at all: of the store's fleet or its tenant (§5.2).
    #[must_use]
    pub fn admits(&self, reader: Domains<'_>) -> bool {
        [ShareScope::Fleet, ShareScope::Tenant]
            .iter()
            .any(|scope| may_flow(Taint::Trusted, *scope, false, self.view(), reader))
    }
}

/// What one reader may see in one store. Taken once a call, so that asking costs no comparison of names.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    reader: Option<Actor>,
    /// By scope and ownership, for what is not quarantined.
    open: [[bool; 2]; ShareScope::ALL.len()],
    /// Everything, quarantined content included: the host's.
    all: bool,
}

impl Sight {
    /// The sight of somebody who acts as `reader` and belongs to `domains`.
    pub(crate) fn new(store: &Domain, reader: Actor, domains: Domains<'_>) -> Self {
        let mut open = [[false; 2]; ShareScope::ALL.len()];
        for (scope, row) in ShareScope::ALL.iter().zip(&mut open) {
            for (owned, cell) in [false, true].into_iter().zip(row) {
                *cell = may_flow(Taint::Trusted, *scope, owned, store.view(), domains);
            }
        }
        Self { reader: Some(reader), open, all: false }
    }

    /// The sight of a principal.
    pub(crate) fn of(store: &Domain, principal: &Principal) -> Self {
        Self::new(store, Actor::of(principal), Domains::of(principal))
    }

    /// The host's, who sees everything.
    pub(crate) fn host() -> Self {
        Self { reader: None, open: [[true; 2]; ShareScope::ALL.len()], all: true }
    }

    /// The actor the reader acts as; none for the host.
    pub(crate) fn reader(&self) -> Option<&Actor> {
        self.reader.as_ref()
    }

    /// Whether the reader may see content of this taint and scope that `author` brought.
    pub(crate) fn sees(&self, taint: Taint, scope: ShareScope, author: &Actor) -> bool {
        if taint == Taint::Quarantined {
            return self.all;
        }
        let [others, own] = self.open.get(usize::from(scope.code())).copied().unwrap_or_default();
        others || (own && self.reader.as_ref().is_some_and(|reader| reader.is(author)))
    }

    /// Whether the reader belongs to the audience of a scope, and so may bring content of it (§5.5).
    pub(crate) fn holds(&self, scope: ShareScope) -> bool {
        self.open.get(usize::from(scope.code())).copied().unwrap_or_default().contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    #[test]
    fn fleet_and_tenant_are_incomparable_and_private_is_by_kind_and_id() {
        let store = Domain { fleet: Some(id("f")), tenant: Some(id("t")) };
        let (fleet, tenant) = (id("f"), id("t"));
        let of_fleet =
            Sight::new(&store, Actor::new("agent", "a"), Domains { fleet: Some(&fleet), tenant: None });
        let me = Actor::new("agent", "a");
        let homonym = Actor::new("human", "a");
        assert!(of_fleet.sees(Taint::Tainted, ShareScope::Fleet, &homonym));
        assert!(!of_fleet.sees(Taint::Tainted, ShareScope::Tenant, &me));
        assert!(of_fleet.sees(Taint::Tainted, ShareScope::Agent, &me));
        assert!(!of_fleet.sees(Taint::Tainted, ShareScope::Agent, &homonym));
        assert!(!of_fleet.sees(Taint::Quarantined, ShareScope::Public, &me));
        assert!(of_fleet.holds(ShareScope::Agent) && !of_fleet.holds(ShareScope::Tenant));
        assert!(store.admits(Domains { fleet: None, tenant: Some(&tenant) }));
        assert!(!store.admits(Domains { fleet: Some(&tenant), tenant: None }));
        assert!(!Domain::default().admits(Domains::default()));
    }
}
