//! The acts on channels: sending, receiving, publishing, subscribing and binding (§4.2–§4.6).

use std::{collections::HashMap, sync::Arc, time::Duration};

use fak_a2achan::{Addressing, Bus, BusConfig, Delivery, Endpoint, Message, SendOptions, Subscription};
use fak_abi::{Act as Verb, AgentHandle, Id, Outcome};

use super::{
    done::{Done, Stop},
    world::{Kept, World},
};
use crate::{
    act::{Actor, Address, Body, ChannelAct, Inbox},
    model::Limits,
};

/// The bus and what steps have kept of it.
pub(super) struct Channels {
    pub(super) bus: Bus,
    /// Subscriptions, and whose they are.
    subscriptions: HashMap<String, (Subscription, Actor)>,
}

impl Channels {
    /// A bus within these limits.
    pub(super) fn new(limits: &Limits) -> Result<Self, fak_a2achan::ConfigError> {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut config = BusConfig::default();
        if let Some(capacity) = limits.mailbox_capacity {
            config.capacity = size(capacity);
        }
        if let Some(bytes) = limits.max_body_bytes {
            config.max_body_bytes = size(bytes);
        }
        if let Some(times) = limits.redeliveries {
            config.redeliveries = u32::try_from(times).unwrap_or(u32::MAX);
        }
        if limits.declared {
            config.addressing = Addressing::Declared;
        }
        Ok(Self { bus: Bus::new(config)?, subscriptions: HashMap::new() })
    }
}

/// Somebody names an inbox that is another's.
pub(super) fn not_in_hand(what: &str, name: &str, owner: &Actor) -> Stop {
    Stop::missing(format!("{what} \"{name}\" is {owner}'s; nobody else has it in hand"))
}

/// Somebody names an inbox that was never made.
pub(super) fn no_inbox(name: &str) -> Stop {
    Stop::missing(format!("there is no inbox \"{name}\": the step that makes it did not succeed"))
}

impl World {
    pub(super) fn channel(&mut self, by: &Actor, act: &ChannelAct) -> Done {
        match act {
            ChannelAct::Send { to, body, key, ttl_ms } => self.send(by, to, body, (key.as_deref(), *ttl_ms)),
            ChannelAct::Recv { from: Inbox::At(at) } => self.recv(by, at),
            ChannelAct::Recv { from: Inbox::Named(name) } => self.recv_inbox(by, name),
            ChannelAct::Publish { topic, body } => self.publish(by, topic, body),
            ChannelAct::Subscribe { topic, name } => self.subscribe(by, topic, name),
            ChannelAct::Unsubscribe { inbox } => self.unsubscribe(by, inbox),
            ChannelAct::Open { at } => self.open(at),
            ChannelAct::Bind { at } => self.bind(by, at),
            ChannelAct::Unbind { at } => self.unbind(by, at),
            ChannelAct::RecvLeased { from, name, deadline_ms } => {
                self.recv_leased(by, from, name, *deadline_ms)
            }
            ChannelAct::Consume { name } => self.settle(name, true),
            ChannelAct::Drop { name } => self.settle(name, false),
            ChannelAct::Request { to, body, name, blocking, deadline_ms } => {
                self.request(by, (to, body), name, (*blocking, *deadline_ms))
            }
            ChannelAct::Reply { to_request, body } => self.reply(by, to_request, body),
            ChannelAct::Await { name } => self.answer(by, name),
            ChannelAct::Compact { body, name } => self.compact(by, body, name),
            ChannelAct::Resume { window } => self.resume(by, window),
            ChannelAct::Status { status } => self.status_of(by, status),
            ChannelAct::Correct { request, name } => self.correct(by, request, name),
            ChannelAct::ReceiveCorrection { name } => self.receive_correction(by, name),
            ChannelAct::Ack { action, name } => self.ack(by, action, name),
            ChannelAct::Observe { name } => self.observe(by, name),
        }
        .unwrap_or_else(Done::from)
    }

    /// The acting agent's place on the bus.
    pub(super) fn endpoint(&mut self, by: &Actor) -> Result<Endpoint, Stop> {
        let handle = self.handle(by)?;
        Ok(self.channels.bus.endpoint(&handle))
    }

