//! Acts of several that are carried through, in an episode that is urged: what takes a full mailbox, a lost publication or an
//! answer, and then somebody who does the one thing in time, seldom comes together by chance.

use fak_abi::ChannelKey;

use super::Sim;
use super::guards::guard_time;
use crate::sim::fault::{Fault, Step};
use crate::sim::model::channels::What;
use crate::sim::model::{Key, Scope, Who};
use crate::sim::real::broken;

/// The first of the keys that little else happens at: a mailbox there has seldom held anything with a time to live.
const QUIET: usize = 17;
/// Mailboxes larger than this are not filled on purpose.
const SMALL: usize = 8;

impl Sim {
    /// The newest body of somebody that it may share with another; one that is made for it, if there is none.
    fn own_body(&mut self, who: Who, with: Who) -> Result<Option<usize>, Fault> {
        let there = |sim: &Self| {
            sim.model.bodies.iter().rposition(|body| {
                body.owner == who && body.scope != Scope::Agent && sim.model.flows(body, with)
            })
        };
        if there(self).is_none() {
            let is_near = self.model.fleet(who).is_some() && self.model.fleet(who) == self.model.fleet(with);
            self.mint_by(who, 0)?;
            self.widen_by(
                who,
                self.model.bodies.len() - 1,
                if is_near { Scope::Fleet } else { Scope::Tenant },
            )?;
        }
        Ok(there(self))
    }

    /// Those who are there, from the `n`th on.
    fn those_there(&self, n: u8) -> Vec<Who> {
        let mut all: Vec<_> = (0..self.model.agents.len()).filter(|who| self.model.is_live(*who)).collect();
        let by = usize::from(n) % all.len().max(1);
        all.rotate_left(by);
        all
    }

    /// §4.3: fills a mailbox, has several wait for room there, makes some, and drops whoever was woken: another must be.
    pub(super) fn crowd(&mut self, agent: u8, key: u8) -> Step {
        let (key, real) = Self::key_at(QUIET + usize::from(key % 3))?;
        if self.model.setup.capacity > SMALL {
            return Ok(());
        }
        let there = self.those_there(agent);
        let Some(filler) = there.first().copied() else { return Ok(()) };
        let Some(body) = self.own_body(filler, filler)? else { return Ok(()) };
        for _ in 0..SMALL {
            if self.model.has_room(filler, &key) {
                self.send_by(filler, (&key, &real), body, None, None)?;
            }
        }
        for who in there.iter().copied().take(3) {
            if let Some(body) = self.own_body(who, who)? {
                self.wait_for_room(who, key.clone(), real.clone(), body, 1)?;
                self.poll_at(self.real.tasks.len() - 1)?;
            }
        }
        if self.in_line(&key, false).is_none() {
            return Ok(());
        }
        // Whoever can takes one message; only then somebody is woken.
        for who in there.into_iter().rev() {
            if self.in_line(&key, true).is_none() {
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
        let real = key.text().parse().map_err(broken)?;
        let to = sub.who;
        let Some(who) = self.those_there(n).first().copied() else { return Ok(()) };
        let Some(body) = self.own_body(who, to)? else { return Ok(()) };
        for _ in 0..=SMALL {
            let is_lossy = self.model.subs.get(at).is_none_or(|sub| sub.missed > 0);
            if !is_lossy && self.model.setup.capacity <= SMALL {
                self.publish_by(who, (&key, &real), body)?;
            }
        }
        Ok(())
    }

    /// §4.7: somebody asks another along an edge, and is answered.
    pub(super) fn converse(&mut self, n: u8, how: u8) -> Step {
        let there = self.those_there(n);
        let ways = there.iter().flat_map(|from| there.iter().map(|to| (*from, *to)));
        let nowhere = Key { locale: "session", id: String::new() };
        let near = |from: Who, to: Who| {
            let fleet = self.model.fleet(from).is_some_and(|fleet| self.model.fleet(to) == Some(fleet));
            fleet || self.model.tenant(from).is_some_and(|tenant| self.model.tenant(to) == Some(tenant))
        };
        let mut ways = ways.filter(|(from, to)| {
            from != to && near(*from, *to) && self.model.is_linked(&nowhere, *from, *to)
        });
        let Some((from, to)) = ways.next() else { return Ok(()) };
        let id = self.model.agent(to).map(|agent| agent.trace.clone()).unwrap_or_default();
        let (Some(question), Some(answer)) = (self.own_body(from, to)?, self.own_body(to, from)?) else {
            return Ok(());
        };
        let key = Key { locale: "session", id };
        let real = key.text().parse().map_err(broken)?;
        let Some(at) = self.request_by(from, (&key, &real), question, (None, how >= 128))? else {
            return Ok(());
        };
        self.answered(at, (to, &key, &real), answer, how)
    }

    /// A request that was just made is received and answered, and its answer is taken; or each of it too late.
    fn answered(
        &mut self,
        at: usize,
        (to, key, real): (Who, &Key, &ChannelKey),
        answer: usize,
        how: u8,
    ) -> Step {
        // What came before it is received as well.
        let mut received = None;
        for _ in 0..SMALL {
            let before = self.model.inbox.len();
            if how.is_multiple_of(2) {
                self.lease_by(to, key, real, guard_time(how))?;
            } else {
                self.try_recv_by(to, key, real)?;
            }
            received = (before..self.model.inbox.len()).find(|n| self.is_request(*n, at));
            if received.is_some() {
                break;
            }
        }
        let Some(received) = received else { return Ok(()) };
        if how % 4 == 2 {
            // Its guard is over, and so is the right to answer.
            self.advance(LONG)?;
        }
        self.reply_by(to, received, answer)?;
        let ending = how / 4 % 4;
        let (is_late, is_worn) = (ending == 0, ending == 1);
        for _ in 0..if is_worn { SMALL } else { 1 } {
            let guards = self.real.guards.len();
            if ending < 3 {
                self.lease_answer_of(at, guard_time(how))?;
            }
            let Some(guard) = self.real.guards.get_mut(guards).and_then(Option::take) else { break };
            if is_late {
                self.advance(LONG)?;
                self.ack_of(guards, guard)?;
            } else {
                drop(guard);
                self.model.drop_guard(guards);
            }
        }
        self.take_answer_of(at)
    }

    /// Whether what was received as the `n`th request is the one that was made as the `at`th.
    fn is_request(&self, n: usize, at: usize) -> bool {
        self.model.inbox.get(n).is_some_and(|(_, request, _)| *request == at)
    }
}

/// A step of the clock that outlasts every guard.
const LONG: u8 = 6;
