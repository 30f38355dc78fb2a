//! An entry as it is read back from its line.

use std::fmt;

use fak_abi::{Digest, EventKind, PrincipalKind, Reason, Timestamp, VerdictKind, json};

/// What an entry is about (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditKind {
    /// An act was decided.
    Act,
    /// Something happened that cites an act: a dead letter, a withdrawal, a held message.
    Note(EventKind),
    /// Entries found no slot; they are summed here.
    Gap,
    /// The last line was torn; it was cut off when the log was opened.
    Repair,
}

impl AuditKind {
    /// Its name, as in the member `kind`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::Note(kind) => kind.name(),
            Self::Gap => "gap",
            Self::Repair => "repair",
        }
    }

    /// True if the entry was queued by the kernel, in a slot.
    pub(super) const fn takes_slot(self) -> bool {
        matches!(self, Self::Act | Self::Note(_))
    }
}

impl fmt::Display for AuditKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One entry of a log (§3.6). Members that do not apply are absent.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRecord {
    /// The number of its line, from 1.
    pub n: u64,
    /// What it is about.
    pub kind: AuditKind,
    /// The number of the act that it is about; 0 for none.
    pub seq: u64,
    /// When, on the kernel's clock.
    pub at: Timestamp,
    /// The tool that was called.
    pub act: Option<String>,
    /// The id of who acted.
    pub principal: Option<String>,
    /// Agent or human.
    pub principal_kind: Option<PrincipalKind>,
    /// Which attachment of that id.
    pub incarnation: Option<u64>,
    /// What was addressed, as policy globs match it.
    pub address: Option<String>,
    /// Which rank of a group was addressed.
    pub rank: Option<u64>,
    /// The digest of the body.
    pub digest: Option<Digest>,
    /// What was answered.
    pub verdict: Option<VerdictKind>,
    /// Why it was refused.
    pub reason: Option<Reason>,
    /// The rung that decided.
    pub by: Option<String>,
    /// The check that refused.
    pub site: Option<String>,
    /// Milliseconds after which the act may have passed.
    pub retry_after_ms: Option<u64>,
    /// The cause of a dead letter.
    pub cause: Option<String>,
    /// How many entries a gap sums.
    pub count: Option<u64>,
    /// The first act of a gap.
    pub first: Option<u64>,
    /// The last act of a gap.
    pub last: Option<u64>,
    /// How many bytes a repair cut off.
    pub bytes: Option<u64>,
    /// The hash of the line before.
    pub prev: Digest,
}

/// The text of an optional member.
fn text(fields: &mut json::Fields<'_>, name: &'static str) -> Result<Option<String>, json::Error> {
    fields.optional(name).map(|cursor| cursor.string().map(str::to_owned)).transpose()
}

fn number(fields: &mut json::Fields<'_>, name: &'static str) -> Result<Option<u64>, json::Error> {
    fields.optional(name).map(json::Cursor::u64).transpose()
}

/// An optional member of a closed vocabulary, or of the form of a digest or time.
fn word<T: std::str::FromStr>(
    fields: &mut json::Fields<'_>,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<T>, json::Error> {
    fields.optional(name).map(|cursor| parsed(cursor, expected)).transpose()
}

pub(super) fn parsed<T: std::str::FromStr>(
    cursor: json::Cursor<'_>,
    expected: &'static str,
) -> Result<T, json::Error> {
    cursor.string()?.parse().map_err(|_| cursor.invalid(expected))
}

fn kind(cursor: json::Cursor<'_>) -> Result<AuditKind, json::Error> {
    match cursor.string()? {
        "act" => Ok(AuditKind::Act),
        "gap" => Ok(AuditKind::Gap),
        "repair" => Ok(AuditKind::Repair),
        _ => parsed(cursor, "a kind of audit entry").map(AuditKind::Note),
    }
}

impl AuditRecord {
    /// Reads one line, with or without its line feed. Does not check its sum or its place.
    ///
    /// # Errors
    /// [`json::Error`] names the member that is wrong.
    pub fn parse(line: &[u8]) -> Result<Self, json::Error> {
        let document = json::Document::parse(line, &json::Limits::default())?;
        let mut fields = document.root().object()?;
        let f = &mut fields;
        Ok(Self {
            n: f.required("n")?.u64()?,
            kind: kind(f.required("kind")?)?,
            seq: f.required("seq")?.u64()?,
            at: parsed(f.required("at")?, "an RFC 3339 time")?,
            act: text(f, "act")?,
            principal: text(f, "principal")?,
            principal_kind: word(f, "principal_kind", "\"agent\" or \"human\"")?,
            incarnation: number(f, "incarnation")?,
            address: text(f, "address")?,
            rank: number(f, "rank")?,
            digest: word(f, "digest", "a sha256 digest")?,
            verdict: word(f, "verdict", "a kind of verdict")?,
            reason: word(f, "reason", "one of the twelve reasons")?,
            by: text(f, "by")?,
            site: text(f, "site")?,
            retry_after_ms: number(f, "retry_after_ms")?,
            cause: text(f, "cause")?,
            count: number(f, "count")?,
            first: number(f, "first")?,
            last: number(f, "last")?,
            bytes: number(f, "bytes")?,
            prev: parsed(f.required("prev")?, "a sha256 digest")?,
        })
    }
}
