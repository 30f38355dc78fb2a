//! The arguments of the acts on the record and the space. Records, patches and journals are kept as text: their own crate
//! reads them.

use fak_abi::json::{self, Cursor, Fields};
use fak_sharedtask::{Envelope as _, Hash, Limits, Patch};

use super::{
    Fault, Faults, Parsed, Source,
    body_text::{along, spelled_out},
    closed, envelope,
    names::{Kept, Names},
    parts::{body, optional_text, scope, text},
    rule, unfit,
};
use crate::act::{Base, JournalSource, RawJson, RecordAct, Watched};

pub(super) fn act(
    source: &Source<'_>,
    names: &mut Names,
    name: &str,
    fields: &mut Fields<'_>,
) -> Parsed<Option<RecordAct>> {
    Ok(Some(match name {
        "create" => {
            let record = fields.required("record")?;
            // A record that is to be refused may lack what it likes.
            if !expects_failure(fields.cursor()) {
                envelope::whole(record, envelope::RECORD)?;
            }
            RecordAct::Create { record: source.record(record)? }
        }
        "patch" => {
            let (patch, base) = patch(source, fields.required("patch")?)?;
            RecordAct::Patch { patch: Box::new(patch), base, key: optional_text(fields, "key")? }
        }
        "approve" => RecordAct::Approve { task: text(fields, "task")?, decision: text(fields, "decision")? },
        "reject" => RecordAct::Reject { task: text(fields, "task")?, decision: text(fields, "decision")? },
        "view" => RecordAct::View { task: text(fields, "task")? },
        "events" => RecordAct::Events { task: text(fields, "task")? },
        "watch" => RecordAct::Watch {
            what: match (fields.optional("task"), fields.optional("prefix")) {
                (Some(task), None) => Watched::Task(task.string()?.to_owned()),
                (None, Some(prefix)) => Watched::Prefix(prefix.string()?.to_owned()),
                _ => {
                    return Err(rule(fields.cursor(), "exactly one of \"task\" and \"prefix\" is needed"));
                }
            },
            name: names.give(Kept::Watch, fields.required("as")?)?,
        },
        "next" => RecordAct::Next { name: names.kept(Kept::Watch, fields.required("as")?)? },
        "journal" => RecordAct::Journal { task: text(fields, "task")? },
        "load" => RecordAct::Load { journal: journal(source, names, fields.required("journal")?)? },
        "put" => RecordAct::Put { key: text(fields, "key")?, body: body(names, fields.required("body")?)? },
        "cas" => RecordAct::Cas {
            key: text(fields, "key")?,
            body: body(names, fields.required("body")?)?,
            version: fields.required("version")?.u64()?,
            scope: scope(fields)?,
        },
        "get" => RecordAct::Get { key: text(fields, "key")?, scope: scope(fields)? },
        "delete" => RecordAct::Delete {
            key: text(fields, "key")?,
            version: fields.required("version")?.u64()?,
            scope: scope(fields)?,
        },
        "list" => RecordAct::List { prefix: text(fields, "prefix")?, scope: scope(fields)? },
        _ => return Ok(None),
    }))
}

/// Whether a step says that what it makes is not made.
fn expects_failure(step: Cursor<'_>) -> bool {
    let expect = step.value().member("expect");
    expect.is_some_and(|expect| ["ok", "error"].iter().any(|name| expect.member(name).is_some()))
}

/// A patch, whose `base_rev` may name a revision as `"@current"` or `"@0"`, `"@1"`, …
fn patch(source: &Source<'_>, cursor: Cursor<'_>) -> Parsed<(Patch, Base)> {
    let base_at = cursor.object()?.optional("base_rev");
    let mut faults = Faults::default();
    faults.keep(cursor, envelope::whole(cursor, envelope::PATCH));
    let base = faults.keep(cursor, base_at.map_or(Ok(Base::Written), base));
    let base = faults.settle(base)?;
    let RawJson { text, .. } = source.raw(cursor);
    let named = base_at.and_then(|at| Some((at, at.value().as_str()?.strip_prefix('@')?)));
    let Some((at, named)) = named else {
        return Ok((read_patch(source, cursor, &text)?, base));
    };
    // An empty base reads as none, and is replaced when the patch is performed. The blanks keep every place.
    let start = at.value().offset().saturating_sub(cursor.value().offset());
    let width = named.len() + "\"@\"".len();
    let (before, rest) = text.split_at_checked(start).unwrap_or((&text, ""));
    let after = rest.get(width..).unwrap_or_default();
    let text = format!("{before}\"\"{:blanks$}{after}", "", blanks = width.saturating_sub(2));
    Ok((read_patch(source, cursor, &text)?, base))
}

/// Which revision a `base_rev` names; one that is no text is for the patch's own reader.
fn base(at: Cursor<'_>) -> Parsed<Base> {
    const EXPECTED: &str = "a digest, \"@current\", or \"@\" and the number of a revision";
    let Some(text) = at.value().as_str() else { return Ok(Base::Written) };
    let Some(named) = text.strip_prefix('@') else {
        if text.is_empty() || Hash::parse(text).is_some() {
            return Ok(Base::Written);
        }
        let revision = text == "current" || text.parse::<usize>().is_ok();
        let near = if revision { format!("{EXPECTED}, such as \"@{text}\"") } else { EXPECTED.to_owned() };
        return Err(unfit(at, &near));
    };
    match named.parse() {
        Ok(number) => Ok(Base::Number(number)),
        Err(_) if named == "current" => Ok(Base::Current),
        Err(_) => Err(unfit(at, EXPECTED)),
    }
}

/// Reads a patch, with errors placed in the scenario.
fn read_patch(source: &Source<'_>, cursor: Cursor<'_>, text: &str) -> Parsed<Patch> {
    // What a patch brings is as wide as the patch, unless it says otherwise.
    let scope = cursor.value().member("scope").and_then(json::Value::as_str).unwrap_or_default();
    let spelled = spelled_out(text, cursor, scope)?;
    let here = cursor.invalid("");
    let place = |offset| json::Place::of(source.text.as_bytes(), offset);
    Patch::parse(spelled.as_deref().unwrap_or(text).as_bytes(), &Limits::default()).map_err(|error| {
        if spelled.is_none() {
            return Fault::here(error.within(place(cursor.value().offset()), here.path()), None);
        }
        // Columns are those of the text as it was spelled out: the member tells where it stands in the scenario.
        let at = along(cursor.value(), error.path()).offset();
        let path = format!("{}{}", here.path(), error.path());
        Fault::here(json::Error::new(place(at), path, error.problem().clone()), None)
    })
}

/// A saved name, `{"file": …}`, or the journal itself.
fn journal(source: &Source<'_>, names: &Names, cursor: Cursor<'_>) -> Parsed<JournalSource> {
    if cursor.value().as_str().is_some() {
        return Ok(JournalSource::Saved(names.kept(Kept::Saved, cursor)?));
    }
    Ok(JournalSource::Text(match file_member(cursor)? {
        Some(file) => {
            let (_, text) = source.file(file)?;
            RawJson { text, line: 1 }
        }
        None => source.raw(cursor),
    }))
}

/// The `file` of an object that has it and nothing else.
pub(super) fn file_member(cursor: Cursor<'_>) -> Parsed<Option<Cursor<'_>>> {
    match cursor.object()?.optional("file") {
        Some(file) => {
            closed(cursor, &["file"])?;
            Ok(Some(file))
        }
        None => Ok(None),
    }
}
