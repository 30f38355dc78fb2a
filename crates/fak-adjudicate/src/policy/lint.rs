//! What is suspicious about a policy that parses: rules that can never match, never decide, or
//! decide in a way that makes agents try forever.

use std::cell::Cell;
use std::fmt;

use fak_abi::json::nearest;
use fak_abi::{Act, Capability, Disposition, Id};

use super::covering::Covering;
use super::glob::Glob;
use super::program::Family;
use super::rule::{Effect, Grant, Policy, Rule, Who};
use crate::tools;

/// Something suspicious about one rule of a policy (§3.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLint {
    /// The line the rule starts on, from 1.
    pub line: usize,
    /// Which rule: `deny[2]`, counted from 1.
    pub rule: String,
    /// What is wrong with it.
    pub text: String,
}

impl fmt::Display for PolicyLint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.rule, self.text)
    }
}

impl Policy {
    /// Names the rules that can never match or never decide (§3.7). `tools` are the host's own
    /// tools, if they are known: without them a rule for a tool that is no act is named as well, since it may be an act mistyped.
    /// Rules that only several others together make superfluous are not found. Linear in the rules
    /// that name a tool, agent, fleet or address exactly; quadratic in those that name all of them by
    /// patterns, or not at all, up to a bound: past it, the first rule that was not compared is named
    /// (§8).
    #[must_use]
    pub fn lint(&self, tools: Option<&[&str]>) -> Vec<PolicyLint> {
        let mut found = Vec::new();
        let covering = Covering::new(&self.rules);
        let work = Work::default();
        for (position, rule) in self.rules.iter().enumerate() {
            let never = never_matches(rule, tools);
            let was_done = work.is_done();
            let text = never
                .or_else(|| never_decides(&covering, rule, position, &work))
                .or_else(|| (work.is_done() && !was_done).then(|| UNCOMPARED.to_owned()))
                .or_else(|| no_act(rule, tools))
                .or_else(|| invites_retries(rule));
            found.extend(text.map(|text| PolicyLint {
                line: rule.line,
                rule: format!("{}[{}]", rule.effect.name(), rule.index + 1),
                text,
            }));
        }
        for (position, grant) in self.grants.iter().enumerate() {
            let was_done = work.is_done();
            let earlier = self.grants.iter().take(position).enumerate().find(|(_, earlier)| {
                work.may(earlier.cost_of_covering(grant))
                    && earlier.capability.covers(&grant.capability)
                    && earlier.who.covers(&grant.who)
            });
            let text = earlier
                .map(|(index, _)| format!("grants nothing that grant[{}] does not", index + 1))
                .or_else(|| (work.is_done() && !was_done).then(|| UNCOMPARED.to_owned()))
                .or_else(|| impossible_who(&grant.who));
            let rule = format!("grant[{}]", position + 1);
            found.extend(text.map(|text| PolicyLint { line: grant.line, rule, text }));
        }
        found.sort_by_key(|lint| lint.line);
        found
    }
}

/// Said of the first rule that is not compared any more.
const UNCOMPARED: &str =
    "not compared with the others, nor those after it: too many patterns to compare them all";

/// How much comparing a lint may still do, in bytes of patterns: a policy is outside data, and the
/// worst of four megabytes would take hours (§8).
struct Work(Cell<u64>);

impl Default for Work {
    fn default() -> Self {
        Self(Cell::new(1 << 30))
    }
}

impl Work {
    /// True if so much more may be done.
    fn may(&self, cost: u64) -> bool {
        let left = self.0.get().saturating_sub(cost);
        self.0.set(left);
        left > 0
    }

    fn is_done(&self) -> bool {
        self.0.get() == 0
    }
}

