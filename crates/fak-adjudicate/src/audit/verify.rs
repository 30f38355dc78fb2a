//! Reading a log back: every line checked against its sum, its number and the line before it.
//! Memory is one line, whatever the length of the log.

use std::io::BufRead;

use fak_abi::{Digest, json};
use sha2::{Digest as _, Sha256};

use super::error::{AuditError, AuditFault};
use super::record::{AuditRecord, parsed};

/// The longest line a log can have: far above what any entry needs.
const MAX_LINE: usize = 64 << 10;
const SUM: &[u8] = b",\"sum\":\"";
/// `sha256:`, 64 digits, the quote and the brace.
const SUM_VALUE: usize = 7 + 64 + 2;
const SCHEMA: &str = "fak.audit-checkpoint.v1";

/// What the line before the first hashes to.
pub(super) const START: Digest = Digest::from_bytes([0; 32]);

/// A place in a log to be kept elsewhere, so that a tail that was cut off, or a log that was
/// rewritten as a whole, shows (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// How many lines the log had.
    pub count: u64,
    /// The hash of the last of them, line feed included.
    pub head: Digest,
}

/// A last line without an end (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Its number, from 1.
    pub line: u64,
    /// How many bytes of it there are.
    pub bytes: u64,
}

/// What a log that verifies holds (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Its end: what a checkpoint would say.
    pub end: Checkpoint,
    /// Its bytes.
    pub bytes: u64,
    /// Entries that found no slot, summed over its gaps.
    pub missed: u64,
}

/// Reads a log line by line and checks each against the one before it (§3.6).
#[derive(Debug)]
pub struct AuditReader<R> {
    input: R,
    line: Vec<u8>,
    end: Checkpoint,
    bytes: u64,
    torn: Option<Torn>,
    done: bool,
}

impl<R: BufRead> AuditReader<R> {
    /// A reader at the start of a log.
    pub const fn new(input: R) -> Self {
        let end = Checkpoint { count: 0, head: START };
        Self { input, line: Vec::new(), end, bytes: 0, torn: None, done: false }
    }

    /// The next entry; `None` at the end of the log.
    ///
    /// # Errors
    /// [`AuditError::Line`] for the first line that is wrong, after which nothing more is read.
    pub fn next_record(&mut self) -> Result<Option<AuditRecord>, AuditError> {
        if self.done {
            return Ok(None);
        }
        let found = self.read();
        self.done = !matches!(found, Ok(Some(_)));
        found
    }

    /// What was read so far: the number of good lines, and the hash of the last.
    #[must_use]
    pub const fn end(&self) -> Checkpoint {
        self.end
    }

    /// Bytes of the good lines so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The last line, if it turned out to be torn.
    #[must_use]
    pub const fn torn(&self) -> Option<Torn> {
        self.torn
    }

    fn read(&mut self) -> Result<Option<AuditRecord>, AuditError> {
        self.line.clear();
        let limit = MAX_LINE as u64 + 1;
        let mut limited = std::io::Read::take(&mut self.input, limit);
        let read = limited.read_until(b'\n', &mut self.line).map_err(AuditError::Read)?;
        if read == 0 {
            return Ok(None);
        }
        let number = self.end.count + 1;
        let fail = |fault| AuditError::Line { line: number, fault };
        if read > MAX_LINE {
            return Err(fail(AuditFault::Long(MAX_LINE)));
        }
        let Some((b'\n', text)) = self.line.split_last() else {
            self.torn = Some(Torn { line: number, bytes: read as u64 });
            return Err(fail(AuditFault::Torn));
        };
        let hash = check_sum(text).map_err(fail)?;
        let record = AuditRecord::parse(text).map_err(|error| fail(AuditFault::Entry(error)))?;
        if record.n != number {
            return Err(fail(AuditFault::Number { expected: number, found: record.n }));
        }
        if record.prev != self.end.head {
            return Err(fail(AuditFault::Chain));
        }
        self.end = Checkpoint { count: number, head: hash };
        self.bytes += read as u64;
        Ok(Some(record))
    }
}

/// The hash of a line (given without its line feed) whose sum is right.
fn check_sum(text: &[u8]) -> Result<Digest, AuditFault> {
    let split = text.len().checked_sub(SUM.len() + SUM_VALUE).and_then(|at| text.split_at_checked(at));
    let (before, tail) = split.ok_or(AuditFault::Shape)?;
    let value =
        tail.strip_prefix(SUM).and_then(|value| value.strip_suffix(b"\"}")).ok_or(AuditFault::Shape)?;
    let sum: Digest =
        std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()).ok_or(AuditFault::Shape)?;
    let mut hash = Sha256::new_with_prefix(before);
    if Digest::from_bytes(hash.clone().finalize().into()) != sum {
        return Err(AuditFault::Sum);
    }
    hash.update(tail);
    hash.update(b"\n");
    Ok(Digest::from_bytes(hash.finalize().into()))
}

/// Checks a whole log (§3.6): any edit, removal, insertion or reordering, and with a checkpoint any
/// cut. Streams; memory is one line.
///
/// # Errors
/// [`AuditError::Line`] names the first bad line; a torn last line is one.
///
/// ```
/// use fak_adjudicate::verify_audit;
///
/// // The first line names 64 zeros as the one before it; this one was cut out of a longer log.
/// let line = "{\"n\":2,\"kind\":\"act\"}\n";
/// assert!(verify_audit(line.as_bytes(), None).is_err());
/// assert_eq!(verify_audit(&b""[..], None)?.end.count, 0);
/// # Ok::<(), fak_adjudicate::AuditError>(())
/// ```
pub fn verify_audit(input: impl BufRead, checkpoint: Option<&Checkpoint>) -> Result<Verified, AuditError> {
    let mut reader = AuditReader::new(input);
    let mut missed = 0_u64;
    while let Some(record) = reader.next_record()? {
        missed = missed.saturating_add(record.count.unwrap_or_default());
        if checkpoint.is_some_and(|point| point.count == record.n && point.head != reader.end().head) {
            return Err(AuditError::Line { line: record.n, fault: AuditFault::Head });
        }
    }
    let end = reader.end();
    match checkpoint {
        Some(point) if point.count > end.count => {
            let fault = AuditFault::Cut { expected: point.count, found: end.count };
            Err(AuditError::Line { line: end.count + 1, fault })
        }
        _ => Ok(Verified { end, bytes: reader.bytes(), missed }),
    }
}

impl Checkpoint {
    /// As one line of JSON, with its line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        json::object(&mut out, |o| {
            o.string("schema", SCHEMA).u64("count", self.count).string("head", &self.head.to_string());
        });
        out.push(b'\n');
        String::from_utf8(out).unwrap_or_default()
    }

    /// Reads what [`Checkpoint::to_json`] wrote.
    ///
    /// # Errors
    /// [`AuditError::Checkpoint`] says what is wrong, and where.
    pub fn parse(text: &[u8]) -> Result<Self, AuditError> {
        let read = || {
            let document = json::Document::parse(text, &json::Limits::default())?;
            let mut fields = document.root().object()?;
            fields.required("schema")?.one_of(&[(SCHEMA, ())])?;
            let count = fields.required("count")?.u64()?;
            let head = parsed(fields.required("head")?, "a sha256 digest")?;
            fields.finish()?;
            Ok(Self { count, head })
        };
        read().map_err(AuditError::Checkpoint)
    }
}
