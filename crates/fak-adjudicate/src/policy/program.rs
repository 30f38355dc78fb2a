//! The rules of one effect for one tool, as a program: a flat list of tests, each of which says
//! where to go on if it fails. Judging is one pass over neighbouring memory.

use fak_abi::{Address, ChannelKey, Id, Locale, Ref, ShareScope, Taint, ToolCall};

use super::glob::{AddressGlob, Glob};
use super::rule::{Effect, Rule};

/// An act, and the body it has or is about to hand over.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    call: &'a ToolCall<'a>,
    body: Option<&'a Ref>,
}

/// What an address begins with, in the text that globs match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    InKernel,
    Session,
    Window,
    Task,
    Cell,
    Lane,
    Group,
}

impl Family {
    pub(super) const ALL: [Self; 7] =
        [Self::InKernel, Self::Session, Self::Window, Self::Task, Self::Cell, Self::Lane, Self::Group];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::InKernel => "in_kernel",
            Self::Session => "session",
            Self::Window => "window",
            Self::Task => "task",
            Self::Cell => "cell",
            Self::Lane => "lane",
            Self::Group => "group",
        }
    }

    fn of(key: &ChannelKey) -> Self {
        match key.locale() {
            Locale::InKernel => Self::InKernel,
            Locale::Session => Self::Session,
            Locale::Window => Self::Window,
        }
    }
}

impl<'a> Facts<'a> {
    #[inline]
    pub(super) const fn new(call: &'a ToolCall<'a>, body: Option<&'a Ref>) -> Self {
        Self { call, body }
    }

    #[inline]
    fn address(&self) -> Option<(Family, &'a Id)> {
        match self.call.target() {
            Address::None | Address::Malformed => None,
            Address::Channel(key) => Some((Family::of(key), key.id())),
            Address::Task(id) => Some((Family::Task, id)),
            Address::Cell(id) => Some((Family::Cell, id)),
            Address::Lane(id) => Some((Family::Lane, id)),
            Address::Group(id, _) => Some((Family::Group, id)),
        }
    }
}

/// One condition. What it looks at must be there.
#[derive(Debug)]
enum Test {
    Tool(Glob),
    Agent(Glob),
    Fleet(Glob),
    Tenant(Glob),
    /// An address of one family.
    Within(Family, Glob),
    /// An address of whatever family.
    Address(Box<AddressGlob>),
    Taint(Taint),
    Scope(ShareScope),
    /// A body of at most so many bytes.
    UpTo(u64),
    /// A body of more.
    Above(u64),
    Always,
    Never,
}

impl Test {
    #[inline]
    fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Tool(glob) => glob.matches(facts.call.tool().name()),
            Self::Agent(glob) => glob.matches(facts.call.principal().id()),
            Self::Fleet(glob) => facts.call.principal().fleet().is_some_and(|id| glob.matches(id)),
            Self::Tenant(glob) => facts.call.principal().tenant().is_some_and(|id| glob.matches(id)),
            Self::Within(wanted, glob) => {
                facts.address().is_some_and(|(family, id)| family == *wanted && glob.matches(id))
            }
            Self::Address(glob) => {
                facts.address().is_some_and(|(family, id)| glob.matches(family.name(), id))
            }
            Self::Taint(taint) => facts.body.is_some_and(|body| body.taint() == *taint),
            Self::Scope(scope) => facts.body.is_some_and(|body| body.scope() == *scope),
            Self::UpTo(max) => facts.body.is_some_and(|body| body.len() as u64 <= *max),
            Self::Above(max) => facts.body.is_some_and(|body| body.len() as u64 > *max),
            Self::Always => true,
            Self::Never => false,
        }
    }

    /// The conditions of a rule besides its tool, the cheapest first.
    fn of(rule: &Rule) -> Vec<Self> {
        let mut tests = Vec::new();
        tests.extend(rule.taint.map(Self::Taint));
        tests.extend(rule.scope.map(Self::Scope));
        tests.extend(rule.max_bytes.map(|max| match rule.effect {
            Effect::Allow => Self::UpTo(max),
            Effect::Deny(_) | Effect::Quarantine => Self::Above(max),
        }));
        tests.extend(rule.who.agent.clone().map(Self::Agent));
        tests.extend(rule.who.fleet.clone().map(Self::Fleet));
        tests.extend(rule.who.tenant.clone().map(Self::Tenant));
        tests.extend(rule.address.as_ref().map(Self::address));
        tests
    }

    fn address(glob: &AddressGlob) -> Self {
        match glob.split() {
            None => Self::Address(Box::new(glob.clone())),
            Some((family, id)) => Family::ALL
                .into_iter()
                .find(|known| known.name() == family)
                .map_or(Self::Never, |family| Self::Within(family, id.clone())),
        }
    }
}

/// A test and where to go on: at another step, or, with [`HIT`], at an answer.
#[derive(Debug)]
struct Step {
    test: Test,
    then: u32,
    or: u32,
}

/// Marks the index of a rule that applies.
const HIT: u32 = 1 << 31;

/// Rules in order; the first that applies is the answer.
#[derive(Debug, Default)]
pub(super) struct Program(Box<[Step]>);

impl Program {
    /// Of these rules, each answered with its index. `any_tool` if they were not chosen by their tool,
    /// which then is a condition like the others.
    pub(super) fn new<'r>(rules: impl IntoIterator<Item = &'r Rule>, any_tool: bool) -> Self {
        let mut steps = Vec::new();
        for rule in rules {
            let mut tests = Test::of(rule);
            if any_tool {
                tests.insert(0, Test::Tool(rule.tool.clone()));
            }
            if tests.is_empty() {
                tests.push(Test::Always);
            }
            // A policy is bounded: its rules and their tests are numbered far below the mark.
            let number = |place: usize| u32::try_from(place).unwrap_or(HIT - 1);
            let or = number(steps.len() + tests.len());
            for test in tests {
                let then = number(steps.len() + 1);
                let then = if then == or { rule.index | HIT } else { then };
                steps.push(Step { test, then, or });
            }
        }
        Self(steps.into())
    }

    /// The index of the first rule that applies.
    #[inline]
    pub(super) fn run(&self, facts: &Facts<'_>) -> Option<u32> {
        let mut at = 0;
        while at & HIT == 0 {
            let step = self.0.get(at as usize)?;
            at = if step.test.holds(facts) { step.then } else { step.or };
        }
        Some(at & !HIT)
    }
}
