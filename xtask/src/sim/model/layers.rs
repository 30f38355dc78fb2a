//! Cells, lanes and one shared record (§5, §6.7), as lists.

use fak_abi::Reason;

use super::host::Act;
use super::watch::Held;
use super::{Body, Model, Scope, Who};

/// A cell (§5.11): the audience is the scope and its domain.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) audience: (Scope, usize),
    pub(crate) key: u8,
    pub(crate) body: Body,
    pub(crate) version: u64,
}

/// A lane lease (§6.7).
#[derive(Debug, Clone)]
pub(crate) struct LaneLease {
    pub(crate) fence: u64,
    pub(crate) lane: usize,
    pub(crate) holder: Who,
    pub(crate) until: u64,
    /// Given back, or its holder was detached.
    pub(crate) over: bool,
}

/// The lanes: name, whether exclusive, tree.
pub(crate) const LANES: [(&str, bool, &str); 4] = [
    ("docs", false, "docs/"),
    ("guide", false, "docs/guide/"),
    ("src", false, "src/"),
    ("abi", true, "abi/"),
];

/// Paths that are checked.
pub(crate) const PATHS: [&str; 4] = ["docs/a.md", "docs/guide/b.md", "src/lib.rs", "abi/c.rs"];

/// A note of the record (§5.8).
#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub(crate) id: String,
    pub(crate) author: String,
    pub(crate) scope: Scope,
}

/// The one record (§5.2).
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) title: String,
    pub(crate) notes: Vec<Note>,
    pub(crate) accepted: usize,
    /// Of every accepted patch: its scope, and who brought it.
    pub(crate) events: Vec<(Scope, String)>,
    pub(crate) held: Vec<Held>,
}

/// What a patch does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Note(String),
    Title(String),
}

impl Model {
    /// The audience of a scope for somebody; none without a part in it.
    pub(super) fn audience(&self, who: Who, scope: Scope) -> Option<(Scope, usize)> {
        match scope {
            Scope::Agent => Some((scope, who)),
            Scope::Fleet => self.fleet(who).map(|fleet| (scope, usize::from(fleet))),
            Scope::Tenant => self.tenant(who).map(|tenant| (scope, usize::from(tenant))),
        }
    }

    fn cell(&self, audience: (Scope, usize), key: u8) -> Option<usize> {
        self.cells.iter().position(|cell| cell.audience == audience && cell.key == key)
    }

    /// Put and cas: the version it has now, or the conflict's.
    pub(crate) fn write_cell(
        &mut self,
        act: Act,
        who: Who,
        key: u8,
        body: &Body,
        expected: Option<u64>,
    ) -> Result<Result<u64, Option<u64>>, Reason> {
        let address = format!("cell:cell-{key}");
        let changed = self.admit_at(act, who, &address, Some(body))?;
        let body = changed.unwrap_or_else(|| body.clone());
        if !self.flows(&body, who) {
            return Err(Reason::TrustViolation);
        }
        let audience = self.audience(who, body.scope).ok_or(Reason::TrustViolation)?;
        let at = self.cell(audience, key);
        let current = at.and_then(|at| self.cells.get(at)).map(|cell| cell.version);
        if current != expected {
            return Ok(Err(current));
        }
        self.versions += 1;
        let cell = Cell { audience, key, body, version: self.versions };
        self.tell(who, audience, key, if at.is_some() { "cas" } else { "put" });
        match at.and_then(|at| self.cells.get_mut(at)) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
        Ok(Ok(self.versions))
    }

    pub(crate) fn delete_cell(
        &mut self,
        who: Who,
        key: u8,
        scope: Scope,
        expected: u64,
    ) -> Result<Result<u64, Option<u64>>, Reason> {
        self.admit_at(Act::CellDelete, who, &format!("cell:cell-{key}"), None)?;
        let audience = self.audience(who, scope).ok_or(Reason::TrustViolation)?;
        let at = self.cell(audience, key);
        let current = at.and_then(|at| self.cells.get(at)).map(|cell| cell.version);
        if current != Some(expected) {
            return Ok(Err(current));
        }
        self.versions += 1;
        self.tell(who, audience, key, "delete");
        if let Some(at) = at {
            self.cells.remove(at);
        }
        Ok(Ok(self.versions))
    }

