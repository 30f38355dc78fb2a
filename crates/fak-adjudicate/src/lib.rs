//! The fak kernel: registered rungs folded into one verdict for every coordination act.

mod audit;
mod clock;
#[cfg(feature = "tokio")]
mod tokio_clock;

pub use audit::{
    AUDIT, AUDIT_SITES, Audit, AuditEntry, AuditError, AuditFault, AuditKind, AuditLog, AuditOptions,
    AuditReader, AuditRecord, AuditSink, Checkpoint, Drained, Gap, Opened, Torn, Verified, verify_audit,
};
pub use clock::{ManualClock, SystemClock, SystemTimer};
#[cfg(feature = "tokio")]
pub use tokio_clock::TokioClock;
