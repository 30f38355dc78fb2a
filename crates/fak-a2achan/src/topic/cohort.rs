//! Subscribers of one fleet and tenant share a log: a publication is put there once, and each of
//! them reads on from where it is. Whoever cannot read on (its inbox is full, it keeps a copy for a
//! while, not everything is for it) parts: it gets a queue of its own, which is in `own`, until that
//! is empty. So the log never holds more than a capacity, a slow subscriber loses its own copies
//! only, and the cost of the rest does not depend on their number.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use fak_abi::{Principal, Timestamp};
use smallvec::SmallVec;

use super::Spread;
use super::issue::{Issue, Queued};
use super::own::{Lot, Own};
use super::seat::Inbox;
use crate::delivery::End;
use crate::mailbox::Terms;
use crate::stats::Tally;
use crate::sync::{Line, Lock, Locks};

/// How many share a log and its lock: enough that a publication costs each of them little, few
/// enough that they are seldom in each other's way.
const SEATS: usize = 16;

/// Those to wake, with the numbers of their subscriptions.
pub(super) type Rousing = SmallVec<[(u64, Waker); 2]>;

/// See the module.
pub(crate) struct Cohort<L: Locks> {
    capacity: usize,
    /// Not everything is for all of them, so none reads the log.
    apart: bool,
    /// Something in it depends on the time.
    timed: AtomicBool,
    state: Line<L::Lock<State<L>>>,
}

pub(super) struct State<L: Locks> {
    /// What somebody has yet to read.
    pub(super) log: VecDeque<Logged>,
    /// The place in the log of the oldest of that.
    pub(super) first: u64,
    pub(super) members: Vec<Option<Member<L>>>,
    /// Members that read the log.
    readers: u32,
    /// Members that are not here any more leave a place free.
    seated: u32,
    /// Members with a waker.
    pub(super) waiting: u32,
    pub(super) tally: Tally,
}

pub(super) struct Logged {
    pub(super) copy: Queued,
    /// Readers that have yet to read it. Never less than for what is before it.
    pub(super) left: u32,
}

pub(super) struct Member<L: Locks> {
    pub(super) inbox: Arc<Inbox<L>>,
    /// The place of what it reads next; `None` while it has parted.
    pub(super) next: Option<u64>,
    /// Copies that it lost and has not been told of.
    pub(super) missed: u64,
    pub(super) waker: Option<Waker>,
    /// Its own queue, once it had to have one.
    pub(super) own: Option<Box<Own>>,
}

/// A copy that was taken out of an inbox.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) copy: Arc<Issue>,
    /// Copies that were lost before it.
    pub(crate) missed: u64,
    /// How often it was put back before.
    pub(crate) returns: u32,
    /// What it is kept under; 0 if it is not.
    pub(crate) token: u64,
}

/// Whether a copy that is taken keeps its slot.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// It is received.
    No,
    /// Until it is known whether it may be handed over.
    Trial,
    /// Until it is acknowledged, on these terms (§4.4).
    Lease(Terms),
}

/// What a look into an inbox finds.
#[derive(Debug)]
pub(crate) enum Pulled {
    Copy(Taken),
    Nothing,
    End(End),
}

impl<L: Locks> Cohort<L> {
    /// A cohort, and its first member.
    pub(super) fn begin(
        who: &Arc<Principal>,
        number: u64,
        capacity: usize,
        apart: bool,
    ) -> (Arc<Self>, Arc<Inbox<L>>) {
        let state = State {
            log: VecDeque::new(),
            first: 0,
            members: Vec::new(),
            readers: 0,
            seated: 0,
            waiting: 0,
            tally: Tally::default(),
        };
        let cohort = Arc::new(Self {
            capacity,
            apart,
            timed: AtomicBool::new(false),
            state: Line::new(Lock::new(state)),
        });
        let inbox = Self::seat(&cohort, &mut cohort.state.lock(), who, number, 0);
        (cohort, inbox)
    }

    /// One more member, if there is room.
    pub(super) fn join(cohort: &Arc<Self>, who: &Arc<Principal>, number: u64) -> Option<Arc<Inbox<L>>> {
        let mut state = cohort.state.lock();
        let free = state.members.iter().position(Option::is_none).unwrap_or(state.members.len());
        (free < SEATS).then(|| Self::seat(cohort, &mut state, who, number, free))
    }

