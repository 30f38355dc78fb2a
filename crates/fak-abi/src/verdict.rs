//! Verdicts: what the kernel answers, what a rung answers, and the sites that refuse (§2.6).
//! How opinions are folded into a verdict is the kernel's business.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

use crate::capability::Capability;
use crate::closed::closed_enum;
use crate::digest::Digest;
use crate::id::Id;
use crate::reason::{Disposition, Reason};
use crate::reference::Ref;
use crate::refused::Refused;

closed_enum! {
    /// The kinds of verdict, with their wire codes (§2.6). Codes 1024 and up are reserved for
    /// later registration.
    pub enum VerdictKind: u16, "verdict", "allow, deny, transform, quarantine, require_witness, defer, indeterminate" {
        /// It may happen.
        Allow = 0 => "allow",
        /// It may not, for a reason.
        Deny = 1 => "deny",
        /// It may happen with other arguments.
        Transform = 2 => "transform",
        /// Hold what it carries.
        Quarantine = 3 => "quarantine",
        /// It may happen once a claim is confirmed.
        RequireWitness = 4 => "require_witness",
        /// No opinion.
        Defer = 5 => "defer",
        /// Could not decide.
        Indeterminate = 6 => "indeterminate",
    }
}

impl VerdictKind {
    /// How restrictive it is; the most restrictive conclusive opinion wins a fold.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Defer => 10,
            Self::Indeterminate => 15,
            Self::Transform => 20,
            Self::Quarantine => 30,
            Self::RequireWitness => 40,
            Self::Deny => 100,
        }
    }

    /// The restrictiveness of any wire code; an unknown one ranks with deny (§2.6).
    #[must_use]
    pub fn rank_of(code: u16) -> u8 {
        Self::ALL.iter().find(|kind| kind.code() == code).map_or(100, |kind| kind.rank())
    }
}

/// The check that refused: a name frozen in code and, where one check has many instances (the
/// rules of a policy), which of them. Fixed size, so that a refusal allocates nothing (§2.6). Two sites are the same if
/// name and instance are.
// Packed, so that what a refusal has besides goes where padding would be: a refusal is copied on its
// way, and is two copies of sixteen bytes this way.
#[derive(Clone, Copy)]
#[repr(Rust, packed(4))]
pub struct Site {
    check: Check,
    item: Option<NonZeroU32>,
}

/// A check's name, or all there is to know of it. As large as a name alone.
#[derive(Clone, Copy)]
enum Check {
    Named(&'static str),
    Listed(&'static SiteInfo),
}

impl Site {
    /// A check that has one instance and nothing to say of itself. A check that is listed is [`SiteInfo::site`].
    #[must_use]
    #[inline]
    pub const fn new(check: &'static str) -> Self {
        Self { check: Check::Named(check), item: None }
    }

    /// The instance `index`, counted from 0.
    #[must_use]
    #[inline]
    pub const fn item(self, index: u32) -> Self {
        Self { check: self.check, item: NonZeroU32::new(index.saturating_add(1)) }
    }

    /// The name of the check.
    #[must_use]
    #[inline]
    pub const fn check(self) -> &'static str {
        match self.check {
            Check::Named(name) => name,
            Check::Listed(info) => info.check,
        }
    }

    /// What is known of the check, if it is a listed one.
    #[must_use]
    #[inline]
    pub const fn info(self) -> Option<&'static SiteInfo> {
        match self.check {
            Check::Named(_) => None,
            Check::Listed(info) => Some(info),
        }
    }

    /// Which instance, counted from 0.
    #[must_use]
    pub fn index(self) -> Option<u32> {
        self.item.map(|n| n.get() - 1)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (check, item) = (self.check(), self.item);
        f.debug_struct("Site").field("check", &check).field("item", &item).finish()
    }
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        (self.check(), self.index()) == (other.check(), other.index())
    }
}

impl Eq for Site {}

impl Hash for Site {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.check(), self.index()).hash(state);
    }
}

impl fmt::Display for Site {
    /// `check` or `check#3`, counted from 1 for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.check())?;
        self.item.map_or(Ok(()), |n| write!(f, "#{n}"))
    }
}

/// What there is to know about a check without running it: the text behind `fak explain` (§3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteInfo {
    /// The name of the check, as in [`Site::check`].
    pub check: &'static str,
    /// The clause it enforces, such as `§4.3 row 5`.
    pub clause: &'static str,
    /// What it refuses.
    pub refuses: &'static str,
    /// What the refused agent can do next.
    pub next: &'static str,
}

