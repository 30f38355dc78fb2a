//! A host's topology that can be replaced: what is installed stays, what it asks is another.

use std::sync::{Arc, PoisonError, RwLock};

use fak_abi::{Adjudicator, Desk, Edges, Id, Opinion, Principal, RungName, SiteInfo, ToolCall, ToolScope};
use fak_agenttopo::{Enforced, TopoError, Topology};

use super::broken;
use crate::sim::fault::Fault;
use crate::sim::model::topology::{Edge, NAMES};

/// See the module.
pub(crate) struct Edged(RwLock<Arc<Enforced>>);

/// The topology of these edges, if they make one.
pub(crate) fn declared(edges: &[Edge]) -> Result<Result<Topology, TopoError>, Fault> {
    let id = |at: usize| Id::new(NAMES.get(at).copied().unwrap_or_default()).map_err(broken);
    let edges = edges.iter().map(|(from, to)| Ok((id(*from)?, id(*to)?)));
    let edges = edges.collect::<Result<Vec<_>, Fault>>()?;
    Ok(Topology::over(Id::new("wave").map_err(broken)?, &edges))
}

impl Edged {
    pub(crate) fn new(edges: &[Edge]) -> Result<Self, Fault> {
        let topology = declared(edges)?.map_err(broken)?;
        Ok(Self(RwLock::new(Arc::new(Enforced::new(topology)))))
    }

    /// Another topology from here on.
    pub(crate) fn replace(&self, topology: Topology) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Enforced::new(topology));
    }

    fn current(&self) -> Arc<Enforced> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Adjudicator for Edged {
    fn name(&self) -> RungName {
        "edges"
    }

    fn tools(&self) -> ToolScope {
        self.current().tools()
    }

    fn is_standing(&self) -> bool {
        self.current().is_standing()
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        self.current().judge(call, desk)
    }

    fn sites(&self) -> &'static [SiteInfo] {
        &[]
    }

    fn hint(&self, call: &ToolCall<'_>) -> Option<String> {
        self.current().hint(call)
    }
}

impl Edges for Edged {
    fn may_hand(&self, from: &Principal, to: &Principal) -> bool {
        self.current().may_hand(from, to)
    }
}
