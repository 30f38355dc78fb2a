//! What a schema of this project looks like beyond its meta-schema: named after its file, every member described, and one
//! meaning for one name in all of them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::set::{ID, Schema, Schemas};
use crate::report::Report;

/// Judges one schema.
pub(super) fn judge(schema: &Schema, report: &mut Report) {
    let id = schema.text.get("$id").and_then(Value::as_str).unwrap_or_default();
    let expected = format!("{ID}{}", schema.name);
    if id != expected {
        report.finding(&schema.file, format!("its `$id` is \"{id}\""), format!("name it \"{expected}\""));
    }
    let file = format!("schemas/{}.json", file_stem(&schema.name));
    if schema.file != file {
        report.finding(
            &schema.file,
            format!("it is for \"{}\"", schema.name),
            format!("call the file {file}"),
        );
    }
    let mut open = vec![(String::new(), &schema.text)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "properties"
                        && let Value::Object(properties) = member
                    {
                        undescribed(schema, &path, properties, report);
                    }
                    open.push((format!("{path}/{name}"), member));
                }
            }
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(index, item)| (format!("{path}/{index}"), item)));
            }
            _ => {}
        }
    }
}

/// Names the members that say nothing about themselves. Conditions only test members described elsewhere.
fn undescribed(
    schema: &Schema,
    path: &str,
    properties: &serde_json::Map<String, Value>,
    report: &mut Report,
) {
    let last = path.rsplit('/').next().unwrap_or_default();
    let parent = path.rsplit('/').nth(1).unwrap_or_default();
    if last == "if" || parent == "allOf" {
        return;
    }
    for (name, member) in properties {
        // `false` forbids a member that is described elsewhere.
        if member.is_object() && member.get("description").is_none() && member.get("$ref").is_none() {
            report.finding(
                format!("{}{path}/properties/{name}", schema.file),
                "this member says nothing about itself",
                "give it a `description`",
            );
        }
    }
}

/// `fak.a2a.worker-status.v1` is in `a2a-worker-status.v1.json`.
fn file_stem(name: &str) -> String {
    name.strip_prefix("fak.").unwrap_or(name).replacen("a2a.", "a2a-", 1)
}

/// A definition of one name means one thing in every schema that has it.
pub(super) fn agree(schemas: &Schemas, report: &mut Report) {
    let mut known: BTreeMap<&str, (&str, &Value)> = BTreeMap::new();
    for schema in schemas.iter() {
        // The two keywords belong to drafts whose references are written differently, so only like is compared with like.
        let Some(definitions) = schema.text.get("$defs").and_then(Value::as_object) else {
            continue;
        };
        for (name, definition) in definitions {
            match known.get(name.as_str()) {
                Some((file, other)) if *other != definition => report.finding(
                    format!("{}/$defs/{name}", schema.file),
                    format!("means something else than in {file}"),
                    "make the two equal, or give one another name",
                ),
                Some(_) => {}
                None => {
                    known.insert(name, (&schema.file, definition));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_what_they_are_for() {
        assert_eq!(file_stem("fak.a2a.worker-status.v1"), "a2a-worker-status.v1");
        assert_eq!(file_stem("fak.shared-task.v1"), "shared-task.v1");
    }
}
