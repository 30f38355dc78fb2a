//! The rate rung (§3.8): token buckets per principal and per principal and address.
//! Buckets that do not refill are in `budget`.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::time::Duration;

use fak_abi::{
    Address, Adjudicator, Desk, Id, Opinion, OwnedAddress, Reason, Refusal, RungName, SiteInfo, Timestamp,
    ToolCall, ToolScope,
};
use parking_lot::Mutex;

/// The name that the rate rung's verdicts carry.
pub const RATE: RungName = "rate";

const PRINCIPAL: &SiteInfo = &SiteInfo {
    check: "rate/principal",
    clause: "§3.8",
    refuses: "an act of a principal whose bucket is empty",
    next: "wait as long as retry-after says; then the same act has a token",
};
const ADDRESS: &SiteInfo = &SiteInfo {
    check: "rate/address",
    clause: "§3.8",
    refuses: "an act of a principal whose bucket for this address is empty",
    next: "wait as long as retry-after says, or address something else",
};
const NUMBER: &SiteInfo = &SiteInfo {
    check: "rate/number",
    clause: "§3.8",
    refuses: "an act at a new address of a principal that has as many buckets in use as it may",
    next: "wait as long as retry-after says; a bucket that has filled up makes room",
};

/// The checks of the rate rung, for explain.
pub const RATE_SITES: &[SiteInfo] = &[*PRINCIPAL, *ADDRESS, *NUMBER];

/// A token bucket: `burst` acts at once, then one for every `per` (§3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Tokens of a full bucket.
    pub burst: NonZeroU32,
    /// The time in which one token comes back, counted in microseconds and at least one.
    pub per: Duration,
}

impl RateLimit {
    fn micros(self) -> u64 {
        u64::try_from(self.per.as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

/// What a [`RateRung`] limits (§3.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateOptions {
    /// The acts it counts; default all.
    pub tools: ToolScope,
    /// For all acts of one principal; default no limit.
    pub principal: Option<RateLimit>,
    /// For the acts of one principal at one address; default no limit.
    pub address: Option<RateLimit>,
    /// How many addresses of one principal have a bucket that is not full; default 1,024. Beyond,
    /// its acts at further addresses are refused, and nobody else's.
    pub addresses: usize,
    /// How many principals have one; default 65,536.
    pub principals: usize,
}

impl Default for RateOptions {
    fn default() -> Self {
        Self { tools: ToolScope::Every, principal: None, address: None, addresses: 1024, principals: 65_536 }
    }
}

/// When a bucket will be full again, in microseconds since the epoch: all there is to know about
/// it, and a full bucket need not be kept.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket(u64);

impl Bucket {
    /// How long until there is a token, in microseconds; 0 if there is one.
    fn wait(self, limit: RateLimit, now: u64) -> u64 {
        let spare = limit.micros().saturating_mul(u64::from(limit.burst.get()) - 1);
        self.0.saturating_sub(now).saturating_sub(spare)
    }

    fn take(&mut self, limit: RateLimit, now: u64) {
        self.0 = self.0.max(now).saturating_add(limit.micros());
    }

    fn give_back(&mut self, limit: RateLimit) {
        self.0 = self.0.saturating_sub(limit.micros());
    }
}

/// The buckets of one principal.
#[derive(Debug, Default)]
struct Meter {
    own: Bucket,
    addresses: HashMap<OwnedAddress, Bucket>,
    /// Before this no bucket of `addresses` fills up, so looking for one is in vain.
    sweep_at: u64,
}

impl Meter {
    fn full_at(&self) -> u64 {
        self.addresses.values().map(|bucket| bucket.0).fold(self.own.0, u64::max)
    }

    /// Drops full buckets if there is no room for another; answers how long until there is.
    fn make_room(&mut self, limit: usize, now: u64) -> u64 {
        if self.addresses.len() >= limit && now >= self.sweep_at {
            self.addresses.retain(|_, bucket| bucket.0 > now);
            self.sweep_at = self.addresses.values().map(|bucket| bucket.0).min().unwrap_or_default();
        }
        if self.addresses.len() >= limit { self.sweep_at.saturating_sub(now).max(1) } else { 0 }
    }
}

const SHARDS: usize = 16;

#[derive(Debug, Default)]
struct Shard {
    meters: HashMap<Id, Meter>,
    sweep_at: u64,
}

/// Refuses what comes too fast: RATE_LIMITED with a retry-after after which the act has a token,
/// unless another act of the same principal takes it (§3.8).
///
/// `judge` reads, `commit` takes the tokens, `revert` gives them back. All buckets of a principal
/// are behind one lock, so that two acts at once cannot share the last token, and an act takes all
/// its tokens or none. A principal is known by its id: attaching it again fills no bucket.
///
/// ```
/// use std::{num::NonZeroU32, sync::Arc, time::Duration};
/// use fak_abi::{Capability::RefWiden, Id, PrincipalSpec, Reason, ShareScope};
/// use fak_adjudicate::{Kernel, ManualClock, Rank, RateLimit, RateOptions, RateRung};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limit = RateLimit { burst: NonZeroU32::MIN, per: Duration::from_secs(10) };
/// let rate = RateRung::new(RateOptions { principal: Some(limit), ..RateOptions::default() });
/// let time = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse()?));
/// let kernel = Kernel::builder().rung(Rank(20), Arc::new(rate)).time(time.clone()).build()?;
/// let spec = PrincipalSpec::agent(Id::new("alpha")?).fleet(Id::new("crew")?);
/// let alpha = kernel.attach(spec.caps([RefWiden]))?;
///
/// assert!(alpha.widen(&alpha.mint("one"), ShareScope::Fleet).is_allow());
/// let refused = alpha.widen(&alpha.mint("two"), ShareScope::Fleet).verdict();
/// assert_eq!(refused.reason(), Some(Reason::RateLimited));
/// // The refusal knows when there will be a token.
/// assert_eq!(refused.refusal().and_then(|refusal| refusal.retry_after_ms).map(u32::from), Some(10_000));
/// time.advance(Duration::from_secs(10));
/// assert!(alpha.widen(&alpha.mint("two"), ShareScope::Fleet).is_allow());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RateRung {
    options: RateOptions,
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
}

impl RateRung {
    /// A rung with all buckets full.
    #[must_use]
    pub fn new(options: RateOptions) -> Self {
        Self { options, shards: Default::default(), hasher: RandomState::new() }
    }

