//! The flow rule: one pure function, used by every layer, that says who may read what (§2.4).

use crate::id::Id;
use crate::principal::Principal;
use crate::taint::{ShareScope, Taint};

/// The fleet and tenant of an owner, a reader or a store (§2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Domains<'a> {
    /// Its fleet, if any.
    pub fleet: Option<&'a Id>,
    /// Its tenant, if any.
    pub tenant: Option<&'a Id>,
}

impl<'a> Domains<'a> {
    /// Those of a principal.
    #[must_use]
    #[inline]
    pub const fn of(principal: &'a Principal) -> Self {
        Self { fleet: principal.fleet(), tenant: principal.tenant() }
    }
}

/// True if a value of this taint and scope, from `from`, may flow to a reader in `to` (§2.4).
///
/// `owned` says that the reader is the value's owner. Fleet and tenant are incomparable: a
/// tenant-only reader never sees fleet-scoped content, nor the reverse.
///
/// ```
/// use fak_abi::{Domains, Id, ShareScope, Taint, may_flow};
/// let fleet = Id::new("f1")?;
/// let here = Domains { fleet: Some(&fleet), tenant: None };
/// assert!(may_flow(Taint::Tainted, ShareScope::Fleet, false, here, here));
/// assert!(!may_flow(Taint::Quarantined, ShareScope::Fleet, false, here, here));
/// assert!(!may_flow(Taint::Tainted, ShareScope::Tenant, false, here, here));
/// # Ok::<(), fak_abi::IdError>(())
/// ```
#[must_use]
#[inline]
pub fn may_flow(taint: Taint, scope: ShareScope, owned: bool, from: Domains<'_>, to: Domains<'_>) -> bool {
    if taint == Taint::Quarantined {
        return false;
    }
    match scope {
        ShareScope::Agent => owned,
        ShareScope::Fleet => from.fleet.is_some() && from.fleet == to.fleet,
        ShareScope::Tenant => from.tenant.is_some() && from.tenant == to.tenant,
        ShareScope::Public => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §2.4, exhaustively over two fleets, two tenants and their absence.
    #[test]
    fn the_rule_case_by_case() {
        let ids = ["a", "b"].map(|s| Id::new(s).unwrap());
        let some = |n: usize| ids.get(n);
        for taint in Taint::ALL {
            for scope in ShareScope::ALL {
                for owned in [false, true] {
                    for n in 0..81 {
                        let [ff, ft, tf, tt] = [n % 3, n / 3 % 3, n / 9 % 3, n / 27];
                        let from = Domains { fleet: some(ff), tenant: some(ft) };
                        let to = Domains { fleet: some(tf), tenant: some(tt) };
                        let expected = *taint != Taint::Quarantined
                            && match scope {
                                ShareScope::Agent => owned,
                                ShareScope::Fleet => ff < 2 && ff == tf,
                                ShareScope::Tenant => ft < 2 && ft == tt,
                                ShareScope::Public => true,
                            };
                        assert_eq!(may_flow(*taint, *scope, owned, from, to), expected);
                    }
                }
            }
        }
    }
}
