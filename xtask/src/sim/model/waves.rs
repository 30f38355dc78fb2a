//! Groups: what is handed to every member or to none, what is gathered, and barriers that nobody's end can wedge (§6).

use fak_abi::Reason;

use super::channels::Msg;
use super::groups::PARENT;
use super::host::Act;
use super::{Body, Model, Who};

/// How a member stands at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Missing,
    Arrived,
    Gone,
}

/// A barrier (§6.5).
#[derive(Debug, Clone)]
pub(crate) struct Barrier {
    pub(crate) group: usize,
    pub(crate) members: Vec<String>,
    pub(crate) slots: Vec<Slot>,
}

/// A hand-over that was admitted for every rank, and is neither completed nor withdrawn.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) who: Who,
    pub(crate) group: usize,
    pub(crate) bodies: Vec<Body>,
    /// Who every rank was when it was admitted.
    pub(crate) to: Vec<Who>,
}

/// What an arrival shows that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forged {
    Nothing,
    Wave,
    Id,
    Size,
}

impl Barrier {
    pub(crate) fn is_complete(&self) -> bool {
        self.slots.iter().all(|slot| *slot != Slot::Missing)
    }

    /// The ids of those who stand so.
    pub(crate) fn who(&self, how: Slot) -> Vec<String> {
        let all = self.members.iter().zip(&self.slots);
        all.filter(|(_, slot)| **slot == how).map(|(id, _)| id.clone()).collect()
    }
}

impl Model {
    /// §6.3: rank by rank, all or none. The index of what is pending; or the rank that was refused, and why.
    pub(crate) fn hand(
        &mut self,
        act: Act,
        who: Who,
        group: usize,
        bodies: &[Body],
    ) -> Result<usize, (usize, Reason)> {
        let number = self.pending.len();
        let mut to = Vec::new();
        for (rank, (member, body)) in self.members(group).iter().zip(bodies).enumerate() {
            match self.promise(act, who, group, member, body, number) {
                Ok(member) => to.push(member),
                Err(reason) => {
                    self.take_back(number);
                    return Err((rank, reason));
                }
            }
        }
        self.pending.push(Pending { who, group, bodies: bodies.to_vec(), to });
        Ok(number)
    }

    fn promise(
        &mut self,
        act: Act,
        who: Who,
        group: usize,
        member: &str,
        body: &Body,
        number: usize,
    ) -> Result<Who, Reason> {
        self.floor(act, who, None, None)?;
        if !self.flows(body, who) {
            return Err(Reason::TrustViolation);
        }
        let member = self.attached(member).ok_or(Reason::Misroute)?;
        if !self.would_flow(body, member) {
            return Err(Reason::TrustViolation);
        }
        self.fold(act, who, Some(member), &self.group_address(group), Some(body))?;
        let key = self.group_key(group, member);
        if !self.need_inbox(&key, member, who) {
            return Err(Reason::RateLimited);
        }
        self.find_place(&key, who, body)?;
        if let Some(inbox) = self.boxes.get_mut(&key) {
            inbox.promised.push((number, who, body.text.len() as u64));
        }
        Ok(member)
    }

    /// What was promised is free again.
    pub(crate) fn take_back(&mut self, number: usize) {
        self.boxes.values_mut().for_each(|inbox| inbox.promised.retain(|(of, ..)| *of != number));
        self.orphans.retain(|(of, ..)| *of != number);
    }

    /// §6.2: hands over, in rank order. The ranks that it was lost on.
    pub(crate) fn complete(&mut self, number: usize) -> Vec<usize> {
        let Some(pending) = self.pending.get(number).cloned() else { return Vec::new() };
        let mut lost = Vec::new();
        for (rank, (to, body)) in pending.to.iter().zip(pending.bodies).enumerate() {
            let key = self.group_key(pending.group, *to);
            if !self.is_live(pending.who) {
                lost.push(rank);
                continue;
            }
            self.books.sent += 1;
            let msg = Msg { from: pending.who, body, ..Msg::default() };
            match self.boxes.get_mut(&key) {
                Some(inbox) => {
                    self.placed += 1;
                    inbox.promised.retain(|(of, ..)| *of != number);
                    inbox.queue.push(Msg { order: self.placed, ..msg });
                }
                None => {
                    self.orphans.retain(|(of, ..)| *of != number);
                    self.bury([msg], "gone");
                    lost.push(rank);
                }
            }
        }
        lost
    }

    /// A look into one's inbox of a group; with `lease`, under a guard of so many microseconds.
    pub(crate) fn recv_group(&mut self, who: Who, group: usize, lease: Option<u64>) -> super::channels::Got {
        let act = if lease.is_some() { Act::RecvLeased } else { Act::Recv };
        self.attempt(act, who, &self.group_key(group, who), lease)
    }

