//! The records: notes are appended by many agents at once; then every record is looked at, and some journals are verified.

use std::io::{self, BufReader, BufWriter, Write as _};
use std::thread;

use fak_abi::Outcome;
use fak_sharedtask::{Envelope as _, Limits, Patch, VerifyOptions, verify_journal};
use indicatif::ProgressBar;
use serde_json::json;

use super::messages::{Ledger, each_thread};
use super::plan::{Plan, World, failed};
use crate::error::TaskError;

fn body(number: u64) -> serde_json::Value {
    json!({"kind": "cas", "digest": format!("sha256:{number:064x}"), "bytes": 5, "taint": "tainted",
        "scope": "fleet", "durability": "session"})
}

/// Makes every record and appends every note. Threads take records in turn, writers take turns within one.
pub(super) fn append(
    world: &World,
    plan: &Plan,
    ledger: &Ledger,
    bar: &ProgressBar,
) -> Result<(), TaskError> {
    for task in 0..plan.tasks {
        let record = json!({
            "schema": "fak.shared-task.v1", "task_id": Plan::task(task)?.as_str(), "rev": "sha256:ignored",
            "state": "working", "title": format!("task {task}"), "body_ref": body(0), "artifacts": [],
            "notes": [], "open_decisions": [], "updated_by": {"kind": "agent", "id": "host"},
            "updated_at": "2026-01-01T00:00:00Z"
        });
        world.store.create_json(record.to_string().as_bytes()).map_err(failed)?;
    }
    each_thread(plan, |thread| {
        // Of one record, every thread appends its part: appends merge on any base.
        for task in 0..plan.tasks {
            let id = Plan::task(task)?;
            let base = world.store.revision_at(&id, 0).ok_or_else(|| failed("a record has no beginning"))?;
            for note in (0..plan.notes).filter(|note| note % plan.threads == thread) {
                let writer = world.agent((task + note) % plan.agents)?;
                let author = json!({"kind": "agent", "id": writer.agent().principal().id().as_str()});
                let patch = json!({
                    "schema": "fak.shared-patch.v1", "task_id": id.as_str(), "base_rev": base.to_string(),
                    "actor": author, "scope": "fleet", "durability": "session", "message": "a note",
                    "ops": [{"op": "append", "path": "/notes", "value": {"note_id": format!("note-{note}"),
                        "kind": "comment", "body_ref": body(note), "author": author,
                        "created_at": "2026-01-01T00:00:00Z"}}]
                });
                let patch = Patch::parse(patch.to_string().as_bytes(), &Limits::default()).map_err(failed)?;
                let write = || world.store.patch(writer.agent(), &patch, None);
                match ledger.patiently(Outcome::verdict, write) {
                    Outcome::Allow { value, .. } if value.result.is_accepted() => bar.inc(1),
                    Outcome::Allow { value, .. } => {
                        return Err(failed(format!("a note is answered {}", value.result.reason)));
                    }
                    Outcome::Refuse(verdict) => return Err(failed(format!("a note is answered {verdict}"))),
                }
            }
        }
        Ok(())
    })
}

/// Every record has every note, and its revision is the digest of what it holds.
pub(super) fn check(
    world: &World,
    plan: &Plan,
    ledger: &Ledger,
    bar: &ProgressBar,
) -> Result<Result<(), String>, TaskError> {
    for task in 0..plan.tasks {
        let id = Plan::task(task)?;
        let Some((number, rev)) = world.store.revision(&id) else {
            return Ok(Err(format!("{id:?} is gone")));
        };
        if number as u64 != plan.notes {
            return Ok(Err(format!("{id:?} has {number} revisions, not {}", plan.notes)));
        }
        if world.store.recomputed_rev(&id).as_ref() != Some(&rev) {
            return Ok(Err(format!("the revision of {id:?} is not the digest of the record")));
        }
        let reader = world.agent(task % plan.agents)?;
        let view = ledger.patiently(Outcome::verdict, || world.store.view(reader.agent(), &id));
        let Some(view) = view.allowed() else {
            return Ok(Err(format!("{id:?} cannot be viewed")));
        };
        let mut seen: Vec<u64> =
            view.notes().filter_map(|note| note.note_id.strip_prefix("note-")?.parse().ok()).collect();
        seen.sort_unstable();
        if !seen.iter().copied().eq(0..plan.notes) {
            return Ok(Err(format!("{id:?} shows {} of {} notes", seen.len(), plan.notes)));
        }
        bar.inc(1);
    }
    Ok(Ok(()))
}

/// Some journals, written on one side of a pipe and verified on the other: nothing is held in memory or on disk.
pub(super) fn verify(world: &World, plan: &Plan, bar: &ProgressBar) -> Result<Result<(), String>, TaskError> {
    for task in 0..plan.journals {
        let id = Plan::task(task)?;
        let (read, write) = io::pipe().map_err(failed)?;
        let options = VerifyOptions { checkpoint: world.store.checkpoint(&id), ..VerifyOptions::default() };
        let (written, verified) = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut out = BufWriter::with_capacity(1 << 16, write);
                let written = world.store.journal(&id, &mut out).map(drop).map_err(|error| error.to_string());
                written.and_then(|()| out.flush().map_err(|error| error.to_string()))
            });
            let verified = verify_journal(BufReader::with_capacity(1 << 16, read), &options);
            (writer.join().unwrap_or_else(|_| Err("the writer panicked".to_owned())), verified)
        });
        match (verified, written) {
            (Ok(summary), Ok(())) if summary.entries as u64 == plan.notes => bar.inc(1),
            (Ok(summary), Ok(())) => return Ok(Err(format!("{id:?} has {} entries", summary.entries))),
            (Err(error), _) => return Ok(Err(format!("{id:?}: {error}"))),
            (_, Err(error)) => return Ok(Err(format!("{id:?}: {error}"))),
        }
    }
    Ok(Ok(()))
}
