//! Rules as closed types, and which acts they apply to (§3.7).

use fak_abi::{Act, Capability, Id, PrincipalSpec, Reason, ShareScope, Taint};

use super::glob::{AddressGlob, Glob};

/// A parsed policy: every rule is well formed (§3.7). Which of them can never match, [`Policy::lint`]
/// says.
///
/// ```
/// use fak_adjudicate::Policy;
///
/// let error = Policy::from_toml("team.toml", "version = 1\n[[deny]]\ntool = \"a2a.send\"\nagnet = \"x\"\n").unwrap_err();
/// assert!(error.to_string().starts_with("team.toml:4:1: deny[1].agnet: unknown key \"agnet\", did you mean \"agent\"?"));
///
/// // A rule that can never match is found before it is missed.
/// let policy = Policy::from_toml("team.toml", "version = 1\n[[deny]]\ntool = \"a2a.publsh\"\n")?;
/// assert!(policy.lint(None).first().ok_or("clean")?.text.contains("a2a.publish"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    pub(super) file: String,
    pub(super) rules: Vec<Rule>,
    pub(super) grants: Vec<Grant>,
}

/// What a rule does with what it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Allow,
    Deny(Reason),
    Quarantine,
}

impl Effect {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny(_) => "deny",
            Self::Quarantine => "quarantine",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) effect: Effect,
    /// Its place among the rules of its effect, from 0.
    pub(super) index: u32,
    /// Where it is written.
    pub(super) line: usize,
    pub(super) tool: Glob,
    pub(super) who: Who,
    pub(super) address: Option<AddressGlob>,
    pub(super) taint: Option<Taint>,
    pub(super) scope: Option<ShareScope>,
    pub(super) max_bytes: Option<u64>,
}

/// Conditions on a principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Who {
    pub(super) agent: Option<Glob>,
    pub(super) fleet: Option<Glob>,
    pub(super) tenant: Option<Glob>,
}

/// A rule of the grant policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) line: usize,
    pub(super) capability: Glob,
    pub(super) who: Who,
}

/// A condition that is absent holds; one on what is absent does not.
#[inline]
fn holds(glob: Option<&Glob>, id: Option<&Id>) -> bool {
    glob.is_none_or(|glob| id.is_some_and(|id| glob.matches(id)))
}

impl Who {
    #[inline]
    fn matches(&self, id: &Id, fleet: Option<&Id>, tenant: Option<&Id>) -> bool {
        self.agent.as_ref().is_none_or(|glob| glob.matches(id))
            && holds(self.fleet.as_ref(), fleet)
            && holds(self.tenant.as_ref(), tenant)
    }
}

impl Rule {
    /// True if the rule's tool names this act: the act's own tool or its capability's (§1.4).
    pub(super) fn names_act(&self, act: Act) -> bool {
        self.tool.matches(act.tool()) || self.tool.matches(act.capability().name())
    }

    pub(super) const fn looks_at_body(&self) -> bool {
        self.taint.is_some() || self.scope.is_some() || self.max_bytes.is_some()
    }
}

impl Policy {
    /// True if the grant policy lets the principal have the capability (§2.3). A policy without
    /// grant rules is none, and limits nothing.
    #[must_use]
    pub fn grants(&self, spec: &PrincipalSpec, capability: Capability) -> bool {
        self.grants.is_empty()
            || self.grants.iter().any(|grant| {
                grant.capability.matches(capability.name())
                    && grant.who.matches(&spec.id, spec.fleet.as_ref(), spec.tenant.as_ref())
            })
    }

    /// How many rules it has, grants included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len() + self.grants.len()
    }

    /// True if it has no rule at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file it was read from, as the host named it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
}
