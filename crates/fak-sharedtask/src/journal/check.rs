//! The walk that verifies: entry by entry, each link and digest recomputed (§5.10).

use std::collections::HashSet;
use std::io::Read;

use fak_abi::Digest;
use fak_abi::json::{self, Member, Problem, Sink, Stream, StreamError, Value};
use sha2::{Digest as _, Sha256};

use super::canonical::{self, Carry};
use super::{JOURNAL_SCHEMA, JournalError, JournalPlace, JournalSummary};
use crate::envelope::{Envelope as _, Hash, Limits, MergeVerdict, Record, TaskEvent, TaskId};

/// How much longer than the one before a record may be and still be read in one go.
const LITTLE_MORE: usize = 4 << 10;

/// A record as far as verifying needs it.
pub(super) struct Checked {
    pub(super) task_id: TaskId,
    pub(super) rev: Hash,
    pub(super) computed_rev: Digest,
    pub(super) digest: Digest,
}

/// One verified entry. The record's text is in [`Walk::record_text`].
pub(super) struct Entry {
    pub(super) event: TaskEvent,
    pub(super) event_digest: Digest,
    /// Its unknown members.
    pub(super) rest: Vec<Member>,
}

/// A journal being verified.
pub(super) struct Walk<'l, R> {
    stream: Stream<R>,
    limits: &'l Limits,
    hash: Sha256,
    /// Where the stream stands.
    stage: Stage,
    task_id: Option<TaskId>,
    digest: Option<Hash>,
    schema: bool,
    initial: bool,
    begun: bool,
    rest: Vec<Member>,
    entries: usize,
    seen: HashSet<Hash>,
    rev: Option<Hash>,
    heads: Vec<Option<Digest>>,
    opaque: Option<JournalPlace>,
    /// What the record before left for the next one.
    carry: Carry,
    /// The text of the record captured last.
    text: Vec<u8>,
    /// Canonical bytes, where the text is not canonical.
    scratch: Vec<u8>,
    /// Bytes up to the end of the last whole entry.
    intact: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Members,
    Entries,
    Done,
}

impl<'l, R: Read> Walk<'l, R> {
    pub(super) fn new(input: R, limits: &'l Limits) -> Self {
        Self {
            stream: Stream::new(input, limits.json()),
            limits,
            hash: Sha256::new(),
            stage: Stage::Start,
            task_id: None,
            digest: None,
            schema: false,
            initial: false,
            begun: false,
            rest: Vec::new(),
            entries: 0,
            seen: HashSet::new(),
            rev: None,
            heads: Vec::new(),
            opaque: None,
            carry: Carry::default(),
            text: Vec::new(),
            scratch: Vec::new(),
            intact: 0,
        }
    }

    /// The text of the record read last: the initial one before the first entry.
    pub(super) fn record_text(&self) -> &[u8] {
        &self.text
    }

    /// The head of the chain at a revision.
    pub(super) fn head_at(&self, revision: usize) -> Option<Digest> {
        self.heads.get(revision).copied().flatten()
    }

    /// Bytes up to the end of the last whole entry.
    pub(super) fn intact(&self) -> usize {
        self.intact
    }

    /// The journal's own unknown members so far; all of them once it was read to its end.
    pub(super) fn rest(&mut self) -> Vec<Member> {
        std::mem::take(&mut self.rest)
    }

    /// Whole entries so far.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// The first placeholder in the chain so far.
    pub(super) fn opaque(&self) -> Option<&JournalPlace> {
        self.opaque.as_ref()
    }

    /// Reads up to the first entry, or to the end.
    pub(super) fn start(&mut self) -> Result<(), JournalError> {
        if self.stage == Stage::Start {
            self.stream.begin_object()?;
            self.stage = Stage::Members;
            self.members()?;
        }
        Ok(())
    }

