//! Messages that are received under a guard, and time (§4.4).

use super::channels::{Key, Lease};
use super::{Model, Who};

impl Model {
    /// §4.12: whether somebody has as many guards as it may have.
    pub(super) fn is_laden(&self, who: Who) -> bool {
        let held = self.guards.iter().filter(|(holder, _, open)| *holder == who && *open).count();
        held >= self.setup.leases as usize
    }

    /// Leases that `over` names go back to their places, or die once they went back too often.
    pub(super) fn give_back(&mut self, key: &Key, cause: &'static str, over: impl Fn(&Lease) -> bool) {
        let limit = self.setup.redeliveries;
        let Some(mailbox) = self.boxes.get_mut(key) else { return };
        let (back, kept): (Vec<_>, _) = std::mem::take(&mut mailbox.leased).into_iter().partition(over);
        mailbox.leased = kept;
        let only = mailbox.binder.or(mailbox.reserved);
        let (mut worn, mut bound) = (Vec::new(), Vec::new());
        for Lease { mut msg, holder, .. } in back {
            msg.returns += 1;
            if let Some(at) = msg.request {
                self.unnote_receiver(at, holder);
            }
            if msg.returns > limit {
                worn.push(msg);
            } else if only.is_some_and(|only| !self.would_flow(&msg.body, only)) {
                bound.push(msg);
            } else if let Some(mailbox) = self.boxes.get_mut(key) {
                mailbox.put_back(msg);
            }
        }
        self.bury(worn, cause);
        self.bury(bound, "bound");
    }

    /// Time passes: what is due goes back (§4.4).
    pub(crate) fn pass_time(&mut self, micros: u64) {
        self.now += micros;
        let keys: Vec<_> = self.boxes.keys().cloned().collect();
        let now = self.now;
        for key in keys {
            self.give_back(&key, "redelivered", |lease| now >= lease.until);
        }
    }

    /// A guard is acknowledged; false if the message went back before.
    pub(crate) fn ack(&mut self, token: usize) -> bool {
        let Some((_, key, open)) = self.guards.get_mut(token) else { return false };
        *open = false;
        let key = key.clone();
        let Some(mailbox) = self.boxes.get_mut(&key) else { return false };
        let Some(at) = mailbox.leased.iter().position(|lease| lease.token == token) else { return false };
        mailbox.leased.remove(at);
        mailbox.received += 1;
        self.books.received += 1;
        true
    }

    /// A guard is dropped.
    pub(crate) fn drop_guard(&mut self, token: usize) {
        let Some((_, key, open)) = self.guards.get_mut(token) else { return };
        *open = false;
        let key = key.clone();
        self.give_back(&key, "redelivered", |lease| lease.token == token);
    }

    /// What has had its time dies before the host is told anything.
    pub(crate) fn sweep(&mut self) {
        let keys: Vec<_> = self.boxes.keys().cloned().collect();
        let now = self.now;
        for key in keys {
            self.purge(&key, "expired", |_, msg| msg.expires.is_some_and(|at| now >= at));
        }
    }
}
