//! The floor of the collectives: the capability rung, and who may be handed what (§2.8, §6.3, §6.4). It sees each
//! rank's call by itself; that a refused rank refuses the whole is the collective's doing.

use std::sync::Arc;

use fak_abi::{
    Act, Address, Adjudicator, Capability, Desk, Opinion, Reason, RungName, SiteInfo, Taint, ToolCall,
    ToolScope,
};

use crate::open::{Groups, Seat};

const NAME: RungName = "comm/floor";

macro_rules! sites {
    ($($name:ident = $check:literal, $clause:literal, $refuses:literal, $next:literal;)+) => {
        $(const $name: &SiteInfo = &SiteInfo { check: $check, clause: $clause, refuses: $refuses, next: $next };)+
        const SITES: &[SiteInfo] = &[$(*$name),+, crate::tie::FOREIGN_SITE, crate::comm::ALIVE_SITE];
    };
}

sites! {
    MALFORMED = "comm/malformed", "§6.2", "a collective without a body, or over something that is no group",
        "name a group and give every rank a value";
    CAPABILITY = "comm/capability", "§2.8", "a collective, arrival or departure without the capability",
        "have the host grant comm.collective, or a2a.send for arrivals and departures";
    UNKNOWN = "comm/group", "§6.3", "a collective over a group that is not open, or a rank it does not have",
        "have the host open the group, and act with its communicator";
    SEAT = "comm/seat", "§6.3", "handing over to somebody who is not the member of that rank in an open group",
        "hand over with the communicator of the group, which knows who its members are";
    QUARANTINED = "comm/quarantined", "§6.3", "handing over a quarantined value",
        "hand over another value; this one is held for forensics";
    SENDER = "comm/sender", "§6.3", "handing over a value that may not flow to the one who hands it over",
        "ask its owner to widen the scope to a fleet or tenant that you share";
    ABSENT = "comm/absent", "§6.3", "handing over to a member that is not attached",
        "attach the member, or make a group without it";
    MEMBER = "comm/member", "§6.3", "handing over a value that may not flow to the member",
        "widen the scope to a fleet or tenant that every member shares; a private value reaches its owner alone";
    PART = "comm/part", "§6.4", "gathering a part that may not flow to the gatherer",
        "have the part's owner widen its scope to a fleet or tenant that the gatherer has";
}

/// The rung, and the groups it knows.
pub(crate) struct CommFloor(pub(crate) Arc<Groups>);

impl Adjudicator for CommFloor {
    fn name(&self) -> RungName {
        NAME
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([Capability::CommCollective.name(), Act::Arrive.tool(), Act::Depart.tool()])
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let Some(act) = call.tool().act() else { return Opinion::Defer };
        let Address::Group(group, rank) = call.target() else {
            return Opinion::deny(Reason::Malformed, MALFORMED.site());
        };
        if !call.caps().holds(act.capability()) {
            return Opinion::lacking(act.capability(), CAPABILITY.site());
        }
        let hands = matches!(act, Act::Broadcast | Act::Scatter);
        if hands || matches!(act, Act::Gather | Act::Barrier | Act::Split) {
            let member = call.resolved().filter(|_| hands);
            match self.0.seat(group, rank, member.map(|member| member.id())) {
                Seat::Taken => {}
                Seat::Other if member.is_some() => {
                    return Opinion::deny(Reason::TrustViolation, SEAT.site());
                }
                Seat::Unknown | Seat::Other => return Opinion::deny(Reason::Misroute, UNKNOWN.site()),
            }
        }
        match act {
            Act::Broadcast | Act::Scatter => hand_over(call),
            Act::Gather => match call.body() {
                None => Opinion::deny(Reason::Malformed, MALFORMED.site()),
                Some(part) if !part.may_flow_to(call.principal()) => {
                    Opinion::deny(Reason::TrustViolation, PART.site())
                }
                Some(_) => Opinion::Allow,
            },
            Act::Barrier | Act::Split | Act::Arrive | Act::Depart => Opinion::Allow,
            _ => Opinion::Defer,
        }
    }

    fn sites(&self) -> &'static [SiteInfo] {
        SITES
    }
}

fn hand_over(call: &ToolCall<'_>) -> Opinion {
    let Some(body) = call.body() else { return Opinion::deny(Reason::Malformed, MALFORMED.site()) };
    if body.taint() == Taint::Quarantined {
        return Opinion::deny(Reason::TrustViolation, QUARANTINED.site());
    }
    if !body.may_flow_to(call.principal()) {
        return Opinion::deny(Reason::TrustViolation, SENDER.site());
    }
    match call.resolved().filter(|member| member.is_attached()) {
        None => Opinion::deny(Reason::Misroute, ABSENT.site()),
        Some(member) if !body.may_flow_to(member) => Opinion::deny(Reason::TrustViolation, MEMBER.site()),
        Some(_) => Opinion::Allow,
    }
}
