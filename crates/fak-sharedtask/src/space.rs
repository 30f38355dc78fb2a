//! The space: named mutable cells that many agents use during one run (§5.11). Every access is an act; a cell holds a Ref,
//! whose provenance rides along unchanged.

mod driver;
mod room;
mod watch;

use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use fak_abi::{
    Act, Address, Admission, AgentHandle, Charge, Cleared, Driver, DriverLink, Host, Id, Outcome, Permit,
    Principal, Reason, Ref, Refusal, ShareScope, SiteInfo, Taint, ToolCall,
};
use parking_lot::Mutex;

pub use driver::SPACE_SITES;
use driver::{CELLS, FLOW, KEY, QUARANTINED, SCOPE, SIZE, SPACE, UNINSTALLED, WATCHES};
use room::{Cell, Change, Room};
pub use watch::{CellChange, CellEvent, CellWatch};

/// How much a space holds, and how much of it one principal may take (§4.12). Beyond: RATE_LIMITED, or OVERSIZE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceConfig {
    /// Cells in all; default 65,536.
    pub cells: usize,
    /// Cells of one writer; default 4,096.
    pub cells_each: usize,
    /// Bytes of one cell's body; default 1 MiB.
    pub body: usize,
    /// Watches of one principal; default 256.
    pub watches: usize,
    /// Events a watch keeps until they are taken; default 1,024.
    pub backlog: usize,
}

impl Default for SpaceConfig {
    fn default() -> Self {
        Self { cells: 65_536, cells_each: 4096, body: 1 << 20, watches: 256, backlog: 1024 }
    }
}

/// A space, built into one kernel (§3.1). Clones share it.
#[derive(Clone)]
pub struct Space(Arc<Core>);

pub(crate) struct Core {
    config: SpaceConfig,
    link: OnceLock<DriverLink>,
    rooms: DashMap<RoomKey, Arc<Mutex<Room>>>,
    /// Cells and watches of each principal, and cells in all under the empty name.
    taken: Mutex<Counts>,
    versions: std::sync::atomic::AtomicU64,
}

/// What is taken of a space.
#[derive(Debug, Default)]
struct Counts {
    cells: usize,
    of: std::collections::HashMap<Id, Taken>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    cells: usize,
    watches: usize,
}

/// The cells that one audience shares: equal keys of two are two cells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RoomKey {
    /// One incarnation's own.
    Agent(u64),
    Fleet(Id),
    Tenant(Id),
}

/// A cell as it was read.
#[derive(Debug, Clone)]
pub struct CellView {
    /// What it holds.
    pub body: Ref,
    /// Its version: from one counter of the space, so that none recurs.
    pub version: u64,
    /// Who wrote it.
    pub writer: Id,
}

/// What a permitted write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellWrite {
    /// It happened.
    Done {
        /// The cell's new version; of a deletion, the version of the deletion.
        version: u64,
    },
    /// The cell is not as the writer expected.
    Conflict {
        /// The version it has; none if it is not there.
        current: Option<u64>,
    },
}

impl Space {
    /// An empty space. Hand its [`Space::driver`] to a kernel before agents act.
    #[must_use]
    pub fn new(config: SpaceConfig) -> Self {
        Self(Arc::new(Core {
            config,
            link: OnceLock::new(),
            rooms: DashMap::new(),
            taken: Mutex::default(),
            versions: std::sync::atomic::AtomicU64::new(0),
        }))
    }

    /// The space as a layer of a kernel: its floor rung and its capabilities.
    #[must_use]
    pub fn driver(&self) -> Arc<dyn Driver> {
        Arc::clone(&self.0) as Arc<dyn Driver>
    }

    /// Makes a new cell with the scope of its body: an act (`space.put`). One that is there is a conflict.
    pub fn put(&self, agent: &AgentHandle, key: &str, body: &Ref) -> Outcome<CellWrite> {
        self.0.write(agent, Act::CellPut, key, body.scope(), Some(body), Expected::Nothing)
    }

    /// Replaces a cell that has the expected version: an act (`space.cas`). The body's scope must be the cell's.
    pub fn cas(
        &self,
        agent: &AgentHandle,
        key: &str,
        scope: ShareScope,
        version: u64,
        body: &Ref,
    ) -> Outcome<CellWrite> {
        self.0.write(agent, Act::CellCas, key, scope, Some(body), Expected::Version(version))
    }

    /// Deletes a cell that has the expected version: an act (`space.delete`).
    pub fn delete(
        &self,
        agent: &AgentHandle,
        key: &str,
        scope: ShareScope,
        version: u64,
    ) -> Outcome<CellWrite> {
        self.0.write(agent, Act::CellDelete, key, scope, None, Expected::Version(version))
    }

    /// Reads a cell: an act (`space.get`). None if it is not there.
    pub fn get(&self, agent: &AgentHandle, key: &str, scope: ShareScope) -> Outcome<Option<CellView>> {
        self.0.get(agent, key, scope)
    }

