//! What the outcomes of a merge mean (§5.4), for people: they stand where a reason of the kernel would, and are none.

use fak_sharedtask::MergeReason::{self, *};

/// A merge's reason, what it means and what to do about it.
pub(crate) struct Outcome {
    pub(crate) reason: MergeReason,
    pub(crate) means: &'static str,
    pub(crate) next: &'static str,
}

const fn outcome(reason: MergeReason, means: &'static str, next: &'static str) -> Outcome {
    Outcome { reason, means, next }
}

/// Every reason a merge may end with.
const OUTCOMES: &[Outcome] = &[
    outcome(
        StaleBase,
        "what it replaces has changed since its base_rev, or the task never had that revision",
        "compare base, current and proposed value, and propose again on the current revision",
    ),
    outcome(MissingDecision, "there is no decision of that id", "check the id, or append the decision first"),
    outcome(DuplicateNote, "a note of that id is there", "give the note an id of its own"),
    outcome(DuplicateArtifact, "an artifact of that id is there", "give the artifact an id of its own"),
    outcome(DuplicateDecision, "a decision of that id is there", "give the decision an id of its own"),
    outcome(ArtifactQuarantined, "the artifact is quarantined", "have the artifact cleared first"),
    outcome(
        ArtifactWitnessMissing,
        "the artifact claims what nobody has confirmed, or lacks a deletion certificate",
        "bring a confirmed witness or the certificate, or claim less",
    ),
    outcome(BodyQuarantined, "the body is quarantined", "have the body cleared first"),
    outcome(
        BodyWitnessMissing,
        "the body claims what nobody has confirmed, or lacks a deletion certificate",
        "bring a confirmed witness or the certificate, or claim less",
    ),
    outcome(
        ScopeWidenForbidden,
        "its scope, or that of something it brings, is wider than it may be",
        "narrow the scope: no wider than the store allows, the patch states and its actor has",
    ),
    outcome(
        UnsupportedPatch,
        "the task is not there, or an op is none that a merge does",
        "check the task's id, that base_rev names a revision and a note's author is the actor; append to /notes, \
         /artifacts or /open_decisions, replace /title, /state, /body_ref or /open_decisions/<id>/state, nothing else",
    ),
    outcome(ApprovalRequired, "the store's policy holds it for a human", "have a human approve the decision"),
];

/// The outcome of that name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Outcome> {
    OUTCOMES.iter().find(|outcome| outcome.reason.name().eq_ignore_ascii_case(name))
}

/// Their names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    OUTCOMES.iter().map(|outcome| outcome.reason.name())
}