    /// How many buckets are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        let buckets = |shard: &Mutex<Shard>| -> usize {
            shard.lock().meters.values().map(|meter| 1 + meter.addresses.len()).sum()
        };
        self.shards.iter().map(buckets).sum()
    }

    /// True if no bucket is kept: nobody has acted, or all have filled up and were dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, id: &Id) -> Option<&Mutex<Shard>> {
        self.shards.get(self.hasher.hash_one(id) as usize % SHARDS)
    }

    /// The address that has a bucket of its own, if it has.
    fn addressed(&self, call: &ToolCall<'_>) -> Option<(RateLimit, OwnedAddress)> {
        match (self.options.address, call.target()) {
            (None, _) | (_, Address::None | Address::Malformed) => None,
            // The rank within a group is part of the act, not of the place.
            (Some(limit), Address::Group(id, _)) => Some((limit, OwnedAddress::Group(id.clone(), 0))),
            (Some(limit), address) => Some((limit, address.to_owned())),
        }
    }

    /// The refusal by the buckets as they stand.
    fn check(&self, meter: &Meter, at: Option<&(RateLimit, OwnedAddress)>, now: u64) -> Option<Refusal> {
        let own = self.options.principal.map_or(0, |limit| meter.own.wait(limit, now));
        let there = at.map_or(0, |(limit, address)| {
            meter.addresses.get(address).copied().unwrap_or_default().wait(*limit, now)
        });
        // The longer wait is the true one.
        match (own, there) {
            (0, 0) => None,
            _ if own >= there => Some(wait(PRINCIPAL, own)),
            _ => Some(wait(ADDRESS, there)),
        }
    }

    /// Takes one token of every bucket concerned, or none.
    fn take(&self, call: &ToolCall<'_>, now: u64) -> Option<Refusal> {
        let id = call.principal().id();
        let at = self.addressed(call);
        let mut shard = self.shard(id)?.lock();
        if !shard.meters.contains_key(id) {
            let bound = self.options.principals.div_ceil(SHARDS).max(1);
            if let Some(refusal) = shard.make_room(bound, now) {
                return Some(refusal);
            }
        }
        let meter = shard.meters.entry(id.clone()).or_default();
        if let Some(refusal) = self.check(meter, at.as_ref(), now) {
            return Some(refusal);
        }
        if let Some((limit, address)) = at {
            if !meter.addresses.contains_key(&address) {
                let room = meter.make_room(self.options.addresses.max(1), now);
                if room > 0 {
                    return Some(wait(NUMBER, room));
                }
            }
            meter.addresses.entry(address).or_default().take(limit, now);
        }
        if let Some(limit) = self.options.principal {
            meter.own.take(limit, now);
        }
        None
    }
}

impl Shard {
    /// Drops meters all of whose buckets are full, if there is no room for another.
    fn make_room(&mut self, bound: usize, now: u64) -> Option<Refusal> {
        if self.meters.len() >= bound && now >= self.sweep_at {
            self.meters.retain(|_, meter| meter.full_at() > now);
            self.sweep_at = self.meters.values().map(Meter::full_at).min().unwrap_or_default();
        }
        let full = self.meters.len() >= bound;
        full.then(|| wait(NUMBER, self.sweep_at.saturating_sub(now).max(1)))
    }
}

/// Refused at a site for so many microseconds, rounded up to whole milliseconds.
fn wait(site: &'static SiteInfo, micros: u64) -> Refusal {
    let ms = u32::try_from(micros.div_ceil(1000)).unwrap_or(u32::MAX);
    Refusal::new(Reason::RateLimited, site.site()).retry_after(ms)
}

fn micros(now: Timestamp) -> u64 {
    now.as_micros()
}

impl Adjudicator for RateRung {
    fn name(&self) -> RungName {
        RATE
    }

    fn tools(&self) -> ToolScope {
        self.options.tools.clone()
    }

    fn counts(&self) -> bool {
        true
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        let id = call.principal().id();
        let Some(shard) = self.shard(id) else { return Opinion::Defer };
        let at = self.addressed(call);
        let shard = shard.lock();
        // Who has no meter has all buckets full.
        let refusal =
            shard.meters.get(id).and_then(|meter| self.check(meter, at.as_ref(), micros(desk.clock.now())));
        refusal.map_or(Opinion::Defer, Opinion::Deny)
    }

    fn commit(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        self.take(call, micros(desk.clock.now())).map_or(Opinion::Defer, Opinion::Deny)
    }

    fn revert(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) {
        let id = call.principal().id();
        let Some(shard) = self.shard(id) else { return };
        let at = self.addressed(call);
        let mut shard = shard.lock();
        let Some(meter) = shard.meters.get_mut(id) else { return };
        if let Some(limit) = self.options.principal {
            meter.own.give_back(limit);
        }
        if let Some((limit, address)) = at
            && let Some(bucket) = meter.addresses.get_mut(&address)
        {
            bucket.give_back(limit);
        }
    }

    fn sites(&self) -> &'static [SiteInfo] {
        RATE_SITES
    }
}
