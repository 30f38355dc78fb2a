//! A store of shared records: what the host does with it. What agents do is in `acts` and `reads`, each of them an act
//! that the kernel decides (§1).

mod acts;
mod admit;
mod done;
mod driver;
mod explain;
mod reads;
mod replay;
mod slot;
mod view;
mod watch;

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use fak_abi::{Digest, Driver, DriverLink, Id, Rider, Timestamp, WitnessResolver};
use parking_lot::Mutex;

use crate::envelope::{Envelope as _, Hash, Record, TaskId};
use crate::error::SharedTaskError;
use crate::journal::{self, Checkpoint, JournalError, Tear};
use crate::merge::check_new;
use crate::rules::Rules;
use crate::sight::{Domain, Sight};
use crate::task::Task;
pub use acts::Patched;
pub use driver::STORE_SITES;
use replay::Books;
use slot::Slot;
pub use view::{EventView, EventsView, TaskView};
pub use watch::{TaskWatch, Watched};

/// What a store is made with (§5.2).
#[derive(Clone, Default)]
pub struct StoreConfig {
    /// Whom it serves.
    pub domain: Domain,
    /// What it asks of patches.
    pub rules: Rules,
    /// How much one principal may take of it.
    pub bounds: Bounds,
    /// Who can confirm that a ref deserves to be trusted, besides the kernel's own witnesses (§5.5).
    pub witnesses: Vec<Arc<dyn WitnessResolver>>,
}

/// How much one principal may take of a store (§4.12); beyond it, RATE_LIMITED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Held patches of one principal that wait; default 64.
    pub held: usize,
    /// Watches of one principal; default 256.
    pub watches: usize,
    /// Records of one principal's making; default 1,024.
    pub records: usize,
    /// Events a watch may fall behind before it is told so and resumes at the head; default 1,024.
    pub lag: usize,
    /// Held patches that are over and still answer, per record; default 1,024.
    pub decided: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { held: 64, watches: 256, records: 1024, lag: 1024, decided: 1024 }
    }
}

/// A store of shared records, built into one kernel (§3.1). Clones share it.
///
/// Locks are per record: acts on different records do not wait for each other, and no foreign code runs under a lock.
///
/// ```
/// use fak_abi::{Capability::*, Id, PrincipalSpec, ShareScope, Timestamp};
/// use fak_adjudicate::Kernel;
/// use fak_sharedtask::{BodyRef, Domain, Patch, Record, StoreConfig, TaskId, TaskStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fleet = Id::new("crew")?;
/// let domain = Domain { fleet: Some(fleet.clone()), tenant: None };
/// let store = TaskStore::new(StoreConfig { domain, ..StoreConfig::default() });
/// let kernel = Kernel::builder().driver(store.driver()).build()?;
/// let attach = |name| -> Result<_, Box<dyn std::error::Error>> {
///     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(fleet.clone());
///     Ok(kernel.attach(spec.caps([SharedtaskWrite, SharedtaskRead]))?)
/// };
/// let (lead, dev) = (attach("lead")?, attach("dev")?);
///
/// let task = TaskId::new("task_notes").ok_or("task_ and a name")?;
/// let body = BodyRef::of(b"write them", ShareScope::Fleet);
/// let record = Record::new(task.clone(), lead.principal(), "Notes", body.clone(), Timestamp::default());
/// let base = store.create_by(&lead, &record).ok()??;
///
/// // Two appends on one base: both are there.
/// for (who, note) in [(&lead, "n1"), (&dev, "n2")] {
///     let patch = Patch::new(task.clone(), base.clone(), who.principal());
///     let patch = patch.note(note, body.clone(), Timestamp::default());
///     assert!(store.patch(who, &patch, None).ok()?.result.is_accepted());
/// }
/// assert_eq!(store.view(&dev, &task).ok()?.notes().count(), 2);
///
/// // A title needs the current base, and a patch that no merge does says why.
/// let patch = Patch::new(task, base, dev.principal()).title("");
/// let denied = store.patch(&dev, &patch, None).ok()?;
/// assert_eq!(denied.fault.ok_or("not denied")?.at, "/ops/0/value");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TaskStore {
    core: Arc<Core>,
    rider: Option<Arc<Rider>>,
}

