//! `fak journal`: journals of shared records checked and looked into (§5.10).

use std::path::Path;

use fak_abi::json::{Limits, Stream, StreamError, Value};
use fak_scenario::{counted, printable};
use fak_sharedtask::{
    Checkpoint, JournalError, JournalSummary, SharedTaskError, StoreConfig, TaskStore, VerifyOptions,
    verify_journal,
};
use serde_json::json;

use crate::{
    args::{JournalShowArgs, JournalVerb, JournalVerifyArgs},
    failure::{Failure, UNREADABLE, open},
    kind::{Kind, mistaken},
    output::Output,
};

pub(crate) fn journal(verb: &JournalVerb, output: &mut Output) -> Result<u8, Failure> {
    match verb {
        JournalVerb::Verify(args) => verify(args, output),
        JournalVerb::Show(args) => show(args, output),
        JournalVerb::Load(args) => load(args, output),
    }
}

/// One after the other; what cannot be read is said, and the next is looked at.
fn verify(args: &JournalVerifyArgs, output: &mut Output) -> Result<u8, Failure> {
    if let [file] = args.files.as_slice() {
        return verify_one(file, args, output);
    }
    if args.checkpoint.is_some() {
        return Err(Failure::Usage("--checkpoint is of one journal: verify one at a time".to_owned()));
    }
    let bar = output.progress(args.files.len(), false);
    let mut worst = 0;
    for file in &args.files {
        bar.set_message(file.display().to_string());
        let status = match verify_one(file, args, output) {
            Err(failure @ (Failure::File { .. } | Failure::Scenario(_))) => {
                failure.tell(output);
                UNREADABLE
            }
            verified => verified?,
        };
        worst = worst.max(status);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(worst)
}

fn verify_one(file: &Path, args: &JournalVerifyArgs, output: &mut Output) -> Result<u8, Failure> {
    match verified(file, args)? {
        Ok(summary) => {
            let checkpoint = summary.checkpoint().map(|point| format!("{}:{}", point.revision, point.head));
            if output.json() {
                let json = json!({
                    "file": file.display().to_string(),
                    "verifies": true,
                    "task_id": summary.task_id.to_string(),
                    "entries": summary.entries,
                    "rev": summary.rev.to_string(),
                    "checkpoint": checkpoint,
                    "opaque": summary.opaque.as_ref().map(ToString::to_string),
                });
                output.text(json.to_string())?;
                return Ok(0);
            }
            output.text(format!(
                "{}: verifies, {}, {}, {}",
                file.display(),
                summary.task_id,
                counted(summary.entries, "entry", "entries"),
                summary.rev
            ))?;
            if let Some(checkpoint) = checkpoint {
                output.text(format!("checkpoint {checkpoint}"))?;
            }
            if let Some(place) = &summary.opaque {
                output.text(format!("opaque from {place} on: what follows a placeholder proves nothing"))?;
            }
            Ok(0)
        }
        Err(error @ JournalError::Read(StreamError::Io { .. })) => Err(Failure::file(file, error)),
        Err(error) => {
            if let Some(mistaken) = mistaken(file, Kind::Journal) {
                return Err(Failure::file(file, mistaken));
            }
            if output.json() {
                let file = file.display().to_string();
                let json = json!({"file": file, "verifies": false, "entry": error.entry(), "fault": error.to_string()});
                output.text(json.to_string())?;
            } else {
                output.error(&format!("fak: {}: {error}", file.display()));
                if matches!(error, JournalError::Opaque { .. }) {
                    output.error("fak: --allow-opaque checks it as far as it goes");
                }
            }
            Ok(1)
        }
    }
}

/// A checkpoint names a record: it is the one the journal is of, found by a first pass.
fn verified(file: &Path, args: &JournalVerifyArgs) -> Result<Result<JournalSummary, JournalError>, Failure> {
    if args.checkpoint.is_some() && file.exists() && !file.is_file() {
        return Err(Failure::file(file, "is read twice for a checkpoint: expected a regular file"));
    }
    let mut options = VerifyOptions { allow_opaque: args.allow_opaque, ..VerifyOptions::default() };
    let summary = verify_journal(open(file)?, &options);
    let (Ok(summary), Some(point)) = (&summary, &args.checkpoint) else {
        return Ok(summary);
    };
    options.checkpoint =
        Some(Checkpoint { task_id: summary.task_id.clone(), revision: point.revision, head: point.head });
    Ok(verify_journal(open(file)?, &options))
}

/// Loading asks more than verifying: the records must be a history that patches make.
fn load(args: &JournalShowArgs, output: &mut Output) -> Result<u8, Failure> {
    let store = TaskStore::new(StoreConfig::default());
    let task = match store.load(open(&args.file)?) {
        Ok(task) => task,
        Err(SharedTaskError::Journal(JournalError::Read(StreamError::Io { source, .. }))) => {
            return Err(Failure::file(&args.file, source));
        }
        Err(error) => {
            if let Some(mistaken) = mistaken(&args.file, Kind::Journal) {
                return Err(Failure::file(&args.file, mistaken));
            }
            if output.json() {
                output.json_of(&json!({"loads": false, "fault": error.to_string()}))?;
            } else {
                output.error(&format!("fak: {}: {error}", args.file.display()));
            }
            return Ok(1);
        }
    };
    let revision = store.revision(&task).map_or(0, |(number, _)| number);
    let record = store.record(&task);
    let (title, state) = record.as_ref().map_or(("", ""), |record| (&*record.title, &*record.state));
    if output.json() {
        output.json_of(&json!({
            "loads": true, "task_id": task.as_str(), "revision": revision, "title": title, "state": state,
        }))?;
    } else {
        output.text(format!(
            "{}: loads, {task} at revision {revision}, {}, {}",
            args.file.display(),
            printable(title),
            printable(state)
        ))?;
    }
    Ok(0)
}

fn show(args: &JournalShowArgs, output: &mut Output) -> Result<u8, Failure> {
    let mut stream = Stream::new(open(&args.file)?, Limits::default());
    match entries(&mut stream, output) {
        Ok(Ok(true)) => Ok(0),
        Ok(Ok(false)) => Err(Failure::of_kind(&args.file, Kind::Journal, "missing member \"entries\"")),
        Ok(Err(failure)) => Err(failure),
        Err(error) => Err(Failure::of_kind(&args.file, Kind::Journal, error)),
    }
}

/// A line per entry, as each is read: memory is one entry. Whether there are entries at all.
fn entries(
    stream: &mut Stream<impl std::io::Read>,
    output: &mut Output,
) -> Result<Result<bool, Failure>, StreamError> {
    let mut found = false;
    stream.begin_object()?;
    while let Some(name) = stream.next_member()? {
        if &*name != "entries" {
            stream.capture()?;
            continue;
        }
        stream.begin_array()?;
        found = true;
        let mut number = 0;
        while stream.next_element()? {
            let captured = stream.capture()?;
            let entry = captured.parse().map_err(|error| captured.place(error))?.into_value();
            let text = if output.json() { as_json(number, &entry) } else { as_line(number, &entry) };
            if let Err(failure) = output.text(text) {
                return Ok(Err(failure));
            }
            number += 1;
        }
    }
    Ok(Ok(found))
}

/// A text of an unchecked entry, made harmless for a terminal.
fn member(entry: &Value, path: &[&str]) -> String {
    let mut at = Some(entry);
    for name in path {
        at = at.and_then(|value| value.member(name));
    }
    printable(at.and_then(Value::as_str).unwrap_or("-"))
}

fn as_line(number: usize, entry: &Value) -> String {
    format!(
        "{number:>5} {} {:<18} {} {:<12} {} {}",
        member(entry, &["event", "ts"]),
        member(entry, &["event", "event_kind"]),
        member(entry, &["event", "actor", "kind"]),
        member(entry, &["event", "actor", "id"]),
        member(entry, &["event", "scope"]),
        member(entry, &["event", "next_rev"]),
    )
}

fn as_json(number: usize, entry: &Value) -> String {
    json!({
        "entry": number,
        "ts": member(entry, &["event", "ts"]),
        "event_kind": member(entry, &["event", "event_kind"]),
        "actor": {"kind": member(entry, &["event", "actor", "kind"]), "id": member(entry, &["event", "actor", "id"])},
        "scope": member(entry, &["event", "scope"]),
        "next_rev": member(entry, &["event", "next_rev"]),
    })
    .to_string()
}
