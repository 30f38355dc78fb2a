//! The seams a host implements: small object-safe traits, synchronous but for engines (§2.9).
//! What the crates of this workspace bring to a kernel is in `driver`.

use std::any::Any;
use std::task::{Context, Poll};

use bytes::Bytes;
use thiserror::Error;

use crate::call::{OwnedCall, ToolCall, ToolResult};
use crate::event::{Event, EventKinds};
use crate::principal::Principal;
use crate::reference::Ref;
use crate::time::Clock;
use crate::verdict::{Claim, Opinion, Refusal, RungName, SiteInfo};

/// The tools a rung, admitter or engine concerns itself with (§2.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolScope {
    /// All of them.
    Every,
    /// Those of these names. The name of a capability means every act it opens; the name of a
    /// verb means that act alone (§1.4). Names of the host's own tools are interned.
    Only(Vec<String>),
}

impl ToolScope {
    /// The tools of these names.
    #[must_use]
    pub fn only<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

/// What a rung may look at besides the call (§2.9).
#[derive(Clone, Copy)]
pub struct Desk<'a> {
    /// The bytes behind Refs, and rewriting for transforms.
    pub resolver: &'a dyn Resolver,
    /// The kernel's clock.
    pub clock: &'a dyn Clock,
}

/// A rung: one registered opinion about acts (§2.9).
///
/// `judge` reads only and may be called any number of times, also by explain. What a rung counts
/// it counts in `commit`, called once when the act is finally allowed. A panic in either counts
/// as a denial and does not poison the kernel (§3.2).
///
/// ```
/// use fak_abi::{Adjudicator, Desk, Opinion, Reason, RungName, Site, ToolCall, ToolScope};
///
/// /// Temporary agents do not share.
/// struct NoTemps;
///
/// impl Adjudicator for NoTemps {
///     fn name(&self) -> RungName {
///         "office/no-temps"
///     }
///
///     // A capability's name: every act it opens. None is asked about anything else.
///     fn tools(&self) -> ToolScope {
///         ToolScope::only(["a2a.send", "ref.widen"])
///     }
///
///     fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
///         if call.principal().id().starts_with("tmp-") {
///             return Opinion::deny(Reason::PolicyBlock, Site::new("office/temp"));
///         }
///         Opinion::Defer
///     }
/// }
/// ```
pub trait Adjudicator: Send + Sync {
    /// The name that verdicts, audit and explanations carry.
    fn name(&self) -> RungName;

    /// The tools it acts on. It is skipped for others, which must be equivalent to its deferring.
    fn tools(&self) -> ToolScope {
        ToolScope::Every
    }

    /// True if its opinion depends only on principal, tool, address and recipient, so that a kernel may
    /// keep an allow, deny or defer of it until a reload, attach, detach or (un)binding. The kernel of
    /// `fak-adjudicate` asks each time all the same.
    fn is_standing(&self) -> bool {
        false
    }

    /// True if `commit` does anything.
    fn counts(&self) -> bool {
        false
    }

    /// Its opinion of an act.
    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion;

    /// The act is finally allowed: count it. A denial here refuses the act after all; anything
    /// else lets it pass.
    fn commit(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        Opinion::Defer
    }

    /// An act that was counted did not happen: take the count back.
    fn revert(&self, _call: &ToolCall<'_>, _desk: &Desk<'_>) {}

    /// What its checks refuse and what to do about it, for explain.
    fn sites(&self) -> &'static [SiteInfo] {
        &[]
    }

    /// What there is to say about its refusal of `call` beyond the site's advice: the missing edge,
    /// the nearest known name (§3.5). Asked by explain alone. It names only principals that share a
    /// fleet or tenant with the asker.
    fn hint(&self, _call: &ToolCall<'_>) -> Option<String> {
        None
    }
}

/// The dual of [`Adjudicator`] for a result or message about to enter a context (§2.9, §4.4).
///
/// ```
/// use fak_abi::{Desk, Opinion, Ref, ResultAdmitter, RungName, ToolCall, ToolScope};
///
/// /// Holds messages that give orders to whoever reads them.
/// struct NoOrders;
///
/// impl ResultAdmitter for NoOrders {
///     fn name(&self) -> RungName {
///         "office/no-orders"
///     }
///
///     fn tools(&self) -> ToolScope {
///         ToolScope::only(["a2a.recv"])
///     }
///
///     fn screen(&self, _call: &ToolCall<'_>, body: &Ref, desk: &Desk<'_>) -> Opinion {
///         match desk.resolver.bytes(body) {
///             Ok(bytes) if String::from_utf8_lossy(&bytes).contains("ignore all previous") => Opinion::Quarantine,
///             _ => Opinion::Defer,
///         }
///     }
/// }
/// ```
pub trait ResultAdmitter: Send + Sync {
    /// The name that verdicts, audit and explanations carry.
    fn name(&self) -> RungName;

    /// The tools whose results it looks at.
    fn tools(&self) -> ToolScope {
        ToolScope::Every
    }

