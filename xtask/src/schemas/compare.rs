//! Sets this project's shared-record schemas beside the public ones: every fixture and every small change of one is shown to
//! both. What the public schema accepts ours must accept; what it refuses ours must refuse, but for a list written `null`.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::{PEER, Schema, Schemas};
use crate::{error::TaskError, repo::Repo, report::Report};

/// The lists that the Go implementation writes as `null` when it never touched them (§7.1).
const NULL_LISTS: &[&str] = &["/artifacts", "/notes", "/open_decisions"];

/// Compares the two sets.
pub(super) fn compare(repo: &Repo, ours: &Schemas, report: &mut Report) -> Result<(), TaskError> {
    let public = Schemas::load(repo, &format!("{PEER}/schemas"), report)?;
    if public.iter().next().is_none() {
        report.missing(format!("the public schemas in {PEER}/schemas"));
    }
    let fixtures = fixtures(repo)?;
    for public in public.iter() {
        let Some(ours) = ours.named(&public.name) else {
            report.missing(format!("a schema of ours for {}", public.name));
            continue;
        };
        let mut shown = 0_usize;
        for (path, fixture) in &fixtures {
            if fixture.get("schema").and_then(Value::as_str) != Some(&public.name) {
                continue;
            }
            if !public.accepts(fixture) {
                report.finding(
                    repo.show(path),
                    "the public schema refuses its own fixture",
                    "copy the fixture again",
                );
            }
            shown += differ(ours, public, fixture, &repo.show(path), report);
        }
        if shown == 0 {
            report.missing(format!("a fixture of {}", public.name));
        }
        report.fact(format!("{}: agrees with the public schema on {shown} instances", public.name));
    }
    Ok(())
}

/// The envelopes among the peer's files.
fn fixtures(repo: &Repo) -> Result<Vec<(PathBuf, Value)>, TaskError> {
    let mut found = Vec::new();
    for folder in ["shared-task-record", "shared-task-record-verdicts"] {
        for path in repo.files(&format!("{PEER}/{folder}"), "json")? {
            let value = repo.json(&path)?;
            found.extend(inside(&value).map(|envelope| (path.clone(), envelope.clone())));
            found.push((path, value));
        }
    }
    Ok(found)
}

/// The records and events inside a journal, which its own schema leaves open.
fn inside(journal: &Value) -> impl Iterator<Item = &Value> {
    let entries = journal.get("entries").and_then(Value::as_array).into_iter().flatten();
    let parts = entries.flat_map(|entry| [entry.get("event"), entry.get("record")]);
    parts.chain([journal.get("initial")]).flatten()
}

/// Shows a fixture and its changes to both, and says how many there were.
fn differ(ours: &Schema, public: &Schema, fixture: &Value, file: &str, report: &mut Report) -> usize {
    let mut shown = 0;
    for (change, instance) in changes(fixture) {
        shown += 1;
        let (wanted, got) = (public.accepts(&instance), ours.accepts(&instance));
        let null_list = public.name == "fak.shared-task.v1"
            && NULL_LISTS.iter().any(|path| instance.pointer(path).is_some_and(Value::is_null));
        if wanted != got && !(null_list && got) {
            let verb = |accepts: bool| if accepts { "accepts" } else { "refuses" };
            report.finding(
                format!("{}: {file} with {change}", ours.file),
                format!("ours {} it and the public schema {} it", verb(got), verb(wanted)),
                "make ours accept exactly what the public one does",
            );
        }
    }
    shown
}

/// The instance itself, and each instance that differs from it in one place: a member left out, one added, a value replaced.
fn changes(instance: &Value) -> Vec<(String, Value)> {
    let mut found = vec![("no change".to_owned(), instance.clone())];
    for path in places(instance) {
        for other in replacements() {
            let mut changed = instance.clone();
            if let Some(slot) = changed.pointer_mut(&path) {
                let what = format!("{path} = {other}");
                *slot = other;
                found.push((what, changed));
            }
        }
        let mut without = instance.clone();
        if remove(&mut without, &path) {
            found.push((format!("no {path}"), without));
        }
        let mut with = instance.clone();
        if let Some(Value::Object(members)) = with.pointer_mut(&path) {
            members.insert("x_unknown".to_owned(), json!({"a": [1]}));
            found.push((format!("{path}/x_unknown"), with));
        }
    }
    found
}

fn replacements() -> [Value; 16] {
    [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("/x"),
        json!("sha256:"),
        json!("sha256:x"),
        json!("task_"),
        json!("public"),
        json!("remove"),
        json!([]),
        json!([{}]),
        Value::Object(Map::new()),
    ]
}

/// A pointer to every value inside an instance.
fn places(instance: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), instance)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                open.extend(members.iter().map(|(name, member)| (format!("{path}/{name}"), member)));
            }
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(index, item)| (format!("{path}/{index}"), item)));
            }
            _ => {}
        }
        found.push(path);
    }
    found
}

/// Removes the member a pointer names.
fn remove(instance: &mut Value, path: &str) -> bool {
    let Some((parent, name)) = path.rsplit_once('/') else {
        return false;
    };
    match instance.pointer_mut(parent) {
        Some(Value::Object(members)) => members.remove(name).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_left_out_added_to_and_replaced() {
        let instance = json!({"a": {"b": 1}, "c": [2]});
        assert_eq!(places(&instance).len(), 5);
        let changes = changes(&instance);
        let has = |change: &str| changes.iter().any(|(name, _)| name == change);
        assert!(has("no /a/b") && has("/a/x_unknown") && has("/c/0 = null") && has("no change"));
        assert!(!has("no /c/0"));
    }
}
