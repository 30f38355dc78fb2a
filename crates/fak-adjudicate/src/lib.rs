//! The fak kernel: registered rungs folded into one verdict for every coordination act.
//!
//! A host builds a [`Kernel`] out of layers ([`fak_abi::Driver`]s such as a bus), rungs of its own
//! and limits, then attaches agents; from then on every act of every agent is folded over the
//! same immutable snapshot (§3). The vocabulary is `fak-abi`'s.
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
