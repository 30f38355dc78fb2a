//! The floor rung `a2achan/gate`: rows 1 to 6 of §4.3 for every act of `a2a.send`, and the
//! capability of every act of `a2a.recv`. Rows 8 to 10 need the mailbox and
//! are made after admission, under the same name.

use std::sync::Arc;

use fak_abi::{
    Act, Address, Adjudicator, Capability, Desk, Location, Opinion, Reason, Ref, RungName, ShareScope,
    SiteInfo, Taint, ToolCall, ToolScope,
};

use crate::core::{Core, GATE};
use crate::sites::{self, SITES};

/// See the module.
pub(crate) struct Gate(pub(crate) Arc<Core>);

impl Gate {
    #[inline]
    fn send(&self, call: &ToolCall<'_>, act: Act) -> Opinion {
        if call.target() == Address::Malformed {
            return const { deny(Reason::Malformed, sites::MALFORMED) };
        }
        if !call.caps().holds(Capability::A2aSend) {
            return const { Opinion::lacking(Capability::A2aSend, sites::NO_SEND.site()) };
        }
        match call.body() {
            Some(body) => self.body(call, act, body),
            None => Opinion::Allow,
        }
    }

    #[inline]
    fn body(&self, call: &ToolCall<'_>, act: Act, body: &Ref) -> Opinion {
        if body.taint() == Taint::Quarantined {
            return const { deny(Reason::TrustViolation, sites::QUARANTINED) };
        }
        // One's own always does: no act widens it beyond one's own fleet and tenant (§2.4).
        if !body.is_owned_by(call.principal()) && !body.may_flow_to(call.principal()) {
            return const { deny(Reason::TrustViolation, sites::NOT_YOURS_TO_SEND) };
        }
        if body.scope() == ShareScope::Agent && !self.stays_home(call, act) {
            return const { deny(Reason::TrustViolation, sites::PRIVATE) };
        }
        if body.len() > self.0.config.max_body_bytes && body.location() == Location::Inline {
            return const { deny(Reason::Oversize, sites::OVERSIZE) };
        }
        Opinion::Allow
    }

    /// A private body goes nowhere but to its owner's own key (§4.3); to subscribers never (§4.5).
    fn stays_home(&self, call: &ToolCall<'_>, act: Act) -> bool {
        let who = call.principal();
        match (act, call.target()) {
            (Act::Publish, _) => false,
            (Act::Reply, _) => call.resolved().is_some_and(|recipient| Arc::ptr_eq(recipient, who)),
            (_, Address::Channel(key)) => self.0.is_own(who, key, call.resolved()),
            _ => false,
        }
    }
}

/// Made when it is compiled: a refusal that is put together on the way is read back before its
/// parts have reached memory.
const fn deny(reason: Reason, site: &'static SiteInfo) -> Opinion {
    Opinion::deny(reason, site.site())
}

impl Adjudicator for Gate {
    fn name(&self) -> RungName {
        GATE
    }

    fn tools(&self) -> ToolScope {
        // The name of a capability stands for every act it opens, also those of other crates.
        ToolScope::only(["a2a.send", "a2a.recv"])
    }

    #[inline]
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let Some(act) = call.tool().act() else { return Opinion::Defer };
        match act.capability() {
            Capability::A2aSend => self.send(call, act),
            Capability::A2aRecv if call.target() == Address::Malformed => {
                const { deny(Reason::Malformed, sites::MALFORMED) }
            }
            Capability::A2aRecv if !call.caps().holds(Capability::A2aRecv) => {
                const { Opinion::lacking(Capability::A2aRecv, sites::NO_RECV.site()) }
            }
            Capability::A2aRecv => Opinion::Allow,
            _ => Opinion::Defer,
        }
    }

    fn sites(&self) -> &'static [SiteInfo] {
        SITES
    }
}
