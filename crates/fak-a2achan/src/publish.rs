//! The act of publishing (§4.5).

use std::collections::HashSet;
use std::sync::Arc;
use std::task::Waker;

use fak_abi::{Act, Address, ChannelKey, Domains, Reason, Ref, Rider, ToolCall, Verdict};

use crate::config::Addressing;
use crate::endpoint::Endpoint;
use crate::entry::Extra;
use crate::message::Cause;
use crate::route::Route;
use crate::send::refusal;
use crate::sites;
use crate::topic::{Issued, Issuing, Spread, Topic};

/// What a publication came to (§4.5).
#[derive(Debug, Clone)]
#[must_use]
pub struct Publication {
    /// The verdict.
    pub verdict: Verdict,
    /// The number of the publication; 0 if it was refused or nobody ever subscribed.
    pub seq: u64,
    /// Subscribers that got a copy.
    pub fanout: u64,
    /// Subscribers it was not for: it may not flow to them, or there is no edge.
    pub skipped: u64,
    /// Subscribers whose inbox was full. They will be told.
    pub dropped: u64,
}

impl Publication {
    const fn refused(verdict: Verdict) -> Self {
        Self { verdict, seq: 0, fanout: 0, skipped: 0, dropped: 0 }
    }
}

impl Endpoint {
    /// Publishes to the subscribers of a topic: one adjudication, a copy to each whom the body may
    /// flow to, in the order in which they subscribed (§4.5). The body counts as queued bytes of this
    /// agent's once, until the last copy was taken (§4.12).
    ///
    /// Linear in their number, sixteen of one fleet and tenant counting as one unless some of them
    /// are slow.
    pub fn publish(&self, topic: &ChannelKey, body: &Ref) -> Publication {
        self.publish_with(topic, body, None)
    }

    /// Publishes with deadline, cancellation and metadata (§2.5). Copies that have not been received
    /// by the deadline become dead letters, as what is sent with one does.
    pub fn publish_with(&self, topic: &ChannelKey, body: &Ref, rider: Option<&Rider>) -> Publication {
        let call = ToolCall::new(self.agent(), Act::Publish)
            .args(body)
            .address(Address::Channel(topic))
            .rider(rider);
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Publication::refused(verdict),
        };
        let core = self.core();
        let refused = if core.is_closed() {
            Some(refusal(Reason::Misroute, sites::CLOSED))
        } else if core.config.addressing == Addressing::Declared && !core.is_known(topic) {
            Some(refusal(Reason::Misroute, sites::UNDECLARED))
        } else if core.act_only(topic).is_some() {
            Some(refusal(Reason::TrustViolation, sites::ACT_ONLY))
        } else {
            None
        };
        if let Some(refusal) = refused {
            return Publication::refused(self.refuse(permit, refusal));
        }
        // Reserved before rungs count, so that what there is no room for is not counted.
        let listed = match core.topic(topic) {
            None => None,
            Some(listed) => {
                let bytes = permit.transformed().unwrap_or(body).len();
                let Some(route) = self.reserve(&listed, bytes) else {
                    return Publication::refused(
                        self.refuse(permit, refusal(Reason::RateLimited, sites::BYTES)),
                    );
                };
                Some((listed, route, bytes))
            }
        };
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => {
                listed.into_iter().for_each(|(_, route, bytes)| route.leave_shared(bytes));
                return Publication::refused(verdict);
            }
        };
        let Some((listed, route, _)) = listed else {
            // Nobody subscribes.
            return Publication::refused(cleared.allow(0));
        };
        let deadline = rider.and_then(|rider| rider.deadline);
        let extra = Extra { expires: deadline, ..Extra::default() }.boxed();
        let body = cleared.transformed().unwrap_or(body);
        let issued = self.spread(&listed, route, (body, extra), |_| true);
        let Spread { seq, fanout, skipped, dropped } = issued.spread;
        let verdict = cleared.allow(seq);
        self.follow_up(issued);
        Publication { verdict, seq, fanout, skipped, dropped }
    }

    /// Takes bytes of this agent's limit, to publish with (§4.12). What has had its time stands in
    /// nobody's way.
    pub(crate) fn reserve(&self, topic: &Topic, bytes: usize) -> Option<Arc<Route>> {
        let account = self.account()?;
        topic.reserve(account, bytes).or_else(|| {
            let swept = self.core().sweep_of(account);
            if swept { topic.reserve(account, bytes) } else { None }
        })
    }

    /// The copies of an act that was allowed, to those in the domains that are `wanted`. What they have
    /// done besides is for [`Self::follow_up`].
    pub(crate) fn spread(
        &self,
        topic: &Topic,
        route: Arc<Route>,
        (body, extra): (&Ref, Option<Box<Extra>>),
        wanted: impl Fn(Domains<'_>) -> bool,
    ) -> Issued {
        let core = self.core();
        let Some(link) = core.link() else { return Issued::default() };
        let now = topic.is_timed().then(|| core.now());
        let linked = self.has_edges().then(|| {
            // Asked before the topic is locked. Who subscribes meanwhile is none of this.
            let (gate, me) = (self.agent().gate(), self.me());
            let mut subscribers = topic.subscribers();
            subscribers.retain(|subscriber| gate.may_hand(me, subscriber));
            subscribers.iter().map(|subscriber| subscriber.incarnation()).collect::<HashSet<_>>()
        });
        let issuing = Issuing { route, body, extra, linked: linked.as_ref(), now };
        topic.publish(issuing, link.sequence(), wanted)
    }

    /// Wakes whom copies are for, once the act has its entry, and buries what was in their way.
    pub(crate) fn follow_up(&self, issued: Issued) {
        let Issued { wakes, expired, .. } = issued;
        wakes.into_iter().for_each(Waker::wake);
        self.core().dead_copies(expired, Cause::Expire);
    }
}
