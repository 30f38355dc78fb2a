//! Who holds a lease: a principal as it was attached, so that the same id attached again is somebody else.

use std::sync::Arc;

/// A principal as it was attached (§2.3).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Holder {
    id: Arc<str>,
    incarnation: u64,
}

impl Holder {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    #[cfg(test)]
    pub(crate) fn test(id: &str) -> Self {
        Self { id: id.into(), incarnation: 1 }
    }
}