impl SiteInfo {
    /// The site itself, which knows this text.
    #[must_use]
    #[inline]
    pub const fn site(&'static self) -> Site {
        Site { check: Check::Listed(self), item: None }
    }
}

/// Why an act is refused, before the kernel stamps the rung's name on it (§2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// One of the twelve reasons.
    pub reason: Reason,
    /// The check that refused.
    pub site: Site,
    /// Milliseconds after which the same act may pass, for a `wait` refusal that knows (§2.7).
    pub retry_after_ms: Option<u32>,
    /// The capability that was not granted, if that is why (§2.8).
    pub lacks: Option<Capability>,
}

impl Refusal {
    /// Refused for `reason` at `site`.
    #[must_use]
    #[inline]
    pub const fn new(reason: Reason, site: Site) -> Self {
        Self { reason, site, retry_after_ms: None, lacks: None }
    }

    /// Refused at `site` because `capability` was not granted: DEFAULT_DENY (§2.8).
    #[must_use]
    #[inline]
    pub const fn lacking(capability: Capability, site: Site) -> Self {
        Self { lacks: Some(capability), ..Self::new(Reason::DefaultDeny, site) }
    }

    /// What to do next, in one sentence: have the missing capability granted, or what the check advises, or else what its reason does
    /// in general. Explain may know more (§3.5).
    #[must_use]
    pub(crate) fn next(&self) -> impl fmt::Display {
        Advice(*self)
    }

    /// The same act may pass after this many milliseconds.
    #[must_use]
    pub const fn retry_after(self, ms: u32) -> Self {
        Self { retry_after_ms: Some(ms), ..self }
    }
}

/// What a refusal advises, as text that is put together where it is shown.
struct Advice(Refusal);

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { reason, site, lacks, .. } = self.0;
        match lacks {
            Some(capability) => {
                write!(f, "the capability {capability} is not granted: ask the host to grant it")
            }
            None => f.write_str(site.info().map_or_else(|| reason.advice(), |info| info.next)),
        }
    }
}

/// A claim that has to be confirmed before an act may happen (§3.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What is claimed, in the words that resolvers know.
    pub statement: Id,
    /// The value it is claimed of, if any.
    pub subject: Option<Digest>,
    /// What is offered as evidence, if anything.
    pub evidence: Option<Id>,
}

/// What a rung thinks of an act (§2.9). It carries no name: the kernel stamps that.
#[derive(Debug, Clone)]
pub enum Opinion {
    /// It may happen.
    Allow,
    /// No opinion.
    Defer,
    /// Could not decide.
    Indeterminate,
    /// It may happen with these arguments instead, within the limits of §3.2.
    Transform(Ref),
    /// What it carries is to be held.
    Quarantine,
    /// It may happen once this is confirmed.
    RequireWitness(Box<Claim>),
    /// It may not happen.
    Deny(Refusal),
}

impl Opinion {
    /// Refused for `reason` at `site`.
    #[must_use]
    #[inline]
    pub const fn deny(reason: Reason, site: Site) -> Self {
        Self::Deny(Refusal::new(reason, site))
    }

    /// Refused at `site` because `capability` was not granted (§2.8).
    #[must_use]
    #[inline]
    pub const fn lacking(capability: Capability, site: Site) -> Self {
        Self::Deny(Refusal::lacking(capability, site))
    }

    /// Which kind of verdict it argues for.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::Allow => VerdictKind::Allow,
            Self::Defer => VerdictKind::Defer,
            Self::Indeterminate => VerdictKind::Indeterminate,
            Self::Transform(_) => VerdictKind::Transform,
            Self::Quarantine => VerdictKind::Quarantine,
            Self::RequireWitness(_) => VerdictKind::RequireWitness,
            Self::Deny(_) => VerdictKind::Deny,
        }
    }
}

/// The name of a rung, as the kernel stamps it.
pub type RungName = &'static str;

