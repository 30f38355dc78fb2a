//! Receiving (§4.4): fold, take the oldest message that may flow here, screen it with no lock
//! held, then the books. Waiting for one is in `wait`.

mod wait;

use std::sync::Arc;
use std::task::{Context, Waker};

use fak_abi::{
    Act, Address, Booking, ChannelKey, Pass, Permit, Reason, Rider, SiteInfo, Tool, ToolCall, Verdict,
    VerdictKind,
};

use crate::core::{GATE, Ownership};
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::entry::Entry;
use crate::held::HeldMessage;
use crate::mailbox::{Fate, Found, Mailbox, Quick, Seek, Sought, Terms, Try, WaitState};
use crate::message::{Cause, HeldNotice, Message};
use crate::send::refusal;
use crate::sites;

pub(crate) use wait::Receiving;

/// A receive, before it is known whether there is anything.
#[derive(Clone, Copy)]
pub(crate) struct Incoming<'a> {
    pub(crate) act: Act,
    pub(crate) address: Address<'a>,
    pub(crate) rider: Option<&'a Rider>,
    pub(crate) lease: Option<&'a Terms>,
}

/// What came out of a mailbox, with the token of its lease (0 for none).
type Taken = (Entry, u64);

impl Endpoint {
    /// Receives a message if one is there (§4.4). An attempt that finds nothing is an allowed act.
    pub fn try_recv(&self, key: &ChannelKey) -> Delivery {
        let mailbox = self.core().find(key);
        self.take_now(key, mailbox.as_ref())
    }

    /// One attempt at a mailbox that is at hand.
    #[inline]
    pub(crate) fn take_now(&self, key: &ChannelKey, mailbox: Option<&Arc<Mailbox>>) -> Delivery {
        if let Some(at) = mailbox
            && self.is_free(at)
        {
            let call = ToolCall::new(self.agent(), Act::Recv).address(Address::Channel(key));
            match self.pass(&call) {
                Pass::Allow(_) => match at.pop(self.me(), Try::Requests) {
                    Quick::Entry(entry, None) => {
                        return Delivery::Message(Message::new(entry, self.me(), 0));
                    }
                    Quick::Entry(entry, wake) => return self.wake_and_hand_over(entry, wake),
                    Quick::Trial(entry) => return self.hand_over_request(at, entry),
                    Quick::Empty => return Delivery::Empty,
                    Quick::Look => {}
                },
                Pass::Refuse(verdict) => return Delivery::Refuse(verdict),
                Pass::Closely => {
                    if let Some(delivery) = self.take_booked(&call, at) {
                        return delivery;
                    }
                }
            }
        }
        self.take(mailbox, &Incoming::plain(key)).0
    }

    /// As a plain receive on a kernel that keeps an audit log and nothing else: the entry is all that
    /// is left to settle (§3.6). `None` says only that a closer look is needed.
    #[inline(never)]
    fn take_booked(&self, call: &ToolCall<'_>, mailbox: &Mailbox) -> Option<Delivery> {
        let link = self.account().and(self.core().link())?;
        let due = match self.agent().gate().book(call, link.key()) {
            Booking::Allow(due) => due,
            Booking::Refuse(verdict) => return Some(Delivery::Refuse(self.denied(verdict))),
            Booking::Closely => return None,
        };
        match mailbox.pop(self.me(), Try::Requests) {
            Quick::Entry(entry, wake) => {
                // Before anybody is woken: what foreign code does comes after the entry.
                let _ = due.allow(entry.seq);
                wake.into_iter().for_each(Waker::wake);
                Some(Delivery::Message(Message::new(entry, self.me(), 0)))
            }
            Quick::Trial(entry) if self.note_handed(&entry) => {
                let _ = due.allow(entry.seq);
                self.core().settle(mailbox, &entry, Fate::Received);
                Some(Delivery::Message(Message::new(entry, self.me(), 0)))
            }
            Quick::Trial(entry) => {
                self.core().put_back(mailbox, entry);
                let refusal = refusal(Reason::LeaseHeld, sites::RING);
                Some(Delivery::Refuse(self.denied(due.refuse(refusal, GATE))))
            }
            Quick::Empty => {
                let _ = due.allow(0);
                Some(Delivery::Empty)
            }
            Quick::Look => None,
        }
    }

    fn seek<'a>(&'a self, mailbox: &Mailbox, incoming: &Incoming<'a>) -> Seek<'a> {
        let now = mailbox.is_timed().then(|| self.core().now());
        let ask = self.has_edges() && !mailbox.is_private();
        Seek { reader: self.me(), now, after: 0, ask, returns: None, lease: incoming.lease }
    }

