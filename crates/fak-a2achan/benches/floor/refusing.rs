//! The least send that can be refused: a rung that looks at the capability and at where the body may go, a rung of the
//! host's, a verdict that says why, and a count of it. No mailbox, no kernel's checks, nothing after the rungs.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fak_a2achan::Endpoint;
use fak_abi::{
    Act, Address, Adjudicator, Capability, ChannelKey, Desk, Opinion, Reason, Ref, RungName, ShareScope,
    Site, Taint, ToolCall, Verdict,
};
use fak_adjudicate::{Kernel, SystemClock};

/// The rows of §4.3 that this floor has: 2 to 5.
struct Guard;

impl Adjudicator for Guard {
    fn name(&self) -> RungName {
        "guard"
    }
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let who = call.principal();
        if !call.caps().holds(Capability::A2aSend) {
            return const { Opinion::deny(Reason::DefaultDeny, Site::new("floor/capability")) };
        }
        let Some(body) = call.body() else { return Opinion::Allow };
        if body.taint() == Taint::Quarantined || !body.is_owned_by(who) && !body.may_flow_to(who) {
            return const { Opinion::deny(Reason::TrustViolation, Site::new("floor/flow")) };
        }
        let is_home = matches!(call.target(), Address::Channel(key) if key.id() == who.id());
        if body.scope() == ShareScope::Agent && !is_home {
            return const { Opinion::deny(Reason::TrustViolation, Site::new("floor/private")) };
        }
        Opinion::Allow
    }
}

/// A channel that is only sent to.
pub(crate) struct Refusing {
    kernel: Arc<Kernel>,
    rungs: [Arc<dyn Adjudicator>; 2],
    key: ChannelKey,
    denied: AtomicU64,
}

impl Refusing {
    pub(crate) fn new(kernel: &Arc<Kernel>, host: Arc<dyn Adjudicator>, key: &ChannelKey) -> Self {
        Self {
            kernel: Arc::clone(kernel),
            rungs: [Arc::new(Guard), host],
            key: key.clone(),
            denied: AtomicU64::new(0),
        }
    }

    pub(crate) fn send(&self, by: &Endpoint, body: &Ref) -> Verdict {
        let call = ToolCall::new(by.agent(), Act::Send).args(body).address(Address::Channel(&self.key));
        let desk = Desk { resolver: &*self.kernel, clock: &SystemClock };
        for rung in &self.rungs {
            if let Opinion::Deny(refusal) = rung.judge(black_box(&call), &desk) {
                self.denied.fetch_add(1, Ordering::Relaxed);
                return Verdict::deny(refusal, "guard");
            }
        }
        Verdict::allow("guard")
    }
}
