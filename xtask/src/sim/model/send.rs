//! Sending, and what has a place where (§4.3, §4.10, §4.12, §4.13).

use fak_abi::Reason;

use super::channels::{Box, Key, Letter, Msg, Own, Sub};
use super::host::Act;
use super::{Body, Model, Who};

impl Model {
    pub(super) fn is_known(&self, key: &Key) -> bool {
        self.known.contains(key)
            || self.boxes.contains_key(key)
            || self.topics.contains_key(key)
            || self.owner_of(key) != Own::Nobody
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
    pub(super) fn need_box(&mut self, key: &Key, who: Who) -> Result<(), Reason> {
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

    pub(super) fn may_make(&self, who: Who) -> Result<(), Reason> {
        let made = self.agent(who).map_or(0, |agent| agent.made);
        if made < self.setup.mailboxes { Ok(()) } else { Err(Reason::RateLimited) }
    }

    pub(super) fn queued_of(&self, who: Who) -> u64 {
        let all = self.boxes.values().flat_map(Box::all);
        let queued: u64 = all.filter(|msg| msg.from == who).map(|msg| msg.body.text.len() as u64).sum();
        let promised = self.boxes.values().flat_map(|mailbox| &mailbox.promised).chain(&self.orphans);
        // A publication counts once, until its last copy was taken.
        let mut copies: Vec<(u64, u64)> = self
            .subs
            .iter()
            .flat_map(Sub::all)
            .filter(|msg| msg.from == who)
            .map(|msg| (msg.order, msg.body.text.len() as u64))
            .collect();
        copies.sort_unstable();
        copies.dedup();
        let published: u64 = copies.iter().map(|(_, bytes)| bytes).sum();
        queued + published + promised.filter(|(_, to, _)| *to == who).map(|(.., bytes)| bytes).sum::<u64>()
    }

    /// Rows 8 and 10 of §4.3; what has had its time takes no place and none of its sender's bytes, wherever it is.
    pub(super) fn find_place(&mut self, key: &Key, who: Who, body: &Body) -> Result<(), Reason> {
        let found = self.has_place(key, who, body);
        if found != Err(Reason::RateLimited) {
            return found;
        }
        self.sweep();
        self.has_place(key, who, body)
    }

    /// Rows 8 and 10 of §4.3, §4.12.
    pub(super) fn has_place(&self, key: &Key, who: Who, body: &Body) -> Result<(), Reason> {
        let Some(mailbox) = self.boxes.get(key) else { return Err(Reason::Misroute) };
        if mailbox.binder.is_some_and(|binder| !self.would_flow(body, binder)) {
            return Err(Reason::TrustViolation);
        }
        let capacity = self.setup.capacity;
        let share = if capacity >= 64 { capacity * 3 / 4 } else { capacity };
        let promised = mailbox.promised.iter().filter(|(_, to, _)| *to == who).count();
        let own = mailbox.all().filter(|msg| msg.from == who).count() + promised;
        let bytes = self.queued_of(who) + body.text.len() as u64;
        if mailbox.taken() >= capacity || own >= share || bytes > self.setup.queued_bytes {
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

    /// §4.3, for the acts that it holds for.
    pub(super) fn place(
        &mut self,
        act: Act,
        who: Who,
        key: &Key,
        body: &Body,
        expires: Option<u64>,
        idempotency: Option<u8>,
    ) -> Result<(), Reason> {
        let sent = self.admit(act, who, Some(key), Some(body))?.unwrap_or_else(|| body.clone());
        // §4.9: nobody can fill them.
        if !self.closed && matches!(self.owner_of(key), Own::OneActOnly(_)) {
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
        let msg = Msg { order, from: who, body: sent, expires, ..Msg::default() };
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
            self.dead.push(Letter { from: msg.from, cause });
        }
    }

    /// Messages that wait to be received.
    pub(crate) fn queued(&self) -> u64 {
        let boxes: usize = self.boxes.values().map(|mailbox| mailbox.all().count()).sum();
        let inboxes: usize = self.subs.iter().map(|sub| sub.all().count()).sum();
        let waits = |asked: &&super::channels::Asked| asked.answer.is_some() || asked.leased.is_some();
        let answers = self.asked.iter().filter(waits).count();
        (boxes + inboxes + answers) as u64
    }
}
