//! The acts that span more than one message: leased receives, requests and their replies, windows (§4.4, §4.7, §4.8).

use std::{collections::HashMap, time::Duration};

use fak_a2achan::{Delivery, End, Endpoint, LeasedMessage, Message, PendingReply, RequestOptions};
use fak_abi::{Act as Verb, Clock as _, Id, Outcome, Rider};

use super::{
    channel::{no_inbox, not_in_hand},
    done::{Done, Stop},
    world::{Kept, World},
};
use crate::act::{Actor, Address, Body, Inbox};

/// What steps have kept of exchanges that are not over.
#[derive(Default)]
pub(super) struct Exchanges {
    /// Guards by name; one that is gone was consumed or dropped.
    leased: HashMap<String, Option<LeasedMessage>>,
    requests: HashMap<String, (PendingReply, Actor)>,
    windows: HashMap<String, Id>,
}

impl World {
    pub(super) fn recv_leased(
        &mut self,
        by: &Actor,
        from: &Inbox,
        name: &str,
        deadline_ms: Option<u64>,
    ) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let deadline = deadline_ms.map(Duration::from_millis);
        let (delivery, at) = match from {
            Inbox::At(at) => match at.key() {
                Ok(key) => (endpoint.try_recv_leased(&key, deadline), at.to_string()),
                Err(_) => {
                    let refused = endpoint.malformed(Verb::RecvLeased, None);
                    return Ok(Done::decided(&refused).at(at.to_string()));
                }
            },
            Inbox::Named(inbox) => self.lease_inbox(by, &endpoint, inbox, deadline)?,
        };
        Ok(match delivery {
            Delivery::Message(guard) => {
                let mut done = Self::describe(endpoint.agent(), guard.message());
                done.yields = Some(Kept::Ref(guard.message().body().clone()));
                self.exchanges.leased.insert(name.to_owned(), Some(guard));
                done
            }
            other => Self::nothing_received(&other),
        }
        .at(at))
    }

    /// From a subscription, a request's reply inbox, or the member's inbox of a group.
    fn lease_inbox(
        &mut self,
        by: &Actor,
        endpoint: &Endpoint,
        inbox: &str,
        deadline: Option<Duration>,
    ) -> Result<(Delivery<LeasedMessage>, String), Stop> {
        if let Some(subscription) = self.subscription(by, inbox)? {
            return Ok((subscription.try_recv_leased(deadline), inbox.to_owned()));
        }
        if let Some((pending, owner)) = self.exchanges.requests.get_mut(inbox) {
            if owner != by {
                return Err(not_in_hand("request", inbox, owner));
            }
            let at = pending.key().to_string();
            return Ok((pending.try_take_leased(deadline), at));
        }
        if let Some(group) = self.waves.groups.get(inbox) {
            let delivery = endpoint.try_recv_group_leased(group.group().name(), deadline);
            return Ok((delivery, format!("group:{inbox:?}")));
        }
        Err(no_inbox(inbox))
    }

    /// `consume` and `drop`: settling a guard is no act (§2.8).
    pub(super) fn settle(&mut self, name: &str, consume: bool) -> Result<Done, Stop> {
        let Some(slot) = self.exchanges.leased.get_mut(name) else {
            return Err(Stop::missing(format!("no message is leased as \"{name}\"")));
        };
        Ok(match slot.take() {
            Some(guard) if consume => Done::decided(&guard.ack()),
            Some(guard) => {
                drop(guard);
                Done::host()
            }
            None => {
                let mut done = Done::default();
                done.answers.set("verdict", "deny");
                done.answers.set("reason", fak_abi::Reason::Misroute.name());
                done.note = Some("the guard is spent".to_owned());
                done
            }
        })
    }

    pub(super) fn request(
        &mut self,
        by: &Actor,
        (to, body): (&Address, &Body),
        name: &str,
        (blocking, deadline_ms): (bool, Option<u64>),
    ) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let body = self.body(by, body)?;
        let Ok(key) = to.key() else {
            return Ok(Done::decided(&endpoint.malformed(Verb::Request, Some(&body))).at(to.to_string()));
        };
        let rider = Rider {
            deadline: deadline_ms.map(|ms| self.clock.now().after(Duration::from_millis(ms))),
            ..Rider::default()
        };
        let options = RequestOptions { blocking, rider: Some(&rider) };
        let sent = endpoint.request(&key, &body, &options);
        let done = Done::decided(&sent.verdict()).at(to.to_string());
        if let Outcome::Allow { value, .. } = sent {
            self.exchanges.requests.insert(name.to_owned(), (value, by.clone()));
        }
        Ok(done)
    }

    pub(super) fn reply(&mut self, by: &Actor, to_request: &str, body: &Body) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let body = self.body(by, body)?;
        let answer = |request: &Message| {
            Ok(Done::decided(&endpoint.reply(request, &body)).at(request.from().id().as_str()))
        };
        if let Some(Some(guard)) = self.exchanges.leased.get(to_request) {
            return answer(guard.message());
        }
        match self.kept(to_request).map_err(Stop::missing)? {
            Kept::Message(request) => answer(request),
            _ => Err(Stop::missing(format!("\"{to_request}\" is no message that was received"))),
        }
    }

    /// The answer to a request, if it is there; it is never waited for.
    pub(super) fn answer(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let Some((pending, owner)) = self.exchanges.requests.get_mut(name) else {
            return Err(Stop::missing(format!("no request is open as \"{name}\"")));
        };
        if *by != Actor::Host && owner != by {
            return Err(not_in_hand("request", name, owner));
        }
        let (owner, at) = (owner.clone(), pending.key().to_string());
        let delivery = pending.try_take();
        let timeout = matches!(delivery, Delivery::End(End::Timeout));
        let came = matches!(delivery, Delivery::Message(_));
        let handle = self.handle(&owner)?;
        let mut done = self.received(&handle, delivery).at(at);
        done.answers.set("timeout", timeout);
        done.answers.set("empty", !came);
        Ok(done)
    }

    /// Whether a name stands for an open request.
    pub(super) fn is_request(&self, name: &str) -> bool {
        self.exchanges.requests.contains_key(name)
    }

    pub(super) fn compact(&mut self, by: &Actor, body: &Body, name: &str) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let body = self.body(by, body)?;
        let compacted = endpoint.compact(&body, &[]);
        let done = Done::decided(&compacted.verdict());
        if let Outcome::Allow { value, .. } = compacted {
            self.exchanges.windows.insert(name.to_owned(), value);
        }
        Ok(done)
    }

    /// Resumes a window by the name a `compact` gave it, or by a raw id: nobody can guess one.
    pub(super) fn resume(&mut self, by: &Actor, window: &str) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let id = match self.exchanges.windows.get(window) {
            Some(id) => id.clone(),
            None => match Id::new(window) {
                Ok(id) => id,
                Err(_) => return Ok(Done::decided(&endpoint.malformed(Verb::Resume, None))),
            },
        };
        let delivery = endpoint.resume(&id);
        Ok(self.received(endpoint.agent(), delivery).at(format!("window:{window:?}")))
    }
}
