//! The capability rung of leases, and the sites of everything the arbiter refuses.

use fak_abi::{
    Address, Adjudicator, Capability, Desk, Opinion, Reason, RungName, SiteInfo, ToolCall, ToolScope,
};

const FLOOR: RungName = "lanes/floor";

macro_rules! sites {
    ($($name:ident = $check:literal, $clause:literal, $refuses:literal, $next:literal;)+) => {
        $(pub(super) const $name: &SiteInfo = &SiteInfo { check: $check, clause: $clause, refuses: $refuses, next: $next };)+
        /// What the arbiter checks, for explain.
        pub const LANE_SITES: &[SiteInfo] = &[$(*$name),+];
    };
}

sites! {
    CAPABILITY = "lanes/capability", "§2.8", "an act on leases without the capability",
        "have the host grant lane.lease";
    NAME = "lanes/name", "§6.7", "leasing something whose name is none", "name a lane of the taxonomy";
    PATH = "lanes/path", "§6.7", "a path or glob that could leave the workspace",
        "give paths relative to the workspace, with single slashes and without `.`, `..` or backslashes";
    TTL = "lanes/ttl", "§6.7", "a lease that would be expired when it is granted", "ask for a time to live above zero";
    UNKNOWN = "lanes/unknown", "§6.7", "leasing a lane that is not in the taxonomy", "check the name of the lane";
    HELD = "lanes/held", "§6.7", "leasing beside a live lease that conflicts",
        "wait for the leases in the way, or ask for a region apart from theirs";
    LIMIT = "lanes/limit", "§4.12", "more leases of one principal than its share", "release a lease first";
    HOLDER = "lanes/holder", "§6.7", "using another's lease, or one of another arbiter", "take a lease of your own";
    STALE = "lanes/stale", "§6.7", "a token whose region a later lease has taken",
        "stop writing; take a new lease when the one in the way is gone";
    GONE = "lanes/gone", "§6.7", "a token whose lease has expired or was released", "take a new lease";
    OUTSIDE = "lanes/outside", "§6.7", "writing outside what the lease is over", "write within the lease, or take another";
}

/// The rung.
pub(super) struct LaneFloor;

impl Adjudicator for LaneFloor {
    fn name(&self) -> RungName {
        FLOOR
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([Capability::LaneLease.name()])
    }

    fn is_standing(&self) -> bool {
        true
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        if call.target() == Address::Malformed {
            return Opinion::deny(Reason::Malformed, NAME.site());
        }
        if !call.caps().holds(Capability::LaneLease) {
            return Opinion::lacking(Capability::LaneLease, CAPABILITY.site());
        }
        Opinion::Allow
    }

    fn sites(&self) -> &'static [SiteInfo] {
        LANE_SITES
    }
}
