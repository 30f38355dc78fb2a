//! Every check and every rung there is in a scenario's kernel, by name: what `expect` may name under `at` and `rung`, and what
//! `fak explain` knows.

use fak_abi::{Adjudicator as _, Driver as _, Id, Reason, SiteInfo};
use fak_agenttopo::{Enforced, Topology};
use fak_comm::Comm;

use crate::act::{Kind, MERGED_AS};

/// The checks that layers make public, by crate.
const PUBLIC: &[&[SiteInfo]] = &[
    fak_abi::READ_SITES,
    fak_adjudicate::KERNEL_SITES,
    fak_adjudicate::POLICY_SITES,
    fak_adjudicate::POOL_SITES,
    fak_adjudicate::RATE_SITES,
    fak_adjudicate::BUDGET_SITES,
    fak_a2achan::SITES,
    fak_comm::BARRIER_SITES,
    fak_comm::LANE_SITES,
    fak_sharedtask::STORE_SITES,
    fak_sharedtask::SPACE_SITES,
];

/// The rungs of a scenario's kernel and the layers that decide after them, with the acts each is about.
pub const RUNGS: &[(&str, &str)] = &[
    ("kernel", "every act, before any rung is asked"),
    ("detached", "acts of a principal that was detached"),
    ("empty-policy", "acts that no rung concerns itself with"),
    ("all-defer", "acts on which every rung defers"),
    ("audit", "every act, where its log cannot be kept"),
    ("policy", "every act, by the host's policy"),
    ("rate", "every act, by the token buckets"),
    ("budget", "every act, by what is left to spend"),
    ("refs", "widening and trusting"),
    ("read", "reading a value"),
    ("pool", "the pool of shared values"),
    ("a2achan/gate", "channels: sending, receiving, publishing, requests"),
    ("a2achan/inboxes", "what a hand-over needs room for"),
    ("a2achan/correction", "statuses, corrections and their acknowledgement"),
    ("agenttopo/edges", "hand-overs between members of a topology"),
    ("comm", "groups and what is handed over in them"),
    ("comm/floor", "collectives, barriers and splits"),
    ("comm/gather", "gathering"),
    ("comm/spawn", "waves of agents"),
    ("comm/barrier", "arriving at a barrier and departing"),
    ("lanes/floor", "leases: who may have any"),
    ("lanes/arbiter", "leases: what is free"),
    ("sharedtask/gate", "the shared record: who may act on it"),
    ("sharedtask/store", "the shared record: what its store allows"),
    ("space/gate", "cells: who may act on them"),
    ("space/cells", "cells: what the space allows"),
];

/// Every check there is, by the crate that makes it. A new list each time: keep it where it is asked for often.
#[must_use]
pub fn checks() -> Vec<SiteInfo> {
    let mut all: Vec<SiteInfo> = PUBLIC.iter().copied().flatten().copied().collect();
    for rung in Comm::new().floor() {
        all.extend_from_slice(rung.sites());
    }
    if let Some(topology) = any_topology() {
        all.extend_from_slice(Enforced::new(topology).sites());
    }
    all
}

/// A topology, to ask its rung for the checks that are those of every one.
fn any_topology() -> Option<Topology> {
    let id = |name| Id::new(name).ok();
    Topology::over(id("any")?, &[(id("a")?, id("b")?)]).ok()
}

/// What is known of a check. One of many instances is named with the instance, as in `policy/deny#3`.
#[must_use]
pub fn check(name: &str) -> Option<SiteInfo> {
    let name = name.split('#').next().unwrap_or(name);
    checks().into_iter().find(|site| site.check == name)
}

/// What a name stands for that was given where another kind of name belongs: the kind, and the member of `expect` for it.
pub(crate) fn other_kind(name: &str) -> Option<(&'static str, &'static str)> {
    const VERDICTS: [&str; 4] = ["allow", "deny", "quarantine", "empty"];
    if Reason::ALL.iter().any(|reason| reason.name() == name) || MERGED_AS.contains(&name) {
        Some(("reason", "reason"))
    } else if check(name).is_some() {
        Some(("check", "at"))
    } else if RUNGS.iter().any(|(rung, _)| *rung == name) {
        Some(("rung", "rung"))
    } else if VERDICTS.contains(&name) {
        Some(("verdict", "verdict"))
    } else {
        None
    }
}

/// Whether an act of this shape answers a member.
pub(crate) fn answers(expect: &[(&'static str, Kind)], member: &str) -> bool {
    expect.iter().any(|(name, _)| *name == member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_every_layer_are_known() {
        for name in [
            "a2achan/private",
            "comm/absent",
            "comm/alive",
            "agenttopo/no-edge",
            "policy/deny#3",
            "barrier/twice",
            "space/key",
        ] {
            assert!(check(name).is_some(), "{name}");
        }
        assert_eq!(check("a2achan/nowhere"), None);
        let mut names: Vec<_> = checks().iter().map(|site| site.check).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a check twice");
    }

    #[test]
    fn a_name_is_of_one_kind() {
        assert_eq!(other_kind("MISROUTE"), Some(("reason", "reason")));
        assert_eq!(other_kind("STALE_BASE"), Some(("reason", "reason")));
        assert_eq!(other_kind("a2achan/private"), Some(("check", "at")));
        assert_eq!(other_kind("a2achan/gate"), Some(("rung", "rung")));
        assert_eq!(other_kind("deny"), Some(("verdict", "verdict")));
        assert_eq!(other_kind("zebra"), None);
    }
}
