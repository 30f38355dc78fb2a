//! temp
/// temp
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(u64);
#[allow(missing_docs)]
impl Timestamp {
    pub const MAX: Self = Self(u64::MAX);
    pub fn from_millis(ms: u64) -> Self {
        Self(ms)
    }
    pub fn plus_millis(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}
