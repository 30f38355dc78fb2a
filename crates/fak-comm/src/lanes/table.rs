//! The table of live leases: granting, renewing, releasing and checking, under one fence counter. Pure state: time
//! and holder are handed in; verdicts, limits and acts are the arbiter's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fak_abi::{Principal, Timestamp};

use super::decide::{Decision, InTheWay, LaneRequest, LiveLease, Region, decide};
use super::path::{LanePath, PathFault};
use super::taxonomy::Taxonomy;

/// The live leases of one arbiter, by fence (§6.7).
#[derive(Clone, Debug, Default)]
pub struct LeaseTable {
    live: BTreeMap<u64, LiveLease>,
    /// The last fence handed out; the first is 1. A refusal consumes none.
    last: u64,
}

/// What a fence is good for at an instant (§6.7).
#[derive(Clone, Debug)]
#[must_use]
pub enum Standing {
    /// The lease lives and is the holder's.
    Holds,
    /// It lives and is somebody else's: TRUST_VIOLATION.
    NotYours,
    /// It is gone, and a later lease is over what it was over: LEASE_HELD.
    Stale(Vec<InTheWay>),
    /// It is gone, and nothing took its place; or it never was: MISROUTE.
    Gone,
    /// The path is none: MALFORMED.
    Malformed(PathFault),
    /// It lives, and the path is outside it: TRUST_VIOLATION.
    Outside,
}

impl LeaseTable {
    /// The leases that live at `now`, oldest first.
    pub fn live(&self, now: Timestamp) -> impl Iterator<Item = &LiveLease> {
        self.live.values().filter(move |lease| lease.is_live(now))
    }

    /// How many leases `holder` has at `now`.
    #[must_use]
    pub fn held_by(&self, holder: &Arc<Principal>, now: Timestamp) -> usize {
        self.live(now).filter(|lease| Arc::ptr_eq(&lease.holder, holder)).count()
    }

    /// Decides every request, each beside those before it: all are admitted, or none (§6.6).
    ///
    /// # Errors
    /// The first refusal, and its place among the requests.
    pub fn decide_all(
        &self,
        requests: &[LaneRequest<'_>],
        holder: &Arc<Principal>,
        taxonomy: &Taxonomy,
        now: Timestamp,
    ) -> Result<Vec<Region>, (usize, Decision)> {
        let mut beside: Vec<LiveLease> = Vec::with_capacity(requests.len());
        for (at, request) in requests.iter().enumerate() {
            match decide(*request, self.live(now).chain(&beside), taxonomy, now) {
                Decision::Admit(region) => beside.push(LiveLease {
                    fence: self.last.saturating_add(1).saturating_add(at as u64),
                    holder: Arc::clone(holder),
                    region,
                    expires: Timestamp::from_micros(u64::MAX),
                }),
                refusal => return Err((at, refusal)),
            }
        }
        Ok(beside.into_iter().map(|lease| lease.region).collect())
    }

    /// Grants a lease over an admitted region and returns its fence, above every fence before it. Expired
    /// leases are forgotten here, so that the table grows with what lives.
    pub fn grant(&mut self, region: Region, holder: Arc<Principal>, ttl: Duration, now: Timestamp) -> u64 {
        self.live.retain(|_, lease| lease.is_live(now));
        self.last = self.last.saturating_add(1);
        let lease = LiveLease { fence: self.last, holder, region, expires: now.after(ttl) };
        self.live.insert(self.last, lease);
        self.last
    }

    /// What `fence`, once granted over `region`, is good for in the hands of `holder`.
    pub fn standing(&self, fence: u64, region: &Region, holder: &Arc<Principal>, now: Timestamp) -> Standing {
        match self.live.get(&fence).filter(|lease| lease.is_live(now)) {
            Some(lease) if Arc::ptr_eq(&lease.holder, holder) => Standing::Holds,
            Some(_) => Standing::NotYours,
            None => {
                let later = region.in_the_way(self.live(now).filter(|lease| lease.fence > fence));
                if later.is_empty() { Standing::Gone } else { Standing::Stale(later) }
            }
        }
    }

    /// [`LeaseTable::standing`], for writing at `path`.
    pub fn check(
        &self,
        fence: u64,
        region: &Region,
        holder: &Arc<Principal>,
        path: &str,
        now: Timestamp,
    ) -> Standing {
        let path = match LanePath::parse(path) {
            Ok(path) => path,
            Err(fault) => return Standing::Malformed(fault),
        };
        match self.standing(fence, region, holder, now) {
            Standing::Holds if !region.tree.covers(&path) => Standing::Outside,
            standing => standing,
        }
    }

    /// Lets a lease that lives run `ttl` from `now`; its fence stays. False if it does not live.
    pub fn renew(&mut self, fence: u64, ttl: Duration, now: Timestamp) -> bool {
        match self.live.get_mut(&fence).filter(|lease| lease.is_live(now)) {
            Some(lease) => {
                lease.expires = now.after(ttl);
                true
            }
            None => false,
        }
    }

    /// Ends a lease. False if there was none.
    pub fn release(&mut self, fence: u64) -> bool {
        self.live.remove(&fence).is_some()
    }

    /// Ends every lease of `holder`, as when it is detached.
    pub fn release_all(&mut self, holder: &Arc<Principal>) {
        self.live.retain(|_, lease| !Arc::ptr_eq(&lease.holder, holder));
    }
}

#[cfg(test)]
mod tests {
    use fak_abi::{CapSet, Id, KernelSeal, PrincipalSpec};

