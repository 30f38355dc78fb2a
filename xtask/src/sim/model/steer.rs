//! Corrections of a running worker (§4.9): statuses, corrections, acknowledgements, and what may still be acted on.

use fak_abi::Reason;

use super::channels::{Got, Key, Msg};
use super::host::Act;
use super::{Body, Model, Scope, Who};

/// The live status of one worker.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    pub(crate) who: Who,
    pub(crate) worker: String,
    pub(crate) issue: i64,
    pub(crate) task: String,
    pub(crate) lane: String,
    pub(crate) live: bool,
    pub(crate) seq: i64,
    pub(crate) digest: String,
}

/// How far a correction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Sent,
    Received,
    /// Acknowledged: accepted, and reflected in the next action.
    Acked(bool, bool),
    /// The orchestrator has the acknowledgement.
    Observed(bool, bool),
    /// The acknowledgement was held.
    Withheld,
}

/// A correction that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Steer {
    pub(crate) id: String,
    pub(crate) from: Who,
    pub(crate) worker: Who,
    pub(crate) issue: i64,
    pub(crate) task: String,
    pub(crate) digest: String,
    pub(crate) phase: Phase,
    pub(crate) superseded: bool,
    /// Its worker is gone, and so is every memory of it.
    pub(crate) forgotten: bool,
    /// The orders of its message and of its acknowledgement.
    pub(crate) order: u64,
    pub(crate) ack: Option<u64>,
}

/// What an orchestrator asks for, as far as it is judged.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) orchestrator: String,
    pub(crate) worker: String,
    pub(crate) issue: i64,
    pub(crate) task: String,
    pub(crate) lane: String,
    pub(crate) message: String,
    pub(crate) digest: String,
    pub(crate) ceiling: u64,
    /// The correction's id and bytes.
    pub(crate) id: String,
    pub(crate) json: String,
}

/// What an acknowledgement says, as far as it is judged.
#[derive(Debug, Clone)]
pub(crate) struct Ack {
    pub(crate) worker: String,
    pub(crate) digest: String,
    pub(crate) accepted: bool,
    pub(crate) reflected: bool,
    pub(crate) json: String,
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The inbox that accepts one act alone.
pub(crate) fn inbox(what: &str, who: Who) -> Key {
    Key { locale: "inbox", id: format!("{what}/{who}") }
}

impl Model {
    /// The scope of a body that two share explicitly.
    pub(crate) fn shared_scope(&self, one: Who, other: Who) -> Option<Scope> {
        if self.fleet(one).is_some() && self.fleet(one) == self.fleet(other) {
            Some(Scope::Fleet)
        } else if self.tenant(one).is_some() && self.tenant(one) == self.tenant(other) {
            Some(Scope::Tenant)
        } else {
            None
        }
    }

    fn act_key(prefix: &str, id: &str) -> Key {
        Key { locale: "in_kernel", id: format!("{prefix}:{id}") }
    }

    fn issued(who: Who, json: &str, scope: Scope) -> Body {
        Body { text: json.to_owned(), owner: who, scope, ..Body::default() }
    }

    /// An inbox of one principal, charged to `maker`; false if there can be none.
    pub(crate) fn need_inbox(&mut self, key: &Key, owner: Who, maker: Who) -> bool {
        if self.boxes.contains_key(key) {
            return true;
        }
        if !self.is_live(owner) || self.may_make(maker).is_err() {
            return false;
        }
        self.make_box(key, Some(maker));
        if let Some(mailbox) = self.boxes.get_mut(key) {
            (mailbox.binder, mailbox.reserved) = (Some(owner), Some(owner));
        }
        true
    }

    /// §4.9: a worker says what it does; every subscriber of its status is told.
    pub(crate) fn post(&mut self, who: Who, status: Status, json: &str) -> Result<(), Reason> {
        let id = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        let key = Self::act_key("status", &id);
        let scopes = [(self.fleet(who), Scope::Fleet), (self.tenant(who), Scope::Tenant)];
        let bodies: Vec<Body> = scopes
            .iter()
            .filter(|(part, _)| part.is_some())
            .map(|(_, scope)| Self::issued(who, json, *scope))
            .collect();
        let changed = self.admit(Act::Status, who, Some(&key), bodies.first())?;
        if blank(&status.worker) || blank(&status.lane) || status.issue <= 0 || status.seq <= 0 {
            return Err(Reason::Malformed);
        }
        if status.worker != id || bodies.is_empty() {
            return Err(Reason::TrustViolation);
        }
        let bytes = changed.as_ref().map_or(json.len(), |body| body.text.len()) * bodies.len();
        if self.topics.contains_key(&key) && !self.has_bytes(who, bytes as u64) {
            return Err(Reason::RateLimited);
        }
        if !self.has_credit(Act::Status) {
            return Err(Reason::RateLimited);
        }
        let last = self.statuses.iter().find(|other| other.who == who).map(|other| other.seq);
        if last.is_some_and(|last| status.seq <= last) {
            return Err(Reason::Malformed);
        }
        self.count(Act::Status);
        self.statuses.retain(|other| other.who != who);
        self.statuses.push(status);
        for body in &bodies {
            let tenants = body.scope == Scope::Tenant;
            let sent = changed.clone().unwrap_or_else(|| body.clone());
            // Whoever shares the fleet gets the fleet's copy only.
            self.spread(who, &key, sent, |model, to| {
                !(tenants && model.fleet(who).is_some() && model.fleet(who) == model.fleet(to))
            });
        }
        Ok(())
    }

