//! One step: what every act has (`do`, `by`, `save`, `expect`), then the reader of its family.

use fak_abi::json::{Cursor, nearest};

use super::{
    Parsed, Source, channel, closed, expect, fault, kernel,
    names::{Kept, Names},
    record, rule, wave,
};
use crate::{
    act::{ACTS, Act, ActShape, Actor, By, Step},
    error::Problem,
    expect::Expectations,
};

pub(super) fn step(
    source: &Source<'_>,
    names: &mut Names,
    number: usize,
    cursor: Cursor<'_>,
) -> Parsed<Step> {
    let shape = shape(cursor)?;
    let mut known = members(shape);
    known.push("expect");
    if shape.save {
        known.push("save");
    }
    let mut fields = closed(cursor, &known)?;
    let by = actor(names, shape, cursor)?;
    let act = act(source, names, shape, &by, cursor)?;
    let expect = match fields.optional("expect") {
        Some(cursor) => expect::expectations(shape, cursor)?,
        None => Expectations::Success,
    };
    let save = match fields.optional("save") {
        Some(cursor) => Some(names.give(Kept::Saved, cursor)?),
        None => None,
    };
    Ok(Step { number, line: source.line(cursor), shape, by, act, save, expect })
}

/// The row of the act that `do` names.
fn shape(cursor: Cursor<'_>) -> Parsed<&'static ActShape> {
    let name_at = cursor.object()?.required("do")?;
    let name = name_at.string()?;
    ActShape::named(name).ok_or_else(|| {
        let known = || ACTS.iter().map(|act| act.name);
        fault(
            name_at,
            Problem::UnknownName {
                what: "act",
                name: name.to_owned(),
                nearest: nearest(name, known()).map(str::to_owned),
                known: known().map(str::to_owned).collect(),
            },
        )
    })
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
    closed(of, &members(shape))?;
    if shape.name == "explain" {
        return Err(rule(of, "an explanation cannot be explained"));
    }
    let by = actor(names, shape, of)?;
    let act = act(source, names, shape, &by, of)?;
    Ok(Act::Explain { by, of: Box::new(act) })
}
