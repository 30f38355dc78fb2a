//! Windows that hand themselves over to their continuation, once (§4.8).

use fak_abi::Reason;

use super::channels::{Got, Key};
use super::host::Act;
use super::{Body, Model, Who};

/// A continuation that was minted.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) id: String,
    pub(crate) minter: Who,
    /// Resumed, or its minter is gone.
    pub(crate) over: bool,
}

impl Model {
    pub(crate) fn window_key(id: &str) -> Key {
        Key { locale: "window", id: id.to_owned() }
    }

    /// Who minted a window that is still to be resumed.
    pub(super) fn minter(&self, key: &Key) -> Option<Who> {
        let minted = |window: &&Window| key.locale == "window" && !window.over && window.id == key.id;
        self.windows.iter().find(minted).map(|window| window.minter)
    }

    /// §4.8: the private hand-off, sent to a name that nobody else knows. `id`: what it is called, where it is allowed.
    pub(crate) fn compact(
        &mut self,
        who: Who,
        summary: &Body,
        tasks: &[Body],
        id: &str,
    ) -> Result<(), Reason> {
        let key = Self::window_key(id);
        self.windows.push(Window { id: id.to_owned(), minter: who, over: false });
        let bad = tasks.iter().any(|task| !self.flows(task, who));
        let handed = if bad {
            self.admit(Act::Compact, who, Some(&key), Some(summary)).and(Err(Reason::TrustViolation))
        } else {
            self.place(Act::Compact, who, &key, summary, None, None)
        };
        if handed.is_err() {
            self.windows.pop();
            self.purge_all(&key, "closed");
            self.forget_box(&key);
        } else if let Some(msg) = self.boxes.get_mut(&key).and_then(|mailbox| mailbox.queue.last_mut()) {
            msg.parts = tasks.iter().map(|task| task.text.clone()).collect();
        }
        handed
    }

    /// §4.8: once, and only by its own principal.
    pub(crate) fn resume(&mut self, who: Who, at: usize) -> Got {
        let Some(window) = self.windows.get(at).cloned() else { return Got::Empty };
        let key = Self::window_key(&window.id);
        let refused = match self.minter(&key) {
            None => Some(Reason::Misroute),
            Some(minter) if minter != who => Some(Reason::TrustViolation),
            Some(_) => None,
        };
        if let Some(reason) = refused {
            return Got::Refused(self.admit(Act::Resume, who, Some(&key), None).err().unwrap_or(reason));
        }
        let got = self.attempt(Act::Resume, who, &key, None);
        if matches!(got, Got::Message(_) | Got::Held(_)) {
            if let Some(window) = self.windows.get_mut(at) {
                window.over = true;
            }
            self.purge_all(&key, "closed");
            self.forget_box(&key);
        }
        got
    }
}
