//! The layer itself, as the host builds it into a kernel: who is spawned, which barriers are open, and the
//! communicators over groups. What agents do is on [`Communicator`] and [`Barrier`].

use std::sync::Arc;

use fak_abi::{
    Adjudicator, CapSet, Capability, Driver, DriverLink, Engine, Id, InstallError, Outcome, Principal,
    Reason, Refusal, RungName, SiteInfo,
};

use crate::barrier::{Barrier, Barriers};
use crate::collective::{Communicator, GatherEngine};
use crate::floor::CommFloor;
use crate::group::Group;
use crate::open::Groups;
use crate::spawn::{Membership, Spawn, Waves};
use crate::tie::Tie;

const LAYER: RungName = "comm";
const SPAWN: RungName = "comm/spawn";

const ALIVE: &SiteInfo = &ALIVE_SITE;

/// Listed with the checks of the floor: no rung stands behind it.
pub(crate) const ALIVE_SITE: SiteInfo = SiteInfo {
    check: "comm/alive",
    clause: "§6.1",
    refuses: "spawning an id that is alive in the wave",
    next: "end the member first, or spawn it in another wave",
};

/// Groups, collectives and barriers of one kernel (§6). The host's: agents act through what it opens.
///
/// Built first, then handed to the kernel's builder as a driver; it belongs to that kernel alone.
#[derive(Default)]
pub struct Comm {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) tie: Tie,
    pub(crate) barriers: Barriers,
    pub(crate) groups: Arc<Groups>,
    waves: Waves,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            tie: Tie::new(LAYER),
            barriers: Barriers::default(),
            groups: Arc::default(),
            waves: Waves::new(),
        }
    }
}

impl Comm {
    /// A layer that belongs to no kernel yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A communicator over `group`, for agents to act with. While it or a clone of it is alive, the group's
    /// address may be named in collectives (§6.3).
    #[must_use]
    pub fn open(&self, group: Group) -> Communicator {
        Communicator::new(Groups::open(group, &self.inner))
    }

    /// Spawns every member of `group` into its wave, or nobody (§6.1).
    pub fn spawn(&self, group: &Group) -> Outcome<Vec<Membership>> {
        match self.inner.waves.spawn(group) {
            Spawn::Mint(value) => Outcome::Allow { value, by: SPAWN },
            Spawn::Held { .. } => Outcome::deny(Refusal::new(Reason::LeaseHeld, ALIVE.site()), SPAWN),
        }
    }

    /// Who is alive in which wave.
    #[must_use]
    pub fn waves(&self) -> &Waves {
        &self.inner.waves
    }

    /// Opens a barrier on the host's own account. Agents open theirs with [`Communicator::barrier`].
    #[must_use]
    pub fn barrier(&self, group: Group) -> Barrier {
        Barrier::open(group, &self.inner)
    }

    /// Declares a member gone from a barrier (§6.5), on the host's own account. False if it is no member,
    /// has arrived, or is gone already.
    pub fn declare_gone(&self, barrier: &Barrier, member: &Id) -> bool {
        barrier.declare_gone(member)
    }
}

impl Driver for Comm {
    fn name(&self) -> RungName {
        LAYER
    }

    /// Arrivals and departures are opened by `a2a.send`, which a kernel without channels has from here.
    fn capabilities(&self) -> CapSet {
        CapSet::of(&[Capability::CommCollective, Capability::A2aSend])
    }

    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        vec![Arc::new(CommFloor(Arc::clone(&self.inner.groups)))]
    }

    fn engines(&self) -> Vec<Arc<dyn Engine>> {
        vec![Arc::new(GatherEngine)]
    }

    fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.inner.tie.install(link)
    }

    /// Marks it gone in every barrier, wakes its waits, and ends it in every wave (§2.3).
    fn detached(&self, principal: &Arc<Principal>) {
        self.inner.waves.end_everywhere(principal.id());
        self.inner.barriers.detached(principal);
    }
}