    fn is_current(&self, steer: &Steer) -> bool {
        let status = self.statuses.iter().find(|status| status.who == steer.worker);
        !steer.superseded && status.is_some_and(|status| status.live && status.digest == steer.digest)
    }

    /// §4.9: the checks of a correction, in their order.
    fn fit(&self, who: Who, asked: &Asked) -> Result<(), Reason> {
        let Asked { orchestrator, worker, issue, task, lane, message, digest, ceiling, id, .. } = asked;
        if [orchestrator, worker, lane, message].iter().any(|text| blank(text)) || *issue <= 0 {
            return Err(Reason::Malformed);
        }
        if message.len() as u64 > (*ceiling).min(1_024) {
            return Err(Reason::Oversize);
        }
        let status = self.statuses.iter().find(|status| status.live && status.digest == *digest);
        let status = status.ok_or(Reason::Unwitnessed)?;
        let fits = (&status.worker, status.issue, &status.task, &status.lane) == (worker, *issue, task, lane);
        let me = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        if !fits || *orchestrator != me || self.shared_scope(who, status.who).is_none() {
            return Err(Reason::TrustViolation);
        }
        if self.steers.iter().any(|steer| !steer.forgotten && steer.id == *id) {
            return Err(Reason::Unwitnessed);
        }
        Ok(())
    }

    /// Places what an act made in an inbox that is for it alone; its order.
    fn hand_in(&mut self, act: Act, who: Who, to: Who, what: &str, body: Body) -> Result<u64, Reason> {
        let key = inbox(what, to);
        if !self.need_inbox(&key, to, to) {
            return Err(Reason::Misroute);
        }
        self.find_place(&key, who, &body)?;
        if !self.has_credit(act) {
            return Err(Reason::RateLimited);
        }
        self.count(act);
        self.placed += 1;
        self.books.sent += 1;
        let msg = Msg { order: self.placed, from: who, body, ..Msg::default() };
        if let Some(mailbox) = self.boxes.get_mut(&key) {
            mailbox.queue.push(msg);
        }
        Ok(self.placed)
    }

    pub(crate) fn correct(&mut self, who: Who, asked: &Asked) -> Result<(), Reason> {
        self.audit_says()?;
        if !self.is_live(who) {
            return Err(Reason::DefaultDeny);
        }
        self.fit(who, asked)?;
        let worker = self.attached(&asked.worker).ok_or(Reason::Unwitnessed)?;
        let scope = self.shared_scope(who, worker).unwrap_or(Scope::Agent);
        let body = Self::issued(who, &asked.json, scope);
        let key = Self::act_key("correction", &asked.worker);
        // What a rung made of it is no correction.
        if self.admit_to(Act::Correct, who, Some(worker), Some(&key), Some(&body))?.is_some() {
            return Err(Reason::Malformed);
        }
        let order = self.hand_in(Act::Correct, who, worker, "correction", body)?;
        for older in self.steers.iter_mut().filter(|older| older.worker == worker) {
            let same = (older.issue, &older.task) == (asked.issue, &asked.task);
            older.superseded |= same && matches!(older.phase, Phase::Sent | Phase::Received);
        }
        self.steers.push(Steer {
            id: asked.id.clone(),
            from: who,
            worker,
            issue: asked.issue,
            task: asked.task.clone(),
            digest: asked.digest.clone(),
            phase: Phase::Sent,
            superseded: false,
            forgotten: false,
            order,
            ack: None,
        });
        Ok(())
    }

    /// §4.9: the worker re-validates on receipt.
    pub(crate) fn receive_correction(&mut self, who: Who) -> Got {
        let key = inbox("correction", who);
        let is_there = self.need_inbox(&key, who, who);
        let id = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        let address = Self::act_key("correction", &id);
        if let Err(reason) = self.admit(Act::ReceiveCorrection, who, Some(&address), None) {
            return Got::Refused(reason);
        }
        let (Some(msg), _) = self.oldest(who, &key) else { return self.nothing() };
        debug_assert!(is_there);
        if self.holds_back(&msg.body.text) {
            self.books.held += 1;
            return Got::Held(msg);
        }
        let at = self.steers.iter().position(|steer| !steer.forgotten && steer.order == msg.order);
        let Some(at) = at.filter(|at| {
            let steer = self.steers.get(*at);
            steer.is_some_and(|steer| steer.phase == Phase::Sent && self.is_current(steer))
        }) else {
            self.bury([msg], "superseded");
            return Got::Refused(Reason::Unwitnessed);
        };
        if !self.has_credit(Act::ReceiveCorrection) {
            if let Some(mailbox) = self.boxes.get_mut(&key) {
                mailbox.queue.insert(0, msg);
            }
            return Got::Refused(Reason::RateLimited);
        }
        self.count(Act::ReceiveCorrection);
        self.books.received += 1;
        if let Some(steer) = self.steers.get_mut(at) {
            steer.phase = Phase::Received;
        }
        Got::Message(msg)
    }

