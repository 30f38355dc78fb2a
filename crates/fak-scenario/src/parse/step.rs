//! One step: what every act has (`do`, `by`, `save`, `expect`), then the reader of its family.

use fak_abi::json::Cursor;

use super::{
    Fault, Faults, Parsed, Source, channel, closed_but, expect, fault,
    form::formed,
    kernel,
    names::{Kept, Names},
    parts, record, rule, wave,
};
use crate::{
    act::{ACTS, Act, ActShape, Actor, By, Step},
    error::Problem,
    words::meant,
};

/// Arguments that an act which takes them cannot do without.
const ALWAYS: &[&str] = &[
    "to",
    "topic",
    "group",
    "agent",
    "tool",
    "ms",
    "patch",
    "record",
    "journal",
    "members",
    "bodies",
    "outputs",
    "reduce",
    "colours",
    "window",
    "decision",
    "to_request",
];

pub(super) fn step(
    source: &Source<'_>,
    names: &mut Names,
    number: usize,
    cursor: Cursor<'_>,
) -> Parsed<Step> {
    formed("a step", cursor)?;
    let shape = shape(cursor)?;
    let mut known = members(shape);
    known.push("expect");
    if shape.save {
        known.push("save");
    }
    let mut fields = cursor.object()?;
    let hosted = fields.optional("by").filter(|_| shape.by == By::Host);
    known.extend(hosted.map(|_| "by"));
    let mut faults = Faults::of_but(cursor, &known, |name| elsewhere(shape, cursor, &known, name));
    if let Some(by) = hosted {
        let text = format!("\"{}\" is done by the host, not by an agent: leave \"by\" out", shape.name);
        faults.keep::<()>(by, Err(rule(by, text)));
    }
    let by = faults.keep(cursor, actor(names, shape, cursor));
    arguments(names, shape, cursor, &mut faults);
    let act = act(source, names, shape, by.as_ref().unwrap_or(&Actor::Host), cursor);
    let act = faults.keep(cursor, act);
    let expect = match fields.optional("expect") {
        Some(cursor) => faults.keep(cursor, expect::expectations(shape, cursor)),
        None => Some(expect::success(shape)),
    };
    let save = fields.optional("save").map(|at| names.give(Kept::Saved, at)).transpose();
    let save = faults.keep(cursor, save);
    let (line, given) = (source.line(cursor), given(shape, cursor));
    let step = by.zip(act).zip(expect).zip(save);
    faults.settle(step.map(|(((by, act), expect), save)| Step {
        number,
        line,
        shape,
        by,
        act,
        save,
        expect,
        names: given,
    }))
}

/// The names a step gives or goes on with.
fn given(shape: &ActShape, cursor: Cursor<'_>) -> Vec<String> {
    const NAMES: &[&str] =
        &["as", "save", "inbox", "ref", "to_request", "decision", "window", "group", "journal", "name"];
    let members = cursor.value().as_object().unwrap_or_default();
    let own = members.iter().filter(|member| NAMES.contains(&&*member.name));
    let own = own.filter(|member| *member.name == *"save" || shape.arguments.contains(&&*member.name));
    let bodies = members.iter().filter(|member| matches!(&*member.name, "body" | "bodies" | "outputs"));
    let refs = bodies.flat_map(|member| match member.value.as_array() {
        Some(list) => list,
        None => std::slice::from_ref(&member.value),
    });
    own.filter_map(|member| member.value.as_str())
        .chain(refs.filter_map(|body| body.member("ref")?.as_str()))
        .map(str::to_owned)
        .collect()
}

/// What the object under an argument may have, where a newcomer is likely to write it beside instead.
const INSIDE: &[(&str, &[&str])] = &[
    ("body", parts::BODY),
    ("patch", &["task_id", "task", "base_rev", "actor", "scope", "durability", "ops", "message"]),
    ("record", &["task_id", "task", "state", "title", "body_ref", "artifacts", "notes", "open_decisions"]),
    ("status", &["worker_id", "issue", "task_id", "lane", "live", "seq", "last_action"]),
    ("request", &["worker_id", "issue", "task_id", "lane", "message", "status_digest", "max_bytes"]),
];

/// Where a member belongs that a step cannot have itself: inside one of its arguments, or inside `expect`.
fn elsewhere(shape: &ActShape, step: Cursor<'_>, known: &[&'static str], name: &str) -> Option<String> {
    let inside = INSIDE
        .iter()
        .find(|(argument, members)| shape.arguments.contains(argument) && members.contains(&name))
        .map(|(argument, _)| *argument);
    let has = |name: &str| step.value().member(name).is_some();
    // A message is received either at a channel or from an inbox.
    let excluded = |name: &str| (name == "inbox" && has("at")) || (name == "at" && has("inbox"));
    let absent =
        || known.iter().copied().filter(|known| *known != "expect" && !has(known) && !excluded(known));
    let answered =
        || shape.expect.iter().any(|(answer, _)| *answer == name) && meant(name, absent()).is_none();
    let place = inside.or_else(|| answered().then_some("expect"))?;
    Some(format!("{name:?} belongs inside {place:?}: write {place:?}: {{{name:?}: …}}"))
}

