//! The space as a layer of a kernel: its floor rung, its capabilities, and what detaching means to it.

use std::sync::Arc;
use std::task::Waker;

use fak_abi::{
    Address, Adjudicator, CapSet, Capability, Desk, Driver, DriverLink, InstallError, Opinion, Principal,
    Reason, RungName, ShareScope, SiteInfo, ToolCall, ToolScope,
};
use parking_lot::Mutex;

use super::room::Room;
use super::{Core, RoomKey};

/// The name of the space's floor rung.
const GATE: RungName = "space/gate";
/// The name under which the space refuses after the fold.
pub(super) const SPACE: RungName = "space/cells";

const fn site(
    check: &'static str,
    clause: &'static str,
    refuses: &'static str,
    next: &'static str,
) -> SiteInfo {
    SiteInfo { check, clause, refuses, next }
}

const CAPABILITY: &SiteInfo = &site(
    "space/capability",
    "§2.8",
    "an act whose capability is not granted",
    "ask the host to grant space.read or space.write",
);
const MALFORMED: &SiteInfo = &site(
    "space/key",
    "§5.11",
    "a key that is no id, or has an empty component",
    "use 1 to 256 bytes without control characters, components separated by single slashes",
);
pub(super) const UNINSTALLED: &SiteInfo = &site(
    "space/uninstalled",
    "§3.1",
    "an act on a space that no kernel owns",
    "the host has to build the space into the kernel of this agent",
);
pub(super) const DETACHED: &SiteInfo = &site(
    "space/detached",
    "§2.3",
    "a wait of a principal that was detached",
    "the host has ended this agent; attach it again for a new incarnation",
);
pub(super) const KEY: (Reason, &SiteInfo) = (Reason::Malformed, MALFORMED);
pub(super) const QUARANTINED: (Reason, &SiteInfo) = (
    Reason::TrustViolation,
    &site(
        "space/quarantined",
        "§5.11",
        "a quarantined body",
        "nothing moves a quarantined value: write another",
    ),
);
pub(super) const FLOW: (Reason, &SiteInfo) = (
    Reason::TrustViolation,
    &site(
        "space/flow",
        "§2.4",
        "a body that may not flow to who puts or reads it",
        "ask its owner to widen the scope to a fleet or tenant that you share",
    ),
);
pub(super) const SCOPE: (Reason, &SiteInfo) = (
    Reason::TrustViolation,
    &site(
        "space/scope",
        "§5.11",
        "a scope that the principal has no part in, or that is not the body's",
        "name the scope of the body, and one whose fleet or tenant is yours",
    ),
);
pub(super) const SIZE: (Reason, &SiteInfo) = (
    Reason::Oversize,
    &site(
        "space/size",
        "§5.11",
        "a body above the limit",
        "put the bytes into the pool and a reference into the cell",
    ),
);
pub(super) const CELLS: (Reason, &SiteInfo) = (
    Reason::RateLimited,
    &site("space/cells", "§4.12", "more cells than there may be", "delete cells that are no longer needed"),
);
pub(super) const WATCHES: (Reason, &SiteInfo) = (
    Reason::RateLimited,
    &site(
        "space/watches",
        "§4.12",
        "more watches than one principal may have",
        "drop a watch that is no longer needed",
    ),
);

/// What the space's checks refuse and what to do about it, for explain (§3.5).
pub const SPACE_SITES: &[SiteInfo] = &[
    *CAPABILITY,
    *MALFORMED,
    *UNINSTALLED,
    *DETACHED,
    *QUARANTINED.1,
    *FLOW.1,
    *SCOPE.1,
    *SIZE.1,
    *CELLS.1,
    *WATCHES.1,
];

/// The floor: the capability, and an address that is one.
struct Floor;

impl Adjudicator for Floor {
    fn name(&self) -> RungName {
        GATE
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["space.write", "space.read"])
    }

    fn is_standing(&self) -> bool {
        true
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let Some(act) = call.tool().act() else { return Opinion::Defer };
        if call.target() == Address::Malformed {
            return Opinion::deny(Reason::Malformed, MALFORMED.site());
        }
        if !call.caps().holds(act.capability()) {
            return Opinion::lacking(act.capability(), CAPABILITY.site());
        }
        Opinion::Allow
    }

    fn sites(&self) -> &'static [SiteInfo] {
        SPACE_SITES
    }
}

impl Driver for Core {
    fn name(&self) -> RungName {
        SPACE
    }

    fn capabilities(&self) -> CapSet {
        CapSet::of(&[Capability::SpaceRead, Capability::SpaceWrite])
    }

    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        vec![Arc::new(Floor)]
    }

    fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.link.set(link).map_err(|_| InstallError(SPACE))
    }

    /// Frees the cells that were the incarnation's alone, and wakes its waits.
    fn detached(&self, principal: &Arc<Principal>) {
        if let Some((_, room)) = self.rooms.remove(&RoomKey::Agent(principal.incarnation())) {
            self.end_own(&room);
        }
        let rooms: Vec<_> = self.rooms.iter().map(|entry| Arc::clone(entry.value())).collect();
        for room in rooms {
            let waiting = room.lock().wakers();
            waiting.iter().for_each(Waker::wake_by_ref);
        }
    }
}

impl Core {
    /// Frees the cells of a room that was one incarnation's alone, and wakes who waits there.
    fn end_own(&self, room: &Mutex<Room>) {
        let (cells, waiting) = {
            let mut room = room.lock();
            (std::mem::take(&mut room.cells), room.wakers())
        };
        cells.values().for_each(|cell| self.give_cell_back(&cell.owner));
        waiting.iter().for_each(Waker::wake_by_ref);
    }

    /// After an act in a room: a detach that overtook it has ended what there was before it.
    pub(super) fn clear_up(&self, who: &Principal, scope: ShareScope, room: &Mutex<Room>) {
        if scope == ShareScope::Agent && !who.is_attached() {
            self.rooms.remove(&RoomKey::Agent(who.incarnation()));
            self.end_own(room);
        }
    }
}
