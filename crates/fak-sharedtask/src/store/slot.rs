//! What stands under one record's lock: the task, the patches held beside it, and who waits for its events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use fak_abi::{Principal, Timestamp};

use super::done::Done;
use crate::envelope::{HeldPatch, HeldState, Patch};
use crate::task::Task;

/// One record of a store.
pub(super) struct Slot {
    pub(super) task: Task,
    pub(super) held: HashMap<Box<str>, Held>,
    /// Decisions that are over, oldest first.
    decided: VecDeque<Box<str>>,
    wakers: Vec<(u64, Waker)>,
    next_waker: u64,
}

/// A patch beside the record (§5.7).
pub(super) struct Held {
    /// While it waits.
    pub(super) patch: Option<Arc<Patch>>,
    pub(super) actor: Arc<Principal>,
    pub(super) at: Timestamp,
    pub(super) state: HeldState,
    /// Once it is over.
    pub(super) outcome: Option<Done>,
}

impl Held {
    /// As an envelope, while it waits.
    pub(super) fn envelope(&self, decision: &str) -> Option<HeldPatch> {
        Some(HeldPatch {
            decision_id: decision.into(),
            state: self.state,
            held_at: self.at.to_string().into(),
            patch: Patch::clone(self.patch.as_ref()?),
            rest: Vec::new(),
        })
    }

    /// Whether it still waits for a human.
    pub(super) fn waits(&self) -> bool {
        self.state == HeldState::InputRequired
    }
}

impl Slot {
    pub(super) fn new(task: Task) -> Self {
        Self { task, held: HashMap::new(), decided: VecDeque::new(), wakers: Vec::new(), next_waker: 0 }
    }

    /// A held patch is over: its outcome answers from now on, for as long as `bound` others do not push it out.
    pub(super) fn decide(&mut self, decision: &str, state: HeldState, outcome: Done, bound: usize) {
        if let Some(held) = self.held.get_mut(decision) {
            held.state = state;
            held.patch = None;
            held.outcome = Some(outcome);
            self.decided.push_back(decision.into());
        }
        while self.decided.len() > bound {
            if let Some(oldest) = self.decided.pop_front() {
                self.held.remove(&oldest);
            }
        }
    }

    /// Asks to be woken at the next event. The number takes it back.
    pub(super) fn wait(&mut self, waker: &Waker) -> u64 {
        self.next_waker += 1;
        self.wakers.push((self.next_waker, waker.clone()));
        self.next_waker
    }

    /// Takes a wish to be woken back; to be dropped without the lock, for the last waker of a task may
    /// drop the task.
    pub(super) fn forget(&mut self, number: u64) -> Option<Waker> {
        let at = self.wakers.iter().position(|(at, _)| *at == number)?;
        Some(self.wakers.remove(at).1)
    }

    /// Everybody who waits; to be woken without the lock.
    pub(super) fn waiting(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers).into_iter().map(|(_, waker)| waker).collect()
    }
}
