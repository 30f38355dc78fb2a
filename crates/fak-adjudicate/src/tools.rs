//! The names of tools that the protocol knows, and the one that a mistyped name is nearest to (§2.8).

use fak_abi::{Act, json};

/// What the tools of the protocol begin with.
const FAMILIES: [&str; 8] =
    ["a2a.", "ref.", "pool.", "sharedtask.", "space.", "comm.", "lane.", "forensics."];

/// Every name an act answers to: its own and its capability's.
pub(crate) fn protocol<'k>() -> impl Iterator<Item = &'k str> {
    Act::ALL.iter().flat_map(|act| [act.tool(), act.capability().name()])
}

/// True if a name is of a family of the protocol.
pub(crate) fn in_family(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family))
}

/// The act meant by a name that is none: that of this verb, or else the name that is nearest, also among `more`.
pub(crate) fn nearest<'k>(name: &str, more: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let verb = |known: &&str| known.split_once('.').is_some_and(|(_, verb)| verb == name);
    protocol().find(verb).or_else(|| json::nearest(name, protocol().chain(more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_is_of_a_family() {
        assert!(protocol().all(in_family));
    }

    #[test]
    fn a_verb_or_a_slip_means_an_act() {
        assert_eq!(nearest("send", []), Some("a2a.send"));
        assert_eq!(nearest("a2a.snd", []), Some("a2a.send"));
        assert_eq!(nearest("wrok", ["work"]), Some("work"));
        assert_eq!(nearest("deploy", ["work"]), None);
    }
}
