//! Sends that are made once however often they are tried (§4.13): what was admitted under a key
//! is remembered per principal id; a repetition returns the first outcome.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use fak_abi::{Act, Digest, Id, OwnedAddress, Ref, ShareScope, ToolCall};
use parking_lot::Mutex;

use crate::endpoint::Endpoint;

/// What makes two acts the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Print {
    act: Act,
    address: OwnedAddress,
    scope: ShareScope,
    digest: Digest,
}

impl Print {
    pub(crate) fn of(act: Act, call: &ToolCall<'_>, body: &Ref) -> Self {
        Self { act, address: call.target().to_owned(), scope: body.scope(), digest: body.digest() }
    }
}

/// What is remembered under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recall {
    /// Nothing.
    Fresh,
    /// This very act, under this number.
    Same(u64),
    /// Another act.
    Other,
}

/// The keys that one principal id used last.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    acts: HashMap<Id, (Print, u64)>,
    order: VecDeque<Id>,
}

impl Memory {
    fn recall(&self, key: &Id, print: &Print) -> Recall {
        match self.acts.get(key) {
            None => Recall::Fresh,
            Some((known, seq)) if known == print => Recall::Same(*seq),
            Some(_) => Recall::Other,
        }
    }

    fn remember(&mut self, key: &Id, print: &Print, seq: u64, limit: usize) {
        while self.order.len() >= limit.max(1) {
            if let Some(oldest) = self.order.pop_front() {
                self.acts.remove(&oldest);
            }
        }
        self.order.push_back(key.clone());
        self.acts.insert(key.clone(), (print.clone(), seq));
    }
}

impl Endpoint {
    fn memory(&self) -> Arc<Mutex<Memory>> {
        let memories = &self.core().memories;
        if let Some(memory) = memories.get(self.me().id()) {
            return Arc::clone(&memory);
        }
        // Outlives the principal, so that a retry after a restart is still recognised; bounded by
        // forgetting those who are gone once they outnumber those who are here.
        if memories.len() > 2 * self.core().accounts.len() + 1_024 {
            memories.retain(|id, _| self.core().accounts.contains_key(id));
        }
        Arc::clone(&memories.entry(self.me().id().clone()).or_default())
    }

    /// What is remembered under `key`.
    pub(crate) fn recall(&self, key: &Id, print: &Print) -> Recall {
        self.memory().lock().recall(key, print)
    }

    /// Places a message and remembers it, in one step; what is remembered already comes back.
    pub(crate) fn remember<W, E>(
        &self,
        key: &Id,
        print: &Print,
        place: impl FnOnce() -> Result<(u64, W), E>,
    ) -> Result<Result<(u64, W), E>, Recall> {
        let memory = self.memory();
        let mut memory = memory.lock();
        match memory.recall(key, print) {
            Recall::Fresh => {}
            known => return Err(known),
        }
        let placed = place();
        if let Ok((seq, _)) = &placed {
            let limit = usize::try_from(self.core().config.limits.remembered_keys).unwrap_or(usize::MAX);
            memory.remember(key, print, *seq, limit);
        }
        Ok(placed)
    }
}
