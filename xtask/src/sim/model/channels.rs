//! Mailboxes, topics and who waits where (§4.3 rows 8 to 10, §4.4 to §4.6, §4.10 to §4.13), as lists.

use fak_abi::Reason;

use super::host::Act;
use super::{Body, Model, Scope, Who};

/// A key: locale and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) locale: &'static str,
    pub(crate) id: String,
}

impl Key {
    pub(crate) fn text(&self) -> String {
        format!("{}:{}", self.locale, self.id)
    }
}

/// Whose key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Nobody,
    Session(Who),
    Reserved(Who),
    /// For one act alone; what else may be done there is its principal's (§4.6, §4.9).
    OneActOnly(Who),
}

/// A message that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Msg {
    pub(crate) order: u64,
    pub(crate) from: Who,
    pub(crate) body: Body,
    pub(crate) expires: Option<u64>,
    /// How often it was put back (§4.4).
    pub(crate) returns: u32,
    /// The request that it is (§4.7).
    pub(crate) request: Option<usize>,
}

/// A request and its private inbox (§4.7).
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) who: Who,
    pub(crate) key: Key,
    pub(crate) deadline: Option<u64>,
    /// The right to answer is used up.
    pub(crate) answered: bool,
    pub(crate) answer: Option<Msg>,
    pub(crate) taken: bool,
    pub(crate) end: Option<&'static str>,
}

/// A message that somebody received and has not acknowledged (§4.4).
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) token: usize,
    pub(crate) holder: Who,
    pub(crate) until: u64,
    pub(crate) msg: Msg,
}

/// A mailbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct Box {
    pub(crate) queue: Vec<Msg>,
    /// Received under a guard: they keep their slots.
    pub(crate) leased: Vec<Lease>,
    pub(crate) binder: Option<Who>,
    /// The number of the binding, among all there ever were.
    pub(crate) binding: u64,
    pub(crate) reserved: Option<Who>,
    /// Counts changes of who may receive here.
    pub(crate) epoch: u32,
    pub(crate) creator: Option<Who>,
    pub(crate) kept: bool,
    pub(crate) received: u64,
    /// Which of all mailboxes that ever were.
    pub(crate) serial: u64,
}

/// A message that could not be delivered.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) from: Who,
    pub(crate) order: u64,
    pub(crate) cause: &'static str,
}

/// A subscription.
#[derive(Debug, Clone)]
pub(crate) struct Sub {
    pub(crate) who: Who,
    pub(crate) key: Key,
    pub(crate) queue: Vec<Msg>,
    pub(crate) missed: u64,
    pub(crate) open: bool,
    /// Why it ended.
    pub(crate) end: &'static str,
    /// Its oldest copy was taken and put back by a rung that counts: it waits beside the inbox, whose slot is free.
    pub(crate) returned: bool,
}

/// A receive that waits, at a mailbox or a subscription.
#[derive(Debug, Clone)]
pub(crate) struct Wait {
    pub(crate) who: Who,
    pub(crate) key: Key,
    pub(crate) sub: Option<usize>,
    pub(crate) deadline: Option<u64>,
    pub(crate) cancelled: bool,
    /// The mailbox and its epoch when it was last polled, once it waits.
    pub(crate) begun: Option<(u64, u32)>,
    /// Its mailbox is no more.
    pub(crate) displaced: bool,
    /// It receives under a guard of so many microseconds.
    pub(crate) lease: Option<u64>,
}

impl Box {
    /// Every message that has a slot here.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Msg> {
        self.queue.iter().chain(self.leased.iter().map(|lease| &lease.msg))
    }

    /// Puts a message back at its place.
    fn put_back(&mut self, msg: Msg) {
        let at = self.queue.partition_point(|other| other.order < msg.order);
        self.queue.insert(at, msg);
    }
}