/// The kernel's answer to an act (§2.6). A refusal is this value: not an error, not a panic.
///
/// ```
/// use fak_abi::{Reason, Refusal, Site, Verdict};
/// let verdict = Verdict::deny(Refusal::new(Reason::Misroute, Site::new("a2achan/undeclared")), "a2achan/gate");
/// assert!(!verdict.is_allow());
/// assert_eq!(verdict.reason(), Some(Reason::Misroute));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub enum Verdict {
    /// It may happen; `by` is the first rung that said so.
    Allow {
        /// The rung.
        by: RungName,
    },
    /// It may not happen.
    Deny {
        /// Why.
        refusal: Refusal,
        /// The rung.
        by: RungName,
    },
    /// It happens with other arguments.
    Transform {
        /// The arguments it happens with.
        args: Ref,
        /// The rung.
        by: RungName,
    },
    /// What it carried is held out of the context it was to enter (§4.4).
    Quarantine {
        /// The rung.
        by: RungName,
    },
    /// It may happen once a claim is confirmed. A kernel resolves it and never hands it out.
    RequireWitness {
        /// The claim.
        claim: Box<Claim>,
        /// The rung.
        by: RungName,
    },
    /// No opinion.
    Defer {
        /// The rung.
        by: RungName,
    },
    /// Could not decide.
    Indeterminate {
        /// The rung.
        by: RungName,
    },
}

impl Verdict {
    /// Allowed by `by`.
    #[inline]
    pub const fn allow(by: RungName) -> Self {
        Self::Allow { by }
    }

    /// Refused by `by`.
    #[inline]
    pub const fn deny(refusal: Refusal, by: RungName) -> Self {
        Self::Deny { refusal, by }
    }

    /// True if the act happens: allowed, or transformed.
    #[must_use]
    #[inline]
    pub const fn is_allow(&self) -> bool {
        matches!(self, Self::Allow { .. } | Self::Transform { .. })
    }

    /// Its kind.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::Allow { .. } => VerdictKind::Allow,
            Self::Deny { .. } => VerdictKind::Deny,
            Self::Transform { .. } => VerdictKind::Transform,
            Self::Quarantine { .. } => VerdictKind::Quarantine,
            Self::RequireWitness { .. } => VerdictKind::RequireWitness,
            Self::Defer { .. } => VerdictKind::Defer,
            Self::Indeterminate { .. } => VerdictKind::Indeterminate,
        }
    }

    /// The rung that decided.
    #[must_use]
    #[inline]
    pub const fn by(&self) -> RungName {
        match self {
            Self::Allow { by }
            | Self::Deny { by, .. }
            | Self::Transform { by, .. }
            | Self::Quarantine { by }
            | Self::RequireWitness { by, .. }
            | Self::Defer { by }
            | Self::Indeterminate { by } => by,
        }
    }

    /// The refusal, if it is one.
    #[must_use]
    #[inline]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Deny { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// The reason of a refusal.
    #[must_use]
    #[inline]
    pub fn reason(&self) -> Option<Reason> {
        self.refusal().map(|refusal| refusal.reason)
    }

    /// What the refused agent should do next.
    #[must_use]
    pub fn disposition(&self) -> Option<Disposition> {
        self.reason().map(Reason::disposition)
    }
}

impl fmt::Display for Verdict {
    /// One line with rung, reason, site and what to do: what the check advises, or else what its reason does in general. Enough to
    /// explain a refusal in one step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Deny { refusal, by } = self else {
            return write!(f, "{} by {}", self.kind(), self.by());
        };
        let Refusal { reason, site, retry_after_ms, .. } = *refusal;
        write!(f, "deny {reason} ({}) by {by} at {site}", reason.disposition())?;
        if let Some(ms) = retry_after_ms {
            write!(f, ", retry after {ms} ms")?;
        }
        write!(f, ": {}", refusal.next())
    }
}

/// What an act that yields a value answers: the value, or the verdict that refused it (§1.3).
///
/// ```
/// use fak_abi::{Outcome, Reason, Refusal, Site};
///
/// let done: Outcome<u32> = Outcome::Allow { value: 7, by: "me" };
/// assert_eq!(done.map(|number| number + 1).allowed(), Some(8));
/// let refused: Outcome<u32> = Outcome::deny(Refusal::new(Reason::RateLimited, Site::new("me/full")), "me");
/// assert_eq!(refused.verdict().reason(), Some(Reason::RateLimited));
/// assert_eq!(refused.allowed(), None);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub enum Outcome<T> {
    /// It happened.
    Allow {
        /// What it yields.
        value: T,
        /// The first rung that allowed it.
        by: RungName,
    },
    /// It did not happen: denied, or what it would hand over is held (`quarantine`).
    Refuse(Verdict),
}

impl<T> Outcome<T> {
    /// Refused by `by`.
    #[inline]
    pub const fn deny(refusal: Refusal, by: RungName) -> Self {
        Self::Refuse(Verdict::deny(refusal, by))
    }

    /// The value, if it happened.
    #[must_use]
    pub fn allowed(self) -> Option<T> {
        match self {
            Self::Allow { value, .. } => Some(value),
            Self::Refuse(_) => None,
        }
    }

