//! What a store asks of patches beyond their form: the widest scope, and when a human has to approve (§5.5, §5.7).

use fak_abi::{PrincipalKind, ShareScope};

use crate::envelope::{Limits, Patch};

/// When a patch needs a human's approval (§5.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalRule {
    /// Always.
    Always,
    /// When an op's path is this one, or below it.
    Path(String),
    /// When the actor is of this kind.
    Actor(PrincipalKind),
    /// When the patch's scope is this one, or wider.
    Scope(ShareScope),
}

impl ApprovalRule {
    fn applies(&self, patch: &Patch) -> bool {
        match self {
            Self::Always => true,
            Self::Path(path) => patch.ops.items.iter().any(|op| {
                op.path
                    .strip_prefix(path.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }),
            Self::Actor(kind) => *patch.actor.kind == *kind.name(),
            Self::Scope(scope) => patch.scope >= *scope,
        }
    }
}

/// The rules of one store (§5.5).
#[derive(Debug, Clone)]
pub struct Rules {
    /// The widest scope a patch may bring, in the order agent < fleet < tenant < public; default fleet.
    pub max_scope: ShareScope,
    /// When a patch is held for a human; any of these. Default never.
    pub approval: Vec<ApprovalRule>,
    /// How large records and patches may be.
    pub limits: Limits,
}

impl Default for Rules {
    fn default() -> Self {
        Self { max_scope: ShareScope::Fleet, approval: Vec::new(), limits: Limits::default() }
    }
}

impl Rules {
    /// Whether a patch has to be approved by a human.
    #[must_use]
    pub fn needs_approval(&self, patch: &Patch) -> bool {
        self.approval.iter().any(|rule| rule.applies(patch))
    }
}
