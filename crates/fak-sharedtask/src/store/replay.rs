//! Idempotency keys: what each principal did under one, so that a retry is answered and not done again (§4.13).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use dashmap::DashMap;
use fak_abi::{Digest, Id};
use parking_lot::Mutex;

use super::done::Done;
use crate::envelope::TaskId;

/// How many keys of one principal are remembered.
const REMEMBERED: usize = 1024;

/// The books of all principals.
#[derive(Default)]
pub(super) struct Books(DashMap<Id, Arc<Mutex<Book>>>);

/// One principal's keys, the oldest forgotten first.
#[derive(Default)]
pub(super) struct Book {
    entries: HashMap<Id, Entry>,
    order: VecDeque<Id>,
}

struct Entry {
    task: TaskId,
    patch: Digest,
    seq: u64,
    done: Done,
}

/// What a book says about a key.
pub(super) enum Recall {
    /// Nothing: the act is new.
    New,
    /// The same act was done: its number and outcome.
    Same(u64, Box<Done>),
    /// Something else was done under it.
    Other,
}

impl Books {
    pub(super) fn of(&self, who: &Id) -> Arc<Mutex<Book>> {
        Arc::clone(self.0.entry(who.clone()).or_default().value())
    }
}

impl Book {
    pub(super) fn recall(&self, key: &Id, task: &TaskId, patch: Digest) -> Recall {
        match self.entries.get(key) {
            None => Recall::New,
            Some(entry) if entry.task == *task && entry.patch == patch => {
                Recall::Same(entry.seq, Box::new(entry.done.clone()))
            }
            Some(_) => Recall::Other,
        }
    }

    pub(super) fn remember(&mut self, key: Id, task: TaskId, patch: Digest, seq: u64, done: Done) {
        if self.entries.insert(key.clone(), Entry { task, patch, seq, done }).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }
}
