//! What became of a patch, kept unredacted and told to each reader as far as that reader may know (§5.8).

use super::acts::Patched;
use crate::envelope::{Actor, Hash, MergeReason, MergeVerdict, Patch, PatchResult, TaskId};
use crate::merge::Stop;
use crate::sight::Sight;

/// The end of one merge.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) task_id: TaskId,
    pub(super) actor: Actor,
    pub(super) base: Option<Hash>,
    pub(super) current: Option<Hash>,
    /// The number of the revision after the merge.
    pub(super) number: usize,
    pub(super) end: End,
}

#[derive(Debug, Clone)]
pub(super) enum End {
    Accepted { event_id: Box<str> },
    Stopped(Stop),
}

impl Done {
    /// Whether it waits for a human, as far as it is known here.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.end, End::Stopped(Stop { reason: MergeReason::ApprovalRequired, .. }))
    }

    /// What `sight` is told of it, who has the patch.
    pub(super) fn patched(&self, sight: &Sight, patch: &Patch) -> Patched {
        let fault = match &self.end {
            End::Stopped(stop) => stop.fault().cloned(),
            End::Accepted { .. } => None,
        };
        Patched { result: self.result(sight, patch), revision: self.number, fault }
    }

    /// The result as `sight` may see it.
    fn result(&self, sight: &Sight, patch: &Patch) -> PatchResult {
        match &self.end {
            End::Stopped(stop) => stop.result(
                patch,
                &self.task_id,
                &self.actor,
                self.base.as_ref(),
                self.current.as_ref(),
                sight,
            ),
            End::Accepted { event_id } => {
                let base = self.base.clone().unwrap_or_else(crate::merge::unknown_rev);
                let current = self.current.clone().unwrap_or_else(|| base.clone());
                PatchResult {
                    task_id: self.task_id.clone(),
                    record_ref: current.to_string().into(),
                    base_rev: base,
                    current_rev: current,
                    verdict: MergeVerdict::Accepted,
                    reason: Box::default(),
                    event_id: event_id.clone(),
                    approval: None,
                    denial: None,
                    quarantine: None,
                    conflict: None,
                    rest: Vec::new(),
                }
            }
        }
    }
}
