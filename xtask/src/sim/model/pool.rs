//! The pool (§3.9): bytes are shared by their content, provenance is kept for each owner and scope.

use fak_abi::Reason;

use super::host::Act;
use super::{Body, Model, Scope, Who};

impl Model {
    /// What a put keeps, and answers.
    pub(crate) fn pool_put(&mut self, who: Who, body: &Body) -> Result<Body, Reason> {
        self.floor(Act::PoolPut, who, None, None)?;
        if !self.would_flow(body, who) || body.quarantined && body.owner != who {
            return Err(Reason::TrustViolation);
        }
        self.fold(Act::PoolPut, who, "", Some(body))?;
        let same =
            |kept: &&mut Body| (&kept.text, kept.owner, kept.scope) == (&body.text, body.owner, body.scope);
        if let Some(kept) = self.pool.iter_mut().find(same) {
            // Another's word poisons nobody's entry.
            kept.quarantined |= body.quarantined && body.owner == who;
            return Ok(kept.clone());
        }
        let kept = Body { pooled: true, ..body.clone() };
        self.pool.push(kept.clone());
        Ok(kept)
    }

    /// The reader's own, else that of the smallest owner. The refusal of one that the admitter stops has no reason.
    pub(crate) fn pool_get(&self, who: Who, text: &str) -> Result<Body, Option<Reason>> {
        self.admit_at(Act::PoolGet, who, "", None).map_err(Some)?;
        let kept = || self.pool.iter().filter(|kept| kept.text == text);
        if kept().next().is_none() {
            return Err(Some(Reason::Misroute));
        }
        let id = |who: Who| self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        let rank = |kept: &&Body| (kept.owner != who, id(kept.owner), kept.scope, kept.owner);
        let found = kept().filter(|kept| self.flows(kept, who)).min_by_key(rank).cloned();
        let found = found.ok_or(Some(Reason::TrustViolation))?;
        if self.holds_back(text) {
            return Err(None);
        }
        Ok(found)
    }

    /// What is private to somebody who is gone can flow to nobody any more.
    pub(super) fn forget_pooled(&mut self, who: Who) {
        self.pool.retain(|kept| kept.owner != who || kept.scope != Scope::Agent);
    }
}
