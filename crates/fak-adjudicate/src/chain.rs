//! Chains: for each tool, the rungs that concern themselves with it, in order (§3.2).
//! Built once; walking one takes no lock and costs nothing for rungs scoped to other tools.

use std::collections::HashMap;
use std::sync::Arc;

use fak_abi::{Act, Adjudicator, Id, ResultAdmitter, RungName, Tool, ToolScope};

/// A rung as a chain holds it: name and flags beside the trait object, read once.
#[derive(Clone)]
pub(crate) struct Rung {
    pub(crate) judge: Arc<dyn Adjudicator>,
    pub(crate) name: RungName,
    pub(crate) floor: bool,
    pub(crate) counts: bool,
}

/// An admitter as a chain holds it.
#[derive(Clone)]
pub(crate) struct Screen {
    pub(crate) admitter: Arc<dyn ResultAdmitter>,
    pub(crate) name: RungName,
}

/// Everything that concerns one tool.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    pub(crate) rungs: Vec<Rung>,
    pub(crate) screens: Vec<Screen>,
    pub(crate) counts: bool,
}

/// The chains of a kernel, by tool.
pub(crate) struct Chains {
    acts: Vec<Chain>,
    outside: Vec<Chain>,
    /// For tools the kernel was never told of: the rungs that name no tool.
    unknown: Chain,
    names: HashMap<Id, u32>,
    /// True if the kernel was built with a list of tools.
    closed: bool,
}

/// What the builder has gathered, in fold order.
pub(crate) struct Parts {
    pub(crate) rungs: Vec<Rung>,
    pub(crate) screens: Vec<Screen>,
    /// Tools named by engines, rungs, admitters and the host.
    pub(crate) tools: Vec<Id>,
    pub(crate) closed: bool,
}

impl Chains {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { rungs, screens, tools, closed } = parts;
        let chain = |concerns: &dyn Fn(&ToolScope) -> bool| {
            let rungs: Vec<_> = rungs.iter().filter(|rung| concerns(&rung.judge.tools())).cloned().collect();
            let screens = screens.iter().filter(|s| concerns(&s.admitter.tools())).cloned().collect();
            let counts = rungs.iter().any(|rung| rung.counts);
            Chain { rungs, screens, counts }
        };
        let acts = Act::ALL
            .iter()
            .map(|act| chain(&|scope| scope_names(scope, |name| act.answers_to(name))))
            .collect();
        let mut names = HashMap::new();
        let mut outside = Vec::new();
        for tool in tools {
            if tool.parse::<Act>().is_ok() || names.contains_key(&tool) {
                continue;
            }
            outside.push(chain(&|scope| scope_names(scope, |name| name == &*tool)));
            names.insert(tool, u32::try_from(outside.len() - 1).unwrap_or(u32::MAX));
        }
        let unknown = chain(&|scope| matches!(scope, ToolScope::Every));
        Self { acts, outside, unknown, names, closed }
    }

    /// The chain of a tool; `None` if the kernel refuses tools it was not told of.
    #[inline]
    pub(crate) fn of(&self, tool: Tool<'_>) -> Option<&Chain> {
        match tool {
            Tool::Act(act) => self.acts.get(usize::from(act.code())),
            Tool::Outside(token) => match token.index() {
                Some(index) => self.outside.get(usize::try_from(index).ok()?),
                None if self.closed => None,
                None => Some(&self.unknown),
            },
        }
    }

    pub(crate) fn index(&self, name: &Id) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The names of the host's own tools, for suggestions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(Id::as_str)
    }
}

fn scope_names(scope: &ToolScope, matches: impl Fn(&str) -> bool) -> bool {
    match scope {
        ToolScope::Every => true,
        ToolScope::Only(names) => names.iter().any(|name| matches(name)),
    }
}
