//! `fak audit`: logs checked and looked into (§3.6).

use std::{
    io::{self, BufRead},
    path::Path,
};

use fak_adjudicate::{AuditError, AuditReader, AuditRecord, Checkpoint, verify_audit};
use fak_scenario::counted;
use serde_json::{Map, Value, json};

use crate::{
    args::{AuditShowArgs, AuditVerb, AuditVerifyArgs},
    failure::{Failure, open, read},
    kind::{Kind, mistaken},
    output::Output,
};

pub(crate) fn audit(verb: &AuditVerb, output: &mut Output) -> Result<u8, Failure> {
    match verb {
        AuditVerb::Verify(args) => verify(args, output),
        AuditVerb::Show(args) => show(args, output),
    }
}

fn verify(args: &AuditVerifyArgs, output: &mut Output) -> Result<u8, Failure> {
    let checkpoint = args.checkpoint.as_deref().map(checkpoint).transpose()?;
    let verified = match verify_audit(log(&args.file)?, checkpoint.as_ref()) {
        Ok(verified) => verified,
        Err(error) => return broken(&args.file, &error, output),
    };
    if let Some(path) = &args.write_checkpoint {
        std::fs::write(path, verified.end.to_json()).map_err(|error| Failure::file(path, error))?;
    }
    if output.json() {
        let json = json!({
            "verifies": true,
            "entries": verified.end.count,
            "head": verified.end.head.to_string(),
            "missed": verified.missed,
            "tail": checkpoint.is_some(),
        });
        output.text(json.to_string())?;
    } else {
        output.text(format!(
            "{}: verifies, {}, head {}",
            args.file.display(),
            counted(verified.end.count, "entry", "entries"),
            verified.end.head
        ))?;
        output.text(format!("checkpoint {}:{}", verified.end.count, verified.end.head))?;
        if verified.missed > 0 {
            let missed = counted(verified.missed, "entry", "entries");
            output.text(format!("{missed} found no place, summed in gaps"))?;
        }
        if checkpoint.is_none() {
            output.text("a missing tail does not show without a checkpoint: --checkpoint")?;
        }
    }
    Ok(0)
}

/// The checkpoint in a file, or as it is printed.
fn checkpoint(given: &str) -> Result<Checkpoint, Failure> {
    if let Some((count, head)) = given.split_once(':')
        && let (Ok(count), Ok(head)) = (count.parse(), head.parse())
    {
        return Ok(Checkpoint { count, head });
    }
    let path = Path::new(given);
    Checkpoint::parse(&read(path)?).map_err(|error| Failure::file(path, error))
}

/// The log in a file, or on standard input.
fn log(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path.as_os_str() == "-" { Ok(Box::new(io::stdin().lock())) } else { Ok(Box::new(open(path)?)) }
}

/// The first bad line, and status 1; what cannot be read at all is status 2.
fn broken(path: &Path, error: &AuditError, output: &mut Output) -> Result<u8, Failure> {
    if let Some(mistaken) = mistaken(path, Kind::AuditLog) {
        return Err(Failure::file(path, mistaken));
    }
    let AuditError::Line { line, fault } = error else {
        return Err(Failure::file(path, error));
    };
    if output.json() {
        output.text(json!({"verifies": false, "line": line, "fault": fault.to_string()}).to_string())?;
    } else {
        output.error(&format!("fak: {}:{line}: {fault}", path.display()));
    }
    Ok(1)
}

fn show(args: &AuditShowArgs, output: &mut Output) -> Result<u8, Failure> {
    let mut reader = AuditReader::new(log(&args.file)?);
    let (mut read, mut shown) = (0_u64, 0_u64);
    loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => return broken(&args.file, &error, output),
        };
        read += 1;
        if wanted(args, &record) {
            shown += 1;
            output.text(if output.json() { as_json(&record).to_string() } else { as_line(&record) })?;
        }
    }
    // A line per entry is all that a program reads.
    if shown == 0 && !output.json() {
        output.text(format!("0 of {}", counted(read, "entry", "entries")))?;
    }
    Ok(0)
}

fn wanted(args: &AuditShowArgs, record: &AuditRecord) -> bool {
    args.agent.as_ref().is_none_or(|agent| record.principal.as_ref() == Some(agent))
        && args.verdict.is_none_or(|verdict| record.verdict == Some(verdict))
        && args.reason.is_none_or(|reason| record.reason == Some(reason))
        && args.since.is_none_or(|since| record.at >= since)
        && args.until.is_none_or(|until| record.at < until)
}

fn as_line(record: &AuditRecord) -> String {
    let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.to_owned());
    let mut line = format!(
        "{:>6} {} {:<18} {:<10} {:<26}",
        record.n,
        record.at,
        or(&record.act, record.kind.name()),
        or(&record.principal, "-"),
        or(&record.address, "-")
    );
    for part in [
        record.rank.map(|rank| format!("rank {rank}")),
        record.verdict.map(|verdict| verdict.name().to_owned()),
        record.reason.map(|reason| reason.name().to_owned()),
        record.by.as_ref().map(|by| format!("by {by}")),
        record.site.as_ref().map(|site| format!("at {site}")),
        record.cause.as_ref().map(|cause| format!("({cause})")),
        record.count.map(|count| format!("({})", counted(count, "entry", "entries"))),
        record.first.zip(record.last).map(|(first, last)| format!("seq {first} to {last}")),
        record.bytes.map(|bytes| format!("cut off {} of a torn last line", counted(bytes, "byte", "bytes"))),
    ]
    .into_iter()
    .flatten()
    {
        line.push(' ');
        line.push_str(&part);
    }
    line
}

fn as_json(record: &AuditRecord) -> Value {
    let mut json = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            json.insert(name.to_owned(), value);
        }
    };
    put("n", Some(record.n.into()));
    put("kind", Some(record.kind.name().into()));
    put("seq", Some(record.seq.into()));
    put("at", Some(record.at.to_string().into()));
    put("act", record.act.clone().map(Value::from));
    put("principal", record.principal.clone().map(Value::from));
    put("incarnation", record.incarnation.map(Value::from));
    put("address", record.address.clone().map(Value::from));
    put("rank", record.rank.map(Value::from));
    put("digest", record.digest.map(|digest| digest.to_string().into()));
    put("verdict", record.verdict.map(|verdict| verdict.name().into()));
    put("reason", record.reason.map(|reason| reason.name().into()));
    put("by", record.by.clone().map(Value::from));
    put("site", record.site.clone().map(Value::from));
    put("retry_after_ms", record.retry_after_ms.map(Value::from));
    put("cause", record.cause.clone().map(Value::from));
    put("count", record.count.map(Value::from));
    put("first", record.first.map(Value::from));
    put("last", record.last.map(Value::from));
    put("bytes", record.bytes.map(Value::from));
    Value::from(json)
}
