//! The merge: what becomes of a patch, as a pure function of record, patch and rules (§5.3–5.6).

mod apply;
mod fault;
mod outcome;

use std::sync::Arc;

use fak_abi::{ShareScope, Taint, Timestamp};

use crate::envelope::{Actor, Hash, MergeReason, Patch};
use crate::plan::{Plan, Step};
use crate::rules::Rules;
use crate::sight::Sight;
use crate::task::{Prepared, Task};
pub use fault::PatchFault;
pub(crate) use outcome::{Detail, Shown, Stop, unknown_rev};

/// What a merge needs to know besides record and patch.
pub(crate) struct Terms<'a> {
    pub(crate) rules: &'a Rules,
    /// What the patch's actor may see and bring.
    pub(crate) sight: &'a Sight,
    /// Whether a human has approved exactly this patch.
    pub(crate) approved: bool,
    pub(crate) now: Timestamp,
}

/// How a merge ends.
pub(crate) enum Merged {
    /// Nothing is visible yet; committing makes it so. With the taint its event carries.
    Accept(Box<Prepared>, Taint),
    /// It is no change: conflict, quarantine, denial, or a human is needed.
    Stop(Stop),
    /// The act is refused, which no result may say (§5.4).
    Refuse(ActRefusal),
}

/// Why the kernel's verdict, not the result, says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActRefusal {
    /// It replaces a body that its actor may not see: TRUST_VIOLATION.
    HiddenBody,
    /// The record, a list or its time would pass its limit: OVERSIZE.
    Oversize,
}

/// Everything that is settled before the record is looked at: form, scope, refs, approval (§5.5).
fn check(patch: &Patch, plan: &Plan, terms: &Terms<'_>) -> Result<(), Stop> {
    if plan.steps.is_empty() {
        return Err(Stop::unsupported(PatchFault::new("/ops", "expected at least one op")));
    }
    if patch.base_rev.is_none() {
        return Err(Stop::unsupported(PatchFault::new(
            "/base_rev",
            "expected the revision that the patch is based on",
        )));
    }
    scope(patch, plan, terms)?;
    for (index, step) in plan.steps.iter().enumerate() {
        refs(index, step, plan)?;
    }
    Ok(())
}

/// Scope: within the store's limit, within the patch, and the actor's to bring.
fn scope(patch: &Patch, plan: &Plan, terms: &Terms<'_>) -> Result<(), Stop> {
    let forbid =
        |scope, at: String, expected: String| Err(Stop::widens(scope, PatchFault::new(at, expected)));
    let not_held = |scope: ShareScope| {
        format!("expected a {scope} that record and actor are both of, and there is none")
    };
    let max = terms.rules.max_scope;
    if patch.scope > max {
        return forbid(
            patch.scope,
            "/scope".into(),
            format!("expected {max} or narrower, the store's limit"),
        );
    }
    if !terms.sight.holds(patch.scope) {
        return forbid(patch.scope, "/scope".into(), not_held(patch.scope));
    }
    for (index, step) in plan.steps.iter().enumerate() {
        let (brought, member) = match step {
            Step::Artifact(artifact) => (artifact.scope, "/value/scope"),
            Step::Note(note) => (note.body_ref.scope, "/value/body_ref/scope"),
            Step::Body(body) => (body.scope, "/value/scope"),
            // Title, state and decisions are seen by everyone the store admits.
            step if step.is_public() && patch.scope == ShareScope::Agent => {
                let expected =
                    format!("expected fleet or wider: everybody sees what \"/ops/{index}\" changes");
                return forbid(ShareScope::Fleet, "/scope".into(), expected);
            }
            _ => continue,
        };
        let at = || format!("/ops/{index}{member}");
        if brought > patch.scope {
            return forbid(brought, at(), format!("expected {} or narrower, the patch's scope", patch.scope));
        }
        if !terms.sight.holds(brought) {
            return forbid(brought, at(), not_held(brought));
        }
    }
    Ok(())
}

/// Refs: not quarantined, certified where they live elsewhere, and vouched for where they claim to be trusted (§5.6).
fn refs(index: usize, step: &Step, plan: &Plan) -> Result<(), Stop> {
    let (kind, id, certified) = match step {
        Step::Artifact(artifact) => ("artifact", &artifact.artifact_id, artifact.is_certified()),
        Step::Note(note) => ("note", &note.note_id, note.body_ref.is_certified()),
        Step::Body(body) => ("body", &Box::from("body_ref"), body.is_certified()),
        _ => return Ok(()),
    };
    let (quarantined, unwitnessed) = if kind == "artifact" {
        (MergeReason::ArtifactQuarantined, MergeReason::ArtifactWitnessMissing)
    } else {
        (MergeReason::BodyQuarantined, MergeReason::BodyWitnessMissing)
    };
    match step.taint() {
        Some(Taint::Quarantined) => Err(Stop::quarantined(quarantined, kind, id)),
        Some(Taint::Trusted) if !plan.is_confirmed(index) => Err(Stop::quarantined(unwitnessed, kind, id)),
        _ if !certified => Err(Stop::quarantined(unwitnessed, kind, id)),
        _ => Ok(()),
    }
}

