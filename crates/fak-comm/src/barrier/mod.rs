//! Barriers: an arrival fold over a group, not a lock (§6.5). The fold is pure in `fold`; the acts that feed it are
//! here, waiting for it is in `wait`.

mod fold;
mod wait;

use std::sync::{Arc, Weak};
use std::task::Waker;

use parking_lot::Mutex;

use fak_abi::{
    Act, Address, Admission, AgentHandle, Charge, Explanation, Id, Principal, Reason, Refusal, RungName,
    SiteInfo, ToolCall, Verdict,
};

use crate::comm::Inner;
use crate::group::Group;

pub use fold::{Arrival, BarrierFold, Witness};
use wait::Waiters;
pub use wait::{BarrierReport, BarrierWait};

const NAME: RungName = "comm/barrier";

macro_rules! sites {
    ($($name:ident = $check:literal, $refuses:literal, $next:literal;)+) => {
        $(const $name: &SiteInfo = &SiteInfo { check: $check, clause: "§6.5", refuses: $refuses, next: $next };)+
        /// What barriers check after the kernel's chain, for explain.
        pub const BARRIER_SITES: &[SiteInfo] = &[$(*$name),+];
    };
}

sites! {
    WAVE = "barrier/wave", "arriving from another wave", "arrive at a barrier of the wave you were spawned in";
    RANK = "barrier/rank", "arriving for another's rank", "arrive with your own id and rank";
    GONE = "barrier/gone", "arriving after being declared gone", "nothing: the barrier went on without you";
    TWICE = "barrier/twice", "arriving twice", "nothing: the first arrival counts";
    WITNESS = "barrier/witness", "a witness whose size or lane is not the group's", "show the membership you were spawned with";
    DEPART = "barrier/depart", "declaring another member gone", "the member itself, its spawner or the host may";
    DEPARTED = "barrier/departed", "a departure of nobody who is missing", "nothing: the member has arrived, is gone, or is none";
    DETACHED = "barrier/detached", "waiting as a principal that was detached", "the host has ended this agent";
    WAITS = "barrier/waits", "more waits of one principal than its share", "wait once, and tell the others";
}

pub(crate) struct Core {
    inner: Arc<Inner>,
    state: Mutex<State>,
}

struct State {
    fold: BarrierFold,
    waiters: Waiters,
}

/// A barrier over a group (§6.5). Cheap to clone; clones are one barrier. It carries no authority.
///
/// ```
/// use std::sync::Arc;
/// use fak_abi::{CapSet, Id, PrincipalSpec, Reason};
/// use fak_adjudicate::Kernel;
/// use fak_comm::{Comm, Group, GroupSpec, Member, Witness};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let comm = Arc::new(Comm::new());
/// let kernel = Kernel::builder().driver(comm.clone()).build()?;
/// let attach = |id| -> Result<_, Box<dyn std::error::Error>> {
///     Ok(kernel.attach(PrincipalSpec::agent(Id::new(id)?).caps(CapSet::ALL))?)
/// };
/// let (ann, bob) = (attach("ann")?, attach("bob")?);
/// let pair = vec![Member::new(Id::new("ann")?), Member::new(Id::new("bob")?)];
/// let barrier = comm.barrier(Group::new(GroupSpec::new(Id::new("pair")?, pair))?);
///
/// let witness = |rank| Witness::of(barrier.group(), rank).ok_or("no such rank");
/// assert!(barrier.arrive(&ann, &witness(0)?).is_allow());
/// assert_eq!(barrier.report().missing, [Id::new("bob")?]);
/// // Nobody arrives for another, and nobody twice.
/// assert_eq!(barrier.arrive(&ann, &witness(1)?).reason(), Some(Reason::TrustViolation));
/// assert_eq!(barrier.arrive(&ann, &witness(0)?).reason(), Some(Reason::Malformed));
/// assert!(barrier.arrive(&bob, &witness(1)?).is_allow());
/// assert!(barrier.report().complete);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Barrier {
    core: Arc<Core>,
    group: Group,
}

impl Barrier {
    pub(crate) fn open(group: Group, inner: &Arc<Inner>) -> Self {
        let state = State { fold: BarrierFold::new(group.clone()), waiters: Waiters::default() };
        let core = Arc::new(Core { inner: Arc::clone(inner), state: Mutex::new(state) });
        inner.barriers.add(&core);
        Self { core, group }
    }

    /// The group.
    #[must_use]
    pub const fn group(&self) -> &Group {
        &self.group
    }

    /// Arrives (`comm.arrive`): every member by its own act, in any order.
    pub fn arrive(&self, agent: &AgentHandle, witness: &Witness) -> Verdict {
        self.act(agent, Act::Arrive, witness.rank, |fold| {
            refusal_of(fold.arrive(agent.principal().id(), witness)).map(|(refusal, _)| refusal)
        })
    }

    /// Why an arrival would be answered as it would be (§3.5). No side effects.
    #[must_use]
    pub fn explain(&self, agent: &AgentHandle, witness: &Witness) -> Explanation {
        let address = Address::Group(self.group.name(), u32::try_from(witness.rank).unwrap_or(u32::MAX));
        let explanation =
            self.core.inner.tie.explain(agent, &ToolCall::new(agent, Act::Arrive).address(address));
        let arrival = self.core.state.lock().fold.judge(agent.principal().id(), witness);
        match refusal_of(arrival).filter(|_| explanation.verdict.is_allow()) {
            Some((refusal, site)) => {
                explanation.decided(Verdict::deny(refusal, NAME), Some(*site), site.next.to_owned())
            }
            None => explanation,
        }
    }

