//! The acts that change a record: create, patch, approve, reject (§5.3–5.7).

use std::sync::Arc;
use std::task::Waker;

use fak_abi::{Act, Address, AgentHandle, Id, Outcome, Permit, Reason, Taint, Timestamp};

use super::admit::{Acting, allow, charge, refuse, refuse_cleared, repeat};
use super::done::{Done, End};
use super::driver::{
    ACTOR, AUTHORITY, DECISION, DETACHED, HELD_BOUND, HIDDEN_BODY, KEY, MALFORMED, OVERSIZE, RECORD_BOUND,
    UNKNOWN_TASK,
};
use super::replay::Recall;
use super::slot::{Held, Slot};
use super::{Core, TaskStore};
use crate::envelope::{
    Actor, Envelope as _, EventId, Hash, HeldPatch, HeldState, MergeVerdict, PATCH_ACCEPTED, Patch,
    PatchResult, Record, TaskEvent, TaskId,
};
use crate::error::SharedTaskError;
use crate::merge::{ActRefusal, Detail, Merged, PatchFault, Stop, Terms, is_actor, merge};
use crate::plan::{Plan, Step};
use crate::sight::Sight;
use crate::task::Prepared;

/// What a permitted patch, approval or rejection came to (§5.4).
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The merge's answer, redacted for whoever is told.
    pub result: PatchResult,
    /// The number of the revision in force after it.
    pub revision: usize,
    /// For what of the patch it was denied, if it was.
    pub fault: Option<PatchFault>,
}

/// How a merge under the lock ended.
enum Ended {
    Done(Box<Done>),
    Refuse(Reason, &'static fak_abi::SiteInfo),
}

impl TaskStore {
    /// Creates a record as an agent: an act (`sharedtask.create`). The agent must be its `updated_by` and the author of
    /// its notes; `rev` and `updated_at` are the store's.
    ///
    /// A verdict says whether the act was permitted; the value, whether such a record could be made.
    pub fn create_by(&self, agent: &AgentHandle, record: &Record) -> Outcome<Result<Hash, SharedTaskError>> {
        let core = &*self.core;
        let body = core.body(agent, record.to_json(), record.body_ref.scope);
        let address = Address::Task(record.task_id.id());
        self.act(agent, Act::TaskCreate, address, body.as_ref(), |acting, permit| {
            let principal = agent.principal();
            let record = match permit.transformed() {
                None => record.clone(),
                Some(body) => {
                    let bytes = acting.host.resolver().bytes(body).unwrap_or_default();
                    match Record::draft(&bytes, &core.config.rules.limits) {
                        Ok(changed) if changed.task_id == record.task_id => changed,
                        _ => return refuse(permit, Reason::Malformed, MALFORMED),
                    }
                }
            };
            if !is_actor(&record.updated_by, principal) {
                return refuse(permit, Reason::TrustViolation, ACTOR);
            }
            if acting.is_oversize() {
                return refuse(permit, Reason::Oversize, OVERSIZE);
            }
            let sight = Sight::of(&core.config.domain, principal);
            let confirmed: Vec<Hash> =
                claims(&record).filter(|hash| acting.confirms(hash)).cloned().collect();
            let cleared = match charge(permit) {
                Ok(cleared) => cleared,
                Err(verdict) => return Outcome::Refuse(verdict),
            };
            if !core.take(principal.id(), |taken| &mut taken.records, core.config.bounds.records) {
                return refuse_cleared(cleared, Reason::RateLimited, RECORD_BOUND);
            }
            let made = core.insert(record, &sight, &|hash| confirmed.contains(hash));
            if made.is_err() {
                core.give_back(principal.id(), |taken| &mut taken.records);
            }
            allow(cleared, core.next_seq(), made)
        })
    }

    /// Patches a record: an act (`sharedtask.patch`). With a key, a retry of the same patch is answered with the first
    /// outcome and not done again (§4.13).
    ///
    /// The verdict says whether the act was permitted; [`Patched::result`], what the merge made of it.
    pub fn patch(&self, agent: &AgentHandle, patch: &Patch, key: Option<&Id>) -> Outcome<Patched> {
        let core = &*self.core;
        let body = core.body(agent, patch.to_json(), patch.scope);
        self.act(agent, Act::TaskPatch, Address::Task(patch.task_id.id()), body.as_ref(), |acting, permit| {
            match permit.transformed() {
                None => core.patch(&acting, permit, patch, key),
                Some(body) => {
                    let bytes = acting.host.resolver().bytes(body).unwrap_or_default();
                    match Patch::parse(&bytes, &core.config.rules.limits) {
                        Ok(changed) if changed.task_id == patch.task_id => {
                            core.patch(&acting, permit, &changed, key)
                        }
                        _ => refuse(permit, Reason::Malformed, MALFORMED),
                    }
                }
            }
        })
    }