    /// What a read finds; the refusal of one that the admitter stops has no reason.
    pub(crate) fn read_cell(&self, who: Who, key: u8, scope: Scope) -> Result<Option<Cell>, Option<Reason>> {
        self.admit_at(Act::CellGet, who, &format!("cell:cell-{key}"), None).map_err(Some)?;
        let audience = self.audience(who, scope).ok_or(Some(Reason::TrustViolation))?;
        let Some(cell) = self.cell(audience, key).and_then(|at| self.cells.get(at)) else { return Ok(None) };
        if self.holds_back(&cell.body.text) {
            return Err(None);
        }
        Ok(Some(cell.clone()))
    }

    /// The version of a cell as an agent could know it.
    pub(crate) fn version_of(&self, who: Who, key: u8, scope: Scope) -> Option<u64> {
        let at = self.cell(self.audience(who, scope)?, key)?;
        self.cells.get(at).map(|cell| cell.version)
    }

    fn live_lanes(&self) -> impl Iterator<Item = &LaneLease> {
        self.lanes.iter().filter(|lease| !lease.over && self.now < lease.until)
    }

    pub(super) fn meet(one: usize, other: usize) -> bool {
        let lane = |at: usize| LANES.get(at).copied().unwrap_or(("", true, ""));
        let ((_, exclusive, tree), (_, other_exclusive, other_tree)) = (lane(one), lane(other));
        let overlap = tree.starts_with(other_tree) || other_tree.starts_with(tree);
        one == other || exclusive || other_exclusive || overlap
    }

    /// Whether a lane meets one that is leased.
    pub(super) fn is_in_the_way(&self, lane: usize) -> bool {
        self.live_lanes().any(|lease| Self::meet(lease.lane, lane))
    }

    /// §6.7: the fence of a new lease.
    pub(crate) fn lease_lane(&mut self, who: Who, lane: usize, ttl: u64) -> Result<u64, Reason> {
        let name = LANES.get(lane).map_or("nowhere", |(name, ..)| name);
        self.admit_at(Act::Lease, who, &format!("lane:{name}"), None)?;
        if lane >= LANES.len() {
            return Err(Reason::Misroute);
        }
        if self.is_in_the_way(lane) {
            return Err(Reason::LeaseHeld);
        }
        self.fences += 1;
        let lease = LaneLease { fence: self.fences, lane, holder: who, until: self.now + ttl, over: false };
        self.lanes.push(lease);
        Ok(self.fences)
    }

    /// §6.7: what a token is good for; `path` for a check.
    pub(crate) fn stands(
        &mut self,
        act: Act,
        who: Who,
        fence: u64,
        path: Option<&str>,
    ) -> Result<(), Reason> {
        let Some(lease) = self.lanes.iter().find(|lease| lease.fence == fence).cloned() else {
            return Ok(());
        };
        let name = LANES.get(lease.lane).map_or("", |(name, ..)| name);
        self.admit_at(act, who, &format!("lane:{name}"), None)?;
        if lease.holder != who {
            return Err(Reason::TrustViolation);
        }
        if lease.over || self.now >= lease.until {
            let taken =
                self.live_lanes().any(|other| other.fence > fence && Self::meet(other.lane, lease.lane));
            return Err(if taken { Reason::LeaseHeld } else { Reason::Misroute });
        }
        let tree = LANES.get(lease.lane).map_or("", |(.., tree)| tree);
        if path.is_some_and(|path| !path.starts_with(tree)) {
            return Err(Reason::TrustViolation);
        }
        Ok(())
    }

    pub(crate) fn lane_mut(&mut self, fence: u64) -> Option<&mut LaneLease> {
        self.lanes.iter_mut().find(|lease| lease.fence == fence)
    }

    /// §6.7: no two leases that meet live at once.
    pub(crate) fn lanes_meet(&self) -> bool {
        let live: Vec<_> = self.live_lanes().collect();
        live.iter()
            .any(|one| live.iter().any(|other| one.fence < other.fence && Self::meet(one.lane, other.lane)))
    }

    /// §5.2: whether the store's domain (fleet 0 and tenant 0) admits somebody.
    pub(super) fn is_admitted(&self, who: Who) -> bool {
        self.fleet(who) == Some(0) || self.tenant(who) == Some(0)
    }

