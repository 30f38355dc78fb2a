//! Acts of several that are carried through, in an episode that is urged: what takes a full mailbox, a lost publication or an
//! answer, and then somebody who does the one thing in time, seldom comes together by chance.

use fak_abi::ChannelKey;

use super::Sim;
use super::guards::guard_time;
use crate::sim::fault::Step;
use crate::sim::model::channels::What;
use crate::sim::model::{Key, Scope, Who};

/// The first of the keys that little else happens at: a mailbox there has seldom held anything with a time to live.
const QUIET: usize = 17;
/// Mailboxes larger than this are not filled on purpose.
const SMALL: usize = 8;

impl Sim {
    /// The newest body that somebody may share.
    fn own_body(&self, who: Who) -> Option<usize> {
        self.model
            .bodies
            .iter()
            .rposition(|body| body.owner == who && body.scope != Scope::Agent && !body.quarantined)
    }

    /// Those who are there and have something to share, from the `n`th on.
    fn sharers(&self, n: u8) -> Vec<(Who, usize)> {
        let live = (0..self.model.agents.len()).filter(|who| self.model.is_live(*who));
        let mut all: Vec<_> = live.filter_map(|who| Some((who, self.own_body(who)?))).collect();
        let by = usize::from(n) % all.len().max(1);
        all.rotate_left(by);
        all
    }

    /// §4.3: fills a mailbox, has several wait for room there, makes some, and drops whoever was woken: another must be.
    pub(super) fn crowd(&mut self, agent: u8, key: u8) -> Step {
        let (key, real) = Self::key_at(QUIET + usize::from(key % 3))?;
        let sharers = self.sharers(agent);
        let Some((filler, body)) = sharers.first().copied() else { return Ok(()) };
        if self.model.setup.capacity > SMALL {
            return Ok(());
        }
        for _ in 0..SMALL {
            if self.model.has_room(filler, &key) {
                self.send_by(filler, (&key, &real), body, None, None)?;
            }
        }
        for (who, body) in sharers.iter().copied().take(3) {
            self.wait_for_room(who, key.clone(), real.clone(), body, 1)?;
            self.poll_at(self.real.tasks.len() - 1)?;
        }
        if self.in_line(&key, false).is_none() {
            return Ok(());
        }
        // Whoever can takes one message; only then somebody is woken.
        for who in (0..self.model.agents.len()).rev() {
            if self.model.is_live(who) && self.in_line(&key, true).is_none() {
                self.try_recv_by(who, &key, &real)?;
            }
        }
        if let Some(woken) = self.in_line(&key, true) {
            drop(self.real.tasks.remove(woken));
        }
        self.settle(agent)
    }

    /// The first who waits for room at a key and was woken, or was not.
    fn in_line(&self, key: &Key, woken: bool) -> Option<usize> {
        self.real.tasks.iter().position(|task| {
            matches!(task.wait.what, What::Room(_))
                && task.wait.begun.is_some()
                && task.wait.key == *key
                && task.is_woken() == woken
        })
    }

    /// §4.5: publishes until a subscription has lost something.
    pub(super) fn flood(&mut self, at: usize, n: u8) -> Step {
        let Some(sub) = self.model.subs.get(at).filter(|sub| sub.open) else { return Ok(()) };
        let key = sub.key.clone();
        let real = real_key(&key)?;
        let Some((who, body)) = self.sharers(n).first().copied() else { return Ok(()) };
        for _ in 0..=SMALL {
            let is_lossy = self.model.subs.get(at).is_none_or(|sub| sub.missed > 0);
            if !is_lossy && self.model.setup.capacity <= SMALL {
                self.publish_by(who, (&key, &real), body)?;
            }
        }
        Ok(())
    }

    /// §4.7: a request that was just made is received, answered, and its answer is taken, or each of it too late.
    pub(super) fn exchange(&mut self, at: usize, how: u8) -> Step {
        let Some(asked) = self.model.asked.get(at).cloned() else { return Ok(()) };
        let real = real_key(&asked.key)?;
        let only = self.model.only(&asked.key).map(|who| vec![who]);
        let anybody = || (0..self.model.agents.len()).rev().filter(|who| self.model.is_live(*who)).collect();
        let received = self.model.inbox.len();
        for who in only.unwrap_or_else(anybody) {
            if self.model.inbox.len() > received {
                break;
            }
            if how.is_multiple_of(2) {
                self.lease_by(who, &asked.key, &real, guard_time(how))?;
            } else {
                self.try_recv_by(who, &asked.key, &real)?;
            }
        }
        let Some((receiver, at, _)) = self.model.inbox.get(received).copied() else { return Ok(()) };
        let Some(body) = self.own_body(receiver) else { return Ok(()) };
        if how % 8 == 2 {
            // Its guard is over, and so is the right to answer.
            self.advance(LONG)?;
        }
        self.reply_by(receiver, received, body)?;
        let is_there = |sim: &Self| sim.model.asked.get(at).is_some_and(|asked| asked.answer.is_some());
        let times = if how / 8 % 4 == 1 { 1 } else { 8 };
        for _ in 0..times {
            if !is_there(self) || how / 8 % 4 == 3 {
                break;
            }
            let guards = self.real.guards.len();
            self.lease_answer_of(at, guard_time(how))?;
            let Some(guard) = self.real.guards.get_mut(guards).and_then(Option::take) else { break };
            if how / 8 % 4 == 0 {
                self.advance(LONG)?;
                self.ack_of(guards, guard)?;
            } else {
                drop(guard);
                self.model.drop_guard(guards);
            }
        }
        self.take_answer_of(at)
    }
}

/// A step of the clock that outlasts every guard.
const LONG: u8 = 6;

fn real_key(key: &Key) -> Result<ChannelKey, crate::sim::fault::Fault> {
    key.text().parse().map_err(crate::sim::real::broken)
}
