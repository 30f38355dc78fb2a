//! The policy rung as the clause says it, without a thought for cost: §3.7 read off a JSON value.

use fak_abi::{Act, ShareScope, Taint};
use serde_json::Value;

/// An act, as a policy sees it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) tool: String,
    pub(crate) agent: String,
    pub(crate) fleet: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) body: Option<(usize, Taint, ShareScope)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: &'static str,
    pub(crate) reason: Option<&'static str>,
    pub(crate) site: Option<String>,
}

impl Asked {
    pub(crate) fn read(act: &Value) -> Self {
        let text = |key: &str| act[key].as_str().map(str::to_owned);
        let body = act.get("body").map(|body| {
            let word = |key: &str| body[key].as_str().unwrap();
            (word("text").len(), word("taint").parse().unwrap(), word("scope").parse().unwrap())
        });
        Self {
            tool: text("tool").unwrap(),
            agent: text("agent").unwrap(),
            fleet: text("fleet"),
            tenant: text("tenant"),
            address: text("address"),
            body,
        }
    }
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|n| glob(rest, &text[n..])),
        Some((c, rest)) => text.split_first().is_some_and(|(t, tail)| t == c && glob(rest, tail)),
    }
}

fn applies(rule: &Value, kind: &str, asked: &Asked) -> bool {
    let matches = |key: &str, value: Option<&String>| {
        rule.get(key).is_none_or(|pattern| {
            value.is_some_and(|value| glob(pattern.as_str().unwrap().as_bytes(), value.as_bytes()))
        })
    };
    let capability = asked.tool.parse::<Act>().ok().map(|act| act.capability().name().to_owned());
    let tool = matches("tool", Some(&asked.tool)) || matches("tool", capability.as_ref());
    let about_body = ["taint", "scope", "max_bytes"].iter().any(|key| rule.get(key).is_some());
    let body = match asked.body {
        None => !about_body,
        Some((bytes, taint, scope)) => {
            rule.get("taint").is_none_or(|wanted| wanted == taint.name())
                && rule.get("scope").is_none_or(|wanted| wanted == scope.name())
                && rule.get("max_bytes").is_none_or(|max| {
                    let max = max.as_u64().unwrap() as usize;
                    if kind == "allow" { bytes <= max } else { bytes > max }
                })
        }
    };
    tool && body
        && matches("agent", Some(&asked.agent))
        && matches("fleet", asked.fleet.as_ref())
        && matches("tenant", asked.tenant.as_ref())
        && matches("address", asked.address.as_ref())
}

/// What the policy answers to the act, or (`on_result`) to its body entering the agent's context.
pub(crate) fn decide(policy: &Value, asked: &Asked, on_result: bool) -> Answer {
    let rules = |kind: &'static str| {
        let all = policy[kind].as_array().cloned().unwrap_or_default();
        all.into_iter().enumerate().filter(move |(_, rule)| applies(rule, kind, asked))
    };
    if on_result {
        let held = rules("quarantine").next().is_some();
        return Answer { verdict: if held { "quarantine" } else { "allow" }, reason: None, site: None };
    }
    let deny = |reason: &str, site: String| {
        let reason: fak_abi::Reason = reason.parse().unwrap();
        Answer { verdict: "deny", reason: Some(reason.name()), site: Some(site) }
    };
    if let Some((index, rule)) = rules("deny").next() {
        let reason = rule.get("reason").and_then(Value::as_str).unwrap_or("POLICY_BLOCK");
        return deny(reason, format!("policy/deny#{}", index + 1));
    }
    match rules("allow").next() {
        Some(_) => Answer { verdict: "allow", reason: None, site: None },
        None => deny("DEFAULT_DENY", "policy/default".to_owned()),
    }
}
