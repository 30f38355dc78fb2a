//! What a record or a patch in a scenario lacks, all at once: its own crate reads it, and stops at the first.

use fak_abi::json::{Cursor, Value};

use super::{Faults, Parsed, rule};
use crate::words::meant;

/// The members that an object cannot be without, and how each may be written.
pub(super) type Needed = &'static [(&'static str, &'static str)];

const WHO: &str = "{\"kind\": \"agent\", \"id\": \"…\"}";
const TEXT: &str = "\"…\"";
const TIME: &str = "\"2026-01-01T00:00:00Z\"";
const BODY: &str = "{\"text\": \"…\"}";

/// Of a record (§5.1), but its `rev`, which the store computes.
pub(super) const RECORD: Needed = &[
    ("schema", "\"fak.shared-task.v1\""),
    ("task_id", "\"task_…\""),
    ("state", "\"working\""),
    ("title", TEXT),
    ("body_ref", BODY),
    ("artifacts", "[]"),
    ("notes", "[]"),
    ("open_decisions", "[]"),
    ("updated_by", WHO),
    ("updated_at", TIME),
];
/// Of a patch (§5.3).
pub(super) const PATCH: Needed = &[
    ("schema", "\"fak.shared-patch.v1\""),
    ("task_id", "\"task_…\""),
    ("base_rev", "\"@current\""),
    ("actor", WHO),
    ("scope", "\"fleet\""),
    ("durability", "\"session\""),
    ("ops", "[…]"),
    ("message", TEXT),
];
const ACTOR: Needed = &[("kind", "\"agent\""), ("id", TEXT)];
const OP: Needed = &[("op", "\"append\""), ("path", "\"/notes\"")];
const NOTE: Needed =
    &[("note_id", TEXT), ("kind", "\"comment\""), ("body_ref", BODY), ("author", WHO), ("created_at", TIME)];
const ARTIFACT: Needed = &[
    ("artifact_id", TEXT),
    ("ref", "\"sha256:…\""),
    ("media_type", "\"text/plain\""),
    ("taint", "\"tainted\""),
    ("scope", "\"fleet\""),
    ("store", "\"local-cas\""),
];
const DECISION: Needed = &[("decision_id", TEXT), ("state", "\"open\""), ("reason", TEXT)];

/// The members of what an act is told as `record` or `patch`, and how each may be written.
pub(crate) fn of_act(act: &str) -> Needed {
    match act {
        "create" => RECORD,
        "patch" => PATCH,
        _ => &[],
    }
}

/// Refuses an envelope that lacks members, or in which an actor, op, note, artifact or decision does; each with its place.
pub(super) fn whole(cursor: Cursor<'_>, needed: Needed) -> Parsed<()> {
    let mut faults = Faults::default();
    lacks(&mut faults, cursor, needed);
    for (name, at) in cursor.entries()? {
        match name {
            "actor" | "updated_by" => lacks(&mut faults, at, ACTOR),
            "ops" => each(&mut faults, at, OP),
            "notes" => each(&mut faults, at, NOTE),
            "artifacts" => each(&mut faults, at, ARTIFACT),
            "open_decisions" => each(&mut faults, at, DECISION),
            _ => {}
        }
    }
    faults.settle(Some(()))
}

fn each(faults: &mut Faults, list: Cursor<'_>, needed: Needed) {
    for element in list.array().into_iter().flatten() {
        lacks(faults, element, needed);
        let Ok(entries) = element.entries() else { continue };
        let path = element.value().member("path").and_then(Value::as_str);
        for (name, at) in entries {
            match (name, path) {
                ("author", _) => lacks(faults, at, ACTOR),
                ("value", Some("/notes")) => lacks(faults, at, NOTE),
                ("value", Some("/artifacts")) => lacks(faults, at, ARTIFACT),
                ("value", Some("/open_decisions")) => lacks(faults, at, DECISION),
                _ => {}
            }
        }
    }
}

/// One object; what is none is for its own reader.
fn lacks(faults: &mut Faults, cursor: Cursor<'_>, needed: Needed) {
    let Some(members) = cursor.value().as_object() else { return };
    let strange = || {
        let names = members.iter().map(|member| &*member.name);
        names.filter(|name| needed.iter().all(|(known, _)| known != name))
    };
    let missing: Vec<String> = needed
        .iter()
        .filter(|(name, _)| cursor.value().member(name).is_none())
        .map(|(name, example)| {
            let near = strange().find(|given| meant(given, [*name]).is_some());
            let near = near.map_or_else(String::new, |near| format!(" (is {near:?} meant to be it?)"));
            format!("\"{name}\": {example}{near}")
        })
        .collect();
    let what = match missing.as_slice() {
        [] => return,
        [_] => "missing member",
        _ => "missing members",
    };
    faults.keep::<()>(cursor, Err(rule(cursor, format!("{what} {}", missing.join(", ")))));
}

#[cfg(test)]
mod tests {
    use fak_sharedtask::{Envelope as _, LOCAL_STORE, Patch, Record};

    use super::*;

    /// What is told to be written is what is read.
    #[test]
    fn the_examples_are_those_of_the_envelopes() {
        let of = |needed: Needed, member| {
            needed.iter().find(|(name, _)| *name == member).map(|(_, text)| text.trim_matches('"'))
        };
        assert_eq!(of(RECORD, "schema"), Some(Record::SCHEMA));
        assert_eq!(of(PATCH, "schema"), Some(Patch::SCHEMA));
        assert_eq!(of(ARTIFACT, "store"), Some(LOCAL_STORE));
    }
}