    fn send(
        &mut self,
        by: &Actor,
        to: &Address,
        body: &Body,
        (key, ttl_ms): (Option<&str>, Option<u64>),
    ) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let body = self.body(by, body)?;
        let idempotency = match key {
            Some(key) => Some(Id::new(key).map_err(|error| Stop::missing(format!("a key: {error}")))?),
            None => None,
        };
        let options = SendOptions {
            idempotency: idempotency.as_ref(),
            ttl: ttl_ms.map(Duration::from_millis),
            rider: None,
        };
        let verdict = match to.key() {
            Ok(key) => endpoint.send_with(&key, &body, &options),
            Err(_) => endpoint.malformed(Verb::Send, Some(&body)),
        };
        Ok(Done::decided(&verdict).at(to.to_string()))
    }

    fn recv(&mut self, by: &Actor, at: &Address) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        Ok(match at.key() {
            Ok(key) => self.received(endpoint.agent(), endpoint.try_recv(&key)),
            Err(_) => Done::decided(&endpoint.malformed(Verb::Recv, None)),
        }
        .at(at.to_string()))
    }

    /// From a subscription, a request's reply inbox, or the member's inbox of a group.
    fn recv_inbox(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        if let Some(subscription) = self.subscription(by, name)? {
            let delivery = subscription.try_recv();
            return Ok(self.received(&handle, delivery).at(name));
        }
        if self.is_request(name) {
            return self.answer(by, name);
        }
        if let Some(group) = self.waves.groups.get(name) {
            let endpoint = self.channels.bus.endpoint(&handle);
            let delivery = endpoint.try_recv_group(group.group().name());
            return Ok(self.received(&handle, delivery).at(format!("group:{name:?}")));
        }
        Err(no_inbox(name))
    }

    /// A subscription by name, if one has it; in hand only to whom it belongs.
    pub(super) fn subscription(&mut self, by: &Actor, name: &str) -> Result<Option<&mut Subscription>, Stop> {
        match self.channels.subscriptions.get_mut(name) {
            Some((_, owner)) if owner != by => Err(not_in_hand("inbox", name, owner)),
            Some((subscription, _)) => Ok(Some(subscription)),
            None => Ok(None),
        }
    }

    /// What a receive answered.
    pub(super) fn received(&self, handle: &AgentHandle, delivery: Delivery) -> Done {
        match delivery {
            Delivery::Message(message) => {
                let mut done = Self::describe(handle, &message);
                done.yields = Some(Kept::Message(Arc::new(message)));
                done
            }
            other => Self::nothing_received(&other),
        }
    }

    /// A receive that handed nothing over.
    pub(super) fn nothing_received<T>(delivery: &Delivery<T>) -> Done {
        let empty = || {
            let mut done = Done::default();
            done.answers.set("verdict", "empty");
            done.answers.set("empty", true);
            done
        };
        match delivery {
            Delivery::Message(_) | Delivery::Empty => empty(),
            Delivery::Hold(notice) => {
                let mut done = Done::decided(&notice.verdict);
                done.answers.set("from", notice.from.id().as_str());
                done.answers.set("taint", notice.taint.name());
                done.answers.set("scope", notice.scope.name());
                done.note = Some(format!("held, {}", notice.digest));
                done
            }
            Delivery::Refuse(verdict) => Done::decided(verdict),
            Delivery::End(end) => Done { note: Some(end.name().to_owned()), ..empty() },
        }
    }

    /// A message as its receiver reads it.
    pub(super) fn describe(handle: &AgentHandle, message: &Message) -> Done {
        let mut done = Done::host();
        if let Some(bytes) = handle.read(message.body()).allowed() {
            done.text(&bytes);
        }
        done.answers.set("taint", message.body().taint().name());
        done.answers.set("scope", message.body().scope().name());
        done.answers.set("from", message.from().id().as_str());
        done.answers.set("missed", message.missed());
        if message.missed() > 0 {
            done.note = Some(format!("{} ({} missed)", done.note.unwrap_or_default(), message.missed()));
        }
        done
    }

    fn publish(&mut self, by: &Actor, topic: &Address, body: &Body) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let body = self.body(by, body)?;
        let Ok(key) = topic.key() else {
            return Ok(Done::decided(&endpoint.malformed(Verb::Publish, Some(&body))).at(topic.to_string()));
        };
        let publication = endpoint.publish(&key, &body);
        let mut done = Done::decided(&publication.verdict).at(topic.to_string());
        if publication.verdict.is_allow() {
            done.answers.set("fanout", publication.fanout);
            done.answers.set("skipped", publication.skipped);
            done.answers.set("dropped", publication.dropped);
            done.note = Some(format!(
                "fanout {}, skipped {}, dropped {}",
                publication.fanout, publication.skipped, publication.dropped
            ));
        }
        Ok(done)
    }

    fn subscribe(&mut self, by: &Actor, topic: &Address, name: &str) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let Ok(key) = topic.key() else {
            return Ok(Done::decided(&endpoint.malformed(Verb::Subscribe, None)).at(topic.to_string()));
        };
        let subscribed = endpoint.subscribe(&key);
        let done = Done::decided(&subscribed.verdict()).at(topic.to_string());
        if let Some(subscription) = subscribed.allowed() {
            self.channels.subscriptions.insert(name.to_owned(), (subscription, by.clone()));
        }
        Ok(done)
    }

    fn unsubscribe(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let Some((subscription, owner)) = self.channels.subscriptions.get_mut(name) else {
            return Err(Stop::missing(format!("there is no subscription \"{name}\"")));
        };
        if *by != Actor::Host && owner != by {
            return Err(not_in_hand("inbox", name, owner));
        }
        let topic = subscription.topic().to_string();
        Ok(Done::decided(&subscription.unsubscribe()).at(topic))
    }

    fn open(&mut self, at: &Address) -> Result<Done, Stop> {
        Ok(match at.key() {
            Ok(key) => {
                self.channels.bus.open(&key);
                Done::host()
            }
            Err(error) => {
                let mut done = Done::default();
                done.answers.set("verdict", "deny");
                done.answers.set("reason", fak_abi::Reason::Malformed.name());
                done.note = Some(error.to_string());
                done
            }
        }
        .at(at.to_string()))
    }

    fn bind(&mut self, by: &Actor, at: &Address) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let Ok(key) = at.key() else {
            return Ok(Done::decided(&endpoint.malformed(Verb::Bind, None)).at(at.to_string()));
        };
        let bound = endpoint.bind(&key);
        let done = Done::decided(&bound.verdict()).at(at.to_string());
        if let Some(binding) = bound.allowed() {
            // A scenario ends a binding by `unbind` or `detach` alone.
            binding.keep();
        }
        Ok(done)
    }

    fn unbind(&mut self, by: &Actor, at: &Address) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let verdict = match at.key() {
            Ok(key) => endpoint.unbind(&key),
            Err(_) => endpoint.malformed(Verb::Unbind, None),
        };
        Ok(Done::decided(&verdict).at(at.to_string()))
    }

    /// The held messages an agent may look into, and what they say.
    pub(super) fn held_messages(&mut self, by: &Actor) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let listed = endpoint.held();
        let mut done = Done::decided(&listed.verdict());
        if let Outcome::Allow { value, .. } = listed {
            let mut texts = Vec::with_capacity(value.len());
            for message in &value {
                if let Outcome::Allow { value: bytes, .. } = endpoint.read_held(message) {
                    texts.push(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
            done.note = Some(format!("{} held", value.len()));
            done.answers.set("count", value.len());
            done.answers.set("texts", texts);
        }
        Ok(done)
    }

    /// The tallies of the bus.
    pub(super) fn stats(&self) -> Done {
        let tally = self.channels.bus.stats();
        let mut done = Done::host();
        let mut words = Vec::new();
        for (name, count) in [
            ("sent", tally.sent),
            ("received", tally.received),
            ("denied", tally.denied),
            ("held", tally.held),
            ("dropped", tally.dropped),
            ("skipped", tally.skipped),
            ("dead", tally.dead),
            ("queued", tally.queued),
        ] {
            words.push(format!("{name} {count}"));
            done.answers.set(name, count);
        }
        done.note = Some(words.join(", "));
        done
    }
}
