//! Words that are met in a line or written in a scenario and are neither reason nor check: acts, rungs, capabilities, tools,
//! verdicts. `fak explain` says what kind of word each is, and where it belongs.

use std::fmt;

use fak_abi::{Act, Capability};
use fak_scenario::{RUNGS, acts};
use serde_json::{Value, json};

use crate::{failure::Failure, output::Output};

/// What the verdicts mean, those of a receive and of a merge too.
const VERDICTS: &[(&str, &str)] = &[
    ("allow", "the act was permitted, and happened"),
    ("deny", "the act was refused, and nothing happened; its reason says why"),
    ("transform", "the act happened with other arguments, which a rung put in their place"),
    ("quarantine", "what was to be handed over is held for forensics, and did not reach the receiver"),
    ("empty", "a receive was permitted, and nothing was there"),
    ("accepted", "a merge: the patch is part of the record"),
    ("conflict", "a merge: what the patch replaces has changed since its base_rev"),
    ("denied", "a merge: the act was permitted, the patch is not acceptable"),
    ("quarantined", "a merge: the patch brings something quarantined"),
    ("needs_approval", "a merge: the patch is held until a human approves it"),
];

/// Words of the labels and of who shares what: the clause, and what each means.
const CONCEPTS: &[(&str, &str, &str)] = &[
    (
        "taint",
        "§2.2",
        "how far a body is to be believed: trusted, tainted or quarantined. A new body is tainted; what is made of several has the \
         worst of theirs. Only ref.trust lowers it, from tainted to trusted, with a confirmed witness",
    ),
    (
        "trusted",
        "§2.2, §2.4",
        "the best taint: a witness has confirmed the body, and its owner or a human has trusted it (ref.trust)",
    ),
    (
        "tainted",
        "§2.2",
        "the taint of a body that nobody has confirmed, which every new one is: it may be sent, and is to be treated as data",
    ),
    (
        "quarantined",
        "§2.2, §2.4",
        "the worst taint: the body flows to nobody and cannot be widened; forensics.read lists and reads what is held",
    ),
    (
        "scope",
        "§2.2, §2.4",
        "who may read a body: agent (its owner alone, the default), fleet or tenant (whoever is of the owner's), and of records \
         public. Its owner widens it, from agent to fleet or tenant (ref.widen)",
    ),
    (
        "wave",
        "§6.1",
        "agents that the host spawns together: an id is alive once in a wave, and again in another",
    ),
    (
        "spawn",
        "§6.1",
        "what a host does with a group: its members live in the wave of that group until they end or are detached",
    ),
    (
        "fleet",
        "§2.3, §2.4",
        "agents that work together. A principal has one or none; a body of scope fleet is read by those of its owner's fleet, \
         whatever their tenant",
    ),
    (
        "tenant",
        "§2.3, §2.4",
        "whom agents work for. A principal has one or none; a body of scope tenant is read by those of its owner's tenant, \
         whatever their fleet: neither contains the other",
    ),
    (
        "wait",
        "§2.7",
        "what a reason says of trying again: the same act may do later, when what is held or counted is free again",
    ),
    (
        "retryable",
        "§2.7",
        "what a reason says of trying again: another call may do, with what is named or written mended",
    ),
    (
        "escalate",
        "§2.7",
        "what a reason says of trying again: it is for a person, or for whoever owns the value, to decide",
    ),
    (
        "terminal",
        "§2.7",
        "what a reason says of trying again: this same act will not be allowed; another act, or other rights, may be",
    ),
    (
        "in_kernel",
        "§4.1",
        "a locale: channels by a name that its users agree on, as in in_kernel:work; whoever may receive there does",
    ),
    (
        "session",
        "§4.1",
        "a locale: the channel of one principal, by its trace id, as in session:trace-alpha; its own from attachment on",
    ),
    (
        "window",
        "§4.1, §4.8",
        "a locale: what a principal leaves for its own next window (compact), taken from there once (resume)",
    ),
    (
        "lane",
        "§6.7",
        "a part of the tree that is leased before it is written: lanes may run together unless they are exclusive or \
         their trees overlap",
    ),
    (
        "fence",
        "§6.7",
        "the number of a lease: every lease has a higher one than those before it, so that an old holder is known by it",
    ),
    (
        "timeout",
        "§4.7",
        "a request whose deadline passed before it was answered: await then answers \"timeout\": true; a late reply \
         becomes a dead letter",
    ),
    (
        "patch_accepted",
        "§5.10",
        "the kind of an event: a patch became part of the record. next answers it under event_kind",
    ),
];

