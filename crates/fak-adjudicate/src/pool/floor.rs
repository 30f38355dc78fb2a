//! The floor of the pool: its capability rung, and what may be put at all (§2.8, §3.9).

use fak_abi::{
    Act, Adjudicator, Desk, Opinion, Reason, Ref, Refusal, RungName, SiteInfo, Taint, ToolCall, ToolScope,
};

use super::store::ENTRY;

/// The name that the pool's verdicts carry.
pub const POOL: RungName = "pool";

macro_rules! sites {
    ($($name:ident = $check:literal, $clause:literal, $refuses:literal, $next:literal;)+) => {
        $(pub(super) const $name: &SiteInfo = &SiteInfo { check: $check, clause: $clause, refuses: $refuses, next: $next };)+
        /// The checks of the pool, for explain.
        pub const POOL_SITES: &[SiteInfo] = &[$(*$name),+];
    };
}

sites! {
    CAPABILITY = "pool/capability", "§2.8", "an act on the pool without its capability",
        "have the host grant pool.write to put, pool.read to get";
    NOTHING = "pool/nothing", "§3.9", "putting nothing",
        "name the value to be kept";
    FLOW = "pool/flow", "§2.4", "putting a value that may not flow to the one who puts it, or another's quarantined value",
        "ask its owner to widen the scope to a fleet or tenant that you share, or to put it";
    SIZE = "pool/size", "§3.9", "putting a value that is larger than the pool, or than one principal's share of it",
        "keep it elsewhere, or have the host make the pool larger";
    FULL = "pool/full", "§3.9", "putting a value when all that could make room for it is pinned",
        "drop Refs to pooled values that are no longer needed, then try again";
    UNKNOWN = "pool/unknown", "§3.9", "getting a digest that nothing is kept under",
        "have its owner put it; a value that nobody points to is dropped when room is needed";
    CLOSED = "pool/closed", "§2.4", "getting a value none of whose owners lets it flow to the reader",
        "ask an owner to widen it to a fleet or tenant that you share, and to put it again";
    UNBUILT = "pool/unbuilt", "§3.1", "an act on a pool whose kernel is gone, or that was built into none",
        "build the pool into the kernel the agent is attached to";
}

pub(super) fn flow() -> Refusal {
    Refusal::new(Reason::TrustViolation, FLOW.site())
}

/// The rung.
#[derive(Debug)]
pub(super) struct PoolFloor {
    bytes: usize,
}

impl PoolFloor {
    pub(super) const fn new(bytes: usize) -> Self {
        Self { bytes }
    }

    fn put(&self, call: &ToolCall<'_>) -> Option<Refusal> {
        let Some(body) = call.body() else {
            return Some(Refusal::new(Reason::Malformed, NOTHING.site()));
        };
        if !may_put(call, body) {
            return Some(flow());
        }
        let fits = body.len().saturating_add(2 * ENTRY) <= self.bytes;
        (!fits).then(|| Refusal::new(Reason::Oversize, SIZE.site()))
    }
}

/// One's own, whatever its taint, or what may flow to one: another's value cannot be put as
/// quarantined, which would poison its owner's entry.
fn may_put(call: &ToolCall<'_>, body: &Ref) -> bool {
    let me = call.principal();
    body.would_flow_to(me) && (body.taint() != Taint::Quarantined || body.is_owned_by(me))
}

impl Adjudicator for PoolFloor {
    fn name(&self) -> RungName {
        POOL
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([Act::PoolPut.tool(), Act::PoolGet.tool()])
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let Some(act) = call.tool().act() else { return Opinion::Defer };
        if !call.caps().holds(act.capability()) {
            return Opinion::lacking(act.capability(), CAPABILITY.site());
        }
        let refusal = if act == Act::PoolPut { self.put(call) } else { None };
        refusal.map_or(Opinion::Allow, Opinion::Deny)
    }

    fn sites(&self) -> &'static [SiteInfo] {
        POOL_SITES
    }
}
