//! The two seams that only this crate's parts meet in: the audit queue behind a kernel and the
//! grant policy in front of it.

use fak_abi::{
    Capability, Event, EventKind, KernelTag, Principal, PrincipalSpec, RungName, Timestamp, ToolCall, Verdict,
};

use crate::kernel::about;

/// What [`Auditor::reserve`] answers (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// A place is kept for this act.
    Reserved,
    /// The queue is full: RATE_LIMITED by `audit`.
    Full,
    /// The principal's share of the queue is full (§4.12): RATE_LIMITED by `audit`.
    Share,
    /// The log cannot be written, or was closed: DEFAULT_DENY by `audit`.
    Failed,
}

/// The audit log, as the kernel sees it (§3.6). Nothing here blocks on a disk.
pub trait Auditor: Send + Sync {
    /// Called once, when the kernel is built: principals of any other tag are strangers, and share
    /// one allowance (§4.12).
    fn adopt(&self, _tag: &KernelTag) {}

    /// Keeps a place for the entry of an act of `who` that is about to be decided.
    fn reserve(&self, who: &Principal) -> Reservation;

    /// Gives a place back: the act was given up.
    fn release(&self);

    /// Fills a place.
    fn record(&self, event: &Event<'_>);

    /// Fills a place with the entry of an act that happened, allowed by `by` and nothing more to
    /// say: most acts.
    fn book(&self, call: &ToolCall<'_>, by: RungName, at: Timestamp, seq: u64) {
        let verdict = Verdict::allow(by);
        self.record(&Event { verdict: Some(&verdict), ..about(call, EventKind::Decide, at, seq) });
    }

    /// Records what has no place kept for it, or counts it in the next gap entry.
    fn note(&self, event: &Event<'_>);

    /// Counts an act that `audit` itself refused in the next gap entry.
    fn miss(&self, at: Timestamp, seq: u64);
}

/// Which principal may be granted what (§2.3): the host's grant policy.
pub trait Grants: Send + Sync {
    /// True if the principal may have the capability it advertises.
    fn may_have(&self, spec: &PrincipalSpec, cap: Capability) -> bool;
}
