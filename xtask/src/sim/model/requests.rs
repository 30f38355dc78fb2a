//! Requests and their answers (§4.7).

use fak_abi::Reason;

use super::channels::{Asked, Got, Key, Msg, Origin, Own};
use super::host::Act;
use super::{Body, Model, Who};

impl Model {
    /// §4.7: a request is a send with a private inbox for its answer.
    pub(crate) fn request(
        &mut self,
        who: Who,
        key: &Key,
        body: &Body,
        deadline: Option<u64>,
        blocking: bool,
    ) -> Result<usize, Reason> {
        let awaited = if blocking { Some(self.receiver_of(key)) } else { None };
        // Folded first, so that what a rung refuses is refused by that rung.
        if let Some(Some(to)) = awaited
            && self.closes_ring(who, to)
        {
            return Err(self
                .admit(Act::Request, who, Some(key), Some(body))
                .err()
                .unwrap_or(Reason::LeaseHeld));
        }
        self.place(Act::Request, who, key, body, deadline, None)?;
        let at = self.asked.len();
        let (key, answer) = (key.clone(), None);
        if let Some(msg) = self.boxes.get_mut(&key).and_then(|mailbox| mailbox.queue.last_mut()) {
            msg.request = Some(at);
        }
        self.asked.push(Asked {
            who,
            key,
            deadline,
            answered: false,
            returns: 0,
            answer,
            leased: None,
            taken: false,
            end: None,
            blocking: awaited,
            only: awaited.flatten(),
        });
        Ok(at)
    }

    /// §4.7: the answer of whoever received a request, and has it still.
    pub(crate) fn reply(
        &mut self,
        who: Who,
        (receiver, at, returns): (Who, usize, u32),
        body: &Body,
    ) -> Result<(), Reason> {
        let Some(asked) = self.asked.get(at).cloned() else { return Err(Reason::Misroute) };
        let sent = self.admit_reply(who, asked.who, &asked.key, body)?.unwrap_or_else(|| body.clone());
        if receiver != who || !self.would_flow(&sent, asked.who) {
            return Err(Reason::TrustViolation);
        }
        if asked.answered || asked.returns != returns {
            return Err(Reason::Misroute);
        }
        if !self.has_credit(Act::Send) {
            return Err(Reason::RateLimited);
        }
        self.count(Act::Send);
        self.placed += 1;
        self.books.sent += 1;
        let order = self.placed;
        let msg = Msg { order, from: who, body: sent, ..Msg::default() };
        let late = asked.end.is_some() || asked.deadline.is_some_and(|at| self.now >= at);
        if let Some(asked) = self.asked.get_mut(at) {
            asked.answered = true;
            asked.blocking = None;
            if !late {
                asked.answer = Some(msg.clone());
            }
        }
        if late {
            self.bury([msg], "late");
        }
        Ok(())
    }

    /// §4.7: a look for the answer; with `lease`, under a guard of so many microseconds.
    pub(crate) fn take_answer(&mut self, at: usize, lease: Option<u64>) -> Got {
        let Some(asked) = self.asked.get(at).cloned() else { return Got::Empty };
        let act = if lease.is_some() { Act::RecvLeased } else { Act::Await };
        if let Err(reason) = self.admit(act, asked.who, Some(&asked.key), None) {
            return Got::Refused(reason);
        }
        let Some(msg) = asked.answer else {
            if let Some(end) = asked.end {
                return Got::End(end);
            }
            if asked.taken {
                return Got::Refused(Reason::Misroute);
            }
            if asked.deadline.is_some_and(|at| self.now >= at) {
                if let Some(asked) = self.asked.get_mut(at) {
                    (asked.end, asked.blocking) = (Some("timeout"), None);
                }
                return Got::End("timeout");
            }
            return self.nothing();
        };
        if lease.is_some() && self.is_laden(asked.who) {
            return Got::Refused(Reason::RateLimited);
        }
        let held = self.holds_back(&msg.body.text);
        if !held && !self.has_credit(Act::Recv) {
            return Got::Refused(Reason::RateLimited);
        }
        if let Some(asked) = self.asked.get_mut(at) {
            (asked.answer, asked.taken) = (None, held || lease.is_none());
        }
        if held {
            self.books.held += 1;
            return Got::Held(msg);
        }
        self.count(Act::Recv);
        match lease {
            Some(time) => self.guard(asked.who, Origin::Answer(at), &msg, time),
            None => self.books.received += 1,
        }
        Got::Message(msg)
    }

    /// Who alone can receive at a key, if anybody (§4.7).
    fn receiver_of(&self, key: &Key) -> Option<Who> {
        match self.owner_of(key) {
            Own::Session(who) | Own::Reserved(who) => Some(who),
            _ => self.boxes.get(key).and_then(|mailbox| mailbox.binder),
        }
    }

    /// §4.7: whether `from`, waiting for `to`, would close a ring of those who wait.
    fn closes_ring(&self, from: Who, to: Who) -> bool {
        let (mut reached, mut before) = (vec![to], 0);
        while reached.len() > before {
            before = reached.len();
            for asked in &self.asked {
                let is_over = asked.deadline.is_some_and(|at| self.now >= at) || !self.is_live(asked.who);
                if let Some(Some(next)) = asked.blocking
                    && !is_over
                    && reached.contains(&asked.who)
                    && !reached.contains(&next)
                {
                    reached.push(next);
                }
            }
        }
        reached.contains(&from)
    }

    /// §4.7: whether a request's being received by somebody would close a ring.
    pub(super) fn would_ring(&self, at: usize, receiver: Who) -> bool {
        let Some(asked) = self.asked.get(at) else { return false };
        let is_over = asked.deadline.is_some_and(|at| self.now >= at) || !self.is_live(asked.who);
        match asked.blocking {
            None => false,
            Some(known) => known != Some(receiver) && !is_over && self.closes_ring(asked.who, receiver),
        }
    }

    /// A request was received: from here on its requester waits for that receiver.
    pub(super) fn note_receiver(&mut self, at: usize, receiver: Who) {
        if let Some(asked) = self.asked.get_mut(at)
            && let Some(awaited) = &mut asked.blocking
        {
            *awaited = Some(receiver);
        }
    }

    /// A leased request is not with its holder any more: whoever alone can have it is waited for.
    pub(super) fn unnote_receiver(&mut self, at: usize, holder: Who) {
        if let Some(asked) = self.asked.get_mut(at)
            && asked.blocking == Some(Some(holder))
        {
            asked.blocking = Some(asked.only);
        }
    }

    /// Nobody waits for an answer any more.
    pub(crate) fn drop_asked(&mut self, at: usize, end: &'static str, cause: &'static str) {
        let Some(asked) = self.asked.get_mut(at) else { return };
        asked.end.get_or_insert(end);
        asked.blocking = None;
        let leased = asked.leased.take().map(|lease| lease.msg);
        let late = asked.answer.take().or(leased);
        self.bury(late, cause);
    }
}
