//! The engine that moves what collectives hand over (§6.2, §6.3): a slot in each member's group
//! inbox is claimed at submit and filled at reap, so a hand-over cannot be refused half way.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fak_abi::{
    Act, Address, Claiming, Engine, EngineClaim, Id, OwnedAddress, OwnedCall, Principal, Reason, RungName,
    ToolCall, ToolResult, Verdict,
};

use crate::account::{Account, InboxName};
use crate::channel::Waiting;
use crate::core::Core;
use crate::delivery::Delivery;
use crate::endpoint::Endpoint;
use crate::entry::Entry;
use crate::mailbox::{Block, Mailbox, Offer};
use crate::message::Cause;
use crate::recv::Incoming;
use crate::route::Route;
use crate::send::refusal;
use crate::sites;

const INBOXES: RungName = "a2achan/inboxes";

/// See the module.
pub(crate) struct Inboxes(pub(crate) Arc<Core>);

/// A slot in a member's inbox; given back when it is dropped unfilled.
struct Slot {
    inbox: Arc<Mailbox>,
    sender: Arc<Account>,
    member: Arc<Principal>,
    route: Arc<Route>,
    bytes: usize,
    filled: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.filled {
            self.inbox.unreserve(&self.route, self.bytes);
        }
    }
}

impl Core {
    /// A member's inbox for a group, charged to whoever has it made.
    fn group_inbox(
        &self,
        member: &Account,
        group: &Id,
        rank: u32,
        maker: &Arc<Account>,
    ) -> Option<Arc<Mailbox>> {
        self.own_inbox(member, InboxName::Group(group.clone()), maker, || {
            OwnedAddress::Group(group.clone(), rank)
        })
    }
}

impl Inboxes {
    fn reserve(&self, call: &ToolCall<'_>) -> Result<Slot, (Reason, &'static fak_abi::SiteInfo)> {
        let core = &self.0;
        let gone = (Reason::Misroute, sites::MEMBER_GONE);
        let sender = core.account(call.principal()).ok_or((Reason::TrustViolation, sites::FOREIGN))?;
        let (Address::Group(group, rank), Some(member), Some(body)) =
            (call.target(), call.resolved(), call.body())
        else {
            return Err(gone);
        };
        let account = core.account(member).ok_or(gone)?;
        let inbox = core
            .group_inbox(&account, group, rank, &sender)
            .ok_or((Reason::RateLimited, sites::MAILBOXES))?;
        let offer = Offer { from: &sender, route: None, body, recipient: Some(member) };
        let reserved = match inbox.reserve(&offer) {
            // What has had its time burdens nobody (§4.10).
            Err(Block::Bytes) if core.sweep_of(&sender) => inbox.reserve(&offer),
            reserved => reserved,
        };
        let route = reserved.map_err(|block| match block {
            Block::End if core.is_closed() => (Reason::Misroute, sites::CLOSED),
            Block::End | Block::Move => gone,
            Block::Unreadable => (Reason::TrustViolation, sites::MEMBER_UNREADABLE),
            Block::Full | Block::Share => (Reason::RateLimited, sites::FULL),
            Block::Bytes => (Reason::RateLimited, sites::BYTES),
        })?;
        let member = Arc::clone(member);
        Ok(Slot { inbox, sender, member, route, bytes: body.len(), filled: false })
    }
}

impl Engine for Inboxes {
    fn name(&self) -> RungName {
        INBOXES
    }

    fn serves(&self) -> Vec<String> {
        [Act::Broadcast, Act::Scatter].map(|act| act.tool().to_owned()).into()
    }

    fn claim(&self, call: &ToolCall<'_>) -> Claiming {
        match self.reserve(call) {
            Ok(slot) => Claiming::Held(EngineClaim::new(slot)),
            Err((reason, site)) => Claiming::Refuse(refusal(reason, site)),
        }
    }

    fn poll_run(
        &self,
        call: &OwnedCall,
        claim: &mut Option<EngineClaim>,
        _cx: &mut Context<'_>,
    ) -> Poll<ToolResult> {
        let slot = claim.take().and_then(|claim| claim.downcast::<Slot>().ok());
        let view = call.view();
        let (Some(mut slot), Some(body), Some(link)) = (slot, view.body(), self.0.link()) else {
            return Poll::Ready(ToolResult::error());
        };
        slot.filled = true;
        let Slot { inbox, sender, member, route, .. } = &*slot;
        let offer = Offer { from: sender, route: Some(route), body, recipient: Some(member) };
        Poll::Ready(match inbox.fill(&offer, None, link.sequence()) {
            Ok((_, wake)) => {
                wake.into_iter().for_each(Waker::wake);
                ToolResult::ok(None)
            }
            Err(_) => {
                let entry =
                    Entry { seq: call.seq(), route: Arc::clone(route), body: body.clone(), extra: None };
                {
                    let mut past = self.0.past.lock();
                    (past.sent, past.dead) = (past.sent + 1, past.dead + 1);
                }
                self.0.dead_letters(vec![entry], Cause::Gone);
                ToolResult::refuse(Verdict::deny(refusal(Reason::Misroute, sites::MEMBER_GONE), INBOXES))
            }
        })
    }
}

impl Endpoint {
    /// Receives from this agent's inbox for a group if something is there (§6.3).
    pub fn try_recv_group(&self, group: &Id) -> Delivery {
        let inbox = self.account().and_then(|account| account.find_inbox(&InboxName::Group(group.clone())));
        let address = OwnedAddress::Group(group.clone(), 0);
        let address = inbox.as_ref().map_or(&address, |inbox| inbox.address());
        self.take(inbox.as_ref(), &Incoming { address: address.view(), ..Incoming::group() }).0
    }

    /// Waits at this agent's inbox for a group (§6.3).
    ///
    /// # Cancel safety
    /// As [`Endpoint::recv`].
    pub async fn recv_group(&self, group: &Id) -> Delivery {
        let inbox = match self.group_inbox_to_wait_at(Act::Recv, group) {
            Ok(inbox) => inbox,
            Err(verdict) => return Delivery::Refuse(verdict),
        };
        let incoming = Incoming { address: inbox.address().view(), ..Incoming::group() };
        Waiting::new(self, &inbox).take(&incoming).await.0
    }

    /// This agent's inbox for a group, made if there is none.
    pub(crate) fn group_inbox_to_wait_at(&self, act: Act, group: &Id) -> Result<Arc<Mailbox>, Verdict> {
        let inbox = self.account().and_then(|account| self.core().group_inbox(account, group, 0, account));
        inbox.ok_or_else(|| {
            let call = ToolCall::new(self.agent(), act).address(Address::Group(group, 0));
            match self.admit(&call) {
                Ok(permit) => self.refuse(permit, refusal(Reason::RateLimited, sites::MAILBOXES)),
                Err(verdict) => verdict,
            }
        })
    }
}
