//! What a host keeps, and a clean exit: the audit in a file, written by a thread of its own (§3.6), and a record as a journal (§5.10).
//! All else is in memory only. The host runs twice over one folder, as a process that was started again would.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::{
    error::Error,
    fs::{self, File, OpenOptions},
    io::{BufReader, ErrorKind},
    path::Path,
    sync::Arc,
    thread,
};

use fak_abi::{Capability::*, Clock as _, Id, PrincipalSpec};
use fak_adjudicate::{AuditError, AuditLog, AuditOptions, Kernel, ManualClock, verify_audit};
use fak_sharedtask::{Domain, StoreConfig, TaskId, TaskStore};
use serde_json::json;

const TASK: &str = "task_notes";
const BODY: &str = "sha256:7743ce348d9284d677a185f33295b92266cc435a5b5f775029b300066d26693a";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("fak-keep-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let ran = run(&folder, "2026-01-01T00:00:00Z", "note_1")
        .and_then(|()| run(&folder, "2026-01-02T00:00:00Z", "note_2"));
    fs::remove_dir_all(&folder)?;
    ran
}

fn run(folder: &Path, now: &str, note: &str) -> Result<(), Box<dyn Error>> {
    let (audit_file, journal_file) = (folder.join("audit.jsonl"), folder.join("notes.json"));
    let time = Arc::new(ManualClock::at(now.parse()?));

    // The log goes on where it ended: what is there is verified first, and a torn last line is cut off.
    let sink = OpenOptions::new().create(true).read(true).append(true).open(&audit_file)?;
    let existing = BufReader::new(File::open(&audit_file)?);
    let (audit, mut log, opened) = AuditLog::open(existing, sink, time.now(), AuditOptions::default())?;
    println!("the audit goes on after line {}", opened.end.count);
    let audit = Arc::new(audit);
    let scribe = thread::spawn(move || -> Result<_, AuditError> {
        while log.drain_blocking()?.is_some() {}
        Ok(log.checkpoint())
    });

    let fleet = Id::new("docs")?;
    let domain = Domain { fleet: Some(fleet.clone()), tenant: None };
    let store = TaskStore::new(StoreConfig { domain, ..StoreConfig::default() });
    let kernel = Kernel::builder().driver(store.driver()).audit(audit.clone()).time(time).build()?;
    let task = load(&store, &journal_file, now)?;
    let spec = PrincipalSpec::agent(Id::new("writer")?).fleet(fleet);
    let writer = kernel.attach(spec.caps([SharedtaskWrite, SharedtaskRead]))?;

    let (revision, base) = store.revision(&task).ok_or("no such task")?;
    println!("the record has revision {revision}");
    let body = json!({"kind": "cas", "digest": BODY, "bytes": 5, "taint": "tainted", "scope": "fleet", "durability": "session"});
    let author = json!({"kind": "agent", "id": "writer"});
    let value =
        json!({"note_id": note, "author": author, "kind": "comment", "body_ref": body, "created_at": now});
    let patch = json!({
        "schema": "fak.shared-patch.v1", "task_id": TASK, "base_rev": base.to_string(), "scope": "fleet",
        "durability": "session", "actor": author, "message": "",
        "ops": [{"op": "append", "path": "/notes", "value": value}],
    });
    let patched = store.patch_json(&writer, &serde_json::to_vec(&patch)?, None)?.ok()?;
    println!("writer adds {note}: {}", patched.result.verdict);
    save(&store, &task, &journal_file)?;

    // A clean exit. The handle, the kernel and the store still stand: closing the log is what ends the thread. What would be done after
    // it is refused.
    audit.close();
    println!("after that, writer reads: {}", store.view(&writer, &task).verdict());
    let end = scribe.join().map_err(|_| "the scribe panicked")??;
    // Kept elsewhere, it shows that the file was cut or rewritten.
    verify_audit(BufReader::new(File::open(&audit_file)?), Some(&end))?;
    println!("the audit ends with line {}", end.count);
    Ok(())
}

/// The record as the last run left it, or a new one.
fn load(store: &TaskStore, file: &Path, now: &str) -> Result<TaskId, Box<dyn Error>> {
    match File::open(file) {
        Ok(journal) => Ok(store.load(BufReader::new(journal))?),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let body = json!({"kind": "cas", "digest": BODY, "bytes": 5, "taint": "tainted", "scope": "fleet", "durability": "session"});
            store.create_json(&serde_json::to_vec(&json!({
                "schema": "fak.shared-task.v1", "task_id": TASK, "rev": BODY, "state": "draft", "title": "Release notes",
                "body_ref": body, "artifacts": [], "notes": [], "open_decisions": [],
                "updated_by": {"kind": "human", "id": "ed"}, "updated_at": now,
            }))?)?;
            Ok(TaskId::new(TASK).ok_or("an id of a task begins with task_")?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Beside the old journal first, so that a crash leaves one of the two whole.
fn save(store: &TaskStore, task: &TaskId, file: &Path) -> Result<(), Box<dyn Error>> {
    let beside = file.with_extension("new");
    let out = File::create(&beside)?;
    store.journal(task, &out)?;
    out.sync_all()?;
    Ok(fs::rename(beside, file)?)
}
