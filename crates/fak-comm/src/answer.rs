//! What an act of several parts answers: a value, or a refusal that says more than a verdict does. What more, the collectives and
//! the arbiter say each in their own module.

use fak_abi::{RungName, Verdict};

/// What a collective (§6.2) or an act on leases (§6.7) answers; see [`Collective`](crate::Collective) and
/// [`Leased`](crate::Leased).
#[derive(Clone, Debug)]
#[must_use]
pub enum Answer<T, R> {
    /// It happened.
    Allow {
        /// What it yields.
        value: T,
        /// The rung that allowed it; of a collective, its first rank.
        by: RungName,
    },
    /// It was refused, and so nothing happened.
    Refuse(R),
}

impl<T, R> Answer<T, R> {
    /// The value, if it happened.
    #[must_use]
    pub fn allowed(self) -> Option<T> {
        match self {
            Self::Allow { value, .. } => Some(value),
            Self::Refuse(_) => None,
        }
    }

    /// The refusal, if it is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&R> {
        match self {
            Self::Allow { .. } => None,
            Self::Refuse(refusal) => Some(refusal),
        }
    }

    /// True if it happened.
    #[must_use]
    pub const fn is_allow(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

impl<T, R: AsRef<Verdict>> Answer<T, R> {
    /// The verdict, without the value.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow { by, .. } => Verdict::allow(by),
            Self::Refuse(refusal) => refusal.as_ref().clone(),
        }
    }
}
