//! A kernel with a bus, and what the paths put into them.

use std::sync::Arc;

use fak_a2achan::{Bus, BusConfig, Delivery, Endpoint, Limits, Message};
use fak_abi::{
    Adjudicator, Capability, ChannelKey, Desk, Id, Opinion, PrincipalSpec, Ref, RungName, ShareScope,
    ToolCall, ToolScope,
};
use fak_adjudicate::{Auditor, Kernel, Rank};

/// A rung that looks at the call the way a real one does: principal, body, address.
pub struct Looks(pub ToolScope);

impl Adjudicator for Looks {
    fn name(&self) -> RungName {
        "looks"
    }
    fn tools(&self) -> ToolScope {
        self.0.clone()
    }
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let private = call.body().is_some_and(Ref::is_empty);
        if private || call.principal().id().is_empty() { Opinion::Indeterminate } else { Opinion::Allow }
    }
}

/// A kernel with a bus; every act on it folds two rungs.
pub struct World {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Its bus.
    pub bus: Bus,
}

impl World {
    /// With the defaults, but room for as many of everything as a curve needs.
    pub fn new(audit: Option<Arc<dyn Auditor>>) -> Self {
        let limits =
            Limits { mailboxes: 1 << 20, leases: 1 << 20, subscriptions: 1 << 20, ..Limits::default() };
        let bus = Bus::new(BusConfig { limits, ..BusConfig::default() }).unwrap();
        let mut builder =
            Kernel::builder().driver(bus.driver()).rung(Rank(0), Arc::new(Looks(ToolScope::Every)));
        if let Some(audit) = audit {
            builder = builder.audit(audit);
        }
        Self { kernel: builder.build().unwrap(), bus }
    }

    /// An agent of the one fleet.
    pub fn agent(&self, name: &str) -> Endpoint {
        let caps = [Capability::A2aSend, Capability::A2aRecv, Capability::RefWiden];
        let spec = PrincipalSpec::agent(id(name)).fleet(id("f1")).caps(caps);
        self.bus.endpoint(&self.kernel.attach(spec).unwrap())
    }
}

/// An id.
pub fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

/// A channel key.
pub fn key(text: &str) -> ChannelKey {
    text.parse().unwrap()
}

/// A body that the fleet may see.
pub fn body(by: &Endpoint, len: usize) -> Ref {
    by.agent().widen(&by.agent().mint(vec![b'x'; len]), ShareScope::Fleet).allowed().unwrap()
}

/// The message that has to be there.
pub(crate) fn message(delivery: Delivery) -> Message {
    match delivery {
        Delivery::Message(message) => message,
        other => panic!("{other:?}"),
    }
}