    /// Its opinion of `body` entering the context of `call`'s principal. Allow and defer let it
    /// in; quarantine and deny hold it; anything else holds it too.
    fn screen(&self, call: &ToolCall<'_>, body: &Ref, desk: &Desk<'_>) -> Opinion;
}

/// What an engine set aside for a run at submit; dropping it gives it back (§3.3).
pub struct EngineClaim(Box<dyn Any + Send + Sync>);

impl EngineClaim {
    /// Wraps what is set aside.
    #[must_use]
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Box::new(held))
    }

    /// What the engine itself wrapped; itself back if that is of another type.
    ///
    /// # Errors
    /// The claim, unchanged.
    pub fn downcast<T: Any>(self) -> Result<Box<T>, Self> {
        let Self(held) = self;
        // `dyn Any + Send + Sync` downcasts like `dyn Any`.
        held.downcast::<T>().map_err(Self)
    }
}

/// What an engine answers when a call it serves is submitted (§3.3).
pub enum Claiming {
    /// It needs nothing set aside.
    Nothing,
    /// This is set aside; the run cannot be refused for want of it.
    Held(EngineClaim),
    /// There is not enough; the submission is refused.
    Refuse(Refusal),
}

/// Runs the tools it declares; there is no default engine, so none can hijack one (§2.9).
pub trait Engine: Send + Sync {
    /// Its name, for audit and errors.
    fn name(&self) -> RungName;

    /// The exact names of the tools it serves. Never empty of meaning: an engine that names no
    /// tool serves none.
    fn serves(&self) -> Vec<String>;

    /// Sets aside what the run will need (§3.3). Must not block.
    fn claim(&self, _call: &ToolCall<'_>) -> Claiming {
        Claiming::Nothing
    }

    /// Runs the call, or goes on running it. Called again after a wake-up until it is ready.
    /// `claim` is what it set aside, still there until the engine takes it.
    fn poll_run(
        &self,
        call: &OwnedCall,
        claim: &mut Option<EngineClaim>,
        cx: &mut Context<'_>,
    ) -> Poll<ToolResult>;
}

/// What a resolver of witnesses answers about a claim (§3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Testimony {
    /// It cannot tell.
    Abstain,
    /// The claim holds.
    Confirm,
    /// The claim does not hold.
    Refute,
}

/// Confirms or refutes claims (§2.9, §3.4).
///
/// ```
/// use fak_abi::{Claim, Digest, Testimony, ToolCall, WitnessResolver};
///
/// /// Knows which build passed its tests.
/// struct TestBoard(Digest);
///
/// impl WitnessResolver for TestBoard {
///     fn resolve(&self, claim: &Claim, _call: &ToolCall<'_>) -> Testimony {
///         match (claim.statement.as_str(), claim.subject) {
///             ("tests passed", Some(build)) if build == self.0 => Testimony::Confirm,
///             ("tests passed", Some(_)) => Testimony::Refute,
///             // Not a claim it knows anything about.
///             _ => Testimony::Abstain,
///         }
///     }
/// }
/// ```
pub trait WitnessResolver: Send + Sync {
    /// What it knows of the claim that `call` rests on.
    fn resolve(&self, claim: &Claim, call: &ToolCall<'_>) -> Testimony;
}

/// Observes events (§2.9). Runs on the acting thread, outside every lock; a panic is contained.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use fak_abi::{Emitter, Event, EventKind, EventKinds};
///
/// /// Counts dead letters.
/// #[derive(Default)]
/// struct Dead(AtomicU64);
///
/// impl Emitter for Dead {
///     fn kinds(&self) -> EventKinds {
///         EventKinds::of(&[EventKind::DeadLetter])
///     }
///
///     fn emit(&self, _event: &Event<'_>) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// ```
pub trait Emitter: Send + Sync {
    /// The kinds it wants. Events nobody wants are never built.
    fn kinds(&self) -> EventKinds;

    /// Something happened.
    fn emit(&self, event: &Event<'_>);
}

/// The bytes behind Refs, for rungs and hosts (§2.9). Never reachable from an agent handle.
pub trait Resolver: Send + Sync {
    /// The bytes of a Ref of this kernel.
    ///
    /// # Errors
    /// [`ResolveError`] for a Ref of another kernel.
    fn bytes(&self, body: &Ref) -> Result<Bytes, ResolveError>;

    /// Other bytes under the same provenance: what a rung may offer as a transform (§3.2).
    ///
    /// # Errors
    /// [`ResolveError`] for a Ref of another kernel.
    fn rewrite(&self, body: &Ref, bytes: Bytes) -> Result<Ref, ResolveError>;
}

/// A Ref that this kernel cannot resolve (§2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the ref belongs to another kernel")]
pub struct ResolveError;

/// Judges hand-overs between principals: an installed topology (§6.9).
pub trait Edges: Send + Sync {
    /// True if `from` may hand a value to `to`.
    fn may_hand(&self, from: &Principal, to: &Principal) -> bool;
}
