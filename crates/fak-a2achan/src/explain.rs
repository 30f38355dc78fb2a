//! Why an act on the bus would be answered as it would (§3.5): the kernel's explanation, then rows
//! 8 to 10, without side effects. Names are shown only as far as the asker may know them.

use std::sync::Arc;

use fak_abi::{
    Act, Address, ChannelKey, Explanation, Locale, Principal, Reason, Ref, SiteInfo, ToolCall, Verdict, json,
};

use crate::config::Addressing;
use crate::core::{Core, GATE, Ownership};
use crate::endpoint::Endpoint;
use crate::mailbox::Offer;
use crate::send::{refusal, refusal_of};
use crate::sites;

impl Endpoint {
    /// Explains an act of this agent at a key: what every rung thinks of it, what would decide it
    /// now, and what to do next. Changes nothing.
    #[must_use]
    pub fn explain(&self, act: Act, key: &ChannelKey, body: Option<&Ref>) -> Explanation {
        let mailbox = self.core().find(key);
        let recipient = match &mailbox {
            Some(mailbox) => mailbox.recipient(),
            None => self.core().session_owner(key),
        };
        let is_send = act.capability() == fak_abi::Capability::A2aSend;
        let call = ToolCall::new(self.agent(), act)
            .address(Address::Channel(key))
            .recipient(recipient.as_ref().filter(|_| is_send && act != Act::Publish));
        let call = body.map_or(call, |body| call.args(body));
        let Some(host) = self.core().host() else { return self.agent().gate().explain(&call) };
        let explanation = host.explain(&call);
        if !explanation.verdict.is_allow() {
            return explanation;
        }
        let Some((refusal, site)) = self.later_refusal(act, key, body) else { return explanation };
        let next = match site {
            Some(site) if site.check == sites::UNDECLARED.check => self.nearest(key).map_or_else(
                || site.next.to_owned(),
                |nearest| format!("{}; the nearest known is {nearest}", site.next),
            ),
            Some(site) => site.next.to_owned(),
            None => String::new(),
        };
        explanation.decided(Verdict::deny(refusal, GATE), site.copied(), next)
    }

    /// Explains an act whose address was no address.
    #[must_use]
    pub fn explain_malformed(&self, act: Act) -> Explanation {
        let call = ToolCall::new(self.agent(), act).address(Address::Malformed);
        self.core().host().map_or_else(|| self.agent().gate().explain(&call), |host| host.explain(&call))
    }

