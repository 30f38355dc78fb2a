//! Who waits for whom by a blocking request (§4.7, I08). A ring of them would wait for ever.
//!
//! Only a principal that somebody waits for can close a ring, and only the waits of those on the way
//! are looked at: what others wait for costs nothing.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use fak_abi::{Principal, Timestamp};

use crate::hash::Numbers;

/// The blocking requests that are open.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    next: u64,
    /// By who waits, then by number.
    waits: BTreeMap<(u64, u64), Wait>,
    /// Who waits, by number.
    by: HashMap<u64, u64, Numbers>,
    /// How many wait for somebody.
    awaited: HashMap<u64, u32, Numbers>,
}

#[derive(Debug)]
struct Wait {
    from: Arc<Principal>,
    /// Unknown until somebody has received the request, where anybody may.
    to: Option<Arc<Principal>>,
    /// Who alone can receive the request, whether or not it has.
    only: Option<Arc<Principal>>,
    /// Then it is over in any case.
    until: Option<Timestamp>,
}

impl Wait {
    fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now >= until) || !self.from.is_attached()
    }
}

impl Rings {
    /// `from` waits for `to`, until then at most; `None` if that would close a ring.
    pub(super) fn enter(
        &mut self,
        from: &Arc<Principal>,
        to: Option<Arc<Principal>>,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<u64> {
        if to.as_ref().is_some_and(|to| self.closed_by(from, to, now).is_some()) {
            return None;
        }
        self.next += 1;
        self.count(to.as_ref());
        self.by.insert(self.next, from.incarnation());
        let wait = Wait { from: Arc::clone(from), only: to.clone(), to, until };
        self.waits.insert((from.incarnation(), self.next), wait);
        Some(self.next)
    }

    /// The request is received by `to`; false if its requester's waiting for that would close a
    /// ring.
    pub(super) fn point(&mut self, id: u64, to: &Arc<Principal>, now: Timestamp) -> bool {
        if self.is_closed_by(id, to, now) {
            return false;
        }
        let Some(key) = self.by.get(&id).map(|from| (*from, id)) else { return true };
        self.count(Some(to));
        let before = self.waits.get_mut(&key).and_then(|wait| wait.to.replace(Arc::clone(to)));
        self.uncount(before.as_ref());
        true
    }

    /// True if the request's being received by `to` would close a ring.
    pub(super) fn is_closed_by(&self, id: u64, to: &Arc<Principal>, now: Timestamp) -> bool {
        let wait = self.by.get(&id).and_then(|from| self.waits.get(&(*from, id)));
        wait.is_some_and(|wait| {
            let is_known = wait.to.as_ref().is_some_and(|known| Arc::ptr_eq(known, to));
            !is_known && !wait.is_over(now) && self.closed_by(&wait.from, to, now).is_some()
        })
    }

    /// The request was not received by `to` after all, or is not with it any more.
    pub(super) fn unpoint(&mut self, id: u64, to: &Principal) {
        let Some(from) = self.by.get(&id) else { return };
        let Some(wait) = self.waits.get_mut(&(*from, id)) else { return };
        let Some(before) = wait.to.take_if(|known| std::ptr::eq(Arc::as_ptr(known), to)) else { return };
        wait.to.clone_from(&wait.only);
        let only = wait.to.clone();
        self.count(only.as_ref());
        self.uncount(Some(&before));
    }

    /// The request is answered or given up.
    pub(super) fn leave(&mut self, id: u64) {
        let Some(from) = self.by.remove(&id) else { return };
        let wait = self.waits.remove(&(from, id));
        self.uncount(wait.and_then(|wait| wait.to).as_ref());
    }

    fn count(&mut self, to: Option<&Arc<Principal>>) {
        if let Some(to) = to {
            *self.awaited.entry(to.incarnation()).or_default() += 1;
        }
    }

    fn uncount(&mut self, to: Option<&Arc<Principal>>) {
        let Some(to) = to.map(|to| to.incarnation()) else { return };
        if let Some(count) = self.awaited.get_mut(&to) {
            *count -= 1;
            if *count == 0 {
                self.awaited.remove(&to);
            }
        }
    }

    /// The shortest ring that `from` waiting for `to` would close, from `from` to `from`. Not
    /// recursive; linear in the waits of those that can be reached from `to`.
    pub(super) fn closed_by(
        &self,
        from: &Arc<Principal>,
        to: &Arc<Principal>,
        now: Timestamp,
    ) -> Option<Vec<Arc<Principal>>> {
        if Arc::ptr_eq(from, to) {
            return Some(vec![Arc::clone(from), Arc::clone(to)]);
        }
        if !self.awaited.contains_key(&from.incarnation()) {
            return None;
        }
        let mut reached = vec![(Arc::clone(to), None)];
        let mut seen = HashSet::from([to.incarnation()]);
        let mut open = VecDeque::from([0_usize]);
        while let Some(at) = open.pop_front() {
            let who = reached.get(at)?.0.incarnation();
            let waits = self.waits.range((who, 0)..=(who, u64::MAX)).map(|(_, wait)| wait);
            for next in waits.filter(|wait| !wait.is_over(now)).filter_map(|wait| wait.to.as_ref()) {
                if Arc::ptr_eq(next, from) {
                    let mut ring = vec![Arc::clone(from)];
                    let mut back = Some(at);
                    while let Some((member, before)) = back.and_then(|at| reached.get(at)) {
                        ring.push(Arc::clone(member));
                        back = *before;
                    }
                    ring.push(Arc::clone(from));
                    ring.reverse();
                    return Some(ring);
                }
                if seen.insert(next.incarnation()) {
                    open.push_back(reached.len());
                    reached.push((Arc::clone(next), Some(at)));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use fak_abi::{CapSet, Id, KernelSeal, PrincipalSpec};
    use proptest::prelude::*;

    use super::*;

    const MEMBERS: u64 = 5;

    #[derive(Debug, Clone)]
    enum Step {
        Enter { from: u64, to: Option<u64>, until: Option<u64> },
        Point { wait: usize, to: u64 },
        Unpoint { wait: usize, to: u64 },
        Leave { wait: usize },
        Tick,
    }

    fn step() -> impl Strategy<Value = Step> {
        let (who, wait) = (0..MEMBERS, 0..8_usize);
        prop_oneof![
            4 => (who.clone(), prop::option::of(who.clone()), prop::option::weighted(0.2, 1..4_u64))
                .prop_map(|(from, to, until)| Step::Enter { from, to, until }),
            3 => (wait.clone(), who.clone()).prop_map(|(wait, to)| Step::Point { wait, to }),
            1 => (wait.clone(), who).prop_map(|(wait, to)| Step::Unpoint { wait, to }),
            1 => wait.prop_map(|wait| Step::Leave { wait }),
            1 => Just(Step::Tick),
        ]
    }

    /// A wait, as the reference keeps it: who, for whom, until when.
    type Naive = (u64, u64, Option<u64>, Option<u64>);

    /// True if `to` waits, however indirectly, for `from`.
    fn closes(waits: &[Naive], from: u64, to: u64, now: u64) -> bool {
        let mut reached = std::collections::BTreeSet::from([to]);
        for _ in 0..MEMBERS {
            for (_, who, whom, until) in waits {
                if reached.contains(who) && until.is_none_or(|until| now < until) {
                    reached.extend(whom);
                }
            }
        }
        reached.contains(&from)
    }

    proptest! {
        #[test]
        fn it_is_reachability(steps in prop::collection::vec(step(), 1..40)) {
            let seal = KernelSeal::new();
            let members: Vec<_> = (0..MEMBERS)
                .map(|n| {
                    let spec = PrincipalSpec::agent(Id::new(&format!("m{n}")).unwrap());
                    seal.principal(spec, n + 1, CapSet::NONE)
                })
                .collect();
            let member = |n: u64| &members[usize::try_from(n).unwrap()];
            let (mut rings, mut naive, mut now) = (Rings::default(), Vec::<Naive>::new(), 0);
            let mut only = HashMap::<u64, Option<u64>>::new();
            for step in steps {
                let at = Timestamp::from_micros(now);
                match step {
                    Step::Enter { from, to, until } => {
                        let until = until.map(|span| now + span);
                        let entered = rings.enter(
                            member(from),
                            to.map(|to| Arc::clone(member(to))),
                            until.map(Timestamp::from_micros),
                            at,
                        );
                        let expected = to.is_none_or(|to| !closes(&naive, from, to, now));
                        prop_assert_eq!(entered.is_some(), expected);
                        only.extend(entered.map(|id| (id, to)));
                        naive.extend(entered.map(|id| (id, from, to, until)));
                    }
                    Step::Point { wait, to } => {
                        let Some((id, from, known, until)) = naive.get(wait).copied() else { continue };
                        let over = until.is_some_and(|until| now >= until);
                        let expected = known == Some(to) || over || !closes(&naive, from, to, now);
                        prop_assert_eq!(rings.point(id, member(to), at), expected);
                        if expected {
                            naive[wait].2 = Some(to);
                        }
                    }
                    Step::Unpoint { wait, to } => {
                        if let Some(wait) = naive.get_mut(wait) {
                            rings.unpoint(wait.0, member(to));
                            if wait.2 == Some(to) {
                                wait.2 = only[&wait.0];
                            }
                        }
                    }
                    Step::Leave { wait } => {
                        if wait < naive.len() {
                            rings.leave(naive.remove(wait).0);
                        }
                    }
                    Step::Tick => now += 1,
                }
            }
            naive.iter().for_each(|wait| rings.leave(wait.0));
            prop_assert!(rings.waits.is_empty() && rings.by.is_empty() && rings.awaited.is_empty());
        }
    }
}
