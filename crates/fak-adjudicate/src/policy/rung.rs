//! The policy as a kernel registers it: rung, result admitter and grant policy in one.

use std::sync::Arc;

use arc_swap::ArcSwap;
use fak_abi::{
    Adjudicator, Capability, Desk, Opinion, PrincipalSpec, Ref, ResultAdmitter, RungName, Site, SiteInfo,
    ToolCall,
};

use super::compile::Compiled;
use super::rule::{Effect, Policy};
use crate::seams::Grants;

/// The name that the policy's verdicts carry.
pub const POLICY: RungName = "policy";

pub(super) const DENY: &SiteInfo = &SiteInfo {
    check: "policy/deny",
    clause: "§3.7",
    refuses: "an act that a deny rule of the host's policy matches",
    next: "do something else, or ask the host to change the rule of that number",
};
pub(super) const DEFAULT: &SiteInfo = &SiteInfo {
    check: "policy/default",
    clause: "§3.7",
    refuses: "an act that no allow rule of the host's policy matches",
    next: "ask the host for an allow rule for this tool, agent and address; a condition on the body must match too",
};

/// The checks of the policy rung, for explain.
pub const POLICY_SITES: &[SiteInfo] = &[*DENY, *DEFAULT];

/// Judges acts by a [`Policy`] that can be replaced as a whole while acts run (§3.1, §3.7).
///
/// Register the same one as rung, as admitter if the policy has quarantine rules, and as grant
/// policy if it has grant rules. An act sees one version of it.
///
/// ```
/// use std::sync::Arc;
/// use fak_adjudicate::{Kernel, Policy, PolicyRung, Rank};
/// let policy = Policy::from_toml("policy.toml", "version = 1\n[[allow]]\ntool = \"a2a.*\"\n")?;
/// let rung = Arc::new(PolicyRung::new(policy));
/// let kernel = Kernel::builder()
///     .rung(Rank(0), rung.clone())
///     .admitter(Rank(0), rung.clone())
///     .grants(rung.clone())
///     .build()?;
/// // Later, while acts run:
/// rung.reload(Policy::from_toml("policy.toml", "version = 1\n")?);
/// kernel.reloaded();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PolicyRung(ArcSwap<Compiled>);

impl PolicyRung {
    /// A rung that judges by `policy`. Linear in its rules times the number of acts.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self(ArcSwap::from_pointee(Compiled::new(policy)))
    }

    /// Replaces the policy as a whole. Acts being judged finish by the old one; tell the kernel
    /// with [`Kernel::reloaded`](crate::Kernel::reloaded). What was granted stays granted until the
    /// agent is attached again.
    pub fn reload(&self, policy: Policy) {
        self.0.store(Arc::new(Compiled::new(policy)));
    }

    /// Where the rule behind a refusal's site is written: file and line. `None` if the site is not
    /// of a rule of the present policy.
    #[must_use]
    pub fn rule_at(&self, site: Site) -> Option<(String, usize)> {
        let compiled = self.0.load();
        let index = site.index().filter(|_| site.check() == DENY.check)?;
        let policy = &compiled.policy;
        let mut denies = policy.rules.iter().filter(|rule| matches!(rule.effect, Effect::Deny(_)));
        denies.find(|rule| rule.index == index).map(|rule| (policy.file().to_owned(), rule.line))
    }
}

impl Adjudicator for PolicyRung {
    fn name(&self) -> RungName {
        POLICY
    }

    #[inline]
    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        self.0.load().judge(call)
    }

    fn sites(&self) -> &'static [SiteInfo] {
        POLICY_SITES
    }

    /// Where the rule stands; not what it says, which may name whom the asker may not know.
    fn hint(&self, call: &ToolCall<'_>) -> Option<String> {
        let Opinion::Deny(refusal) = self.0.load().judge(call) else { return None };
        let number = refusal.site.index()? + 1;
        let (_, line) = self.rule_at(refusal.site)?;
        Some(format!("deny rule {number} is on line {line} of the policy"))
    }
}

impl ResultAdmitter for PolicyRung {
    fn name(&self) -> RungName {
        POLICY
    }

    fn screen(&self, call: &ToolCall<'_>, body: &Ref, _desk: &Desk<'_>) -> Opinion {
        if self.0.load().quarantines(call, body) { Opinion::Quarantine } else { Opinion::Defer }
    }
}

impl Grants for PolicyRung {
    fn may_have(&self, spec: &PrincipalSpec, cap: Capability) -> bool {
        self.0.load().policy.grants(spec, cap)
    }
}
