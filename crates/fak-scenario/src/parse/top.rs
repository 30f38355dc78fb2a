//! What stands before the steps: header, agents, rules, bounds, lanes, topology, store, records, clock.

use std::{collections::BTreeMap, num::NonZeroU32};

use fak_abi::{
    CapSet, Capability, Id, PrincipalKind, PrincipalSpec, ShareScope, Timestamp,
    json::{Cursor, Fields, Kind, Value},
};
use fak_adjudicate::Policy;
use fak_agenttopo::Topology;
use fak_comm::{CommError, LaneSpec, Listing, Taxonomy};
use fak_sharedtask::ApprovalRule;

use super::{
    Fault, Faults, Parsed, Source, closed, fault,
    form::formed,
    parts::{optional_count, optional_text, texts, word},
    record::file_member,
    rule, tasks, unfit,
};
use crate::{
    error::{Problem, ScenarioError},
    load::{SCHEMA, read_policy},
    model::{AgentSpec, Limits, Rate, Setup, StoreSpec},
    words::meant,
};

/// The members of a scenario.
pub(super) const MEMBERS: &[&str] = &[
    "schema", "name", "about", "agents", "policy", "limits", "lanes", "topology", "store", "tasks", "clock",
    "steps",
];

/// The members of an agent.
pub(super) const AGENT: &[&str] = &["kind", "fleet", "tenant", "trace_id", "caps"];

/// How agents are written.
const CAPS: &str = "capabilities are a list: [\"a2a.send\", …], or [] for none";
const AN_AGENT: &str = "an agent is an object: {\"fleet\": …, \"caps\": [\"a2a.send\", …]}";

/// The members of `limits`.
pub(super) const LIMITS: &[&str] =
    &["mailbox_capacity", "max_body_bytes", "pending", "redeliveries", "addressing", "rate"];

/// The most messages a mailbox of a scenario can be told to hold.
const MAX_CAPACITY: u64 = 65_536;

/// When a scenario starts that does not say: 2026-01-01T00:00:00Z.
const DEFAULT_TIME: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

pub(super) struct Header {
    pub(super) name: String,
    pub(super) about: Option<String>,
}

pub(super) fn header(faults: &mut Faults, fields: &mut Fields<'_>) -> Option<Header> {
    let root = fields.cursor();
    let known = schema(fields);
    faults.keep(root, known);
    let name = fields.required("name").and_then(Cursor::non_empty).map_err(Fault::from);
    let name = faults.keep(root, name)?.to_owned();
    let about = optional_text(fields, "about");
    Some(Header { name, about: faults.keep(root, about)? })
}

/// A file of another kind is no scenario with many things wrong.
pub(super) fn of_another_schema(fields: &mut Fields<'_>) -> Parsed<()> {
    match fields.optional("schema").map(|at| (at, at.value().as_str())) {
        Some((at, Some(other))) if other.starts_with("fak.") && !other.starts_with("fak.scenario") => {
            Err(unfit(at, &format!("{SCHEMA:?}")))
        }
        _ => Ok(()),
    }
}

fn schema(fields: &mut Fields<'_>) -> Parsed<()> {
    let schema = fields.required("schema")?;
    if schema.string()? == SCHEMA { Ok(()) } else { Err(unfit(schema, &format!("{SCHEMA:?}"))) }
}

/// Each part by itself; `None` if one of them cannot be read.
pub(super) fn setup(source: &Source<'_>, faults: &mut Faults, fields: &mut Fields<'_>) -> Option<Setup> {
    let root = fields.cursor();
    let mut agents = Vec::new();
    let listed = fields.optional("agents").map(|at| {
        formed("agents", at)?;
        Ok(at.entries()?)
    });
    let listed = listed.transpose();
    for (name, cursor) in faults.keep(root, listed).flatten().into_iter().flatten() {
        agents.extend(faults.keep(cursor, agent(name, cursor)));
    }
    let mut part = |name| fields.optional(name);
    let idle_rule = part("policy").and_then(|at| idle_rule(&agents, at));
    let policy =
        part("policy").map(|at| faults.keep(at, formed("policy", at).and_then(|()| policy(source, at))));
    let limits = part("limits").map(|at| faults.keep(at, formed("limits", at).and_then(|()| limits(at))));
    let lanes = part("lanes").map(|at| faults.keep(at, formed("lanes", at).and_then(|()| lanes(source, at))));
    let topology = part("topology")
        .map(|at| faults.keep(at, formed("topology", at).and_then(|()| topology(root, &agents, at))));
    let store_at = part("store");
    let formed_store = store_at.map_or(Ok(()), |at| formed("store", at));
    let store = faults.keep(store_at.unwrap_or(root), formed_store.and_then(|()| store(&agents, store_at)));
    let records =
        part("tasks").map(|at| faults.keep(at, formed("tasks", at).and_then(|()| tasks::tasks(source, at))));
    let clock = part("clock").map(|at| faults.keep(at, clock(at)));
    Some(Setup {
        agents,
        policy: given(policy)?,
        idle_rule,
        limits: given(limits)?.unwrap_or_default(),
        lanes: given(lanes)?,
        topology: given(topology)?,
        store: store?,
        tasks: given(records)?.unwrap_or_default(),
        clock: given(clock)?.unwrap_or(DEFAULT_TIME),
    })
}

