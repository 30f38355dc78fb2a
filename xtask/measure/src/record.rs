//! Shared records: appending, viewing, encoding, verifying.

use std::hint::black_box;
use std::sync::Arc;

use fak_abi::{AgentHandle, CapSet, Digest, PrincipalSpec};
use fak_adjudicate::Kernel;
use fak_sharedtask::{
    Domain, Envelope, Limits, Patch, Record, Rules, StoreConfig, TaskId, TaskStore, VerifyOptions,
    verify_journal,
};

use crate::path::Run;
use crate::world::id;

/// Patches that are made ready for [`append`].
pub(crate) const PATCHES: u64 = 1_000;

fn limits() -> Limits {
    Limits { envelope: 64 << 20, ..Limits::default() }
}

/// A note of about 300 bytes, as the public implementation writes them.
pub fn note(n: u64) -> String {
    format!(
        r#"{{"note_id":"note_{n:07}","kind":"progress","body_ref":{{"kind":"cas","digest":"{}","bytes":128,"taint":"tainted","scope":"fleet","durability":"session"}},"author":{{"kind":"agent","id":"writer"}},"created_at":"2026-01-01T00:00:00Z"}}"#,
        Digest::of(&n.to_le_bytes())
    )
}

fn record(notes: u64) -> Record {
    let notes: Vec<String> = (0..notes).map(note).collect();
    let text = format!(
        r#"{{"schema":"fak.shared-task.v1","task_id":"task_measured","state":"working","title":"a task","body_ref":{{"kind":"cas","digest":"sha256:b","bytes":1,"taint":"tainted","scope":"fleet","durability":"session"}},"artifacts":[],"notes":[{}],"open_decisions":[],"updated_by":{{"kind":"agent","id":"writer"}},"updated_at":"2026-01-01T00:00:00Z"}}"#,
        notes.join(",")
    );
    Record::draft(text.as_bytes(), &limits()).unwrap()
}

/// A store with one task, and an agent that may do everything.
pub struct Shelf {
    store: TaskStore,
    agent: AgentHandle,
    task: TaskId,
    _kernel: Arc<Kernel>,
}

impl Shelf {
    /// With a task of so many notes.
    pub fn new(notes: u64) -> Self {
        let store = TaskStore::new(StoreConfig {
            domain: Domain { fleet: Some(id("f")), tenant: None },
            rules: Rules { limits: limits(), ..Rules::default() },
            ..StoreConfig::default()
        });
        let kernel = Kernel::builder().driver(store.driver()).build().unwrap();
        let spec = PrincipalSpec::agent(id("writer")).fleet(id("f")).caps(CapSet::ALL);
        let agent = kernel.attach(spec).unwrap();
        store.create(record(notes)).unwrap();
        Self { store, agent, task: TaskId::new("task_measured").unwrap(), _kernel: kernel }
    }

    /// Patches of one new note each, all on the revision that is current now.
    pub fn patches(&self, count: u64) -> Vec<Patch> {
        let base = self.store.revision(&self.task).unwrap().1;
        let patch = |n| {
            let text = format!(
                r#"{{"schema":"fak.shared-patch.v1","task_id":"task_measured","base_rev":"{base}","actor":{{"kind":"agent","id":"writer"}},"scope":"fleet","durability":"session","ops":[{{"op":"append","path":"/notes","value":{}}}],"message":""}}"#,
                note(1_000_000 + n)
            );
            Patch::parse(text.as_bytes(), &limits()).unwrap()
        };
        (0..count).map(patch).collect()
    }

    /// Patches the task.
    pub fn apply(&self, patch: &Patch) {
        black_box(self.store.patch(&self.agent, patch, None).allowed().unwrap());
    }
}

/// Appends of one note, most of them on a stale base, as those of many writers are.
pub(crate) fn append(notes: u64) -> Run {
    let shelf = Shelf::new(notes);
    let mut patches = shelf.patches(PATCHES).into_iter();
    Run::each(move || shelf.apply(&patches.next().unwrap()))
}

pub(crate) fn view(notes: u64) -> Run {
    let shelf = Shelf::new(notes);
    Run::each(move || drop(black_box(shelf.store.view(&shelf.agent, &shelf.task).allowed().unwrap())))
}

/// What an append would cost if it encoded and hashed the record.
pub(crate) fn encode_and_hash(notes: u64) -> Run {
    let record = record(notes);
    Run::each(move || {
        black_box(Digest::of(&black_box(&record).to_json()));
    })
}

/// The journal of a task to which so many notes were appended.
pub fn journal(entries: u64) -> Vec<u8> {
    let shelf = Shelf::new(0);
    shelf.patches(entries).iter().for_each(|patch| shelf.apply(patch));
    let mut journal = Vec::new();
    shelf.store.journal(&shelf.task, &mut journal).unwrap();
    journal
}

pub(crate) fn verify(entries: u64) -> Run {
    let journal = journal(entries);
    Run::each(move || drop(black_box(verify_journal(&journal[..], &VerifyOptions::default()).unwrap())))
}

/// Plain SHA-256 of the same bytes.
pub(crate) fn sha256(entries: u64) -> Run {
    let journal = journal(entries);
    Run::each(move || {
        black_box(Digest::of(black_box(&journal)));
    })
}