    fn seat(
        cohort: &Arc<Self>,
        state: &mut State<L>,
        who: &Arc<Principal>,
        number: u64,
        place: usize,
    ) -> Arc<Inbox<L>> {
        let inbox = Arc::new(Inbox::new(Arc::clone(cohort), Arc::clone(who), number, place));
        let next = (!cohort.apart).then_some(state.first + state.log.len() as u64);
        state.readers += u32::from(next.is_some());
        state.seated += 1;
        let own = cohort.apart.then(Box::default);
        let member = Some(Member { inbox: Arc::clone(&inbox), next, missed: 0, waker: None, own });
        match state.members.get_mut(place) {
            Some(seat) => *seat = member,
            None => state.members.push(member),
        }
        inbox
    }

    pub(super) fn members(&self) -> u64 {
        self.state.lock().seated.into()
    }

    pub(super) fn inboxes(&self) -> Vec<Arc<Inbox<L>>> {
        self.state.lock().members.iter().flatten().map(|member| Arc::clone(&member.inbox)).collect()
    }

    /// True if a look into it needs the time.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }

    pub(super) fn note_timed(&self) {
        self.timed.store(true, Ordering::Relaxed);
    }

    pub(super) fn lock(&self) -> <L::Lock<State<L>> as Lock<State<L>>>::Guard<'_> {
        self.state.lock()
    }

    /// One copy to each member, or to those that are `linked`. Under the topic's lock.
    pub(super) fn publish(
        &self,
        copy: &Queued,
        linked: Option<&HashSet<u64>>,
        spread: &mut Spread,
        rousing: &mut Rousing,
    ) {
        if copy.entry().expires().is_some() {
            self.note_timed();
        }
        let mut state = self.state.lock();
        if state.log.len() >= self.capacity {
            state.part_full();
        }
        let State { log, members, readers, seated, waiting, .. } = &mut *state;
        if *readers > 0 {
            log.push_back(Logged { copy: copy.another(), left: *readers });
            spread.fanout += u64::from(*readers);
        }
        if readers < seated {
            for member in members.iter_mut().flatten().filter(|member| member.next.is_none()) {
                let is_linked = |linked: &HashSet<u64>| linked.contains(&member.subscriber().incarnation());
                if !linked.is_none_or(is_linked) {
                    spread.skipped += 1;
                    continue;
                }
                let own = member.own.get_or_insert_default();
                if own.len() < self.capacity {
                    own.push(Lot::new(copy.another()));
                    spread.fanout += 1;
                } else {
                    spread.dropped += 1;
                    member.missed += 1;
                }
            }
        }
        if *waiting > 0 {
            for member in members.iter_mut().flatten() {
                if member.waker.is_some() && (member.next.is_some() || member.has_own()) {
                    *waiting -= 1;
                    rousing.extend(member.waker.take().map(|waker| (member.inbox.number(), waker)));
                }
            }
        }
    }

    /// What became of every copy here.
    pub(super) fn tally(&self) -> Tally {
        let state = self.state.lock();
        let logged: u64 = state.log.iter().map(|logged| u64::from(logged.left)).sum();
        let owned: usize = state
            .members
            .iter()
            .flatten()
            .filter_map(|member| member.own.as_ref())
            .map(|own| own.len())
            .sum();
        Tally { queued: logged + owned as u64, ..state.tally }
    }

    /// Takes out what has had its time.
    pub(super) fn expire(&self, now: Timestamp) -> Vec<Arc<Issue>> {
        if !self.is_timed() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        let mut expired = Vec::new();
        for place in 0..state.members.len() {
            state.part(place);
            if let Some(own) = state.own(place) {
                own.expire(now, &mut expired);
            }
            state.rejoin(place, self.apart);
        }
        state.tally.dead += expired.len() as u64;
        expired
    }
}

impl<L: Locks> State<L> {
    #[inline]
    pub(super) fn member(&mut self, inbox: &Inbox<L>) -> Option<&mut Member<L>> {
        let member = self.members.get_mut(inbox.place)?.as_mut()?;
        std::ptr::eq(Arc::as_ptr(&member.inbox), inbox).then_some(member)
    }

    pub(super) fn own(&mut self, place: usize) -> Option<&mut Box<Own>> {
        self.members.get_mut(place)?.as_mut()?.own.as_mut()
    }

