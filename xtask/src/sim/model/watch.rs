//! What waits for a human (§5.7), and what is watched: a record's events (§5.9) and cells (§5.11).

use fak_abi::Reason;

use super::host::Act;
use super::layers::Change;
use super::{Model, Scope, Who};

/// Events a watch of a record may fall behind, and a watch of cells keeps.
pub(crate) const LAG: usize = 6;
pub(crate) const BACKLOG: usize = 3;

/// A patch that is, or was, held for a human.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) change: Change,
    pub(crate) scope: Scope,
    pub(crate) actor: Who,
    /// The number of the revision that it was written on.
    pub(crate) base: usize,
    /// What it came to, once it is spent.
    pub(crate) outcome: Option<&'static str>,
}

/// A watch on the record.
#[derive(Debug, Clone)]
pub(crate) struct TaskWatching {
    pub(crate) who: Who,
    pub(crate) at: usize,
}

/// What a watch on the record says next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// The event of this revision.
    Event(usize),
    /// So many were passed over; it goes on after this revision.
    Lagged(usize, usize),
}

/// A change of a cell, as its watchers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) key: u8,
    pub(crate) version: u64,
    pub(crate) change: &'static str,
    pub(crate) writer: String,
    pub(crate) missed: u64,
}

/// A watch on the cells of one audience.
#[derive(Debug, Clone)]
pub(crate) struct CellWatching {
    pub(crate) who: Who,
    audience: (Scope, usize),
    queue: Vec<Told>,
    open: bool,
}

impl Model {
    /// §5.8: whether somebody may see what an author brought in a scope.
    pub(super) fn sees(&self, who: Who, scope: Scope, author: &str) -> bool {
        match scope {
            Scope::Agent => self.agent(who).is_some_and(|agent| agent.id == author),
            Scope::Fleet => self.fleet(who) == Some(0),
            Scope::Tenant => self.tenant(who) == Some(0),
        }
    }

    /// §5.7: whether a patch has to be approved: titles, and what a tenant may see.
    pub(super) fn needs_approval(&self, scope: Scope, change: &Change) -> bool {
        self.setup.approval && (scope == Scope::Tenant || matches!(change, Change::Title(_)))
    }

    /// §5.7: a human's word on a held patch, once.
    pub(crate) fn decide_held(&mut self, who: Who, at: usize, approve: bool) -> Result<&'static str, Reason> {
        let act = if approve { Act::TaskApprove } else { Act::TaskReject };
        self.floor(act, who, None, None)?;
        if !self.is_admitted(who) || !self.agent(who).is_some_and(|agent| agent.human) {
            return Err(Reason::TrustViolation);
        }
        self.admit_at(act, who, "task:task_t", None)?;
        let held = self.record.held.get(at).filter(|held| held.outcome.is_none()).cloned();
        let held = held.ok_or(Reason::Misroute)?;
        let id = |who| self.agent(who).map(|agent: &super::Agent| agent.id.clone()).unwrap_or_default();
        if id(held.actor) == id(who) || !self.sees(who, held.scope, &id(held.actor)) {
            return Err(Reason::TrustViolation);
        }
        let outcome = if approve {
            let is_current = held.base == self.record.accepted;
            self.merge(held.actor, held.scope, is_current, &held.change)
        } else {
            "APPROVAL_REQUIRED"
        };
        let same: Vec<_> = self.record.held.iter().map(|other| self.is_same_patch(other, &held)).collect();
        for (other, _) in self.record.held.iter_mut().zip(same).filter(|(_, is_same)| *is_same) {
            other.outcome = Some(outcome);
        }
        Ok(outcome)
    }

    /// §5.9: a watch that begins where the record is.
    pub(crate) fn watch_task(&mut self, who: Who) -> Result<usize, Reason> {
        self.floor(Act::TaskWatch, who, None, None)?;
        if !self.is_admitted(who) {
            return Err(Reason::TrustViolation);
        }
        self.admit_at(Act::TaskWatch, who, "task:task_t", None)?;
        self.task_watches.push(TaskWatching { who, at: self.record.accepted });
        Ok(self.task_watches.len() - 1)
    }

    /// What a watch says next, without taking it.
    pub(crate) fn next_event(&self, watch: &TaskWatching) -> (Option<Next>, usize) {
        let head = self.record.accepted;
        let mut unseen = (1..).zip(&self.record.events).skip(watch.at);
        let visible = |(_, (scope, author)): &(usize, &(Scope, String))| self.sees(watch.who, *scope, author);
        if head - watch.at > LAG {
            let missed = unseen.filter(visible).count();
            return ((missed > 0).then_some(Next::Lagged(missed, head)), head);
        }
        match unseen.find(visible) {
            Some((revision, _)) => (Some(Next::Event(revision)), revision),
            None => (None, head),
        }
    }

    /// Takes it; `Err` once the watcher is gone.
    pub(crate) fn take_event(&mut self, at: usize) -> Result<Option<Next>, Reason> {
        let Some(watch) = self.task_watches.get(at).cloned() else { return Ok(None) };
        if !self.is_live(watch.who) {
            return Err(Reason::DefaultDeny);
        }
        let (next, to) = self.next_event(&watch);
        if let Some(watch) = self.task_watches.get_mut(at) {
            watch.at = to;
        }
        Ok(next)
    }

    pub(crate) fn watch_cells(&mut self, who: Who, scope: Scope) -> Result<usize, Reason> {
        self.admit_at(Act::CellWatch, who, "cell:", None)?;
        let audience = self.audience(who, scope).ok_or(Reason::TrustViolation)?;
        self.cell_watches.push(CellWatching { who, audience, queue: Vec::new(), open: true });
        Ok(self.cell_watches.len() - 1)
    }

    /// Every watcher of the audience is told; of what is too much, the oldest is lost and counted.
    pub(super) fn tell(&mut self, who: Who, audience: (Scope, usize), key: u8, change: &'static str) {
        let writer = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        let version = self.versions;
        for watch in self.cell_watches.iter_mut().filter(|watch| watch.open && watch.audience == audience) {
            watch.queue.push(Told { key, version, change, writer: writer.clone(), missed: 0 });
            if watch.queue.len() > BACKLOG {
                let lost = watch.queue.remove(0);
                if let Some(next) = watch.queue.first_mut() {
                    next.missed += lost.missed + 1;
                }
            }
        }
    }

    pub(crate) fn take_told(&mut self, at: usize) -> Result<Option<Told>, Reason> {
        let Some(watch) = self.cell_watches.get_mut(at) else { return Ok(None) };
        let told = if watch.queue.is_empty() { None } else { Some(watch.queue.remove(0)) };
        let who = watch.who;
        if self.is_live(who) { Ok(told) } else { Err(Reason::DefaultDeny) }
    }

    pub(crate) fn end_cell_watch(&mut self, at: usize) {
        if let Some(watch) = self.cell_watches.get_mut(at) {
            watch.open = false;
        }
    }
}
