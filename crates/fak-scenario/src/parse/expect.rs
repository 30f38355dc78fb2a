//! Reading `expect`: only the members the act answers, each of the type it answers with.

use fak_abi::json::{self, Cursor, Number};
use serde_json::Value;

use super::{Fault, Faults, Parsed, QUOTED, fault, rule};
use crate::{
    act::{ActShape, Kind},
    checks::{self, RUNGS},
    error::Problem,
    expect::{Answer, Expectations},
    words::{called, meant},
};

pub(super) fn expectations(shape: &'static ActShape, cursor: Cursor<'_>) -> Parsed<Expectations> {
    let Ok(entries) = cursor.entries() else { return Err(no_object(shape, cursor)) };
    let mut faults = Faults::default();
    let mut members = Vec::new();
    for (name, cursor) in entries {
        match shape.expect.iter().find(|(known, _)| *known == name) {
            Some((known, kind)) => {
                let answer = answer(shape, known, *kind, cursor);
                members.extend(faults.keep(cursor, answer).map(|answer| (*known, answer)));
            }
            None => drop(faults.keep::<()>(cursor, Err(not_answered(shape, name, cursor)))),
        }
    }
    faults.settle(Some(Expectations::Members(members)))
}

/// What a step without `expect` must answer.
pub(super) fn success(shape: &ActShape) -> Expectations {
    let merges = words(shape, "verdict").contains(&"accepted");
    Expectations::Success(if merges { "accepted" } else { "allow" })
}

/// The words a member is answered in, if it is answered in words.
fn words(shape: &ActShape, member: &str) -> &'static [&'static str] {
    match shape.expect.iter().find(|(name, _)| *name == member) {
        Some((_, Kind::Word(words))) => words,
        _ => &[],
    }
}

/// `"expect": "empty"`: the word stands where an object belongs that has it.
fn no_object(shape: &ActShape, cursor: Cursor<'_>) -> Fault {
    let given = cursor.value().as_str().unwrap_or_default();
    let written = match (called(given, words(shape, "verdict").iter().copied()), checks::other_kind(given)) {
        (Some(verdict), _) => format!("{{\"verdict\": \"{verdict}\"}}"),
        (None, Some((_, member))) if checks::answers(shape.expect, member) => {
            format!("{{\"{member}\": {given:?}}}")
        }
        _ => "{\"verdict\": …}, with \"reason\" and what else is expected".to_owned(),
    };
    rule(cursor, format!("what is expected is an object: write \"expect\": {written}"))
}

/// A member that the act does not answer; where it is a word that stands under another member, that is said.
fn not_answered(shape: &'static ActShape, name: &str, cursor: Cursor<'_>) -> Fault {
    let value = cursor.value().as_str().unwrap_or_default();
    let by_value = checks::other_kind(value).map(|(_, member)| (member, value));
    let verdict = called(name, words(shape, "verdict").iter().copied()).map(|word| ("verdict", word));
    let by_name = checks::other_kind(name).map(|(_, member)| (member, name));
    let written =
        by_value.or(verdict).or(by_name).filter(|(member, _)| checks::answers(shape.expect, member));
    if let Some((member, word)) = written {
        let act = shape.name;
        return rule(cursor, format!("\"{act}\" does not answer {name:?}: write \"{member}\": {word:?}"));
    }
    let known = || shape.expect.iter().map(|(name, _)| *name);
    fault(
        cursor,
        Problem::NotAnswered {
            act: shape.name,
            name: name.chars().take(QUOTED).collect(),
            nearest: meant(name, known()).map(str::to_owned),
            known: known().map(str::to_owned).collect(),
        },
    )
}

