//! The act of publishing (§4.5).

use std::collections::HashSet;

use fak_abi::{Act, Address, ChannelKey, Principal, Reason, Ref, Rider, ToolCall, Verdict};

use crate::config::Addressing;
use crate::endpoint::Endpoint;
use crate::send::refusal;
use crate::sites;
use crate::topic::Spread;

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
    /// flow to, in the order in which they subscribed (§4.5). Linear in their number.
    pub fn publish(&self, topic: &ChannelKey, body: &Ref) -> Publication {
        self.publish_with(topic, body, None)
    }

    /// Publishes with deadline, cancellation and metadata (§2.5).
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
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => return Publication::refused(verdict),
        };
        let spread = self.spread(topic, cleared.transformed().unwrap_or(body), |_| true);
        let verdict = cleared.allow(spread.seq);
        let Spread { seq, fanout, skipped, dropped } = spread;
        Publication { verdict, seq, fanout, skipped, dropped }
    }

    /// The copies of an act that was allowed, to those whom `wanted` names besides.
    pub(crate) fn spread(
        &self,
        topic: &ChannelKey,
        body: &Ref,
        wanted: impl Fn(&Principal) -> bool,
    ) -> Spread {
        let core = self.core();
        let Some(topic) = core.topics.get(topic).map(|topic| std::sync::Arc::clone(&topic)) else {
            return Spread::default();
        };
        let Some(link) = core.link() else { return Spread::default() };
        let gate = self.agent().gate();
        let me = self.me();
        let (spread, wakes) = if self.has_edges() {
            // Asked before the topic is locked. Who subscribes meanwhile is none of this.
            let subscribers = topic.subscribers();
            let linked: HashSet<u64> = subscribers
                .iter()
                .filter(|subscriber| gate.may_hand(me, subscriber))
                .map(|subscriber| subscriber.incarnation())
                .collect();
            let admits = |to: &Principal| wanted(to) && linked.contains(&to.incarnation());
            topic.publish(me, body.clone(), None, link.sequence(), admits)
        } else {
            topic.publish(me, body.clone(), None, link.sequence(), wanted)
        };
        wakes.into_iter().for_each(std::task::Waker::wake);
        spread
    }
}