    /// Looks until it is clear what there is. Where a topology is installed it is asked between
    /// looks, with no lock held (§6.9). `true`: something lacked an edge.
    fn look(
        &self,
        mailbox: &Mailbox,
        incoming: &Incoming<'_>,
        mut wait: Option<(&mut WaitState, &mut Context<'_>)>,
    ) -> (Sought, bool) {
        let mut seek = self.seek(mailbox, incoming);
        let mut unlinked = false;
        loop {
            let wait = wait.as_mut().map(|(state, cx)| (&mut **state, cx.waker()));
            let mut sought = mailbox.seek(&seek, wait);
            self.settle_sought(&mut sought);
            match &sought.found {
                Found::Candidate(seq, from) => {
                    seek.returns.get_or_insert(sought.returns);
                    if self.agent().gate().may_hand(from, self.me()) {
                        let found = mailbox.take(*seq, &seek);
                        if !matches!(found, Found::Nothing) {
                            sought.found = found;
                            return (sought, unlinked);
                        }
                        // Somebody was faster; what is behind it is still to be asked about.
                    } else {
                        unlinked = true;
                    }
                    seek.after = *seq;
                }
                Found::Again => (seek.after, seek.returns) = (0, None),
                _ => return (sought, unlinked),
            }
        }
    }

    /// Acts on what a look did besides finding: no lock is held any more.
    #[inline]
    fn settle_sought(&self, sought: &mut Sought) {
        if !sought.unleased.is_empty() {
            self.core().unlease(std::mem::take(&mut sought.unleased));
        }
        sought.wakes.drain(..).for_each(Waker::wake);
        if !sought.expired.is_empty() {
            self.core().dead_letters(std::mem::take(&mut sought.expired), Cause::Expire);
        }
        if !sought.worn.is_empty() {
            self.core().dead_letters(std::mem::take(&mut sought.worn), Cause::Wear);
        }
        if !sought.bound.is_empty() {
            self.core().dead_letters(std::mem::take(&mut sought.bound), Cause::Bind);
        }
    }

    /// Why this agent may not receive at a key that has no mailbox yet, if it may not.
    pub(crate) fn not_mine(&self, key: &ChannelKey) -> Option<&'static SiteInfo> {
        match self.core().ownership(key) {
            Ownership::Session(owner) | Ownership::Reserved(owner) => {
                (!Arc::ptr_eq(&owner, self.me())).then_some(sites::NOT_RECEIVER)
            }
            Ownership::ActOnly(owner) => (!Arc::ptr_eq(&owner, self.me())).then_some(sites::ACT_ONLY),
            Ownership::Free => None,
        }
    }

