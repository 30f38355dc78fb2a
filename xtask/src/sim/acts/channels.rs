//! Sending, publishing and binding (§4.3, §4.5, §4.6).

use std::time::Duration;

use fak_a2achan::{LeasedMessage, RequestOptions, SendOptions};
use fak_abi::{Act as RealAct, ChannelKey, Id, Rider, Timestamp};

use super::Sim;
use super::compare::{outcome, said, verdict};
use crate::sim::fault::{Fault, Step, ensure, same};
use crate::sim::model::channels::{Asked, Receipt};
use crate::sim::model::{Key, Who};
use crate::sim::real::{Bound, Received, broken};

impl Sim {
    /// Who waits at mailboxes, and where.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Who, Key)> {
        self.real
            .tasks
            .iter()
            .filter(|task| task.wait.is_at_mailbox() && task.wait.begun.is_some())
            .map(|task| (task.wait.who, task.wait.key.clone()))
    }

    pub(super) fn send(&mut self, agent: u8, key: u8, body: u8, ttl: u8, again: u8) -> Step {
        let (Some(mut who), Some((at, body))) = (self.agent(agent), self.shared_body(body)) else {
            return Ok(());
        };
        if agent % 4 < 2 && self.model.is_live(body.owner) {
            who = body.owner;
        }
        let (key, real_key) = Self::key(key)?;
        let ttl = (ttl % 4 == 3).then(|| u64::from(ttl) * 10_000);
        let again = (again % 8 == 7).then_some(again / 8 % 3);
        self.send_by(who, (&key, &real_key), at, ttl, again)
    }

    pub(super) fn send_by(
        &mut self,
        who: Who,
        (key, real_key): (&Key, &ChannelKey),
        at: usize,
        ttl: Option<u64>,
        again: Option<u8>,
    ) -> Step {
        let Some(body) = self.model.bodies.get(at).cloned() else { return Ok(()) };
        let model = self.model.send(who, key, &body, ttl, again);
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let name = again.map(|again| Id::new(&format!("once-{again}"))).transpose().map_err(broken)?;
        let options =
            SendOptions { idempotency: name.as_ref(), ttl: ttl.map(Duration::from_micros), rider: None };
        let product = if ttl.is_none() && name.is_none() {
            endpoint.send(real_key, real)
        } else {
            endpoint.send_with(real_key, real, &options)
        };
        self.show(who, &format!("{product:?} {product}"));
        self.tidied(who, key);
        verdict(&format!("§4.3: send by {who} to {}", key.text()), &product, model)
    }

    pub(super) fn request(&mut self, agent: u8, key: u8, body: u8, deadline: u8) -> Step {
        let (Some(mut who), Some((at, body))) = (self.agent(agent), self.shared_body(body)) else {
            return Ok(());
        };
        if agent % 4 < 2 && self.model.is_live(body.owner) {
            who = body.owner;
        }
        let (key, real_key) = match self.back_at(who, key) {
            Some(key) => {
                let real = key.text().parse().map_err(broken)?;
                (key, real)
            }
            None => Self::key(key)?,
        };
        let blocking = self.model.setup.urged || deadline % 8 < 3;
        let deadline = (deadline % 2 == 1).then(|| self.model.now + u64::from(deadline) * 20_000);
        self.request_by(who, (&key, &real_key), at, (deadline, blocking))?;
        Ok(())
    }

    /// Which request it is, if it was accepted.
    pub(super) fn request_by(
        &mut self,
        who: Who,
        (key, real_key): (&Key, &ChannelKey),
        at: usize,
        (deadline, blocking): (Option<u64>, bool),
    ) -> Result<Option<usize>, Fault> {
        let Some(body) = self.model.bodies.get(at).cloned() else { return Ok(None) };
        let model = self.model.request(who, key, &body, deadline, blocking);
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(None);
        };
        let rider = Rider { deadline: deadline.map(Timestamp::from_micros), ..Rider::default() };
        let options = RequestOptions { blocking, rider: Some(&rider) };
        let product = endpoint.request(real_key, real, &options);
        self.tidied(who, key);
        if let Some((pending, _)) =
            outcome(&format!("§4.7: request by {who} at {}", key.text()), product, model)?
        {
            self.real.asked.push(Some(pending));
            return Ok(Some(self.real.asked.len() - 1));
        }
        Ok(None)
    }

    /// In an episode that is urged, the session of somebody who waits for an answer of one's own; else of anybody.
    fn back_at(&self, who: Who, n: u8) -> Option<Key> {
        let waits = |asked: &&Asked| asked.blocking == Some(Some(who)) && asked.who != who;
        let waiting = self.model.asked.iter().filter(waits).map(|asked| asked.who);
        let others = (0..self.model.agents.len()).filter(|other| *other != who);
        let near: Vec<Who> = waiting.chain(others).filter(|who| self.model.is_live(*who)).collect();
        let at = if n.is_multiple_of(4) { 0 } else { usize::from(n / 4) % near.len().max(1) };
        let agent = near.get(at).filter(|_| self.model.setup.urged && n < 200)?;
        Some(Key { locale: "session", id: self.model.agent(*agent)?.trace.clone() })
    }

    pub(super) fn reply(&mut self, agent: u8, request: u8, body: u8) -> Step {
        if self.model.setup.urged && request % 4 < 3 {
            return self.converse(agent, body);
        }
        let count = self.real.inbox.len();
        let Some(at) = count.checked_sub(1 + usize::from(request) % count.clamp(1, 4)) else { return Ok(()) };
        let Some(received) = self.model.inbox.get(at).copied() else { return Ok(()) };
        let receiver = received.0;
        let Some(who) = (if agent.is_multiple_of(8) { self.agent(agent) } else { Some(receiver) }) else {
            return Ok(());
        };
        let Some((number, _)) = self.shared_body(body) else { return Ok(()) };
        self.reply_by(who, at, number)
    }

    /// The answer of somebody to what was received as the `at`th request.
    pub(super) fn reply_by(&mut self, who: Who, at: usize, number: usize) -> Step {
        let (Some(received), Some(body)) =
            (self.model.inbox.get(at).copied(), self.model.bodies.get(number).cloned())
        else {
            return Ok(());
        };
        let message = match self.real.inbox.get(at) {
            Some(Received::Message(message)) => Some(message),
            Some(Received::Guard(at)) => {
                self.real.guards.get(*at).and_then(Option::as_ref).map(LeasedMessage::message)
            }
            None => None,
        };
        let (Some(endpoint), Some(real), Some(message)) =
            (self.real.agents.get(who), self.real.bodies.get(number), message)
        else {
            return Ok(());
        };
        let model = self.model.reply(who, received, &body);
        let product = endpoint.reply(message, real);
        verdict(&format!("§4.7: reply by {who}"), &product, model)
    }

    pub(super) fn publish(&mut self, agent: u8, key: u8, body: u8) -> Step {
        let times = if self.model.setup.urged { 1 + key % 4 } else { 1 };
        (0..times).try_for_each(|_| self.publish_once(agent, key, body))
    }

    fn publish_once(&mut self, agent: u8, key: u8, body: u8) -> Step {
        let (Some(mut who), Some((at, body))) = (self.agent(agent), self.shared_body(body)) else {
            return Ok(());
        };
        if agent % 4 < 2 && self.model.is_live(body.owner) {
            who = body.owner;
        }
        let (key, real_key) = Self::key(key)?;
        self.publish_by(who, (&key, &real_key), at)
    }

    pub(super) fn publish_by(&mut self, who: Who, (key, real_key): (&Key, &ChannelKey), at: usize) -> Step {
        let Some(body) = self.model.bodies.get(at).cloned() else { return Ok(()) };
        let model = self.model.publish(who, key, &body);
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let product = endpoint.publish(real_key, real);
        self.show(who, &format!("{product:?}"));
        verdict(&format!("§4.5: publish by {who} on {}", key.text()), &product.verdict, model.map(|_| ()))?;
        let receipt = Receipt { fanout: product.fanout, skipped: product.skipped, dropped: product.dropped };
        same("§4.5: the receipt", &receipt, &model.unwrap_or_default())?;
        if receipt.fanout > 0 {
            self.number(self.model.placed, product.seq)?;
        }
        Ok(())
    }

    pub(super) fn bind(&mut self, agent: u8, key: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let (key, real_key) = Self::key(key)?;
        // Whether a wait that was woken and has not been polled yet is over is nobody's to say.
        if self.is_unsettled(&key, who) {
            return Ok(());
        }
        let waiting: Vec<Who> = self.waiting().filter(|(_, at)| *at == key).map(|(who, _)| who).collect();
        let model = self.model.bind(who, &key, &waiting);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.bind(&real_key);
        let bound = outcome(&format!("§4.6: bind by {who} of {}", key.text()), product, model)?;
        if let Some((binding, number)) = bound {
            self.real.bindings.push(Some(Bound { binding, who, key, number }));
        }
        Ok(())
    }

    /// True if another than `who` was woken at a key and has not been polled.
    fn is_unsettled(&self, key: &Key, who: Who) -> bool {
        let mut tasks =
            self.real.tasks.iter().filter(|task| task.wait.is_at_mailbox() && task.wait.begun.is_some());
        tasks.any(|task| task.wait.key == *key && task.wait.who != who && task.is_woken())
    }

    pub(super) fn unbind(&mut self, agent: u8, key: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let (key, real_key) = Self::key(key)?;
        let model = self.model.unbind(who, &key);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.unbind(&real_key);
        verdict(&format!("§4.6: unbind by {who} of {}", key.text()), &product, model)
    }

    pub(super) fn drop_binding(&mut self, binding: u8) -> Step {
        let count = self.real.bindings.len().max(1);
        let bound = self.real.bindings.get_mut(usize::from(binding) % count).and_then(Option::take);
        if let Some(Bound { binding, who, key, number }) = bound {
            drop(binding);
            self.model.drop_binding(who, &key, number);
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, binding: u8) -> Step {
        let count = self.real.bindings.len().max(1);
        let bound = self.real.bindings.get_mut(usize::from(binding) % count).and_then(Option::take);
        if let Some(Bound { binding, .. }) = bound {
            binding.keep();
        }
        Ok(())
    }

    /// §3.5: explaining says what the act would be answered, and changes nothing.
    pub(super) fn explain(&mut self, agent: u8, key: u8, body: u8) -> Step {
        let (Some(who), Some((at, body))) = (self.agent(agent), self.body(body)) else { return Ok(()) };
        let (key, real_key) = Self::key(key)?;
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let explained = endpoint.explain(RealAct::Send, &real_key, Some(real));
        self.show(who, &format!("{explained:?} {explained}"));
        let floor = self.model.admit(crate::sim::model::host::Act::Send, who, Some(&key), Some(&body));
        if let Err(reason) = floor {
            ensure!(
                said(&explained.verdict) == Err(Some(reason)),
                "§3.5: explaining a send by {who} to {} says {}, the model {reason:?}",
                key.text(),
                explained.verdict
            );
        }
        Ok(())
    }
}
