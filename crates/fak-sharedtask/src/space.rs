//! The space: named mutable cells that many agents use during one run (§5.11). Every access is an act; a cell holds a Ref,
//! whose provenance rides along unchanged.

mod acts;
mod driver;
mod room;
mod watch;

use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use fak_abi::{Driver, DriverLink, Host, Id, Principal, Ref, Rider, ShareScope};
use parking_lot::Mutex;

pub use driver::SPACE_SITES;
use room::Room;
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
///
/// ```
/// use fak_abi::{Capability::*, Id, PrincipalSpec, ShareScope};
/// use fak_adjudicate::Kernel;
/// use fak_sharedtask::{CellWrite, Space, SpaceConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let space = Space::new(SpaceConfig::default());
/// let kernel = Kernel::builder().driver(space.driver()).build()?;
/// let spec = PrincipalSpec::agent(Id::new("alpha")?).fleet(Id::new("crew")?);
/// let alpha = kernel.attach(spec.caps([SpaceWrite, SpaceRead, RefWiden]))?;
///
/// let plan = alpha.widen(&alpha.mint("ship on Friday"), ShareScope::Fleet).ok()?;
/// let first = space.put(&alpha, "plan/date", &plan).ok()?;
/// assert_eq!(first, CellWrite::Done { version: 1 });
/// // The cell is there now: putting again is a conflict, not a refusal.
/// let again = space.put(&alpha, "plan/date", &plan).ok()?;
/// assert_eq!(again, CellWrite::Conflict { current: Some(1) });
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Space {
    core: Arc<Core>,
    rider: Option<Arc<Rider>>,
}

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

/// A cell as it was read (§5.11).
#[derive(Debug, Clone)]
pub struct CellView {
    /// What it holds.
    pub body: Ref,
    /// Its version: from one counter of the space, so that none recurs.
    pub version: u64,
    /// Who wrote it.
    pub writer: Id,
}

/// What a permitted write came to (§5.11).
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
        let core = Core {
            config,
            link: OnceLock::new(),
            rooms: DashMap::new(),
            taken: Mutex::default(),
            versions: std::sync::atomic::AtomicU64::new(0),
        };
        Self { core: Arc::new(core), rider: None }
    }

    /// The same space, whose acts carry this deadline, cancellation and metadata (§2.5).
    #[must_use]
    pub fn riding(&self, rider: Rider) -> Self {
        Self { rider: Some(Arc::new(rider)), ..self.clone() }
    }

    /// The space as a layer of a kernel: its floor rung and its capabilities.
    #[must_use]
    pub fn driver(&self) -> Arc<dyn Driver> {
        Arc::clone(&self.core) as Arc<dyn Driver>
    }
}

impl Core {
    fn host(&self) -> Option<Arc<dyn Host>> {
        self.link.get().and_then(DriverLink::host)
    }

    fn next_seq(&self) -> u64 {
        self.link.get().map_or(0, |link| link.sequence().next())
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

    /// Whether there may be one cell more, and one more of `who`.
    fn has_room_for_cell(&self, who: &Id) -> bool {
        let counts = self.taken.lock();
        let taken = counts.of.get(who).map_or(0, |taken| taken.cells);
        counts.cells < self.config.cells && taken < self.config.cells_each
    }

    fn has_room_for_watch(&self, who: &Id) -> bool {
        self.taken.lock().of.get(who).map_or(0, |taken| taken.watches) < self.config.watches
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
