//! An entry as the kernel records it, and its one line. Reading a line back is in `record`.

use fak_abi::json::Sink as _;
use fak_abi::{
    Act, Address, Digest, Event, EventKind, Id, OwnedAddress, Principal, PrincipalKind, Ref, Refusal,
    Timestamp, Tool, Verdict, VerdictKind, json,
};
use sha2::{Digest as _, Sha256};

use super::queue::Gap;
use super::record::AuditKind;

/// Bodies up to this many bytes are hashed when the log is drained, not while the act runs. Larger
/// ones at once: the queue must not keep them alive.
pub(super) const LAZY_BYTES: usize = 4096;

/// One entry on its way into the log (§3.6): counts are bumped for it, nothing is formatted and
/// nothing allocated until it is drained.
#[derive(Debug, Clone)]
pub(super) struct AuditEntry {
    pub(super) kind: AuditKind,
    pub(super) at: Timestamp,
    pub(super) seq: u64,
    /// Whose allowance it counts against.
    pub(super) holder: u64,
    who: Option<Who>,
    tool: Option<EntryTool>,
    address: OwnedAddress,
    body: Body,
    verdict: Option<Decided>,
    cause: &'static str,
    /// Of a gap: how many entries, the first and last act. Of a repair: how many bytes. Boxed, because acts have none.
    counts: Option<Box<Counts>>,
}

#[derive(Debug, Clone)]
struct Who {
    id: Id,
    kind: PrincipalKind,
    incarnation: u64,
}

#[derive(Debug, Clone)]
enum EntryTool {
    Act(Act),
    Outside(Id),
}

#[derive(Debug, Clone)]
enum Body {
    None,
    /// Hashed when the entry is written.
    Small(Ref),
    Known(Digest),
}

#[derive(Debug, Clone, Copy)]
struct Decided {
    kind: VerdictKind,
    by: &'static str,
    refusal: Option<Refusal>,
}

#[derive(Debug, Clone, Copy)]
enum Counts {
    Gap(Gap),
    Cut(u64),
}

/// What is kept of an act that happened (§3.6).
pub(super) struct Booked<'a> {
    pub(super) act: Act,
    pub(super) by: &'static str,
    pub(super) who: &'a Principal,
    pub(super) holder: u64,
    pub(super) address: &'a OwnedAddress,
    pub(super) body: Option<Ref>,
    pub(super) at: Timestamp,
    pub(super) seq: u64,
}

impl Decided {
    fn of(verdict: &Verdict) -> Self {
        Self { kind: verdict.kind(), by: verdict.by(), refusal: verdict.refusal().copied() }
    }
}

impl From<Tool<'_>> for EntryTool {
    fn from(tool: Tool<'_>) -> Self {
        match tool {
            Tool::Act(act) => Self::Act(act),
            Tool::Outside(token) => Self::Outside(token.name().clone()),
        }
    }
}

impl AuditEntry {
    /// What the log will say of an event, as an entry that counts against `holder`. Every member is named: an entry is made
    /// for each act, and made of another one it would be copied.
    pub(super) fn new(event: &Event<'_>, holder: u64) -> Self {
        Self {
            kind: match event.kind {
                EventKind::Decide => AuditKind::Act,
                other => AuditKind::Note(other),
            },
            at: event.at,
            seq: event.seq,
            holder,
            who: event.principal.map(|principal| Who {
                id: principal.id().clone(),
                kind: principal.kind(),
                incarnation: principal.incarnation(),
            }),
            tool: event.tool.map(EntryTool::from),
            address: event.address.to_owned(),
            body: match (event.digest, event.body) {
                (Some(digest), _) => Body::Known(digest),
                (None, None) => Body::None,
                (None, Some(body)) if body.len() <= LAZY_BYTES => Body::Small(body.clone()),
                (None, Some(body)) => Body::Known(body.digest()),
            },
            verdict: event.verdict.map(Decided::of),
            cause: event.cause,
            counts: None,
        }
    }

    /// As [`AuditEntry::new`] says of an act that happened, put together from what is kept of it.
    pub(super) fn booked(booked: Booked<'_>) -> Self {
        let Booked { act, by, who, holder, address, body, at, seq } = booked;
        Self {
            kind: AuditKind::Act,
            at,
            seq,
            holder,
            who: Some(Who { id: who.id().clone(), kind: who.kind(), incarnation: who.incarnation() }),
            tool: Some(EntryTool::Act(act)),
            address: address.clone(),
            body: body.map_or(Body::None, Body::Small),
            verdict: Some(Decided { kind: VerdictKind::Allow, by, refusal: None }),
            cause: "",
            counts: None,
        }
    }