/// What a receive comes to.
#[derive(Debug, Clone)]
pub(crate) enum Got {
    Message(Msg),
    /// Held at the door.
    Held(Msg),
    Empty,
    Refused(Reason),
    End(&'static str),
    /// It waits on.
    Waits,
}

/// What a publication comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Receipt {
    pub(crate) fanout: u64,
    pub(crate) skipped: u64,
    pub(crate) dropped: u64,
}

impl Model {
    fn is_known(&self, key: &Key) -> bool {
        self.boxes.contains_key(key) || self.topics.contains_key(key) || self.owner_of(key) != Own::Nobody
    }

    pub(crate) fn make_box(&mut self, key: &Key, creator: Option<Who>) {
        let (binder, reserved) = match self.owner_of(key) {
            Own::Session(who) => (Some(who), Some(who)),
            Own::Reserved(who) | Own::OneActOnly(who) => (None, Some(who)),
            Own::Nobody => (None, None),
        };
        self.serials += 1;
        let made = Box { binder, reserved, creator, serial: self.serials, ..Box::default() };
        self.boxes.insert(key.clone(), made);
        if let Some(agent) = creator.and_then(|who| self.agents.get_mut(who)) {
            agent.made += 1;
        }
    }

    /// §4.3 row 9, §4.12: the mailbox of a key, made if it may be.
    fn need_box(&mut self, key: &Key, who: Who) -> Result<(), Reason> {
        if self.closed {
            return Err(Reason::Misroute);
        }
        if self.boxes.contains_key(key) {
            return Ok(());
        }
        if matches!(self.owner_of(key), Own::OneActOnly(owner) if owner != who) {
            return Err(Reason::TrustViolation);
        }
        if self.setup.declared && !self.is_known(key) {
            return Err(Reason::Misroute);
        }
        self.may_make(who)?;
        self.make_box(key, Some(who));
        Ok(())
    }

    fn may_make(&self, who: Who) -> Result<(), Reason> {
        let made = self.agent(who).map_or(0, |agent| agent.made);
        if made < self.setup.mailboxes { Ok(()) } else { Err(Reason::RateLimited) }
    }

    fn queued_of(&self, who: Who) -> u64 {
        let all = self.boxes.values().flat_map(Box::all);
        all.filter(|msg| msg.from == who).map(|msg| msg.body.text.len() as u64).sum()
    }

    /// Rows 8 and 10 of §4.3; what has had its time takes no place.
    fn find_place(&mut self, key: &Key, who: Who, body: &Body) -> Result<(), Reason> {
        let found = self.has_place(key, who, body);
        if found != Err(Reason::RateLimited) {
            return found;
        }
        let now = self.now;
        self.purge(key, "expired", |_, msg| msg.expires.is_some_and(|at| now >= at));
        self.has_place(key, who, body)
    }

    /// Rows 8 and 10 of §4.3, §4.12.
    fn has_place(&self, key: &Key, who: Who, body: &Body) -> Result<(), Reason> {
        let Some(mailbox) = self.boxes.get(key) else { return Err(Reason::Misroute) };
        if mailbox.binder.is_some_and(|binder| !self.would_flow(body, binder)) {
            return Err(Reason::TrustViolation);
        }
        let capacity = self.setup.capacity;
        let share = if capacity >= 64 { capacity * 3 / 4 } else { capacity };
        let own = mailbox.all().filter(|msg| msg.from == who).count();
        let bytes = self.queued_of(who) + body.text.len() as u64;
        if mailbox.all().count() >= capacity || own >= share || bytes > self.setup.queued_bytes {
            return Err(Reason::RateLimited);
        }
        Ok(())
    }

    /// §4.3.
    pub(crate) fn send(
        &mut self,
        who: Who,
        key: &Key,
        body: &Body,
        ttl: Option<u64>,
        idempotency: Option<u8>,
    ) -> Result<(), Reason> {
        let expires = ttl.map(|ttl| self.now + ttl);
        self.place(Act::Send, who, key, body, expires, idempotency)
    }

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

