//! Writing a journal: every revision in full, as the public format has it, one record in memory at a time.

use std::io;

use fak_abi::Digest;
use fak_abi::json::{self, Member, Sink};
use sha2::{Digest as _, Sha256};

use super::JOURNAL_SCHEMA;
use super::check::members;
use crate::envelope::{Envelope as _, Hash};
use crate::task::Task;

/// Bytes gathered before they are hashed and written.
const CHUNK: usize = 64 << 10;

/// A writer that digests what it writes.
struct Tee<W> {
    out: W,
    hash: Sha256,
    buffer: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: io::Write> Tee<W> {
    fn flush(&mut self, also_hash: bool) {
        if also_hash {
            self.hash.update(&self.buffer);
        }
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(&self.buffer)
        {
            self.failed = Some(error);
        }
        self.buffer.clear();
    }
}

impl<W: io::Write> Sink for Tee<W> {
    fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.flush(true);
        }
    }
}

/// Unknown members that follow others (§5.1).
fn also(rest: &[Member]) -> Vec<u8> {
    if rest.is_empty() {
        return Vec::new();
    }
    let mut out = members(rest);
    out.insert(0, b',');
    out
}

/// Writes the journal of a task, from its first revision to its current one. Record digests are computed here (§5.12).
/// Quadratic in the notes, as the format is.
pub(crate) fn write<W: io::Write>(task: &Task, out: W) -> io::Result<Digest> {
    let mut tee = Tee { out, hash: Sha256::new(), buffer: Vec::with_capacity(CHUNK), failed: None };
    tee.put(b"{\"schema\":");
    json::write_string(&mut tee, JOURNAL_SCHEMA);
    tee.put(b",\"task_id\":");
    json::write_string(&mut tee, task.id.as_str());
    tee.put(b",\"initial\":");
    task.write_revision(&mut tee, &task.initial, 0);
    tee.put(b",\"entries\":[");
    let mut record = Vec::new();
    for (at, revision) in task.later.iter().enumerate() {
        let Some(event) = &revision.event else { continue };
        record.clear();
        task.write_revision(&mut record, revision, at + 1);
        tee.put(if at == 0 { b"{\"event\":" } else { b",{\"event\":" });
        event.write(&mut tee);
        tee.put(b",\"record\":");
        tee.put(&record);
        tee.put(b",\"record_digest\":");
        json::write_string(&mut tee, &Hash::Full(Digest::of(&record)).to_string());
        tee.put(&also(&revision.entry_rest));
        tee.put(b"}");
        if tee.failed.is_some() {
            break;
        }
    }
    tee.put(b"],\"digest\":\"");
    tee.flush(true);
    // The digest is over the journal with an empty one.
    let rest = also(&task.journal_rest);
    tee.hash.update(b"\"");
    tee.hash.update(&rest);
    tee.hash.update(b"}");
    let digest = Digest::from_bytes(tee.hash.clone().finalize().into());
    tee.put(digest.to_string().as_bytes());
    tee.put(b"\"");
    tee.put(&rest);
    tee.put(b"}");
    tee.flush(false);
    match tee.failed {
        Some(error) => Err(error),
        None => tee.out.flush().map(|()| digest),
    }
}