    /// The keys under a prefix with their versions, in order: an act (`space.list`). A prefix counts whole components:
    /// `plan` has `plan` and `plan/a` under it, not `planner`; the empty one has everything.
    pub fn list(&self, agent: &AgentHandle, prefix: &str, scope: ShareScope) -> Outcome<Vec<(Id, u64)>> {
        let core = &*self.0;
        core.act(agent, Act::CellList, prefix, true, None, |_, permit, prefix| {
            let Some(room) = core.room(agent.principal(), scope, false) else { return refuse(permit, SCOPE) };
            let keys = room.map(|room| room.lock().under(prefix)).unwrap_or_default();
            cleared(permit).map_or_else(Outcome::Refuse, |cleared| allow(cleared, core.next_seq(), keys))
        })
    }

    /// Watches the cells under a prefix: an act (`space.watch`). Every change after it is handed over, once, in order.
    pub fn watch(&self, agent: &AgentHandle, prefix: &str, scope: ShareScope) -> Outcome<CellWatch> {
        let core = &self.0;
        core.act(agent, Act::CellWatch, prefix, true, None, |_, permit, prefix| {
            let Some(room) = core.room(agent.principal(), scope, true) else { return refuse(permit, SCOPE) };
            let cleared = match cleared(permit) {
                Ok(cleared) => cleared,
                Err(verdict) => return Outcome::Refuse(verdict),
            };
            let (Some(room), true) = (room, core.take_watch(agent.principal().id())) else {
                return refuse_cleared(cleared, WATCHES);
            };
            let watch =
                CellWatch::new(Arc::clone(core), agent.clone(), room, prefix, scope, core.config.backlog);
            allow(cleared, core.next_seq(), watch)
        })
    }
}

/// What a write expects to find.
#[derive(Clone, Copy)]
enum Expected {
    Nothing,
    Version(u64),
}

impl Core {
    fn host(&self) -> Option<Arc<dyn Host>> {
        self.link.get().and_then(DriverLink::host)
    }

    fn next_seq(&self) -> u64 {
        self.link.get().map_or(0, |link| link.sequence().next())
    }