/// Merges a patch into a task. Reads only; accepted, the task is advanced by committing what is prepared.
pub(crate) fn merge(task: &Task, patch: &Patch, plan: &Plan, terms: &Terms<'_>) -> Merged {
    if let Err(stop) = check(patch, plan, terms) {
        return Merged::Stop(stop);
    }
    if !terms.approved && terms.rules.needs_approval(patch) {
        return Merged::Stop(Stop::held(plan.digest));
    }
    match apply::apply(task, patch, plan, terms) {
        Err(apply::Halt::Stop(stop)) => Merged::Stop(stop),
        Err(apply::Halt::Refuse(refusal)) => Merged::Refuse(refusal),
        Ok(change) => {
            if !task.fits(&change, &terms.rules.limits) {
                return Merged::Refuse(ActRefusal::Oversize);
            }
            let Some(prepared) = task.prepare(change, Arc::new(patch.actor.clone()), terms.now) else {
                return Merged::Refuse(ActRefusal::Oversize);
            };
            if prepared.bytes() > terms.rules.limits.envelope {
                return Merged::Refuse(ActRefusal::Oversize);
            }
            let taint =
                plan.steps.iter().filter_map(Step::taint).fold(prepared.body().body.taint, Taint::join);
            Merged::Accept(Box::new(prepared), taint)
        }
    }
}

/// What creating a record refuses: what a patch that brought the same would (§5.5). The host's own creates are exempt
/// from scopes, witnesses and authorship.
pub(crate) fn check_new(
    record: &crate::envelope::Record,
    rules: &Rules,
    sight: &Sight,
    confirmed: &dyn Fn(&Hash) -> bool,
) -> Result<(), (String, MergeReason)> {
    let at = |path: String, reason| Err((path, reason));
    if record.state.is_empty() {
        return at("/state".to_owned(), MergeReason::UnsupportedPatch);
    }
    let host = sight.reader().is_none();
    let body = &record.body_ref;
    let bodies = std::iter::once(("/body_ref".to_owned(), body)).chain(
        record.notes.items.iter().enumerate().map(|(i, n)| (format!("/notes/{i}/body_ref"), &n.body_ref)),
    );
    for (path, body) in bodies {
        if !host && (body.scope > rules.max_scope || !sight.holds(body.scope)) {
            return at(path, MergeReason::ScopeWidenForbidden);
        }
        if body.taint == Taint::Quarantined && !host {
            return at(path, MergeReason::BodyQuarantined);
        }
        if !body.is_certified() || (!host && body.taint == Taint::Trusted && !confirmed(&body.digest)) {
            return at(path, MergeReason::BodyWitnessMissing);
        }
    }
    for (i, artifact) in record.artifacts.items.iter().enumerate() {
        let path = format!("/artifacts/{i}");
        if !host && (artifact.scope > rules.max_scope || !sight.holds(artifact.scope)) {
            return at(path, MergeReason::ScopeWidenForbidden);
        }
        if artifact.taint == Taint::Quarantined && !host {
            return at(path, MergeReason::ArtifactQuarantined);
        }
        if !artifact.is_certified()
            || (!host && artifact.taint == Taint::Trusted && !confirmed(&artifact.reference))
        {
            return at(path, MergeReason::ArtifactWitnessMissing);
        }
    }
    if let Some(author) = sight.reader()
        && let Some(i) = record.notes.items.iter().position(|note| !note.author.is(author))
    {
        return at(format!("/notes/{i}/author"), MergeReason::UnsupportedPatch);
    }
    if let Some(i) = record.open_decisions.items.iter().position(|decision| decision.state.is_empty()) {
        return at(format!("/open_decisions/{i}/state"), MergeReason::UnsupportedPatch);
    }
    for (list, member, ids) in ids(record) {
        if let Some(i) = ids.iter().position(|id| fak_abi::Id::new(id).is_err()) {
            return at(format!("/{list}/{i}/{member}"), MergeReason::UnsupportedPatch);
        }
    }
    unique(record)
}

/// The ids of each list, with the names of the list and of the member.
fn ids(record: &crate::envelope::Record) -> [(&'static str, &'static str, Vec<&str>); 3] {
    let notes = record.notes.items.iter().map(|note| &*note.note_id).collect();
    let artifacts = record.artifacts.items.iter().map(|artifact| &*artifact.artifact_id).collect();
    let decisions = record.open_decisions.items.iter().map(|decision| &*decision.decision_id).collect();
    [
        ("notes", "note_id", notes),
        ("artifacts", "artifact_id", artifacts),
        ("open_decisions", "decision_id", decisions),
    ]
}

/// Ids are unique within each list; the first repeated one is named.
fn unique(record: &crate::envelope::Record) -> Result<(), (String, MergeReason)> {
    let mut seen = std::collections::HashSet::new();
    let reasons =
        [MergeReason::DuplicateNote, MergeReason::DuplicateArtifact, MergeReason::DuplicateDecision];
    for ((list, _, ids), reason) in ids(record).into_iter().zip(reasons) {
        seen.clear();
        if let Some(i) = ids.iter().position(|id| !seen.insert(*id)) {
            return Err((format!("/{list}/{i}"), reason));
        }
    }
    Ok(())
}

/// Whether two actors are the same principal, by kind and id.
pub(crate) fn is_actor(actor: &Actor, principal: &fak_abi::Principal) -> bool {
    *actor.kind == *principal.kind().name() && *actor.id == **principal.id()
}