    /// §4.3, for the acts that it holds for.
    fn place(
        &mut self,
        act: Act,
        who: Who,
        key: &Key,
        body: &Body,
        expires: Option<u64>,
        idempotency: Option<u8>,
    ) -> Result<(), Reason> {
        let sent = self.admit(act, who, Some(key), Some(body))?.unwrap_or_else(|| body.clone());
        if matches!(self.owner_of(key), Own::OneActOnly(_)) {
            return Err(Reason::TrustViolation);
        }
        let id = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        if let Some(idempotency) = idempotency
            && let Some((_, _, to, scope, text)) =
                self.memory.iter().find(|(of, name, ..)| *of == id && *name == idempotency)
        {
            if (to, *scope, text) != (key, body.scope, &body.text) {
                return Err(Reason::Malformed);
            }
            if !self.has_credit(Act::Send) {
                return Err(Reason::RateLimited);
            }
            self.count(Act::Send);
            return Ok(());
        }
        self.need_box(key, who)?;
        self.find_place(key, who, &sent)?;
        if !self.has_credit(Act::Send) {
            return Err(Reason::RateLimited);
        }
        self.count(Act::Send);
        self.placed += 1;
        let order = self.placed;
        let msg = Msg { order, from: who, body: sent, expires, returns: 0, request: None };
        if let Some(mailbox) = self.boxes.get_mut(key) {
            mailbox.queue.push(msg);
        }
        self.books.sent += 1;
        if let Some(idempotency) = idempotency {
            while self.memory.iter().filter(|(of, ..)| *of == id).count() >= self.setup.remembered as usize
                && let Some(at) = self.memory.iter().position(|(of, ..)| *of == id)
            {
                self.memory.remove(at);
            }
            self.memory.push((id, idempotency, key.clone(), body.scope, body.text.clone()));
        }
        Ok(())
    }

    pub(crate) fn bury(&mut self, msgs: impl IntoIterator<Item = Msg>, cause: &'static str) {
        for msg in msgs {
            self.books.dead += 1;
            self.dead.push(Letter { from: msg.from, order: msg.order, cause });
        }
    }

    /// What has expired is dead, whether or not anybody looked (§4.10).
    pub(crate) fn sweep(&mut self) {
        let now = self.now;
        let mut dead = Vec::new();
        for mailbox in self.boxes.values_mut() {
            dead.extend(mailbox.queue.extract_if(.., |msg| msg.expires.is_some_and(|at| now >= at)));
        }
        self.bury(dead, "expired");
    }