    /// §5.5: the outcome of a patch, once the act is permitted.
    pub(crate) fn patch(
        &mut self,
        who: Who,
        scope: Scope,
        back: usize,
        change: &Change,
    ) -> Result<&'static str, Reason> {
        self.floor(Act::TaskPatch, who, None, None)?;
        if !self.is_admitted(who) {
            return Err(Reason::TrustViolation);
        }
        self.admit_at(Act::TaskPatch, who, "task:task_t", None)?;
        let (actor, base) = (who, self.record.accepted - back);
        let mut held = Held { change: change.clone(), scope, actor, base, outcome: None };
        // §5.7: the same bytes again, by chance: what became of them is the answer, whoever the actor is by now.
        let same = |before: &&Held| self.is_same_patch(before, &held);
        held.outcome = self.record.held.iter().find(same).and_then(|before| before.outcome);
        let is_known = held.outcome.is_some();
        if (is_known || self.may_bring(who, scope, change)) && self.needs_approval(scope, change) {
            if let Some(outcome) = held.outcome
                && outcome != "APPROVAL_REQUIRED"
            {
                return Ok(outcome);
            }
            self.record.held.push(held);
            return Ok("APPROVAL_REQUIRED");
        }
        Ok(self.merge(who, scope, back == 0, change))
    }

    /// §5.7: whether two held patches are the same bytes, which name their actor by kind and id.
    pub(super) fn is_same_patch(&self, one: &Held, other: &Held) -> bool {
        let actor = |who| self.agent(who).map(|agent| (&agent.id, agent.human));
        (&one.change, one.scope, one.base) == (&other.change, other.scope, other.base)
            && actor(one.actor) == actor(other.actor)
    }

    /// §5.7: the same bytes again.
    pub(crate) fn resubmit(&mut self, who: Who, held: &Held) -> Result<&'static str, Reason> {
        self.floor(Act::TaskPatch, who, None, None)?;
        if !self.is_admitted(who) {
            return Err(Reason::TrustViolation);
        }
        self.admit_at(Act::TaskPatch, who, "task:task_t", None)?;
        if let Some(outcome) = held.outcome {
            return Ok(outcome);
        }
        let may = self.may_bring(who, held.scope, &held.change);
        Ok(if may { "APPROVAL_REQUIRED" } else { "SCOPE_WIDEN_FORBIDDEN" })
    }

    /// §5.5: whether somebody may bring something of a scope at all.
    fn may_bring(&self, who: Who, scope: Scope, change: &Change) -> bool {
        let holds = match scope {
            Scope::Agent => true,
            Scope::Fleet => self.fleet(who) == Some(0),
            Scope::Tenant => self.tenant(who) == Some(0),
        };
        holds && !(scope == Scope::Agent && matches!(change, Change::Title(_)))
    }

    /// §5.3: what a merge makes of a change.
    pub(super) fn merge(
        &mut self,
        who: Who,
        scope: Scope,
        is_current: bool,
        change: &Change,
    ) -> &'static str {
        if !self.may_bring(who, scope, change) {
            return "SCOPE_WIDEN_FORBIDDEN";
        }
        let author = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        match change {
            Change::Note(id) if self.record.notes.iter().any(|note| note.id == *id) => {
                return "DUPLICATE_NOTE";
            }
            Change::Title(_) if !is_current => return "STALE_BASE",
            Change::Note(id) => {
                self.record.notes.push(Note { id: id.clone(), author: author.clone(), scope });
            }
            Change::Title(title) => self.record.title.clone_from(title),
        }
        self.record.accepted += 1;
        self.record.events.push((scope, author));
        ""
    }

    /// §5.8: the notes that somebody may see, or the refusal.
    pub(crate) fn view(&self, who: Who) -> Result<Vec<String>, Reason> {
        self.floor(Act::TaskView, who, None, None)?;
        if !self.is_admitted(who) {
            return Err(Reason::TrustViolation);
        }
        self.admit_at(Act::TaskView, who, "task:task_t", None)?;
        let sees = |note: &&Note| self.sees(who, note.scope, &note.author);
        Ok(self.record.notes.iter().filter(sees).map(|note| note.id.clone()).collect())
    }
}
