//! Barriers: an arrival fold over a group (§6.5), pure in `fold`.

mod fold;

pub use fold::{Arrival, BarrierFold, Witness};
