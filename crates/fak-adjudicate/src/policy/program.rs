//! The rules of one effect for one tool, as a program: a flat list of steps, each of which says
//! where to go on if it fails. Judging is one pass over neighbouring memory, and most steps are one
//! comparison of one number (`words`).

use fak_abi::{Address, ChannelKey, Id, Locale, Ref, ShareScope, Taint, ToolCall};

use super::glob::{AddressGlob, Glob};
use super::rule::{Effect, Rule};
use super::words::{BODY, Bits, SCOPE, TAINT, Word, Words};

/// An act, and the body it has or is about to hand over.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    call: &'a ToolCall<'a>,
    body: Option<&'a Ref>,
    words: Words,
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

    /// A number that is no other family's, below 255.
    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    fn of_key(key: &ChannelKey) -> Self {
        match key.locale() {
            Locale::InKernel => Self::InKernel,
            Locale::Session => Self::Session,
            Locale::Window => Self::Window,
        }
    }

    /// What an address begins with and what follows, if it is one that globs match.
    #[inline]
    pub(super) fn of(address: Address<'_>) -> Option<(Self, &Id)> {
        match address {
            Address::None | Address::Malformed => None,
            Address::Channel(key) => Some((Self::of_key(key), key.id())),
            Address::Task(id) => Some((Self::Task, id)),
            Address::Cell(id) => Some((Self::Cell, id)),
            Address::Lane(id) => Some((Self::Lane, id)),
            Address::Group(id, _) => Some((Self::Group, id)),
        }
    }
}

impl<'a> Facts<'a> {
    #[inline]
    pub(super) fn new(call: &'a ToolCall<'a>, body: Option<&'a Ref>) -> Self {
        Self { call, body, words: Words::of(call, body) }
    }

    #[inline]
    fn address(&self) -> Option<(Family, &'a Id)> {
        Family::of(self.call.target())
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

/// A condition and where to go on: at another step, or, with [`HIT`], at an answer.
#[derive(Debug)]
struct Step {
    /// What must be so, or the condition does not hold.
    bits: Bits,
    word: Word,
    then: u32,
    or: u32,
    /// What the bits leave open.
    rest: Option<Test>,
}

/// Marks the index of a rule that applies.
const HIT: u32 = 1 << 31;

impl Step {
    fn new(test: Test, then: u32, or: u32) -> Self {
        let (word, bits, is_enough) = test.bits();
        Self { bits, word, then, or, rest: (!is_enough).then_some(test) }
    }

    #[inline]
    fn holds(&self, facts: &Facts<'_>) -> bool {
        self.bits.hold(facts.words.get(self.word)) && self.rest.as_ref().is_none_or(|test| test.holds(facts))
    }
}

impl Test {
    /// What is so of some number whenever the condition holds. `true` if it holds whenever that is so.
    fn bits(&self) -> (Word, Bits, bool) {
        let of = |word, (bits, is_enough)| (word, bits, is_enough);
        let label = |at, code: u8| {
            let bits = Bits { mask: BODY | 0xFF_u64 << at, want: BODY | u64::from(code) << at };
            (Word::Body, bits, true)
        };
        let body = Bits { mask: BODY, want: BODY };
        match self {
            Self::Agent(glob) if glob.is_any() => (Word::Agent, Bits::ANY, true),
            Self::Agent(glob) => of(Word::Agent, Bits::of(glob, 8)),
            Self::Fleet(glob) => of(Word::Fleet, Bits::of(glob, 8)),
            Self::Tenant(glob) => of(Word::Tenant, Bits::of(glob, 8)),
            Self::Within(family, glob) => {
                let (bits, is_enough) = Bits::of(glob, 7);
                (Word::Address, bits.above(family.code()), is_enough || glob.is_any())
            }
            Self::Taint(taint) => label(TAINT, taint.code()),
            Self::Scope(scope) => label(SCOPE, scope.code()),
            Self::UpTo(_) | Self::Above(_) => (Word::Body, body, false),
            Self::Tool(_) | Self::Address(_) => (Word::Agent, Bits::ANY, false),
            Self::Always => (Word::Agent, Bits::ANY, true),
            Self::Never => (Word::Agent, Bits::NONE, true),
        }
    }
}

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
                steps.push(Step::new(test, then, or));
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
            at = if step.holds(facts) { step.then } else { step.or };
        }
        Some(at & !HIT)
    }
}
