//! The text of a policy as a tree that knows where everything stands, whichever of the two
//! languages it is written in.

use std::borrow::Cow;
use std::ops::Range;

use fak_abi::json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{PolicyError, PolicyProblem};

/// How long a policy may be, in bytes.
pub(super) const MAX_BYTES: usize = 4 << 20;
/// Tables and arrays deeper than this hold nothing a policy can have.
const DEPTH: usize = 3;

pub(super) struct Node<'t> {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind<'t>,
}

pub(super) enum Kind<'t> {
    Text(Cow<'t, str>),
    Whole(u64),
    List(Vec<Node<'t>>),
    Table(Vec<Entry<'t>>),
    /// Something no policy has, by its name.
    Other(&'static str),
}

pub(super) struct Entry<'t> {
    pub(super) name: Cow<'t, str>,
    /// Of the name.
    pub(super) span: Range<usize>,
    pub(super) value: Node<'t>,
}

impl Kind<'_> {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Whole(_) => "an integer",
            Self::List(_) => "an array",
            Self::Table(_) => "a table",
            Self::Other(name) => name,
        }
    }
}

/// Reads TOML.
pub(super) fn toml<'t>(file: &str, text: &'t str) -> Result<Node<'t>, PolicyError> {
    check_size(file, text)?;
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        PolicyError::new(file, text, span, "", PolicyProblem::Syntax(error.message().to_owned()))
    })?;
    let span = table.span();
    Ok(Node { span, kind: Kind::Table(entries(table.into_inner(), DEPTH)) })
}

fn check_size(file: &str, text: &str) -> Result<(), PolicyError> {
    if text.len() > MAX_BYTES {
        return Err(PolicyError::new(file, text, 0..0, "", PolicyProblem::TooLarge(MAX_BYTES)));
    }
    Ok(())
}

fn entries(table: DeTable<'_>, depth: usize) -> Vec<Entry<'_>> {
    let mut entries: Vec<_> = table
        .into_iter()
        .map(|(name, value)| Entry {
            span: name.span(),
            name: name.into_inner(),
            value: from_toml(value, depth - 1),
        })
        .collect();
    // In the order written: the table is sorted by name.
    entries.sort_by_key(|entry| entry.span.start);
    entries
}

/// At most `DEPTH` calls deep.
fn from_toml(value: Spanned<DeValue<'_>>, depth: usize) -> Node<'_> {
    let span = value.span();
    let kind = match value.into_inner() {
        DeValue::String(text) => Kind::Text(text),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            match u64::from_str_radix(digits.trim_start_matches('+'), number.radix()) {
                Ok(number) => Kind::Whole(number),
                Err(_) => Kind::Other("an integer out of range"),
            }
        }
        DeValue::Float(_) => Kind::Other("a float"),
        DeValue::Boolean(_) => Kind::Other("a boolean"),
        DeValue::Datetime(_) => Kind::Other("a time"),
        DeValue::Array(_) if depth == 0 => Kind::Other("an array"),
        DeValue::Table(_) if depth == 0 => Kind::Other("a table"),
        DeValue::Array(array) => {
            Kind::List(array.into_iter().map(|value| from_toml(value, depth - 1)).collect())
        }
        DeValue::Table(table) => Kind::Table(entries(table, depth)),
    };
    Node { span, kind }
}

/// Reads JSON.
pub(super) fn json<'t>(file: &str, text: &'t str) -> Result<Node<'t>, PolicyError> {
    check_size(file, text)?;
    let limits = json::Limits { bytes: MAX_BYTES, ..json::Limits::default() };
    let document = json::Document::parse(text.as_bytes(), &limits).map_err(|error| {
        let at = error.place().offset;
        PolicyError::new(file, text, at..at, "", PolicyProblem::Syntax(error.problem().to_string()))
    })?;
    Ok(from_json(text, &document.into_value(), DEPTH))
}

/// The tree of a JSON value that was read out of `text`.
pub(super) fn from_value<'t>(text: &str, value: &json::Value) -> Node<'t> {
    from_json(text, value, DEPTH)
}

/// At most `DEPTH` calls deep.
fn from_json<'t>(text: &str, value: &json::Value, depth: usize) -> Node<'t> {
    let at = value.offset();
    let kind = match value.kind() {
        json::Kind::String(text) => Kind::Text(Cow::Owned(text.to_string())),
        json::Kind::Number(json::Number::U64(number)) => Kind::Whole(*number),
        json::Kind::Array(elements) if depth > 0 => {
            Kind::List(elements.iter().map(|value| from_json(text, value, depth - 1)).collect())
        }
        json::Kind::Object(members) if depth > 0 => {
            let entry = |member: &json::Member| Entry {
                name: Cow::Owned(member.name.to_string()),
                span: name_before(text, member.value.offset()),
                value: from_json(text, &member.value, depth - 1),
            };
            Kind::Table(members.iter().map(entry).collect())
        }
        _ => Kind::Other(value.type_name()),
    };
    Node { span: at..at + width(text, at), kind }
}

/// Where the name of the member whose value starts at `value` stands: a JSON value does not know.
fn name_before(text: &str, value: usize) -> Range<usize> {
    let before = text.get(..value).unwrap_or_default();
    let Some(before) = before.trim_end().strip_suffix(':').map(str::trim_end) else { return value..value };
    let Some(inside) = before.strip_suffix('"') else { return value..value };
    // An escaped quote is not the name's start.
    let mut start = inside.len();
    while let Some(quote) = inside.get(..start).and_then(|head| head.rfind('"')) {
        let head = inside.get(..quote).unwrap_or_default();
        let slashes = head.len() - head.trim_end_matches('\\').len();
        if slashes % 2 == 0 {
            return quote..before.len();
        }
        start = quote;
    }
    value..value
}

/// How many bytes of a value a caret marks: a scalar up to its end, one byte of anything else.
fn width(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let mut escaped = false;
    let end = match rest.strip_prefix('"') {
        Some(inside) => inside
            .find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })
            .map_or(0, |end| end + 2),
        None => rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len()),
    };
    end.max(1)
}