    /// As [`TaskStore::patch`], from a text.
    ///
    /// # Errors
    /// If the text is no patch; nothing was asked of the kernel then.
    pub fn patch_json(
        &self,
        agent: &AgentHandle,
        text: &[u8],
        key: Option<&Id>,
    ) -> Result<Outcome<Patched>, SharedTaskError> {
        let patch = Patch::parse(text, &self.core.config.rules.limits)?;
        Ok(self.patch(agent, &patch, key))
    }

    /// Approves a held patch: an act of a human (`sharedtask.approve`). Exactly the held bytes go through the whole merge,
    /// once (§5.7).
    pub fn approve(&self, agent: &AgentHandle, task: &TaskId, decision: &str) -> Outcome<Patched> {
        self.act(agent, Act::TaskApprove, Address::Task(task.id()), None, |acting, permit| {
            self.core.settle_held(&acting, permit, task, decision, true)
        })
    }

    /// Rejects a held patch: an act of a human (`sharedtask.reject`). It is spent.
    pub fn reject(&self, agent: &AgentHandle, task: &TaskId, decision: &str) -> Outcome<Patched> {
        self.act(agent, Act::TaskReject, Address::Task(task.id()), None, |acting, permit| {
            self.core.settle_held(&acting, permit, task, decision, false)
        })
    }
}

/// What witnesses are asked about a new record.
fn claims(record: &Record) -> impl Iterator<Item = &Hash> {
    let bodies =
        std::iter::once(&record.body_ref).chain(record.notes.items.iter().map(|note| &note.body_ref));
    let bodies = bodies.filter(|body| body.taint == Taint::Trusted).map(|body| &body.digest);
    let artifacts = record.artifacts.items.iter().filter(|artifact| artifact.taint == Taint::Trusted);
    bodies.chain(artifacts.map(|artifact| &artifact.reference))
}

impl Core {
    pub(super) fn next_seq(&self) -> u64 {
        self.link.get().map_or(0, |link| link.sequence().next())
    }

    fn patch(
        &self,
        acting: &Acting<'_>,
        permit: Permit<'_>,
        patch: &Patch,
        key: Option<&Id>,
    ) -> Outcome<Patched> {
        let principal = acting.call.principal();
        if !is_actor(&patch.actor, principal) {
            return refuse(permit, Reason::TrustViolation, ACTOR);
        }
        if acting.is_oversize() || patch.ops.items.len() > self.config.rules.limits.ops {
            return refuse(permit, Reason::Oversize, OVERSIZE);
        }
        let sight = Sight::of(&self.config.domain, principal);
        let plan = Plan::new(patch, &self.config.rules.limits, &|hash| acting.confirms(hash));
        let book = key.map(|key| (key, self.books.of(principal.id())));
        // Looked up once without counting, and once more under the lock that also remembers.
        if let Some((key, book)) = &book
            && matches!(book.lock().recall(key, &patch.task_id, plan.digest), Recall::Other)
        {
            return refuse(permit, Reason::Malformed, KEY);
        }
        let cleared = match charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        // The clock is foreign code: it is asked outside every lock.
        let now = self.now();
        let mut open = book.as_ref().map(|(key, book)| (*key, book.lock()));
        let mut first = None;
        if let Some((key, book)) = &open {
            match book.recall(key, &patch.task_id, plan.digest) {
                Recall::New => {}
                // What was held may have been decided meanwhile, and answers that (§5.7).
                Recall::Same(seq, done) if done.is_held() => first = Some(seq),
                Recall::Same(seq, done) => {
                    drop(open);
                    let patched = done.patched(&sight, patch);
                    return repeat(cleared, seq, patched);
                }
                Recall::Other => {
                    drop(open);
                    return refuse_cleared(cleared, Reason::Malformed, KEY);
                }
            }
        }
        let (ended, seq, waiting) = self.merge_locked(patch, &plan, &sight, principal, now);
        if let (Some((key, book)), Ended::Done(done)) = (&mut open, &ended) {
            let seq = first.unwrap_or(seq);
            book.remember((*key).clone(), patch.task_id.clone(), plan.digest, seq, Done::clone(done));
        }
        drop(open);
        let answered = match (ended, first) {
            (Ended::Refuse(reason, site), _) => refuse_cleared(cleared, reason, site),
            (Ended::Done(done), Some(first)) => repeat(cleared, first, done.patched(&sight, patch)),
            (Ended::Done(done), None) => allow(cleared, seq, done.patched(&sight, patch)),
        };
        waiting.iter().for_each(Waker::wake_by_ref);
        answered
    }

