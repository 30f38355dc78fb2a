//! Where an audit log is written: a writer whose end can be cut, handed in by the host. Nothing
//! here opens a file.

// tidy: allow(files): a file that the host opened can be a sink
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// A writer that the log can be repaired in (§3.6). `flush` must not return before what was written
/// is as durable as the host wants it: the head advances after it.
pub trait AuditSink: Write {
    /// Its length in bytes.
    ///
    /// # Errors
    /// What the medium answers.
    fn length(&mut self) -> io::Result<u64>;

    /// Cuts it to `length` bytes; what is written next goes there.
    ///
    /// # Errors
    /// What the medium answers.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// A file that was opened for writing. `flush` hands the bytes to the system and does not wait for
/// the disk; wrap it in a sink that syncs where that is wanted.
impl AuditSink for File {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

impl AuditSink for Vec<u8> {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        Self::truncate(self, usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}