/// The kernel's verdict, looked for where an act answers how the merge ended.
fn of_the_merge(shape: &ActShape, name: &str, cursor: Cursor<'_>) -> Option<Fault> {
    let merges = name == "verdict" && words(shape, name).contains(&"accepted");
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

/// `"verdict": "timeout"`: a member of its own, beside a verdict that is `empty`.
fn of_a_flag(shape: &ActShape, name: &str, cursor: Cursor<'_>) -> Option<Fault> {
    let given = cursor.value().as_str().unwrap_or_default();
    let flag = shape.expect.iter().find(|(member, kind)| *member == given && matches!(kind, Kind::Flag))?.0;
    (name == "verdict").then(|| {
        rule(cursor, format!("{flag:?} is no verdict of \"{}\": write \"{flag}\": true", shape.name))
    })
}

/// `"verdict": "conflict"` of an act on a cell, which was permitted all the same.
fn of_a_cell(shape: &ActShape, name: &str, cursor: Cursor<'_>) -> Option<Fault> {
    let conflicts = name == "verdict" && checks::answers(shape.expect, "conflict");
    let given = cursor.value().as_str().unwrap_or_default();
    (conflicts && called(given, ["conflict"]).is_some() && !words(shape, name).contains(&"conflict")).then(
        || {
            let act = shape.name;
            rule(
                cursor,
                format!(
                    "a conflict is no verdict of \"{act}\", which is permitted: write \"conflict\": true"
                ),
            )
        },
    )
}

fn answer(shape: &'static ActShape, member: &'static str, kind: Kind, cursor: Cursor<'_>) -> Parsed<Answer> {
    Ok(match kind {
        Kind::Word(words) => Answer::Text(word(shape, member, words, cursor)?),
        Kind::Check => {
            let name = cursor.string()?;
            if checks::check(name).is_none() {
                let all = checks::checks();
                let known: Vec<&str> = all.iter().map(|site| site.check).collect();
                return Err(unknown(shape, member, "check", &known, cursor));
            }
            Answer::Check(name.to_owned())
        }
        Kind::Rung => {
            let known: Vec<&str> = RUNGS.iter().map(|(name, _)| *name).collect();
            let name = cursor.string()?;
            if !known.contains(&name) {
                return Err(unknown(shape, member, "rung", &known, cursor));
            }
            Answer::Text(name.to_owned())
        }
        Kind::Text => Answer::Text(cursor.string()?.to_owned()),
        Kind::Contains => Answer::Contains(cursor.string()?.to_owned()),
        Kind::Count => Answer::Count(cursor.u64()?),
        Kind::Flag => Answer::Flag(cursor.boolean()?),
        Kind::List => Answer::List(super::parts::texts(cursor)?),
        Kind::Json => Answer::Json(to_serde(cursor.value())),
    })
}

/// One of the words that a member is answered in.
fn word(
    shape: &'static ActShape,
    member: &'static str,
    words: &'static [&'static str],
    cursor: Cursor<'_>,
) -> Parsed<String> {
    let given = cursor.string()?;
    if words.contains(&given) {
        return Ok(given.to_owned());
    }
    Err(of_the_merge(shape, member, cursor)
        .or_else(|| of_a_cell(shape, member, cursor))
        .or_else(|| of_a_flag(shape, member, cursor))
        .unwrap_or_else(|| unknown(shape, member, member, words, cursor)))
}

/// A word that is none of those its member is answered in: most often it belongs under another, or is another word for one.
fn unknown(
    shape: &'static ActShape,
    member: &'static str,
    what: &'static str,
    known: &[&str],
    cursor: Cursor<'_>,
) -> Fault {
    let given = cursor.value().as_str().unwrap_or_default();
    let other = checks::other_kind(given)
        .filter(|(_, other)| *other != member && checks::answers(shape.expect, other));
    if let Some((kind, other)) = other {
        return rule(cursor, format!("{given:?} is a {kind}: name it with \"{other}\""));
    }
    let problem = Problem::UnknownName {
        what,
        name: given.chars().take(QUOTED).collect(),
        nearest: meant(given, known.iter().copied()).map(str::to_owned),
        known: known.iter().map(|name| (*name).to_owned()).collect(),
    };
    fault(cursor, problem)
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
