//! Whose keys are whose, and what attaching, detaching and closing change (§2.3, §4.6, §4.11).

use fak_abi::Reason;

use super::channels::{Key, Lease, Msg, Own};
use super::host::Act;
use super::{Model, Scope, Who};

impl Model {
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

    /// §4.6. `waiting`: who waits at the key.
    pub(crate) fn bind(&mut self, who: Who, key: &Key, waiting: &[Who]) -> Result<u64, Reason> {
        self.admit(Act::Bind, who, Some(key), None)?;
        match self.owner_of(key) {
            Own::Session(owner) | Own::Reserved(owner) if owner != who => return Err(Reason::TrustViolation),
            Own::OneActOnly(owner) if owner != who => return Err(Reason::TrustViolation),
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
        self.known.insert(key.clone());
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

    /// Everything that has a slot there dies. A request that was leased is nobody's to answer any more, and nobody is waited
    /// for (§4.7).
    pub(super) fn purge_all(&mut self, key: &Key, cause: &'static str) {
        let Some(mailbox) = self.boxes.get_mut(key) else { return };
        let mut dead = std::mem::take(&mut mailbox.queue);
        for Lease { msg, holder, .. } in std::mem::take(&mut mailbox.leased) {
            if let Some(at) = msg.request {
                self.unnote_receiver(at, holder);
                self.asked.get_mut(at).into_iter().for_each(|asked| asked.returns = msg.returns + 1);
            }
            dead.push(msg);
        }
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
        self.known.extend(own.iter().chain([&session]).cloned());
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

    /// True if a mailbox is of no use to anybody, and whoever it counts for is gone.
    pub(crate) fn is_unused(&self, key: &Key) -> bool {
        self.boxes.get(key).is_some_and(|mailbox| {
            mailbox.creator.is_some_and(|creator| !self.is_live(creator))
                && mailbox.queue.is_empty()
                && mailbox.leased.is_empty()
                && key.locale != "inbox"
                && mailbox.binder.is_none()
                && mailbox.reserved.is_none()
                && !mailbox.kept
        })
    }

    /// §2.3: what detaching changes. The mailboxes that have no use any more, unless somebody waits there.
    pub(crate) fn detached(&mut self, who: Who) -> Vec<Key> {
        let mut unused = Vec::new();
        self.sweep();
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
            if key.locale == "inbox" && bound {
                // What was promised there is lost, but its sender holds on to it.
                let lost = self.boxes.get_mut(&key).map(|inbox| std::mem::take(&mut inbox.promised));
                self.orphans.extend(lost.unwrap_or_default());
                self.forget_box(&key);
                continue;
            }
            // What came back from whoever is gone may have had its time.
            let now = self.now;
            self.purge(&key, "expired", |_, msg| msg.expires.is_some_and(|at| now >= at));
            if self.is_unused(&key) {
                unused.push(key);
            }
        }
        self.forget_steering(who);
        self.forget_waves(who);
        self.forget_pooled(who);
        // What it had held for a human is spent (§2.3).
        let own = self.record.held.iter_mut().filter(|held| held.actor == who && held.outcome.is_none());
        own.for_each(|held| held.outcome = Some("APPROVAL_REQUIRED"));
        self.windows.iter_mut().filter(|window| window.minter == who).for_each(|window| window.over = true);
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
}
