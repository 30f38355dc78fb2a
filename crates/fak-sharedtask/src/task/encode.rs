//! A revision's canonical bytes, written from the entries' own (§7.1). Equal to [`Record::write`] of its deep copy.
//!
//! [`Record::write`]: crate::envelope::Envelope::write

use fak_abi::json::{self, Sink};

use super::{Change, Revision, Task};
use crate::envelope::{Envelope as _, Record};

pub(super) const AFTER_HEAD: &[u8] = b",\"artifacts\":";
pub(super) const AFTER_ARTIFACTS: &[u8] = b",\"notes\":";
pub(super) const AFTER_NOTES: &[u8] = b",\"open_decisions\":";

/// A sink that only counts.
struct Count(usize);

impl Sink for Count {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

impl Task {
    /// Everything up to the value of `artifacts`.
    pub(super) fn write_head<S: Sink>(&self, sink: &mut S, revision: &Revision, rev: &str) {
        sink.put(b"{\"schema\":");
        json::write_string(sink, Record::SCHEMA);
        for (name, text) in [
            ("task_id", self.id.as_str()),
            ("rev", rev),
            ("state", &revision.state),
            ("title", &revision.title),
        ] {
            sink.put(b",");
            json::write_string(sink, name);
            sink.put(b":");
            json::write_string(sink, text);
        }
        sink.put(b",\"body_ref\":");
        json::object(sink, |o| revision.body.body.members(o));
        sink.put(AFTER_HEAD);
    }

    /// Everything behind the decisions.
    pub(super) fn write_tail<S: Sink>(&self, sink: &mut S, revision: &Revision) {
        sink.put(b",\"updated_by\":");
        json::object(sink, |o| revision.updated_by.members(o));
        sink.put(b",\"updated_at\":");
        json::write_string(sink, &revision.updated_at);
        if !self.rest.is_empty() {
            sink.put(b",");
            let mut rest = Vec::new();
            json::object(&mut rest, |o| {
                o.rest(&self.rest);
            });
            // Its own braces are not the record's.
            sink.put(rest.get(1..rest.len() - 1).unwrap_or_default());
        }
        sink.put(b"}");
    }

    /// Writes a revision whole. Linear in it.
    pub(crate) fn write_revision<S: Sink>(&self, sink: &mut S, revision: &Revision, number: usize) {
        self.write_head(sink, revision, &revision.rev.to_string());
        list(sink, self.nulls[0], self.artifacts.iter().take(revision.artifacts).map(|e| &*e.encoded));
        sink.put(AFTER_ARTIFACTS);
        list(sink, self.nulls[1], self.notes.iter().take(revision.notes).map(|e| &*e.encoded));
        sink.put(AFTER_NOTES);
        list(sink, self.nulls[2], self.decisions_at(number).map(|e| &*e.encoded));
        self.write_tail(sink, revision);
    }

    pub(super) fn encoded_len(&self, revision: &Revision) -> usize {
        let mut count = Count(0);
        self.write_revision(&mut count, revision, self.number());
        count.0
    }

    /// The length after `change`: scalars and tail counted anew, entries added.
    pub(super) fn len_after(&self, revision: &Revision, change: &Change) -> usize {
        let ends = |revision: &Revision| {
            let mut count = Count(0);
            // Every digest this project writes is as long as this one.
            self.write_head(&mut count, revision, &revision.rev.to_string());
            self.write_tail(&mut count, revision);
            count.0
        };
        let list = |before: usize, null: bool, added: usize, bytes: usize| {
            let opened = if before == 0 && added > 0 && null {
                "[]".len() as isize - "null".len() as isize
            } else {
                0
            };
            let commas = if before == 0 { added.saturating_sub(1) } else { added };
            bytes as isize + commas as isize + opened
        };
        let now = self.current();
        let grown = list(
            now.artifacts,
            self.nulls[0],
            change.artifacts.len(),
            change.artifacts.iter().map(|e| e.encoded.len()).sum(),
        ) + list(
            now.notes,
            self.nulls[1],
            change.notes.len(),
            change.notes.iter().map(|e| e.encoded.len()).sum(),
        ) + list(
            now.decisions,
            self.nulls[2],
            change.decisions.len(),
            change.decisions.iter().map(|e| e.encoded.len()).sum(),
        );
        let mut settled = 0;
        for (order, (at, entry)) in change.settled.iter().enumerate() {
            let earlier = change.settled.iter().take(order).rev().find(|(index, _)| index == at);
            let fresh = at.checked_sub(self.decisions.len()).and_then(|i| change.decisions.get(i));
            let before = earlier
                .map(|(_, entry)| entry)
                .or(fresh)
                .or_else(|| self.decision_at(*at, self.number()))
                .map_or(0, |entry| entry.encoded.len());
            settled += entry.encoded.len() as isize - before as isize;
        }
        (self.bytes as isize - ends(now) as isize + ends(revision) as isize + grown + settled).max(0) as usize
    }
}

fn list<'e, S: Sink>(sink: &mut S, null: bool, entries: impl Iterator<Item = &'e [u8]>) {
    let mut open = false;
    for entry in entries {
        sink.put(if std::mem::replace(&mut open, true) { b"," } else { b"[" });
        sink.put(entry);
    }
    sink.put(match (open, null) {
        (true, _) => b"]",
        (false, false) => b"[]",
        (false, true) => b"null",
    });
}
