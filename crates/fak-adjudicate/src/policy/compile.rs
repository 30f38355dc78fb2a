//! A policy compiled per tool, so that rules for other tools cost an act nothing.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use fak_abi::{Act, Id, Opinion, Reason, Ref, Tool, ToolCall, ToolToken};

use super::program::{Facts, Program};
use super::rule::{Effect, Policy, Rule};
use super::rung::{DEFAULT, DENY};

/// How many of a kernel's own tools have their rules kept. A tool beyond, and one that the kernel
/// was not told of, is looked for among the rules of all tools.
const PLACES: usize = 256;

#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) policy: Policy,
    acts: Vec<Arc<RuleSet>>,
    /// The host's tools as they are first used, by the place their kernel gave them.
    tools: Vec<OnceLock<(Id, RuleSet)>>,
    /// For every other tool.
    any: RuleSet,
}

/// The rules that name one tool. A rule's number is its place among those of its effect in the
/// policy; that of a deny comes with its reason.
#[derive(Debug, Default)]
struct RuleSet {
    denies: Program,
    reasons: Vec<(u32, Reason)>,
    allows: Program,
    quarantines: Program,
}

impl RuleSet {
    /// Of the rules at these places.
    fn of(policy: &Policy, places: &[usize], any_tool: bool) -> Self {
        let rules = || places.iter().filter_map(|place| policy.rules.get(*place));
        let of =
            |effect: fn(&Effect) -> bool| Program::new(rules().filter(|rule| effect(&rule.effect)), any_tool);
        let reason = |rule: &Rule| match rule.effect {
            Effect::Deny(reason) => Some((rule.index, reason)),
            Effect::Allow | Effect::Quarantine => None,
        };
        Self {
            denies: of(|effect| matches!(effect, Effect::Deny(_))),
            reasons: rules().filter_map(reason).collect(),
            allows: of(|effect| *effect == Effect::Allow),
            quarantines: of(|effect| *effect == Effect::Quarantine),
        }
    }

    #[inline]
    fn judge(&self, call: &ToolCall<'_>) -> Opinion {
        let facts = Facts::new(call, call.body());
        if let Some(number) = self.denies.run(&facts) {
            return self.denied(number);
        }
        match self.allows.run(&facts) {
            Some(_) => Opinion::Allow,
            None => Opinion::deny(Reason::DefaultDeny, DEFAULT.site()),
        }
    }

    #[cold]
    fn denied(&self, number: u32) -> Opinion {
        let found = self.reasons.binary_search_by_key(&number, |(number, _)| *number).ok();
        let reason =
            found.and_then(|at| self.reasons.get(at)).map_or(Reason::PolicyBlock, |(_, reason)| *reason);
        Opinion::deny(reason, DENY.site().item(number))
    }

    fn quarantines(&self, call: &ToolCall<'_>, body: &Ref) -> bool {
        self.quarantines.run(&Facts::new(call, Some(body))).is_some()
    }
}

/// Where the rules of which this holds stand, in order.
fn places(policy: &Policy, names: impl Fn(&Rule) -> bool) -> Vec<usize> {
    policy.rules.iter().enumerate().filter(|(_, rule)| names(rule)).map(|(place, _)| place).collect()
}

impl Compiled {
    pub(super) fn new(policy: Policy) -> Self {
        // Most acts are named by the same rules and share a set.
        let mut sets: HashMap<Vec<usize>, Arc<RuleSet>> = HashMap::new();
        let mut acts = Vec::with_capacity(Act::ALL.len());
        for act in Act::ALL {
            let places = places(&policy, |rule| rule.names_act(*act));
            let set = match sets.get(&places) {
                Some(set) => Arc::clone(set),
                None => {
                    let set = Arc::new(RuleSet::of(&policy, &places, false));
                    sets.insert(places, Arc::clone(&set));
                    set
                }
            };
            acts.push(set);
        }
        let tools = (0..PLACES).map(|_| OnceLock::new()).collect();
        let any = RuleSet::of(&policy, &places(&policy, |_| true), true);
        Self { policy, acts, tools, any }
    }

    #[inline]
    fn of(&self, tool: Tool<'_>) -> &RuleSet {
        let kept = match tool {
            Tool::Act(act) => self.acts.get(usize::from(act.code())).map(|set| &**set),
            Tool::Outside(token) => self.kept(token),
        };
        kept.unwrap_or(&self.any)
    }

    #[inline]
    fn kept(&self, token: &ToolToken) -> Option<&RuleSet> {
        let place = self.tools.get(usize::try_from(token.index()?).ok()? % PLACES)?;
        let (name, set) = place.get_or_init(|| {
            let name = token.name().clone();
            let places = places(&self.policy, |rule| rule.tool.matches(&name));
            (name, RuleSet::of(&self.policy, &places, false))
        });
        // The usual token is the one the rules were kept for.
        let same = std::ptr::eq(name.as_str(), token.name().as_str()) || name == token.name();
        same.then_some(set)
    }

    #[inline]
    pub(super) fn judge(&self, call: &ToolCall<'_>) -> Opinion {
        self.of(call.tool()).judge(call)
    }

    /// True if a rule holds `body` out of the context of `call`'s principal.
    pub(super) fn quarantines(&self, call: &ToolCall<'_>, body: &Ref) -> bool {
        self.of(call.tool()).quarantines(call, body)
    }
}