    use super::*;

    const TABLE: &str = "[lanes]\nconcurrent = [\"docs\", \"src\"]\n[lanes.trees]\ndocs = [\"docs/**\"]\nsrc = [\"src/**\"]\n";

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_micros(ms * 1_000)
    }

    fn who(id: &str) -> Arc<Principal> {
        KernelSeal::new().principal(PrincipalSpec::agent(Id::new(id).unwrap()), 1, CapSet::NONE)
    }

    fn ask(table: &LeaseTable, lanes: &[&str], now: u64) -> Result<Vec<Region>, (usize, Decision)> {
        let requests: Vec<_> = lanes.iter().map(|lane| LaneRequest::Lane(lane)).collect();
        table.decide_all(&requests, &who("me"), &TABLE.parse().unwrap(), at(now))
    }

    fn grant(table: &mut LeaseTable, lane: &str, who: &Arc<Principal>, ttl: u64, now: u64) -> (u64, Region) {
        let region = ask(table, &[lane], now).unwrap().remove(0);
        (table.grant(region.clone(), Arc::clone(who), Duration::from_millis(ttl), at(now)), region)
    }

    #[test]
    fn an_expired_token_is_stale_once_another_holds_a_higher_fence() {
        let (mut table, a, b) = (LeaseTable::default(), who("a"), who("b"));
        let (first, region) = grant(&mut table, "docs", &a, 3_000, 0);
        let (second, _) = grant(&mut table, "docs", &b, 3_000, 600_000);
        assert!(second > first);
        let Standing::Stale(found) = table.check(first, &region, &a, "docs/x", at(600_000)) else {
            panic!("not stale")
        };
        assert_eq!(found.iter().map(|c| c.lease.fence).collect::<Vec<_>>(), [second]);
        assert!(matches!(table.check(second, &region, &b, "docs/x", at(600_000)), Standing::Holds));
    }

    #[test]
    fn fences_rise_by_one_within_one_tick_and_refusals_take_none() {
        let (mut table, a) = (LeaseTable::default(), who("a"));
        assert_eq!(grant(&mut table, "docs", &a, 10, 5).0, 1);
        assert!(ask(&table, &["docs"], 5).is_err());
        assert_eq!(grant(&mut table, "src", &a, 10, 5).0, 2);
    }

    #[test]
    fn a_token_is_good_for_its_holder_its_paths_and_its_time() {
        let (mut table, a, b) = (LeaseTable::default(), who("a"), who("b"));
        let (fence, region) = grant(&mut table, "docs", &a, 10, 0);
        let check = |table: &LeaseTable, who, path, now| table.check(fence, &region, who, path, at(now));
        assert!(matches!(check(&table, &a, "docs/x", 9), Standing::Holds));
        assert!(matches!(check(&table, &a, "src/x", 9), Standing::Outside));
        assert!(matches!(check(&table, &a, "docs/../src", 9), Standing::Malformed(PathFault::Parent)));
        assert!(matches!(check(&table, &b, "docs/x", 9), Standing::NotYours));
        assert!(matches!(check(&table, &a, "docs/x", 10), Standing::Gone));
        let ttl = Duration::from_millis(10);
        assert!(!table.renew(fence, ttl, at(10)), "an expired lease is not revived");
        let (fence, _) = grant(&mut table, "docs", &a, 10, 10);
        assert!(table.renew(fence, ttl, at(19)));
        assert!(table.renew(fence, ttl, at(28)));
        assert!(table.release(fence) && !table.release(fence));
    }

    #[test]
    fn several_are_leased_all_or_none_and_conflict_with_each_other() {
        let mut table = LeaseTable::default();
        let _ = grant(&mut table, "src", &who("other"), 10, 0);
        assert!(matches!(ask(&table, &["docs", "src"], 0), Err((1, Decision::Held(_)))));
        assert!(matches!(ask(&table, &["docs", "docs"], 0), Err((1, Decision::Held(_)))));
        assert_eq!(table.live(at(0)).count(), 1);
        assert_eq!(ask(&table, &["docs", "src"], 10).unwrap().len(), 2);
    }

    #[test]
    fn the_table_forgets_what_expired() {
        let (mut table, a) = (LeaseTable::default(), who("a"));
        for now in 0..1_000 {
            let _ = grant(&mut table, "docs", &a, 1, now);
        }
        assert_eq!(table.live.len(), 1);
        assert_eq!(table.held_by(&a, at(999)), 1);
        table.release_all(&a);
        assert_eq!(table.held_by(&a, at(999)), 0);
    }
}
