//! The arbiter: a layer of one kernel that admits or refuses leases and never blocks (§6.7).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use fak_abi::{
    Act, Address, Adjudicator, Admission, AgentHandle, CapSet, Capability, Charge, Cleared, Driver,
    DriverLink, Explanation, Id, IdError, InstallError, Principal, Reason, Refusal, RungName, SiteInfo,
    Timestamp, ToolCall, Verdict,
};

use super::floor::{self, LaneFloor};
use super::{Lease, LeaseRefusal, Leased};
use crate::lanes::{Decision, InTheWay, LaneRequest, LeaseTable, LiveLease, Region, Standing, Taxonomy};
use crate::split::Part;
use crate::tie::Tie;

const NAME: RungName = "lanes/arbiter";

/// Most leases one principal may hold at once, unless the host says otherwise (§4.12).
const MAX_LEASES: usize = 256;

/// Grants leases over the lanes of one workspace, under one fence counter (§6.7). A driver: it belongs to the
/// kernel it is built into.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use fak_abi::{CapSet, Id, PrincipalSpec, Reason};
/// use fak_adjudicate::{Kernel, ManualClock};
/// use fak_comm::{LaneArbiter, LaneRequest};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lanes = "[lanes]\nconcurrent = [\"docs\"]\n[lanes.trees]\ndocs = [\"docs/**\"]\n";
/// let arbiter = Arc::new(LaneArbiter::new(lanes.parse()?));
/// let time = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse()?));
/// let kernel = Kernel::builder().driver(arbiter.clone()).time(time.clone()).build()?;
/// let attach = |id| -> Result<_, Box<dyn std::error::Error>> {
///     Ok(kernel.attach(PrincipalSpec::agent(Id::new(id)?).caps(CapSet::ALL))?)
/// };
/// let (ann, bob) = (attach("ann")?, attach("bob")?);
///
/// let (lane, ttl) = (LaneRequest::Lane("docs"), Duration::from_secs(3));
/// let first = arbiter.lease(&ann, lane, ttl).ok()?;
/// assert_eq!(arbiter.lease(&bob, lane, ttl).verdict().reason(), Some(Reason::LeaseHeld));
///
/// // Past its time the lane is granted again, under a higher fence; the first holder's token is stale.
/// time.advance(ttl);
/// let second = arbiter.lease(&bob, lane, ttl).ok()?;
/// assert!(second.fence() > first.fence());
/// assert_eq!(arbiter.check(&ann, &first, "docs/a.md").verdict().reason(), Some(Reason::LeaseHeld));
/// assert!(arbiter.check(&bob, &second, "docs/a.md").is_allow());
/// # Ok(())
/// # }
/// ```
pub struct LaneArbiter {
    tie: Tie,
    taxonomy: Taxonomy,
    max_leases: usize,
    mark: Arc<()>,
    table: Mutex<LeaseTable>,
}

impl LaneArbiter {
    /// An arbiter over `taxonomy` that has granted nothing, with 256 leases a principal.
    #[must_use]
    pub fn new(taxonomy: Taxonomy) -> Self {
        Self {
            tie: Tie::new(NAME),
            taxonomy,
            max_leases: MAX_LEASES,
            mark: Arc::new(()),
            table: Mutex::new(LeaseTable::default()),
        }
    }

    /// The same with another limit on the leases of one principal.
    #[must_use]
    pub fn max_leases(mut self, leases: usize) -> Self {
        self.max_leases = leases;
        self
    }

    /// The taxonomy.
    #[must_use]
    pub const fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    /// Every live lease, oldest first: the host's to see.
    #[must_use]
    pub fn live(&self) -> Vec<LiveLease> {
        let Some(link) = self.tie.link() else { return Vec::new() };
        self.table.lock().live(link.clock().now()).cloned().collect()
    }

    /// Takes a lease for `ttl` (`lane.lease`).
    pub fn lease(&self, agent: &AgentHandle, request: LaneRequest<'_>, ttl: Duration) -> Leased<Lease> {
        match self.lease_all(agent, &[request], ttl) {
            Leased::Allow { value, by } => match value.into_iter().next() {
                Some(value) => Leased::Allow { value, by },
                None => Leased::Refuse(self.deny(Reason::Misroute, floor::UNKNOWN).into()),
            },
            Leased::Refuse(refusal) => Leased::Refuse(refusal),
        }
    }