/// A part that may be left out: `None` if it is there and cannot be read.
fn given<T>(part: Option<Option<T>>) -> Option<Option<T>> {
    part.map_or(Some(None), |read| read.map(Some))
}

fn clock(cursor: Cursor<'_>) -> Parsed<Timestamp> {
    cursor
        .string()?
        .parse()
        .map_err(|_| unfit(cursor, "a time as RFC 3339 has it, such as \"2026-01-01T00:00:00Z\""))
}

fn agent(name: &str, cursor: Cursor<'_>) -> Parsed<AgentSpec> {
    if name.starts_with('?') {
        return Err(rule(
            cursor,
            "an agent's name does not start with \"?\": that is for principals never attached",
        ));
    }
    let Ok(mut fields) = cursor.object() else { return Err(rule(cursor, AN_AGENT)) };
    let mut faults = Faults::of(cursor, AGENT);
    let id_of_it = Id::new(name).map_err(|error| rule(cursor, format!("an agent's name: {error}")));
    let id_of_it = faults.keep(cursor, id_of_it);
    let kind = fields.optional("kind").map(|at| word(at, "kind", PrincipalKind::ALL, PrincipalKind::name));
    let kind = faults.keep(cursor, kind.transpose()).flatten().unwrap_or(PrincipalKind::Agent);
    let mut caps = CapSet::NONE;
    let listed = match fields.required("caps") {
        Ok(caps) => caps.array().map_err(|_| rule(caps, CAPS)),
        Err(error) => Err(error.into()),
    };
    for cap in faults.keep(cursor, listed).into_iter().flatten() {
        let known = word(cap, "capability", Capability::ALL, Capability::name);
        caps = faults.keep(cap, known).map_or(caps, |cap| caps.with(cap));
    }
    let mut part = |name| faults.keep(cursor, fields.optional(name).map(id).transpose()).flatten();
    let (fleet, tenant, trace) = (part("fleet"), part("tenant"), part("trace_id"));
    faults.settle(id_of_it.map(|id| AgentSpec {
        name: name.to_owned(),
        principal: PrincipalSpec { id, kind, fleet, tenant, trace, caps },
    }))
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

/// The first rule of an inline policy that names an agent, a fleet or a tenant which nobody here is or has.
fn idle_rule(agents: &[AgentSpec], cursor: Cursor<'_>) -> Option<String> {
    for list in cursor.value().as_object().unwrap_or_default() {
        for (index, rule) in list.value.as_array().unwrap_or_default().iter().enumerate() {
            for what in ["agent", "fleet", "tenant"] {
                let Some(pattern) = rule.member(what).and_then(Value::as_str) else { continue };
                let names: Vec<&str> = agents
                    .iter()
                    .filter_map(|agent| match what {
                        "agent" => Some(agent.principal.id.as_str()),
                        "fleet" => agent.principal.fleet.as_ref().map(Id::as_str),
                        _ => agent.principal.tenant.as_ref().map(Id::as_str),
                    })
                    .collect();
                if names.iter().any(|name| matches(pattern, name)) {
                    continue;
                }
                let near = meant(pattern.trim_matches('*'), names)
                    .map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
                let (list, number) = (&list.name, index + 1);
                return Some(format!(
                    "{list}[{number}] of the policy is for the {what} {pattern:?}, which is none here{near}"
                ));
            }
        }
    }
    None
}

/// Whether a name is of a pattern in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(between) = last.replace(part) {
            match rest.split_once(between) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

fn limits(cursor: Cursor<'_>) -> Parsed<Limits> {
    let mut fields = cursor.object()?;
    let mut faults = Faults::of(cursor, LIMITS);
    let capacity = fields.optional("mailbox_capacity").map(capacity).transpose();
    let mut count = |name| optional_count(&mut fields, name);
    let counts = [count("max_body_bytes"), count("pending"), count("redeliveries")];
    let [max_body_bytes, pending, redeliveries] = counts.map(|count| faults.keep(cursor, count).flatten());
    let declared =
        fields.optional("addressing").map(|mode| mode.one_of(&[("open", false), ("declared", true)]));
    let declared = faults.keep(cursor, declared.transpose().map_err(Fault::from)).flatten();
    let rate = faults.keep(cursor, fields.optional("rate").map(rate).transpose()).flatten();
    let mailbox_capacity = faults.keep(cursor, capacity).flatten();
    faults.settle(Some(Limits {
        mailbox_capacity,
        max_body_bytes,
        pending,
        redeliveries,
        declared: declared.unwrap_or_default(),
        rate,
    }))
}

fn capacity(cursor: Cursor<'_>) -> Parsed<u64> {
    // Room for it is set aside for every subscription, and a number merely read must not decide how much (§8).
    match cursor.u64()? {
        number if (1..=MAX_CAPACITY).contains(&number) => Ok(number),
        _ => Err(cursor.invalid("a capacity from 1 to 65536").into()),
    }
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

fn topology(root: Cursor<'_>, agents: &[AgentSpec], cursor: Cursor<'_>) -> Parsed<Topology> {
    // An agent that cannot be read is known all the same: what is wrong with it is said where it stands.
    let written = root.value().member("agents").and_then(Value::as_object).unwrap_or_default();
    let mut known: BTreeMap<&str, Option<&Id>> = written.iter().map(|agent| (&*agent.name, None)).collect();
    known.extend(agents.iter().map(|agent| (agent.name.as_str(), Some(&agent.principal.id))));
    let mut fields = cursor.object()?;
    let mut faults = Faults::of(cursor, &["name", "edges"]);
    let name = fields.required("name").map_err(Fault::from).and_then(id);
    let name = faults.keep(cursor, name);
    let listed = fields.required("edges").and_then(Cursor::array).map_err(Fault::from);
    let mut edges = Vec::new();
    for edge in faults.keep(cursor, listed).into_iter().flatten() {
        let ends: Vec<_> =
            faults.keep(edge, edge.array().map_err(Fault::from)).into_iter().flatten().collect();
        let [from, to] = ends.as_slice() else {
            faults.keep::<()>(edge, Err(edge.invalid("an edge as [from, to]").into()));
            continue;
        };
        let shown = faults.has_room();
        let ends = [from, to].map(|end| faults.keep(*end, end_of_edge(&known, *end, shown)).flatten());
        if let [Some(from), Some(to)] = ends {
            edges.push((from, to));
        }
    }
    let name = faults.settle(name)?;
    Topology::over(name, &edges).map_err(|error| rule(cursor, error.to_string()))
}

/// The id of an agent of the scenario; nothing if it has none. `shown`: what is wrong with it is compared with all there are.
fn end_of_edge(agents: &BTreeMap<&str, Option<&Id>>, cursor: Cursor<'_>, shown: bool) -> Parsed<Option<Id>> {
    let name = cursor.string()?;
    if let Some(id) = agents.get(name) {
        return Ok(id.cloned());
    }
    let known: Vec<&str> = if shown { agents.keys().copied().collect() } else { Vec::new() };
    Err(fault(
        cursor,
        Problem::UnknownName {
            what: "agent",
            name: name.to_owned(),
            nearest: meant(name, known.iter().copied()).map(str::to_owned),
            known: known.into_iter().map(str::to_owned).collect(),
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

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name) in [
            ("*", "x"),
            ("in*", "intern"),
            ("*rn", "intern"),
            ("i*t*n", "intern"),
            ("a", "a"),
            ("a**b", "ab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("in", "intern"), ("x*", "intern"), ("*x", "intern"), ("i*x*n", "intern"), ("aa*a", "aa")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