/// Another rule always decides instead.
fn never_decides(covering: &Covering<'_>, rule: &Rule, position: usize, work: &Work) -> Option<String> {
    let same = |other: &Rule| std::mem::discriminant(&other.effect) == std::mem::discriminant(&rule.effect);
    let covers = |other: &Rule| work.may(other.cost_of_covering(rule)) && other.covers(rule);
    let before = covering.first(rule, |at, other| at < position && same(other) && covers(other));
    if let Some(other) = before {
        let (effect, number) = (other.effect.name(), other.index + 1);
        return Some(format!("never decides: {effect}[{number}] matches all it matches"));
    }
    if rule.effect != Effect::Allow {
        return None;
    }
    let denied = covering.first(rule, |_, other| matches!(other.effect, Effect::Deny(_)) && covers(other));
    denied.map(|other| format!("never allows: deny[{}] denies all it matches", other.index + 1))
}

impl Who {
    fn cost_of_covering(&self, other: &Self) -> u64 {
        let parts = [(&self.agent, &other.agent), (&self.fleet, &other.fleet), (&self.tenant, &other.tenant)];
        parts.iter().map(|(mine, theirs)| cost(mine.as_ref(), theirs.as_ref())).sum()
    }

    fn covers(&self, other: &Self) -> bool {
        covers(self.agent.as_ref(), other.agent.as_ref(), true)
            && covers(self.fleet.as_ref(), other.fleet.as_ref(), false)
            && covers(self.tenant.as_ref(), other.tenant.as_ref(), false)
    }
}

/// True if a condition holds wherever `other` does. `always` says that what it looks at is always
/// there, so that `*` is no condition.
fn covers(glob: Option<&Glob>, other: Option<&Glob>, always: bool) -> bool {
    match (glob, other) {
        (None, _) => true,
        (Some(glob), None) => always && glob.pattern() == "*",
        (Some(glob), Some(other)) => glob.covers(other),
    }
}

/// What [`covers`] costs at worst.
fn cost(glob: Option<&Glob>, other: Option<&Glob>) -> u64 {
    glob.zip(other).map_or(0, |(glob, other)| glob.cost_of_covering(other))
}

impl Grant {
    fn cost_of_covering(&self, other: &Self) -> u64 {
        1 + self.capability.cost_of_covering(&other.capability) + self.who.cost_of_covering(&other.who)
    }
}

impl Rule {
    fn cost_of_covering(&self, other: &Self) -> u64 {
        let addresses = [&self.address, &other.address]
            .map(|address| address.as_ref().map(super::glob::AddressGlob::whole));
        let [mine, theirs] = addresses;
        1 + self.tool.cost_of_covering(&other.tool)
            + self.who.cost_of_covering(&other.who)
            + cost(mine, theirs)
    }

    /// True only if this rule matches everything that `other` matches.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let wide = |mine: Option<u64>, theirs: Option<u64>| match (mine, theirs) {
            (None, _) => true,
            (Some(_), None) => false,
            // Above a limit is the wider the lower it is; up to one, the higher.
            (Some(mine), Some(theirs)) => match (self.effect, other.effect) {
                (Effect::Allow, Effect::Allow) => mine >= theirs,
                (Effect::Allow, _) | (_, Effect::Allow) => false,
                _ => mine <= theirs,
            },
        };
        self.tool_covers(other)
            && self.who.covers(&other.who)
            && covers(
                self.address.as_ref().map(super::glob::AddressGlob::whole),
                other.address.as_ref().map(super::glob::AddressGlob::whole),
                false,
            )
            && self.taint.is_none_or(|taint| other.taint == Some(taint))
            && self.scope.is_none_or(|scope| other.scope == Some(scope))
            && wide(self.max_bytes, other.max_bytes)
    }

    fn tool_covers(&self, other: &Self) -> bool {
        if self.tool.covers(&other.tool) {
            return true;
        }
        // An exact name of the protocol may be covered through the capability.
        let mut named = Act::ALL.iter().filter(|act| other.names_act(**act)).peekable();
        other.tool.is_exact() && named.peek().is_some() && named.all(|act| self.names_act(*act))
    }
}

fn never_matches(rule: &Rule, tools: Option<&[&str]>) -> Option<String> {
    unknown_tool(&rule.tool, tools)
        .or_else(|| impossible_who(&rule.who))
        .or_else(|| rule.address.as_ref().and_then(|address| impossible_address(address.whole())))
        .or_else(|| bodiless(rule))
}

