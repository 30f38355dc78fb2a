//! Rows 0 to 7 of §4.3, and the capability rungs of the other acts (§2.8).

use fak_abi::Reason;

use super::channels::{Key, Own};
use super::host::{Act, Ledger};
use super::{Body, Cap, Model, Scope, Who};

impl Model {
    pub(super) fn floor(
        &self,
        act: Act,
        who: Who,
        key: Option<&Key>,
        body: Option<&Body>,
    ) -> Result<(), Reason> {
        self.audit_says()?;
        if !self.is_live(who) || !self.holds(who, act.cap()) {
            return Err(Reason::DefaultDeny);
        }
        let (Cap::Send, Some(body)) = (act.cap(), body) else { return Ok(()) };
        if !self.flows(body, who) {
            return Err(Reason::TrustViolation);
        }
        let stays_home = act != Act::Publish && key.is_some_and(|key| self.is_own_key(who, key));
        if body.scope == Scope::Agent && !stays_home {
            return Err(Reason::TrustViolation);
        }
        if !body.pooled && body.text.len() > self.setup.max_body {
            return Err(Reason::Oversize);
        }
        Ok(())
    }

    /// §3.6: no act is decided that could not be recorded.
    pub(crate) const fn audit_says(&self) -> Result<(), Reason> {
        match self.host.audit {
            Ledger::Fine => Ok(()),
            Ledger::Full => Err(Reason::RateLimited),
            Ledger::Failed => Err(Reason::DefaultDeny),
        }
    }

    /// The floor and the host's rungs. The body that goes on, if it is another.
    pub(crate) fn admit(
        &self,
        act: Act,
        who: Who,
        key: Option<&Key>,
        body: Option<&Body>,
    ) -> Result<Option<Body>, Reason> {
        let sends = matches!(act, Act::Send | Act::Request | Act::Compact);
        let to = key.filter(|_| sends).and_then(|key| self.resolved(key));
        self.admit_to(act, who, to, key, body)
    }

    /// The same for acts that know whom they are for.
    pub(crate) fn admit_to(
        &self,
        act: Act,
        who: Who,
        to: Option<Who>,
        key: Option<&Key>,
        body: Option<&Body>,
    ) -> Result<Option<Body>, Reason> {
        self.floor(act, who, key, body)?;
        let address = key.map_or_else(String::new, Key::text);
        let changed = self.fold(act, who, to, &address, body)?;
        if let Some(changed) = &changed {
            self.floor(act, who, key, Some(changed))?;
        }
        Ok(changed)
    }

    /// The same for a reply, whose recipient is the requester (§4.7).
    pub(crate) fn admit_reply(
        &self,
        who: Who,
        requester: Who,
        key: &Key,
        body: &Body,
    ) -> Result<Option<Body>, Reason> {
        let own = Key {
            locale: "session",
            id: self.agent(who).map(|agent| agent.trace.clone()).unwrap_or_default(),
        };
        let away = Key { locale: "in_kernel", id: "elsewhere".to_owned() };
        let home = if requester == who { &own } else { &away };
        self.floor(Act::Reply, who, Some(home), Some(body))?;
        let changed = self.fold(Act::Reply, who, Some(requester), &key.text(), Some(body))?;
        if let Some(changed) = &changed {
            self.floor(Act::Reply, who, Some(home), Some(changed))?;
        }
        Ok(changed)
    }

    /// The same for acts that are addressed to no channel.
    pub(crate) fn admit_at(
        &self,
        act: Act,
        who: Who,
        address: &str,
        body: Option<&Body>,
    ) -> Result<Option<Body>, Reason> {
        self.floor(act, who, None, body)?;
        self.fold(act, who, None, address, body)
    }

    /// §4.3, *own key*.
    fn is_own_key(&self, who: Who, key: &Key) -> bool {
        let Some(agent) = self.agent(who) else { return false };
        match key.locale {
            "session" => agent.trace == key.id,
            "window" => agent.id == key.id || self.minter(key) == Some(who),
            _ => agent.id == key.id || self.boxes.get(key).is_some_and(|mailbox| mailbox.binder == Some(who)),
        }
    }

    /// §4.6: whose key this is while nobody has bound it.
    pub(crate) fn owner_of(&self, key: &Key) -> Own {
        match key.locale {
            "session" => self.session(&key.id).map_or(Own::Nobody, Own::Session),
            "window" => {
                self.minter(key).or_else(|| self.attached(&key.id)).map_or(Own::Nobody, Own::Reserved)
            }
            _ => {
                if let Some(who) = self.attached(&key.id) {
                    return Own::Reserved(who);
                }
                let special = ["correction:", "ack:", "status:"]
                    .iter()
                    .filter_map(|prefix| key.id.strip_prefix(prefix));
                special.filter_map(|id| self.attached(id)).next().map_or(Own::Nobody, Own::OneActOnly)
            }
        }
    }
}