struct Core {
    config: StoreConfig,
    link: OnceLock<DriverLink>,
    tasks: DashMap<TaskId, Arc<Mutex<Slot>>>,
    books: Books,
    /// What each principal takes: held patches, watches, records.
    taken: DashMap<Id, Taken>,
}

/// What one principal takes of a store.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    held: usize,
    watches: usize,
    records: usize,
}

impl TaskStore {
    /// A store without records. Hand its [`TaskStore::driver`] to a kernel before agents act.
    #[must_use]
    pub fn new(config: StoreConfig) -> Self {
        let core = Core {
            config,
            link: OnceLock::new(),
            tasks: DashMap::new(),
            books: Books::default(),
            taken: DashMap::new(),
        };
        Self { core: Arc::new(core), rider: None }
    }

    /// The same store, whose acts carry this deadline, cancellation and metadata (§2.5): what a budget charges as `cost`
    /// (§3.8) is in the metadata.
    #[must_use]
    pub fn riding(&self, rider: Rider) -> Self {
        Self { rider: Some(Arc::new(rider)), ..self.clone() }
    }

    /// The store as a layer of a kernel: its floor rung and its capabilities.
    #[must_use]
    pub fn driver(&self) -> Arc<dyn Driver> {
        Arc::clone(&self.core) as Arc<dyn Driver>
    }

    /// What it was made with.
    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        &self.core.config
    }

    /// Creates a record as the host. Its `rev` is ignored and computed; everything else stays as given. The host's own
    /// creates need no witness.
    ///
    /// # Errors
    /// If a record of that id is there, or this one is none that patches could have made.
    pub fn create(&self, record: Record) -> Result<Hash, SharedTaskError> {
        self.core.insert(record, &Sight::host(), &|_| true)
    }

    /// As [`TaskStore::create`], from a text.
    ///
    /// # Errors
    /// As there, and if the text is no record.
    pub fn create_json(&self, text: &[u8]) -> Result<Hash, SharedTaskError> {
        self.create(Record::draft(text, &self.core.config.rules.limits)?)
    }

    /// Loads a journal as the host: verified, its record is live again and continues chain, numbering and clock (§5.10).
    ///
    /// # Errors
    /// If the journal does not verify, is opaque, or its record is there already; the store is then unchanged.
    pub fn load<R: Read>(&self, input: R) -> Result<TaskId, SharedTaskError> {
        let (task, _) = journal::load(input, &self.core.config.rules.limits, false)?;
        self.core.adopt(task)
    }

    /// As [`TaskStore::load`], for a journal that may have been torn while it was written: everything before the tear is
    /// verified and loaded, and the tear is reported.
    ///
    /// # Errors
    /// As there; what is torn before the initial record is whole cannot be loaded.
    pub fn recover<R: Read>(&self, input: R) -> Result<(TaskId, Option<Tear>), SharedTaskError> {
        let (task, tear) = journal::load(input, &self.core.config.rules.limits, true)?;
        Ok((self.core.adopt(task)?, tear))
    }

    /// Writes the journal of a record as the host: whole, private entries included (§5.10). Record digests are computed
    /// here. It is written from a snapshot, without the record's lock.
    ///
    /// # Errors
    /// If there is no such record, or `out` fails.
    pub fn journal<W: Write>(&self, task: &TaskId, out: W) -> Result<Digest, SharedTaskError> {
        let slot = self.core.slot(task).ok_or_else(|| SharedTaskError::Unknown(task.to_string()))?;
        let snapshot = slot.lock().task.clone();
        journal::write(&snapshot, out).map_err(|error| JournalError::Write(error).into())
    }

    /// The end of a record's chain, to be kept outside (§5.10); none for an unknown record, or one whose first revision
    /// has no full digest.
    #[must_use]
    pub fn checkpoint(&self, task: &TaskId) -> Option<Checkpoint> {
        let slot = self.core.slot(task)?;
        let slot = slot.lock();
        Some(Checkpoint {
            task_id: task.clone(),
            revision: slot.task.number(),
            head: journal::head(&slot.task)?,
        })
    }

    /// A record as the host sees it: whole. A deep copy, linear in it.
    #[must_use]
    pub fn record(&self, task: &TaskId) -> Option<Record> {
        Some(self.core.slot(task)?.lock().task.record())
    }

    /// The number and the digest of a record's current revision.
    #[must_use]
    pub fn revision(&self, task: &TaskId) -> Option<(usize, Hash)> {
        let slot = self.core.slot(task)?;
        let slot = slot.lock();
        Some((slot.task.number(), slot.task.current().rev.clone()))
    }

    /// The digest of a record's revision of that number: what `@0`, `@1` … mean in a scenario.
    #[must_use]
    pub fn revision_at(&self, task: &TaskId, number: usize) -> Option<Hash> {
        let slot = self.core.slot(task)?;
        let slot = slot.lock();
        slot.task.revision(number).map(|revision| revision.rev.clone())
    }

    /// The ids of all records, in order.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskId> {
        let mut ids: Vec<TaskId> = self.core.tasks.iter().map(|entry| entry.key().clone()).collect();
        ids.sort_unstable();
        ids
    }

    /// The digest a record must have by recomputing everything, for tests and audits: equal to its `rev`.
    #[must_use]
    pub fn recomputed_rev(&self, task: &TaskId) -> Option<Hash> {
        self.record(task).map(|record| record.computed_rev())
    }
}

