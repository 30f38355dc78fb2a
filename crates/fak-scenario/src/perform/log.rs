//! The audit log of a run (§3.6): in memory, or in a file that outlives it.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use fak_abi::{Timestamp, VerdictKind};
use fak_adjudicate::{Audit, AuditError, AuditKind, AuditLog, AuditOptions, AuditReader, AuditSink, Opened};
use serde_json::Value;

use crate::error::ScenarioError;

/// Where the lines go.
enum Place {
    /// Nowhere but here.
    Memory(Vec<u8>),
    /// A file, and how to read it again.
    File(File, PathBuf),
}

/// Lines that were written and not looked at yet.
type Recent = Arc<Mutex<Vec<u8>>>;

/// Where the lines go, and those of the step that is performed.
struct Sink {
    place: Place,
    recent: Recent,
}

/// What the log has of an act: for a step whose answer does not say which rung permitted it, or as whom it was done.
pub(super) struct Decided {
    /// The rung.
    pub(super) by: Option<String>,
    /// Whose act it was.
    pub(super) principal: Option<String>,
}

/// The log of one run, and where in it the run began.
pub(super) struct Log {
    log: AuditLog<Sink>,
    recent: Recent,
    /// Lines that were there before.
    before: u64,
}

/// What the log says of the run so far.
pub(super) struct Tally {
    pub(super) verifies: bool,
    pub(super) entries: u64,
    pub(super) denied: u64,
}

impl Log {
    /// Opens the log: an empty one, or the one in `path` at its end.
    pub(super) fn open(path: Option<&Path>, at: Timestamp) -> Result<(Audit, Self), ScenarioError> {
        let recent = Recent::default();
        let opened = match path {
            None => {
                let sink = Sink { place: Place::Memory(Vec::new()), recent: Arc::clone(&recent) };
                AuditLog::open(io::empty(), sink, at, AuditOptions::default())
            }
            Some(path) => Self::resume(path, at, &recent),
        };
        let (audit, log, opened) = opened.map_err(|source| named(path, source))?;
        Ok((audit, Self { log, recent, before: opened.end.count }))
    }

    /// Opens the log in `path` at its end.
    fn resume(
        path: &Path,
        at: Timestamp,
        recent: &Recent,
    ) -> Result<(Audit, AuditLog<Sink>, Opened), AuditError> {
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            // It is read back: a pipe would keep its reader waiting for ever.
            return Err(AuditError::Write(io::Error::other("expected a regular file")));
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(AuditError::Write)?;
        let existing = BufReader::new(file.try_clone().map_err(AuditError::Write)?);
        file.seek(SeekFrom::Start(0)).map_err(AuditError::Write)?;
        let sink = Sink { place: Place::File(file, path.to_owned()), recent: Arc::clone(recent) };
        AuditLog::open(existing, sink, at, AuditOptions::default())
    }

    /// Writes what is queued.
    fn drain(&mut self) -> Result<(), ScenarioError> {
        match self.log.drain() {
            Ok(_) => Ok(()),
            Err(source) => Err(named(self.log.sink().path(), source)),
        }
    }

    /// Writes what is queued, and says what it has of the last act since this was asked before.
    pub(super) fn decided(&mut self) -> Result<Option<Decided>, ScenarioError> {
        self.drain()?;
        let recent = std::mem::take(&mut *self.recent.lock().unwrap_or_else(PoisonError::into_inner));
        let entries =
            recent.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let mut acts =
            entries.filter(|entry: &Value| entry.get("kind").and_then(Value::as_str) == Some("act"));
        Ok(acts.next().map(|entry| {
            let text = |name| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            Decided { by: text("by").filter(|by| !by.is_empty()), principal: text("principal") }
        }))
    }

    /// Verifies the log and counts the entries of this run.
    pub(super) fn tally(&mut self) -> Result<Tally, ScenarioError> {
        self.drain()?;
        Ok(match &self.log.sink().place {
            Place::Memory(bytes) => tally(&bytes[..], self.before),
            Place::File(_, path) => {
                let file = File::open(path).map_err(|error| named(Some(path), AuditError::Read(error)))?;
                tally(BufReader::new(file), self.before)
            }
        })
    }
}

/// An error of the log, with the file it is kept in.
fn named(path: Option<&Path>, source: AuditError) -> ScenarioError {
    match path {
        Some(path) => ScenarioError::AuditFile { path: path.to_owned(), source: Box::new(source) },
        None => ScenarioError::Audit(source),
    }
}

impl Sink {
    /// The file, if it is one.
    fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Memory(_) => None,
            Place::File(_, path) => Some(path),
        }
    }
}

/// Reads a log through, as any verifier does.
fn tally(input: impl BufRead, before: u64) -> Tally {
    let mut reader = AuditReader::new(input);
    let mut tally = Tally { verifies: true, entries: 0, denied: 0 };
    loop {
        match reader.next_record() {
            Ok(Some(record)) if record.n > before => {
                tally.entries += 1;
                let denied = record.kind == AuditKind::Act && record.verdict == Some(VerdictKind::Deny);
                tally.denied += u64::from(denied);
            }
            Ok(Some(_)) => {}
            Ok(None) => return tally,
            Err(_) => return Tally { verifies: false, ..tally },
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.place {
            Place::Memory(memory) => memory.write(bytes),
            Place::File(file, _) => file.write(bytes),
        }?;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.extend(bytes.iter().take(written));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Memory(_) => Ok(()),
            Place::File(file, _) => file.flush(),
        }
    }
}

impl AuditSink for Sink {
    fn length(&mut self) -> io::Result<u64> {
        match &mut self.place {
            Place::Memory(memory) => memory.length(),
            Place::File(file, _) => file.length(),
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        match &mut self.place {
            Place::Memory(memory) => AuditSink::truncate(memory, length),
            Place::File(file, _) => file.truncate(length),
        }
    }
}
