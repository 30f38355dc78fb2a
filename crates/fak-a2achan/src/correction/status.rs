//! Statuses (§4.9): what a worker says it is doing, posted by its own handle, seen by those who
//! share its fleet or tenant.

use std::sync::Arc;

use fak_abi::{Act, Address, Digest, Domains, Peer, Reason, ShareScope, Taint, ToolCall, Verdict};

use super::envelope::WorkerStatus;
use crate::core::STATUS;
use crate::driver::act_only_key;
use crate::endpoint::Endpoint;
use crate::route::Route;
use crate::send::refusal;
use crate::sites;

/// What posting a status came to (§4.9).
#[derive(Debug, Clone)]
#[must_use]
pub struct PostedStatus {
    /// The verdict.
    pub verdict: Verdict,
    /// The digest by which a correction cites the status.
    pub digest: Digest,
}

/// An attached agent, as another sees it (§4.10).
#[derive(Debug, Clone)]
pub struct Presence {
    /// Who, and what it did last.
    pub peer: Peer,
    /// Its status and the digest of that, if it has posted one.
    pub status: Option<(WorkerStatus, Digest)>,
}

impl Endpoint {
    /// Posts this agent's status (§4.9): it becomes the live one, and those who have subscribed to
    /// the status key get it.
    pub fn post_status(&self, status: &WorkerStatus) -> PostedStatus {
        let digest = status.digest();
        PostedStatus { verdict: self.post(status, digest), digest }
    }

    fn post(&self, status: &WorkerStatus, digest: Digest) -> Verdict {
        let me = self.me();
        let Some(key) = act_only_key(STATUS, me.id()) else { return self.malformed(Act::Status, None) };
        // One copy for each audience: fleet and tenant are incomparable.
        let scopes = [(me.fleet().is_some(), ShareScope::Fleet), (me.tenant().is_some(), ShareScope::Tenant)];
        let scopes: Vec<_> = scopes.into_iter().filter(|(has, _)| *has).map(|(_, scope)| scope).collect();
        let host = self.core().host();
        let bodies: Vec<_> = scopes
            .iter()
            .filter_map(|scope| host.as_ref()?.issue(me, status.to_json().into(), Taint::Tainted, *scope))
            .collect();
        let call = ToolCall::new(self.agent(), Act::Status).address(Address::Channel(&key));
        let call = bodies.first().map_or(call, |body| call.args(body));
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return verdict,
        };
        let blank = |text: &str| text.trim().is_empty();
        let refused =
            if blank(&status.worker_id) || blank(&status.lane) || status.issue <= 0 || status.seq <= 0 {
                Some((Reason::Malformed, sites::STATUS_MALFORMED))
            } else if status.worker_id != me.id().as_str() {
                Some((Reason::TrustViolation, sites::STATUS_OTHER))
            } else if self.core().is_closed() {
                Some((Reason::Misroute, sites::CLOSED))
            } else if bodies.is_empty() {
                Some((Reason::TrustViolation, sites::CORRECTION_APART))
            } else {
                None
            };
        if let Some((reason, site)) = refused {
            return self.refuse(permit, refusal(reason, site));
        }
        // Reserved before the status is posted: its copies are as much queued as any (§4.12).
        let listed = self.core().topic(&key);
        let body_of = |body| permit.transformed().unwrap_or(body).len();
        let mut routes = Vec::new();
        for bytes in listed.iter().flat_map(|_| bodies.iter().map(body_of)) {
            match listed.as_ref().and_then(|listed| self.reserve(listed, bytes)) {
                Some(route) => routes.push((route, bytes)),
                None => {
                    give_back(routes);
                    return self.refuse(permit, refusal(Reason::RateLimited, sites::BYTES));
                }
            }
        }
        let cleared = match self.charge(permit) {
            Ok(cleared) => cleared,
            Err(verdict) => {
                give_back(routes);
                return verdict;
            }
        };
        if !self.core().book.lock().post(me, status.clone(), digest) {
            give_back(routes);
            return self.revoke(cleared, refusal(Reason::Malformed, sites::STATUS_STALE));
        }
        if !me.is_attached() {
            // A detach that came between has ended what there was before it.
            self.core().book.lock().forget(me);
            give_back(routes);
            return self.revoke(cleared, refusal(Reason::DefaultDeny, sites::DETACHED));
        }
        let mut copies = Vec::new();
        for (body, (route, _)) in bodies.iter().zip(routes) {
            let Some(listed) = &listed else { break };
            // Whoever shares the fleet gets the fleet's copy only.
            let twice = |to: Domains<'_>| {
                body.scope() == ShareScope::Tenant && me.fleet().is_some() && me.fleet() == to.fleet
            };
            let body = cleared.transformed().unwrap_or(body);
            copies.push(self.spread(listed, route, (body, None), |to| !twice(to)));
        }
        let verdict = cleared.allow(copies.iter().map(|issued| issued.spread.seq).max().unwrap_or_default());
        copies.into_iter().for_each(|issued| self.follow_up(issued));
        verdict
    }

    /// The attached agents that this one may see, with their statuses (§4.10). Needs no capability.
    #[must_use]
    pub fn who(&self) -> Vec<Presence> {
        let core = self.core();
        let peers = self.agent().who();
        let presence = |peer: Peer| {
            let principal = core.accounts.get(&peer.id).map(|account| Arc::clone(account.principal()));
            let status = principal.and_then(|principal| {
                let book = core.book.lock();
                book.status(principal.incarnation()).map(|(status, digest)| (status.clone(), digest))
            });
            Presence { peer, status }
        };
        peers.into_iter().map(presence).collect()
    }
}

/// Nothing is published with them after all.
fn give_back(routes: Vec<(Arc<Route>, usize)>) {
    routes.into_iter().for_each(|(route, bytes)| route.leave_shared(bytes));
}
