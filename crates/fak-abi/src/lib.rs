//! The frozen vocabulary and seams of the fak multi-agent coordination protocol.
//!
//! A coordination act is an adjudicated tool call (§1). This crate says what that means in types:
//! [`Ref`]s with a provenance nobody can set, [`Principal`]s that only an [`AgentHandle`] can act
//! as, [`ToolCall`]s, [`Verdict`]s from a closed set of [`Reason`]s, and the seams a kernel and
//! its layers meet in. Clauses (`§4.4`) are those of [the
//! protocol](https://github.com/fak-protocol/fak/blob/main/docs/protocol.md).
//!
//! # Where to begin
//!
//! Depend on this crate alone to write a rung ([`Adjudicator`]), an admitter of results ([`ResultAdmitter`]), an engine for a tool of
//! your own ([`Engine`]), a witness ([`WitnessResolver`]) or an observer ([`Emitter`]); on `fak-adjudicate` as well for the kernel that
//! asks them. What an agent does, it does through its [`AgentHandle`], and gets a [`Verdict`] or an [`Outcome`] for it.
//!
//! ```
//! use fak_abi::{Adjudicator, Desk, Opinion, Reason, RungName, Site, Taint, ToolCall, ToolScope};
//!
//! /// Nothing tainted is widened on a Friday evening; the host turns it on.
//! struct Freeze;
//!
//! impl Adjudicator for Freeze {
//!     fn name(&self) -> RungName {
//!         "office/freeze"
//!     }
//!
//!     fn tools(&self) -> ToolScope {
//!         ToolScope::only(["ref.widen"])
//!     }
//!
//!     fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
//!         match call.body().map(fak_abi::Ref::taint) {
//!             Some(Taint::Trusted) => Opinion::Defer,
//!             _ => Opinion::deny(Reason::PolicyBlock, Site::new("office/frozen")),
//!         }
//!     }
//! }
//! ```
//!
//! # Architecture invariants
//! No async runtime, no I/O, no lock, no global state, and nothing of this workspace below it.
//! Additive only: `tests/it/golden.txt` pins every public name, discriminant and field.

#![cfg_attr(not(test), warn(clippy::missing_panics_doc))]

mod address;
mod call;
mod capability;
mod closed;
mod digest;
mod driver;
mod event;
mod explain;
mod flow;
mod gate;
mod handle;
mod id;
pub mod json;
mod principal;
mod reason;
mod reference;
mod refused;
mod seal;
mod seam;
mod taint;
mod time;
mod verdict;

pub use address::{Address, AddressError, ChannelKey, Locale, OwnedAddress};
pub use call::{Cancel, MetaValue, OwnedCall, Rider, Status, Tool, ToolCall, ToolResult, ToolToken};
pub use capability::{Act, CapSet, Capability};
pub use closed::UnknownName;
pub use digest::{Digest, DigestError};
pub use driver::{Driver, DriverLink, Host, InstallError, LayerKey};
pub use event::{Event, EventKind, EventKinds, Peer};
pub use explain::{Explanation, RungOpinion};
pub use flow::{Domains, may_flow};
pub use gate::{
    Admission, AttachError, AuditSlot, Booking, Charge, Cleared, Due, Gate, Kernel, Needs, Pass, Permit,
    Sequence, Settle, Ticket, TicketError,
};
pub use handle::{AgentHandle, READ_SITES, Reap, Syscall};
pub use id::{Id, IdError, MAX_ID_BYTES, Quoted};
pub use principal::{KernelTag, Principal, PrincipalKind, PrincipalSpec};
pub use reason::{Disposition, Reason};
pub use reference::{Location, Ref};
pub use refused::Refused;
pub use seal::KernelSeal;
pub use seam::{
    Adjudicator, Claiming, Desk, Edges, Emitter, Engine, EngineClaim, ResolveError, Resolver, ResultAdmitter,
    Testimony, ToolScope, WitnessResolver,
};
pub use taint::{ShareScope, Taint};
pub use time::{Clock, Timer, Timestamp, TimestampError, WakeUp};
pub use verdict::{Claim, Opinion, Outcome, Refusal, RungName, Site, SiteInfo, Verdict, VerdictKind};
