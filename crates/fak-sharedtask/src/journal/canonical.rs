//! A shortcut past parsing: a record whose text is already its canonical encoding is digested as it stands.
//!
//! Whatever is not canonical to the byte, or not plainly within the limits, is left to the parser; a test holds both ways
//! to the same answers. Between two records that share their head, notes that did not change are compared, not matched
//! and hashed again.

use fak_abi::Digest;
use sha2::{Digest as _, Sha256};

use super::check::Checked;
use crate::envelope::{Durability, Hash, Limits, NoteKind, SCOPES, TAINTS, TaskId};

/// Where the notes of the record before ended, and the revision hash there.
#[derive(Debug, Default)]
pub(super) struct Carry {
    at: Option<Mark>,
}

#[derive(Debug)]
struct Mark {
    rev: (usize, usize),
    notes: (usize, usize),
    hash: Sha256,
}

/// Digests the record at the front of `text` by its own bytes, and says how many they are; none if they are not plainly
/// canonical or not all there, and then `carry` is what it was. `before` is the text of the record that left `carry`.
pub(super) fn record(
    text: &[u8],
    before: &[u8],
    carry: &mut Carry,
    limits: &Limits,
) -> Option<(Checked, usize)> {
    let mut m = Match { text, at: 0, limits };
    m.word(b"{\"schema\":\"fak.shared-task.v1\",\"task_id\":")?;
    let task_id = TaskId::new(m.plain()?)?;
    m.word(b",\"rev\":")?;
    let rev_start = m.at + 1;
    let rev = Hash::parse(m.plain()?)?;
    let rev_range = (rev_start, m.at - 1);
    m.word(b",\"state\":")?;
    m.string(limits.text)?;
    m.word(b",\"title\":")?;
    m.string(limits.text).filter(|title| !title.is_empty())?;
    m.word(b",\"body_ref\":")?;
    m.body()?;
    m.word(b",\"artifacts\":")?;
    m.list(limits.entries, Match::artifact)?;
    m.word(b",\"notes\":")?;
    let (mut hash, notes) = m.notes(rev_range, before, carry.at.as_ref())?;
    let mark = Mark { rev: rev_range, notes, hash: hash.clone() };
    m.word(b",\"open_decisions\":")?;
    m.list(limits.entries, Match::decision)?;
    m.word(b",\"updated_by\":")?;
    m.actor()?;
    m.word(b",\"updated_at\":")?;
    m.string(limits.id)?;
    m.word(b"}")?;
    let text = text.get(..m.at).filter(|text| text.len() <= limits.envelope)?;
    std::str::from_utf8(text).ok()?;
    hash.update(text.get(notes.1..)?);
    carry.at = Some(mark);
    let computed_rev = Digest::from_bytes(hash.finalize().into());
    Some((Checked { task_id, rev, computed_rev, digest: Digest::of(text) }, text.len()))
}

/// Bytes at which a canonical string has to be looked at more closely.
static CLOSER: [bool; 256] = {
    let mut set = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            set[byte] = byte < 0x20 || matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xE2);
        }
        byte += 1;
    }
    set
};

struct Match<'t> {
    text: &'t [u8],
    at: usize,
    limits: &'t Limits,
}