fn unknown_tool(tool: &Glob, tools: Option<&[&str]>) -> Option<String> {
    let sure = tools.is_some() || tools::in_family(tool.literal());
    let meant = unknown(tool, tools).filter(|_| sure)?;
    Some(format!("never matches: no tool is named {:?}{meant}", tool.pattern()))
}

/// A tool that may be one of the host's own, which nobody named.
fn no_act(rule: &Rule, tools: Option<&[&str]>) -> Option<String> {
    let meant = unknown(&rule.tool, tools)?;
    Some(format!(
        "matches no act: {:?} is a tool of the host's own, to be named to the lint, or a mistake{meant}",
        rule.tool.pattern()
    ))
}

/// Of a tool that is not known, what may be meant, as the end of a sentence.
fn unknown(tool: &Glob, tools: Option<&[&str]>) -> Option<String> {
    let host = || tools.unwrap_or_default().iter().copied();
    if tools::protocol().chain(host()).any(|name| tool.matches(name)) {
        return None;
    }
    let near = tools::nearest(tool.pattern(), host());
    Some(near.map_or_else(String::new, |near| format!(", did you mean {near:?}?")))
}

fn impossible_who(who: &Who) -> Option<String> {
    [("agent", &who.agent), ("fleet", &who.fleet), ("tenant", &who.tenant)].into_iter().find_map(
        |(key, glob)| {
            let glob = glob.as_ref()?;
            impossible_id(glob.pattern())
                .then(|| format!("never matches: no {key} can be named {:?}", glob.pattern()))
        },
    )
}

/// True if no id has these literal parts.
fn impossible_id(pattern: &str) -> bool {
    let literal: String = pattern.split('*').collect();
    !literal.is_empty() && Id::new(&literal).is_err()
}

fn impossible_address(glob: &Glob) -> Option<String> {
    let pattern = glob.pattern();
    let families = || Family::ALL.into_iter().map(Family::name);
    let possible = families().any(|family| {
        let id = pattern.strip_prefix(family).and_then(|rest| rest.strip_prefix(':'));
        match id {
            Some(id) => !id.is_empty() && !impossible_id(id),
            None => pattern.contains('*') && format!("{family}:").starts_with(glob.literal()),
        }
    });
    if possible {
        return None;
    }
    let family = glob.literal().split(':').next().unwrap_or_default();
    let meant = nearest(family, families()).filter(|near| *near != family);
    let hint = meant.map_or_else(String::new, |near| format!(", did you mean \"{near}:…\"?"));
    Some(format!("never matches: no address is of the form {pattern:?}{hint}"))
}

/// Acts that carry no body when they are judged; what they hand over is screened instead.
fn bodiless(rule: &Rule) -> Option<String> {
    let bare = |act: &Act| {
        use Act::{Bind, Recv, RecvLeased, Subscribe, Unbind, Unsubscribe};
        matches!(act, Recv | RecvLeased | Subscribe | Unsubscribe | Bind | Unbind)
    };
    let mut acts = Act::ALL.iter().filter(|act| rule.tool.matches(act.tool()));
    let named = rule.tool.is_exact() && rule.tool.pattern().parse::<Capability>().is_err();
    let never = rule.effect != Effect::Quarantine && rule.looks_at_body() && named && acts.any(bare);
    never.then(|| format!("never matches: {:?} carries no body; use a quarantine rule", rule.tool.pattern()))
}

/// A refusal by rule stays; a reason that says "try again" makes agents do so forever (I18).
fn invites_retries(rule: &Rule) -> Option<String> {
    match rule.effect {
        Effect::Deny(reason)
            if matches!(reason.disposition(), Disposition::Retryable | Disposition::Wait) =>
        {
            let disposition = reason.disposition();
            Some(format!("{reason} is {disposition}: refused agents will try again, and be refused again"))
        }
        _ => None,
    }
}
