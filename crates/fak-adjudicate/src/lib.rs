//! The fak kernel: registered rungs folded into one verdict for every coordination act.

mod clock;
#[cfg(feature = "tokio")]
mod tokio_clock;

pub use clock::{ManualClock, SystemClock, SystemTimer};
#[cfg(feature = "tokio")]
pub use tokio_clock::TokioClock;
