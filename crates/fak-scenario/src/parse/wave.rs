//! The arguments of the acts of a wave.

use fak_abi::json::{Cursor, Fields, Kind};

use super::{
    Parsed, closed,
    names::{Kept, Names},
    parts::{bodies, body, optional_text, text, texts},
    rule, unfit,
};
use crate::act::{Actor, Claim, Colours, MemberSpec, WaveAct};

pub(super) fn act(
    names: &mut Names,
    name: &str,
    by: &Actor,
    fields: &mut Fields<'_>,
) -> Parsed<Option<WaveAct>> {
    Ok(Some(match name {
        "group" => WaveAct::Group {
            members: members(fields.required("members")?)?,
            wave: optional_text(fields, "wave")?,
            name: {
                let name = names.give(Kept::Group, fields.required("name")?)?;
                names.keep(Kept::Inbox, &name);
                name
            },
        },
        "broadcast" => {
            WaveAct::Broadcast { group: group(names, fields)?, body: body(names, fields.required("body")?)? }
        }
        "scatter" => WaveAct::Scatter {
            group: group(names, fields)?,
            bodies: bodies(names, fields.required("bodies")?)?,
        },
        "gather" => WaveAct::Gather {
            group: group(names, fields)?,
            outputs: bodies(names, fields.required("outputs")?)?,
            reduce: text(fields, "reduce")?,
            scores: fields.optional("scores").map(numbers).transpose()?,
        },
        "barrier" => WaveAct::Barrier {
            group: group(names, fields)?,
            name: names.give(Kept::Barrier, fields.required("as")?)?,
        },
        "arrive" => WaveAct::Arrive {
            barrier: names.kept(Kept::Barrier, fields.required("as")?)?,
            by: member(names, by, fields)?,
            member: text(fields, "member")?,
            evidence: optional_text(fields, "evidence")?,
        },
        "depart" => WaveAct::Depart {
            barrier: names.kept(Kept::Barrier, fields.required("as")?)?,
            by: member(names, by, fields)?,
            member: text(fields, "member")?,
        },
        "barrier_status" => {
            WaveAct::BarrierStatus { barrier: names.kept(Kept::Barrier, fields.required("as")?)? }
        }
        "split" => WaveAct::Split {
            group: group(names, fields)?,
            colours: colours(fields.required("colours")?)?,
            lease: fields.optional("lease").map(lease_ms).transpose()?,
        },
        "lease" => WaveAct::Lease {
            claim: match (fields.optional("lane"), fields.optional("tree")) {
                (Some(lane), None) => Claim::Lane(lane.string()?.to_owned()),
                (None, Some(tree)) => Claim::Tree(texts(tree)?),
                _ => {
                    return Err(rule(fields.cursor(), "exactly one of \"lane\" and \"tree\" is needed"));
                }
            },
            ttl_ms: fields.required("ttl_ms")?.u64()?,
            name: names.give(Kept::Lease, fields.required("as")?)?,
        },
        "renew" => WaveAct::Renew { name: lease(names, fields)? },
        "release" => WaveAct::Release { name: lease(names, fields)? },
        "check" => WaveAct::Check { name: lease(names, fields)?, path: text(fields, "path")? },
        _ => return Ok(None),
    }))
}

/// The time a leased split runs: milliseconds, `{\"ttl_ms\": …}`, or `true` for a minute.
fn lease_ms(cursor: Cursor<'_>) -> Parsed<u64> {
    match cursor.value().kind() {
        Kind::Bool(true) => Ok(60_000),
        Kind::Object(_) => Ok(closed(cursor, &["ttl_ms"])?.required("ttl_ms")?.u64()?),
        _ => Ok(cursor.u64()?),
    }
}

fn group(names: &Names, fields: &mut Fields<'_>) -> Parsed<String> {
    names.kept(Kept::Group, fields.required("group")?)
}

fn lease(names: &Names, fields: &mut Fields<'_>) -> Parsed<String> {
    names.kept(Kept::Lease, fields.required("as")?)
}

/// Who arrives or departs: the member itself unless `by` says otherwise.
fn member(names: &Names, by: &Actor, fields: &mut Fields<'_>) -> Parsed<Actor> {
    match by {
        Actor::Host => names.actor(fields.required("member")?),
        by => Ok(by.clone()),
    }
}

/// Ids, or objects with an id, a lane and a weight.
fn members(cursor: Cursor<'_>) -> Parsed<Vec<MemberSpec>> {
    let mut list = Vec::new();
    for element in cursor.array()? {
        list.push(match element.value().as_str() {
            Some(id) => MemberSpec { id: id.to_owned(), lane: None, weight: None },
            None => {
                let mut fields = closed(element, &["id", "lane", "weight"])?;
                MemberSpec {
                    id: text(&mut fields, "id")?,
                    lane: optional_text(&mut fields, "lane")?,
                    weight: fields.optional("weight").map(Cursor::f64).transpose()?,
                }
            }
        });
    }
    Ok(list)
}

fn numbers(cursor: Cursor<'_>) -> Parsed<Vec<f64>> {
    let mut list = Vec::new();
    for element in cursor.array()? {
        list.push(element.f64()?);
    }
    Ok(list)
}

fn colours(cursor: Cursor<'_>) -> Parsed<Colours> {
    match cursor.value().as_str() {
        Some("lane") => Ok(Colours::Lane),
        Some(_) => Err(unfit(cursor, "\"lane\" or a table of id to colour")),
        None => {
            let mut table = Vec::new();
            for (id, colour) in cursor.entries()? {
                table.push((id.to_owned(), colour.string()?.to_owned()));
            }
            Ok(Colours::Table(table))
        }
    }
}