    /// The next entry, verified; none after the last.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, JournalError> {
        self.start()?;
        if self.stage != Stage::Entries {
            return Ok(None);
        }
        if !self.stream.next_element()? {
            self.hash.put(b"]");
            self.stage = Stage::Members;
            self.members()?;
            return Ok(None);
        }
        let entry = self.entry()?;
        self.intact = self.stream.offset();
        self.entries += 1;
        Ok(Some(entry))
    }

    /// Members of the journal itself, up to the entries or the end.
    fn members(&mut self) -> Result<(), JournalError> {
        while let Some(name) = self.stream.next_member()? {
            match &*name {
                "schema" => {
                    let (value, at) = value(&mut self.stream)?;
                    if value.as_str() != Some(JOURNAL_SCHEMA) {
                        return Err(invalid(at, "the schema \"fak.shared-task-journal.v1\""));
                    }
                    self.schema = true;
                }
                "task_id" => {
                    let (value, at) = value(&mut self.stream)?;
                    let id = value.as_str().and_then(TaskId::new);
                    self.task_id = Some(id.ok_or_else(|| invalid(at, "the id of a task"))?);
                }
                "digest" => {
                    let (value, at) = value(&mut self.stream)?;
                    let digest = value.as_str().and_then(Hash::parse);
                    let digest =
                        digest.ok_or_else(|| invalid(at, "\"sha256:\" and 64 lower-case hex digits"))?;
                    self.digest = Some(digest);
                }
                "initial" => {
                    let checked = self.record("initial")?;
                    self.initial(checked)?;
                }
                "entries" => return self.begin_entries(),
                _ => {
                    let (value, _) = value(&mut self.stream)?;
                    self.rest.push(Member { name, value });
                }
            }
        }
        self.stage = Stage::Done;
        Ok(())
    }

    fn initial(&mut self, checked: Checked) -> Result<(), JournalError> {
        let rev = self.rev_holds(None, &checked)?;
        self.heads.push(rev);
        if self.task_id.get_or_insert_with(|| checked.task_id.clone()) != &checked.task_id {
            return Err(broken(None, "initial", "a record of the journal's task"));
        }
        self.seen.insert(checked.rev.clone());
        self.rev = Some(checked.rev);
        self.initial = true;
        Ok(())
    }

    /// The entries follow what their digest follows: schema, task and initial record.
    fn begin_entries(&mut self) -> Result<(), JournalError> {
        if self.stage != Stage::Members || !(self.schema && self.initial) {
            let name = if self.schema { "initial" } else { "schema" };
            return Err(self.missing(name));
        }
        let Some(task_id) = &self.task_id else { return Err(self.missing("task_id")) };
        let mut head = Sha256::new();
        head.put(b"{\"schema\":");
        json::write_string(&mut head, JOURNAL_SCHEMA);
        head.put(b",\"task_id\":");
        json::write_string(&mut head, task_id.as_str());
        head.put(b",\"initial\":");
        head.put(self.canonical());
        head.put(b",\"entries\":");
        self.hash = head;
        self.begun = true;
        if self.stream.peek_null()? {
            // Go writes null for a list it never touched.
            let (_, _) = value(&mut self.stream)?;
            self.hash.put(b"null");
            return self.members();
        }
        self.stream.begin_array()?;
        self.hash.put(b"[");
        self.stage = Stage::Entries;
        self.intact = self.stream.offset();
        Ok(())
    }

    fn entry(&mut self) -> Result<Entry, JournalError> {
        let at = Some(self.entries);
        self.stream.begin_object()?;
        let (mut event, mut checked, mut claimed, mut rest) = (None, None, None, Vec::new());
        while let Some(name) = self.stream.next_member()? {
            match &*name {
                "event" => {
                    let captured = self.stream.capture()?;
                    let document = captured.parse().map_err(StreamError::from)?;
                    let read = TaskEvent::read(document.root(), self.limits);
                    event = Some(read.map_err(|error| StreamError::from(captured.place(error)))?);
                }
                "record" => checked = Some(self.record("record")?),
                "record_digest" => {
                    let (value, place) = value(&mut self.stream)?;
                    let digest = value.as_str().and_then(Hash::parse);
                    claimed = Some(
                        digest.ok_or_else(|| invalid(place, "\"sha256:\" and 64 lower-case hex digits"))?,
                    );
                }
                _ => {
                    let (value, _) = value(&mut self.stream)?;
                    rest.push(Member { name, value });
                }
            }
        }
        let Some(event) = event else { return Err(self.missing("event")) };
        let Some(checked) = checked else { return Err(self.missing("record")) };
        self.links(at, &event, &checked)?;
        match &claimed {
            Some(Hash::Full(digest)) if *digest != checked.digest => {
                return Err(broken(at, "record_digest", "the digest of the record"));
            }
            Some(Hash::Full(_)) => {}
            _ => self.is_opaque(at, "record_digest"),
        }
        self.hash.put(if self.entries == 0 { b"{\"event\":" } else { b",{\"event\":" });
        let encoded = event.to_json();
        self.hash.put(&encoded);
        self.hash.put(b",\"record\":");
        // Borrowed apart: the hash grows while the text is read.
        let text = if self.scratch.is_empty() { &self.text } else { &self.scratch };
        self.hash.update(text);
        self.hash.put(b",\"record_digest\":");
        json::write_string(&mut self.hash, &claimed.map(|digest| digest.to_string()).unwrap_or_default());
        if !rest.is_empty() {
            self.hash.put(b",");
            self.hash.put(&members(&rest));
        }
        self.hash.put(b"}");
        let event_digest = Digest::of(&encoded);
        self.heads.push(Some(event_digest));
        self.rev = Some(checked.rev.clone());
        self.seen.insert(checked.rev);
        Ok(Entry { event, event_digest, rest })
    }

    /// What an event must say about its place in the chain.
    fn links(&mut self, at: Option<usize>, event: &TaskEvent, checked: &Checked) -> Result<(), JournalError> {
        if Some(&event.task_id) != self.task_id.as_ref() {
            return Err(broken(at, "event.task_id", "the journal's task"));
        }
        if Some(&checked.task_id) != self.task_id.as_ref() {
            return Err(broken(at, "record.task_id", "the journal's task"));
        }
        if event.verdict != MergeVerdict::Accepted {
            return Err(broken(at, "event.verdict", "an accepted event"));
        }
        let before = if self.entries == 0 { None } else { self.heads.last().copied().flatten() };
        match (&event.prev_event, before) {
            (None, None) if self.entries == 0 => {}
            (Some(Hash::Full(link)), Some(before)) if *link == before => {}
            (Some(Hash::Opaque(_)), _) => self.is_opaque(at, "event.prev_event"),
            _ => return Err(broken(at, "event.prev_event", "the digest of the event before")),
        }
        for (member, hash) in [("event.base_rev", &event.base_rev), ("event.next_rev", &event.next_rev)] {
            if hash.full().is_none() {
                self.is_opaque(at, member);
            }
        }
        if !self.seen.contains(&event.base_rev) {
            return Err(broken(at, "event.base_rev", "a revision that was there before"));
        }
        if event.next_rev != checked.rev {
            return Err(broken(at, "event.next_rev", "the revision of the entry's record"));
        }
        self.rev_holds(at, checked).map(|_| ())
    }

    fn rev_holds(&mut self, at: Option<usize>, checked: &Checked) -> Result<Option<Digest>, JournalError> {
        let member = if at.is_some() { "record.rev" } else { "initial.rev" };
        match checked.rev.full() {
            Some(rev) if rev != checked.computed_rev => Err(broken(at, member, "the digest of the revision")),
            Some(rev) => Ok(Some(rev)),
            None => {
                self.is_opaque(at, member);
                Ok(None)
            }
        }
    }

    /// Reads a record and digests it, by its own bytes if they are canonical.
    fn record(&mut self, member: &'static str) -> Result<Checked, JournalError> {
        self.scratch.clear();
        // Most records are the one before and a little more. Read by its shape, it need not be measured first.
        let ahead = self.stream.ahead(self.text.len() + LITTLE_MORE)?;
        let seen = ahead.len();
        if let Some((checked, length)) = canonical::record(ahead, &self.text, &mut self.carry, self.limits) {
            self.text.clear();
            self.text.extend_from_slice(ahead.get(..length).unwrap_or_default());
            self.stream.pass(length);
            return Ok(checked);
        }
        let captured = self.stream.capture()?;
        if captured.text().len() > seen
            && let Some((checked, _)) =
                canonical::record(captured.text(), &self.text, &mut self.carry, self.limits)
        {
            self.text.clear();
            self.text.extend_from_slice(captured.text());
            return Ok(checked);
        }
        self.carry = Carry::default();
        let document = captured.parse().map_err(StreamError::from)?;
        let read = Record::read(document.root(), self.limits);
        let record = read.map_err(|error| StreamError::from(captured.place(error)))?;
        self.text.clear();
        self.text.extend_from_slice(captured.text());
        record.write(&mut self.scratch);
        let Hash::Full(computed_rev) = record.computed_rev() else {
            return Err(broken(None, member, "a record that can be digested"));
        };
        let digest = Digest::of(&self.scratch);
        Ok(Checked { task_id: record.task_id, rev: record.rev, computed_rev, digest })
    }

    fn canonical(&self) -> &[u8] {
        if self.scratch.is_empty() { &self.text } else { &self.scratch }
    }

    /// Reads to the end and checks the journal's own digest.
    pub(super) fn finish(&mut self) -> Result<JournalSummary, JournalError> {
        if !self.begun {
            return Err(self.missing("entries"));
        }
        self.stream.end()?;
        let Some(digest) = self.digest.clone() else { return Err(self.missing("digest")) };
        self.hash.put(b",\"digest\":\"\"");
        if !self.rest.is_empty() {
            self.hash.put(b",");
            self.hash.put(&members(&self.rest));
        }
        self.hash.put(b"}");
        match digest.full() {
            Some(claimed) if claimed != Digest::from_bytes(self.hash.clone().finalize().into()) => {
                return Err(broken(None, "digest", "the digest of the journal"));
            }
            Some(_) => {}
            None => self.is_opaque(None, "digest"),
        }
        match (&self.task_id, &self.rev) {
            (Some(task_id), Some(rev)) => Ok(JournalSummary {
                task_id: task_id.clone(),
                entries: self.entries,
                rev: rev.clone(),
                head: self.heads.last().copied().flatten(),
                digest,
                opaque: self.opaque.clone(),
            }),
            _ => Err(self.missing("initial")),
        }
    }

    fn is_opaque(&mut self, entry: Option<usize>, member: &'static str) {
        self.opaque.get_or_insert(JournalPlace { entry, member });
    }

    fn missing(&self, name: &'static str) -> JournalError {
        let error = self.stream.error(Problem::MissingMember { name: name.into() });
        JournalError::Read(error.into())
    }
}

/// A small value of the outer structure, and an error that would stand at its place.
fn value<R: Read>(stream: &mut Stream<R>) -> Result<(Value, json::Error), JournalError> {
    let captured = stream.capture()?;
    let value = captured.parse().map_err(StreamError::from)?.into_value();
    let here = json::Error::new(json::Place::START, "", Problem::Invalid { expected: "".into() });
    Ok((value, captured.place(here)))
}

fn invalid(at: json::Error, expected: &'static str) -> JournalError {
    let problem = Problem::Invalid { expected: expected.into() };
    JournalError::Read(json::Error::new(at.place(), at.path(), problem).into())
}

fn broken(entry: Option<usize>, member: &'static str, expected: &'static str) -> JournalError {
    JournalError::Broken { place: JournalPlace { entry, member }, expected }
}

/// Unknown members as they stand at the end of an object.
pub(super) fn members(rest: &[Member]) -> Vec<u8> {
    let mut out = Vec::new();
    json::object(&mut out, |o| {
        o.rest(rest);
    });
    out.pop();
    out.drain(..1);
    out
}