    pub(super) fn gap(gap: Gap) -> Self {
        Self { counts: Some(Box::new(Counts::Gap(gap))), ..Self::bare(AuditKind::Gap, gap.at, gap.last) }
    }

    pub(super) fn repair(at: Timestamp, bytes: u64) -> Self {
        Self { counts: Some(Box::new(Counts::Cut(bytes))), ..Self::bare(AuditKind::Repair, at, 0) }
    }

    const fn bare(kind: AuditKind, at: Timestamp, seq: u64) -> Self {
        Self {
            kind,
            at,
            seq,
            holder: 0,
            who: None,
            tool: None,
            address: OwnedAddress::None,
            body: Body::None,
            verdict: None,
            cause: "",
            counts: None,
        }
    }

    /// Where it belongs among what is drained with it: by time, then act, then what cites the act.
    pub(super) fn order(&self) -> (Timestamp, u64, bool) {
        (self.at, self.seq, self.kind != AuditKind::Act)
    }

    /// Appends its line, the `n`-th, to `out`; answers the line's hash.
    pub(super) fn write(&self, n: u64, prev: Digest, out: &mut Vec<u8>) -> Digest {
        let start = out.len();
        json::object(out, |o| {
            o.u64("n", n).string("kind", self.kind.name()).u64("seq", self.seq);
            o.string("at", &self.at.to_string());
            if let Some(tool) = &self.tool {
                o.string("act", tool.name());
            }
            if let Some(Who { id, kind, incarnation }) = &self.who {
                o.string("principal", id).string("principal_kind", kind.name());
                o.u64("incarnation", *incarnation);
            }
            o.string_unless_empty("address", &plain(self.address.view()));
            if let OwnedAddress::Group(_, rank) = self.address {
                o.u64("rank", rank.into());
            }
            match &self.body {
                Body::None => {}
                Body::Small(body) => o.member("digest").put(&written(body.digest())),
                Body::Known(digest) => o.member("digest").put(&written(*digest)),
            }
            if let Some(Decided { kind, by, refusal }) = self.verdict {
                o.string("verdict", kind.name());
                if let Some(Refusal { reason, site, retry_after_ms, .. }) = refusal {
                    o.string("reason", reason.name()).string("site", &site.to_string());
                    if let Some(ms) = retry_after_ms {
                        o.u64("retry_after_ms", ms.into());
                    }
                }
                o.string("by", by);
            }
            o.string_unless_empty("cause", self.cause);
            match self.counts.as_deref() {
                None => {}
                Some(Counts::Gap(gap)) => {
                    o.u64("count", gap.count).u64("first", gap.first).u64("last", gap.last);
                }
                Some(Counts::Cut(bytes)) => drop(o.u64("bytes", *bytes)),
            }
            o.member("prev").put(&written(prev));
        });
        // The sum covers what stands before it: everything but the brace.
        out.pop();
        let mut hash = Sha256::new_with_prefix(out.get(start..).unwrap_or_default());
        let tail = out.len();
        let sum = Digest::from_bytes(hash.clone().finalize().into());
        out.extend_from_slice(b",\"sum\":");
        out.extend_from_slice(&written(sum));
        out.extend_from_slice(b"}\n");
        hash.update(out.get(tail..).unwrap_or_default());
        Digest::from_bytes(hash.finalize().into())
    }
}

impl EntryTool {
    fn name(&self) -> &str {
        match self {
            Self::Act(act) => act.tool(),
            Self::Outside(name) => name,
        }
    }
}

/// A digest as JSON has it: most of a line is digests, and this takes no formatter.
fn written(digest: Digest) -> [u8; 73] {
    let mut text = *b"\"sha256:________________________________________________________________\"";
    let hex = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    let nibbles = digest.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (place, nibble) in text.iter_mut().skip(8).zip(nibbles) {
        *place = hex(nibble);
    }
    text
}

/// The address as policy globs match it.
fn plain(address: Address<'_>) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = address.write_plain(&mut text);
    text
}
