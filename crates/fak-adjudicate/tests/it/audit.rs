//! §3.6, I20, I21: what the audit log keeps, finds and survives.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use fak_abi::{
    Act, Address, CapSet, ChannelKey, Digest, Event, EventKind, Id, KernelSeal, Principal, PrincipalSpec,
    Reason, Refusal, Site, Timestamp, Verdict,
};
use fak_adjudicate::{
    Audit, AuditError, AuditFault, AuditKind, AuditLog, AuditOptions, AuditReader, AuditSink, Auditor,
    Checkpoint, Reservation, verify_audit,
};
use proptest::prelude::*;

fn principal(incarnation: u64) -> Arc<Principal> {
    let id = Id::new("al\"pha").unwrap();
    KernelSeal::new().principal(PrincipalSpec::agent(id), incarnation, CapSet::NONE)
}

fn at(seq: u64) -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000 + seq)
}

/// Shows a refused send to `tell`.
fn entry(who: &Principal, seq: u64, tell: impl FnOnce(&Event<'_>)) {
    let key: ChannelKey = "in_kernel:a \"b\" \\ ü".parse().unwrap();
    let refusal = Refusal::new(Reason::RateLimited, Site::new("rate/agent").item(2)).retry_after(40);
    let verdict = Verdict::deny(refusal, "rate");
    tell(&Event {
        seq,
        principal: Some(who),
        tool: Some(Act::Send.into()),
        address: Address::Channel(&key),
        digest: Some(Digest::of(b"body")),
        verdict: Some(&verdict),
        ..Event::new(EventKind::Decide, at(seq))
    });
}

fn record(audit: &Audit, who: &Principal, seq: u64) {
    entry(who, seq, |event| audit.record(event));
}

fn options(capacity: usize) -> AuditOptions {
    AuditOptions { capacity: NonZeroUsize::new(capacity).unwrap(), share: None }
}

fn open<S: AuditSink>(existing: &[u8], sink: S, capacity: usize) -> (Audit, AuditLog<S>) {
    let (audit, log, _) = AuditLog::open(existing, sink, at(0), options(capacity)).unwrap();
    (audit, log)
}

fn fill(audit: &Audit, who: &Principal, seqs: impl IntoIterator<Item = u64>) {
    for seq in seqs {
        assert_eq!(audit.reserve(who), Reservation::Reserved);
        record(audit, who, seq);
    }
}

/// A log of `count` entries and its checkpoint.
fn written(count: u64) -> (Vec<u8>, Checkpoint) {
    let (audit, mut log) = open(b"", Vec::new(), 1 << 20);
    let who = principal(1);
    for chunk in 0..count.div_ceil(1000) {
        fill(&audit, &who, chunk * 1000 + 1..=((chunk + 1) * 1000).min(count));
        log.drain().unwrap();
    }
    let end = log.checkpoint();
    (log.into_sink(), end)
}

fn lines(log: &[u8]) -> Vec<&[u8]> {
    log.split_inclusive(|b| *b == b'\n').collect()
}

/// The line and fault that verifying ends with.
fn fault(log: &[u8], checkpoint: Option<&Checkpoint>) -> (u64, AuditFault) {
    match verify_audit(log, checkpoint) {
        Err(AuditError::Line { line, fault }) => (line, fault),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entry_says_who_did_what_and_what_was_answered() {
    let (log, _) = written(2);
    let mut reader = AuditReader::new(&log[..]);
    let first = reader.next_record().unwrap().unwrap();
    assert_eq!((first.n, first.kind, first.seq, first.at), (1, AuditKind::Act, 1, at(1)));
    assert_eq!(first.act.as_deref(), Some("a2a.send"));
    assert_eq!(first.principal.as_deref(), Some("al\"pha"));
    assert_eq!(first.incarnation, Some(1));
    assert_eq!(first.address.as_deref(), Some("in_kernel:a \"b\" \\ ü"));
    assert_eq!(first.digest, Some(Digest::of(b"body")));
    assert_eq!(first.reason, Some(Reason::RateLimited));
    assert_eq!(first.site.as_deref(), Some("rate/agent#3"));
    assert_eq!((first.by.as_deref(), first.retry_after_ms), (Some("rate"), Some(40)));
    let second = reader.next_record().unwrap().unwrap();
    assert_eq!(second.prev, Digest::of(lines(&log)[0]), "hashed as the exact bytes written");
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(reader.end().head, Digest::of(lines(&log)[1]));
}

#[test]
fn every_flipped_byte_is_found_in_its_line() {
    let (log, _) = written(4);
    let mut line = 1;
    for index in 0..log.len() {
        for bit in [1, 0x20, 0x80] {
            let mut bad = log.clone();
            bad[index] ^= bit;
            assert_eq!(fault(&bad, None).0, line, "byte {index} bit {bit}");
        }
        line += u64::from(log[index] == b'\n');
    }
}

#[test]
fn a_hundred_thousand_entries_verify_and_every_tampering_is_named() {
    let (log, end) = written(100_000);
    let verified = verify_audit(&log[..], Some(&end)).unwrap();
    assert_eq!((verified.end, verified.bytes), (end, log.len() as u64));

    let lines = lines(&log);
    let without: Vec<u8> = [&lines[..7_000], &lines[7_001..]].concat().concat();
    assert_eq!(fault(&without, None), (7_001, AuditFault::Number { expected: 7_001, found: 7_002 }));

    let mut swapped = lines.clone();
    swapped.swap(500, 501);
    assert_eq!(fault(&swapped.concat(), None).0, 501);

    let inserted: Vec<u8> = [&lines[..10], &lines[9..]].concat().concat();
    assert_eq!(fault(&inserted, None), (11, AuditFault::Number { expected: 11, found: 10 }));

    let mut flipped = log.clone();
    let place = lines[..3_000].concat().len() + 30;
    flipped[place] ^= 1;
    assert_eq!(fault(&flipped, None), (3_001, AuditFault::Sum));

    let cut = lines[..99_990].concat();
    assert_eq!(fault(&cut, Some(&end)), (99_991, AuditFault::Cut { expected: 100_000, found: 99_990 }));
}

/// A line that was replaced by another well-formed one shows in the line that follows it, and in a
/// checkpoint.
#[test]
fn a_rewritten_line_breaks_the_chain() {
    let (log, end) = written(3);
    let who = principal(7);
    let (audit, mut other) = open(b"", Vec::new(), 8);
    fill(&audit, &who, 1..=3);
    other.drain().unwrap();
    let other = other.into_sink();
    let (mut mixed, other) = (lines(&log), lines(&other));
    mixed[0] = other[0];
    assert_eq!(fault(&mixed.concat(), None), (2, AuditFault::Chain));
    assert_eq!(fault(&other.concat(), Some(&end)), (3, AuditFault::Head));
    let cut = &lines(&log)[..2].concat();
    assert!(verify_audit(&cut[..], None).is_ok(), "a cut on a line shows only with a checkpoint");
    assert_eq!(fault(cut, Some(&end)).0, 3);
    let longer = Checkpoint { count: 4, ..end };
    assert_eq!(fault(&log, Some(&longer)).0, 4);
    assert_eq!(Checkpoint::parse(end.to_json().as_bytes()).unwrap(), end);
    let wrong =
        Checkpoint::parse(br#"{"schema":"fak.audit-checkpoint.v1","count":1,"haed":"x"}"#).unwrap_err();
    assert!(wrong.to_string().contains("missing member \"head\""), "{wrong}");
}

/// I20: the log is cut at every byte of its last 2 KiB.
#[test]
fn i20_a_torn_line_is_cut_off_reported_and_written_after() {
    let (log, _) = written(12);
    let who = principal(1);
    for cut in log.len() - 2048..=log.len() {
        let kept = &log[..cut];
        let whole = kept.iter().filter(|b| **b == b'\n').count() as u64;
        let (audit, mut again, opened) = AuditLog::open(kept, kept.to_vec(), at(99), options(8)).unwrap();
        assert_eq!(opened.end.count, whole);
        assert_eq!(opened.torn.is_some(), !kept.ends_with(b"\n"), "cut at {cut}");
        fill(&audit, &who, [100]);
        again.drain().unwrap();
        let end = again.checkpoint();
        let repaired = again.into_sink();
        assert!(repaired.starts_with(&lines(&log)[..whole as usize].concat()), "exactly that line");
        assert_eq!(
            verify_audit(&repaired[..], Some(&end)).unwrap().end.count,
            whole + 1 + u64::from(opened.torn.is_some())
        );
        if let Some(torn) = opened.torn {
            let mut reader = AuditReader::new(&repaired[..]);
            let report = std::iter::from_fn(|| reader.next_record().unwrap())
                .find(|record| record.kind == AuditKind::Repair)
                .unwrap();
            assert_eq!((report.n, report.bytes), (torn.line, Some(torn.bytes)));
        }
    }
}

#[test]
fn what_does_not_verify_is_not_appended_to() {
    let (mut log, _) = written(3);
    log[5] ^= 1;
    let error = AuditLog::open(&log[..], log.clone(), at(0), options(8)).map(drop).unwrap_err();
    assert!(matches!(error, AuditError::Line { line: 1, .. }), "{error}");
    let error = AuditLog::open(&b""[..], log, at(0), options(8)).map(drop).unwrap_err();
    assert!(matches!(error, AuditError::Mismatch { expected: 0, .. }), "{error}");
}

/// §3.6: a file that is opened for appending is a sink as it stands, torn or not.
#[test]
fn a_file_is_repaired_in_place() {
    let path = std::env::temp_dir().join(format!("fak-audit-sink-{}.jsonl", std::process::id()));
    let mut options_of_file = std::fs::File::options();
    options_of_file.append(true).create(true);
    let file = || options_of_file.open(&path).unwrap();
    let who = principal(1);
    for (round, lines) in [(1, 1), (2, 3), (3, 5), (4, 6)] {
        let existing = std::fs::read(&path).unwrap_or_default();
        let (audit, mut log, opened) = AuditLog::open(&existing[..], file(), at(round), options(8)).unwrap();
        assert_eq!(opened.torn.is_some(), (2..4).contains(&round));
        fill(&audit, &who, [round]);
        log.drain().unwrap();
        let end = log.checkpoint();
        assert_eq!(end.count, lines);
        assert_eq!(verify_audit(&std::fs::read(&path).unwrap()[..], Some(&end)).unwrap().end, end);
        // The next round finds half a line, but for the last.
        if round < 3 {
            log.into_sink().write_all(b"{\"n\":").unwrap();
        }
    }
    std::fs::remove_file(&path).unwrap();
}

/// A medium with a plan: what each write does.
#[derive(Debug, Default)]
struct Medium {
    held: Vec<u8>,
    plan: Vec<Write1>,
    room: Option<usize>,
    /// Truncation fails this many times.
    stuck: usize,
}

#[derive(Debug, Clone, Copy)]
enum Write1 {
    /// Takes at most so many bytes.
    Short(usize),
    /// Takes so many bytes and then fails.
    Fail(usize),
    Fine,
}

impl Write for Medium {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let step = self.plan.pop().unwrap_or(Write1::Fine);
        let room = self.room.map_or(usize::MAX, |room| room.saturating_sub(self.held.len()));
        let (take, fail) = match step {
            Write1::Fine => (bytes.len(), false),
            Write1::Short(n) => (bytes.len().min(n.max(1)), false),
            Write1::Fail(n) => (bytes.len().min(n), true),
        };
        self.held.extend_from_slice(&bytes[..take.min(room)]);
        if fail || room == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(take.min(room)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AuditSink for Medium {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.held.len() as u64)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        if self.stuck > 0 && length < self.held.len() as u64 {
            self.stuck -= 1;
            return Err(io::ErrorKind::Other.into());
        }
        self.held.truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

#[test]
fn a_full_disk_stops_acts_and_leaves_a_log_that_verifies() {
    let who = principal(1);
    let (audit, mut log) = open(b"", Medium { room: Some(3000), ..Medium::default() }, 64);
    let mut seq = 0;
    let error = loop {
        seq += 1;
        fill(&audit, &who, [seq]);
        if let Err(error) = log.drain() {
            break error;
        }
    };
    assert!(matches!(error, AuditError::Write(_)), "{error}");
    assert_eq!(verify_audit(&log.sink().held[..], None).unwrap().end, log.checkpoint());
    assert_eq!(audit.reserve(&who), Reservation::Failed);
    audit.miss(at(seq + 1), seq + 1);
    assert!(log.drain().is_err(), "still full");
    // The host frees the disk.
    let medium = log.sink().held.clone();
    let (_, mut emptied) = open(&medium, Medium { held: medium.clone(), ..Medium::default() }, 64);
    emptied.drain().unwrap();
    assert!(audit.has_failed());
}

/// I21: whatever writes fail, and however they fail, no entry is lost, none is written twice, and
/// the log verifies at every step.
fn survives(plan: Vec<Write1>, stuck: usize) -> Result<(), TestCaseError> {
    let who = principal(1);
    let (audit, mut log) = open(b"", Medium { plan, stuck, ..Medium::default() }, 64);
    let mut accepted = Vec::new();
    for seq in 1..=40 {
        match audit.reserve(&who) {
            Reservation::Reserved => {
                record(&audit, &who, seq);
                accepted.push(seq);
            }
            _ => audit.miss(at(seq), seq),
        }
        let drained = log.drain();
        prop_assert_eq!(drained.is_err(), audit.has_failed());
        // While bytes that could not be cut off lie behind the head, what is there may be torn.
        let mut reader = AuditReader::new(&log.sink().held[..]);
        while let Ok(Some(_)) = reader.next_record() {}
        prop_assert!(reader.end().count >= log.checkpoint().count);
    }
    for _ in 0..100 {
        if log.drain().is_ok() {
            break;
        }
    }
    prop_assert_eq!(audit.pending(), 0);
    let end = log.checkpoint();
    let verified = verify_audit(&log.sink().held[..], Some(&end)).unwrap();
    prop_assert_eq!(accepted.len() as u64 + verified.missed, 40);
    let mut reader = AuditReader::new(&log.sink().held[..]);
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        if record.kind == AuditKind::Act {
            found.push(record.seq);
        }
    }
    prop_assert_eq!(found, accepted);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn i21_failed_writes_do_not_break_the_chain(
        plan in prop::collection::vec(prop_oneof![
            (0..2000_usize).prop_map(Write1::Fail),
            (1..500_usize).prop_map(Write1::Short),
            Just(Write1::Fine),
        ], 0..40),
        stuck in 0..4_usize,
    ) {
        survives(plan, stuck)?;
    }
}

#[test]
fn i21_the_kth_write_fails_and_the_log_goes_on() {
    for k in 0..6 {
        let mut plan = vec![Write1::Fine; k];
        plan.insert(0, Write1::Fail(17));
        survives(plan, 1).unwrap();
    }
}

#[test]
fn a_full_queue_refuses_and_what_found_no_slot_is_summed_before_the_next() {
    let who = principal(1);
    let (audit, mut log) = open(b"", Vec::new(), 3);
    fill(&audit, &who, 1..=3);
    assert_eq!(audit.reserve(&who), Reservation::Full);
    audit.miss(at(4), 4);
    // A dead letter finds none either.
    entry(&who, 6, |event| audit.note(event));
    audit.miss(at(5), 5);
    let drained = log.drain().unwrap();
    assert_eq!(drained.lines, 4);
    fill(&audit, &who, [7]);
    log.drain().unwrap();
    let mut reader = AuditReader::new(&log.sink()[..]);
    let records: Vec<_> = std::iter::from_fn(|| reader.next_record().unwrap()).collect();
    let kinds: Vec<_> = records.iter().map(|r| (r.kind.name(), r.seq)).collect();
    assert_eq!(kinds, [("act", 1), ("act", 2), ("act", 3), ("gap", 6), ("act", 7)]);
    assert_eq!((records[3].count, records[3].first, records[3].last), (Some(3), Some(4), Some(6)));
    assert_eq!(verify_audit(&log.sink()[..], None).unwrap().missed, 3);
}

/// §2.5: the address of a group is the group and the rank.
#[test]
fn an_entry_names_the_rank_of_a_group() {
    let wave = Id::new("wave-1").unwrap();
    let (audit, mut log) = open(b"", Vec::new(), 64);
    entry(&principal(1), 1, |event| {
        audit.note(&Event { address: Address::Group(&wave, 3), ..event.clone() });
    });
    log.drain().unwrap();
    let record = AuditReader::new(&log.sink()[..]).next_record().unwrap().unwrap();
    assert_eq!((record.address.as_deref(), record.rank), (Some("group:wave-1"), Some(3)));
}

/// §3.6: a log is closed while its kernel stands. What has a slot is written first; what comes later is refused, and counted.
#[test]
fn a_closed_log_writes_what_has_a_slot_and_ends() {
    let who = principal(1);
    let (audit, mut log) = open(b"", Vec::new(), 64);
    fill(&audit, &who, [1]);
    assert_eq!(audit.reserve(&who), Reservation::Reserved);
    assert_eq!(audit.reserve(&who), Reservation::Reserved);
    audit.close();
    audit.close();
    assert_eq!(audit.reserve(&who), Reservation::Failed);
    assert!(!audit.has_failed());
    // The act before is written, and the drain waits on for the two that have a slot.
    assert_eq!(log.drain_blocking().unwrap().unwrap().lines, 1);
    thread::scope(|scope| {
        let scribe = scope.spawn(|| {
            let mut lines = 0;
            while let Some(drained) = log.drain_blocking().unwrap() {
                lines += drained.lines;
            }
            lines
        });
        record(&audit, &who, 2);
        assert!(!scribe.is_finished(), "an act still has a slot");
        audit.release();
        assert_eq!(scribe.join().unwrap(), 1);
    });
    assert_eq!(audit.pending(), 0);
    // Too late for an entry of its own, and not lost silently either.
    entry(&who, 3, |event| audit.note(event));
    audit.miss(at(4), 4);
    assert_eq!(log.drain().unwrap().gap.map(|gap| (gap.count, gap.first, gap.last)), Some((2, 3, 4)));
    assert_eq!(audit.reserve(&who), Reservation::Failed, "a drain that succeeds opens nothing again");
    assert_eq!(verify_audit(&log.sink()[..], None).unwrap().end.count, 3);
}

/// §3.6: whenever a log is closed, each act is written, or refused and counted: none falls behind the drain that ends.
#[test]
fn nothing_is_queued_behind_a_drain_that_has_ended() {
    for _ in 0..200 {
        let (audit, mut log) = open(b"", Vec::new(), 1024);
        let (kept, lines) = thread::scope(|scope| {
            let scribe = scope.spawn(|| {
                let mut lines = 0;
                while let Some(drained) = log.drain_blocking().unwrap() {
                    lines += drained.lines;
                }
                lines
            });
            let actors: Vec<_> = (1..=2)
                .map(|number| {
                    let audit = &audit;
                    scope.spawn(move || {
                        let who = principal(number);
                        let reserved = |_: &u64| audit.reserve(&who) == Reservation::Reserved;
                        (0..50).take_while(reserved).map(|seq| record(audit, &who, seq)).count()
                    })
                })
                .collect();
            audit.close();
            let kept: usize = actors.into_iter().map(|actor| actor.join().unwrap()).sum();
            (kept as u64, scribe.join().unwrap())
        });
        assert_eq!(lines, kept);
        assert_eq!(audit.pending(), 0);
    }
}

/// §4.12: one principal cannot take all slots.
#[test]
fn one_principal_fills_its_share_and_no_more() {
    let (first, second) = (principal(1), principal(2));
    let (audit, mut log) = open(b"", Vec::new(), 64);
    fill(&audit, &first, 1..=48);
    assert_eq!(audit.reserve(&first), Reservation::Share);
    fill(&audit, &second, 49..=64);
    assert_eq!(audit.reserve(&second), Reservation::Full);
    log.drain().unwrap();
    assert_eq!(audit.pending(), 0);
    fill(&audit, &first, 65..=112);
}

/// Slots are reserved on one thread and used or given back on another; none is lost or invented.
#[test]
fn slots_are_exact_across_threads() {
    let (audit, mut log) = open(b"", Vec::new(), 100);
    let recorded = std::sync::atomic::AtomicU64::new(0);
    let writer = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while log.drain_blocking().unwrap().is_some() {}
            log
        });
        let (give, take) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let audit = &audit;
            for thread in 0..3_u64 {
                let (give, recorded) = (give.clone(), &recorded);
                scope.spawn(move || {
                    let who = principal(thread + 1);
                    for seq in 0..3000 {
                        if audit.reserve(&who) != Reservation::Reserved {
                            audit.miss(at(seq), seq);
                        } else if seq % 3 == 0 {
                            give.send(seq).unwrap();
                        } else {
                            record(audit, &who, seq);
                            recorded.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                });
            }
            drop(give);
            for seq in take {
                if seq % 2 == 0 {
                    audit.release();
                } else {
                    record(audit, &principal(9), seq);
                    recorded.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
        });
        // The writer's thread ends once this half is dropped and all is written.
        drop(audit);
        writer.join().unwrap()
    });
    let verified = verify_audit(&writer.sink()[..], Some(&writer.checkpoint())).unwrap();
    let mut reader = AuditReader::new(&writer.sink()[..]);
    let acts =
        std::iter::from_fn(|| reader.next_record().unwrap()).filter(|r| r.kind == AuditKind::Act).count();
    assert_eq!(acts as u64, recorded.into_inner());
    assert!(verified.end.count >= acts as u64);
}

/// The shell lines of the module's documentation are run as they stand there.
#[cfg(target_os = "linux")]
#[test]
fn ordinary_tools_check_the_chain() {
    let docs = include_str!("../../src/audit.rs");
    let script: String = docs
        .lines()
        .skip_while(|line| *line != "//! ```sh")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| format!("{}\n", line.trim_start_matches("//! ")))
        .collect();
    let folder = std::env::temp_dir().join(format!("fak-audit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |log: &[u8]| {
        std::fs::write(folder.join("audit.jsonl"), log).unwrap();
        let out =
            std::process::Command::new("sh").arg("-c").arg(&script).current_dir(&folder).output().unwrap();
        (out.status.success(), String::from_utf8(out.stdout).unwrap())
    };
    let (log, end) = written(5);
    assert_eq!(run(&log), (true, format!("5 lines, head {}\n", end.head)));
    let mut bad = log.clone();
    bad[40] ^= 1;
    assert_eq!(run(&bad), (false, "line 1 was edited\n".to_owned()));
    let lines: Vec<_> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let gone = [&lines[..2], &lines[3..]].concat().concat();
    assert_eq!(run(&gone), (false, "line 3 does not follow\n".to_owned()));
    let mut bad = log.clone();
    let last = log.len() - lines[4].len() + 30;
    bad[last] ^= 1;
    assert_eq!(run(&bad), (false, "line 5 was edited\n".to_owned()));
    assert_eq!(run(&log[..log.len() - 1]), (false, "line 5 is torn\n".to_owned()));
    std::fs::remove_dir_all(&folder).unwrap();
}