    /// Merges under the record's lock. Who waits for its events is to be woken once nothing is locked and the act has its
    /// entry: what is woken is foreign code.
    fn merge_locked(
        &self,
        patch: &Patch,
        plan: &Plan,
        sight: &Sight,
        principal: &Arc<fak_abi::Principal>,
        now: Timestamp,
    ) -> (Ended, u64, Vec<Waker>) {
        let Some(slot) = self.slot(&patch.task_id) else {
            let fault = PatchFault::new("/task_id", "expected a record that is there");
            let stop = Stop::unsupported(fault);
            return (Ended::Done(self.stopped(patch, None, 0, stop)), self.next_seq(), Vec::new());
        };
        let mut slot = slot.lock();
        let seq = self.next_seq();
        let decision = HeldPatch::decision_of(plan.digest);
        if let Some(outcome) = slot.held.get(&decision).and_then(|held| held.outcome.clone()) {
            return (Ended::Done(Box::new(outcome)), seq, Vec::new());
        }
        let terms = Terms { rules: &self.config.rules, sight, approved: false, now };
        let ended = match merge(&slot.task, patch, plan, &terms) {
            Merged::Refuse(refusal) => refused(refusal),
            Merged::Accept(prepared, taint) => Ended::Done(commit(&mut slot, patch, plan, prepared, taint)),
            Merged::Stop(stop) => {
                if matches!(stop.detail, Detail::Held { .. }) && !slot.held.contains_key(&decision) {
                    // Detaching visits every record after the principal is marked, under this lock: it either finds
                    // the patch, or is found here (§2.3).
                    if !principal.is_attached() {
                        return (Ended::Refuse(Reason::DefaultDeny, DETACHED), seq, Vec::new());
                    }
                    if !self.take(principal.id(), |taken| &mut taken.held, self.config.bounds.held) {
                        return (Ended::Refuse(Reason::RateLimited, HELD_BOUND), seq, Vec::new());
                    }
                    let held = Held {
                        patch: Some(Arc::new(patch.clone())),
                        actor: Arc::clone(principal),
                        at: terms.now,
                        state: HeldState::InputRequired,
                        outcome: None,
                    };
                    slot.held.insert(decision, held);
                }
                let current = slot.task.current().rev.clone();
                Ended::Done(self.stopped(patch, Some(current), slot.task.number(), stop))
            }
        };
        let news = matches!(&ended, Ended::Done(done) if matches!(done.end, End::Accepted { .. }));
        let waiting = leave(slot, news);
        (ended, seq, waiting)
    }

    fn stopped(&self, patch: &Patch, current: Option<Hash>, number: usize, stop: Stop) -> Box<Done> {
        Box::new(Done {
            task_id: patch.task_id.clone(),
            actor: patch.actor.clone(),
            base: patch.base_rev.clone(),
            current,
            number,
            end: End::Stopped(stop),
        })
    }

