//! Words that are met in a line or written in a scenario and are neither reason nor check: acts, rungs, capabilities, tools,
//! verdicts. `fak explain` says what kind of word each is, and where it belongs.

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
];

/// A word, what kind it is, and what there is to say of it.
pub(crate) struct Word {
    name: String,
    kind: &'static str,
    lines: Vec<(&'static str, String)>,
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

fn act(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let act = acts().find(|act| is(act.name))?;
    let mut lines = vec![
        (
            "members",
            if act.members.is_empty() { "none but \"do\"".to_owned() } else { act.members.join(", ") },
        ),
        ("expect", act.answers.join(", ")),
    ];
    let argument = if act.name == "create" { "record" } else { "patch" };
    let envelope: Vec<String> =
        act.envelope.iter().map(|(name, example)| format!("\"{name}\": {example}")).collect();
    if !envelope.is_empty() {
        lines.push((argument, format!("{{{}}}", envelope.join(", "))));
        lines.push(("told", "in docs/scenarios.md under \"A shared task\", and in §5.1 and §5.3".to_owned()));
    }
    Some(Word { name: act.name.to_owned(), kind: "an act of scenarios", lines })
}

/// The rung of that name, in any case.
pub(crate) fn rung(given: &str) -> Option<Word> {
    let (name, about) = RUNGS.iter().find(|(name, _)| name.eq_ignore_ascii_case(given))?;
    let lines = vec![("decides", (*about).to_owned()), ("expect", format!("\"rung\": \"{name}\""))];
    Some(Word { name: (*name).to_owned(), kind: "a rung, as it stands after \"by\"", lines })
}

fn capability(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let cap = Capability::ALL.iter().find(|cap| is(cap.name()))?;
    let tools: Vec<&str> =
        Act::ALL.iter().filter(|act| act.capability() == *cap).map(|act| act.tool()).collect();
    let lines = vec![("opens", tools.join(", ")), ("agents", format!("\"caps\": [\"{}\"]", cap.name()))];
    Some(Word { name: cap.name().to_owned(), kind: "a capability", lines })
}

fn tool(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let act = Act::ALL.iter().find(|act| is(act.tool()))?;
    let lines = vec![("needs", format!("the capability {}", act.capability().name()))];
    Some(Word { name: act.tool().to_owned(), kind: "a tool, as policies name it", lines })
}

/// One that is also how a merge ends says that too.
fn concept(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let (name, clause, means) = CONCEPTS.iter().find(|(name, ..)| is(name))?;
    let mut lines = vec![("means", (*means).to_owned()), ("clause", (*clause).to_owned())];
    let verdict = VERDICTS.iter().find(|(verdict, _)| verdict == name);
    lines.extend(verdict.map(|(_, means)| ("verdict", (*means).to_owned())));
    Some(Word { name: (*name).to_owned(), kind: "a word of the protocol", lines })
}

fn verdict(is: &dyn Fn(&str) -> bool) -> Option<Word> {
    let (name, means) = VERDICTS.iter().find(|(name, _)| is(name))?;
    let lines = vec![("means", (*means).to_owned()), ("expect", format!("\"verdict\": \"{name}\""))];
    Some(Word { name: (*name).to_owned(), kind: "a verdict", lines })
}

impl Word {
    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!({"name": self.name, "kind": self.kind});
        if let Some(json) = json.as_object_mut() {
            json.extend(self.lines.iter().map(|(what, text)| ((*what).to_owned(), text.as_str().into())));
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
        for (what, text) in lines {
            output.text(format!("  {:<8} {text}", format!("{what}:")))?;
        }
        Ok(0)
    }
}
