//! How the parts of a scenario are written, for whoever writes one as something else: an example says more than the name of a type.

use fak_abi::json::{Cursor, Kind};

use self::Form::{Either, List, Object};
use super::{Parsed, rule};

/// What a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Object,
    List,
    Either,
}

/// The parts, and how each is written.
const PARTS: &[(&str, Form, &str)] = &[
    ("agents", Object, "agents are an object, by name: {\"alpha\": {\"caps\": [\"a2a.send\"]}, …}"),
    (
        "policy",
        Object,
        "a policy is an object: {\"version\": 1, \"allow\": [{\"tool\": \"*\"}]}, or {\"file\": \"policy.toml\"}",
    ),
    ("limits", Object, "limits are an object, such as {\"mailbox_capacity\": 10}"),
    (
        "lanes",
        Object,
        "lanes are an object: {\"concurrent\": [\"docs\"], \"trees\": {\"docs\": [\"docs/**\"]}}, or {\"file\": \"lanes.toml\"}",
    ),
    (
        "topology",
        Object,
        "a topology is an object: {\"name\": \"wave\", \"edges\": [[\"lead\", \"dev\"], …]}",
    ),
    ("store", Object, "the store is an object, such as {\"fleet\": \"f1\"}"),
    (
        "tasks",
        Either,
        "tasks are a list of records: [{\"schema\": \"fak.shared-task.v1\", …}], or {\"file\": \"tasks.json\"}",
    ),
    ("steps", List, "steps are a list: [{\"do\": \"send\", …}, …]"),
    ("a step", Object, "a step is an object: {\"do\": \"send\", …}"),
];

/// Refuses what cannot be the part of this name, with how it is written.
pub(super) fn formed(part: &str, cursor: Cursor<'_>) -> Parsed<()> {
    let Some((_, form, written)) = PARTS.iter().find(|(name, ..)| *name == part) else {
        return Ok(());
    };
    let fits = match cursor.value().kind() {
        Kind::Object(_) => *form != List,
        Kind::Array(_) => *form != Object,
        _ => false,
    };
    if fits { Ok(()) } else { Err(rule(cursor, *written)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::top::MEMBERS;

    #[test]
    fn every_part_that_is_no_text_is_here() {
        let texts = ["schema", "name", "about", "clock"];
        let known: Vec<_> = PARTS.iter().map(|(name, ..)| *name).filter(|name| *name != "a step").collect();
        let parts: Vec<_> = MEMBERS.iter().copied().filter(|name| !texts.contains(name)).collect();
        assert_eq!(known, parts);
    }
}
