//! Adjudicated channels between agents: mailboxes, publish / subscribe, request / reply.
//!
//! A host builds a [`Bus`], hands its [driver](Bus::driver) to a kernel, and gives each attached
//! agent an [`Endpoint`]. Every act of an endpoint is a tool call that the kernel folds over its
//! rungs first (§1); the floor of §4.3 is this crate's own rung, `a2achan/gate`.
//!
//! Clauses (`§4.4`) are those of [the protocol](https://github.com/fak-protocol/fak/blob/main/docs/protocol.md).
//!
//! # Where to begin
//!
//! [`Bus::new`], [`Bus::endpoint`]; then [`Endpoint::send`] and [`Endpoint::recv`], [`Endpoint::publish`] and
//! [`Endpoint::subscribe`], [`Endpoint::request`] and [`Endpoint::reply`]. For work that must not be lost:
//! [`Endpoint::recv_leased`]. For a running worker: [`Endpoint::correct`]. Values instead of bytes: [`Channel::typed`].
//!
//! ```
//! use fak_a2achan::{Bus, BusConfig};
//! use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, Reason, ShareScope};
//! use fak_adjudicate::Kernel;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bus = Bus::new(BusConfig::default())?;
//! let kernel = Kernel::builder().driver(bus.driver()).build()?;
//! let attach = |name| -> Result<_, Box<dyn std::error::Error>> {
//!     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?);
//!     Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
//! };
//! let (alpha, bravo) = (attach("alpha")?, attach("bravo")?);
//! let work = ChannelKey::new(Locale::InKernel, "work")?;
//!
//! let draft = alpha.mint("run the tests");
//! assert_eq!(bus.endpoint(&alpha).send(&work, &draft).reason(), Some(Reason::TrustViolation));
//! let order = alpha.widen(&draft, ShareScope::Fleet).ok()?;
//! assert!(bus.endpoint(&alpha).send(&work, &order).is_allow());
//! let message = bus.endpoint(&bravo).try_recv(&work).message().ok_or("nothing there")?;
//! assert_eq!(bravo.read(message.body()).ok()?, "run the tests");
//! # Ok(())
//! # }
//! ```
//!
//! # Architecture invariants
//! No async runtime: waits are plain futures, deadlines come in through the kernel's timer. No
//! rung, admitter, topology, emitter or clock is called, and nobody is woken, under a lock of this
//! crate. No method takes a sender's name. A refusal allocates nothing, lease and ring refusals
//! excepted.

mod account;
mod binding;
mod bus;
mod channel;
mod config;
mod core;
mod correction;
mod dead;
mod delivery;
mod driver;
mod endpoint;
mod engine;
mod entry;
mod explain;
mod gate;
mod hash;
mod held;
mod idempotency;
mod lease;
mod mailbox;
mod message;
mod patience;
mod publish;
mod recv;
mod render;
mod request;
mod route;
mod send;
mod sites;
mod stats;
mod stream;
mod subscription;
mod sync;
mod topic;
mod typed;
mod window;

pub use binding::Binding;
pub use bus::{Bus, Depth};
pub use channel::Channel;
pub use config::{Addressing, BusConfig, ConfigError, Limits};
pub use correction::{
    AckReceipt, Correction, CorrectionAck, CorrectionAudit, CorrectionReceipt, CorrectionRequest,
    MAX_CORRECTION_BYTES, NextAction, Observation, PostedStatus, Presence, ReceivedCorrection, WorkerStatus,
};
pub use delivery::{Delivery, End};
pub use endpoint::Endpoint;
pub use held::HeldMessage;
pub use lease::LeasedMessage;
pub use message::{Cause, DeadLetter, HeldNotice, Message};
pub use publish::Publication;
pub use request::{PendingReply, RequestOptions};
pub use send::SendOptions;
pub use sites::SITES;
pub use stats::Tally;
pub use stream::Messages;
pub use subscription::Subscription;
pub use typed::{Typed, TypedError, TypedMessage};
