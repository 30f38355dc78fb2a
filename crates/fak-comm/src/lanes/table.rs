//! The table of live leases: granting, renewing, releasing and checking, under one fence counter. Pure state: time
//! and holder are handed in; verdicts, limits and acts are the arbiter's.

use std::collections::BTreeMap;

use super::decide::{Conflict, Decision, LaneRequest, LiveLease, Region, decide};
use super::path::{LanePath, PathFault};
use super::taxonomy::Taxonomy;
use crate::holder::Holder;
use crate::time::Timestamp;

/// The live leases of one arbiter, by fence (§6.7).
#[derive(Clone, Debug, Default)]
pub struct LeaseTable {
    live: BTreeMap<u64, LiveLease>,
    /// The last fence handed out; the first is 1. A refusal consumes none.
    last: u64,
}

/// What a fence is good for at an instant.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
pub enum Standing {
    /// The lease lives and is the holder's.
    Holds,
    /// It lives and is somebody else's: TRUST_VIOLATION.
    NotYours,
    /// It is gone, and a later lease is over what it was over: LEASE_HELD.
    Stale(Vec<Conflict>),
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
    pub fn held_by(&self, holder: &Holder, now: Timestamp) -> usize {
        self.live(now).filter(|lease| lease.holder == *holder).count()
    }

