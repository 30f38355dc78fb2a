//! Receiving and waiting (§4.4).

use fak_abi::Reason;

use super::channels::{Got, Key, Msg, Origin, Wait};
use super::host::Act;
use super::{Model, Who};

impl Model {
    /// The oldest message that may flow to the receiver (§4.4); what has expired before it dies. Why those that are
    /// queued besides are not for it, if there are any.
    pub(super) fn oldest(&mut self, who: Who, key: &Key) -> (Option<Msg>, Option<Reason>) {
        let Some(mailbox) = self.boxes.get(key) else { return (None, None) };
        let mut expired = Vec::new();
        let (mut found, mut others) = (None, None);
        for msg in &mailbox.queue {
            if msg.expires.is_some_and(|at| self.now >= at) {
                expired.push(msg.order);
            } else if !self.would_flow(&msg.body, who) {
                others = others.or(Some(Reason::TrustViolation));
            } else if !self.is_linked(key, msg.from, who) {
                // §6.9: it keeps its place.
                others = Some(Reason::PolicyBlock);
            } else {
                found = Some(msg.order);
                break;
            }
        }
        let mut take = |orders: &[u64]| {
            let Some(mailbox) = self.boxes.get_mut(key) else { return Vec::new() };
            let (out, kept) =
                std::mem::take(&mut mailbox.queue).into_iter().partition(|msg| orders.contains(&msg.order));
            mailbox.queue = kept;
            out
        };
        let dead = take(&expired);
        let found = found.and_then(|order| take(&[order]).pop());
        self.bury(dead, "expired");
        (found, others)
    }

    /// What a receiver gets who may receive here; the message is gone from its mailbox unless it was refused. With
    /// `lease`, it keeps its slot under a guard of so many microseconds.
    pub(super) fn take(&mut self, who: Who, key: &Key, msg: Msg, lease: Option<u64>) -> Got {
        if lease.is_some() && self.is_laden(who) {
            if let Some(mailbox) = self.boxes.get_mut(key) {
                mailbox.put_back(msg);
            }
            return Got::Refused(Reason::RateLimited);
        }
        if self.holds_back(&msg.body.text) || msg.parts.iter().any(|part| self.holds_back(part)) {
            self.books.held += 1;
            return Got::Held(msg);
        }
        if msg.request.is_some_and(|at| self.would_ring(at, who)) {
            if let Some(mailbox) = self.boxes.get_mut(key) {
                mailbox.put_back(msg);
            }
            return Got::Refused(Reason::LeaseHeld);
        }
        if !self.has_credit(Act::Recv) {
            if let Some(mailbox) = self.boxes.get_mut(key) {
                mailbox.put_back(msg);
            }
            return Got::Refused(Reason::RateLimited);
        }
        self.count(Act::Recv);
        if let Some(at) = msg.request {
            self.note_receiver(at, who);
        }
        if let Some(lease) = lease {
            self.guard(who, Origin::Mailbox(key.clone()), &msg, lease);
        } else {
            self.books.received += 1;
            self.boxes.get_mut(key).into_iter().for_each(|mailbox| mailbox.received += 1);
        }
        Got::Message(msg)
    }

    /// An allowed attempt that finds nothing.
    pub(super) fn nothing(&mut self) -> Got {
        if !self.has_credit(Act::Recv) {
            return Got::Refused(Reason::RateLimited);
        }
        self.count(Act::Recv);
        Got::Empty
    }

    pub(crate) fn try_recv(&mut self, who: Who, key: &Key, lease: Option<u64>) -> Got {
        let act = if lease.is_some() { Act::RecvLeased } else { Act::Recv };
        self.attempt(act, who, key, lease)
    }

