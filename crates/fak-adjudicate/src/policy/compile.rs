//! A policy compiled per tool, so that rules for other tools cost an act nothing.

use std::sync::{Arc, OnceLock};

use fak_abi::{Act, Id, Opinion, Reason, Ref, Tool, ToolCall, ToolToken};

use super::rule::{Effect, Policy, Rule};
use super::rung::{DEFAULT, DENY};

/// How many of a kernel's own tools have their rules kept. Tools beyond share a place with the
/// first that used it, and look their rules up each time.
const PLACES: usize = 256;

#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) policy: Policy,
    rules: Vec<Arc<Rule>>,
    acts: Vec<RuleSet>,
    /// The host's tools as they are first used, by the place their kernel gave them.
    tools: Vec<OnceLock<(Id, RuleSet)>>,
}

/// The rules that name one tool.
#[derive(Debug, Default)]
struct RuleSet {
    denies: Vec<Arc<Rule>>,
    allows: Vec<Arc<Rule>>,
    quarantines: Vec<Arc<Rule>>,
}

impl RuleSet {
    fn of(rules: &[Arc<Rule>], names: impl Fn(&Rule) -> bool) -> Self {
        let mut set = Self::default();
        for rule in rules.iter().filter(|rule| names(rule)) {
            let list = match rule.effect {
                Effect::Deny(_) => &mut set.denies,
                Effect::Allow => &mut set.allows,
                Effect::Quarantine => &mut set.quarantines,
            };
            list.push(Arc::clone(rule));
        }
        set
    }

    #[inline]
    fn judge(&self, call: &ToolCall<'_>) -> Opinion {
        let body = call.body();
        let applies = |rule: &&Arc<Rule>| rule.applies(call, body);
        if let Some(rule) = self.denies.iter().find(applies) {
            return denied(rule);
        }
        if self.allows.iter().any(|rule| rule.applies(call, body)) { Opinion::Allow } else { nothing() }
    }
}

fn denied(rule: &Rule) -> Opinion {
    let reason = match rule.effect {
        Effect::Deny(reason) => reason,
        Effect::Allow | Effect::Quarantine => Reason::PolicyBlock,
    };
    Opinion::deny(reason, DENY.site().item(rule.index))
}

const fn nothing() -> Opinion {
    Opinion::deny(Reason::DefaultDeny, DEFAULT.site())
}

impl Compiled {
    pub(super) fn new(policy: Policy) -> Self {
        let rules: Vec<_> = policy.rules.iter().cloned().map(Arc::new).collect();
        let acts = Act::ALL.iter().map(|act| RuleSet::of(&rules, |rule| rule.names_act(*act))).collect();
        let tools = (0..PLACES).map(|_| OnceLock::new()).collect();
        Self { policy, rules, acts, tools }
    }

    /// The rules of a tool, if they are kept.
    #[inline]
    fn kept(&self, tool: Tool<'_>) -> Option<&RuleSet> {
        match tool {
            Tool::Act(act) => self.acts.get(usize::from(act.code())),
            Tool::Outside(token) => self.kept_outside(token),
        }
    }

    #[inline]
    fn kept_outside(&self, token: &ToolToken) -> Option<&RuleSet> {
        let place = self.tools.get(usize::try_from(token.index()?).ok()? % PLACES)?;
        let (name, set) = place.get_or_init(|| {
            let name = token.name().clone();
            let set = RuleSet::of(&self.rules, |rule| rule.tool.matches(&name));
            (name, set)
        });
        (name == token.name()).then_some(set)
    }

    #[inline]
    pub(super) fn judge(&self, call: &ToolCall<'_>) -> Opinion {
        match self.kept(call.tool()) {
            Some(set) => set.judge(call),
            None => self.look_up(call),
        }
    }

    /// As [`RuleSet::judge`] for a tool whose rules are not kept. Linear in the rules.
    #[cold]
    fn look_up(&self, call: &ToolCall<'_>) -> Opinion {
        let (name, body) = (call.tool().name(), call.body());
        let find = |denies: bool| {
            self.rules.iter().find(|rule| {
                let wanted = match rule.effect {
                    Effect::Deny(_) => denies,
                    Effect::Allow => !denies,
                    Effect::Quarantine => false,
                };
                wanted && rule.tool.matches(name) && rule.applies(call, body)
            })
        };
        match (find(true), find(false)) {
            (Some(rule), _) => denied(rule),
            (None, Some(_)) => Opinion::Allow,
            (None, None) => nothing(),
        }
    }

    /// True if a rule holds `body` out of the context of `call`'s principal.
    pub(super) fn quarantines(&self, call: &ToolCall<'_>, body: &Ref) -> bool {
        let applies = |rule: &Arc<Rule>| rule.applies(call, Some(body));
        match self.kept(call.tool()) {
            Some(set) => set.quarantines.iter().any(applies),
            None => {
                let name = call.tool().name();
                let mut rules = self.rules.iter().filter(|rule| rule.effect == Effect::Quarantine);
                rules.any(|rule| rule.tool.matches(name) && applies(rule))
            }
        }
    }
}
