//! Explanations: every rung's opinion of an act, as data and as text (§3.5).
//! Computed on demand; a refusal itself carries only its site.

use std::fmt;

use crate::reason::Reason;
use crate::verdict::{RungName, Site, SiteInfo, Verdict, VerdictKind};

/// What one rung thinks of an act (§3.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RungOpinion {
    /// The rung.
    pub by: RungName,
    /// What it argues for.
    pub verdict: VerdictKind,
    /// Its reason, if it denies.
    pub reason: Option<Reason>,
    /// The check that refused, if it denies.
    pub site: Option<Site>,
}

/// Why an act is answered as it is (§3.5).
#[derive(Debug, Clone)]
pub struct Explanation {
    /// Every rung of the chain, in order. A layer that refuses once all of them had their say comes last, under its own name:
    /// its floor rung may stand before under the same one.
    pub rungs: Vec<RungOpinion>,
    /// What the act would be answered now.
    pub verdict: Verdict,
    /// What is known of the deciding check.
    pub site: Option<SiteInfo>,
    /// What to do next. Names appear only as far as the asker may know them.
    pub next: String,
}

impl Explanation {
    /// A later check decides instead: how a layer adds its own after the kernel's fold.
    #[must_use]
    pub fn decided(mut self, verdict: Verdict, site: Option<SiteInfo>, next: String) -> Self {
        if let Some(refusal) = verdict.refusal() {
            let (reason, site) = (Some(refusal.reason), Some(refusal.site));
            self.rungs.push(RungOpinion { by: verdict.by(), verdict: VerdictKind::Deny, reason, site });
        }
        Self { rungs: self.rungs, verdict, site, next }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict)?;
        for (at, rung) in self.rungs.iter().enumerate() {
            write!(f, "  {:<20} {}", rung.by, rung.verdict)?;
            if let (Some(reason), Some(site)) = (rung.reason, rung.site) {
                write!(f, " {reason} at {site}")?;
            }
            // The same name again is no second rung.
            let again = self.rungs.iter().take(at).any(|before| before.by == rung.by);
            writeln!(f, "{}", if again { ", once every rung had its say" } else { "" })?;
        }
        if let Some(site) = self.site {
            writeln!(f, "  check: {} ({})", site.refuses, site.clause)?;
        }
        write!(f, "  next: {}", self.next)
    }
}
