//! The audit log of a load: written on one side of a pipe and verified on the other while it is written, so that its
//! length costs nothing.

use std::io::{self, BufReader, BufWriter, PipeWriter, Write};
use std::num::NonZeroUsize;
use std::thread::{self, JoinHandle};

use fak_abi::Timestamp;
use fak_adjudicate::{
    Audit, AuditError, AuditLog, AuditOptions, AuditSink, Checkpoint, Verified, verify_audit,
};

use super::plan::failed;
use crate::error::TaskError;

/// Slots of the queue: enough that acting threads seldom find it full.
const SLOTS: usize = 1 << 16;

/// The two threads behind the log.
pub(super) struct Trail {
    writer: JoinHandle<Result<Checkpoint, AuditError>>,
    verifier: JoinHandle<Result<Verified, AuditError>>,
}

/// The writing side of the pipe. What went in cannot be taken back.
struct Pipe {
    out: BufWriter<PipeWriter>,
    length: u64,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl AuditSink for Pipe {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        if length == self.length { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
    }
}

impl Trail {
    /// Begins a log; the kernel's half of it.
    pub(super) fn start() -> Result<(Audit, Self), TaskError> {
        let (read, write) = io::pipe().map_err(failed)?;
        let sink = Pipe { out: BufWriter::with_capacity(1 << 16, write), length: 0 };
        let slots = NonZeroUsize::new(SLOTS).ok_or_else(|| failed("no audit slots"))?;
        let options = AuditOptions { capacity: slots, share: None };
        let (audit, mut log, _) =
            AuditLog::open(&b""[..], sink, Timestamp::default(), options).map_err(failed)?;
        let writer = thread::spawn(move || {
            while log.drain_blocking()?.is_some() {}
            Ok(log.checkpoint())
        });
        let verifier = thread::spawn(move || verify_audit(BufReader::with_capacity(1 << 16, read), None));
        Ok((audit, Self { writer, verifier }))
    }

    /// Once the kernel is gone: what was verified, if that is what was written.
    pub(super) fn finish(self) -> Result<Verified, String> {
        let gone = |_| "a thread of the log panicked".to_owned();
        let end = self.writer.join().map_err(gone)?.map_err(|error| error.to_string())?;
        let verified = self.verifier.join().map_err(gone)?.map_err(|error| error.to_string())?;
        if verified.end != end {
            return Err(format!("{} lines were written, {} verified", end.count, verified.end.count));
        }
        Ok(verified)
    }
}