    /// What the bus itself would refuse after the rungs.
    fn later_refusal(
        &self,
        act: Act,
        key: &ChannelKey,
        body: Option<&Ref>,
    ) -> Option<(fak_abi::Refusal, Option<&'static SiteInfo>)> {
        let core = self.core();
        let mailbox = core.find(key);
        let refused = |reason, site: &'static SiteInfo| Some((refusal(reason, site), Some(site)));
        if core.is_closed() {
            return refused(Reason::Misroute, sites::CLOSED);
        }
        let others = |owner: &Arc<Principal>| !Arc::ptr_eq(owner, self.me());
        match act {
            Act::Send | Act::Request | Act::Publish => {
                if core.act_only(key).is_some() {
                    return refused(Reason::TrustViolation, sites::ACT_ONLY);
                }
                let owner = mailbox.as_ref().map_or_else(|| core.session_owner(key), |it| it.recipient());
                if act != Act::Publish
                    && let (Some(owner), Some(body)) = (&owner, body)
                    && !body.would_flow_to(owner)
                {
                    return refused(Reason::TrustViolation, sites::UNREADABLE);
                }
                if core.config.addressing == Addressing::Declared && !core.is_known(key) {
                    return refused(Reason::Misroute, sites::UNDECLARED);
                }
                let (Some(mailbox), Some(body), Some(account)) = (&mailbox, body, self.account()) else {
                    return None;
                };
                let offer = Offer { from: account, route: None, body, recipient: owner.as_ref() };
                let block = mailbox.would_block(&offer).filter(|_| act != Act::Publish)?;
                // What has had its time stands in nobody's way.
                let block = if self.made_room(mailbox, block) { mailbox.would_block(&offer)? } else { block };
                let refusal = refusal_of(block);
                Some((refusal, refusal.site.info()))
            }
            Act::Recv | Act::RecvLeased => {
                let only = mailbox.as_ref().and_then(|mailbox| mailbox.only());
                if only.is_some_and(|only| others(&only)) {
                    return refused(Reason::TrustViolation, sites::NOT_RECEIVER);
                }
                if let Some(site) = self.not_mine(key) {
                    return refused(Reason::TrustViolation, site);
                }
                let mailbox = mailbox?;
                let senders = mailbox.senders_to(self.me(), core.now())?;
                if senders.is_empty() {
                    return refused(Reason::TrustViolation, sites::ONLY_OTHERS);
                }
                let asks = self.has_edges() && !mailbox.is_private();
                let is_linked = |from: &Arc<Principal>| {
                    !asks || !others(from) || self.agent().gate().may_hand(from, self.me())
                };
                match senders.iter().find(|(from, _)| is_linked(from)) {
                    None => refused(Reason::PolicyBlock, sites::NO_EDGE),
                    Some((_, Some(answer))) if core.closes_ring(answer, self.me()) => {
                        refused(Reason::LeaseHeld, sites::RING)
                    }
                    Some(_) => None,
                }
            }
            Act::Unbind => {
                let binder = mailbox.map_or_else(|| core.session_owner(key), |it| it.binder());
                match binder {
                    None => refused(Reason::Misroute, sites::UNBIND_FREE),
                    Some(binder) if others(&binder) => refused(Reason::TrustViolation, sites::UNBIND_OTHER),
                    Some(_) => None,
                }
            }
            Act::Bind => match core.ownership(key) {
                Ownership::Session(owner) | Ownership::Reserved(owner) if others(&owner) => {
                    refused(Reason::TrustViolation, sites::BIND_RESERVED)
                }
                Ownership::ActOnly(owner) if others(&owner) => {
                    refused(Reason::TrustViolation, sites::ACT_ONLY)
                }
                _ => mailbox
                    .and_then(|mailbox| mailbox.binder())
                    .filter(others)
                    .and_then(|_| refused(Reason::LeaseHeld, sites::BIND_HELD)),
            },
            _ => None,
        }
    }

    /// The nearest key that somebody made known and this agent may know of: opened by the host, or
    /// of somebody it shares a fleet or tenant with.
    fn nearest(&self, key: &ChannelKey) -> Option<ChannelKey> {
        let known = self.core().known_to(self.me(), key.locale());
        let names = known.iter().map(|key| key.id().as_str());
        let nearest = json::nearest(key.id(), names)?;
        known.iter().find(|key| key.id().as_str() == nearest).cloned()
    }
}

impl Core {
    /// The keys of a locale that `asker` may know of (§3.5).
    fn known_to(&self, asker: &Principal, locale: Locale) -> Vec<ChannelKey> {
        let mut known = Vec::new();
        let mut add = |key: &ChannelKey| {
            if key.locale() == locale {
                known.push(key.clone());
            }
        };
        for entry in &self.boxes {
            let of_peer = || entry.value().only().is_some_and(|owner| owner.shares_domain(asker));
            if entry.value().is_kept() || of_peer() {
                add(entry.key());
            }
        }
        for entry in &self.topics {
            if entry.value().subscribers().iter().any(|subscriber| subscriber.shares_domain(asker)) {
                add(entry.key());
            }
        }
        for account in &self.accounts {
            let peer = account.principal();
            if peer.shares_domain(asker) {
                let id = if locale == Locale::Session { peer.trace() } else { peer.id() };
                add(&ChannelKey::with_id(locale, id.clone()));
            }
        }
        known.sort();
        known.dedup();
        known
    }
}