impl Core {
    fn slot(&self, task: &TaskId) -> Option<Arc<Mutex<Slot>>> {
        self.tasks.get(task).map(|entry| Arc::clone(entry.value()))
    }

    fn now(&self) -> Timestamp {
        self.link.get().map_or_else(Timestamp::default, |link| link.clock().now())
    }

    /// Creates a record for whoever `sight` belongs to.
    fn insert(
        &self,
        mut record: Record,
        sight: &Sight,
        confirmed: &dyn Fn(&Hash) -> bool,
    ) -> Result<Hash, SharedTaskError> {
        if let Err((path, reason)) = check_new(&record, &self.config.rules, sight, confirmed) {
            return Err(SharedTaskError::Refused { path, reason });
        }
        if sight.reader().is_some() {
            record.updated_at = self.now().to_string().into();
        }
        record.rev = record.computed_rev();
        // One that was made in code has the limits of one that was read, or its journal could not be (§8).
        Record::parse(&record.to_json(), &self.config.rules.limits)?;
        let rev = record.rev.clone();
        self.adopt(Task::new(record)).map(|_| rev)
    }

    fn adopt(&self, task: Task) -> Result<TaskId, SharedTaskError> {
        let id = task.id.clone();
        match self.tasks.entry(id.clone()) {
            dashmap::Entry::Occupied(_) => Err(SharedTaskError::Exists(id.to_string())),
            dashmap::Entry::Vacant(entry) => {
                entry.insert(Arc::new(Mutex::new(Slot::new(task))));
                Ok(id)
            }
        }
    }

    /// Counts one more of something a principal takes, within its bound.
    fn take(&self, who: &Id, count: impl Fn(&mut Taken) -> &mut usize, bound: usize) -> bool {
        let mut taken = self.taken.entry(who.clone()).or_default();
        let count = count(&mut taken);
        let fits = *count < bound;
        *count += usize::from(fits);
        fits
    }

    /// Counts one less.
    fn give_back(&self, who: &Id, count: impl Fn(&mut Taken) -> &mut usize) {
        if let Some(mut taken) = self.taken.get_mut(who) {
            let count = count(&mut taken);
            *count = count.saturating_sub(1);
        }
    }
}