impl<'t> Match<'t> {
    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest().starts_with(word).then(|| self.at += word.len())
    }

    /// A canonical string of at most `limit` bytes, as written between its quotes.
    fn string(&mut self, limit: usize) -> Option<&'t [u8]> {
        self.word(b"\"")?;
        let start = self.at;
        loop {
            let rest = self.rest();
            let stop = rest.iter().position(|b| CLOSER.get(usize::from(*b)).copied().unwrap_or(true))?;
            self.at += stop;
            match rest.get(stop..)? {
                [b'"', ..] => break,
                [b'\\', b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f', ..] => self.at += 2,
                [b'\\', b'u', b'0', b'0', b'3', b'c' | b'e', ..]
                | [b'\\', b'u', b'0', b'0', b'2', b'6', ..]
                | [b'\\', b'u', b'2', b'0', b'2', b'8' | b'9', ..] => self.at += 6,
                [b'\\', b'u', b'0', b'0', high @ (b'0' | b'1'), low, ..] if long_control(*high, *low) => {
                    self.at += 6;
                }
                [0xE2, 0x80, 0xA8 | 0xA9, ..] => return None,
                [0xE2, ..] => self.at += 1,
                _ => return None,
            }
        }
        let text = self.text.get(start..self.at)?;
        self.at += 1;
        (text.len() <= limit).then_some(text)
    }

    /// A string without escapes, of an id's length.
    fn plain(&mut self) -> Option<&'t str> {
        let text = self.string(self.limits.id)?;
        if text.contains(&b'\\') {
            return None;
        }
        std::str::from_utf8(text).ok()
    }

    fn hash(&mut self) -> Option<()> {
        self.plain()?.strip_prefix("sha256:").filter(|rest| !rest.is_empty()).map(|_| ())
    }

    fn one_of<T>(&mut self, names: &[(&str, T)]) -> Option<()> {
        let text = self.plain()?;
        names.iter().any(|(name, _)| *name == text).then_some(())
    }

    fn integer(&mut self) -> Option<()> {
        let rest = self.rest();
        let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let digits = std::str::from_utf8(rest.get(..count)?).ok()?;
        let canonical = digits.parse::<u64>().is_ok() && (count == 1 || !digits.starts_with('0'));
        canonical.then(|| self.at += count)
    }

    /// A member that is written only when it is not empty.
    fn optional(&mut self, name: &[u8]) -> Option<()> {
        if self.word(name).is_some() {
            self.string(self.limits.id).filter(|text| !text.is_empty())?;
        }
        Some(())
    }

    fn list(&mut self, limit: usize, item: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        if self.word(b"null").is_some() || self.word(b"[]").is_some() {
            return Some(());
        }
        self.word(b"[")?;
        for _ in 0..limit {
            item(self)?;
            if self.word(b"]").is_some() {
                return Some(());
            }
            self.word(b",")?;
        }
        None
    }

    fn body(&mut self) -> Option<()> {
        self.word(b"{\"kind\":")?;
        self.string(self.limits.id)?;
        self.word(b",\"digest\":")?;
        self.hash()?;
        self.word(b",\"bytes\":")?;
        self.integer()?;
        self.word(b",\"taint\":")?;
        self.one_of(TAINTS)?;
        self.word(b",\"scope\":")?;
        self.one_of(SCOPES)?;
        self.word(b",\"durability\":")?;
        self.one_of(Durability::NAMES)?;
        self.optional(b",\"store\":")?;
        self.optional(b",\"deletion_certificate\":")?;
        self.word(b"}")
    }

    fn artifact(&mut self) -> Option<()> {
        self.word(b"{\"artifact_id\":")?;
        self.string(self.limits.id)?;
        self.word(b",\"ref\":")?;
        self.hash()?;
        self.word(b",\"media_type\":")?;
        self.string(self.limits.id)?;
        self.word(b",\"taint\":")?;
        self.one_of(TAINTS)?;
        self.word(b",\"scope\":")?;
        self.one_of(SCOPES)?;
        self.word(b",\"store\":")?;
        self.string(self.limits.id)?;
        self.optional(b",\"deletion_certificate\":")?;
        self.word(b"}")
    }

    fn note(&mut self) -> Option<()> {
        self.word(b"{\"note_id\":")?;
        self.string(self.limits.id)?;
        self.word(b",\"kind\":")?;
        self.one_of(NoteKind::NAMES)?;
        self.word(b",\"body_ref\":")?;
        self.body()?;
        self.word(b",\"author\":")?;
        self.actor()?;
        self.word(b",\"created_at\":")?;
        self.string(self.limits.id)?;
        self.word(b"}")
    }

    fn decision(&mut self) -> Option<()> {
        self.word(b"{\"decision_id\":")?;
        self.string(self.limits.id)?;
        self.word(b",\"state\":")?;
        self.string(self.limits.text)?;
        self.word(b",\"reason\":")?;
        self.string(self.limits.text)?;
        self.word(b"}")
    }

    fn actor(&mut self) -> Option<()> {
        self.word(b"{\"kind\":")?;
        self.string(self.limits.id)?;
        self.word(b",\"id\":")?;
        self.string(self.limits.id).filter(|id| !id.is_empty())?;
        self.word(b"}")
    }

    /// The notes, and the revision hash up to their end (before the bracket). What `mark` has seen is not seen again.
    fn notes(
        &mut self,
        rev: (usize, usize),
        before: &[u8],
        mark: Option<&Mark>,
    ) -> Option<(Sha256, (usize, usize))> {
        let start = self.at;
        if self.word(b"null").is_some() || self.word(b"[]").is_some() {
            let hash = self.head_hash(rev, start)?;
            return Some((hash, (start, start)));
        }
        let (mut hash, mut hashed) = match mark.filter(|mark| self.continues(rev, before, mark)) {
            Some(mark) => {
                self.at = mark.notes.1;
                (mark.hash.clone(), mark.notes.1)
            }
            None => {
                self.word(b"[")?;
                self.note()?;
                (self.head_hash(rev, start)?, start)
            }
        };
        while self.word(b",").is_some() {
            self.note()?;
        }
        hash.update(self.text.get(hashed..self.at)?);
        hashed = self.at;
        self.word(b"]")?;
        Some((hash, (start, hashed)))
    }

    /// The revision hash up to `end`: everything but the revision itself.
    fn head_hash(&self, rev: (usize, usize), end: usize) -> Option<Sha256> {
        let mut hash = Sha256::new();
        hash.update(self.text.get(..rev.0)?);
        hash.update(self.text.get(rev.1..end)?);
        Some(hash)
    }

    /// Whether this record is the one before in all but its revision, up to the end of that one's notes.
    fn continues(&self, rev: (usize, usize), before: &[u8], mark: &Mark) -> bool {
        let same = |from: usize, to: usize| match (self.text.get(from..to), before.get(from..to)) {
            (Some(now), Some(then)) => now == then,
            _ => false,
        };
        mark.rev == rev
            && mark.notes.0 == self.at
            && mark.notes.1 > mark.notes.0
            && same(0, rev.0)
            && same(rev.1, mark.notes.1)
            && matches!(self.text.get(mark.notes.1), Some(b',' | b']'))
    }
}