    /// §6.4, as far as its verdict goes: the first part that may not flow to the gatherer, or that is held at the door.
    pub(crate) fn gather(
        &self,
        who: Who,
        group: usize,
        parts: &[Body],
    ) -> Result<(), (usize, Option<Reason>)> {
        for (rank, part) in parts.iter().enumerate() {
            let admitted = self.floor(Act::Gather, who, None, None).and_then(|()| {
                if !self.flows(part, who) {
                    return Err(Reason::TrustViolation);
                }
                self.fold(Act::Gather, who, None, &self.group_address(group), Some(part)).map(drop)
            });
            admitted.map_err(|reason| (rank, Some(reason)))?;
        }
        let held = parts.iter().position(|part| self.holds_back(&part.text));
        held.map_or(Ok(()), |rank| Err((rank, None)))
    }

    pub(crate) fn open_barrier(&mut self, who: Who, group: usize) -> Result<usize, Reason> {
        self.admit_at(Act::Barrier, who, &self.group_address(group), None)?;
        let members = self.members(group);
        let slots = vec![Slot::Missing; members.len()];
        self.barriers.push(Barrier { group, members, slots });
        Ok(self.barriers.len() - 1)
    }

    /// §6.5: every member by its own act.
    pub(crate) fn arrive(&mut self, who: Who, at: usize, rank: usize, forged: Forged) -> Result<(), Reason> {
        let Some(barrier) = self.barriers.get(at).cloned() else { return Ok(()) };
        self.admit_at(Act::Arrive, who, &self.group_address(barrier.group), None)?;
        if !self.has_credit(Act::Arrive) {
            return Err(Reason::RateLimited);
        }
        let me = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        let mine = barrier.members.get(rank).is_some_and(|member| *member == me);
        match (forged, barrier.slots.get(rank)) {
            (Forged::Wave, _) => Err(Reason::Misroute),
            (Forged::Id, _) => Err(Reason::TrustViolation),
            _ if !mine => Err(Reason::TrustViolation),
            (_, Some(Slot::Gone) | None) => Err(Reason::TrustViolation),
            (_, Some(Slot::Arrived)) => Err(Reason::Malformed),
            (Forged::Size, _) => Err(Reason::Malformed),
            _ => {
                self.count(Act::Arrive);
                self.settle_slot(at, rank, Slot::Arrived);
                Ok(())
            }
        }
    }

    /// §6.5: declared gone by itself, or by whoever spawned the group.
    pub(crate) fn depart(&mut self, who: Who, at: usize, member: &str) -> Result<(), Reason> {
        let Some(barrier) = self.barriers.get(at).cloned() else { return Ok(()) };
        self.admit_at(Act::Depart, who, &self.group_address(barrier.group), None)?;
        if !self.has_credit(Act::Depart) {
            return Err(Reason::RateLimited);
        }
        let me = self.agent(who).cloned();
        let may =
            me.is_some_and(|me| me.id == member || self.has_parent(barrier.group) && me.trace == PARENT);
        if !may {
            return Err(Reason::TrustViolation);
        }
        if !self.gone(at, member) {
            return Err(Reason::Misroute);
        }
        self.count(Act::Depart);
        Ok(())
    }

    /// Marks a member gone that is missing; false if there is none.
    pub(crate) fn gone(&mut self, at: usize, member: &str) -> bool {
        let Some(barrier) = self.barriers.get(at).cloned() else { return false };
        let rank = barrier.members.iter().position(|other| *other == member);
        let missing = rank.filter(|rank| barrier.slots.get(*rank) == Some(&Slot::Missing));
        missing.inspect(|rank| self.settle_slot(at, *rank, Slot::Gone)).is_some()
    }

    fn settle_slot(&mut self, at: usize, rank: usize, how: Slot) {
        if let Some(slot) = self.barriers.get_mut(at).and_then(|barrier| barrier.slots.get_mut(rank)) {
            *slot = how;
        }
    }

    /// Who is detached is gone everywhere; what it had pending is withdrawn (§2.3).
    pub(super) fn forget_waves(&mut self, who: Who) {
        let id = self.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        for at in 0..self.barriers.len() {
            self.gone(at, &id);
        }
        let own = |(_, pending): &(usize, &Pending)| pending.who == who;
        let numbers: Vec<usize> =
            self.pending.iter().enumerate().filter(own).map(|(number, _)| number).collect();
        numbers.into_iter().for_each(|number| self.take_back(number));
    }
}
