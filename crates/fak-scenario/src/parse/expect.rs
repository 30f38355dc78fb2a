//! Reading `expect`: only the members the act answers, each of the type it answers with.

use fak_abi::json::{self, Cursor, Number};
use serde_json::Value;

use super::{Fault, Parsed, rule};
use crate::{
    act::{ActShape, Kind},
    error::Problem,
    expect::{Answer, Expectations},
};

pub(super) fn expectations(shape: &'static ActShape, cursor: Cursor<'_>) -> Parsed<Expectations> {
    let mut fields = cursor.object()?;
    let mut members = Vec::new();
    for (name, kind) in shape.expect {
        if let Some(cursor) = fields.optional(name) {
            let answer =
                answer(*kind, cursor).map_err(|fault| of_the_merge(shape, name, cursor).unwrap_or(fault))?;
            members.push((*name, answer));
        }
    }
    fields.finish().map_err(|error| {
        let problem = match error.problem() {
            json::Problem::UnknownMember { name, nearest } => Some(Problem::NotAnswered {
                act: shape.name,
                name: name.clone(),
                nearest: nearest.clone(),
                known: shape.expect.iter().map(|(name, _)| (*name).to_owned()).collect(),
            }),
            _ => None,
        };
        Fault::here(error, problem)
    })?;
    Ok(Expectations::Members(members))
}

/// The kernel's verdict, looked for where an act answers how the merge ended.
fn of_the_merge(shape: &ActShape, name: &str, cursor: Cursor<'_>) -> Option<Fault> {
    let merges = name == "verdict"
        && shape.expect.iter().any(|(name, kind)| match kind {
            Kind::Word(words) => *name == "verdict" && words.contains(&"accepted"),
            _ => false,
        });
    (merges && cursor.value().as_str() == Some("allow")).then(|| {
        let act = shape.name;
        rule(
            cursor,
            format!(
                "\"verdict\" of \"{act}\" is how the merge ended: write \"verdict\": \"accepted\", \
                 or \"act\": \"allow\" if only the kernel's verdict matters"
            ),
        )
    })
}

fn answer(kind: Kind, cursor: Cursor<'_>) -> Parsed<Answer> {
    Ok(match kind {
        Kind::Word(words) => {
            let words: Vec<(&'static str, &'static str)> = words.iter().map(|word| (*word, *word)).collect();
            Answer::Text(cursor.one_of(&words)?.to_owned())
        }
        Kind::Text => Answer::Text(cursor.string()?.to_owned()),
        Kind::Contains => Answer::Contains(cursor.string()?.to_owned()),
        Kind::Count => Answer::Count(cursor.u64()?),
        Kind::Flag => Answer::Flag(cursor.boolean()?),
        Kind::List => Answer::List(super::parts::texts(cursor)?),
        Kind::Json => Answer::Json(to_serde(cursor.value())),
    })
}

/// The value for comparison. Its depth is bounded by the reader (§8), so the recursion is.
pub(crate) fn to_serde(value: &json::Value) -> Value {
    match value.kind() {
        json::Kind::Null => Value::Null,
        json::Kind::Bool(flag) => Value::from(*flag),
        json::Kind::Number(Number::U64(number)) => Value::from(*number),
        json::Kind::Number(Number::I64(number)) => Value::from(*number),
        json::Kind::Number(Number::F64(number)) => Value::from(*number),
        json::Kind::String(text) => Value::from(&**text),
        json::Kind::Array(elements) => elements.iter().map(to_serde).collect(),
        json::Kind::Object(members) => {
            members.iter().map(|member| (member.name.to_string(), to_serde(&member.value))).collect()
        }
    }
}