    /// Takes a lease for each part of a split over the lane of its colour, all or none (§6.6).
    pub fn lease_split(&self, agent: &AgentHandle, parts: &[Part], ttl: Duration) -> Leased<Vec<Lease>> {
        let requests: Vec<_> = parts.iter().map(|part| LaneRequest::Lane(&part.colour)).collect();
        self.lease_all(agent, &requests, ttl)
    }

    /// Takes a lease for each request, all or none; requests conflict with each other as leases do. Each is an act
    /// (`lane.lease`) of its own, and fences rise in their order.
    pub fn lease_all(
        &self,
        agent: &AgentHandle,
        requests: &[LaneRequest<'_>],
        ttl: Duration,
    ) -> Leased<Vec<Lease>> {
        let lanes: Vec<Option<Result<Id, _>>> = requests.iter().map(lane_of).collect();
        let calls: Vec<ToolCall<'_>> =
            lanes.iter().map(|lane| call(agent, Act::Lease, lane.as_ref())).collect();
        let mut cleared: Vec<Cleared<'_>> = Vec::with_capacity(calls.len());
        for (at, call) in calls.iter().enumerate() {
            match self.clear(agent, call) {
                Ok(one) => cleared.push(one),
                Err(mut refusal) => {
                    refusal.at = Some(at);
                    let whole = refusal.verdict.refusal().copied();
                    whole.into_iter().for_each(|whole| self.refuse_rest(std::mem::take(&mut cleared), whole));
                    return Leased::Refuse(refusal);
                }
            }
        }
        let Some(link) = self.tie.link() else {
            return Leased::Allow { value: Vec::new(), by: NAME };
        };
        let now = link.clock().now();
        let holder = agent.principal();
        let granted = {
            let mut table = self.table.lock();
            self.decide(&table, requests, holder, ttl, now).map(|regions| {
                let grant = |region: Region| Lease {
                    fence: table.grant(region.clone(), Arc::clone(holder), ttl, now),
                    region,
                    holder: Arc::clone(holder),
                    expires: now.after(ttl),
                    mark: Arc::clone(&self.mark),
                };
                regions.into_iter().map(grant).collect::<Vec<_>>()
            })
        };
        // A detach that came between the chain and the grant has freed what there was before it.
        if !holder.is_attached() {
            self.table.lock().release_all(holder);
        }
        match granted {
            Ok(value) => {
                // Every act is settled, not the last alone: each has its entry in the audit (§3.6).
                let mut by = NAME;
                for one in cleared {
                    by = one.allow(link.sequence().next()).by();
                }
                Leased::Allow { value, by }
            }
            Err(Refused { at, site, refusal, found }) => {
                self.refuse_rest(cleared, refusal);
                let verdict = Verdict::deny(refusal, NAME);
                let conflicts = found.iter().map(|conflict| conflict.shown_to(holder)).collect();
                let nearest = (site == floor::UNKNOWN).then(|| self.nearest(requests.get(at))).flatten();
                Leased::Refuse(LeaseRefusal { verdict, conflicts, at: Some(at), nearest })
            }
        }
    }

    /// Lets a lease run `ttl` from now (`lane.renew`); its fence stays. Yields the token with the new expiry.
    pub fn renew(&self, agent: &AgentHandle, lease: &Lease, ttl: Duration) -> Leased<Lease> {
        self.act(agent, Act::Renew, lease, |table, now| {
            if ttl.is_zero() {
                return Err((Refusal::new(Reason::Malformed, floor::TTL.site()), Vec::new()));
            }
            stands(table.standing(lease.fence, &lease.region, &lease.holder, now), now)?;
            table.renew(lease.fence, ttl, now);
            Ok(Lease { expires: now.after(ttl), ..lease.clone() })
        })
    }

    /// Gives a lease back (`lane.release`).
    pub fn release(&self, agent: &AgentHandle, lease: &Lease) -> Leased<()> {
        self.act(agent, Act::Release, lease, |table, now| {
            stands(table.standing(lease.fence, &lease.region, &lease.holder, now), now)?;
            table.release(lease.fence);
            Ok(())
        })
    }

    /// Whether the holder may write at `path` under this token now (`lane.check`).
    pub fn check(&self, agent: &AgentHandle, lease: &Lease, path: &str) -> Leased<()> {
        self.act(agent, Act::Check, lease, |table, now| {
            stands(table.check(lease.fence, &lease.region, &lease.holder, path, now), now)
        })
    }

    /// Why a request would be answered as it would be, with the leases in the way by name (§3.5). No side effects.
    #[must_use]
    pub fn explain(&self, agent: &AgentHandle, request: LaneRequest<'_>, ttl: Duration) -> Explanation {
        let lane = lane_of(&request);
        let explanation = self.tie.explain(agent, &call(agent, Act::Lease, lane.as_ref()));
        let Some(link) = self.tie.link().filter(|_| explanation.verdict.is_allow()) else {
            return explanation;
        };
        let now = link.clock().now();
        let decided = self.decide(&self.table.lock(), &[request], agent.principal(), ttl, now);
        let Err(Refused { site, refusal, found, .. }) = decided else { return explanation };
        let mut next = site.next.to_owned();
        if let Some(name) = (site == floor::UNKNOWN).then(|| self.nearest(Some(&request))).flatten() {
            next.push_str(&format!("; the nearest known is {}", name.quoted()));
        }
        for conflict in found.iter().map(|conflict| conflict.shown_to(agent.principal())) {
            let what =
                conflict.lane.map_or_else(|| "a tree".to_owned(), |lane| format!("lane {}", lane.quoted()));
            let who = conflict.holder.map_or_else(|| "somebody".to_owned(), |id| id.quoted().to_string());
            next.push_str(&format!("; {who} holds {what} under fence {}", conflict.fence));
        }
        explanation.decided(Verdict::deny(refusal, NAME), Some(*site), next)
    }

    /// The known lane nearest to the one a request names.
    fn nearest(&self, request: Option<&LaneRequest<'_>>) -> Option<Id> {
        let Some(LaneRequest::Lane(name)) = request else { return None };
        self.taxonomy.nearest(name).cloned()
    }

    fn deny(&self, reason: Reason, site: &'static SiteInfo) -> Verdict {
        Verdict::deny(Refusal::new(reason, site.site()), NAME)
    }

    /// The kernel's chain and its counting: what is left may happen.
    fn clear<'a>(&self, agent: &'a AgentHandle, call: &'a ToolCall<'a>) -> Result<Cleared<'a>, LeaseRefusal> {
        let link = self.tie.own(call)?;
        match agent.gate().admit(call, link.key()) {
            Admission::Refuse(verdict) => Err(verdict.into()),
            Admission::Permit(permit) => match permit.charge() {
                Charge::Cleared(cleared) => Ok(cleared),
                Charge::Refuse(verdict) => Err(verdict.into()),
            },
        }
    }

    fn refuse_rest(&self, cleared: Vec<Cleared<'_>>, refusal: Refusal) {
        for one in cleared {
            let _ = one.refuse(refusal, NAME);
        }
    }

    fn decide(
        &self,
        table: &LeaseTable,
        requests: &[LaneRequest<'_>],
        holder: &Arc<Principal>,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Vec<Region>, Refused> {
        let refuse = |at, reason, site: &'static SiteInfo| Refused {
            at,
            site,
            refusal: Refusal::new(reason, site.site()),
            found: Vec::new(),
        };
        if ttl.is_zero() {
            return Err(refuse(0, Reason::Malformed, floor::TTL));
        }
        let regions =
            table.decide_all(requests, holder, &self.taxonomy, now).map_err(
                |(at, decision)| match decision {
                    Decision::Malformed { .. } => refuse(at, Reason::Malformed, floor::PATH),
                    Decision::Held(found) => {
                        Refused { at, site: floor::HELD, refusal: held(floor::HELD, &found, now), found }
                    }
                    Decision::Admit(_) | Decision::UnknownLane => {
                        refuse(at, Reason::Misroute, floor::UNKNOWN)
                    }
                },
            )?;
        if table.held_by(holder, now).saturating_add(regions.len()) > self.max_leases {
            return Err(refuse(regions.len().saturating_sub(1), Reason::RateLimited, floor::LIMIT));
        }
        Ok(regions)
    }

    /// An act on a token: the kernel's chain, then `step` under the table's lock.
    fn act<T>(
        &self,
        agent: &AgentHandle,
        act: Act,
        lease: &Lease,
        step: impl FnOnce(&mut LeaseTable, Timestamp) -> Result<T, (Refusal, Vec<InTheWay>)>,
    ) -> Leased<T> {
        let address = lease.lane().map_or(Address::None, Address::Lane);
        let call = ToolCall::new(agent, act).address(address);
        let cleared = match self.clear(agent, &call) {
            Ok(cleared) => cleared,
            Err(refusal) => return Leased::Refuse(refusal),
        };
        let Some(link) = self.tie.link() else {
            return Leased::Refuse(self.deny(Reason::TrustViolation, floor::HOLDER).into());
        };
        let now = link.clock().now();
        let theirs = Arc::ptr_eq(&lease.mark, &self.mark) && Arc::ptr_eq(&lease.holder, agent.principal());
        let stepped = if theirs {
            step(&mut self.table.lock(), now)
        } else {
            Err((Refusal::new(Reason::TrustViolation, floor::HOLDER.site()), Vec::new()))
        };
        match stepped {
            Ok(value) => Leased::Allow { value, by: cleared.allow(link.sequence().next()).by() },
            Err((refusal, found)) => {
                let verdict = cleared.refuse(refusal, NAME);
                let conflicts = found.iter().map(|conflict| conflict.shown_to(agent.principal())).collect();
                Leased::Refuse(LeaseRefusal { conflicts, ..verdict.into() })
            }
        }
    }
}

