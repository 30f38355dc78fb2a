//! Taint and scope: how far a value is trusted and how far it may travel (§2.2).
//! The rule that combines them with a reader is in `flow`.

use crate::closed::closed_enum;

closed_enum! {
    /// How far a value is trusted (§2.2). Ordered: `trusted < tainted < quarantined`.
    ///
    /// Taint only rises on its own; it falls only through the adjudicated act `ref.trust` (§2.4).
    ///
    /// ```
    /// use fak_abi::Taint;
    /// assert_eq!(Taint::Trusted.join(Taint::Quarantined), Taint::Quarantined);
    /// assert!("friendly".parse::<Taint>().is_err());
    /// ```
    #[derive(Default)]
    pub enum Taint: u8, "taint", "trusted, tainted, quarantined" {
        /// Vouched for by a confirmed witness.
        Trusted = 0 => "trusted",
        /// Not vouched for. What an unlabelled value is.
        #[default]
        Tainted = 1 => "tainted",
        /// Known or suspected poison: readable by nobody, moved by no act.
        Quarantined = 2 => "quarantined",
    }
}

impl Taint {
    /// The higher of the two: what a value made from both carries.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        if self.code() >= other.code() { self } else { other }
    }
}

closed_enum! {
    /// Whom a value may reach (§2.2), compared with a reader by the flow rule of §2.4.
    ///
    /// `fleet` and `tenant` are incomparable as audiences; the order here is only that of §5.5
    /// (agent < fleet < tenant < public), used for a store's limit.
    #[derive(Default)]
    pub enum ShareScope: u8, "scope", "agent, fleet, tenant, public" {
        /// Its owner alone. What an unlabelled value has.
        #[default]
        Agent = 0 => "agent",
        /// Everyone of the owner's fleet.
        Fleet = 1 => "fleet",
        /// Everyone of the owner's tenant.
        Tenant = 2 => "tenant",
        /// Everyone. Records may carry it; no act widens a Ref to it.
        Public = 3 => "public",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §2.2: the order, the join, the default.
    #[test]
    fn join_is_max_and_the_default_is_the_cautious_one() {
        for a in Taint::ALL {
            for b in Taint::ALL {
                assert_eq!(a.join(*b), *a.max(b));
            }
        }
        assert_eq!(Taint::default(), Taint::Tainted);
        assert_eq!(ShareScope::default(), ShareScope::Agent);
    }

    /// §2.1: outside data with an unknown word is an error.
    #[test]
    fn unknown_words_are_errors_never_defaults() {
        let err = "Fleet".parse::<ShareScope>().unwrap_err();
        assert_eq!(err.to_string(), "unknown scope \"Fleet\", expected one of agent, fleet, tenant, public");
        assert!(serde_json::from_str::<Taint>("\"\"").is_err());
        assert_eq!(serde_json::to_string(&Taint::Quarantined).unwrap(), "\"quarantined\"");
    }
}
