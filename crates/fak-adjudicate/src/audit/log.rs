//! The host's half of the audit: what drains the queue into the sink (§3.6).

use std::io::BufRead;
use std::num::NonZeroUsize;
use std::sync::Arc;

use fak_abi::{Digest, Timestamp};

use super::entry::AuditEntry;
use super::error::{AuditError, AuditFault};
use super::queue::{Audit, Gap, Queue, Spares};
use super::sink::AuditSink;
use super::verify::{AuditReader, Checkpoint, Torn};

/// Lines are written this many bytes at a time.
const CHUNK: usize = 64 << 10;

/// How much an audit may queue (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditOptions {
    /// Slots of the queue, reserved ones counted; default 16,384.
    pub capacity: NonZeroUsize,
    /// How many entries of one principal may be queued, so that it cannot exhaust the others
    /// (§4.12); by default three quarters of a queue of 64 or more, and all of a smaller one.
    pub share: Option<NonZeroUsize>,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self { capacity: NonZeroUsize::MIN.saturating_add(16_383), share: None }
    }
}

/// What was found in a log that was opened (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Its end, without a torn line.
    pub end: Checkpoint,
    /// The torn last line that was cut off. The first entry drained says so in the log as well.
    pub torn: Option<Torn>,
}

/// What one drain wrote (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Lines.
    pub lines: u64,
    /// What had found no slot before it.
    pub gap: Option<Gap>,
}

/// The host's half of an audit log: owns the sink and writes what the kernel queued (§3.6).
///
/// The chain's head advances only after a write succeeded. When one fails, the lines stay queued,
/// what reached the sink is cut off again, and every act is refused until a later drain succeeds.
///
/// ```
/// use fak_adjudicate::{AuditLog, AuditOptions, verify_audit};
/// let (audit, mut log, _) = AuditLog::open(&b""[..], Vec::new(), Default::default(), AuditOptions::default())?;
/// # let _ = audit;
/// log.drain()?;
/// assert_eq!(verify_audit(&log.sink()[..], None)?.end, log.checkpoint());
/// # Ok::<(), fak_adjudicate::AuditError>(())
/// ```
#[derive(Debug)]
pub struct AuditLog<S> {
    queue: Arc<Queue>,
    sink: S,
    end: Checkpoint,
    /// Bytes of the lines the head stands for.
    length: u64,
    /// A failed write left bytes in the sink that could not be cut off yet.
    ragged: bool,
    /// Taken from the queue, not written yet.
    pending: Vec<AuditEntry>,
    spares: Spares,
    buffer: Vec<u8>,
}

impl<S: AuditSink> AuditLog<S> {
    /// Opens a log: reads what is there, cuts off a torn last line, and goes on after it. `existing`
    /// must read what `sink` holds, which is empty for a new log; `at` is the time of the entry that
    /// reports a repair: now, as `SystemClock.now()` or the kernel's own clock says. Linear in the log.
    ///
    /// A log in a file is opened twice, once to read what is there and once to append:
    ///
    /// ```
    /// use fak_abi::Clock as _;
    /// use fak_adjudicate::{AuditLog, AuditOptions, Kernel, SystemClock};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = std::env::temp_dir().join(format!("fak-doc-{}.jsonl", std::process::id()));
    /// let sink = std::fs::OpenOptions::new().create(true).read(true).append(true).open(&path)?;
    /// let existing = std::io::BufReader::new(std::fs::File::open(&path)?);
    /// let (audit, mut log, _) = AuditLog::open(existing, sink, SystemClock.now(), AuditOptions::default())?;
    /// let kernel = Kernel::builder().audit(std::sync::Arc::new(audit)).build()?;
    /// log.drain()?;
    /// # drop(kernel);
    /// # std::fs::remove_file(path)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AuditError::Line`] if the log does not verify: nothing is appended to such a log.
    pub fn open(
        existing: impl BufRead,
        mut sink: S,
        at: Timestamp,
        options: AuditOptions,
    ) -> Result<(Audit, Self, Opened), AuditError> {
        let mut reader = AuditReader::new(existing);
        loop {
            match reader.next_record() {
                Ok(Some(_)) => {}
                Ok(None) | Err(AuditError::Line { fault: AuditFault::Torn, .. }) => break,
                Err(error) => return Err(error),
            }
        }
        let (end, length, torn) = (reader.end(), reader.bytes(), reader.torn());
        let expected = length + torn.map_or(0, |torn| torn.bytes);
        let actual = sink.length().map_err(AuditError::Write)?;
        if actual != expected {
            return Err(AuditError::Mismatch { expected, actual });
        }
        sink.truncate(length).map_err(AuditError::Write)?;
        let capacity = options.capacity.get();
        let share = options.share.map_or_else(
            || if capacity >= 64 { capacity - capacity / 4 } else { usize::MAX },
            NonZeroUsize::get,
        );
        let queue = Queue::new(capacity, share);
        let audit = Audit::new(Arc::clone(&queue));
        let pending = torn.map(|torn| AuditEntry::repair(at, torn.bytes)).into_iter().collect();
        let log = Self {
            queue,
            sink,
            end,
            length,
            ragged: false,
            pending,
            spares: Spares::default(),
            buffer: Vec::new(),
        };
        Ok((audit, log, Opened { end, torn }))
    }