    /// Presents an act to the kernel. A key that is none is presented as such, so that its refusal is audited.
    fn act<T>(
        &self,
        agent: &AgentHandle,
        act: Act,
        key: &str,
        prefix: bool,
        body: Option<&Ref>,
        go: impl FnOnce(&dyn Host, Permit<'_>, Option<&Id>) -> Outcome<T>,
    ) -> Outcome<T> {
        let Some(host) = self.host() else {
            return Outcome::deny(Refusal::new(Reason::DefaultDeny, UNINSTALLED.site()), SPACE);
        };
        let everything = prefix && key.is_empty();
        let named = parse_key(if prefix { key.strip_suffix('/').unwrap_or(key) } else { key });
        let address = match &named {
            Some(id) => Address::Cell(id),
            None if everything => Address::None,
            None => Address::Malformed,
        };
        let mut call = ToolCall::new(agent, act).address(address);
        if let Some(body) = body {
            call = call.args(body);
        }
        match host.admit_any(&call) {
            Admission::Refuse(verdict) => Outcome::Refuse(verdict),
            Admission::Permit(permit) if named.is_none() && !everything => refuse(permit, KEY),
            Admission::Permit(permit) => go(&*host, permit, named.as_ref()),
        }
    }

    /// The room of a scope for a principal: none if it has no part in that scope; none inside if nothing is there.
    fn room(&self, who: &Principal, scope: ShareScope, make: bool) -> Option<Option<Arc<Mutex<Room>>>> {
        let key = match scope {
            ShareScope::Agent => RoomKey::Agent(who.incarnation()),
            ShareScope::Fleet => RoomKey::Fleet(who.fleet()?.clone()),
            ShareScope::Tenant => RoomKey::Tenant(who.tenant()?.clone()),
            ShareScope::Public => return None,
        };
        if make {
            return Some(Some(Arc::clone(self.rooms.entry(key).or_default().value())));
        }
        Some(self.rooms.get(&key).map(|entry| Arc::clone(entry.value())))
    }

    fn write(
        &self,
        agent: &AgentHandle,
        act: Act,
        key: &str,
        scope: ShareScope,
        body: Option<&Ref>,
        expected: Expected,
    ) -> Outcome<CellWrite> {
        self.act(agent, act, key, false, body, |_, permit, key| {
            let Some(key) = key else { return refuse(permit, KEY) };
            let who = agent.principal();
            let body = permit.transformed().or(body).cloned();
            if let Some(body) = &body {
                if body.taint() == Taint::Quarantined {
                    return refuse(permit, QUARANTINED);
                }
                if !body.may_flow_to(who) {
                    return refuse(permit, FLOW);
                }
                if body.scope() != scope {
                    return refuse(permit, SCOPE);
                }
                if body.len() > self.config.body {
                    return refuse(permit, SIZE);
                }
            }
            let Some(room) = self.room(who, scope, true).flatten() else { return refuse(permit, SCOPE) };
            let cleared = match cleared(permit) {
                Ok(cleared) => cleared,
                Err(verdict) => return Outcome::Refuse(verdict),
            };
            let mut open = room.lock();
            let current = open.version(key);
            let fits = match expected {
                Expected::Nothing => current.is_none(),
                Expected::Version(version) => current == Some(version),
            };
            if !fits {
                drop(open);
                return allow(cleared, self.next_seq(), CellWrite::Conflict { current });
            }
            if current.is_none() && !self.take_cell(who.id()) {
                drop(open);
                return refuse_cleared(cleared, CELLS);
            }
            let seq = self.next_seq();
            let version = self.versions.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            let (change, left) = match body {
                Some(body) => {
                    let change = if current.is_some() { Change::Replaced } else { Change::Made };
                    let owner = open.owner(key).unwrap_or_else(|| who.id().clone());
                    open.cells.insert(key.clone(), Cell { body, version, writer: who.id().clone(), owner });
                    (change, None)
                }
                None => (Change::Deleted, open.cells.remove(key)),
            };
            let waiting = open.publish(key, version, change, who.id());
            drop(open);
            if let Some(cell) = left {
                self.give_cell_back(&cell.owner);
            }
            waiting.iter().for_each(std::task::Waker::wake_by_ref);
            allow(cleared, seq, CellWrite::Done { version })
        })
    }

    fn get(&self, agent: &AgentHandle, key: &str, scope: ShareScope) -> Outcome<Option<CellView>> {
        self.act(agent, Act::CellGet, key, false, None, |host, permit, key| {
            let Some(key) = key else { return refuse(permit, KEY) };
            let who = agent.principal();
            let Some(room) = self.room(who, scope, false) else { return refuse(permit, SCOPE) };
            let found = room.and_then(|room| room.lock().view(key));
            if let Some(cell) = &found {
                if !cell.body.may_flow_to(who) {
                    return refuse(permit, FLOW);
                }
                let call = ToolCall::new(agent, Act::CellGet).address(Address::Cell(key));
                let verdict = host.screen(&call, &cell.body);
                if !verdict.is_allow() {
                    return Outcome::Refuse(permit.hold(verdict.by(), 0));
                }
            }
            cleared(permit).map_or_else(Outcome::Refuse, |cleared| allow(cleared, self.next_seq(), found))
        })
    }

    fn take_cell(&self, who: &Id) -> bool {
        let mut counts = self.taken.lock();
        if counts.cells >= self.config.cells {
            return false;
        }
        let taken = counts.of.entry(who.clone()).or_default();
        if taken.cells >= self.config.cells_each {
            return false;
        }
        taken.cells += 1;
        counts.cells += 1;
        true
    }

    fn give_cell_back(&self, who: &Id) {
        let mut counts = self.taken.lock();
        counts.cells = counts.cells.saturating_sub(1);
        if let Some(taken) = counts.of.get_mut(who) {
            taken.cells = taken.cells.saturating_sub(1);
        }
    }

    fn take_watch(&self, who: &Id) -> bool {
        let mut counts = self.taken.lock();
        let taken = counts.of.entry(who.clone()).or_default();
        let fits = taken.watches < self.config.watches;
        taken.watches += usize::from(fits);
        fits
    }

    fn give_watch_back(&self, who: &Id) {
        if let Some(taken) = self.taken.lock().of.get_mut(who) {
            taken.watches = taken.watches.saturating_sub(1);
        }
    }
}

/// A key: an id (§4.1) whose `/`-separated components are not empty.
fn parse_key(text: &str) -> Option<Id> {
    if text.split('/').any(str::is_empty) {
        return None;
    }
    Id::new(text).ok()
}

fn cleared(permit: Permit<'_>) -> Result<Cleared<'_>, fak_abi::Verdict> {
    match permit.charge() {
        Charge::Cleared(cleared) => Ok(cleared),
        Charge::Refuse(verdict) => Err(verdict),
    }
}

fn refuse<T>(permit: Permit<'_>, (reason, site): (Reason, SiteInfo)) -> Outcome<T> {
    Outcome::Refuse(permit.refuse(Refusal::new(reason, site.site()), SPACE))
}

fn refuse_cleared<T>(cleared: Cleared<'_>, (reason, site): (Reason, SiteInfo)) -> Outcome<T> {
    Outcome::Refuse(cleared.refuse(Refusal::new(reason, site.site()), SPACE))
}

fn allow<T>(cleared: Cleared<'_>, seq: u64, value: T) -> Outcome<T> {
    let verdict = cleared.allow(seq);
    Outcome::Allow { value, by: verdict.by() }
}