    /// Approves or rejects a held patch for a human who is not its actor and may see all of it.
    fn settle_held(
        &self,
        acting: &Acting<'_>,
        permit: Permit<'_>,
        task: &TaskId,
        decision: &str,
        approve: bool,
    ) -> Outcome<Patched> {
        let Some(slot) = self.slot(task) else { return refuse(permit, Reason::Misroute, UNKNOWN_TASK) };
        let approver = Sight::of(&self.config.domain, acting.call.principal());
        let found = {
            let slot = slot.lock();
            let held = slot.held.get(decision).filter(|held| held.waits());
            held.and_then(|held| Some((held.patch.clone()?, Arc::clone(&held.actor))))
        };
        let Some((patch, actor)) = found else { return refuse(permit, Reason::Misroute, DECISION) };
        // The witnesses are asked anew: what was so when it was held need not be so now.
        let plan = Plan::new(&patch, &self.config.rules.limits, &|hash| acting.confirms(hash));
        if *actor.id() == *acting.call.principal().id() || !sees_all(&approver, &patch, &plan) {
            return refuse(permit, Reason::TrustViolation, AUTHORITY);
        }
        let cleared = match charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return Outcome::Refuse(verdict),
        };
        let now = self.now();
        let mut open = slot.lock();
        let seq = self.next_seq();
        if !open.held.get(decision).is_some_and(Held::waits) {
            drop(open);
            return refuse_cleared(cleared, Reason::Misroute, DECISION);
        }
        let ended = if approve {
            let sight = Sight::of(&self.config.domain, &actor);
            let terms = Terms { rules: &self.config.rules, sight: &sight, approved: true, now };
            match merge(&open.task, &patch, &plan, &terms) {
                Merged::Refuse(refusal) => refused(refusal),
                Merged::Accept(prepared, taint) => {
                    Ended::Done(commit(&mut open, &patch, &plan, prepared, taint))
                }
                Merged::Stop(stop) => {
                    let current = open.task.current().rev.clone();
                    Ended::Done(self.stopped(&patch, Some(current), open.task.number(), stop))
                }
            }
        } else {
            let current = open.task.current().rev.clone();
            let stop = Stop::decided(decision.into(), HeldState::Rejected);
            Ended::Done(self.stopped(&patch, Some(current), open.task.number(), stop))
        };
        let done = match ended {
            Ended::Refuse(reason, site) => {
                drop(open);
                return refuse_cleared(cleared, reason, site);
            }
            Ended::Done(done) => done,
        };
        let state = if approve { HeldState::Approved } else { HeldState::Rejected };
        open.decide(decision, state, Done::clone(&done), self.config.bounds.decided);
        self.give_back(actor.id(), |taken| &mut taken.held);
        let waiting = leave(open, matches!(done.end, End::Accepted { .. }));
        let answered = allow(cleared, seq, done.patched(&approver, &patch));
        waiting.iter().for_each(Waker::wake_by_ref);
        answered
    }
}

/// Whether the whole patch may flow to a reader: its own scope, and that of every ref it brings (§5.7).
pub(super) fn sees_all(sight: &Sight, patch: &Patch, plan: &Plan) -> bool {
    let sees = |taint, scope| sight.sees(taint, scope, &patch.actor);
    sees(Taint::Tainted, patch.scope)
        && plan.steps.iter().all(|step| match step {
            Step::Artifact(artifact) => sees(artifact.taint, artifact.scope),
            step => step.body().is_none_or(|body| sees(body.taint, body.scope)),
        })
}

fn refused(refusal: ActRefusal) -> Ended {
    let (reason, site) = refusal_of(refusal);
    Ended::Refuse(reason, site)
}

/// How the store refuses what a merge may not say.
pub(super) fn refusal_of(refusal: ActRefusal) -> (Reason, &'static fak_abi::SiteInfo) {
    match refusal {
        ActRefusal::HiddenBody => (Reason::TrustViolation, HIDDEN_BODY),
        ActRefusal::Oversize => (Reason::Oversize, OVERSIZE),
    }
}

/// Makes a prepared change current and publishes its event, which is part of the act (§5.9).
fn commit(slot: &mut Slot, patch: &Patch, plan: &Plan, prepared: Box<Prepared>, taint: Taint) -> Box<Done> {
    let task = &slot.task;
    let next = prepared.rev().clone();
    let event = TaskEvent {
        event_id: EventId::of_revision(prepared.digest()),
        task_id: task.id.clone(),
        prev_event: task.current().event_digest.map(Hash::Full),
        event_kind: PATCH_ACCEPTED.into(),
        actor: patch.actor.clone(),
        base_rev: patch.base_rev.clone().unwrap_or_else(|| task.current().rev.clone()),
        next_rev: next.clone(),
        scope: patch.scope,
        durability: patch.durability,
        taint,
        patch_digest: Hash::Full(plan.digest),
        verdict: MergeVerdict::Accepted,
        reason: Box::default(),
        ts: prepared.updated_at().into(),
        rest: Vec::new(),
    };
    let id = event.event_id.as_str().into();
    slot.task.commit(*prepared, event);
    Box::new(Done {
        task_id: patch.task_id.clone(),
        actor: Actor::new(&patch.actor.kind, &patch.actor.id),
        base: patch.base_rev.clone(),
        current: Some(next),
        number: slot.task.number(),
        end: End::Accepted { event_id: id },
    })
}