    /// Declares `member` gone (`comm.depart`): the member itself, or the one whose trace is the group's parent.
    pub fn depart(&self, agent: &AgentHandle, member: &Id) -> Verdict {
        let rank = self.group.rank(member);
        let own = agent.principal().id() == member || self.group.parent() == Some(agent.principal().trace());
        self.act(agent, Act::Depart, rank.unwrap_or(usize::MAX), |fold| {
            if !own {
                return Some(Refusal::new(Reason::TrustViolation, DEPART.site()));
            }
            let departs = rank.is_some_and(|rank| fold.depart(rank));
            (!departs).then(|| Refusal::new(Reason::Misroute, DEPARTED.site()))
        })
    }

    /// Who is missing and who is gone, now.
    #[must_use]
    pub fn report(&self) -> BarrierReport {
        BarrierReport::of(&self.core.state.lock().fold)
    }

    pub(crate) fn declare_gone(&self, member: &Id) -> bool {
        self.core.depart(member)
    }

    /// An act on the fold: the kernel's chain, then `step` under the barrier's lock, which refuses or counts.
    fn act(
        &self,
        agent: &AgentHandle,
        act: Act,
        rank: usize,
        step: impl FnOnce(&mut BarrierFold) -> Option<Refusal>,
    ) -> Verdict {
        let address = Address::Group(self.group.name(), u32::try_from(rank).unwrap_or(u32::MAX));
        let call = ToolCall::new(agent, act).address(address);
        let link = match self.core.inner.tie.own(&call) {
            Ok(link) => link,
            Err(verdict) => return verdict,
        };
        let permit = match agent.gate().admit(&call, link.key()) {
            Admission::Permit(permit) => permit,
            Admission::Refuse(verdict) => return verdict,
        };
        // Counting runs rungs' code, which must not run under the barrier's lock.
        let cleared = match permit.charge() {
            Charge::Cleared(cleared) => cleared,
            Charge::Refuse(verdict) => return verdict,
        };
        let (refusal, woken) = self.core.step(step);
        let verdict = match refusal {
            None => cleared.allow(link.sequence().next()),
            Some(refusal) => cleared.refuse(refusal, NAME),
        };
        woken.into_iter().for_each(Waker::wake);
        verdict
    }
}

/// What an arrival that does not count is refused with, and where.
fn refusal_of(arrival: Arrival) -> Option<(Refusal, &'static SiteInfo)> {
    let (reason, site) = match arrival {
        Arrival::Count => return None,
        Arrival::OtherWave => (Reason::Misroute, WAVE),
        Arrival::NotYours => (Reason::TrustViolation, RANK),
        Arrival::Gone => (Reason::TrustViolation, GONE),
        Arrival::Twice => (Reason::Malformed, TWICE),
        Arrival::Mismatch => (Reason::Malformed, WITNESS),
    };
    Some((Refusal::new(reason, site.site()), site))
}

impl Core {
    /// Changes the fold; whom to wake if that completed it.
    fn step<T>(&self, change: impl FnOnce(&mut BarrierFold) -> T) -> (T, Vec<Waker>) {
        let mut state = self.state.lock();
        let changed = change(&mut state.fold);
        let woken = if state.fold.is_complete() { state.waiters.all() } else { Vec::new() };
        (changed, woken)
    }

    fn depart(&self, member: &Id) -> bool {
        let (departed, woken) = self.step(|fold| {
            let rank = fold.group().rank(member);
            rank.is_some_and(|rank| fold.depart(rank))
        });
        woken.into_iter().for_each(Waker::wake);
        departed
    }
}

/// The open barriers of a layer, so that a detach reaches them all.
#[derive(Default)]
pub(crate) struct Barriers {
    open: Mutex<Vec<Weak<Core>>>,
    waits: wait::Waits,
}

impl Barriers {
    fn add(&self, core: &Arc<Core>) {
        let mut open = self.open.lock();
        // Forgetting the dropped ones whenever the list would grow keeps it within twice what is alive.
        if open.len() == open.capacity() {
            open.retain(|barrier| barrier.strong_count() > 0);
        }
        open.push(Arc::downgrade(core));
    }

    fn each(&self, act: impl Fn(&Core)) {
        let open: Vec<Arc<Core>> = self.open.lock().iter().filter_map(Weak::upgrade).collect();
        open.iter().for_each(|core| act(core));
    }

    /// Marks the principal gone everywhere and ends its waits.
    pub(crate) fn detached(&self, principal: &Arc<Principal>) {
        self.each(|core| {
            core.depart(principal.id());
            let woken = core.state.lock().waiters.of(principal);
            woken.into_iter().for_each(Waker::wake);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{GroupSpec, Member};

    /// Barriers that are dropped are forgotten, so that a host that opens one a wave holds no more than are open.
    #[test]
    fn dropped_barriers_are_forgotten() {
        let inner: Arc<Inner> = Arc::default();
        let id = Id::new("a").unwrap();
        let group = Group::new(GroupSpec::new(id.clone(), vec![Member::new(id.clone())])).unwrap();
        let kept: Vec<Barrier> = (0..3).map(|_| Barrier::open(group.clone(), &inner)).collect();
        for _ in 0..1_000 {
            drop(Barrier::open(group.clone(), &inner));
        }
        let open = inner.barriers.open.lock();
        assert!(open.len() <= 16, "{} are remembered", open.len());
        assert_eq!(open.iter().filter(|barrier| barrier.strong_count() > 0).count(), kept.len());
    }
}