    /// A reader goes past the publication at `next`, which it was for.
    #[inline]
    pub(super) fn pass(&mut self, next: u64) -> Option<Arc<Issue>> {
        let at = usize::try_from(next.wrapping_sub(self.first)).ok()?;
        let logged = self.log.get_mut(at)?;
        logged.left -= 1;
        if logged.left > 0 {
            return Some(logged.copy.share());
        }
        // The last reader of it; of what is before it, too.
        self.first += 1;
        self.log.pop_front().map(|logged| logged.copy.leave())
    }

    /// A member stops reading the log: what it has yet to read becomes its own.
    pub(super) fn part(&mut self, place: usize) {
        let Some(Some(member)) = self.members.get_mut(place) else { return };
        let Some(next) = member.next.take() else { return };
        let own = member.own.get_or_insert_default();
        let read = usize::try_from(next.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        for logged in self.log.iter_mut().skip(read) {
            own.push(Lot::new(logged.copy.another()));
            logged.left -= 1;
        }
        self.readers -= 1;
        self.trim();
    }

    /// Forgets what all have read, or have a copy of their own of.
    #[inline]
    pub(super) fn trim(&mut self) {
        while self.log.front().is_some_and(|logged| logged.left == 0) {
            self.first += 1;
            self.log.pop_front().into_iter().for_each(|logged| drop(logged.copy.leave()));
        }
    }

    /// The log is full: those that have read nothing of it part.
    #[cold]
    fn part_full(&mut self) {
        let oldest = Some(self.first);
        for place in 0..self.members.len() {
            let member = self.members.get(place).and_then(Option::as_ref);
            if member.is_some_and(|member| member.next == oldest) {
                self.part(place);
            }
        }
    }

    /// A member with nothing of its own reads the log again.
    pub(super) fn rejoin(&mut self, place: usize, apart: bool) {
        let end = self.first + self.log.len() as u64;
        if let Some(Some(member)) = self.members.get_mut(place)
            && !apart
            && member.next.is_none()
            && let Some(own) = &mut member.own
            && own.len() == 0
        {
            own.shrink();
            member.next = Some(end);
            self.readers += 1;
        }
    }

    /// Takes the waker of a member.
    pub(super) fn take_waker(&mut self, inbox: &Inbox<L>) -> Option<Waker> {
        let waker = self.member(inbox)?.waker.take()?;
        self.waiting -= 1;
        Some(waker)
    }

    /// A member leaves. What it had queued.
    pub(super) fn leave(&mut self, inbox: &Inbox<L>) -> (Vec<Arc<Issue>>, Option<Waker>) {
        let waker = self.take_waker(inbox);
        if self.member(inbox).is_none() {
            return (Vec::new(), None);
        }
        self.part(inbox.place);
        let member = self.members.get_mut(inbox.place).and_then(Option::take);
        self.seated -= 1;
        let dead = member.and_then(|member| member.own).map_or_else(Vec::new, |own| own.into_issues());
        self.tally.dead += dead.len() as u64;
        (dead, waker)
    }
}

impl<L: Locks> Member<L> {
    fn subscriber(&self) -> &Principal {
        self.inbox.subscriber()
    }

    pub(super) fn has_own(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.has_queued())
    }
}

impl<L: Locks> State<L> {
    pub(super) fn take(&mut self, inbox: &Inbox<L>, keep: Keep, apart: bool) -> Option<Taken> {
        let member = self.member(inbox)?;
        if let (Keep::No, Some(next)) = (keep, member.next) {
            let copy = self.pass(next)?;
            self.tally.received += 1;
            let member = self.member(inbox)?;
            member.next = Some(next + 1);
            let missed = std::mem::take(&mut member.missed);
            return Some(Taken { copy, missed, returns: 0, token: 0 });
        }
        self.part(inbox.place);
        let member = self.member(inbox)?;
        let missed = member.missed;
        let own = member.own.get_or_insert_default();
        let taken = match keep {
            Keep::No => own.pop().map(|lot| {
                let (copy, returns) = lot.leave();
                Taken { copy, missed, returns, token: 0 }
            }),
            Keep::Trial => own.keep(None, missed),
            Keep::Lease(terms) => own.keep(Some(terms), missed),
        };
        if taken.is_some() {
            member.missed = 0;
            self.tally.received += u64::from(matches!(keep, Keep::No));
        }
        self.rejoin(inbox.place, apart);
        taken
    }
}

impl<L: Locks> Cohort<L> {
    pub(super) const fn apart(&self) -> bool {
        self.apart
    }
}