/// What is wrong with arguments that mean the same in every act, one by one: whoever reads the act stops at the first.
fn arguments(names: &Names, shape: &'static ActShape, cursor: Cursor<'_>, faults: &mut Faults) {
    let Ok(mut fields) = cursor.object() else { return };
    for name in shape.arguments {
        let needed = ALWAYS.contains(name) || (*name == "body" && !shape.arguments.contains(&"ref"));
        let Some(at) = fields.optional(name) else {
            if needed {
                faults.keep(cursor, fields.required(name).map_err(Into::into));
            }
            continue;
        };
        match *name {
            "to" | "topic" | "at" | "address" => drop(faults.keep(at, parts::address(names, at))),
            "body" => drop(faults.keep(at, parts::body(names, at))),
            "scope" => drop(faults.keep(at, parts::scope(&mut fields))),
            "ttl_ms" | "deadline_ms" | "ms" => drop(faults.keep(at, at.u64().map_err(Into::into))),
            _ => {}
        }
    }
}

/// The row of the act that `do` names.
fn shape(cursor: Cursor<'_>) -> Parsed<&'static ActShape> {
    let mut fields = cursor.object()?;
    let name_at = match fields.optional("do") {
        Some(at) => at,
        None => return Err(without_act(cursor)),
    };
    let name = name_at.string()?;
    ActShape::named(name).ok_or_else(|| {
        let known = || ACTS.iter().map(|act| act.name);
        fault(
            name_at,
            Problem::UnknownName {
                what: "act",
                name: name.to_owned(),
                nearest: meant(name, known()).map(str::to_owned),
                known: known().map(str::to_owned).collect(),
            },
        )
    })
}

/// A step that does nothing: most often what it does stands under another name.
fn without_act(cursor: Cursor<'_>) -> Fault {
    let members = cursor.value().as_object().unwrap_or_default();
    let act = |name: &str| meant(name, ["do"]).filter(|_| name != "by");
    let named = members.iter().find_map(|member| ActShape::named(&member.name));
    if let Some(named) = named {
        let name = named.name;
        return rule(
            cursor,
            format!("missing member \"do\": write {{\"do\": \"{name}\", …}}, with the others beside it"),
        );
    }
    let other = members.iter().find(|member| act(&member.name).is_some());
    match other {
        Some(other) => rule(
            cursor,
            format!("missing member \"do\", which names the act; is {:?} meant to be it?", other.name),
        ),
        None => rule(cursor, "missing member \"do\", which names the act, such as \"do\": \"send\""),
    }
}

/// What an act may be told, without what only a step has.
fn members(shape: &'static ActShape) -> Vec<&'static str> {
    let mut known = vec!["do"];
    if shape.by != By::Host {
        known.push("by");
    }
    known.extend_from_slice(shape.arguments);
    known
}

fn actor(names: &Names, shape: &'static ActShape, cursor: Cursor<'_>) -> Parsed<Actor> {
    match (cursor.object()?.optional("by"), shape.by) {
        (Some(by), _) => names.actor(by),
        (None, By::Agent) => Err(rule(
            cursor,
            format!("\"{}\" is an agent's act; say who performs it with \"by\"", shape.name),
        )),
        (None, _) => Ok(Actor::Host),
    }
}

/// The act itself, with its arguments.
fn act(
    source: &Source<'_>,
    names: &mut Names,
    shape: &'static ActShape,
    by: &Actor,
    cursor: Cursor<'_>,
) -> Parsed<Act> {
    let mut fields = cursor.object()?;
    if shape.name == "explain" {
        return explain(source, names, fields.required("of")?);
    }
    if let Some(act) = channel::act(names, shape.name, &mut fields)? {
        return Ok(Act::Channel(act));
    }
    if let Some(act) = kernel::act(source, names, shape.name, &mut fields)? {
        return Ok(Act::Kernel(act));
    }
    if let Some(act) = record::act(source, names, shape.name, &mut fields)? {
        return Ok(Act::Record(act));
    }
    if let Some(act) = wave::act(names, shape.name, by, &mut fields)? {
        return Ok(Act::Wave(act));
    }
    Err(rule(cursor, format!("\"{}\" cannot be performed", shape.name)))
}

/// `of`: an act without what only a step has; explaining an explanation says nothing.
fn explain(source: &Source<'_>, names: &mut Names, of: Cursor<'_>) -> Parsed<Act> {
    let shape = shape(of)?;
    closed_but(of, &members(shape), |name| match name {
        "expect" | "save" => Some(format!("{name:?} belongs to the \"explain\" step, beside \"of\"")),
        _ => None,
    })?;
    if shape.name == "explain" {
        return Err(rule(of, "an explanation cannot be explained"));
    }
    let by = actor(names, shape, of)?;
    let act = act(source, names, shape, &by, of)?;
    Ok(Act::Explain { by, of: Box::new(act) })
}
