//! What stands before the steps: header, agents, rules, bounds, lanes, topology, store, records, clock.

use std::{collections::BTreeMap, num::NonZeroU32};

use fak_abi::{
    CapSet, Capability, Id, PrincipalKind, PrincipalSpec, ShareScope, Timestamp,
    json::{Cursor, Fields, Kind, nearest},
};
use fak_adjudicate::Policy;
use fak_agenttopo::Topology;
use fak_comm::{CommError, LaneSpec, Listing, Taxonomy};
use fak_sharedtask::ApprovalRule;

use super::{
    Fault, Parsed, Source, closed, fault,
    parts::{optional_count, optional_text, texts, word},
    record::file_member,
    rule, unfit,
};
use crate::{
    act::RawJson,
    error::{Problem, ScenarioError},
    load::{SCHEMA, read_policy},
    model::{AgentSpec, Limits, Rate, Setup, StoreSpec},
};

/// The members of a scenario.
pub(super) const MEMBERS: &[&str] = &[
    "schema", "name", "about", "agents", "policy", "limits", "lanes", "topology", "store", "tasks", "clock",
    "steps",
];

/// The most messages a mailbox of a scenario can be told to hold.
const MAX_CAPACITY: u64 = 65_536;

/// When a scenario starts that does not say: 2026-01-01T00:00:00Z.
const DEFAULT_TIME: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

pub(super) struct Header {
    pub(super) name: String,
    pub(super) about: Option<String>,
}

pub(super) fn header(fields: &mut Fields<'_>) -> Parsed<Header> {
    let schema = fields.required("schema")?;
    if schema.string()? != SCHEMA {
        return Err(unfit(schema, &format!("{SCHEMA:?}")));
    }
    Ok(Header {
        name: fields.required("name")?.non_empty()?.to_owned(),
        about: optional_text(fields, "about")?,
    })
}

pub(super) fn setup(source: &Source<'_>, fields: &mut Fields<'_>) -> Parsed<Setup> {
    let mut agents = Vec::new();
    if let Some(cursor) = fields.optional("agents") {
        for (name, cursor) in cursor.entries()? {
            agents.push(agent(name, cursor)?);
        }
    }
    Ok(Setup {
        policy: fields.optional("policy").map(|cursor| policy(source, cursor)).transpose()?,
        limits: match fields.optional("limits") {
            Some(cursor) => limits(cursor)?,
            None => Limits::default(),
        },
        lanes: fields.optional("lanes").map(|cursor| lanes(source, cursor)).transpose()?,
        topology: match fields.optional("topology") {
            Some(cursor) => Some(topology(&agents, cursor)?),
            None => None,
        },
        store: store(&agents, fields.optional("store"))?,
        tasks: match fields.optional("tasks") {
            Some(cursor) => tasks(source, cursor)?,
            None => Vec::new(),
        },
        clock: match fields.optional("clock") {
            Some(cursor) => cursor
                .string()?
                .parse()
                .map_err(|_| unfit(cursor, "a time as RFC 3339 has it, such as \"2026-01-01T00:00:00Z\""))?,
            None => DEFAULT_TIME,
        },
        agents,
    })
}

fn agent(name: &str, cursor: Cursor<'_>) -> Parsed<AgentSpec> {
    if name.starts_with('?') {
        return Err(rule(
            cursor,
            "an agent's name does not start with \"?\": that is for principals never attached",
        ));
    }
    let mut fields = closed(cursor, &["kind", "fleet", "tenant", "trace_id", "caps"])?;
    let kind = match fields.optional("kind") {
        Some(kind) => word(kind, "kind", PrincipalKind::ALL, PrincipalKind::name)?,
        None => PrincipalKind::Agent,
    };
    let mut caps = CapSet::NONE;
    for cap in fields.required("caps")?.array()? {
        caps = caps.with(word(cap, "capability", Capability::ALL, Capability::name)?);
    }
    let mut part = |name| fields.optional(name).map(id).transpose();
    Ok(AgentSpec {
        name: name.to_owned(),
        principal: PrincipalSpec {
            id: Id::new(name).map_err(|error| rule(cursor, format!("an agent's name: {error}")))?,
            kind,
            fleet: part("fleet")?,
            tenant: part("tenant")?,
            trace: part("trace_id")?,
            caps,
        },
    })
}

/// An id.
fn id(cursor: Cursor<'_>) -> Parsed<Id> {
    Id::new(cursor.string()?).map_err(|error| rule(cursor, error.to_string()))
}