/// Which request was refused, where, why, and what was in the way.
struct Refused {
    at: usize,
    site: &'static SiteInfo,
    refusal: Refusal,
    found: Vec<InTheWay>,
}

/// The id of the lane a request names; `None` for one over globs.
fn lane_of(request: &LaneRequest<'_>) -> Option<Result<Id, IdError>> {
    match request {
        LaneRequest::Lane(name) => Some(Id::new(name)),
        LaneRequest::Tree(_) => None,
    }
}

fn call<'a>(agent: &'a AgentHandle, act: Act, lane: Option<&'a Result<Id, IdError>>) -> ToolCall<'a> {
    ToolCall::new(agent, act).address(match lane {
        None => Address::None,
        Some(Ok(lane)) => Address::Lane(lane),
        Some(Err(_)) => Address::Malformed,
    })
}

/// LEASE_HELD, with the time until the last lease in the way expires.
fn held(site: &'static SiteInfo, found: &[InTheWay], now: Timestamp) -> Refusal {
    let refusal = Refusal::new(Reason::LeaseHeld, site.site());
    let Some(last) = found.iter().map(|conflict| conflict.lease.expires).max() else { return refusal };
    let ms = now.until(last).as_micros().div_ceil(1_000);
    refusal.retry_after(u32::try_from(ms).unwrap_or(u32::MAX))
}

/// What a token's standing refuses, if anything.
fn stands(standing: Standing, now: Timestamp) -> Result<(), (Refusal, Vec<InTheWay>)> {
    let (reason, site) = match standing {
        Standing::Holds => return Ok(()),
        Standing::Stale(found) => return Err((held(floor::STALE, &found, now), found)),
        Standing::NotYours => (Reason::TrustViolation, floor::HOLDER),
        Standing::Gone => (Reason::Misroute, floor::GONE),
        Standing::Malformed(_) => (Reason::Malformed, floor::PATH),
        Standing::Outside => (Reason::TrustViolation, floor::OUTSIDE),
    };
    Err((Refusal::new(reason, site.site()), Vec::new()))
}

impl Driver for LaneArbiter {
    fn name(&self) -> RungName {
        NAME
    }

    fn capabilities(&self) -> CapSet {
        CapSet::of(&[Capability::LaneLease])
    }

    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        vec![Arc::new(LaneFloor)]
    }

    fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.tie.install(link)
    }

    /// Frees its leases (§2.3).
    fn detached(&self, principal: &Arc<Principal>) {
        self.table.lock().release_all(principal);
    }
}
