//! Enforcement: a topology as a rung over the resolved recipient of a hand-over, and as the answer to whether one
//! principal may hand to another where the recipient is not known while sending (§6.9).

use std::collections::HashMap;

use fak_abi::{
    Act, Adjudicator, Desk, Edges, Id, Opinion, Principal, Reason, RungName, SiteInfo, ToolCall, ToolScope,
};

use crate::topology::Topology;

const NAME: RungName = "agenttopo/edges";

const NO_EDGE: &SiteInfo = &SiteInfo {
    check: "agenttopo/no-edge",
    clause: "§6.9",
    refuses: "a hand-over between members without an edge",
    next: "hand over along a declared edge, or have the host declare one from the sender to the recipient",
};
const OUTSIDE: &SiteInfo = &SiteInfo {
    check: "agenttopo/outside",
    clause: "§6.9",
    refuses: "a hand-over by a member to somebody outside the group",
    next: "hand over to a member along a declared edge; whoever is outside the group is not reached from inside",
};

/// A topology ready to be installed in a kernel: members hand over along its edges alone (§6.9). Whoever is no member is
/// not bound by it.
///
/// ```
/// use std::sync::Arc;
/// use fak_a2achan::{Bus, BusConfig};
/// use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, Reason, ShareScope};
/// use fak_adjudicate::{Kernel, Rank};
/// use fak_agenttopo::{Enforced, Topology};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let wave = Topology::from_json(br#"{"name": "wave", "edges": [["lead", "dev"]]}"#)?;
/// let enforced = Arc::new(Enforced::new(wave));
/// let bus = Bus::new(BusConfig::default())?;
/// let kernel =
///     Kernel::builder().driver(bus.driver()).rung(Rank(0), enforced.clone()).edges(enforced).build()?;
/// let attach = |name| -> Result<_, Box<dyn std::error::Error>> {
///     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?);
///     Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
/// };
/// let (lead, dev) = (attach("lead")?, attach("dev")?);
/// let send = |from: &fak_abi::AgentHandle, to| -> Result<_, Box<dyn std::error::Error>> {
///     let body = from.widen(&from.mint("hello"), ShareScope::Fleet).ok()?;
///     Ok(bus.endpoint(from).send(&ChannelKey::new(Locale::Session, to)?, &body))
/// };
/// assert!(send(&lead, "trace-dev")?.is_allow());
/// assert_eq!(send(&dev, "trace-lead")?.reason(), Some(Reason::PolicyBlock));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Enforced {
    topology: Topology,
    ranks: HashMap<Id, u32>,
    /// Out-neighbours of each rank, sorted, so that a hub's many edges are searched and not walked.
    out: Vec<Box<[u32]>>,
}

/// What the edges say of one hand-over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Open,
    NoEdge,
    Outside,
}

impl Enforced {
    /// Prepares `topology`.
    ///
    /// # Complexity
    ///
    /// One table of the members, one sort of the edges.
    #[must_use]
    pub fn new(topology: Topology) -> Self {
        let members = topology.group().members();
        let ranks = members.iter().map(|m| m.id().clone()).zip(0..).collect();
        let sorted = |(rank, _)| {
            let mut ends: Box<[u32]> = topology.out().ranks(rank).collect();
            ends.sort_unstable();
            ends
        };
        let out = (0..).zip(members).map(sorted).collect();
        Self { topology, ranks, out }
    }

    /// The topology.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether there is an edge between two members.
    #[must_use]
    pub fn has_edge(&self, from: &Id, to: &Id) -> bool {
        let (Some(from), Some(to)) = (self.ranks.get(from), self.ranks.get(to)) else { return false };
        self.out.get(*from as usize).is_some_and(|ends| ends.binary_search(to).is_ok())
    }

    /// The way from `from` to `to`, along an edge or, for an answer, against one.
    fn way(&self, from: &Principal, to: &Principal, answers: bool) -> Way {
        if std::ptr::eq(from, to) || from.id() == to.id() || !self.ranks.contains_key(from.id()) {
            return Way::Open;
        }
        if !self.ranks.contains_key(to.id()) {
            return Way::Outside;
        }
        let edge =
            if answers { self.has_edge(to.id(), from.id()) } else { self.has_edge(from.id(), to.id()) };
        if edge { Way::Open } else { Way::NoEdge }
    }
}

impl Adjudicator for Enforced {
    fn name(&self) -> RungName {
        NAME
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only([Act::Send.tool(), Act::Broadcast.tool(), Act::Scatter.tool()])
    }

    fn is_standing(&self) -> bool {
        true
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let Some(recipient) = call.resolved() else { return Opinion::Defer };
        match self.way(call.principal(), recipient, answers(call)) {
            Way::Open => Opinion::Defer,
            Way::NoEdge => Opinion::deny(Reason::PolicyBlock, NO_EDGE.site()),
            Way::Outside => Opinion::deny(Reason::PolicyBlock, OUTSIDE.site()),
        }
    }

    fn sites(&self) -> &'static [SiteInfo] {
        const { &[*NO_EDGE, *OUTSIDE] }
    }

    /// The missing edge, its other end named to those who may know it.
    fn hint(&self, call: &ToolCall<'_>) -> Option<String> {
        let (me, recipient) = (call.principal(), call.resolved()?);
        let name = |who: &Principal| who.id().quoted().to_string();
        let other = if recipient.shares_domain(me) { name(recipient) } else { "the recipient".to_owned() };
        let topology = self.topology.name().quoted();
        match self.way(me, recipient, answers(call)) {
            Way::Open => None,
            Way::Outside => Some(format!("{other} is no member of topology {topology}")),
            Way::NoEdge if answers(call) => {
                Some(format!("topology {topology} has no edge {other} -> {} to answer along", name(me)))
            }
            Way::NoEdge => Some(format!("topology {topology} has no edge {} -> {other}", name(me))),
        }
    }
}

/// Whether a call answers one that came the other way.
fn answers(call: &ToolCall<'_>) -> bool {
    matches!(call.tool().act(), Some(Act::Reply | Act::Ack))
}

impl Edges for Enforced {
    fn may_hand(&self, from: &Principal, to: &Principal) -> bool {
        self.way(from, to, false) == Way::Open
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fak_abi::{CapSet, KernelSeal, PrincipalSpec};

    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    #[test]
    fn the_way_follows_edges_and_answers_go_back_along_them() {
        let seal = KernelSeal::new();
        let [a, b, c, x, y] = ["a", "b", "c", "x", "y"].map(|name| -> Arc<Principal> {
            seal.principal(PrincipalSpec::agent(id(name)), 1, CapSet::NONE)
        });
        let t = Enforced::new(Topology::over(id("t"), &[(id("a"), id("b")), (id("b"), id("c"))]).unwrap());
        for (from, to, answers, way) in [
            (&a, &b, false, Way::Open),
            (&b, &a, false, Way::NoEdge),
            (&b, &a, true, Way::Open),
            (&a, &b, true, Way::NoEdge),
            (&a, &c, false, Way::NoEdge),
            (&a, &a, false, Way::Open),
            (&a, &x, false, Way::Outside),
            (&a, &x, true, Way::Outside),
            (&x, &a, false, Way::Open),
            (&x, &y, false, Way::Open),
        ] {
            assert_eq!(t.way(from, to, answers), way, "{from:?} {to:?} {answers}");
            assert_eq!(t.may_hand(from, to), t.way(from, to, false) == Way::Open);
        }
    }
}
