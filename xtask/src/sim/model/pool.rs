//! The pool (§3.9): bytes are shared by their content, provenance is kept for each owner and scope, and what nobody
//! points to makes room.

use fak_abi::Reason;

use super::host::Act;
use super::{Body, Model, Scope, Who};

/// What a value and each of its entries count besides its bytes.
const ENTRY: usize = 256;

/// One content.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) text: String,
    /// Whose share it counts against: who put it first.
    payer: Who,
    /// When it was last put or got.
    used: u64,
    /// One for each owner and scope.
    entries: Vec<Body>,
    /// Refs that somebody has of it.
    pub(crate) pins: usize,
    pub(crate) serial: u64,
}

impl Blob {
    fn cost(&self) -> usize {
        self.text.len() + ENTRY * (1 + self.entries.len())
    }
}

impl Model {
    fn pool_share(&self) -> usize {
        self.setup.pool - self.setup.pool / 4
    }

    /// Bytes taken, values kept, and how many of those are pinned.
    pub(crate) fn pool_books(&self) -> (usize, usize, usize) {
        let pinned = self.pool.iter().filter(|blob| blob.pins > 0).count();
        (self.pool.iter().map(Blob::cost).sum(), self.pool.len(), pinned)
    }

    fn pooled(&self, text: &str) -> Option<&Blob> {
        self.pool.iter().find(|blob| blob.text == text)
    }

    /// What a put would be answered.
    pub(crate) fn may_put(&self, who: Who, body: &Body) -> Result<Vec<String>, Reason> {
        self.floor(Act::PoolPut, who, None, None)?;
        if !self.would_flow(body, who) || body.quarantined && body.owner != who {
            return Err(Reason::TrustViolation);
        }
        if body.text.len() + 2 * ENTRY > self.pool_share() {
            return Err(Reason::Oversize);
        }
        self.fold(Act::PoolPut, who, None, "", Some(body))?;
        let same = |kept: &Body| (kept.owner, kept.scope) == (body.owner, body.scope);
        match self.pooled(&body.text) {
            Some(blob) if blob.entries.iter().any(same) => Ok(Vec::new()),
            Some(blob) => self.room(ENTRY, blob.payer, &body.text),
            None => self.room(body.text.len() + 2 * ENTRY, who, &body.text),
        }
    }

    /// What goes so that there is room: of those that nobody points to, the ones that were not used for longest; the
    /// payer's own while it is above its share, then anybody's.
    fn room(&self, need: usize, payer: Who, keep: &str) -> Result<Vec<String>, Reason> {
        let mut gone: Vec<&Blob> = Vec::new();
        for own in [true, false] {
            let counts = |blob: &&Blob| !own || blob.payer == payer;
            let limit = if own { self.pool_share() } else { self.setup.pool };
            loop {
                let there = self.pool.iter().filter(|blob| !gone.iter().any(|gone| gone.text == blob.text));
                let there: Vec<&Blob> = there.filter(counts).collect();
                if there.iter().map(|blob| blob.cost()).sum::<usize>() + need <= limit {
                    break;
                }
                let free = there.into_iter().filter(|blob| blob.pins == 0 && blob.text != keep);
                gone.push(free.min_by_key(|blob| blob.used).ok_or(Reason::RateLimited)?);
            }
        }
        Ok(gone.into_iter().map(|blob| blob.text.clone()).collect())
    }

    /// What a put keeps, and answers.
    pub(crate) fn pool_put(&mut self, who: Who, body: &Body) -> Result<Body, Reason> {
        let may = self.may_put(who, body);
        // Being asked for is being used, even where there is no room for one more entry.
        let is_asked = matches!(may, Ok(_) | Err(Reason::RateLimited)) && self.audit_says().is_ok();
        self.serials += u64::from(is_asked);
        let now = self.serials;
        if is_asked && let Some(blob) = self.pool.iter_mut().find(|blob| blob.text == body.text) {
            blob.used = now;
        }
        let gone = may?;
        self.pool.retain(|blob| !gone.contains(&blob.text));
        if self.pooled(&body.text).is_none() {
            let (text, entries) = (body.text.clone(), Vec::new());
            self.pool.push(Blob { text, payer: who, used: now, entries, pins: 0, serial: now });
        }
        let blob = self.pool.iter_mut().find(|blob| blob.text == body.text);
        let entries = blob.map(|blob| &mut blob.entries).ok_or(Reason::Misroute)?;
        let same = |kept: &&mut Body| (kept.owner, kept.scope) == (body.owner, body.scope);
        if let Some(kept) = entries.iter_mut().find(same) {
            // Another's word poisons nobody's entry.
            kept.quarantined |= body.quarantined && body.owner == who;
            return Ok(kept.clone());
        }
        let kept = Body { pooled: true, ..body.clone() };
        entries.push(kept.clone());
        Ok(kept)
    }

    /// The reader's own, else that of the smallest owner. The refusal of one that the admitter stops has no reason.
    pub(crate) fn pool_get(&mut self, who: Who, text: &str) -> Result<Body, Option<Reason>> {
        self.admit_at(Act::PoolGet, who, "", None).map_err(Some)?;
        let found = self.find_pooled(who, text).map_err(Some)?;
        self.serials += 1;
        let now = self.serials;
        self.pool.iter_mut().filter(|blob| blob.text == text).for_each(|blob| blob.used = now);
        if self.holds_back(text) {
            return Err(None);
        }
        Ok(found)
    }

    /// As [`Self::pool_get`], of what is kept, past the rungs.
    pub(crate) fn find_pooled(&self, who: Who, text: &str) -> Result<Body, Reason> {
        let blob = self.pooled(text).ok_or(Reason::Misroute)?;
        let id = |who: Who| self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        let rank = |kept: &&Body| (kept.owner != who, id(kept.owner), kept.scope, kept.owner);
        let flows = blob.entries.iter().filter(|kept| self.flows(kept, who));
        flows.min_by_key(rank).cloned().ok_or(Reason::TrustViolation)
    }

    /// What is private to somebody who is gone can flow to nobody any more.
    pub(super) fn forget_pooled(&mut self, who: Who) {
        for blob in &mut self.pool {
            blob.entries.retain(|kept| kept.owner != who || kept.scope != Scope::Agent);
        }
        self.pool.retain(|blob| !blob.entries.is_empty());
    }
}