    /// One attempt, which does not wait, with the token of its lease (0 for none).
    #[cold]
    pub(crate) fn take(&self, mailbox: Option<&Arc<Mailbox>>, incoming: &Incoming<'_>) -> (Delivery, u64) {
        let call = incoming.call(self);
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return (Delivery::Refuse(verdict), 0),
        };
        let Some(mailbox) = mailbox else {
            // A key that is another's is refused whether or not anything was ever sent there (§4.6).
            let refused = match incoming.address {
                _ if self.core().is_closed() => Some(refusal(Reason::Misroute, sites::CLOSED)),
                Address::Channel(key) => self.not_mine(key).map(|site| refusal(Reason::TrustViolation, site)),
                _ => None,
            };
            return match refused {
                Some(refusal) => (Delivery::Refuse(self.refuse(permit, refusal)), 0),
                None => (self.found_nothing(permit), 0),
            };
        };
        if self.is_plain(mailbox, incoming) {
            match mailbox.pop(self.me(), Try::All) {
                Quick::Trial(entry) => return self.hand_over(&call, permit, mailbox, (entry, 0)),
                Quick::Empty => return (self.found_nothing(permit), 0),
                Quick::Entry(..) | Quick::Look => {}
            }
        }
        self.take_closely(&call, permit, mailbox, incoming)
    }

    /// True if the front of the queue may be all that has to be looked at.
    #[inline]
    fn is_plain(&self, mailbox: &Mailbox, incoming: &Incoming<'_>) -> bool {
        incoming.lease.is_none() && !mailbox.is_timed() && !self.has_edges()
    }

    /// True if a plain receive here is over once the message is out: there is nothing to screen, and
    /// nobody to be asked.
    #[inline]
    fn is_free(&self, mailbox: &Mailbox) -> bool {
        !(self.screens() || self.has_edges() || mailbox.is_timed())
    }

    /// Hands over what was neither to be screened nor to be counted. Kept apart from where there is
    /// nobody to tell, so that a message is not put down on the way.
    #[cold]
    fn wake_and_hand_over(&self, entry: Entry, wake: Option<Waker>) -> Delivery {
        wake.into_iter().for_each(Waker::wake);
        Delivery::Message(Message::new(entry, self.me(), 0))
    }

    /// As [`Self::wake_and_hand_over`], a request: it may be that its requester cannot wait for this
    /// agent.
    #[inline(never)]
    fn hand_over_request(&self, mailbox: &Mailbox, entry: Entry) -> Delivery {
        if !self.note_handed(&entry) {
            self.core().put_back(mailbox, entry);
            return Delivery::Refuse(self.refuse_freely(refusal(Reason::LeaseHeld, sites::RING)));
        }
        self.core().settle(mailbox, &entry, Fate::Received);
        Delivery::Message(Message::new(entry, self.me(), 0))
    }

    /// From here on it is known whom the requester waits for; false if that would close a ring of
    /// blocking requests (§4.7): then it is not for this agent while that waits.
    #[inline]
    fn note_handed(&self, entry: &Entry) -> bool {
        let answer = entry.extra.as_ref().and_then(|extra| extra.answer.as_ref());
        answer.is_none_or(|answer| self.core().note_receiver(answer, self.me()))
    }

    /// It was not handed over after all.
    fn unnote_handed(&self, entry: &Entry) {
        if let Some(answer) = entry.extra.as_ref().and_then(|extra| extra.answer.as_ref()) {
            self.core().unnote_receiver(answer, self.me());
        }
    }

    /// One attempt that looks beyond the front of the queue.
    #[cold]
    fn take_closely(
        &self,
        call: &ToolCall<'_>,
        permit: Permit<'_>,
        mailbox: &Arc<Mailbox>,
        incoming: &Incoming<'_>,
    ) -> (Delivery, u64) {
        let (sought, unlinked) = self.look(mailbox, incoming, None);
        if matches!(sought.found, Found::End(End::Close))
            && let Some(newer) = self.successor(mailbox, incoming)
        {
            let (sought, unlinked) = self.look(&newer, incoming, None);
            return self.conclude(call, permit, &newer, sought.found, unlinked);
        }
        self.conclude(call, permit, mailbox, sought.found, unlinked)
    }

    /// The mailbox that took the place of one that was retired for want of use.
    #[cold]
    fn successor(&self, old: &Arc<Mailbox>, incoming: &Incoming<'_>) -> Option<Arc<Mailbox>> {
        let Address::Channel(key) = incoming.address else { return None };
        // A guard belongs to the mailbox that it was asked of: at that one there is nothing.
        if incoming.lease.is_some() {
            return None;
        }
        self.core().find(key).filter(|mailbox| !Arc::ptr_eq(mailbox, old))
    }

    /// Nothing was there: an allowed act.
    pub(crate) fn found_nothing(&self, permit: Permit<'_>) -> Delivery {
        match self.charge(permit) {
            Ok(cleared) => {
                let _ = cleared.allow(0);
                Delivery::Empty
            }
            Err(verdict) => Delivery::Refuse(verdict),
        }
    }

    fn conclude(
        &self,
        call: &ToolCall<'_>,
        permit: Permit<'_>,
        mailbox: &Mailbox,
        found: Found,
        unlinked: bool,
    ) -> (Delivery, u64) {
        let (reason, site) = match found {
            Found::Entry(entry, token) => return self.hand_over(call, permit, mailbox, (entry, token)),
            Found::Nothing | Found::Others if unlinked => (Reason::PolicyBlock, sites::NO_EDGE),
            Found::Nothing | Found::Candidate(..) | Found::Again => return (self.found_nothing(permit), 0),
            Found::Others => (Reason::TrustViolation, sites::ONLY_OTHERS),
            Found::NotYours => (Reason::TrustViolation, sites::NOT_RECEIVER),
            // Retired for want of use: there is nothing, and nothing is lost.
            Found::End(End::Close) if !self.core().is_closed() => return (self.found_nothing(permit), 0),
            Found::End(_) => (Reason::Misroute, sites::CLOSED),
        };
        (Delivery::Refuse(self.refuse(permit, refusal(reason, site))), 0)
    }

    /// Screens what was taken, with no lock held, and hands it over or holds it (§4.4).
    fn hand_over(
        &self,
        call: &ToolCall<'_>,
        permit: Permit<'_>,
        mailbox: &Mailbox,
        (entry, token): Taken,
    ) -> (Delivery, u64) {
        if token != 0 && !self.account().is_some_and(|account| account.leases.take(account.limits().leases)) {
            self.core().bury(mailbox.undo_lease(token), Cause::Bind);
            let refusal = refusal(Reason::RateLimited, sites::LEASES);
            return (Delivery::Refuse(self.refuse(permit, refusal)), 0);
        }
        let give_back = || {
            if token != 0
                && let Some(account) = self.account()
            {
                account.leases.give();
            }
        };
        if let Some(by) = self.screen(call, &entry) {
            give_back();
            return (self.keep_back(call, permit, mailbox, (entry, token), by), 0);
        }
        let corrects = call.tool() == Tool::Act(Act::ReceiveCorrection);
        if corrects && let Err(refusal) = self.validate_correction(&entry) {
            self.core().settle(mailbox, &entry, Fate::Dead);
            let verdict = self.refuse(permit, refusal);
            self.core().dead_letters(vec![entry], Cause::Supersede);
            return (Delivery::Refuse(verdict), 0);
        }
        let put_back = |entry: Entry| {
            if token == 0 {
                self.core().put_back(mailbox, entry);
            } else {
                self.core().bury(mailbox.undo_lease(token), Cause::Bind);
            }
        };
        if !self.note_handed(&entry) {
            give_back();
            put_back(entry);
            let refusal = refusal(Reason::LeaseHeld, sites::RING);
            return (Delivery::Refuse(self.refuse(permit, refusal)), 0);
        }
        match self.charge(permit) {
            Ok(cleared) => {
                let _ = cleared.allow(entry.seq);
                if token == 0 {
                    self.core().settle(mailbox, &entry, Fate::Received);
                }
                (Delivery::Message(Message::new(entry, self.me(), 0)), token)
            }
            Err(verdict) => {
                give_back();
                if corrects {
                    self.unreceive_correction(&entry);
                }
                self.unnote_handed(&entry);
                put_back(entry);
                (Delivery::Refuse(verdict), 0)
            }
        }
    }

    /// Holds what was taken: it is neither queued nor received.
    #[cold]
    fn keep_back(
        &self,
        call: &ToolCall<'_>,
        permit: Permit<'_>,
        mailbox: &Mailbox,
        (entry, token): Taken,
        by: fak_abi::RungName,
    ) -> Delivery {
        if token == 0 {
            self.core().settle(mailbox, &entry, Fate::Held);
        } else {
            let Some(wakes) = mailbox.drop_lease(token) else {
                // Its mailbox ended meanwhile: it is a dead letter.
                return Delivery::Refuse(self.refuse(permit, refusal(Reason::Misroute, sites::CLOSED)));
            };
            wakes.into_iter().for_each(Waker::wake);
        }
        let verdict = permit.hold(by, entry.seq);
        Delivery::Hold(self.hold(entry, call.target(), verdict))
    }

    /// The rung that keeps a message out of this agent's context, if one does.
    #[inline]
    pub(crate) fn screen(&self, call: &ToolCall<'_>, entry: &Entry) -> Option<&'static str> {
        let by = |body| {
            let verdict = self.agent().gate().screen(call, body);
            (verdict.kind() != VerdictKind::Allow).then(|| verdict.by())
        };
        let parts = entry.extra.as_ref().map_or(&[][..], |extra| &extra.parts);
        by(&entry.body).or_else(|| parts.iter().find_map(by))
    }

    /// Puts a message where the host and forensics can see it, and tells the receiver about it.
    #[cold]
    pub(crate) fn hold(&self, entry: Entry, address: Address<'_>, verdict: Verdict) -> Box<HeldNotice> {
        self.core().note_held(&entry, self.me(), address, &verdict);
        let from = Arc::clone(entry.route.from());
        let notice = HeldNotice {
            from: Arc::clone(&from),
            seq: entry.seq,
            digest: entry.body.digest(),
            len: entry.body.len(),
            taint: entry.body.taint(),
            scope: entry.body.scope(),
            verdict,
        };
        let by = notice.verdict.by();
        let to = entry.route.to().clone();
        let receiver = Arc::clone(self.me());
        let sender = from.id().clone();
        let held = HeldMessage { from, receiver, to, seq: entry.seq, body: entry.body, by };
        self.core().held.lock().put(&sender, held);
        Box::new(notice)
    }
}

impl<'a> Incoming<'a> {
    pub(crate) const fn plain(key: &'a ChannelKey) -> Self {
        Self { act: Act::Recv, address: Address::Channel(key), rider: None, lease: None }
    }

    /// At an inbox of a group, the address of which is still to be said.
    pub(crate) const fn group() -> Self {
        Self { act: Act::Recv, address: Address::None, rider: None, lease: None }
    }

    pub(crate) fn call(&self, endpoint: &'a Endpoint) -> ToolCall<'a> {
        ToolCall::new(endpoint.agent(), self.act).address(self.address).rider(self.rider)
    }
}
