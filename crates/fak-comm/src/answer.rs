//! What an act of several parts answers: a value, or a refusal that says more than a verdict does. What more, the collectives and
//! the arbiter say each in their own module.

use fak_abi::{Outcome, Refused, RungName, Verdict};

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
    /// The value, or the refusal's verdict as an error, as [`Outcome::ok`](fak_abi::Outcome::ok) has it.
    ///
    /// # Errors
    ///
    /// [`Refused`], if it did not happen.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use fak_abi::{Id, PrincipalSpec};
    /// # use fak_adjudicate::Kernel;
    /// # use fak_comm::{LaneArbiter, LaneRequest};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let lanes = std::sync::Arc::new(LaneArbiter::new("[lanes]\nconcurrent = [\"docs\"]".parse()?));
    /// let kernel = Kernel::builder().driver(lanes.clone()).build()?;
    /// let alpha = kernel.attach(PrincipalSpec::agent(Id::new("alpha")?))?;
    /// let leased = lanes.lease(&alpha, LaneRequest::Lane("docs"), Duration::from_secs(60));
    /// let error = leased.ok().err().ok_or("leased")?;
    /// assert!(error.to_string().contains("the capability lane.lease is not granted"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ok(self) -> Result<T, Refused> {
        match self {
            Self::Allow { value, by } => Outcome::Allow { value, by },
            Self::Refuse(refusal) => Outcome::Refuse(refusal.as_ref().clone()),
        }
        .ok()
    }

    /// The verdict, without the value.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow { by, .. } => Verdict::allow(by),
            Self::Refuse(refusal) => refusal.as_ref().clone(),
        }
    }
}
