//! Messages that are received under a guard, wherever they were, and time (§4.4).

use super::channels::{Key, Lease, Msg, Origin, put_back};
use super::{Model, Who};

impl Model {
    /// §4.12: whether somebody has as many guards as it may have.
    pub(super) fn is_laden(&self, who: Who) -> bool {
        let held = self.guards.iter().filter(|(holder, _, open)| *holder == who && *open).count();
        held >= self.setup.leases as usize
    }

    /// A guard of so many microseconds over a message; it keeps its slot where it was.
    pub(super) fn guard(&mut self, who: Who, origin: Origin, msg: &Msg, time: u64) {
        self.guards.push((who, origin.clone(), true));
        let token = self.guards.len() - 1;
        let lease = Lease { token, holder: who, until: self.now + time, msg: msg.clone() };
        match origin {
            Origin::Mailbox(key) => {
                self.boxes.get_mut(&key).into_iter().for_each(|mailbox| mailbox.leased.push(lease.clone()));
            }
            Origin::Sub(at) => {
                self.subs.get_mut(at).into_iter().for_each(|sub| sub.leased.push(lease.clone()));
            }
            Origin::Answer(at) => {
                self.asked.get_mut(at).into_iter().for_each(|asked| asked.leased = Some(lease.clone()));
            }
        }
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
                self.asked.get_mut(at).into_iter().for_each(|asked| asked.returns = msg.returns);
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

    /// The same for copies of a publication.
    fn give_back_copies(&mut self, at: usize, over: impl Fn(&Lease) -> bool) {
        let limit = self.setup.redeliveries;
        let Some(sub) = self.subs.get_mut(at) else { return };
        let (back, kept): (Vec<_>, _) = std::mem::take(&mut sub.leased).into_iter().partition(over);
        sub.leased = kept;
        let mut worn = Vec::new();
        for Lease { mut msg, .. } in back {
            msg.returns += 1;
            if msg.returns > limit {
                worn.push(msg);
            } else {
                put_back(&mut sub.queue, msg);
            }
        }
        self.bury(worn, "redelivered");
    }

    /// The same for an answer.
    fn give_back_answer(&mut self, at: usize, over: impl Fn(&Lease) -> bool) {
        let limit = self.setup.redeliveries;
        let Some(asked) = self.asked.get_mut(at) else { return };
        let Some(Lease { mut msg, .. }) = asked.leased.take_if(|lease| over(lease)) else { return };
        msg.returns += 1;
        if msg.returns > limit {
            asked.taken = true;
            self.bury([msg], "redelivered");
        } else {
            asked.answer = Some(msg);
        }
    }

    /// Time passes: what is due goes back (§4.4).
    pub(crate) fn pass_time(&mut self, micros: u64) {
        self.now += micros;
        let keys: Vec<_> = self.boxes.keys().cloned().collect();
        let now = self.now;
        let is_due = |lease: &Lease| now >= lease.until;
        keys.iter().for_each(|key| self.give_back(key, "redelivered", is_due));
        (0..self.subs.len()).for_each(|at| self.give_back_copies(at, is_due));
        (0..self.asked.len()).for_each(|at| self.give_back_answer(at, is_due));
    }

    /// A guard is acknowledged; false if the message went back before.
    pub(crate) fn ack(&mut self, token: usize) -> bool {
        let Some((_, origin, open)) = self.guards.get_mut(token) else { return false };
        *open = false;
        let is_it = |lease: &Lease| lease.token == token;
        let is_held = match origin.clone() {
            Origin::Mailbox(key) => self.boxes.get_mut(&key).is_some_and(|mailbox| {
                let held = mailbox.leased.extract_if(.., |lease| is_it(lease)).count();
                mailbox.received += held as u64;
                held > 0
            }),
            Origin::Sub(at) => self
                .subs
                .get_mut(at)
                .is_some_and(|sub| sub.leased.extract_if(.., |lease| is_it(lease)).count() > 0),
            Origin::Answer(at) => self.asked.get_mut(at).is_some_and(|asked| {
                let is_held = asked.leased.take_if(|lease| is_it(lease)).is_some();
                asked.taken |= is_held;
                is_held
            }),
        };
        self.books.received += u64::from(is_held);
        is_held
    }

    /// A guard is dropped.
    pub(crate) fn drop_guard(&mut self, token: usize) {
        let Some((_, origin, open)) = self.guards.get_mut(token) else { return };
        *open = false;
        let is_it = |lease: &Lease| lease.token == token;
        match origin.clone() {
            Origin::Mailbox(key) => self.give_back(&key, "redelivered", is_it),
            Origin::Sub(at) => self.give_back_copies(at, is_it),
            Origin::Answer(at) => self.give_back_answer(at, is_it),
        }
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
