//! Watches: a snapshot and every event after it that the watcher may see, nothing missed and nothing twice (§5.9).
//!
//! A watch is a place in the record's own history, not a queue beside it: it costs nothing while nothing happens, and
//! cannot lose what it has not read. One that falls too far behind is told, and resumes at the head.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use fak_abi::{Act, Address, AgentHandle, Outcome, Reason, Refusal, ShareScope, ToolCall};
use parking_lot::Mutex;

use super::admit::{allow, charge, refuse, refuse_cleared};
use super::driver::{DETACHED, STORE, UNKNOWN_TASK, WATCH_BOUND};
use super::slot::Slot;
use super::view::TaskView;
use super::{Core, TaskStore};
use crate::envelope::{Envelope as _, TaskEvent, TaskId};
use crate::sight::Sight;

/// What a watch hands over (§5.9).
#[derive(Debug, Clone)]
pub enum Watched {
    /// An event the watcher may see.
    Event {
        /// The event.
        event: Arc<TaskEvent>,
        /// The number of the revision it made.
        revision: usize,
    },
    /// The watch fell behind by more than its store allows. It goes on after `revision`; the events before it can be read
    /// with [`TaskStore::events`].
    Lagged {
        /// How many events it may see were passed over.
        missed: usize,
        /// The number of the revision it resumes from.
        revision: usize,
    },
}

/// A watch on one record (§5.9). Dropping it ends it.
pub struct TaskWatch {
    core: Arc<Core>,
    agent: AgentHandle,
    slot: Arc<Mutex<Slot>>,
    task: TaskId,
    sight: Sight,
    /// The number of the last revision handed over or passed over.
    at: usize,
    /// The wish to be woken, while it waits.
    waiting: Option<u64>,
}

impl TaskStore {
    /// A snapshot and a watch that begins exactly behind it: an act (`sharedtask.watch`).
    pub fn watch(&self, agent: &AgentHandle, task: &TaskId) -> Outcome<(TaskView, TaskWatch)> {
        let core = &self.core;
        self.act(agent, Act::TaskWatch, Address::Task(task.id()), None, |acting, permit| {
            let Some(slot) = core.slot(task) else { return refuse(permit, Reason::Misroute, UNKNOWN_TASK) };
            let sight = Sight::of(&core.config.domain, agent.principal());
            let view = TaskView::of(&slot.lock().task, &sight);
            let permit = match acting.screen(permit, view.taint(), || view.to_record().to_json()) {
                Ok(permit) => permit,
                Err(verdict) => return Outcome::Refuse(verdict),
            };
            let cleared = match charge(permit) {
                Ok(cleared) => cleared,
                Err(verdict) => return Outcome::Refuse(verdict),
            };
            let who = agent.principal().id();
            if !core.take(who, |taken| &mut taken.watches, core.config.bounds.watches) {
                return refuse_cleared(cleared, Reason::RateLimited, WATCH_BOUND);
            }
            let watch = TaskWatch {
                core: Arc::clone(core),
                agent: agent.clone(),
                slot,
                task: task.clone(),
                sight,
                at: view.revision,
                waiting: None,
            };
            allow(cleared, core.next_seq(), (view, watch))
        })
    }
}

impl TaskWatch {
    /// The record it watches.
    #[must_use]
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// The next event that the watcher may see, if there is one. Once the watcher is detached: DEFAULT_DENY. What a result
    /// admitter stops is answered `quarantine`, and passed over.
    pub fn try_next(&mut self) -> Outcome<Option<Watched>> {
        self.step(None)
    }

    /// Waits for the next event that the watcher may see.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the event is handed over by the next call.
    pub async fn next(&mut self) -> Outcome<Watched> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`TaskWatch::next`], for hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<Watched>> {
        match self.step(Some(cx)) {
            Outcome::Allow { value: Some(value), by } => Poll::Ready(Outcome::Allow { value, by }),
            Outcome::Allow { value: None, .. } => Poll::Pending,
            Outcome::Refuse(verdict) => Poll::Ready(Outcome::Refuse(verdict)),
        }
    }

    /// Takes the next event, or leaves a waker where the next one will find it, under one lock.
    fn step(&mut self, cx: Option<&mut Context<'_>>) -> Outcome<Option<Watched>> {
        if !self.agent.principal().is_attached() {
            return Outcome::deny(Refusal::new(Reason::DefaultDeny, DETACHED.site()), STORE);
        }
        let _stale;
        let found = {
            let mut slot = self.slot.lock();
            _stale = self.waiting.take().and_then(|number| slot.forget(number));
            let found = advance(&slot, &self.sight, &mut self.at, self.core.config.bounds.lag);
            if found.is_none()
                && let Some(cx) = cx
            {
                self.waiting = Some(slot.wait(cx.waker()));
            }
            found
        };
        // Detached while the waker was being left: whoever detaches wakes those who had left theirs by then.
        if found.is_none() && !self.agent.principal().is_attached() {
            return Outcome::deny(Refusal::new(Reason::DefaultDeny, DETACHED.site()), STORE);
        }
        match found {
            Some(Watched::Event { event, revision }) => {
                self.screened(&event).map(|()| Some(Watched::Event { event, revision }))
            }
            other => Outcome::Allow { value: other, by: STORE },
        }
    }

    /// Folds the result admitters over an event before it is handed over (§4.4).
    fn screened(&self, event: &TaskEvent) -> Outcome<()> {
        let pass = Outcome::Allow { value: (), by: STORE };
        let Some(host) = self.core.host() else { return pass };
        let call = ToolCall::new(&self.agent, Act::TaskWatch).address(Address::Task(self.task.id()));
        if !host.screens(call.tool()) {
            return pass;
        }
        let taint = event.taint;
        let body = host.issue(self.agent.principal(), event.to_json().into(), taint, ShareScope::Agent);
        match body.map(|body| host.screen(&call, &body)) {
            Some(verdict) if verdict.is_allow() => pass,
            Some(verdict) => Outcome::Refuse(verdict),
            None => Outcome::Refuse(fak_abi::Verdict::Quarantine { by: STORE }),
        }
    }
}

/// The next event after `at` that `sight` may see; `at` moves past it and past what it may not see.
fn advance(slot: &Slot, sight: &Sight, at: &mut usize, lag: usize) -> Option<Watched> {
    let head = slot.task.number();
    let unseen = slot.task.later.get(*at..).unwrap_or_default();
    let visible = |event: &TaskEvent| sight.sees(event.taint, event.scope, &event.actor);
    if head.saturating_sub(*at) > lag {
        let missed = unseen.iter().filter_map(|r| r.event.as_ref()).filter(|event| visible(event)).count();
        *at = head;
        return (missed > 0).then_some(Watched::Lagged { missed, revision: head });
    }
    for revision in unseen {
        *at += 1;
        if let Some(event) = revision.event.as_ref().filter(|event| visible(event)) {
            return Some(Watched::Event { event: Arc::clone(event), revision: *at });
        }
    }
    None
}

impl Drop for TaskWatch {
    fn drop(&mut self) {
        if let Some(number) = self.waiting.take() {
            let left = self.slot.lock().forget(number);
            drop(left);
        }
        self.core.give_back(self.agent.principal().id(), |taken| &mut taken.watches);
    }
}

impl std::fmt::Debug for TaskWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskWatch")
            .field("task", &self.task)
            .field("revision", &self.at)
            .finish_non_exhaustive()
    }
}
