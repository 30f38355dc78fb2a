//! Handing a window over to its continuation (§4.8): compacting mints an unguessable name and
//! sends the private hand-off there; the resuming window of the same principal receives it, once.

use std::sync::Arc;

use fak_abi::{Act, Address, ChannelKey, Id, Locale, Outcome, Reason, Ref, Taint, ToolCall};

use crate::core::Core;
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::entry::Extra;
use crate::message::Cause;
use crate::recv::Incoming;
use crate::send::{Outgoing, refusal};
use crate::sites;

/// A name nobody can guess: 128 random bits in hexadecimal.
fn mint() -> Option<Id> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Id::new(&format!("window-{:032x}", u128::from_be_bytes(bits))).ok()
}

impl Endpoint {
    /// Hands this window over: mints a continuation and sends `summary` there, with the Refs of the
    /// tasks that are open (§4.8). Answers the continuation's name, which goes to nobody else.
    pub fn compact(&self, summary: &Ref, tasks: &[Ref]) -> Outcome<Id> {
        let minted = mint();
        let key = minted.clone().map(|id| ChannelKey::with_id(Locale::Window, id));
        let address = key.as_ref().map_or(Address::None, Address::Channel);
        let call = ToolCall::new(self.agent(), Act::Compact).args(summary).address(address);
        let refuse = |refusal| {
            Outcome::Refuse(match self.admit(&call) {
                Ok(permit) => self.refuse(permit, refusal),
                Err(verdict) => verdict,
            })
        };
        let (Some(account), Some(id), Some(key)) = (self.account(), minted, &key) else {
            return refuse(refusal(Reason::DefaultDeny, sites::RANDOM));
        };
        // From here on it is this principal's own key, so the hand-off may be private.
        self.core().windows.insert(id.clone(), Arc::clone(self.me()));
        if !account.windows.take(account.limits().windows) {
            let refused = refuse(refusal(Reason::RateLimited, sites::WINDOWS));
            self.core().windows.remove(&id);
            return refused;
        }
        let bad = tasks.iter().find_map(|task| {
            if task.taint() == Taint::Quarantined {
                Some(refusal(Reason::TrustViolation, sites::QUARANTINED))
            } else if !task.may_flow_to(self.me()) {
                Some(refusal(Reason::TrustViolation, sites::NOT_YOURS_TO_SEND))
            } else {
                None
            }
        });
        let verdict = match bad {
            Some(refusal) => match self.admit(&call) {
                Ok(permit) => self.refuse(permit, refusal),
                Err(verdict) => verdict,
            },
            None => {
                let extra = Extra { parts: tasks.to_vec(), ..Extra::default() }.boxed();
                let (act, body) = (Act::Compact, summary);
                self.dispatch(Outgoing { act, key, body, extra, idempotency: None, rider: None }, None).0
            }
        };
        if verdict.is_allow() {
            // A detach that came between the fold and here has ended what there was before it.
            if !self.me().is_attached() {
                self.core().windows.remove(&id);
                self.core().end_hand_off(&id, End::Detach);
            }
            return Outcome::Allow { value: id, by: verdict.by() };
        }
        self.core().end_window(self, &id);
        Outcome::Refuse(verdict)
    }

    /// Receives what was handed over to a window (§4.8): an act of `a2a.recv`, once. MISROUTE for a
    /// window that was never minted or was resumed, TRUST_VIOLATION for another principal's.
    pub fn resume(&self, window: &Id) -> Delivery {
        let key = ChannelKey::with_id(Locale::Window, window.clone());
        let incoming = Incoming { act: Act::Resume, ..Incoming::plain(&key) };
        let minter = self.core().windows.get(window).map(|minter| Arc::clone(&minter));
        let refused = match minter {
            None => Some(refusal(Reason::Misroute, sites::WINDOW_UNKNOWN)),
            Some(minter) if !Arc::ptr_eq(&minter, self.me()) => {
                Some(refusal(Reason::TrustViolation, sites::WINDOW_OTHER))
            }
            Some(_) => None,
        };
        if let Some(refusal) = refused {
            let call = incoming.call(self);
            return Delivery::Refuse(match self.admit(&call) {
                Ok(permit) => self.refuse(permit, refusal),
                Err(verdict) => verdict,
            });
        }
        let mailbox = self.core().find(&key);
        let (delivery, _) = self.take(mailbox.as_ref(), &incoming);
        // Once: received or held, the window is over.
        if matches!(delivery, Delivery::Message(_) | Delivery::Hold(_)) {
            self.core().end_window(self, window);
        }
        delivery
    }
}

impl Core {
    fn end_window(&self, endpoint: &Endpoint, window: &Id) {
        if self.windows.remove(window).is_none() {
            return;
        }
        if let Some(account) = endpoint.account() {
            account.windows.give();
        }
        self.end_hand_off(window, End::Close);
    }

    fn end_hand_off(&self, window: &Id, end: End) {
        let key = ChannelKey::with_id(Locale::Window, window.clone());
        if let Some(mailbox) = self.find(&key) {
            self.bury(mailbox.end(end), Cause::End(end));
            self.forget(&key, &mailbox);
        }
    }
}
