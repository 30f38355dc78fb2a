//! What of a patch is denied, and what would have been expected there: for whoever wrote it. The outcome itself says only its
//! reason, as the public format has it (§5.4).

use std::fmt;

/// The part of a patch for which it is denied (§5.3, §5.5), and what was expected there.
///
/// It goes to whoever submitted the patch, or may see the whole of it, and names only what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFault {
    /// Where in the patch, as a JSON pointer: `/ops/0/path`.
    pub at: String,
    /// What was expected there.
    pub expected: String,
}

impl PatchFault {
    pub(crate) fn new(at: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { at: at.into(), expected: expected.into() }
    }

    /// One in an op: `member` is where in it, such as `/path`.
    pub(crate) fn op(index: usize, member: &str, expected: impl Into<String>) -> Self {
        Self::new(format!("/ops/{index}{member}"), expected)
    }
}

impl fmt::Display for PatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:?}: {}", self.at, self.expected)
    }
}