/// Unlocks a record; whom its news wake.
fn leave(mut slot: parking_lot::MutexGuard<'_, Slot>, news: bool) -> Vec<Waker> {
    let waiting = if news { slot.waiting() } else { Vec::new() };
    parking_lot::MutexGuard::unlock_fair(slot);
    waiting
}

#[cfg(test)]
mod tests {
    use shuttle::sync::{Arc as Shared, Mutex as Checked};

    use super::*;
    use crate::envelope::{Limits, MergeReason};
    use crate::rules::Rules;
    use crate::task::Task;

    fn slot() -> Slot {
        let record = r#"{"schema": "fak.shared-task.v1", "task_id": "task_t", "state": "working", "title": "t",
            "body_ref": {"kind": "cas", "digest": "sha256:b", "bytes": 1, "taint": "tainted", "scope": "fleet",
            "durability": "session"}, "artifacts": [], "notes": [], "open_decisions": [{"decision_id": "dec_a",
            "state": "open", "reason": ""}], "updated_by": {"kind": "agent", "id": "a"}, "updated_at": ""}"#;
        Slot::new(Task::new(Record::draft(record.as_bytes(), &Limits::default()).unwrap()))
    }

    /// I04 under a concurrency checker: in every interleaving exactly one of the claims on one base wins.
    #[test]
    fn i04_one_claim_wins_in_every_interleaving() {
        shuttle::check_random(|| assert_eq!(race(0..4), 1), 500);
    }

    /// I05 and I06 under a concurrency checker: an append beside claims is never lost, and never blocked by one.
    #[test]
    fn i05_an_append_survives_every_interleaving() {
        shuttle::check_random(
            || {
                // A claim wins unless the append came first and made its base stale.
                let won = race(1..5);
                assert!((1..=2).contains(&won), "{won}");
            },
            500,
        );
    }

    /// Runs the writers at once; how many were accepted. Writer 4 appends, the others claim.
    fn race(writers: std::ops::Range<usize>) -> usize {
        let appends = writers.contains(&4);
        let slot = Shared::new(Checked::new(slot()));
        let base = slot.lock().unwrap().task.current().rev.clone();
        let threads: Vec<_> = writers
            .map(|i| {
                let (slot, base) = (Shared::clone(&slot), base.clone());
                shuttle::thread::spawn(move || act(&slot, &base, i))
            })
            .collect();
        let won = threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum();
        let open = slot.lock().unwrap();
        assert_eq!((open.task.number(), open.task.decisions.len()), (won, 1 + usize::from(appends)));
        assert_eq!(open.task.record().computed_rev(), open.task.current().rev);
        won
    }

    /// One act as the store performs it: merge and commit under one lock.
    fn act(slot: &Checked<Slot>, base: &Hash, i: usize) -> bool {
        let op = if i == 4 {
            r#"{"op": "append", "path": "/open_decisions", "value": {"decision_id": "dec_b", "state": "s", "reason": ""}}"#
                .to_owned()
        } else {
            format!(r#"{{"op": "replace", "path": "/open_decisions/dec_a/state", "value": "mine {i}"}}"#)
        };
        let text = format!(
            r#"{{"schema": "fak.shared-patch.v1", "task_id": "task_t", "base_rev": "{base}", "actor": {{"kind": "agent",
            "id": "a"}}, "scope": "public", "durability": "session", "ops": [{op}], "message": ""}}"#
        );
        let patch = Patch::parse(text.as_bytes(), &Limits::default()).unwrap();
        let rules = Rules { max_scope: fak_abi::ShareScope::Public, ..Rules::default() };
        let plan = Plan::new(&patch, &rules.limits, &|_| false);
        let sight = Sight::host();
        shuttle::thread::yield_now();
        let mut slot = slot.lock().unwrap();
        let terms = Terms { rules: &rules, sight: &sight, approved: false, now: Timestamp::default() };
        match merge(&slot.task, &patch, &plan, &terms) {
            Merged::Accept(prepared, taint) => {
                commit(&mut slot, &patch, &plan, prepared, taint);
                true
            }
            Merged::Stop(stop) => {
                assert_eq!(stop.reason, MergeReason::StaleBase);
                false
            }
            Merged::Refuse(refusal) => panic!("{refusal:?}"),
        }
    }
}