    /// §4.9: counts from the worker alone, once, while the correction is current.
    pub(crate) fn ack_correction(&mut self, who: Who, at: usize, ack: &Ack) -> Result<(), Reason> {
        self.audit_says()?;
        if !self.is_live(who) {
            return Err(Reason::DefaultDeny);
        }
        let steer = self.steers.get(at).filter(|steer| !steer.forgotten).cloned();
        let steer = steer.ok_or(Reason::Unwitnessed)?;
        let worker = self.agent(steer.worker).map(|agent| agent.id.clone()).unwrap_or_default();
        if steer.worker != who || ack.worker != worker {
            return Err(Reason::TrustViolation);
        }
        if steer.phase != Phase::Received || ack.digest != steer.digest || !self.is_current(&steer) {
            return Err(Reason::Unwitnessed);
        }
        let scope = self.shared_scope(who, steer.from).unwrap_or(Scope::Agent);
        let body = Self::issued(who, &ack.json, scope);
        let from = self.agent(steer.from).map(|agent| agent.id.clone()).unwrap_or_default();
        let key = Self::act_key("ack", &from);
        if self.admit_to(Act::Ack, who, Some(steer.from), Some(&key), Some(&body))?.is_some() {
            return Err(Reason::Malformed);
        }
        if !self.is_live(steer.from) {
            return Err(Reason::Misroute);
        }
        let order = self.hand_in(Act::Ack, who, steer.from, "ack", body)?;
        if let Some(steer) = self.steers.get_mut(at) {
            (steer.phase, steer.ack) = (Phase::Acked(ack.accepted, ack.reflected), Some(order));
        }
        Ok(())
    }

    /// §4.9: holds only if acknowledged and reflected. The refusal of an acknowledgement that is held has no reason.
    pub(crate) fn observe(&mut self, who: Who, at: usize) -> Result<(), Option<Reason>> {
        let me = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        self.admit(Act::Observe, who, Some(&Self::act_key("ack", &me)), None).map_err(Some)?;
        let steer = self.steers.get(at).filter(|steer| !steer.forgotten).cloned();
        let steer = steer.ok_or(Some(Reason::Unwitnessed))?;
        if steer.from != who {
            return Err(Some(Reason::TrustViolation));
        }
        let key = inbox("ack", who);
        let (accepted, reflected, msg) = match steer.phase {
            Phase::Observed(accepted, reflected) => (accepted, reflected, None),
            Phase::Acked(accepted, reflected) => {
                let msg = steer
                    .ack
                    .and_then(|order| self.take_out(&key, order))
                    .ok_or(Some(Reason::Unwitnessed))?;
                (accepted, reflected, Some(msg))
            }
            Phase::Sent | Phase::Received | Phase::Withheld => return Err(Some(Reason::Unwitnessed)),
        };
        let held = msg.as_ref().is_some_and(|msg| self.holds_back(&msg.body.text));
        let holds = accepted && reflected;
        if holds && !held && !self.has_credit(Act::Observe) {
            // As if it had not been looked at.
            if let (Some(msg), Some(mailbox)) = (msg, self.boxes.get_mut(&key)) {
                let place = mailbox.queue.partition_point(|other| other.order < msg.order);
                mailbox.queue.insert(place, msg);
            }
            return Err(Some(Reason::RateLimited));
        }
        self.books.held += u64::from(held);
        self.books.received += u64::from(msg.is_some() && !held);
        if let Some(steer) = self.steers.get_mut(at) {
            steer.phase = if held { Phase::Withheld } else { Phase::Observed(accepted, reflected) };
        }
        if held {
            return Err(None);
        }
        if !holds {
            return Err(Some(Reason::Unwitnessed));
        }
        self.count(Act::Observe);
        Ok(())
    }

    fn take_out(&mut self, key: &Key, order: u64) -> Option<Msg> {
        let queue = &mut self.boxes.get_mut(key)?.queue;
        let at = queue.iter().position(|msg| msg.order == order)?;
        Some(queue.remove(at))
    }

    /// Who is gone posts nothing, and corrections of it are of no use (§2.3); neither is what it acknowledged of them.
    pub(super) fn forget_steering(&mut self, who: Who) {
        self.statuses.retain(|status| status.who != who);
        let mut unread = Vec::new();
        for steer in self.steers.iter_mut().filter(|steer| steer.worker == who && !steer.forgotten) {
            steer.forgotten = true;
            unread.extend(
                steer.ack.filter(|_| matches!(steer.phase, Phase::Acked(..))).map(|ack| (steer.from, ack)),
            );
        }
        for (from, order) in unread {
            let msg = self.take_out(&inbox("ack", from), order);
            self.bury(msg, "detached");
        }
    }
}