/// Whether `\u00hl` is the canonical escape of a control: below 0x20 and without a short form.
fn long_control(high: u8, low: u8) -> bool {
    match high {
        b'0' => matches!(low, b'0'..=b'7' | b'b' | b'e' | b'f'),
        b'1' => matches!(low, b'0'..=b'9' | b'a'..=b'f'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Envelope as _, Record};
    use proptest::prelude::*;

    /// What the parser says of the same text: its digests, if the text is canonical as well.
    fn slow(text: &[u8], limits: &Limits) -> Option<(Digest, Digest)> {
        let record = Record::parse(text, limits).ok()?;
        (record.to_json() == text).then(|| (record.computed_rev().full().unwrap(), record.digest()))
    }

    fn samples() -> Vec<String> {
        let digests = include_str!("../../../../examples/peer/digests.json");
        let values: serde_json::Value = serde_json::from_str(digests).unwrap();
        values.as_array().unwrap().iter().map(|v| v["record_json"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_public_record_takes_the_shortcut_and_shares_what_it_can() {
        let limits = Limits::default();
        let (mut carry, mut before) = (Carry::default(), Vec::new());
        for text in samples() {
            // What follows it is none of its business.
            let ahead = format!("{text},\"record_digest\":");
            let (fast, length) = record(ahead.as_bytes(), &before, &mut carry, &limits).expect("canonical");
            assert_eq!(length, text.len());
            assert_eq!(Some((fast.computed_rev, fast.digest)), slow(text.as_bytes(), &limits));
            assert_eq!(fast.rev.full(), Some(fast.computed_rev));
            before = text.into_bytes();
        }
    }

    proptest! {
        /// A mutilated record is either left to the parser, or digested as the parser would.
        #[test]
        fn the_shortcut_never_differs_from_the_parser(
            pick in any::<prop::sample::Index>(),
            previous in any::<prop::sample::Index>(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..4),
        ) {
            let limits = Limits { id: 80, text: 60, ..Limits::default() };
            let samples = samples();
            let before = previous.get(&samples).clone().into_bytes();
            let mut carry = Carry::default();
            let _ = record(&before, &[], &mut carry, &limits);
            let mut text = pick.get(&samples).clone().into_bytes();
            for (at, byte, how) in edits {
                // An edit may have left nothing.
                if text.is_empty() {
                    break;
                }
                let at = at.index(text.len());
                match how {
                    0 => text[at] = byte,
                    1 => { text.remove(at); }
                    2 => text.insert(at, b"<>&\\\"0,{}\xe2"[usize::from(byte) % 10]),
                    _ => text.truncate(at.max(1)),
                }
            }
            let whole = |(checked, length): (Checked, usize)| {
                (length == text.len()).then_some((checked.computed_rev, checked.digest))
            };
            let fast = record(&text, &before, &mut carry, &limits).and_then(whole);
            let slow = slow(&text, &limits);
            prop_assert!(fast.is_none() || fast == slow);
            prop_assert!(fast.is_some() || slow.is_none() || !edited_lightly(&text));
        }
    }

    /// Only long escapes near a limit may be left to the parser needlessly.
    fn edited_lightly(text: &[u8]) -> bool {
        !text.contains(&b'\\')
    }
}
