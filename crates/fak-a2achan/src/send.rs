//! Sending (§4.3): fold, then rows 8 to 10 under the mailbox's lock, then the books.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use fak_abi::{
    Act, Address, Booking, ChannelKey, Cleared, Id, Pass, Permit, Principal, Reason, Ref, Refusal, Rider,
    Sequence, ShareScope, SiteInfo, ToolCall, Verdict,
};

use crate::account::Account;
use crate::core::GATE;
use crate::delivery::End;
use crate::endpoint::Endpoint;
use crate::entry::Extra;
use crate::idempotency::{Print, Recall};
use crate::mailbox::{Block, Mailbox, Offer};
use crate::message::Cause;
use crate::route::Route;
use crate::sites;

/// What a send may ask for beyond delivery (§4.3).
///
/// ```
/// # use fak_a2achan::{Bus, BusConfig};
/// # use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, ShareScope};
/// # use fak_adjudicate::Kernel;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let bus = Bus::new(BusConfig::default())?;
/// # let kernel = Kernel::builder().driver(bus.driver()).build()?;
/// # let attach = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
/// #     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?);
/// #     Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
/// # };
/// # let (alpha, bravo) = (attach("alpha")?, attach("bravo")?);
/// # let work = ChannelKey::new(Locale::InKernel, "work")?;
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).ok()?;
/// use fak_a2achan::SendOptions;
/// use std::time::Duration;
///
/// // A retry with the same key is answered with the first outcome and delivered once.
/// let key = Id::new("order-7")?;
/// let once = SendOptions { idempotency: Some(&key), ttl: Some(Duration::from_secs(60)), ..SendOptions::default() };
/// for _ in 0..2 {
///     assert!(bus.endpoint(&alpha).send_with(&work, &order, &once).is_allow());
/// }
/// assert_eq!(bus.stats().sent, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct SendOptions<'a> {
    /// Makes a repetition of this very act return the first outcome (§4.13).
    pub idempotency: Option<&'a Id>,
    /// How long the message is worth delivering (§4.2).
    pub ttl: Option<Duration>,
    /// Deadline, cancellation and metadata (§2.5). A deadline ends the message's life as well.
    pub rider: Option<&'a Rider>,
}

/// A message on its way in.
pub(crate) struct Outgoing<'a> {
    pub(crate) act: Act,
    pub(crate) key: &'a ChannelKey,
    pub(crate) body: &'a Ref,
    pub(crate) extra: Option<Box<Extra>>,
    pub(crate) idempotency: Option<&'a Id>,
    pub(crate) rider: Option<&'a Rider>,
}

/// What is at hand of a channel that is used again and again.
pub(crate) type AtHand<'a> = Option<(&'a Arc<Mailbox>, &'a Arc<Route>)>;

/// How often a send is folded anew because the key changed hands meanwhile.
const ATTEMPTS: u32 = 8;

enum Placing {
    Done(Verdict, u64),
    Again,
}

impl Endpoint {
    /// Sends a message (§4.3). Never blocks; the verdict is the answer.
    pub fn send(&self, key: &ChannelKey, body: &Ref) -> Verdict {
        self.send_by_key(key, body).unwrap_or_else(|| self.send_closely(key, body, None))
    }

    /// The common case of a send: decided, and placed where the key leads while the map holds still,
    /// so that the mailbox need not be counted. `None` says only that a closer look is needed.
    #[inline]
    fn send_by_key(&self, key: &ChannelKey, body: &Ref) -> Option<Verdict> {
        let (account, link) = (self.account()?, self.core().link()?);
        let call = ToolCall::new(self.agent(), Act::Send).args(body).address(Address::Channel(key));
        // As if nobody had bound the key; where somebody has, it is decided anew.
        let by = match self.agent().gate().pass(&call, link.key()) {
            Pass::Allow(by) => by,
            Pass::Refuse(verdict) => return self.refused_by_key(key, verdict),
            Pass::Closely => {
                let mailbox = self.core().find(key)?;
                return if mailbox.is_plain() { self.send_booked(key, &call, &mailbox, None) } else { None };
            }
        };
        let offer = Offer { from: account, route: None, body, recipient: None };
        let (_, wake) = {
            let mailbox = self.core().boxes.get(key)?;
            if !mailbox.is_plain() {
                return None;
            }
            mailbox.offer(&offer, None, link.sequence()).ok()?
        };
        self.follow_out(key, body);
        if let Some(waker) = wake {
            waker.wake();
        }
        Some(Verdict::allow(by))
    }

