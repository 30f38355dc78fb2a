//! A folder of schemas, each compiled and found by the name its envelope declares.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::Value;

use crate::{error::TaskError, repo::Repo, report::Report};

/// One schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The name an envelope declares in its `schema` member; of a policy, which has none, the last part of `$id`.
    pub(crate) name: String,
    /// Its file, relative to the root.
    pub(crate) file: String,
    /// As it stands.
    pub(crate) text: Value,
    validator: Validator,
}

/// One fault of an instance: where it is, which keyword found it, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// A JSON pointer into the instance; empty for the whole of it.
    pub(crate) path: String,
    pub(crate) keyword: String,
    pub(crate) message: String,
}

impl Schema {
    /// Whether the instance is valid.
    pub(crate) fn accepts(&self, instance: &Value) -> bool {
        self.validator.is_valid(instance)
    }

    /// Every fault of an instance. The messages do not show the instance's values.
    pub(crate) fn faults(&self, instance: &Value) -> Vec<Fault> {
        self.validator
            .iter_errors(instance)
            .map(|error| Fault {
                path: error.instance_path().as_str().to_owned(),
                keyword: error.kind().keyword().to_owned(),
                message: error.masked().to_string(),
            })
            .collect()
    }
}

/// Schemas by name.
#[derive(Debug, Default)]
pub(crate) struct Schemas(BTreeMap<String, Schema>);

impl Schemas {
    /// Loads a folder. A schema that is none is a finding and is left out.
    pub(crate) fn load(repo: &Repo, folder: &str, report: &mut Report) -> Result<Self, TaskError> {
        let mut schemas = BTreeMap::new();
        for path in repo.files(folder, "json")? {
            let file = repo.show(&path);
            let text = repo.json(&path)?;
            if let Err(error) = jsonschema::meta::validate(&text) {
                report.finding(
                    format!("{file}{}", error.instance_path()),
                    format!("not valid against its meta-schema: {error}"),
                    "mend the schema",
                );
                continue;
            }
            let validator = match jsonschema::options().should_validate_formats(true).build(&text) {
                Ok(validator) => validator,
                Err(error) => {
                    report.finding(file, format!("cannot be compiled: {error}"), "mend the schema");
                    continue;
                }
            };
            let Some(name) = declared(&text) else {
                report.finding(
                    file,
                    "declares no envelope",
                    "give `properties.schema` a `const`, or `$id` a name",
                );
                continue;
            };
            schemas.insert(name.clone(), Schema { name, file, text, validator });
        }
        Ok(Self(schemas))
    }

    /// The schema of an envelope.
    pub(crate) fn named(&self, name: &str) -> Option<&Schema> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Schema> {
        self.0.values()
    }

    /// The schema that an envelope declares for itself.
    pub(crate) fn of(&self, envelope: &Value) -> Option<&Schema> {
        self.named(envelope.get("schema")?.as_str()?)
    }
}

/// The name a schema is for.
fn declared(text: &Value) -> Option<String> {
    let by_envelope = text.pointer("/properties/schema/const").and_then(Value::as_str);
    let by_id = text.get("$id").and_then(Value::as_str).and_then(|id| id.strip_prefix(ID));
    by_envelope.or(by_id).map(str::to_owned)
}

/// What the `$id` of a schema of this project begins with.
pub(super) const ID: &str = "urn:fak:schema:";