    /// Decides every request, each beside those before it: all are admitted, or none. The error side is the
    /// first refusal and its place.
    pub fn decide_all(
        &self,
        requests: &[LaneRequest<'_>],
        holder: &Holder,
        taxonomy: &Taxonomy,
        now: Timestamp,
    ) -> Result<Vec<Region>, (usize, Decision)> {
        let mut beside: Vec<LiveLease> = Vec::with_capacity(requests.len());
        for (at, request) in requests.iter().enumerate() {
            match decide(*request, self.live(now).chain(&beside), taxonomy, now) {
                Decision::Admit(region) => beside.push(LiveLease {
                    fence: self.last.saturating_add(1).saturating_add(at as u64),
                    holder: holder.clone(),
                    region,
                    expires: Timestamp::MAX,
                }),
                refusal => return Err((at, refusal)),
            }
        }
        Ok(beside.into_iter().map(|lease| lease.region).collect())
    }

    /// Grants a lease over an admitted region and returns its fence, above every fence before it. Expired
    /// leases are forgotten here, so that the table grows with what lives.
    pub fn grant(&mut self, region: Region, holder: Holder, ttl_ms: u64, now: Timestamp) -> u64 {
        self.live.retain(|_, lease| lease.is_live(now));
        self.last = self.last.saturating_add(1);
        let lease = LiveLease { fence: self.last, holder, region, expires: now.plus_millis(ttl_ms) };
        self.live.insert(self.last, lease);
        self.last
    }

    /// What `fence`, once granted over `region`, is good for in the hands of `holder`.
    pub fn standing(&self, fence: u64, region: &Region, holder: &Holder, now: Timestamp) -> Standing {
        match self.live.get(&fence).filter(|lease| lease.is_live(now)) {
            Some(lease) if lease.holder == *holder => Standing::Holds,
            Some(_) => Standing::NotYours,
            None => {
                let later: Vec<Conflict> = self
                    .live(now)
                    .filter(|lease| lease.fence > fence)
                    .filter_map(|lease| {
                        Some(Conflict {
                            why: region.conflicts(&lease.region)?,
                            fence: lease.fence,
                            holder: lease.holder.clone(),
                            lane: lease.region.lane.clone(),
                        })
                    })
                    .collect();
                if later.is_empty() { Standing::Gone } else { Standing::Stale(later) }
            }
        }
    }

    /// [`LeaseTable::standing`], for writing at `path`.
    pub fn check(
        &self,
        fence: u64,
        region: &Region,
        holder: &Holder,
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

    /// Lets a lease that lives run `ttl_ms` from `now`; its fence stays. False if it does not live.
    pub fn renew(&mut self, fence: u64, ttl_ms: u64, now: Timestamp) -> bool {
        match self.live.get_mut(&fence).filter(|lease| lease.is_live(now)) {
            Some(lease) => {
                lease.expires = now.plus_millis(ttl_ms);
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
    pub fn release_all(&mut self, holder: &Holder) {
        self.live.retain(|_, lease| lease.holder != *holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "[lanes]\nconcurrent = [\"docs\", \"src\"]\n[lanes.trees]\ndocs = [\"docs/**\"]\nsrc = [\"src/**\"]\n";

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn ask(table: &LeaseTable, lanes: &[&str], now: u64) -> Result<Vec<Region>, (usize, Decision)> {
        let requests: Vec<_> = lanes.iter().map(|lane| LaneRequest::Lane(lane)).collect();
        table.decide_all(&requests, &Holder::test("me"), &TABLE.parse().unwrap(), at(now))
    }

    fn grant(table: &mut LeaseTable, lane: &str, who: &str, ttl: u64, now: u64) -> (u64, Region) {
        let region = ask(table, &[lane], now).unwrap().remove(0);
        (table.grant(region.clone(), Holder::test(who), ttl, at(now)), region)
    }

    #[test]
    fn an_expired_token_is_stale_once_another_holds_a_higher_fence() {
        let mut table = LeaseTable::default();
        let (first, region) = grant(&mut table, "docs", "a", 3_000, 0);
        let (second, _) = grant(&mut table, "docs", "b", 3_000, 600_000);
        assert!(second > first);
        let Standing::Stale(conflicts) =
            table.check(first, &region, &Holder::test("a"), "docs/x", at(600_000))
        else {
            panic!("not stale")
        };
        assert_eq!(conflicts.iter().map(|c| c.fence).collect::<Vec<_>>(), [second]);
        assert_eq!(table.check(second, &region, &Holder::test("b"), "docs/x", at(600_000)), Standing::Holds);
    }

    #[test]
    fn fences_rise_by_one_within_one_tick_and_refusals_take_none() {
        let mut table = LeaseTable::default();
        assert_eq!(grant(&mut table, "docs", "a", 10, 5).0, 1);
        assert!(ask(&table, &["docs"], 5).is_err());
        assert_eq!(grant(&mut table, "src", "a", 10, 5).0, 2);
    }

    #[test]
    fn a_token_is_good_for_its_holder_its_paths_and_its_time() {
        let mut table = LeaseTable::default();
        let (fence, region) = grant(&mut table, "docs", "a", 10, 0);
        let check = |table: &LeaseTable, who: &str, path: &str, now| {
            table.check(fence, &region, &Holder::test(who), path, at(now))
        };
        assert_eq!(check(&table, "a", "docs/x", 9), Standing::Holds);
        assert_eq!(check(&table, "a", "src/x", 9), Standing::Outside);
        assert_eq!(check(&table, "a", "docs/../src", 9), Standing::Malformed(PathFault::Parent));
        assert_eq!(check(&table, "b", "docs/x", 9), Standing::NotYours);
        assert_eq!(check(&table, "a", "docs/x", 10), Standing::Gone);
        assert!(!table.renew(fence, 10, at(10)), "an expired lease is not revived");
        let (fence, _) = grant(&mut table, "docs", "a", 10, 10);
        assert!(table.renew(fence, 10, at(19)));
        assert!(table.renew(fence, 10, at(28)));
        assert!(table.release(fence) && !table.release(fence));
    }

    #[test]
    fn several_are_leased_all_or_none_and_conflict_with_each_other() {
        let mut table = LeaseTable::default();
        let _ = grant(&mut table, "src", "other", 10, 0);
        assert!(matches!(ask(&table, &["docs", "src"], 0), Err((1, Decision::Held(_)))));
        assert!(matches!(ask(&table, &["docs", "docs"], 0), Err((1, Decision::Held(_)))));
        assert_eq!(table.live(at(0)).count(), 1);
        assert_eq!(ask(&table, &["docs", "src"], 10).unwrap().len(), 2);
    }

    #[test]
    fn the_table_forgets_what_expired() {
        let mut table = LeaseTable::default();
        for now in 0..1_000 {
            let _ = grant(&mut table, "docs", "a", 1, now);
        }
        assert_eq!(table.live.len(), 1);
        assert_eq!(table.held_by(&Holder::test("a"), at(999)), 1);
        table.release_all(&Holder::test("a"));
        assert_eq!(table.held_by(&Holder::test("a"), at(999)), 0);
    }
}
