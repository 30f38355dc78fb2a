//! Senders that wait for room (§4.3, row 10).

use fak_abi::Reason;

use super::channels::{Got, Key, Wait, What};
use super::waves::Barrier;
use super::{Body, Model, Who};

impl Model {
    /// Whether a send of somebody would find a free slot within its share.
    pub(crate) fn has_room(&self, who: Who, key: &Key) -> bool {
        let Some(mailbox) = self.boxes.get(key) else { return true };
        let capacity = self.setup.capacity;
        let share = if capacity >= 64 { capacity * 3 / 4 } else { capacity };
        let promised = mailbox.promised.iter().filter(|(_, to, _)| *to == who).count();
        let own = mailbox.all().filter(|msg| msg.from == who).count() + promised;
        mailbox.taken() < capacity && own < share
    }

    /// One poll of a send that waits for room: only attempts with a chance are folded.
    pub(crate) fn poll_room(&mut self, wait: &mut Wait, body: &Body, others_waiting: usize) -> Got {
        let (who, key) = (wait.who, wait.key.clone());
        loop {
            if wait.begun.is_none() {
                let verdict = self.send(who, &key, body, None, None);
                let by_audit = self.audit_says().is_err();
                if by_audit || verdict != Err(Reason::RateLimited) || self.has_room(who, &key) {
                    return Got::Sent(verdict);
                }
            }
            self.sweep();
            wait.begun = self.boxes.get(&key).map(|mailbox| (mailbox.serial, 0));
            if self.is_live(who) && wait.begun.is_some() && !self.has_room(who, &key) {
                if wait.deadline.is_some_and(|at| self.now >= at) {
                    return Got::Sent(Err(Reason::RateLimited));
                }
                // §4.12: it is a wait like any other.
                if others_waiting >= self.setup.waits as usize {
                    return Got::Sent(Err(Reason::RateLimited));
                }
                return Got::Waits;
            }
            wait.begun = None;
        }
    }

    /// One poll of what waits for something else than a message.
    pub(crate) fn poll_other(&mut self, wait: &mut Wait, others_waiting: usize) -> Got {
        match wait.what {
            What::Message => Got::Waits,
            What::Room(at) => {
                let Some(body) = self.bodies.get(at).cloned() else { return Got::Waits };
                self.poll_room(wait, &body, others_waiting)
            }
            What::Barrier(_) | What::Watch(_) if !self.is_live(wait.who) => Got::Refused(Reason::DefaultDeny),
            What::Barrier(at) => {
                let is_over = wait.deadline.is_some_and(|at| self.now >= at);
                if is_over || self.barriers.get(at).is_none_or(Barrier::is_complete) {
                    return Got::Stands;
                }
                wait.begun = Some((0, 0));
                Got::Waits
            }
            What::Watch(at) => {
                let Some(watch) = self.task_watches.get(at).cloned() else { return Got::Waits };
                let (next, to) = self.next_event(&watch);
                if next.is_some() {
                    return Got::Watched;
                }
                // What it may not see is passed over.
                if let Some(watch) = self.task_watches.get_mut(at) {
                    watch.at = to;
                }
                wait.begun = Some((0, 0));
                Got::Waits
            }
        }
    }
}
