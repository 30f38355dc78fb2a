//! Requests and their answers (§4.7).

use fak_abi::Reason;

use super::channels::{Asked, Got, Key, Msg};
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
    ) -> Result<usize, Reason> {
        self.place(Act::Request, who, key, body, deadline, None)?;
        let at = self.asked.len();
        let (key, answer) = (key.clone(), None);
        if let Some(msg) = self.boxes.get_mut(&key).and_then(|mailbox| mailbox.queue.last_mut()) {
            msg.request = Some(at);
        }
        self.asked.push(Asked { who, key, deadline, answered: false, answer, taken: false, end: None });
        Ok(at)
    }

    /// §4.7: the answer of whoever received a request.
    pub(crate) fn reply(&mut self, who: Who, receiver: Who, at: usize, body: &Body) -> Result<(), Reason> {
        let Some(asked) = self.asked.get(at).cloned() else { return Err(Reason::Misroute) };
        let sent = self.admit_reply(who, asked.who, &asked.key, body)?.unwrap_or_else(|| body.clone());
        if receiver != who || !self.would_flow(&sent, asked.who) {
            return Err(Reason::TrustViolation);
        }
        if asked.answered {
            return Err(Reason::Misroute);
        }
        if !self.has_credit(Act::Send) {
            return Err(Reason::RateLimited);
        }
        self.count(Act::Send);
        self.placed += 1;
        self.books.sent += 1;
        let order = self.placed;
        let msg = Msg { order, from: who, body: sent, expires: None, returns: 0, request: None };
        let late = asked.end.is_some() || asked.deadline.is_some_and(|at| self.now >= at);
        if let Some(asked) = self.asked.get_mut(at) {
            asked.answered = true;
            if !late {
                asked.answer = Some(msg.clone());
            }
        }
        if late {
            self.bury([msg], "late");
        }
        Ok(())
    }

    /// §4.7: a look for the answer.
    pub(crate) fn take_answer(&mut self, at: usize) -> Got {
        let Some(asked) = self.asked.get(at).cloned() else { return Got::Empty };
        if let Err(reason) = self.admit(Act::Await, asked.who, Some(&asked.key), None) {
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
                    asked.end = Some("timeout");
                }
                return Got::End("timeout");
            }
            return self.nothing();
        };
        let held = self.holds_back(&msg.body.text);
        if !held && !self.has_credit(Act::Recv) {
            return Got::Refused(Reason::RateLimited);
        }
        if let Some(asked) = self.asked.get_mut(at) {
            (asked.answer, asked.taken) = (None, true);
        }
        if held {
            self.books.held += 1;
            return Got::Held(msg);
        }
        self.count(Act::Recv);
        self.books.received += 1;
        Got::Message(msg)
    }

    /// Nobody waits for an answer any more.
    pub(crate) fn drop_asked(&mut self, at: usize, end: &'static str, cause: &'static str) {
        let Some(asked) = self.asked.get_mut(at) else { return };
        asked.end.get_or_insert(end);
        let late = asked.answer.take();
        self.bury(late, cause);
    }
}
