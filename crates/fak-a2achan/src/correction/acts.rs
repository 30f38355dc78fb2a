//! The acts of a correction (§4.9): correct, receive, acknowledge, observe.

use std::sync::Arc;

use fak_abi::{
    Act, Address, ChannelKey, Id, Outcome, OwnedAddress, Permit, Principal, Reason, Ref, Refusal, ShareScope,
    Taint, ToolCall, Verdict,
};

use super::book::{Book, Phase, Unread};
use super::envelope::{Correction, CorrectionAck, CorrectionAudit, CorrectionRequest};
use super::rung::{BY, Unfit, shared_scope};
use crate::account::{Account, InboxName};
use crate::channel::Waiting;
use crate::core::{ACK, CORRECTION, Core};
use crate::delivery::Delivery;
use crate::driver::act_only_key;
use crate::endpoint::Endpoint;
use crate::entry::Entry;
use crate::mailbox::{Fate, Found, Mailbox, Offer, Seek};
use crate::message::{Cause, Message};
use crate::recv::Incoming;
use crate::send::{refusal, refusal_of};
use crate::sites;

/// What an attempt to correct came to (§4.9).
#[derive(Debug, Clone)]
#[must_use]
pub struct CorrectionReceipt {
    /// The verdict.
    pub verdict: Verdict,
    /// The correction, if it was sent.
    pub correction: Option<Correction>,
    /// The audit row: every attempt yields one.
    pub audit: CorrectionAudit,
}

/// A correction that its worker received and found valid (§4.9).
#[derive(Debug)]
pub struct ReceivedCorrection {
    /// What it says.
    pub correction: Correction,
    /// The message it came in.
    pub message: Message,
}

/// What an acknowledgement came to (§4.9).
#[derive(Debug, Clone)]
#[must_use]
pub struct AckReceipt {
    /// The verdict.
    pub verdict: Verdict,
    /// The number of the acknowledgement; 0 if it was refused.
    pub seq: u64,
}

/// What an orchestrator observes of its correction (§4.9). Allowed only if it was acknowledged *and* is
/// reflected in the worker's next action.
#[derive(Debug, Clone)]
#[must_use]
pub struct Observation {
    /// The verdict.
    pub verdict: Verdict,
    /// It was acknowledged.
    pub acked: bool,
    /// The next action carries its id.
    pub reflected: bool,
    /// The acknowledgement, once it may be seen.
    pub ack: Option<CorrectionAck>,
}

fn key_of(prefix: &str, id: &str) -> Option<ChannelKey> {
    act_only_key(prefix, &Id::new(id).ok()?)
}

fn address_of(key: Option<&ChannelKey>) -> Address<'_> {
    key.map_or(Address::Malformed, Address::Channel)
}

impl Core {
    /// A principal's inbox that accepts one act only.
    fn act_inbox(&self, of: &Arc<Account>, name: InboxName) -> Option<Arc<Mailbox>> {
        let prefix = if name == InboxName::Ack { ACK } else { CORRECTION };
        self.own_inbox(of, name, of, || {
            key_of(prefix, of.principal().id()).map_or(OwnedAddress::None, OwnedAddress::Channel)
        })
    }

    /// An acknowledgement, taken out on trial.
    fn take_ack(&self, of: &Account, seq: u64) -> Option<(Arc<Mailbox>, Entry)> {
        let inbox = of.find_inbox(&InboxName::Ack)?;
        let reader = of.principal();
        let seek = Seek { reader, now: None, after: 0, ask: false, returns: None, lease: None };
        match inbox.take_next(seq, &seek) {
            Found::Entry(entry, _) => Some((inbox, entry)),
            _ => None,
        }
    }

    /// Makes dead letters of acknowledgements that nobody can observe any more. No lock may be held.
    pub(crate) fn bury_acks(&self, unread: impl IntoIterator<Item = Unread>, cause: Cause) {
        for (of, seq) in unread {
            let taken = self.account(&of).and_then(|account| self.take_ack(&account, seq));
            if let Some((inbox, entry)) = taken {
                self.settle(&inbox, &entry, Fate::Dead);
                self.dead_letters(vec![entry], cause);
            }
        }
    }
}

impl Endpoint {
    /// A body that an act makes: tainted, shared between the two sides, private if they share
    /// nothing (the floor then refuses it).
    fn issued(&self, other: Option<&Principal>, json: Vec<u8>) -> Option<Ref> {
        let scope = other.and_then(|other| shared_scope(self.me(), other)).unwrap_or(ShareScope::Agent);
        self.core().host()?.issue(self.me(), json.into(), Taint::Tainted, scope)
    }

