//! Where an audit log is written: a writer whose end can be cut, handed in by the host. Nothing
//! here opens a file.

use std::io::{self, Seek as _, SeekFrom, Write};

/// A writer that the log can be repaired in (§3.6). `flush` must not return before what was written
/// is as durable as the host wants it: the head advances after it.
///
/// A file opened for reading and appending is one, as durable as the system makes it. A host that wants each drain on the disk
/// before the head advances wraps it:
///
/// ```
/// use std::fs::File;
/// use std::io::{self, Write};
/// use fak_adjudicate::AuditSink;
///
/// struct Synced(File);
///
/// impl Write for Synced {
///     fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
///         self.0.write(bytes)
///     }
///     fn flush(&mut self) -> io::Result<()> {
///         self.0.sync_data()
///     }
/// }
///
/// impl AuditSink for Synced {
///     fn length(&mut self) -> io::Result<u64> {
///         self.0.length()
///     }
///     fn truncate(&mut self, length: u64) -> io::Result<()> {
///         self.0.truncate(length)
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

/// Writes go to its end or to where it was cut; nothing is opened here.
// tidy: allow(files): a file that the host opened and handed in
impl AuditSink for std::fs::File {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}