    /// The value, or the refusal as an error: for callers to whom a refusal is the end.
    ///
    /// # Errors
    ///
    /// [`Refused`], if it did not happen.
    ///
    /// ```
    /// use fak_abi::{Outcome, Refused};
    ///
    /// fn next(number: Outcome<u32>) -> Result<u32, Refused> {
    ///     Ok(number.ok()? + 1)
    /// }
    /// # assert_eq!(next(Outcome::Allow { value: 7, by: "me" }).ok(), Some(8));
    /// ```
    #[inline]
    pub fn ok(self) -> Result<T, Refused> {
        self.ok_or_else(Refused)
    }

    /// As [`Outcome::ok`], with an error of the caller's own.
    ///
    /// # Errors
    ///
    /// What `refused` makes of the verdict, if it did not happen.
    pub fn ok_or_else<E>(self, refused: impl FnOnce(Verdict) -> E) -> Result<T, E> {
        match self {
            Self::Allow { value, .. } => Ok(value),
            Self::Refuse(verdict) => Err(refused(verdict)),
        }
    }

    /// The verdict, without the value.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow { by, .. } => Verdict::allow(by),
            Self::Refuse(verdict) => verdict.clone(),
        }
    }

    /// True if it happened.
    #[must_use]
    #[inline]
    pub const fn is_allow(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }

    /// The same with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Allow { value, by } => Outcome::Allow { value: change(value), by },
            Self::Refuse(verdict) => Outcome::Refuse(verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §2.6: the ranks, and deny for what is unknown.
    #[test]
    fn restrictiveness_is_the_clause() {
        let ranks: Vec<_> = VerdictKind::ALL.iter().map(|kind| (kind.name(), kind.rank())).collect();
        assert_eq!(
            ranks,
            [
                ("allow", 0),
                ("deny", 100),
                ("transform", 20),
                ("quarantine", 30),
                ("require_witness", 40),
                ("defer", 10),
                ("indeterminate", 15)
            ]
        );
        assert_eq!(VerdictKind::rank_of(0), 0);
        assert_eq!(VerdictKind::rank_of(7), 100);
        assert_eq!(VerdictKind::rank_of(1024), 100);
    }

    #[test]
    fn a_refusal_explains_itself_in_one_line() {
        let refusal = Refusal::new(Reason::RateLimited, Site::new("rate/agent").item(1)).retry_after(40);
        assert_eq!(
            Verdict::deny(refusal, "rate").to_string(),
            "deny RATE_LIMITED (wait) by rate at rate/agent#2, retry after 40 ms: a bound is reached: wait, or read what is queued"
        );
        assert_eq!(Verdict::allow("a2achan/gate").to_string(), "allow by a2achan/gate");
    }

    /// §3.5: a check knows better what to do than the reason it shares with others.
    #[test]
    fn a_listed_check_gives_its_own_advice() {
        const TARGET: SiteInfo =
            SiteInfo { check: "me/target", clause: "§2.4", refuses: "it", next: "do that" };
        let refusal = Refusal::new(Reason::TrustViolation, TARGET.site());
        assert_eq!(
            Verdict::deny(refusal, "me").to_string(),
            "deny TRUST_VIOLATION (escalate) by me at me/target: do that"
        );
        assert_eq!(refusal.site, Site::new("me/target"));
        assert_eq!(refusal.site.info().map(|info| info.clause), Some("§2.4"));
        assert_ne!(refusal.site.item(0), refusal.site);
    }

    /// §2.8: a capability that is missing is named, so that nobody has to look up which one it is.
    #[test]
    fn a_refusal_for_want_of_a_capability_names_it() {
        let refusal = Refusal::lacking(Capability::A2aSend, Site::new("a2achan/no-send"));
        assert_eq!((refusal.reason, refusal.lacks), (Reason::DefaultDeny, Some(Capability::A2aSend)));
        assert_eq!(
            Verdict::deny(refusal, "a2achan/gate").to_string(),
            "deny DEFAULT_DENY (terminal) by a2achan/gate at a2achan/no-send: \
             the capability a2a.send is not granted: ask the host to grant it"
        );
    }

    #[test]
    fn verdicts_stay_small() {
        assert!(size_of::<Verdict>() <= 64, "{}", size_of::<Verdict>());
        assert!(size_of::<Opinion>() <= 48, "{}", size_of::<Opinion>());
        assert_eq!(size_of::<Site>(), 20);
    }
}
