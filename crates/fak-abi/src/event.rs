//! Events: what a kernel tells its observers, and what `who` shows of a peer (§2.9, §4.10).
//! None of them carries a byte of any body.

use crate::address::Address;
use crate::call::Tool;
use crate::capability::Act;
use crate::closed::closed_enum;
use crate::digest::Digest;
use crate::id::Id;
use crate::principal::{Principal, PrincipalKind};
use crate::reference::Ref;
use crate::taint::{ShareScope, Taint};
use crate::time::Timestamp;
use crate::verdict::Verdict;

closed_enum! {
    /// The kinds of event an [`Emitter`](crate::Emitter) can ask for (§2.9).
    pub enum EventKind: u8, "event kind", "decide, widen, trust, raise, attach, detach, hold, dead_letter, withdraw, panic, reload, audit_gap" {
        /// An act was decided.
        Decide = 0 => "decide",
        /// A scope was widened (§2.4).
        Widen = 1 => "widen",
        /// A value was trusted (§2.4).
        Trust = 2 => "trust",
        /// A taint was raised (§2.4).
        Raise = 3 => "raise",
        /// A principal was attached.
        Attach = 4 => "attach",
        /// A principal was detached.
        Detach = 5 => "detach",
        /// A message was held (§4.4).
        Hold = 6 => "hold",
        /// A message became a dead letter (§4.10).
        DeadLetter = 7 => "dead_letter",
        /// A submission was withdrawn (§3.3).
        Withdraw = 8 => "withdraw",
        /// A rung, admitter, engine or emitter panicked (§3.2).
        Panic = 9 => "panic",
        /// A policy was reloaded (§3.1).
        Reload = 10 => "reload",
        /// Audit entries were summed in a gap entry (§3.6).
        AuditGap = 11 => "audit_gap",
    }
}

/// A set of event kinds (§2.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventKinds(u32);

impl EventKinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Every kind.
    pub const ALL: Self = Self((1 << EventKind::ALL.len()) - 1);

    /// The set of these.
    #[must_use]
    pub fn of(kinds: &[EventKind]) -> Self {
        Self(kinds.iter().fold(0, |set, kind| set | 1 << kind.code()))
    }

    /// True if `kind` is in the set.
    #[must_use]
    pub const fn holds(self, kind: EventKind) -> bool {
        self.0 & (1 << kind.code()) != 0
    }

    /// What either holds.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Something that happened (§2.9). Members that do not apply are absent.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// What kind of thing.
    pub kind: EventKind,
    /// When, on the kernel's clock.
    pub at: Timestamp,
    /// The number of the act or message it is about; 0 for none.
    pub seq: u64,
    /// Who acted, or who it is about.
    pub principal: Option<&'a Principal>,
    /// The tool that was called.
    pub tool: Option<Tool<'a>>,
    /// What was addressed.
    pub address: Address<'a>,
    /// The digest of the body, where it was already known.
    pub digest: Option<Digest>,
    /// The body itself, where it is at hand: an observer that needs the digest pays for the hash.
    pub body: Option<&'a Ref>,
    /// Taint and scope of the value the event is about, after it.
    pub label: Option<(Taint, ShareScope)>,
    /// What was decided.
    pub verdict: Option<&'a Verdict>,
    /// The cause of a dead letter, or the name of what panicked.
    pub cause: &'static str,
}

impl Event<'_> {
    /// An event of this kind at this time, about nothing yet.
    #[must_use]
    pub const fn new(kind: EventKind, at: Timestamp) -> Self {
        Self {
            kind,
            at,
            seq: 0,
            principal: None,
            tool: None,
            address: Address::None,
            digest: None,
            body: None,
            label: None,
            verdict: None,
            cause: "",
        }
    }
}

/// What `who` shows of an attached agent to those who may see it (§4.10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub id: Id,
    /// Agent or human.
    pub kind: PrincipalKind,
    /// What it did last; `None` if it has not acted.
    pub last_act: Option<Act>,
}
