//! PERFORMANCE rows 13, 15 and 16: appending, viewing, verifying. Row 14 is memory, pinned by `tests/it/memory.rs`.
//! Each group holds the naive way, or the baseline its target is a ratio of.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark is test code"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fak_abi::{AgentHandle, CapSet, Digest, Id, PrincipalSpec};
use fak_adjudicate::Kernel;
use fak_sharedtask::{
    Domain, Envelope, Limits, Note, Patch, Record, Rules, StoreConfig, TaskId, TaskStore, VerifyOptions,
    verify_journal,
};

fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

fn limits() -> Limits {
    Limits { envelope: 64 << 20, ..Limits::default() }
}

/// A note of about 300 bytes, as the public implementation writes them.
fn note(n: usize) -> String {
    format!(
        r#"{{"note_id":"note_{n:06}","kind":"progress","body_ref":{{"kind":"cas","digest":"{}","bytes":128,"taint":"tainted","scope":"fleet","durability":"session"}},"author":{{"kind":"agent","id":"writer"}},"created_at":"2026-01-01T00:00:00Z"}}"#,
        Digest::of(&n.to_le_bytes())
    )
}

fn record(notes: usize) -> Record {
    let notes: Vec<String> = (0..notes).map(note).collect();
    let text = format!(
        r#"{{"schema":"fak.shared-task.v1","task_id":"task_bench","state":"working","title":"a task","body_ref":{{"kind":"cas","digest":"sha256:b","bytes":1,"taint":"tainted","scope":"fleet","durability":"session"}},"artifacts":[],"notes":[{}],"open_decisions":[],"updated_by":{{"kind":"agent","id":"writer"}},"updated_at":"2026-01-01T00:00:00Z"}}"#,
        notes.join(",")
    );
    Record::draft(text.as_bytes(), &limits()).unwrap()
}

struct World {
    store: TaskStore,
    agent: AgentHandle,
    task: TaskId,
    /// Keeps the kernel alive.
    _kernel: Arc<Kernel>,
}

impl World {
    fn new(notes: usize) -> Self {
        let store = TaskStore::new(StoreConfig {
            domain: Domain { fleet: Some(id("f")), tenant: None },
            rules: Rules { limits: limits(), ..Rules::default() },
            ..StoreConfig::default()
        });
        let kernel = Kernel::builder().driver(store.driver()).build().unwrap();
        let spec = PrincipalSpec::agent(id("writer")).fleet(id("f")).caps(CapSet::ALL);
        let agent = kernel.attach(spec).unwrap();
        store.create(record(notes)).unwrap();
        Self { store, agent, task: TaskId::new("task_bench").unwrap(), _kernel: kernel }
    }

    fn patch(&self, n: usize) -> Patch {
        let base = self.store.revision(&self.task).unwrap().1;
        let text = format!(
            r#"{{"schema":"fak.shared-patch.v1","task_id":"task_bench","base_rev":"{base}","actor":{{"kind":"agent","id":"writer"}},"scope":"fleet","durability":"session","ops":[{{"op":"append","path":"/notes","value":{}}}],"message":""}}"#,
            note(n)
        );
        Patch::parse(text.as_bytes(), &limits()).unwrap()
    }
}

/// Appends `iterations` notes to records that start with `notes` and are replaced before they have grown much.
fn append(notes: usize, iterations: u64) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = iterations;
    while left > 0 {
        let round = left.min(if notes > 1000 { 1000 } else { 20 });
        let world = World::new(notes);
        // Every append merges on the first base: stale, as appends of many writers are.
        let patches: Vec<Patch> = (0..round as usize).map(|n| world.patch(1_000_000 + n)).collect();
        let start = Instant::now();
        for patch in &patches {
            black_box(world.store.patch(&world.agent, patch, None).allowed().unwrap());
        }
        spent += start.elapsed();
        left -= round;
    }
    spent
}

fn row_13(c: &mut Criterion) {
    let mut group = c.benchmark_group("record_append");
    for notes in [10usize, 10_000] {
        group.bench_function(format!("note/{notes}"), |b| b.iter_custom(|n| append(notes, n)));
        let record = record(notes);
        group.bench_function(format!("serialise_and_hash/{notes}"), |b| {
            b.iter(|| Digest::of(&black_box(&record).to_json()));
        });
    }
    group.finish();
}

fn row_15(c: &mut Criterion) {
    let mut group = c.benchmark_group("record_view");
    let world = World::new(10_000);
    let entries: Vec<Arc<Note>> = record(10_000).notes.items.into_iter().map(Arc::new).collect();
    group.bench_function("view/10000", |b| {
        b.iter(|| black_box(world.store.view(&world.agent, &world.task).allowed().unwrap()));
    });
    group.bench_function("clone_counted/10000", |b| b.iter(|| black_box(entries.clone())));
    let whole = world.store.record(&world.task).unwrap();
    group.bench_function("deep_copy/10000", |b| b.iter(|| black_box(whole.clone())));
    group.finish();
}

/// The journal of so many appended notes.
fn journal(entries: usize) -> Vec<u8> {
    let world = World::new(0);
    for n in 0..entries {
        world.store.patch(&world.agent, &world.patch(n), None).allowed().unwrap();
    }
    let mut journal = Vec::new();
    world.store.journal(&world.task, &mut journal).unwrap();
    journal
}

fn row_16(c: &mut Criterion) {
    let journal = journal(1_000);
    let mut group = c.benchmark_group("record_verify");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(journal.len() as u64));
    group.bench_function("journal/1000", |b| {
        b.iter(|| verify_journal(black_box(&journal[..]), &VerifyOptions::default()).unwrap());
    });
    group.bench_function("sha256/1000", |b| b.iter(|| Digest::of(black_box(&journal))));
    group.finish();
}

/// The naive way: the whole journal as a tree, every record digested from its own. Of a tenth of the entries, and so of a
/// hundredth of the bytes: of all of them it takes a quarter of a minute.
fn verify_naively(c: &mut Criterion) {
    let journal = journal(100);
    let mut group = c.benchmark_group("record_verify_naive");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(journal.len() as u64));
    group.bench_function("journal/100", |b| {
        b.iter(|| verify_journal(black_box(&journal[..]), &VerifyOptions::default()).unwrap());
    });
    group.bench_function("naive/100", |b| {
        b.iter(|| {
            let tree: serde_json::Value = serde_json::from_slice(&journal).unwrap();
            for entry in tree["entries"].as_array().unwrap() {
                let text = serde_json::to_vec(&entry["record"]).unwrap();
                let record = Record::parse(&text, &limits()).unwrap();
                black_box((record.computed_rev(), record.digest()));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, row_13, row_15, row_16, verify_naively);
criterion_main!(benches);
