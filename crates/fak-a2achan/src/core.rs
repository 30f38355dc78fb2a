//! The state that a bus, its rung and its endpoints share: which mailboxes there are, whose keys
//! are whose, and where messages end up that cannot be delivered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use dashmap::DashMap;
use fak_abi::{
    Address, ChannelKey, DriverLink, Event, EventKind, Host, Id, InstallError, Locale, OwnedAddress,
    Principal, Reason, Refusal, Timestamp, Verdict,
};
use parking_lot::Mutex;

use crate::account::{Account, InboxName};
use crate::config::{Addressing, BusConfig};
use crate::correction::Book;
use crate::dead::Shelf;
use crate::delivery::End;
use crate::driver::long_digest;
use crate::entry::Entry;
use crate::hash::Names;
use crate::held::HeldMessage;
use crate::mailbox::{Fate, Mailbox, Purge, Settlement, Shape};
use crate::message::{Cause, DeadLetter};
use crate::request::Rings;
use crate::sites;
use crate::stats::Tally;
use crate::sync::Line;
use crate::topic::Topic;

/// The name that verdicts of this crate carry.
pub(crate) const GATE: &str = "a2achan/gate";

/// What the keys that belong to a principal beside its own begin with (§4.6, §4.9). A colon and its id follow, or,
/// where that would be too long for a key, `#` and the id's digest.
pub(crate) const CORRECTION: &str = "correction";
pub(crate) const ACK: &str = "ack";
pub(crate) const STATUS: &str = "status";

/// See the module.
pub(crate) struct Core {
    pub(crate) config: BusConfig,
    link: OnceLock<DriverLink>,
    pub(crate) boxes: DashMap<ChannelKey, Arc<Mailbox>, Names>,
    pub(crate) topics: DashMap<ChannelKey, Arc<Topic>, Names>,
    pub(crate) accounts: DashMap<Id, Arc<Account>, Names>,
    traces: DashMap<Id, Arc<Account>, Names>,
    /// Those whose ids are too long for some key beside their own, by the digests of these.
    long: DashMap<String, Arc<Account>, Names>,
    /// Windows that were minted, with their minters.
    pub(crate) windows: DashMap<Id, Arc<Principal>, Names>,
    pub(crate) dead: Mutex<Shelf<DeadLetter>>,
    pub(crate) held: Mutex<Shelf<HeldMessage>>,
    /// Idempotency keys, by principal id (§4.13).
    pub(crate) memories: DashMap<Id, Arc<Mutex<crate::idempotency::Memory>>, Names>,
    /// Keys that were opened, bound, attached or subscribed to, ever, where addressing is declared:
    /// what is known stays known (§4.3 row 9).
    known: DashMap<ChannelKey, (), Names>,
    /// Statuses and corrections (§4.9).
    pub(crate) book: Mutex<Book>,
    /// Blocking requests (§4.7).
    pub(crate) rings: Mutex<Rings>,
    /// Tallies of what is no more, and of what has no mailbox.
    pub(crate) past: Mutex<Tally>,
    denied: Line<AtomicU64>,
    closed: AtomicBool,
}

/// Whose key it is, beyond being bound.
pub(crate) enum Ownership {
    /// Nobody's.
    Free,
    /// The session of an attached principal: bound to it (§4.6).
    Session(Arc<Principal>),
    /// A principal's own id, or a window it minted: reserved for it.
    Reserved(Arc<Principal>),
    /// A correction, ack or status key of an attached principal: for that act only.
    ActOnly(Arc<Principal>),
}