/// A policy inline, or in a file: TOML, or JSON if its name says so.
fn policy(source: &Source<'_>, cursor: Cursor<'_>) -> Parsed<Policy> {
    let parsed = match file_member(cursor)? {
        Some(file) => {
            let (path, text) = source.file(file)?;
            read_policy(&path, &text)
        }
        None => Policy::from_value(&source.path.display().to_string(), source.text, cursor.value()),
    };
    parsed.map_err(Fault::elsewhere)
}

fn limits(cursor: Cursor<'_>) -> Parsed<Limits> {
    let mut fields = closed(
        cursor,
        &["mailbox_capacity", "max_body_bytes", "pending", "redeliveries", "addressing", "rate"],
    )?;
    let mut mailbox_capacity = None;
    if let Some(cursor) = fields.optional("mailbox_capacity") {
        let capacity = cursor.u64()?;
        // Room for it is set aside for every subscription, and a number merely read must not decide how much (§8).
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(cursor.invalid("a capacity from 1 to 65536").into());
        }
        mailbox_capacity = Some(capacity);
    }
    Ok(Limits {
        mailbox_capacity,
        max_body_bytes: optional_count(&mut fields, "max_body_bytes")?,
        pending: optional_count(&mut fields, "pending")?,
        redeliveries: optional_count(&mut fields, "redeliveries")?,
        declared: match fields.optional("addressing") {
            Some(mode) => mode.one_of(&[("open", false), ("declared", true)])?,
            None => false,
        },
        rate: fields.optional("rate").map(rate).transpose()?,
    })
}

fn rate(cursor: Cursor<'_>) -> Parsed<Rate> {
    let mut fields = closed(cursor, &["burst", "per_ms"])?;
    let burst = fields.required("burst")?;
    let per = fields.required("per_ms")?;
    Ok(Rate {
        burst: u32::try_from(burst.u64()?)
            .ok()
            .and_then(NonZeroU32::new)
            .ok_or_else(|| burst.invalid("a number from 1 to 4294967295"))?,
        per_ms: match per.u64()? {
            0 => return Err(per.invalid("a number of at least 1").into()),
            number => number,
        },
    })
}

fn lanes(source: &Source<'_>, cursor: Cursor<'_>) -> Parsed<Taxonomy> {
    if let Some(file) = file_member(cursor)? {
        let (path, text) = source.file(file)?;
        return text.parse().map_err(|error: CommError| {
            Fault::elsewhere(ScenarioError::File { path, problem: error.to_string() })
        });
    }
    let mut fields = closed(cursor, &["concurrent", "exclusive", "trees"])?;
    let mut trees = Vec::new();
    if let Some(cursor) = fields.optional("trees") {
        for (lane, globs) in cursor.entries()? {
            trees.push((lane.into(), listings(globs)?));
        }
    }
    let mut names = |name| fields.optional(name).map_or_else(|| Ok(Vec::new()), listings);
    let spec = LaneSpec { concurrent: names("concurrent")?, exclusive: names("exclusive")?, trees };
    Taxonomy::new(spec).map_err(|error| rule(cursor, error.to_string()))
}

fn listings(cursor: Cursor<'_>) -> Parsed<Vec<Listing>> {
    Ok(texts(cursor)?.iter().map(|text| text.as_str().into()).collect())
}

fn topology(agents: &[AgentSpec], cursor: Cursor<'_>) -> Parsed<Topology> {
    let agents = agents.iter().map(|agent| (agent.name.as_str(), &agent.principal.id)).collect();
    let mut fields = closed(cursor, &["name", "edges"])?;
    let mut edges = Vec::new();
    for edge in fields.required("edges")?.array()? {
        let ends: Vec<_> = edge.array()?.collect();
        let [from, to] = ends.as_slice() else {
            return Err(edge.invalid("an edge as [from, to]").into());
        };
        edges.push((known(&agents, *from)?, known(&agents, *to)?));
    }
    Topology::over(id(fields.required("name")?)?, &edges).map_err(|error| rule(cursor, error.to_string()))
}

/// The id of an agent of the scenario.
fn known(agents: &BTreeMap<&str, &Id>, cursor: Cursor<'_>) -> Parsed<Id> {
    let name = cursor.string()?;
    if let Some(id) = agents.get(name) {
        return Ok((*id).clone());
    }
    Err(fault(
        cursor,
        Problem::UnknownName {
            what: "agent",
            name: name.to_owned(),
            nearest: nearest(name, agents.keys().copied()).map(str::to_owned),
            known: agents.keys().map(|name| (*name).to_owned()).collect(),
        },
    ))
}

