//! Publishing and subscriptions (§4.5).

use fak_abi::Reason;

use super::channels::{Got, Key, Msg, Origin, Own, Receipt, Sub, Wait};
use super::host::Act;
use super::{Body, Model, Who};

impl Model {
    /// §4.5: one copy to each subscriber.
    pub(crate) fn publish(&mut self, who: Who, key: &Key, body: &Body) -> Result<Receipt, Reason> {
        let sent = self.admit(Act::Publish, who, Some(key), Some(body))?.unwrap_or_else(|| body.clone());
        if self.closed || (self.setup.declared && !self.is_known(key)) {
            return Err(Reason::Misroute);
        }
        if matches!(self.owner_of(key), Own::OneActOnly(_)) {
            return Err(Reason::TrustViolation);
        }
        let bytes = sent.text.len() as u64;
        if self.topics.contains_key(key) && !self.has_bytes(who, bytes) {
            return Err(Reason::RateLimited);
        }
        if !self.has_credit(Act::Publish) {
            return Err(Reason::RateLimited);
        }
        self.count(Act::Publish);
        Ok(self.spread(who, key, sent, |_, _| true))
    }

    /// §4.12: whether somebody may have so many bytes more queued; what has had its time does not count.
    pub(super) fn has_bytes(&mut self, who: Who, bytes: u64) -> bool {
        let fits = |model: &Self| model.queued_of(who) + bytes <= model.setup.queued_bytes;
        if fits(self) {
            return true;
        }
        self.sweep();
        fits(self)
    }

    /// The copies of an act that was allowed, to those whom `wanted` names besides.
    pub(super) fn spread(
        &mut self,
        who: Who,
        key: &Key,
        sent: Body,
        wanted: impl Fn(&Self, Who) -> bool,
    ) -> Receipt {
        let mut receipt = Receipt::default();
        let Some(list) = self.topics.get(key).cloned() else { return receipt };
        self.placed += 1;
        let msg = Msg { order: self.placed, from: who, body: sent, ..Msg::default() };
        for at in list {
            let to = self.subs.get(at).map(|sub| sub.who);
            let flows = to.is_some_and(|to| {
                self.would_flow(&msg.body, to) && wanted(self, to) && self.has_way(who, to, false)
            });
            let Some(sub) = self.subs.get_mut(at) else { continue };
            if !flows {
                receipt.skipped += 1;
            } else if sub.all().count() < self.setup.capacity {
                receipt.fanout += 1;
                sub.queue.push(msg.clone());
            } else {
                receipt.dropped += 1;
                sub.missed += 1;
            }
        }
        self.books.sent += receipt.fanout + receipt.dropped;
        self.books.dropped += receipt.dropped;
        self.books.skipped += receipt.skipped;
        receipt
    }

    pub(crate) fn subscribe(&mut self, who: Who, key: &Key) -> Result<usize, Reason> {
        self.admit(Act::Subscribe, who, Some(key), None)?;
        if self.closed {
            return Err(Reason::Misroute);
        }
        let own = self.subs.iter().filter(|sub| sub.open && sub.who == who).count();
        if own >= self.setup.subscriptions as usize || !self.has_credit(Act::Subscribe) {
            return Err(Reason::RateLimited);
        }
        // Declared, a topic outlives its subscriptions: it counts as a mailbox (§4.12).
        if self.setup.declared && !self.topics.contains_key(key) {
            self.may_make(who)?;
            if let Some(agent) = self.agents.get_mut(who) {
                agent.made += 1;
            }
        }
        self.count(Act::Subscribe);
        self.known.insert(key.clone());
        let at = self.subs.len();
        let (queue, leased) = (Vec::new(), Vec::new());
        self.subs.push(Sub { who, key: key.clone(), queue, leased, missed: 0, open: true, end: "" });
        self.topics.entry(key.clone()).or_default().push(at);
        Ok(at)
    }