    /// Places an act's body in an inbox that is for it alone. Checked once more and entered under the
    /// book's lock, so that nobody acts on it before.
    fn hand_in(
        &self,
        permit: Permit<'_>,
        to: &Arc<Account>,
        name: InboxName,
        body: &Ref,
        check: impl FnOnce(&Book) -> Result<(), Unfit>,
        enter: impl FnOnce(&mut Book, u64) -> Option<Unread>,
    ) -> (Verdict, u64) {
        let (Some(account), Some(link)) = (self.account(), self.core().link()) else {
            return (self.refuse(permit, refusal(Reason::TrustViolation, sites::FOREIGN)), 0);
        };
        let Some(inbox) = self.core().act_inbox(to, name) else {
            return (self.refuse(permit, refusal(Reason::Misroute, sites::CLOSED)), 0);
        };
        let offer = Offer {
            from: account,
            route: None,
            body: permit.transformed().unwrap_or(body),
            recipient: Some(to.principal()),
        };
        let bytes = offer.body.len();
        let reserved = match inbox.reserve(&offer) {
            Err(block) if self.made_room(&inbox, block) => inbox.reserve(&offer),
            reserved => reserved,
        };
        let route = match reserved {
            Ok(route) => route,
            Err(block) => return (self.refuse(permit, refusal_of(block)), 0),
        };
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => {
                inbox.unreserve(&route, bytes);
                return (verdict, 0);
            }
        };
        let body = cleared.transformed().unwrap_or(body);
        let offer = Offer { from: account, route: Some(&route), body, recipient: Some(to.principal()) };
        let placed: Result<_, Refusal> = {
            let mut book = self.core().book.lock();
            match check(&book) {
                Err((reason, site)) => {
                    inbox.unreserve(&route, bytes);
                    Err(refusal(reason, site))
                }
                Ok(()) => match inbox.fill(&offer, None, link.sequence()) {
                    Ok((seq, wake)) => {
                        let unread = enter(&mut book, seq);
                        Ok((seq, wake, unread))
                    }
                    Err(block) => Err(refusal_of(block)),
                },
            }
        };
        match placed {
            Ok((seq, wake, unread)) => {
                let verdict = cleared.allow(seq);
                wake.into_iter().for_each(std::task::Waker::wake);
                self.core().bury_acks(unread, Cause::Supersede);
                (verdict, seq)
            }
            Err(refusal) => (self.revoke(cleared, refusal), 0),
        }
    }

    /// Corrects a running worker (§4.9). The checks of the correction come first, then those of any
    /// send.
    pub fn correct(&self, request: &CorrectionRequest) -> CorrectionReceipt {
        let correction = request.correction();
        let (verdict, _) = self.send_correction(&correction);
        // What fails its own checks is no correction; what fails as a send is one that was not sent.
        let made = verdict.by() != BY;
        let audit = CorrectionAudit {
            correction_id: if made { correction.correction_id.clone() } else { String::new() },
            orchestrator_id: request.orchestrator_id.clone(),
            worker_id: request.worker_id.clone(),
            issue: request.issue,
            task_id: request.task_id.clone(),
            lane: request.lane.clone(),
            status_digest: request.status_digest.clone(),
            bytes: request.message.len() as u64,
            max_bytes: request.ceiling(),
            verdict: if verdict.is_allow() { "ALLOW" } else { "DENY" }.to_owned(),
            reason: verdict.reason().map_or_else(String::new, |reason| reason.name().to_owned()),
            by: verdict.by().to_owned(),
        };
        let correction = verdict.is_allow().then_some(correction);
        CorrectionReceipt { verdict, correction, audit }
    }

    fn send_correction(&self, correction: &Correction) -> (Verdict, u64) {
        let worker =
            self.core().accounts.get(correction.worker_id.as_str()).map(|account| Arc::clone(&account));
        let key = key_of(CORRECTION, &correction.worker_id);
        let recipient = worker.as_ref().map(|account| account.principal());
        let body = self.issued(recipient.map(|it| &**it), correction.to_json());
        // A blank or impossible worker is refused by the correction's own checks.
        let address = key.as_ref().map_or(Address::None, Address::Channel);
        let call = ToolCall::new(self.agent(), Act::Correct).address(address).recipient(recipient);
        let call = body.as_ref().map_or(call, |body| call.args(body));
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return (verdict, 0),
        };
        let (Some(worker), Some(body)) = (&worker, &body) else {
            return (self.refuse(permit, refusal(Reason::Unwitnessed, sites::CORRECTION_UNWITNESSED)), 0);
        };
        let check = |book: &Book| match book.record(&correction.correction_id) {
            Some(_) => Err((Reason::Unwitnessed, sites::CORRECTION_STALE)),
            None => Ok(()),
        };
        self.hand_in(permit, worker, InboxName::Correction, body, check, |book, _| {
            book.add(correction.clone(), self.me(), worker.principal())
        })
    }

    /// Receives the next correction of this worker if one is there, validated once more: altered
    /// text is MALFORMED, a replayed, stale or superseded one UNWITNESSED. What is refused becomes
    /// a dead letter.
    pub fn try_receive_correction(&self) -> Delivery<ReceivedCorrection> {
        let inbox = self.account().and_then(|account| self.core().act_inbox(account, InboxName::Correction));
        let key = key_of(CORRECTION, self.me().id());
        let incoming =
            Incoming { act: Act::ReceiveCorrection, address: address_of(key.as_ref()), ..Incoming::group() };
        self.received(self.take(inbox.as_ref(), &incoming).0)
    }

    /// Waits for the next correction of this worker.
    ///
    /// # Cancel safety
    /// As [`Endpoint::recv`].
    pub async fn receive_correction(&self) -> Delivery<ReceivedCorrection> {
        let inbox = self.account().and_then(|account| self.core().act_inbox(account, InboxName::Correction));
        let Some(inbox) = inbox else { return self.try_receive_correction() };
        let key = key_of(CORRECTION, self.me().id());
        let incoming =
            Incoming { act: Act::ReceiveCorrection, address: address_of(key.as_ref()), ..Incoming::group() };
        self.received(Waiting::new(self, &inbox).take(&incoming).await.0)
    }

    fn received(&self, delivery: Delivery) -> Delivery<ReceivedCorrection> {
        match delivery {
            Delivery::Message(message) => {
                let bytes = self.agent().read(message.body()).allowed().unwrap_or_default();
                match Correction::parse(&bytes) {
                    Ok(correction) => Delivery::Message(ReceivedCorrection { correction, message }),
                    // It was valid when it was received.
                    Err(_) => Delivery::Empty,
                }
            }
            Delivery::Empty => Delivery::Empty,
            Delivery::Hold(notice) => Delivery::Hold(notice),
            Delivery::Refuse(verdict) => Delivery::Refuse(verdict),
            Delivery::End(end) => Delivery::End(end),
        }
    }

    /// Why a correction that was just taken out may not be acted on; otherwise it counts as
    /// received from here on.
    pub(crate) fn validate_correction(&self, entry: &Entry) -> Result<(), Refusal> {
        let unfit = |reason, site| Err(refusal(reason, site));
        let Outcome::Allow { value: bytes, .. } = self.agent().read(&entry.body) else {
            return unfit(Reason::TrustViolation, sites::UNREADABLE);
        };
        let Ok(correction) = Correction::parse(&bytes) else {
            return unfit(Reason::Malformed, sites::CORRECTION_ALTERED);
        };
        if correction.computed_id() != correction.correction_id {
            return unfit(Reason::Malformed, sites::CORRECTION_ALTERED);
        }
        let mut book = self.core().book.lock();
        match book.record(&correction.correction_id) {
            Some(record) if !Arc::ptr_eq(&record.worker, self.me()) => {
                return unfit(Reason::TrustViolation, sites::ACK_OTHER);
            }
            Some(record) if matches!(record.phase, Phase::Sent) && book.is_current(record) => {}
            _ => return unfit(Reason::Unwitnessed, sites::CORRECTION_STALE),
        }
        book.advance(&correction.correction_id, Phase::Received);
        Ok(())
    }

    /// A correction that was received could not be handed over after all.
    pub(crate) fn unreceive_correction(&self, entry: &Entry) {
        if let Some(bytes) = self.agent().read(&entry.body).allowed()
            && let Ok(correction) = Correction::parse(&bytes)
        {
            self.core().book.lock().advance(&correction.correction_id, Phase::Sent);
        }
    }

    /// Acknowledges a correction that this worker received, with what it does next. Counts only from
    /// the worker's own handle (TRUST_VIOLATION), once, and only while the correction is current
    /// (UNWITNESSED).
    pub fn ack(&self, ack: &CorrectionAck) -> AckReceipt {
        let record = self.core().book.lock().record(&ack.correction_id).cloned();
        let orchestrator = record.as_ref().map(|record| &record.orchestrator);
        let body = self.issued(orchestrator.map(|it| &**it), ack.to_json());
        let key = orchestrator.and_then(|orchestrator| key_of(ACK, orchestrator.id()));
        let address = key.as_ref().map_or(Address::None, Address::Channel);
        let call = ToolCall::new(self.agent(), Act::Ack).address(address).recipient(orchestrator);
        let call = body.as_ref().map_or(call, |body| call.args(body));
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return AckReceipt { verdict, seq: 0 },
        };
        let to = orchestrator.and_then(|orchestrator| self.core().account(orchestrator));
        let (Some(to), Some(body)) = (to, &body) else {
            let verdict = self.refuse(permit, refusal(Reason::Misroute, sites::CLOSED));
            return AckReceipt { verdict, seq: 0 };
        };
        let check = |book: &Book| match book.record(&ack.correction_id) {
            Some(record) if matches!(record.phase, Phase::Received) && book.is_current(record) => Ok(()),
            _ => Err((Reason::Unwitnessed, sites::CORRECTION_STALE)),
        };
        let (verdict, seq) = self.hand_in(permit, &to, InboxName::Ack, body, check, |book, seq| {
            book.advance(&ack.correction_id, Phase::Acked(Box::new(ack.clone()), seq));
            None
        });
        AckReceipt { verdict, seq }
    }

    /// Observes what became of one's correction: allowed only once it is acknowledged and reflected,
    /// otherwise UNWITNESSED.
    pub fn observe(&self, correction_id: &str) -> Observation {
        let key = key_of(ACK, self.me().id());
        let call = ToolCall::new(self.agent(), Act::Observe).address(address_of(key.as_ref()));
        let none = |verdict| Observation { verdict, acked: false, reflected: false, ack: None };
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return none(verdict),
        };
        let record = self.core().book.lock().record(correction_id).cloned();
        let Some(record) = record else {
            return none(self.refuse(permit, refusal(Reason::Unwitnessed, sites::OBSERVE_NONE)));
        };
        if !Arc::ptr_eq(&record.orchestrator, self.me()) {
            return none(self.refuse(permit, refusal(Reason::TrustViolation, sites::OBSERVE_OTHER)));
        }
        let (ack, seq, taken) = match record.phase {
            Phase::Observed(ack, seq) => (ack, seq, None),
            Phase::Acked(ack, seq) => {
                // Nobody else's look may hand over what this one has not screened.
                match self.account().and_then(|account| self.core().take_ack(account, seq)) {
                    Some(taken) => (ack, seq, Some(taken)),
                    None => {
                        return none(self.refuse(permit, refusal(Reason::Unwitnessed, sites::OBSERVE_NONE)));
                    }
                }
            }
            Phase::Sent | Phase::Received | Phase::Withheld => {
                return none(self.refuse(permit, refusal(Reason::Unwitnessed, sites::OBSERVE_NONE)));
            }
        };
        if let Some((inbox, entry)) = &taken
            && let Some(by) = self.screen(&call, entry)
        {
            self.core().book.lock().advance(correction_id, Phase::Withheld);
            self.core().settle(inbox, entry, Fate::Held);
            let verdict = permit.hold(by, entry.seq);
            return none(self.hold(entry.share(), call.target(), verdict).verdict);
        }
        let (acked, reflected) = (ack.acked, ack.is_reflected());
        let verdict = if acked && reflected {
            match self.charge(permit) {
                Ok(cleared) => cleared.allow(seq),
                Err(verdict) => {
                    if let Some((inbox, entry)) = taken {
                        self.core().put_back(&inbox, entry);
                    }
                    return none(verdict);
                }
            }
        } else {
            self.refuse(permit, refusal(Reason::Unwitnessed, sites::OBSERVE_NONE))
        };
        // The message is received with the first look; what it says stays known.
        if let Some((inbox, entry)) = &taken {
            self.core().book.lock().advance(correction_id, Phase::Observed(ack.clone(), seq));
            self.core().settle(inbox, entry, Fate::Received);
        }
        Observation { verdict, acked, reflected, ack: Some(*ack) }
    }
}
