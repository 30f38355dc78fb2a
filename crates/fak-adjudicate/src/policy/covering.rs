//! Which rules may cover a rule, found by what they name exactly, so that a lint does not compare each rule with all others.
//! Whether one really does is for `lint` to say.

use std::collections::{HashMap, HashSet};

use fak_abi::Act;

use super::glob::Glob;
use super::rule::Rule;

/// What a rule names exactly: tool, agent, fleet, address. Absent where it names none, or a pattern.
type Key<'p> = [Option<&'p str>; 4];

/// The positions of rules by what they name exactly.
pub(super) struct Covering<'p> {
    rules: &'p [Rule],
    by_key: HashMap<Key<'p>, Vec<usize>>,
    /// Which parts the keys have that are there.
    shapes: HashSet<[bool; 4]>,
}

impl<'p> Covering<'p> {
    pub(super) fn new(rules: &'p [Rule]) -> Self {
        let mut by_key: HashMap<Key<'p>, Vec<usize>> = HashMap::new();
        for (position, rule) in rules.iter().enumerate() {
            by_key.entry(key(rule)).or_default().push(position);
        }
        let shapes = by_key.keys().map(|key| key.map(|part| part.is_some())).collect();
        Self { rules, by_key, shapes }
    }

    /// The first rule, in the order they are written, for which `is` holds, among those that may cover `rule`: what a covering
    /// rule names exactly, the covered one names too, but for a tool, which may be covered by its capability's.
    pub(super) fn first(&self, rule: &Rule, is: impl Fn(usize, &Rule) -> bool) -> Option<&'p Rule> {
        let own = key(rule);
        let capability =
            |tool| Act::ALL.iter().find(|act| act.tool() == tool).map(|act| act.capability().name());
        let tools = [own[0], own[0].and_then(capability).filter(|name| own[0] != Some(*name))];
        let mut found: Option<usize> = None;
        for shape in &self.shapes {
            for tool in tools.iter().take(if shape[0] { 2 } else { 1 }) {
                let mut wanted = own;
                wanted[0] = *tool;
                let parts = wanted.iter_mut().zip(shape);
                // A part that the shape has and this rule lacks: no rule of the shape covers it.
                let mut lacks = false;
                for (part, has) in parts {
                    lacks |= *has && part.is_none();
                    if !has {
                        *part = None;
                    }
                }
                let Some(positions) = self.by_key.get(&wanted).filter(|_| !lacks) else { continue };
                let first = positions
                    .iter()
                    .copied()
                    .take_while(|position| found.is_none_or(|found| *position < found))
                    .find(|position| self.rules.get(*position).is_some_and(|other| is(*position, other)));
                found = first.or(found);
            }
        }
        self.rules.get(found?)
    }
}

fn exact(glob: Option<&Glob>) -> Option<&str> {
    glob.filter(|glob| glob.is_exact()).map(Glob::pattern)
}

fn key(rule: &Rule) -> Key<'_> {
    [
        exact(Some(&rule.tool)),
        exact(rule.who.agent.as_ref()),
        exact(rule.who.fleet.as_ref()),
        exact(rule.address.as_ref().map(super::glob::AddressGlob::whole)),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Policy;

    /// A rule's condition: exact, a pattern, everything, or none.
    fn part(key: &'static str, words: &'static [&'static str]) -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            proptest::sample::select(words).prop_map(move |word| format!("{key} = {word:?}\n")),
        ]
    }

    proptest! {
        /// What is found is what comparing with all rules finds.
        #[test]
        fn the_first_that_covers_is_found(rules in proptest::collection::vec((
            prop_oneof![Just("allow"), Just("deny"), Just("quarantine")],
            proptest::sample::select(&["a2a.send", "a2a.publish", "a2a.*", "*", "host.x", "sharedtask.patch", "sharedtask.write"][..]),
            part("agent", &["a", "b", "a*", "*"]),
            part("fleet", &["f", "f*"]),
            part("address", &["in_kernel:x", "in_kernel:*", "task:t"]),
        ), 1..24)) {
            let mut text = String::from("version = 1\n");
            for (effect, tool, agent, fleet, address) in &rules {
                text.push_str(&format!("[[{effect}]]\ntool = {tool:?}\n{agent}{fleet}{address}"));
            }
            let policy = Policy::from_toml("p.toml", &text).unwrap();
            let covering = Covering::new(&policy.rules);
            for rule in &policy.rules {
                let naive = policy.rules.iter().find(|other| other.covers(rule) && !std::ptr::eq(*other, rule));
                let found = covering.first(rule, |_, other| other.covers(rule) && !std::ptr::eq(other, rule));
                prop_assert_eq!(found.map(std::ptr::from_ref), naive.map(std::ptr::from_ref), "{}", text);
            }
        }
    }

    /// As many rules as a policy may have, each of its own agent, are looked through in an instant: comparing each with all
    /// would be a hundred million comparisons.
    #[test]
    fn many_rules_are_not_compared_with_each_other() {
        use std::cell::Cell;
        let rules: String =
            (0..16_000).map(|n| format!("[[allow]]\ntool = \"a2a.send\"\nagent = \"a{n}\"\n")).collect();
        let policy = Policy::from_toml("p.toml", &format!("version = 1\n{rules}")).unwrap();
        let covering = Covering::new(&policy.rules);
        let asked = Cell::new(0);
        for rule in &policy.rules {
            covering.first(rule, |_, _| {
                asked.set(asked.get() + 1);
                false
            });
        }
        assert_eq!(asked.get(), 16_000);
    }
}