    /// The oldest message that may flow to the receiver (§4.4); what has expired before it dies. Whether others are
    /// queued.
    fn oldest(&mut self, who: Who, key: &Key) -> (Option<Msg>, bool) {
        let Some(mailbox) = self.boxes.get(key) else { return (None, false) };
        let mut expired = Vec::new();
        let (mut found, mut others) = (None, false);
        for msg in &mailbox.queue {
            if msg.expires.is_some_and(|at| self.now >= at) {
                expired.push(msg.order);
            } else if self.would_flow(&msg.body, who) {
                found = Some(msg.order);
                break;
            } else {
                others = true;
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
    fn take(&mut self, who: Who, key: &Key, msg: Msg, lease: Option<u64>) -> Got {
        if lease.is_some() && self.is_laden(who) {
            if let Some(mailbox) = self.boxes.get_mut(key) {
                mailbox.put_back(msg);
            }
            return Got::Refused(Reason::RateLimited);
        }
        if self.holds_back(&msg.body.text) {
            self.books.held += 1;
            return Got::Held(msg);
        }
        if !self.has_credit(Act::Recv) {
            if let Some(mailbox) = self.boxes.get_mut(key) {
                mailbox.put_back(msg);
            }
            return Got::Refused(Reason::RateLimited);
        }
        self.count(Act::Recv);
        let now = self.now;
        let Some(mailbox) = self.boxes.get_mut(key) else { return Got::Empty };
        if let Some(lease) = lease {
            self.guards.push((who, key.clone(), true));
            let token = self.guards.len() - 1;
            mailbox.leased.push(Lease { token, holder: who, until: now + lease, msg: msg.clone() });
        } else {
            self.books.received += 1;
            mailbox.received += 1;
        }
        Got::Message(msg)
    }

    /// §4.12: whether somebody has as many guards as it may have.
    fn is_laden(&self, who: Who) -> bool {
        let held = self.guards.iter().filter(|(holder, _, open)| *holder == who && *open).count();
        held >= self.setup.leases as usize
    }

    /// Leases that `over` names go back to their places, or die once they went back too often.
    fn give_back(&mut self, key: &Key, cause: &'static str, over: impl Fn(&Lease) -> bool) {
        let limit = self.setup.redeliveries;
        let Some(mailbox) = self.boxes.get_mut(key) else { return };
        let (back, kept): (Vec<_>, _) = std::mem::take(&mut mailbox.leased).into_iter().partition(over);
        mailbox.leased = kept;
        let mut worn = Vec::new();
        for Lease { mut msg, .. } in back {
            msg.returns += 1;
            if msg.returns > limit { worn.push(msg) } else { mailbox.put_back(msg) }
        }
        self.bury(worn, cause);
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

    /// An allowed attempt that finds nothing.
    fn nothing(&mut self) -> Got {
        if !self.has_credit(Act::Recv) {
            return Got::Refused(Reason::RateLimited);
        }
        self.count(Act::Recv);
        Got::Empty
    }

    /// §4.6: who alone may receive at a key.
    pub(crate) fn only(&self, key: &Key) -> Option<Who> {
        match self.boxes.get(key) {
            Some(mailbox) => mailbox.binder.or(mailbox.reserved),
            None => match self.owner_of(key) {
                Own::Session(who) | Own::Reserved(who) | Own::OneActOnly(who) => Some(who),
                Own::Nobody => None,
            },
        }
    }

    pub(crate) fn try_recv(&mut self, who: Who, key: &Key, lease: Option<u64>) -> Got {
        let act = if lease.is_some() { Act::RecvLeased } else { Act::Recv };
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
            (None, true) => Got::Refused(Reason::TrustViolation),
            (None, false) => self.nothing(),
        }
    }

    /// One poll of a receive that waits at a mailbox.
    pub(crate) fn poll_wait(&mut self, wait: &mut Wait, others_waiting: usize) -> Got {
        let (who, key) = (wait.who, wait.key.clone());
        if let Some(end) = self.end_of(wait) {
            return Got::End(end);
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
        match self.oldest(who, &key) {
            (Some(msg), _) => self.take(who, &key, msg, wait.lease),
            (None, _) => Got::Waits,
        }
    }

    /// §2.5: an act that begins when its time is over, or its switch was turned, is refused.
    fn is_over(&self, wait: &Wait) -> bool {
        let over = wait.cancelled || wait.deadline.is_some_and(|at| self.now >= at);
        over && self.is_live(wait.who)
    }

    /// Ends that come before anything else.
    fn end_of(&self, wait: &Wait) -> Option<&'static str> {
        wait.begun?;
        if !self.is_live(wait.who) {
            return Some("detached");
        }
        if wait.cancelled {
            return Some("cancelled");
        }
        wait.deadline.is_some_and(|at| self.now >= at).then_some("timeout")
    }

    fn first_poll(&mut self, wait: &mut Wait, others_waiting: usize) -> Got {
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
            (None, true) => Got::Refused(Reason::TrustViolation),
            (None, false) if others_waiting >= self.setup.waits as usize => Got::Refused(Reason::RateLimited),
            (None, false) => {
                wait.begun = self.boxes.get(&key).map(|mailbox| (mailbox.serial, mailbox.epoch));
                Got::Waits
            }
        }
    }

    /// §4.5: one copy to each subscriber.
    pub(crate) fn publish(&mut self, who: Who, key: &Key, body: &Body) -> Result<Receipt, Reason> {
        let sent = self.admit(Act::Publish, who, Some(key), Some(body))?.unwrap_or_else(|| body.clone());
        if self.closed || (self.setup.declared && !self.is_known(key)) {
            return Err(Reason::Misroute);
        }
        if matches!(self.owner_of(key), Own::OneActOnly(_)) {
            return Err(Reason::TrustViolation);
        }
        if !self.has_credit(Act::Publish) {
            return Err(Reason::RateLimited);
        }
        self.count(Act::Publish);
        let mut receipt = Receipt::default();
        let Some(list) = self.topics.get(key).cloned() else { return Ok(receipt) };
        self.placed += 1;
        let msg = Msg { order: self.placed, from: who, body: sent, expires: None, returns: 0, request: None };
        for at in list {
            let flows = self.subs.get(at).is_some_and(|sub| self.would_flow(&msg.body, sub.who));
            let Some(sub) = self.subs.get_mut(at) else { continue };
            if !flows {
                receipt.skipped += 1;
            } else if sub.queue.len() < self.setup.capacity + usize::from(sub.returned) {
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
        Ok(receipt)
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
        if self.setup.declared && !self.topics.contains_key(key) {
            // Known from here on, as a mailbox would be.
            self.may_make(who)?;
            if let Some(agent) = self.agents.get_mut(who) {
                agent.made += 1;
            }
        }
        self.count(Act::Subscribe);
        let at = self.subs.len();
        self.subs.push(Sub {
            who,
            key: key.clone(),
            queue: Vec::new(),
            missed: 0,
            open: true,
            end: "",
            returned: false,
        });
        self.topics.entry(key.clone()).or_default().push(at);
        Ok(at)
    }

    /// A subscription is over; what it had queued is dead.
    pub(crate) fn end_sub(&mut self, at: usize, cause: &'static str) {
        let Some(sub) = self.subs.get_mut(at).filter(|sub| sub.open) else { return };
        (sub.open, sub.end) = (false, cause);
        let (key, dead) = (sub.key.clone(), std::mem::take(&mut sub.queue));
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

    /// One look into a subscription's inbox, with what was missed before the copy.
    pub(crate) fn pull(&mut self, at: usize, waits: bool) -> (Got, u64) {
        let Some((who, key)) = self.subs.get(at).map(|sub| (sub.who, sub.key.clone())) else {
            return (Got::Empty, 0);
        };
        if let Err(reason) = self.admit(Act::Recv, who, Some(&key), None) {
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
        sub.returned = false;
        let missed = std::mem::take(&mut sub.missed);
        if self.holds_back(&msg.body.text) {
            self.books.held += 1;
            return (Got::Held(msg), missed);
        }
        if !self.has_credit(Act::Recv) {
            if let Some(sub) = self.subs.get_mut(at) {
                sub.queue.insert(0, msg);
                sub.returned = true;
                sub.missed += missed;
            }
            return (Got::Refused(Reason::RateLimited), 0);
        }
        self.count(Act::Recv);
        self.books.received += 1;
        (Got::Message(msg), missed)
    }

    /// One poll of a receive that waits at a subscription.
    pub(crate) fn poll_sub(&mut self, wait: &mut Wait, others_waiting: usize) -> (Got, u64) {
        if let Some(end) = self.end_of(wait) {
            return (Got::End(end), 0);
        }
        if self.is_over(wait) {
            return (Got::Refused(Reason::Misroute), 0);
        }
        let Some(at) = wait.sub else { return (Got::Waits, 0) };
        let (got, missed) = self.pull(at, true);
        if matches!(got, Got::Waits) && wait.begun.is_none() {
            if others_waiting >= self.setup.waits as usize {
                return (Got::Refused(Reason::RateLimited), 0);
            }
            wait.begun = Some((0, 0));
        }
        (got, missed)
    }

    /// §4.6. `waiting`: who waits at the key.
    pub(crate) fn bind(&mut self, who: Who, key: &Key, waiting: &[Who]) -> Result<u64, Reason> {
        self.admit(Act::Bind, who, Some(key), None)?;
        match self.owner_of(key) {
            Own::Session(owner) | Own::Reserved(owner) | Own::OneActOnly(owner) if owner != who => {
                return Err(Reason::TrustViolation);
            }
            _ if self.closed => return Err(Reason::Misroute),
            _ => {}
        }
        if !self.has_credit(Act::Bind) {
            return Err(Reason::RateLimited);
        }
        if !self.boxes.contains_key(key) {
            self.may_make(who)?;
            self.make_box(key, Some(who));
        }
        let other = |holder: Option<Who>| holder.is_some_and(|holder| holder != who);
        let mailbox = self.boxes.get(key).cloned().unwrap_or_default();
        if other(mailbox.reserved) {
            return Err(Reason::TrustViolation);
        }
        if other(mailbox.binder) {
            return Err(Reason::LeaseHeld);
        }
        if waiting.iter().any(|waiter| *waiter != who) {
            return Err(Reason::TrustViolation);
        }
        self.count(Act::Bind);
        self.bindings += 1;
        let number = self.bindings;
        if let Some(mailbox) = self.boxes.get_mut(key) {
            mailbox.binder = Some(who);
            mailbox.binding = number;
        }
        self.purge(key, "bound", |model, msg| !model.would_flow(&msg.body, who));
        Ok(number)
    }

    /// What `unwanted` names dies.
    pub(crate) fn purge(&mut self, key: &Key, cause: &'static str, unwanted: impl Fn(&Self, &Msg) -> bool) {
        let Some(mailbox) = self.boxes.get_mut(key) else { return };
        let queue = std::mem::take(&mut mailbox.queue);
        let (dead, kept): (Vec<_>, _) = queue.into_iter().partition(|msg| unwanted(self, msg));
        if let Some(mailbox) = self.boxes.get_mut(key) {
            mailbox.queue = kept;
        }
        self.bury(dead, cause);
    }

    /// Everything that has a slot there dies.
    fn purge_all(&mut self, key: &Key, cause: &'static str) {
        let Some(mailbox) = self.boxes.get_mut(key) else { return };
        let mut dead = std::mem::take(&mut mailbox.queue);
        dead.extend(std::mem::take(&mut mailbox.leased).into_iter().map(|lease| lease.msg));
        self.bury(dead, cause);
    }

    pub(crate) fn unbind(&mut self, who: Who, key: &Key) -> Result<(), Reason> {
        self.admit(Act::Unbind, who, Some(key), None)?;
        let owner = match self.boxes.get(key) {
            Some(mailbox) => mailbox.binder,
            None => match self.owner_of(key) {
                Own::Session(owner) => Some(owner),
                _ => None,
            },
        };
        match owner {
            None => return Err(Reason::Misroute),
            Some(owner) if owner != who => return Err(Reason::TrustViolation),
            Some(_) => {}
        }
        if !self.has_credit(Act::Unbind) {
            return Err(Reason::RateLimited);
        }
        self.count(Act::Unbind);
        self.free(key);
        Ok(())
    }

    /// The key is nobody's any more: its waits end, everything queued dies.
    pub(crate) fn free(&mut self, key: &Key) {
        if let Some(mailbox) = self.boxes.get_mut(key) {
            mailbox.binder = None;
            mailbox.epoch += 1;
        }
        self.purge_all(key, "unbound");
    }

    /// A binding is dropped: its key is freed if it is still that binding's.
    pub(crate) fn drop_binding(&mut self, who: Who, key: &Key, number: u64) {
        if self.boxes.get(key).is_some_and(|mailbox| mailbox.binder == Some(who) && mailbox.binding == number)
        {
            self.free(key);
        }
    }

    /// §2.3, §4.6: what attaching changes. The keys of the mailboxes that end.
    pub(crate) fn attached_keys(&mut self, who: Who) -> Vec<Key> {
        let Some(agent) = self.agent(who).cloned() else { return Vec::new() };
        let named = |locale, id: &str| Key { locale, id: id.to_owned() };
        let session = named("session", &agent.trace);
        let own = [named("in_kernel", &agent.id), named("window", &agent.id)];
        for (key, binds) in own.iter().map(|key| (key, false)).chain([(&session, true)]) {
            self.bindings += 1;
            let number = self.bindings;
            if let Some(mailbox) = self.boxes.get_mut(key) {
                mailbox.reserved = Some(who);
                mailbox.binder = binds.then_some(who);
                mailbox.binding = number;
                mailbox.epoch += 1;
                self.purge(key, "bound", |model, msg| !model.would_flow(&msg.body, who));
            }
        }
        let mut ended = Vec::new();
        for prefix in ["correction:", "ack:", "status:"] {
            let key = named("in_kernel", &format!("{prefix}{}", agent.id));
            if self.boxes.contains_key(&key) {
                self.purge_all(&key, "bound");
                self.forget_box(&key);
                ended.push(key);
            }
        }
        ended
    }

    pub(crate) fn forget_box(&mut self, key: &Key) {
        if let Some(gone) = self.boxes.remove(key)
            && let Some(agent) = gone.creator.and_then(|who| self.agents.get_mut(who))
        {
            agent.made = agent.made.saturating_sub(1);
        }
    }

    /// §2.3: what detaching changes. The mailboxes that have no use any more, unless somebody waits there.
    pub(crate) fn detached(&mut self, who: Who) -> Vec<Key> {
        let mut unused = Vec::new();
        if let Some(agent) = self.agents.get_mut(who) {
            agent.live = false;
        }
        self.lanes.iter_mut().filter(|lease| lease.holder == who).for_each(|lease| lease.over = true);
        let keys: Vec<_> = self.boxes.keys().cloned().collect();
        for key in keys {
            let Some(mailbox) = self.boxes.get_mut(&key) else { continue };
            let bound = mailbox.binder == Some(who);
            if bound {
                mailbox.binder = None;
            }
            if mailbox.reserved == Some(who) {
                mailbox.reserved = None;
            }
            self.give_back(&key, "detached", |lease| lease.holder == who);
            self.purge(&key, "detached", |_, msg| msg.body.scope == Scope::Agent && msg.body.owner == who);
            if bound {
                self.purge_all(&key, "detached");
            }
            let idle = self.boxes.get(&key).is_some_and(|mailbox| {
                mailbox.creator == Some(who)
                    && mailbox.queue.is_empty()
                    && mailbox.leased.is_empty()
                    && mailbox.binder.is_none()
                    && mailbox.reserved.is_none()
                    && !mailbox.kept
            });
            if idle {
                unused.push(key);
            }
        }
        for at in 0..self.asked.len() {
            if self.asked.get(at).is_some_and(|asked| asked.who == who) {
                self.drop_asked(at, "detached", "detached");
            }
        }
        let own: Vec<_> = self.subs.iter().enumerate().filter(|(_, sub)| sub.who == who).collect();
        for at in own.iter().map(|(at, _)| *at).collect::<Vec<_>>() {
            self.end_sub(at, "detached");
        }
        unused
    }

    /// §4.11.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        let keys: Vec<_> = self.boxes.keys().cloned().collect();
        for key in keys {
            self.purge_all(&key, "closed");
        }
        for at in 0..self.asked.len() {
            self.drop_asked(at, "closed", "closed");
        }
        for at in 0..self.subs.len() {
            self.end_sub(at, "closed");
        }
    }

    /// Messages that wait to be received.
    pub(crate) fn queued(&self) -> u64 {
        let boxes: usize = self.boxes.values().map(|mailbox| mailbox.all().count()).sum();
        let inboxes: usize = self.subs.iter().map(|sub| sub.queue.len()).sum();
        let answers = self.asked.iter().filter(|asked| asked.answer.is_some()).count();
        (boxes + inboxes + answers) as u64
    }
}
