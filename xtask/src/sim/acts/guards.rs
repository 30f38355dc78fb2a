//! Receiving under a guard: from mailboxes, group inboxes and subscriptions, and answers (§4.4).

use std::time::Duration;

use fak_a2achan::LeasedMessage;
use fak_abi::{ChannelKey, Id, Reason};

use super::Sim;
use super::compare::verdict;
use crate::sim::fault::{Fault, Step};
use crate::sim::model::{Key, Who};
use crate::sim::real::broken;

/// How long a guard lasts, in microseconds.
pub(super) fn guard_time(time: u8) -> u64 {
    u64::from(time) * 50_000 + 1
}

impl Sim {
    pub(super) fn lease(&mut self, agent: u8, key: u8, time: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let (key, real_key) = Self::key(key)?;
        self.lease_by(who, &key, &real_key, guard_time(time))
    }

    pub(super) fn lease_by(&mut self, who: Who, key: &Key, real_key: &ChannelKey, lease: u64) -> Step {
        let model = self.model.try_recv(who, key, Some(lease));
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.try_recv_leased(real_key, Some(Duration::from_micros(lease)));
        self.leased(who, product, 0, &model)
            .map_err(|fault| Fault::new(format!("{fault} (try_recv_leased at {})", key.text())))
    }

    fn guard(&mut self, guard: u8) -> Option<(usize, LeasedMessage)> {
        let open = self.real.guards.iter().enumerate().filter(|(_, guard)| guard.is_some()).map(|(at, _)| at);
        let open: Vec<usize> = open.collect();
        let at = *open.get(usize::from(guard) % open.len().max(1))?;
        Some((at, self.real.guards.get_mut(at)?.take()?))
    }

    /// §4.4: what was acknowledged in time is consumed, once; what was not goes on.
    pub(super) fn ack(&mut self, guard: u8) -> Step {
        let Some((at, guard)) = self.guard(guard) else { return Ok(()) };
        self.ack_of(at, guard)
    }

    pub(super) fn ack_of(&mut self, at: usize, guard: LeasedMessage) -> Step {
        let model = if self.model.ack(at) { Ok(()) } else { Err(Reason::Misroute) };
        verdict("§4.4: ack", &guard.ack(), model)
    }

    pub(super) fn give_back(&mut self, guard: u8) -> Step {
        if let Some((at, guard)) = self.guard(guard) {
            drop(guard);
            self.model.drop_guard(at);
        }
        Ok(())
    }

    /// In an episode that is urged, a subscription that has lost something, or else one that has something.
    fn lossy_sub(&self) -> Option<usize> {
        let there = |at: &usize| self.real.subs.get(*at).is_some_and(Option::is_some);
        let rank = |at: &usize| self.model.subs.get(*at).map(|sub| (sub.missed > 0, sub.queue.len()));
        let queued = |at: &usize| self.model.subs.get(*at).is_some_and(|sub| !sub.queue.is_empty());
        let all = (0..self.model.subs.len()).filter(|_| self.model.setup.urged);
        all.filter(there).filter(queued).max_by_key(rank)
    }

    pub(super) fn lease_sub(&mut self, sub: u8, time: u8) -> Step {
        let at = self.lossy_sub().filter(|_| !sub.is_multiple_of(4)).unwrap_or_else(|| self.sub_at(sub));
        if self.model.setup.urged {
            self.flood(at, time)?;
        }
        let time = guard_time(time);
        let Some(subscription) = self.real.subs.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        let Some(who) = self.model.subs.get(at).map(|sub| sub.who) else { return Ok(()) };
        let product = subscription.try_recv_leased(Some(Duration::from_micros(time)));
        let (model, missed) = self.model.pull(at, false, Some(time));
        let told = |fault| Fault::new(format!("{fault} (a copy under a guard)"));
        self.leased(who, product, missed, &model).map_err(told)?;
        if missed > 0 && self.model.setup.urged {
            // What was told once is not told again.
            let newest = self.real.guards.len() - 1;
            self.real.guards.get_mut(newest).into_iter().for_each(|guard| drop(guard.take()));
            self.model.drop_guard(newest);
            return self.pull_at(at);
        }
        Ok(())
    }

    pub(super) fn lease_answer(&mut self, request: u8, time: u8) -> Step {
        if self.model.setup.urged && request % 4 < 3 {
            return self.converse(request, time);
        }
        let Some(at) = self.asked_at(request) else { return Ok(()) };
        self.lease_answer_of(at, guard_time(time))
    }

    pub(super) fn lease_answer_of(&mut self, at: usize, time: u64) -> Step {
        let Some(pending) = self.real.asked.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        let product = pending.try_take_leased(Some(Duration::from_micros(time)));
        let who = self.model.asked.get(at).map_or(0, |asked| asked.who);
        let model = self.model.take_answer(at, Some(time));
        self.leased(who, product, 0, &model)
            .map_err(|fault| Fault::new(format!("{fault} (§4.7: an answer under a guard)")))
    }

    pub(super) fn lease_group(&mut self, agent: u8, group: u8, time: u8) -> Step {
        let (at, members) = self.group(group);
        let Some(who) = self.member(agent, &members) else { return Ok(()) };
        let time = guard_time(time);
        let model = self.model.recv_group(who, at, Some(time));
        let name = self.model.groups.get(at).map(|group| group.name.clone()).unwrap_or_default();
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let id = Id::new(&name).map_err(broken)?;
        let product = endpoint.try_recv_group_leased(&id, Some(Duration::from_micros(time)));
        self.leased(who, product, 0, &model)
            .map_err(|fault| Fault::new(format!("{fault} (group inbox of {name}, under a guard)")))
    }
}
