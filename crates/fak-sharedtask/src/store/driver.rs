//! The store as a layer of a kernel: its floor rung, its capabilities, and what attaching and detaching mean to it.

use std::sync::Arc;

use fak_abi::{
    Act, Address, Adjudicator, CapSet, Capability, Desk, Domains, Driver, DriverLink, InstallError, Opinion,
    Principal, PrincipalKind, Reason, RungName, Site, SiteInfo, ToolCall, ToolScope,
};

use super::Core;
use super::done::{Done, End};
use crate::envelope::{Actor, HeldState};
use crate::merge::Stop;
use crate::sight::Domain;

/// The name of the store's floor rung.
pub(super) const GATE: RungName = "sharedtask/gate";
/// The name under which the store refuses after the fold.
pub(super) const STORE: RungName = "sharedtask/store";

macro_rules! sites {
    ($($name:ident: $check:literal, $clause:literal, $refuses:literal, $next:literal;)+) => {
        $(pub(super) const $name: &SiteInfo = &SiteInfo { check: $check, clause: $clause, refuses: $refuses, next: $next };)+

        /// What the store's checks refuse and what to do about it, for explain (§3.5).
        pub const STORE_SITES: &[SiteInfo] = &[$(*$name),+];
    };
}

sites! {
    CAPABILITY: "sharedtask/capability", "§2.8",
        "an act whose capability is not granted",
        "ask the host to grant sharedtask.read, sharedtask.write or sharedtask.approve";
    DOMAIN: "sharedtask/domain", "§5.2",
        "an act by a principal of neither the store's fleet nor its tenant",
        "this store serves others: use the store of your own fleet or tenant";
    HUMAN: "sharedtask/human", "§5.7",
        "an approval or rejection by somebody who is not a human",
        "leave the decision to a human";
    UNINSTALLED: "sharedtask/uninstalled", "§3.1",
        "an act on a store that no kernel owns",
        "the host has to build the store into the kernel of this agent";
    ACTOR: "sharedtask/actor", "§5.2",
        "a patch or record in the name of somebody else",
        "name yourself as the actor: kind and id as you are attached";
    AUTHORITY: "sharedtask/approver", "§5.7",
        "an approval by the patch's own actor, or by somebody its content may not flow to",
        "another human who may see the whole patch has to decide";
    DECISION: "sharedtask/decision", "§5.7",
        "an approval of a decision that is unknown or spent",
        "list the held patches of the record";
    HIDDEN_BODY: "sharedtask/hidden-body", "§5.5",
        "replacing a body that the actor may not see",
        "somebody to whom the body may flow has to replace it";
    OVERSIZE: "sharedtask/oversize", "§8",
        "a patch after which the record or one of its lists would pass its limit",
        "move content into bodies and artifacts, which records only refer to";
    ADDRESS: "sharedtask/address", "§5.2",
        "an act on something that is no id of a record",
        "name the record by \"task_\" and letters, digits, \"_\", \".\" or \"-\"";
    MALFORMED: "sharedtask/malformed", "§3.2",
        "a patch that a rung has changed into something that is none",
        "the host has to correct the rung that transforms patches";
    KEY: "sharedtask/key", "§4.13",
        "an idempotency key that was used for another act",
        "use a fresh key for every new act";
    UNKNOWN_TASK: "sharedtask/task", "§5.2",
        "an act on a record that is not there",
        "check the id of the record";
    HELD_BOUND: "sharedtask/held", "§4.12",
        "more held patches than one principal may have",
        "wait until a human has decided on some of them";
    WATCH_BOUND: "sharedtask/watches", "§4.12",
        "more watches than one principal may have",
        "drop a watch that is no longer needed";
    RECORD_BOUND: "sharedtask/records", "§4.12",
        "more records than one principal may create",
        "patch a record that is there";
    WHOLE: "sharedtask/journal", "§5.10",
        "a journal with entries that may not flow to the reader",
        "read the view and the events, or have the host write the journal";
    DETACHED: "sharedtask/detached", "§2.3",
        "an act by a principal that was detached",
        "the host has ended this agent; attach it again for a new incarnation";
}

/// The floor: capability, the store's domain, and humans for approvals. Depends on principal and tool alone.
struct Floor(Domain);

impl Adjudicator for Floor {
    fn name(&self) -> RungName {
        GATE
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["sharedtask.write", "sharedtask.approve", "sharedtask.read"])
    }

    fn is_standing(&self) -> bool {
        true
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let Some(act) = call.tool().act() else { return Opinion::Defer };
        let deny = |reason, site: Site| Opinion::deny(reason, site);
        if call.target() == Address::Malformed {
            return deny(Reason::Malformed, ADDRESS.site());
        }
        if !call.caps().holds(act.capability()) {
            return Opinion::lacking(act.capability(), CAPABILITY.site());
        }
        let principal = call.principal();
        if !self.0.admits(Domains::of(principal)) {
            return deny(Reason::TrustViolation, DOMAIN.site());
        }
        if matches!(act, Act::TaskApprove | Act::TaskReject) && principal.kind() != PrincipalKind::Human {
            return deny(Reason::TrustViolation, HUMAN.site());
        }
        Opinion::Allow
    }

    fn sites(&self) -> &'static [SiteInfo] {
        STORE_SITES
    }
}

impl Driver for Core {
    fn name(&self) -> RungName {
        STORE
    }

    fn capabilities(&self) -> CapSet {
        CapSet::of(&[Capability::SharedtaskRead, Capability::SharedtaskWrite, Capability::SharedtaskApprove])
    }

    fn floor(&self) -> Vec<Arc<dyn Adjudicator>> {
        vec![Arc::new(Floor(self.config.domain.clone()))]
    }

    fn install(&self, link: DriverLink) -> Result<(), InstallError> {
        self.link.set(link).map_err(|_| InstallError(STORE))
    }

    /// Spends what the principal had held, and wakes its watches (§2.3, §5.7).
    fn detached(&self, principal: &Arc<Principal>) {
        let slots: Vec<_> = self.tasks.iter().map(|entry| Arc::clone(entry.value())).collect();
        for slot in slots {
            let mut slot = slot.lock();
            let gone: Vec<Box<str>> = slot
                .held
                .iter()
                .filter(|(_, held)| held.waits() && Arc::ptr_eq(&held.actor, principal))
                .map(|(decision, _)| decision.clone())
                .collect();
            for decision in gone {
                let current = slot.task.current().rev.clone();
                let done = Done {
                    task_id: slot.task.id.clone(),
                    actor: Actor::of(principal),
                    base: slot.held.get(&decision).and_then(|held| held.patch.as_ref()?.base_rev.clone()),
                    current: Some(current),
                    number: slot.task.number(),
                    end: End::Stopped(Stop::decided(decision.clone(), HeldState::Withdrawn)),
                };
                slot.decide(&decision, HeldState::Withdrawn, done, self.config.bounds.decided);
                self.give_back(principal.id(), |taken| &mut taken.held);
            }
            let waiting = slot.waiting();
            drop(slot);
            waiting.iter().for_each(std::task::Waker::wake_by_ref);
        }
    }
}
