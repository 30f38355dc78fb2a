//! Corrections (§4.9): an orchestrator's bounded steering of a running worker, typed, over the same
//! bus. The envelopes are in `envelope`, the checks before a correction or an acknowledgement is
//! made in `rung`, what is known of each in `book`, the acts in `acts` and `status`.

mod acts;
mod book;
mod envelope;
mod rung;
mod status;

pub use acts::{AckReceipt, CorrectionReceipt, Observation, ReceivedCorrection};
pub(crate) use book::Book;
pub use envelope::{
    Correction, CorrectionAck, CorrectionAudit, CorrectionRequest, MAX_CORRECTION_BYTES, NextAction,
    WorkerStatus,
};
pub(crate) use rung::CorrectionRung;
pub use status::{PostedStatus, Presence};
