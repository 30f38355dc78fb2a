//! What a file is that was given to a verb for something else. Told from its beginning, and only after the verb has failed on it:
//! it never decides whether something is read or verifies.

use std::{fs::File, io::Read as _, path::Path};

use fak_abi::json::{Document, Limits, Value};

/// The kinds of files that verbs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scenario,
    AuditLog,
    Checkpoint,
    Journal,
    Record,
    Patch,
    Policy,
    LaneTable,
    Topology,
    RunReport,
}

/// As much of a file as its kind is told from.
const BEGINNING: u64 = 64 * 1024;

/// The schemas that files declare.
const SCHEMAS: &[(&str, Kind)] = &[
    ("fak.scenario.v1", Kind::Scenario),
    ("fak.shared-task-journal.v1", Kind::Journal),
    ("fak.shared-task.v1", Kind::Record),
    ("fak.shared-patch.v1", Kind::Patch),
    ("fak.run-report.v1", Kind::RunReport),
];

impl Kind {
    /// The kind of a file, if its beginning tells.
    fn of(path: &Path) -> Option<Self> {
        // What is no regular file was read once, and may not be there a second time.
        if !path.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(BEGINNING).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        if text.trim_start().starts_with('{') { Self::of_json(&text) } else { Self::of_toml(&text) }
    }

    fn of_json(text: &str) -> Option<Self> {
        let parsed =
            |text: &str| Document::parse(text.as_bytes(), &Limits::default()).ok().map(Document::into_value);
        let first = text.lines().next().and_then(parsed);
        let whole = parsed(text);
        let has = |value: &Option<Value>, names: &[&str]| {
            value.as_ref().is_some_and(|value| names.iter().all(|name| value.member(name).is_some()))
        };
        if has(&first, &["n", "prev", "sum"]) {
            return Some(Self::AuditLog);
        }
        // A long or torn file has its schema at the beginning all the same.
        let declared = text.split_once("\"schema\"").and_then(|(_, rest)| rest.split('"').nth(1));
        if let Some((_, kind)) = SCHEMAS.iter().find(|(schema, _)| Some(*schema) == declared) {
            return Some(*kind);
        }
        match () {
            () if has(&whole, &["edges"]) => Some(Self::Topology),
            () if has(&whole, &["count", "head"]) => Some(Self::Checkpoint),
            () if has(&whole, &["agents", "steps"]) => Some(Self::Scenario),
            () if has(&whole, &["version"]) && (has(&whole, &["allow"]) || has(&whole, &["deny"])) => {
                Some(Self::Policy)
            }
            () => None,
        }
    }

    fn of_toml(text: &str) -> Option<Self> {
        let begins = |what: &[&str]| {
            text.lines().map(str::trim_start).any(|line| what.iter().any(|what| line.starts_with(what)))
        };
        match () {
            () if begins(&["[[allow]]", "[[deny]]", "[[quarantine]]", "[[grant]]"]) => Some(Self::Policy),
            () if begins(&["[lanes"]) => Some(Self::LaneTable),
            () => None,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Scenario => "a scenario",
            Self::AuditLog => "an audit log",
            Self::Checkpoint => "a checkpoint of an audit log",
            Self::Journal => "the journal of a shared record",
            Self::Record => "a shared record",
            Self::Patch => "a patch of a shared record",
            Self::Policy => "a policy",
            Self::LaneTable => "a lane table",
            Self::Topology => "a topology",
            Self::RunReport => "the report of a run",
        }
    }

    /// The command that reads such a file.
    fn command(self, file: &str) -> Option<String> {
        Some(match self {
            Self::Scenario => format!("fak run {file}"),
            Self::AuditLog => format!("fak audit verify {file}"),
            Self::Checkpoint => format!("fak audit verify LOG --checkpoint {file}"),
            Self::Journal => format!("fak journal verify {file}"),
            Self::Record => format!("fak task new {file} --journal JOURNAL"),
            Self::Patch => format!("fak task apply JOURNAL {file} --as ID"),
            Self::Policy => format!("fak policy lint {file}"),
            Self::LaneTable => format!("fak lanes lint {file}"),
            Self::Topology => format!("fak topo render {file}"),
            Self::RunReport => return None,
        })
    }
}

/// What a file is instead of what was wanted, and what to do with it; nothing if it is that, or is not to be told.
pub(crate) fn mistaken(path: &Path, wanted: Kind) -> Option<String> {
    let kind = Kind::of(path).filter(|kind| *kind != wanted)?;
    let use_it =
        kind.command(&path.display().to_string()).map_or_else(String::new, |command| format!(": {command}"));
    Some(format!("this is {}, not {}{use_it}", kind.what(), wanted.what()))
}