    /// A subscription is over; what it had queued is dead.
    pub(crate) fn end_sub(&mut self, at: usize, cause: &'static str) {
        let Some(sub) = self.subs.get_mut(at).filter(|sub| sub.open) else { return };
        (sub.open, sub.end) = (false, cause);
        let (key, mut dead) = (sub.key.clone(), std::mem::take(&mut sub.queue));
        dead.extend(std::mem::take(&mut sub.leased).into_iter().map(|lease| lease.msg));
        self.bury(dead, cause);
        if let Some(list) = self.topics.get_mut(&key) {
            list.retain(|other| *other != at);
            if list.is_empty() && !self.setup.declared {
                self.topics.remove(&key);
            }
        }
    }

    pub(crate) fn unsubscribe(&mut self, at: usize) -> Result<(), Reason> {
        let Some((who, key)) = self.subs.get(at).map(|sub| (sub.who, sub.key.clone())) else { return Ok(()) };
        self.admit(Act::Unsubscribe, who, Some(&key), None)?;
        if !self.subs.get(at).is_some_and(|sub| sub.open) || self.closed {
            return Err(Reason::Misroute);
        }
        if !self.has_credit(Act::Unsubscribe) {
            return Err(Reason::RateLimited);
        }
        self.count(Act::Unsubscribe);
        self.end_sub(at, "unsubscribed");
        Ok(())
    }

    /// One look into a subscription's inbox, with what was missed before the copy. With `lease`, it keeps its slot under
    /// a guard of so many microseconds.
    pub(crate) fn pull(&mut self, at: usize, waits: bool, lease: Option<u64>) -> (Got, u64) {
        let Some((who, key)) = self.subs.get(at).map(|sub| (sub.who, sub.key.clone())) else {
            return (Got::Empty, 0);
        };
        let act = if lease.is_some() { Act::RecvLeased } else { Act::Recv };
        if let Err(reason) = self.admit(act, who, Some(&key), None) {
            return (Got::Refused(reason), 0);
        }
        if let Some(end) = self.subs.get(at).filter(|sub| !sub.open).map(|sub| sub.end) {
            return (if waits { Got::End(end) } else { Got::Refused(Reason::Misroute) }, 0);
        }
        let Some(sub) = self.subs.get_mut(at) else { return (Got::Empty, 0) };
        if sub.queue.is_empty() {
            return (if waits { Got::Waits } else { self.nothing() }, 0);
        }
        let msg = sub.queue.remove(0);
        let missed = std::mem::take(&mut sub.missed);
        let is_laden = lease.is_some() && self.is_laden(who);
        if !is_laden && self.holds_back(&msg.body.text) {
            self.books.held += 1;
            // Nobody was told yet.
            if let Some(sub) = self.subs.get_mut(at) {
                sub.missed += missed;
            }
            return (Got::Held(msg), 0);
        }
        if is_laden || !self.has_credit(Act::Recv) {
            if let Some(sub) = self.subs.get_mut(at) {
                sub.queue.insert(0, msg);
                sub.missed += missed;
            }
            return (Got::Refused(Reason::RateLimited), 0);
        }
        self.count(Act::Recv);
        match lease {
            Some(time) => self.guard(who, Origin::Sub(at), &msg, time),
            None => self.books.received += 1,
        }
        (Got::Message(msg), missed)
    }

    /// One poll of a receive that waits at a subscription.
    pub(crate) fn poll_sub(&mut self, wait: &mut Wait, others_waiting: usize) -> (Got, u64) {
        if let Some(end) = self.end_of(wait) {
            return (Got::End(end), 0);
        }
        if let Err(reason) = self.audit_says() {
            return (Got::Refused(reason), 0);
        }
        if self.is_over(wait) {
            return (Got::Refused(Reason::Misroute), 0);
        }
        let Some(at) = wait.sub else { return (Got::Waits, 0) };
        let (got, missed) = self.pull(at, true, wait.lease);
        if matches!(got, Got::Waits) && wait.begun.is_none() {
            if others_waiting >= self.setup.waits as usize {
                return (Got::Refused(Reason::RateLimited), 0);
            }
            wait.begun = Some((0, 0));
        }
        (got, missed)
    }
}