    /// Writes everything that is queued. Acts go on meanwhile; only this thread waits for the sink.
    ///
    /// # Errors
    /// [`AuditError::Write`] if the sink fails. From then on every act is refused, until a drain
    /// succeeds; nothing that was queued is lost, and the log verifies as it stands.
    pub fn drain(&mut self) -> Result<Drained, AuditError> {
        let drained = self.try_drain();
        self.queue.set_failed(drained.is_err());
        drained
    }

    /// As [`AuditLog::drain`], after waiting until something is queued: for a thread of the host's.
    /// `None` once the kernel is gone, or the log was [closed](Audit::close), and everything is written.
    ///
    /// The kernel is gone when nothing keeps it any more: no `Arc` of the kernel, no [`AgentHandle`](fak_abi::AgentHandle), and nothing
    /// that has one in it (an endpoint, a channel or subscription, a guard of a leased message, a pending reply or collective, a group,
    /// a watch). A host that cannot tell when they all are dropped closes the log.
    ///
    /// ```
    /// use std::{sync::Arc, thread};
    /// use fak_abi::{Id, PrincipalSpec};
    /// use fak_adjudicate::{AuditError, AuditLog, AuditOptions, Kernel};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (audit, mut log, _) = AuditLog::open(&b""[..], Vec::new(), Default::default(), AuditOptions::default())?;
    /// let scribe = thread::spawn(move || -> Result<_, AuditError> {
    ///     while log.drain_blocking()?.is_some() {}
    ///     Ok(log.checkpoint())
    /// });
    /// let audit = Arc::new(audit);
    /// let kernel = Kernel::builder().audit(audit.clone()).build()?;
    /// let alpha = kernel.attach(PrincipalSpec::agent(Id::new("alpha")?))?;
    /// # let _ = alpha.mint("kept");
    ///
    /// audit.close(); // though kernel and handle are kept
    /// let end = scribe.join().map_err(|_| "the scribe panicked")??;
    /// assert_eq!(end.count, 0);
    /// # drop((alpha, kernel));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`AuditLog::drain`]. Does not wait while something is left over from a failure.
    pub fn drain_blocking(&mut self) -> Result<Option<Drained>, AuditError> {
        let more = !self.pending.is_empty() || self.queue.wait();
        let drained = self.drain()?;
        Ok((more || drained.lines > 0).then_some(drained))
    }

    /// The end of what is written, to be kept elsewhere.
    #[must_use]
    pub const fn checkpoint(&self) -> Checkpoint {
        self.end
    }

    /// The sink.
    #[must_use]
    pub const fn sink(&self) -> &S {
        &self.sink
    }

    /// The sink back; what is queued and not drained is lost with the log.
    #[must_use]
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn try_drain(&mut self) -> Result<Drained, AuditError> {
        // First what is left over: while the sink fails, nothing more is taken out of the queue,
        // whose bound then holds for the leftovers too.
        let mut lines = self.write_pending()?;
        let gap = self.queue.take(&mut self.pending, &mut self.spares);
        lines += self.write_pending()?;
        Ok(Drained { lines, gap })
    }

    fn write_pending(&mut self) -> Result<u64, AuditError> {
        let mut pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        let mut written = 0;
        let mut outcome = Ok(());
        while !rest.is_empty() && outcome.is_ok() {
            let (count, head) = self.encode(rest);
            outcome = self.write_chunk();
            if outcome.is_ok() {
                self.end = Checkpoint { count: self.end.count + count as u64, head };
                self.length += self.buffer.len() as u64;
                let (done, left) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                self.queue.give_back(done);
                written += count;
                rest = left;
            }
        }
        pending.drain(..written);
        self.pending = pending;
        outcome.map(|()| written as u64).map_err(AuditError::Write)
    }

    /// Fills the buffer with the lines of the first entries of `rest`; answers how many and the
    /// hash of the last.
    fn encode(&mut self, rest: &[AuditEntry]) -> (usize, Digest) {
        self.buffer.clear();
        let mut head = self.end.head;
        let mut count = 0;
        for (entry, n) in rest.iter().zip(self.end.count + 1..) {
            head = entry.write(n, head, &mut self.buffer);
            count += 1;
            if self.buffer.len() >= CHUNK {
                break;
            }
        }
        (count, head)
    }

    /// All of the buffer reaches the sink, or none of it.
    fn write_chunk(&mut self) -> std::io::Result<()> {
        if self.ragged {
            self.sink.truncate(self.length)?;
            self.ragged = false;
        }
        let written = self.sink.write_all(&self.buffer).and_then(|()| self.sink.flush());
        if written.is_err() {
            self.ragged = self.sink.truncate(self.length).is_err();
        }
        written
    }
}