    /// One attempt, by one of the acts that receive.
    pub(super) fn attempt(&mut self, act: Act, who: Who, key: &Key, lease: Option<u64>) -> Got {
        if let Err(reason) = self.admit(act, who, Some(key), None) {
            return Got::Refused(reason);
        }
        if self.closed && !self.boxes.contains_key(key) {
            return Got::Refused(Reason::Misroute);
        }
        if self.only(key).is_some_and(|only| only != who) {
            return Got::Refused(Reason::TrustViolation);
        }
        if self.closed {
            return Got::Refused(Reason::Misroute);
        }
        match self.oldest(who, key) {
            (Some(msg), _) => self.take(who, key, msg, lease),
            (None, Some(reason)) => Got::Refused(reason),
            (None, None) => self.nothing(),
        }
    }

    /// One poll of a receive that waits at a mailbox.
    pub(crate) fn poll_wait(&mut self, wait: &mut Wait, others_waiting: usize) -> Got {
        let (who, key) = (wait.who, wait.key.clone());
        if let Some(end) = self.end_of(wait) {
            return Got::End(end);
        }
        if let Err(reason) = self.audit_says() {
            return Got::Refused(reason);
        }
        if self.is_over(wait) {
            return Got::Refused(Reason::Misroute);
        }
        let act = if wait.lease.is_some() { Act::RecvLeased } else { Act::Recv };
        if let Err(reason) = self.admit(act, who, Some(&key), None) {
            return Got::Refused(reason);
        }
        let Some((serial, epoch)) = wait.begun else {
            return self.first_poll(wait, others_waiting);
        };
        if wait.displaced {
            return Got::End("displaced");
        }
        if self.closed {
            return Got::End("closed");
        }
        if self.boxes.get(&key).is_none_or(|mailbox| mailbox.serial != serial) {
            // Its mailbox went for want of use: it waits on at the next.
            wait.begun = None;
            return self.first_poll(wait, others_waiting);
        }
        if self.boxes.get(&key).is_some_and(|mailbox| mailbox.epoch != epoch) {
            let mine = self.only(&key).is_none_or(|only| only == who);
            return Got::End(if mine { "unbound" } else { "displaced" });
        }
        if self.only(&key).is_some_and(|only| only != who) {
            // Bound while it was woken and had not come round.
            return Got::End("displaced");
        }
        match self.oldest(who, &key) {
            (Some(msg), _) => self.take(who, &key, msg, wait.lease),
            (None, _) => Got::Waits,
        }
    }

    /// §2.5: an act that begins when its time is over, or its switch was turned, is refused.
    pub(super) fn is_over(&self, wait: &Wait) -> bool {
        let over = wait.cancelled || wait.deadline.is_some_and(|at| self.now >= at);
        over && self.is_live(wait.who)
    }

    /// Ends that come before anything else.
    pub(super) fn end_of(&self, wait: &Wait) -> Option<&'static str> {
        wait.begun?;
        if !self.is_live(wait.who) {
            return Some("detached");
        }
        if wait.cancelled {
            return Some("cancelled");
        }
        wait.deadline.is_some_and(|at| self.now >= at).then_some("timeout")
    }

    pub(super) fn first_poll(&mut self, wait: &mut Wait, others_waiting: usize) -> Got {
        let (who, key) = (wait.who, wait.key.clone());
        if !self.boxes.contains_key(&key)
            && let Err(reason) = self.need_box(&key, who)
        {
            return Got::Refused(reason);
        }
        if self.only(&key).is_some_and(|only| only != who) {
            return Got::Refused(Reason::TrustViolation);
        }
        if self.closed {
            return Got::Refused(Reason::Misroute);
        }
        match self.oldest(who, &key) {
            (Some(msg), _) => self.take(who, &key, msg, wait.lease),
            (None, Some(reason)) => Got::Refused(reason),
            (None, None) if others_waiting >= self.setup.waits as usize => Got::Refused(Reason::RateLimited),
            (None, None) => {
                wait.begun = self.boxes.get(&key).map(|mailbox| (mailbox.serial, mailbox.epoch));
                Got::Waits
            }
        }
    }
}
