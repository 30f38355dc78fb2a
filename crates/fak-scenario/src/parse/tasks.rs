//! The records that the host creates first: inside the scenario, or in a file that it names.

use std::path::Path;

use fak_abi::json::{self, Cursor, Document};

use super::{Fault, Faults, Parsed, Source, envelope, placed, record::file_member};
use crate::{act::RawJson, error::ScenarioError, model::Tasks};

/// A list of records, or a file that holds one.
pub(super) fn tasks(source: &Source<'_>, cursor: Cursor<'_>) -> Parsed<Tasks> {
    if cursor.value().as_object().is_some() {
        let Some(file) = file_member(cursor)? else {
            return Err(cursor.invalid("a list of records or {\"file\": …}").into());
        };
        let (path, text) = source.file(file)?;
        let records = list_of(&path, &text, source).map_err(Fault::elsewhere)?;
        return Ok(Tasks { records, file: Some(path) });
    }
    Ok(Tasks { records: records(source, cursor)?, file: None })
}

/// The records of a list, each as it stands there; what each of them lacks is said of all.
fn records(source: &Source<'_>, list: Cursor<'_>) -> Parsed<Vec<RawJson>> {
    let mut faults = Faults::default();
    let mut records = Vec::new();
    for element in list.array()? {
        let whole = match element.object() {
            Ok(_) => envelope::whole(element, envelope::RECORD),
            Err(error) => Err(error.into()),
        };
        if faults.keep(element, whole).is_some() {
            records.extend(faults.keep(element, source.record(element)));
        }
    }
    faults.settle(Some(records))
}

/// The records of another file; what is wrong there is said with its place there.
fn list_of(path: &Path, text: &str, source: &Source<'_>) -> Result<Vec<RawJson>, ScenarioError> {
    let document = Document::parse(text.as_bytes(), &json::Limits::default())
        .map_err(|error| placed(path, error, None, None))?;
    let root = document.root();
    if root.value().as_array().is_none() {
        let error = root.invalid("a list of records, even of one: [{…}]");
        return Err(placed(path, error, None, None));
    }
    records(&Source::new(text, path, source.reach), root).map_err(|fault| fault.into_error(path, root))
}
