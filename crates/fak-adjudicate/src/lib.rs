//! The fak kernel: registered rungs folded into one verdict for every coordination act.
//!
//! A host builds a [`Kernel`] out of layers ([`fak_abi::Driver`]s such as a bus), rungs of its own
//! and limits, then attaches agents; from then on every act of every agent is folded over the
//! same immutable snapshot (§3). The vocabulary is `fak-abi`'s.
//!
//! Clauses (`§3.2`) are those of [the protocol](https://github.com/fak-protocol/fak/blob/main/docs/protocol.md).
//!
//! # Where to begin
//!
//! [`Kernel::builder`], then [`Kernel::attach`]. Rules that are data: [`Policy`] and [`PolicyRung`]; bounds: [`RateRung`],
//! [`BudgetRung`]; what happened: [`AuditLog`], [`Counters`], [`TraceEmitter`]; shared values: [`Pool`].
//!
//! ```
//! use std::sync::Arc;
//! use fak_abi::{Capability::RefWiden, Id, PrincipalSpec, Reason, ShareScope, Timestamp};
//! use fak_adjudicate::{AuditLog, AuditOptions, Kernel, Policy, PolicyRung, Rank, verify_audit};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rules = Policy::from_toml("team.toml", "version = 1\n[[allow]]\ntool = \"ref.widen\"\nagent = \"lead*\"\n")?;
//! let (audit, mut log, _) = AuditLog::open(&b""[..], Vec::new(), Timestamp::default(), AuditOptions::default())?;
//! let kernel = Kernel::builder().rung(Rank(10), Arc::new(PolicyRung::new(rules))).audit(Arc::new(audit)).build()?;
//! let attach = |name| -> Result<_, Box<dyn std::error::Error>> {
//!     Ok(kernel.attach(PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?).caps([RefWiden]))?)
//! };
//! let (lead, dev) = (attach("lead")?, attach("dev")?);
//!
//! // Nothing is allowed that no rule allows.
//! assert!(lead.widen(&lead.mint("plan"), ShareScope::Fleet).is_allow());
//! let refused = dev.widen(&dev.mint("plan"), ShareScope::Fleet).verdict();
//! assert_eq!((refused.reason(), refused.by()), (Some(Reason::DefaultDeny), "policy"));
//!
//! // Both acts are in the log, and the log checks.
//! log.drain()?;
//! assert_eq!(verify_audit(&log.into_sink()[..], None)?.end.count, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! `tokio`: a clock and timer on tokio's time, `TokioClock`. Without it a thread wakes waiters, started by the first wait.
//!
//! # Architecture invariants
//! No process-global state: two kernels are independent. A refusal allocates nothing. Nothing here
//! opens a file; the audit log writes to what the host hands in.

mod attach;
mod audit;
mod budget;
mod builder;
mod chain;
mod clock;
mod counters;
mod explain;
mod fold;
mod gate;
mod kernel;
mod pending;
mod policy;
mod pool;
mod rate;
mod refs;
mod seams;
mod shard;
mod sites;
#[cfg(feature = "tokio")]
mod tokio_clock;
mod tools;
mod trace;

pub use audit::{
    Audit, AuditError, AuditFault, AuditKind, AuditLog, AuditOptions, AuditReader, AuditRecord, AuditSink,
    Checkpoint, Drained, Gap, Opened, Torn, Verified, verify_audit,
};
pub use budget::{BUDGET, BUDGET_SITES, Budget, BudgetRung, Spent};
pub use builder::{BuildError, KernelBuilder, KernelLimits, Rank};
pub use clock::{ManualClock, SystemClock, SystemTimer};
pub use counters::{Counters, Tally};
pub use kernel::Kernel;
pub use policy::{POLICY, POLICY_SITES, Policy, PolicyError, PolicyLint, PolicyProblem, PolicyRung};
pub use pool::{POOL, POOL_SITES, Pool, PoolOptions};
pub use rate::{RATE, RATE_SITES, RateLimit, RateOptions, RateRung};
pub use seams::{Auditor, Grants, Reservation};
pub use sites::KERNEL_SITES;
#[cfg(feature = "tokio")]
pub use tokio_clock::TokioClock;
pub use trace::{TRACE_TARGETS, TraceEmitter};