/// A word, what kind it is, and what there is to say of it.
pub(crate) struct Word {
    name: String,
    kind: &'static str,
    lines: Vec<(&'static str, Said)>,
}

/// What is said under one heading.
enum Said {
    Text(String),
    List(Vec<&'static str>),
    /// As it is written in a scenario.
    Written(Value),
}

impl Said {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::List(list) => list.as_slice().into(),
            Self::Written(value) => value.clone(),
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(list) => f.write_str(&list.join(", ")),
            // The members alone: they stand in an object that has others.
            Self::Written(value) => {
                let members = value.as_object().into_iter().flatten();
                let members: Vec<String> =
                    members.map(|(name, value)| format!("\"{name}\": {value}")).collect();
                f.write_str(&members.join(", "))
            }
        }
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// What a word is, in any case. An act of scenarios comes before a verdict of the same name.
pub(crate) fn find(name: &str) -> Option<Word> {
    let is = |other: &str| other.eq_ignore_ascii_case(name);
    act(&is)
        .or_else(|| rung(name))
        .or_else(|| capability(&is))
        .or_else(|| tool(&is))
        .or_else(|| concept(&is))
        .or_else(|| verdict(&is))
}

/// Every word there is.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    let acts: Vec<&'static str> = acts().map(|act| act.name).collect();
    acts.into_iter()
        .chain(RUNGS.iter().map(|(name, _)| *name))
        .chain(Capability::ALL.iter().map(|cap| cap.name()))
        .chain(Act::ALL.iter().map(|act| act.tool()))
        .chain(CONCEPTS.iter().map(|(name, ..)| *name))
        .chain(VERDICTS.iter().map(|(name, _)| *name))
}

/// Every act of scenarios, with what it may be told.
pub(crate) fn list_acts(output: &mut Output) -> Result<u8, Failure> {
    if output.json() {
        let all: Vec<Value> = acts()
            .map(|act| json!({"act": act.name, "members": act.members, "expect": act.answers}))
            .collect();
        output.json_of(&all)?;
        return Ok(0);
    }
    for act in acts() {
        output.text(format!("  {:<18} {}", act.name, act.members.join(", ")))?;
    }
    output.text("\n  what each answers: fak explain ACT; by is who performs it")?;
    Ok(0)
}

fn act(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let act = acts().find(|act| is(act.name))?;
    let mut lines = vec![
        (
            "members",
            if act.members.is_empty() { "none but \"do\"".into() } else { Said::List(act.members.clone()) },
        ),
        ("expect", Said::List(act.answers.clone())),
    ];
    let argument = if act.name == "create" { "record" } else { "patch" };
    let envelope: Vec<String> =
        act.envelope.iter().map(|(name, example)| format!("\"{name}\": {example}")).collect();
    if !envelope.is_empty() {
        lines.push((argument, Said::Text(format!("{{{}}}", envelope.join(", ")))));
        lines.push(("told", "in docs/scenarios.md under \"A shared task\", and in §5.1 and §5.3".into()));
    }
    Some(Word { name: act.name.to_owned(), kind: "an act of scenarios", lines })
}

/// The rung of that name, in any case.
pub(crate) fn rung(given: &str) -> Option<Word> {
    let (name, about) = RUNGS.iter().find(|(name, _)| name.eq_ignore_ascii_case(given))?;
    let lines = vec![("decides", (*about).into()), ("expect", Said::Written(json!({"rung": name})))];
    Some(Word { name: (*name).to_owned(), kind: "a rung, as it stands after \"by\"", lines })
}

fn capability(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let cap = Capability::ALL.iter().find(|cap| is(cap.name()))?;
    let tools: Vec<&str> =
        Act::ALL.iter().filter(|act| act.capability() == *cap).map(|act| act.tool()).collect();
    let lines = vec![("opens", Said::List(tools)), ("agents", Said::Written(json!({"caps": [cap.name()]})))];
    Some(Word { name: cap.name().to_owned(), kind: "a capability", lines })
}

fn tool(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let act = Act::ALL.iter().find(|act| is(act.tool()))?;
    let lines = vec![("needs", Said::Text(format!("the capability {}", act.capability().name())))];
    Some(Word { name: act.tool().to_owned(), kind: "a tool, as policies name it", lines })
}

/// One that is also how a merge ends says that too.
fn concept(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let (name, clause, means) = CONCEPTS.iter().find(|(name, ..)| is(name))?;
    let mut lines = vec![("means", (*means).into()), ("clause", (*clause).into())];
    let verdict = VERDICTS.iter().find(|(verdict, _)| verdict == name);
    lines.extend(verdict.map(|(_, means)| ("verdict", (*means).into())));
    Some(Word { name: (*name).to_owned(), kind: "a word of the protocol", lines })
}

fn verdict(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let (name, means) = VERDICTS.iter().find(|(name, _)| is(name))?;
    let lines = vec![("means", (*means).into()), ("expect", Said::Written(json!({"verdict": name})))];
    Some(Word { name: (*name).to_owned(), kind: "a verdict", lines })
}

impl Word {
    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!({"name": self.name, "kind": self.kind});
        if let Some(json) = json.as_object_mut() {
            json.extend(self.lines.iter().map(|(what, said)| ((*what).to_owned(), said.to_json())));
        }
        json
    }

    /// Writes it.
    pub(crate) fn show(&self, output: &mut Output) -> Result<u8, Failure> {
        let Self { name, kind, lines } = self;
        if output.json() {
            output.json_of(&self.to_json())?;
            return Ok(0);
        }
        output.text(format!("{name} ({kind})"))?;
        for (what, said) in lines {
            output.text(format!("  {:<8} {said}", format!("{what}:")))?;
        }
        Ok(0)
    }
}