    /// What was refused as if nobody had bound the key is refused, if nobody has: an act is not asked
    /// about until it is allowed.
    #[cold]
    fn refused_by_key(&self, key: &ChannelKey, verdict: Verdict) -> Option<Verdict> {
        let core = self.core();
        let is_free = match core.find(key) {
            Some(mailbox) => mailbox.is_plain(),
            None => core.session_owner(key).is_none(),
        };
        is_free.then(|| {
            core.deny();
            verdict
        })
    }

    #[cold]
    pub(crate) fn send_closely(&self, key: &ChannelKey, body: &Ref, at_hand: AtHand<'_>) -> Verdict {
        let out = Outgoing { act: Act::Send, key, body, extra: None, idempotency: None, rider: None };
        self.dispatch(out, at_hand).0
    }

    /// Sends a message with more to say about it (§4.2, §4.13).
    pub fn send_with(&self, key: &ChannelKey, body: &Ref, options: &SendOptions<'_>) -> Verdict {
        self.dispatch(self.outgoing(key, body, options), None).0
    }

    pub(crate) fn outgoing<'a>(
        &self,
        key: &'a ChannelKey,
        body: &'a Ref,
        options: &SendOptions<'a>,
    ) -> Outgoing<'a> {
        let ttl = options.ttl.map(|ttl| self.core().now().after(ttl));
        let deadline = options.rider.and_then(|rider| rider.deadline);
        let expires = ttl.into_iter().chain(deadline).min();
        let extra = Extra { expires, ..Extra::default() }.boxed();
        let &SendOptions { idempotency, rider, .. } = options;
        Outgoing { act: Act::Send, key, body, extra, idempotency, rider }
    }

    /// The common case of a send: the mailbox is at hand, nobody has bound it, and there is nothing
    /// to settle. `None` says only that a closer look is needed.
    #[inline]
    pub(crate) fn send_plain(
        &self,
        key: &ChannelKey,
        body: &Ref,
        mailbox: &Arc<Mailbox>,
        route: Option<&Arc<Route>>,
    ) -> Option<Verdict> {
        let (account, link) = (self.account()?, self.core().link()?);
        if !mailbox.is_plain() {
            return None;
        }
        let call = ToolCall::new(self.agent(), Act::Send).args(body).address(Address::Channel(key));
        let by = match self.pass_by(link, &call) {
            Pass::Allow(by) => by,
            Pass::Refuse(verdict) => return Some(verdict),
            Pass::Closely => return self.send_booked(key, &call, mailbox, route),
        };
        let offer = Offer { from: account, route, body, recipient: None };
        match mailbox.offer(&offer, None, link.sequence()) {
            Ok((_, wake)) => {
                self.follow_out(key, body);
                if let Some(waker) = wake {
                    waker.wake();
                }
                Some(Verdict::allow(by))
            }
            Err(block @ (Block::Move | Block::End)) if !self.is_final(block) => None,
            Err(block) if self.made_room(mailbox, block) => None,
            Err(block) => Some(self.refuse_freely(refusal_of(block))),
        }
    }

    /// As [`Self::send_plain`] on a kernel that keeps an audit log and nothing else: the entry is all
    /// that is left to settle (§3.6).
    #[inline(never)]
    fn send_booked(
        &self,
        key: &ChannelKey,
        call: &ToolCall<'_>,
        mailbox: &Arc<Mailbox>,
        route: Option<&Arc<Route>>,
    ) -> Option<Verdict> {
        let (account, link, body) = (self.account()?, self.core().link()?, call.body()?);
        let due = match self.agent().gate().book(call, link.key()) {
            Booking::Allow(due) => due,
            Booking::Refuse(verdict) => return Some(self.denied(verdict)),
            Booking::Closely => return None,
        };
        let offer = Offer { from: account, route, body, recipient: None };
        match mailbox.offer(&offer, None, link.sequence()) {
            Ok((seq, wake)) => {
                let verdict = due.allow(seq);
                self.follow_out(key, body);
                if let Some(waker) = wake {
                    waker.wake();
                }
                Some(verdict)
            }
            // Given up: what is looked at more closely is decided and booked anew.
            Err(block @ (Block::Move | Block::End)) if !self.is_final(block) => None,
            Err(block) if self.made_room(mailbox, block) => None,
            Err(block) => Some(self.denied(due.refuse(refusal_of(block), GATE))),
        }
    }

    /// Counts what was refused, and audited.
    #[cold]
    pub(crate) fn denied(&self, verdict: Verdict) -> Verdict {
        self.core().deny();
        verdict
    }

    /// A private message that was just placed is cleared up after a sender that is no more.
    #[inline]
    pub(crate) fn follow_out(&self, key: &ChannelKey, body: &Ref) {
        if body.scope() == ShareScope::Agent && !self.me().is_attached() {
            self.clear_up(key);
        }
    }

    /// A detach that came between has not seen what was placed since: what may flow to nobody else is a
    /// dead letter (§2.3), and a mailbox that was made for it may be of no use to anybody.
    #[cold]
    fn clear_up(&self, key: &ChannelKey) {
        let core = self.core();
        if let (Some(mailbox), Some(link)) = (core.find(key), core.link()) {
            core.bury(mailbox.release(self.me(), link.sequence()), Cause::End(End::Detach));
        }
        core.tidy(key);
    }

    /// Sends; the verdict and the message's number (0 if there is none).
    pub(crate) fn dispatch(&self, mut out: Outgoing<'_>, mut at_hand: AtHand<'_>) -> (Verdict, u64) {
        let attached = self.me().is_attached();
        for _ in 0..ATTEMPTS {
            match self.attempt(&mut out, at_hand) {
                Placing::Done(verdict, seq) => {
                    if attached && !self.me().is_attached() {
                        self.clear_up(out.key);
                    }
                    return (verdict, seq);
                }
                // The mailbox at hand may be no more.
                Placing::Again => at_hand = None,
            }
        }
        let call = self.call(&out, None);
        match self.admit(&call) {
            Ok(permit) => (self.refuse(permit, refusal(Reason::Misroute, sites::MOVED)), 0),
            Err(verdict) => (verdict, 0),
        }
    }

    fn call<'a>(&'a self, out: &Outgoing<'a>, recipient: Option<&'a Arc<Principal>>) -> ToolCall<'a> {
        ToolCall::new(self.agent(), out.act)
            .args(out.body)
            .address(Address::Channel(out.key))
            .recipient(recipient)
            .rider(out.rider)
    }

    #[inline]
    fn attempt(&self, out: &mut Outgoing<'_>, at_hand: AtHand<'_>) -> Placing {
        let found = if at_hand.is_none() { self.core().find(out.key) } else { None };
        let known = at_hand.map(|(mailbox, _)| mailbox).or(found.as_ref());
        let recipient = match known {
            Some(mailbox) => mailbox.recipient(),
            None => self.core().session_owner(out.key),
        };
        let call = self.call(out, recipient.as_ref());
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Placing::Done(verdict, 0),
        };
        // Admitted, so there is an account.
        let (Some(account), Some(link)) = (self.account(), self.core().link()) else {
            return Placing::Done(self.refuse(permit, refusal(Reason::TrustViolation, sites::FOREIGN)), 0);
        };
        // A mailbox there may be the host's doing, or its owner's: that changes nothing (§4.9).
        if self.core().act_only(out.key).is_some() {
            return Placing::Done(self.refuse(permit, refusal(Reason::TrustViolation, sites::ACT_ONLY)), 0);
        }
        let print = match out.idempotency {
            None => None,
            Some(key) => {
                let print = Print::of(out.act, &call, out.body);
                match self.recall(key, &print) {
                    Recall::Fresh => Some((key, print)),
                    Recall::Same(seq) => {
                        return match self.charge(permit) {
                            Ok(cleared) => Placing::Done(cleared.repeat(seq), seq),
                            Err(verdict) => Placing::Done(verdict, 0),
                        };
                    }
                    Recall::Other => {
                        return Placing::Done(
                            self.refuse(permit, refusal(Reason::Malformed, sites::KEY_REUSED)),
                            0,
                        );
                    }
                }
            }
        };
        let made;
        let mailbox = match known {
            Some(mailbox) => mailbox,
            None => match self.core().mailbox(out.key, account) {
                Ok(mailbox) => {
                    made = mailbox;
                    &made
                }
                Err(refusal) => return Placing::Done(self.refuse(permit, refusal), 0),
            },
        };
        let spot =
            Spot { mailbox, account, route: at_hand.map(|(_, route)| route), recipient: recipient.as_ref() };
        self.place(permit, out, &spot, print.as_ref(), link.sequence())
    }

    #[inline]
    fn place(
        &self,
        permit: Permit<'_>,
        out: &mut Outgoing<'_>,
        spot: &Spot<'_>,
        print: Option<&(&Id, Print)>,
        numbers: &Sequence,
    ) -> Placing {
        if permit.counts() {
            return self.place_counted(permit, out, spot, print, numbers);
        }
        // Nothing counts, so this cannot refuse.
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return Placing::Done(verdict, 0),
        };
        let offer = spot.offer(cleared.transformed().unwrap_or(out.body));
        let place = || spot.mailbox.offer(&offer, out.extra.clone(), numbers);
        let placed = match print {
            None => place(),
            Some((key, print)) => match self.remember(key, print, place) {
                Ok(placed) => placed,
                Err(recall) => return self.repeated(cleared, recall),
            },
        };
        self.finish(spot.mailbox, cleared, placed)
    }

    /// As [`Self::place`], where rungs count: the slot is promised, they count, it is filled. No
    /// rung's code runs under a lock.
    #[cold]
    fn place_counted(
        &self,
        permit: Permit<'_>,
        out: &Outgoing<'_>,
        spot: &Spot<'_>,
        print: Option<&(&Id, Print)>,
        numbers: &Sequence,
    ) -> Placing {
        let offer = spot.offer(permit.transformed().unwrap_or(out.body));
        let bytes = offer.body.len();
        let route = match spot.mailbox.reserve(&offer) {
            Ok(route) => route,
            Err(block @ (Block::Move | Block::End)) if !self.is_final(block) => return Placing::Again,
            Err(block) if self.made_room(spot.mailbox, block) => return Placing::Again,
            Err(block) => return Placing::Done(self.refuse(permit, refusal_of(block)), 0),
        };
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => {
                spot.mailbox.unreserve(&route, bytes);
                return Placing::Done(verdict, 0);
            }
        };
        let offer = Offer { route: Some(&route), ..spot.offer(cleared.transformed().unwrap_or(out.body)) };
        let place = || spot.mailbox.fill(&offer, out.extra.clone(), numbers);
        let placed = match print {
            None => place(),
            Some((key, print)) => match self.remember(key, print, place) {
                Ok(placed) => placed,
                Err(recall) => {
                    spot.mailbox.unreserve(&route, bytes);
                    return self.repeated(cleared, recall);
                }
            },
        };
        match placed {
            // What was counted is not counted twice: a key that changed hands now is a refusal.
            Err(Block::Move | Block::End) => {
                // The slot that was promised is free again.
                spot.mailbox.pass_space();
                Placing::Done(self.revoke(cleared, refusal(Reason::Misroute, sites::MOVED)), 0)
            }
            placed => self.finish(spot.mailbox, cleared, placed),
        }
    }

    /// True if trying again is of no use.
    fn is_final(&self, block: Block) -> bool {
        block != Block::Move && self.core().is_closed()
    }

    /// What is in the way may have had its time: then it is buried, and trying again is of use (§4.10, §4.12).
    #[cold]
    pub(crate) fn made_room(&self, mailbox: &Mailbox, block: Block) -> bool {
        match block {
            Block::Full | Block::Share => self.core().sweep(mailbox),
            // Bytes count wherever they are queued.
            Block::Bytes => self.account().is_some_and(|account| self.core().sweep_of(account)),
            Block::End | Block::Move | Block::Unreadable => false,
        }
    }

    #[inline]
    fn finish(
        &self,
        mailbox: &Mailbox,
        cleared: Cleared<'_>,
        placed: Result<(u64, Option<Waker>), Block>,
    ) -> Placing {
        match placed {
            Ok((seq, wake)) => {
                let verdict = cleared.allow(seq);
                if let Some(waker) = wake {
                    waker.wake();
                }
                Placing::Done(verdict, seq)
            }
            Err(block @ (Block::Move | Block::End)) if !self.is_final(block) => Placing::Again,
            Err(block) if self.made_room(mailbox, block) => Placing::Again,
            Err(block) => Placing::Done(self.revoke(cleared, refusal_of(block)), 0),
        }
    }

    #[cold]
    fn repeated(&self, cleared: Cleared<'_>, recall: Recall) -> Placing {
        match recall {
            Recall::Same(seq) => Placing::Done(cleared.repeat(seq), seq),
            Recall::Other | Recall::Fresh => {
                Placing::Done(self.revoke(cleared, refusal(Reason::Malformed, sites::KEY_REUSED)), 0)
            }
        }
    }
}

/// Where a message goes, as far as it is known before it is placed.
struct Spot<'a> {
    mailbox: &'a Mailbox,
    account: &'a Arc<Account>,
    route: Option<&'a Arc<Route>>,
    recipient: Option<&'a Arc<Principal>>,
}

impl<'a> Spot<'a> {
    const fn offer(&self, body: &'a Ref) -> Offer<'a> {
        Offer { from: self.account, route: self.route, body, recipient: self.recipient }
    }
}

pub(crate) const fn refusal(reason: Reason, site: &'static SiteInfo) -> Refusal {
    Refusal::new(reason, site.site())
}

/// What a mailbox's answer is called (§4.3 rows 8 and 10).
pub(crate) const fn refusal_of(block: Block) -> Refusal {
    match block {
        Block::End => refusal(Reason::Misroute, sites::CLOSED),
        Block::Move => refusal(Reason::Misroute, sites::MOVED),
        Block::Unreadable => refusal(Reason::TrustViolation, sites::UNREADABLE),
        Block::Full => refusal(Reason::RateLimited, sites::FULL),
        Block::Share => refusal(Reason::RateLimited, sites::SHARE),
        Block::Bytes => refusal(Reason::RateLimited, sites::BYTES),
    }
}
