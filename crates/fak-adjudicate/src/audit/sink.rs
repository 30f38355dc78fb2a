//! Where an audit log is written: a writer whose end can be cut, handed in by the host. Nothing
//! here opens a file.

use std::io::{self, Write};

/// A writer that the log can be repaired in (§3.6). `flush` must not return before what was written
/// is as durable as the host wants it: the head advances after it.
///
/// For a file:
///
/// ```
/// use std::fs::File;
/// use std::io::{self, Seek, SeekFrom, Write};
/// use fak_adjudicate::AuditSink;
///
/// struct OnDisk(File);
///
/// impl Write for OnDisk {
///     fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
///         self.0.write(bytes)
///     }
///     fn flush(&mut self) -> io::Result<()> {
///         self.0.sync_data() // or nothing, if the system may take its time
///     }
/// }
///
/// impl AuditSink for OnDisk {
///     fn length(&mut self) -> io::Result<u64> {
///         Ok(self.0.metadata()?.len())
///     }
///     fn truncate(&mut self, length: u64) -> io::Result<()> {
///         self.0.set_len(length)?;
///         self.0.seek(SeekFrom::Start(length)).map(drop)
///     }
/// }
/// ```
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

impl AuditSink for Vec<u8> {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        Self::truncate(self, usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}