impl Core {
    pub(crate) fn new(config: BusConfig) -> Self {
        let limits = &config.limits;
        let shelf = |limit: usize, per_sender: u32| {
            usize::try_from(per_sender).map(|n| (limit, n)).unwrap_or((limit, limit))
        };
        let (dead, held) = (shelf(config.dead_letters, limits.dead_letters), shelf(config.held, limits.held));
        let names = Names::seeded();
        Self {
            link: OnceLock::new(),
            boxes: DashMap::with_hasher(names),
            topics: DashMap::with_hasher(names),
            accounts: DashMap::with_hasher(names),
            traces: DashMap::with_hasher(names),
            long: DashMap::with_hasher(names),
            windows: DashMap::with_hasher(names),
            memories: DashMap::with_hasher(names),
            known: DashMap::with_hasher(names),
            dead: Mutex::new(Shelf::new(dead.0, dead.1)),
            held: Mutex::new(Shelf::new(held.0, held.1)),
            book: Mutex::default(),
            rings: Mutex::default(),
            past: Mutex::default(),
            denied: Line::new(AtomicU64::new(0)),
            closed: AtomicBool::new(false),
            config,
        }
    }

    pub(crate) fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.link.set(link).map_err(|_| InstallError(GATE))
    }

    pub(crate) fn link(&self) -> Option<&DriverLink> {
        self.link.get()
    }

    pub(crate) fn host(&self) -> Option<Arc<dyn Host>> {
        self.link()?.host()
    }

    /// The present; the epoch for a bus without a kernel, on which nothing happens.
    pub(crate) fn now(&self) -> Timestamp {
        self.link().map_or_else(Timestamp::default, |link| link.clock().now())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// True for the first caller.
    pub(crate) fn set_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// An act on the bus was refused.
    pub(crate) fn deny(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn denied(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    /// The account of an attached principal of this kernel.
    pub(crate) fn account(&self, principal: &Arc<Principal>) -> Option<Arc<Account>> {
        let account = self.accounts.get(principal.id())?;
        Arc::ptr_eq(account.principal(), principal).then(|| Arc::clone(&account))
    }

    pub(crate) fn enroll(&self, account: &Arc<Account>) {
        let principal = account.principal();
        self.accounts.insert(principal.id().clone(), Arc::clone(account));
        self.traces.insert(principal.trace().clone(), Arc::clone(account));
        if let Some(digest) = long_digest(principal.id()) {
            self.long.insert(digest, Arc::clone(account));
        }
    }

    pub(crate) fn strike(&self, principal: &Arc<Principal>) -> Option<Arc<Account>> {
        let is_own = |_: &Id, account: &Arc<Account>| Arc::ptr_eq(account.principal(), principal);
        if let Some(digest) = long_digest(principal.id()) {
            self.long.remove_if(&digest, |_, account| Arc::ptr_eq(account.principal(), principal));
        }
        self.traces.remove_if(principal.trace(), is_own);
        self.accounts.remove_if(principal.id(), is_own).map(|(_, account)| account)
    }

    fn attached(&self, id: &str) -> Option<Arc<Principal>> {
        self.accounts.get(id).map(|account| Arc::clone(account.principal()))
    }

    /// Whose key this is.
    pub(crate) fn ownership(&self, key: &ChannelKey) -> Ownership {
        let id = key.id();
        match key.locale() {
            Locale::Session => match self.traces.get(id) {
                Some(account) => Ownership::Session(Arc::clone(account.principal())),
                None => Ownership::Free,
            },
            Locale::Window => match self.windows.get(id).map(|minter| Arc::clone(&minter)) {
                Some(minter) => Ownership::Reserved(minter),
                None => self.attached(id).map_or(Ownership::Free, Ownership::Reserved),
            },
            Locale::InKernel => {
                if let Some(owner) = self.attached(id) {
                    return Ownership::Reserved(owner);
                }
                self.act_only(key).map_or(Ownership::Free, Ownership::ActOnly)
            }
        }
    }

    /// The principal of whose corrections, acknowledgements or statuses this is the key: it accepts
    /// that act alone, whether or not there is a mailbox (§4.9).
    #[inline]
    pub(crate) fn act_only(&self, key: &ChannelKey) -> Option<Arc<Principal>> {
        if key.locale() != Locale::InKernel {
            return None;
        }
        let of = |prefix: &&str| {
            let rest = key.id().strip_prefix(*prefix)?;
            if let Some(id) = rest.strip_prefix(':') {
                return self.attached(id);
            }
            let account = self.long.get(rest.strip_prefix('#')?)?;
            Some(Arc::clone(account.principal()))
        };
        [CORRECTION, ACK, STATUS].iter().find_map(of)
    }

    /// The sender's own key (§4.3): a private body may be sent there.
    pub(crate) fn is_own(
        &self,
        who: &Arc<Principal>,
        key: &ChannelKey,
        recipient: Option<&Arc<Principal>>,
    ) -> bool {
        match key.locale() {
            Locale::Session => key.id() == who.trace(),
            Locale::Window => {
                key.id() == who.id()
                    || self.windows.get(key.id()).is_some_and(|minter| Arc::ptr_eq(&minter, who))
            }
            // Bound by it, where the act resolves to itself.
            Locale::InKernel => {
                key.id() == who.id() || recipient.is_some_and(|recipient| Arc::ptr_eq(recipient, who))
            }
        }
    }

    /// Whom a send to a key without a mailbox resolves to (§2.5).
    pub(crate) fn session_owner(&self, key: &ChannelKey) -> Option<Arc<Principal>> {
        if key.locale() != Locale::Session {
            return None;
        }
        self.traces.get(key.id()).map(|account| Arc::clone(account.principal()))
    }

    /// The topic of a key, if anybody ever subscribed.
    pub(crate) fn topic(&self, key: &ChannelKey) -> Option<Arc<Topic>> {
        self.topics.get(key).map(|topic| Arc::clone(&topic))
    }

    pub(crate) fn find(&self, key: &ChannelKey) -> Option<Arc<Mailbox>> {
        self.boxes.get(key).map(|mailbox| Arc::clone(&mailbox))
    }

    /// The key is known from here on (§4.3 row 9), whatever becomes of whoever made it so.
    pub(crate) fn note_known(&self, key: &ChannelKey) {
        if self.config.addressing == Addressing::Declared && !self.known.contains_key(key) {
            self.known.insert(key.clone(), ());
        }
    }

    /// True if somebody ever made the key known (§4.3 row 9).
    pub(crate) fn is_known(&self, key: &ChannelKey) -> bool {
        self.known.contains_key(key)
            || self.boxes.contains_key(key)
            || self.topics.contains_key(key)
            || !matches!(self.ownership(key), Ownership::Free)
    }

    /// The mailbox of a key, made if `account` may make it.
    pub(crate) fn mailbox(&self, key: &ChannelKey, account: &Arc<Account>) -> Result<Arc<Mailbox>, Refusal> {
        if let Some(mailbox) = self.find(key) {
            return Ok(mailbox);
        }
        let refuse = |reason, site: &'static fak_abi::SiteInfo| Err(Refusal::new(reason, site.site()));
        if self.is_closed() {
            return refuse(Reason::Misroute, sites::CLOSED);
        }
        if self.act_only(key).is_some_and(|owner| !Arc::ptr_eq(&owner, account.principal())) {
            return refuse(Reason::TrustViolation, sites::ACT_ONLY);
        }
        if self.config.addressing == Addressing::Declared && !self.is_known(key) {
            return refuse(Reason::Misroute, sites::UNDECLARED);
        }
        if !account.mailboxes.take(account.limits().mailboxes) {
            return refuse(Reason::RateLimited, sites::MAILBOXES);
        }
        Ok(self.make(key, Some(account)))
    }

    /// Makes the mailbox of a key, unless it exists. `creator` has been charged for it.
    pub(crate) fn make(&self, key: &ChannelKey, creator: Option<&Arc<Account>>) -> Arc<Mailbox> {
        let mut made = false;
        // Ownership is looked up under the map's lock: attaching first enrolls, then visits the
        // mailboxes that exist, so one of the two sees the other.
        let mailbox = Arc::clone(&self.boxes.entry(key.clone()).or_insert_with(|| {
            made = true;
            let to = Arc::new(OwnedAddress::Channel(key.clone()));
            let mailbox = Mailbox::new(to, self.shape(creator.cloned()));
            match self.ownership(key) {
                Ownership::Session(owner) => drop(mailbox.reserve_for(&owner, true)),
                Ownership::Reserved(owner) => drop(mailbox.reserve_for(&owner, false)),
                Ownership::ActOnly(owner) => {
                    mailbox.set_act_only();
                    drop(mailbox.reserve_for(&owner, false));
                }
                Ownership::Free => {}
            }
            Arc::new(mailbox)
        }));
        if !made && let Some(creator) = creator {
            creator.mailboxes.give();
        }
        if self.is_closed() {
            // Closing may have passed before this one was listed.
            self.bury(mailbox.end(End::Close), Cause::End(End::Close));
        }
        mailbox
    }

    /// An inbox of `of` alone, made if there is none and charged to `maker` then. On a closed bus it
    /// has ended: closing may have passed before it was listed.
    pub(crate) fn own_inbox(
        &self,
        of: &Account,
        name: InboxName,
        maker: &Arc<Account>,
        to: impl FnOnce() -> OwnedAddress,
    ) -> Option<Arc<Mailbox>> {
        let inbox = of.inbox(name, maker, || {
            let inbox = Mailbox::new(Arc::new(to()), self.private(Arc::clone(maker)));
            drop(inbox.reserve_for(of.principal(), true));
            inbox
        })?;
        if self.is_closed() {
            self.bury(inbox.end(End::Close), Cause::End(End::Close));
        }
        Some(inbox)
    }

    /// How a mailbox under a key is made.
    pub(crate) fn shape(&self, creator: Option<Arc<Account>>) -> Shape {
        let (capacity, share) = (self.config.capacity as u64, self.config.share());
        Shape { capacity, share, creator, private: false }
    }

    /// How an inbox of one principal is made.
    fn private(&self, maker: Arc<Account>) -> Shape {
        Shape { private: true, ..self.shape(Some(maker)) }
    }

    /// Forgets a mailbox that has ended; its tallies are kept.
    pub(crate) fn forget(&self, key: &ChannelKey, mailbox: &Arc<Mailbox>) {
        if self.boxes.remove_if(key, |_, listed| Arc::ptr_eq(listed, mailbox)).is_some() {
            self.retire(mailbox);
        }
    }

    /// Forgets a mailbox that is of no use to anybody, if whoever it counts for is gone: an act that a
    /// detach overtook may have made it.
    pub(crate) fn tidy(&self, key: &ChannelKey) {
        let Some(mailbox) = self.find(key) else { return };
        if mailbox.creator().is_some_and(|creator| !creator.principal().is_attached()) {
            // What has had its time is nothing to keep it for.
            self.sweep(&mailbox);
            if mailbox.retire() {
                self.forget(key, &mailbox);
            }
        }
    }

    /// Keeps the tallies of a mailbox that is no more, and gives its place back.
    pub(crate) fn retire(&self, mailbox: &Mailbox) {
        *self.past.lock() += mailbox.close_books();
        if let Some(creator) = mailbox.creator() {
            creator.mailboxes.give();
        }
    }

    /// A message that was taken is not to go back. No lock may be held.
    pub(crate) fn settle(&self, mailbox: &Mailbox, entry: &Entry, fate: Fate) {
        let Settlement { wakes, late } = mailbox.settle(entry, fate);
        wakes.into_iter().for_each(Waker::wake);
        if let Some(fate) = late {
            fate.rebook(&mut self.past.lock());
        }
    }

    /// A message that was taken goes back to its place, if there still is one (§4.11). No lock may be held.
    pub(crate) fn put_back(&self, mailbox: &Mailbox, entry: Entry) {
        match mailbox.put_back(entry) {
            Ok(purge) => self.bury(purge, Cause::Bind),
            Err((entry, cause)) => {
                self.settle(mailbox, &entry, Fate::Dead);
                self.dead_letters(vec![entry], cause);
            }
        }
    }

    /// Wakes whom a purge names, and makes dead letters of what it holds. No lock may be held.
    pub(crate) fn bury(&self, mut purge: Purge, cause: Cause) {
        self.unlease(std::mem::take(&mut purge.unleased));
        purge.wake();
        self.dead_letters(purge.entries, cause);
        self.dead_letters(purge.bound, Cause::Bind);
    }

    /// Makes dead letters of what has expired in a mailbox, so that it stands in nobody's way. True if there was any.
    pub(crate) fn sweep(&self, mailbox: &Mailbox) -> bool {
        if !mailbox.is_timed() {
            return false;
        }
        let purge = mailbox.expire(self.now());
        let found = !purge.entries.is_empty();
        self.bury(purge, Cause::Expire);
        found
    }

    /// As [`Core::sweep`], wherever this principal has something queued. Linear in these places.
    pub(crate) fn sweep_of(&self, sender: &Account) -> bool {
        sender.queued_at().into_iter().fold(false, |found, key| {
            let mailbox = self.find(&key).is_some_and(|mailbox| self.sweep(&mailbox));
            let topic = self.topic(&key).is_some_and(|topic| self.sweep_topic(&topic));
            found | mailbox | topic
        })
    }

    fn sweep_topic(&self, topic: &Topic) -> bool {
        let expired = if topic.is_timed() { topic.expire(self.now()) } else { Vec::new() };
        let found = !expired.is_empty();
        self.dead_copies(expired, Cause::Expire);
        found
    }

    /// As [`Core::sweep`], for every mailbox and topic: what the host is told is as of now.
    pub(crate) fn sweep_all(&self) {
        let timed: Vec<_> =
            self.boxes.iter().filter(|it| it.value().is_timed()).map(|it| Arc::clone(it.value())).collect();
        for mailbox in timed {
            self.sweep(&mailbox);
        }
        let timed: Vec<_> =
            self.topics.iter().filter(|it| it.value().is_timed()).map(|it| Arc::clone(it.value())).collect();
        for topic in timed {
            self.sweep_topic(&topic);
        }
    }

    pub(crate) fn dead_letters(&self, entries: Vec<Entry>, cause: Cause) {
        if entries.is_empty() {
            return;
        }
        let host = self.host();
        let at = self.now();
        for entry in entries {
            if let Some(host) = &host {
                host.note(&Event {
                    seq: entry.seq,
                    principal: Some(entry.route.from()),
                    address: entry.route.to().view(),
                    digest: Some(entry.body.digest()),
                    label: Some((entry.body.taint(), entry.body.scope())),
                    cause: cause.name(),
                    ..Event::new(EventKind::DeadLetter, at)
                });
            }
            let from = Arc::clone(entry.route.from());
            let (id, to) = (from.id().clone(), entry.route.to().clone());
            let letter = DeadLetter { from, to, seq: entry.seq, body: entry.body, cause };
            self.dead.lock().put(&id, letter);
        }
    }

    /// Tells observers and audit that a message is held (§4.4).
    pub(crate) fn note_held(
        &self,
        entry: &Entry,
        receiver: &Principal,
        address: Address<'_>,
        verdict: &Verdict,
    ) {
        if let Some(host) = self.host() {
            host.note(&Event {
                seq: entry.seq,
                principal: Some(receiver),
                address,
                digest: Some(entry.body.digest()),
                label: Some((entry.body.taint(), entry.body.scope())),
                verdict: Some(verdict),
                ..Event::new(EventKind::Hold, self.now())
            });
        }
    }
}