/// Fleet and tenant default to the only one the agents name.
fn store(agents: &[AgentSpec], cursor: Option<Cursor<'_>>) -> Parsed<StoreSpec> {
    let only = |of: fn(&AgentSpec) -> Option<&Id>| {
        let mut named: Vec<&Id> = agents.iter().filter_map(of).collect();
        named.sort();
        named.dedup();
        match named.as_slice() {
            [one] => Some((*one).clone()),
            _ => None,
        }
    };
    let mut spec = StoreSpec {
        fleet: only(|agent| agent.principal.fleet.as_ref()),
        tenant: only(|agent| agent.principal.tenant.as_ref()),
        ..StoreSpec::default()
    };
    let Some(cursor) = cursor else {
        return Ok(spec);
    };
    let mut fields = closed(cursor, &["fleet", "tenant", "max_scope", "require_approval"])?;
    spec.fleet = fields.optional("fleet").map(id).transpose()?.or(spec.fleet);
    spec.tenant = fields.optional("tenant").map(id).transpose()?.or(spec.tenant);
    spec.max_scope = match fields.optional("max_scope") {
        Some(cursor) => Some(word(cursor, "scope", ShareScope::ALL, ShareScope::name)?),
        None => None,
    };
    if let Some(cursor) = fields.optional("require_approval") {
        spec.approval = approval(cursor)?;
    }
    Ok(spec)
}

/// `true`, or the rules that require it: `path`, `actor_kind` and `scope`, each a word or a list of them (§5.7).
fn approval(cursor: Cursor<'_>) -> Parsed<Vec<ApprovalRule>> {
    match cursor.value().kind() {
        Kind::Bool(true) => return Ok(vec![ApprovalRule::Always]),
        Kind::Bool(false) => return Ok(Vec::new()),
        Kind::Object(_) => {}
        _ => {
            let expected = "true, or an object with \"path\", \"actor_kind\" or \"scope\", each a word or a list of them";
            return Err(cursor.invalid(expected).into());
        }
    }
    let mut fields = closed(cursor, &["path", "actor_kind", "scope"])?;
    let mut rules = Vec::new();
    for at in one_or_many(fields.optional("path"))? {
        rules.push(ApprovalRule::Path(at.string()?.to_owned()));
    }
    for at in one_or_many(fields.optional("actor_kind"))? {
        rules.push(ApprovalRule::Actor(word(at, "kind", PrincipalKind::ALL, PrincipalKind::name)?));
    }
    for at in one_or_many(fields.optional("scope"))? {
        rules.push(ApprovalRule::Scope(word(at, "scope", ShareScope::ALL, ShareScope::name)?));
    }
    Ok(rules)
}

/// A value, or the elements of a list.
fn one_or_many(cursor: Option<Cursor<'_>>) -> Parsed<Vec<Cursor<'_>>> {
    Ok(match cursor {
        None => Vec::new(),
        Some(cursor) if cursor.value().as_array().is_some() => cursor.array()?.collect(),
        Some(cursor) => vec![cursor],
    })
}

/// A list of records, or a file that holds one.
fn tasks(source: &Source<'_>, cursor: Cursor<'_>) -> Parsed<Vec<RawJson>> {
    if cursor.value().as_object().is_some() {
        let Some(file) = file_member(cursor)? else {
            return Err(cursor.invalid("a list of records or {\"file\": …}").into());
        };
        let (path, text) = source.file(file)?;
        return list_of(&path, &text, source);
    }
    let mut list = Vec::new();
    for element in cursor.array()? {
        element.object()?;
        list.push(source.record(element)?);
    }
    Ok(list)
}

/// The records of another file, each as it stands there.
fn list_of(path: &std::path::Path, text: &str, source: &Source<'_>) -> Parsed<Vec<RawJson>> {
    let elsewhere = |error| Fault::elsewhere(super::placed(path, error, None, None));
    let document = fak_abi::json::Document::parse(text.as_bytes(), &fak_abi::json::Limits::default())
        .map_err(elsewhere)?;
    let other = Source::new(text, path, source.reach);
    let mut list = Vec::new();
    for element in document.root().array().map_err(elsewhere)? {
        element.object().map_err(elsewhere)?;
        list.push(other.record(element)?);
    }
    Ok(list)
}
