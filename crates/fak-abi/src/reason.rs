//! The twelve core reasons and what to do about each (§2.7). No layer adds one.

use crate::closed::closed_enum;

closed_enum! {
    /// Why an act was refused (§1.3, §2.7). Twelve, closed; code 13 is reserved.
    ///
    /// ```
    /// use fak_abi::{Disposition, Reason};
    /// assert_eq!(Reason::LeaseHeld.code(), 4);
    /// assert_eq!(Reason::LeaseHeld.disposition(), Disposition::Wait);
    /// ```
    pub enum Reason: u16, "reason", "DEFAULT_DENY, POLICY_BLOCK, SELF_MODIFY, LEASE_HELD, TRUST_VIOLATION, MALFORMED, MISROUTE, RATE_LIMITED, SECRET_EXFIL, UNWITNESSED, OVERSIZE, UNKNOWN_TOOL" {
        /// Nothing allowed it: no policy, or a capability that was not granted.
        DefaultDeny = 1 => "DEFAULT_DENY",
        /// A rule of the host forbids it.
        PolicyBlock = 2 => "POLICY_BLOCK",
        /// It would change what governs the agent itself.
        SelfModify = 3 => "SELF_MODIFY",
        /// Somebody holds what it needs, or the token that was shown is stale.
        LeaseHeld = 4 => "LEASE_HELD",
        /// Taint, scope or identity does not permit it.
        TrustViolation = 5 => "TRUST_VIOLATION",
        /// It is not well formed.
        Malformed = 6 => "MALFORMED",
        /// It names nothing that is there now.
        Misroute = 7 => "MISROUTE",
        /// A bound on rate, number or share is reached.
        RateLimited = 8 => "RATE_LIMITED",
        /// It would carry a secret out.
        SecretExfil = 9 => "SECRET_EXFIL",
        /// A claim it rests on was not confirmed.
        Unwitnessed = 10 => "UNWITNESSED",
        /// It is larger than a limit.
        Oversize = 11 => "OVERSIZE",
        /// The kernel was built without that tool.
        UnknownTool = 12 => "UNKNOWN_TOOL",
    }
}

closed_enum! {
    /// What the refused agent should do next (§2.7).
    pub enum Disposition: u8, "disposition", "terminal, escalate, wait, retryable" {
        /// The same act will be refused again: do something else.
        Terminal = 0 => "terminal",
        /// Somebody with more rights must decide.
        Escalate = 1 => "escalate",
        /// The same act may pass later.
        Wait = 2 => "wait",
        /// A corrected act may pass now.
        Retryable = 3 => "retryable",
    }
}

impl Reason {
    /// What the refused agent should do next. `retryable` is never said of a policy refusal.
    #[must_use]
    pub const fn disposition(self) -> Disposition {
        match self {
            Self::DefaultDeny
            | Self::PolicyBlock
            | Self::SecretExfil
            | Self::Unwitnessed
            | Self::Oversize
            | Self::UnknownTool => Disposition::Terminal,
            Self::SelfModify | Self::TrustViolation => Disposition::Escalate,
            Self::LeaseHeld | Self::RateLimited => Disposition::Wait,
            Self::Malformed | Self::Misroute => Disposition::Retryable,
        }
    }

    /// One sentence for a person: what this reason means they can do.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::DefaultDeny => "nothing allows this act: grant the capability or add an allow rule",
            Self::PolicyBlock => {
                "a rule of the host forbids it: change the act, or ask the host to change the rule"
            }
            Self::SelfModify => "it would change what governs the agent: a human has to do it",
            Self::LeaseHeld => {
                "somebody holds it, or the token is stale: wait for the holder, or take a new lease"
            }
            Self::TrustViolation => {
                "taint, scope or identity forbids it: widen the scope as its owner, or have the value trusted"
            }
            Self::Malformed => "the act is not well formed: correct it and try again",
            Self::Misroute => "what it names is not there: check the name",
            Self::RateLimited => "a bound is reached: wait, or read what is queued",
            Self::SecretExfil => "it would carry a secret out: remove the secret",
            Self::Unwitnessed => {
                "a claim it rests on was not confirmed: bring evidence, or cite the current state"
            }
            Self::Oversize => "it is larger than the limit: send less, or send a reference",
            Self::UnknownTool => "the kernel was built without this tool: check the name",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §1.3, §2.7: the table, line by line; twelve, and no more.
    #[test]
    fn dispositions_are_the_clause() {
        use Disposition::{Escalate, Retryable, Terminal, Wait};
        let expected = [
            Terminal, Terminal, Escalate, Wait, Escalate, Retryable, Retryable, Wait, Terminal, Terminal,
            Terminal, Terminal,
        ];
        assert_eq!(Reason::ALL.len(), 12);
        for (i, (reason, disposition)) in Reason::ALL.iter().zip(expected).enumerate() {
            assert_eq!(usize::from(reason.code()), i + 1);
            assert_eq!(reason.disposition(), disposition, "{reason}");
        }
    }
}
