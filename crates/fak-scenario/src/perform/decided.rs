//! The last decision of a step, for what its answer itself does not say: which rung permitted what was handed over, and as whom a
//! step without `by` acted.

use std::sync::{Arc, Mutex, PoisonError};

use fak_abi::{Emitter, Event, EventKind, EventKinds, Id, RungName};

/// The last act that was decided since it was forgotten.
#[derive(Clone, Default)]
pub(super) struct LastDecision(Arc<Mutex<Option<Decided>>>);

/// Who decided an act, and whose it was.
#[derive(Clone)]
pub(super) struct Decided {
    pub(super) by: RungName,
    pub(super) agent: Option<Id>,
}

impl LastDecision {
    /// Before a step.
    pub(super) fn forget(&self) {
        self.set(None);
    }

    /// What was decided, if anything was.
    pub(super) fn last(&self) -> Option<Decided> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, decided: Option<Decided>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = decided;
    }
}

impl Emitter for LastDecision {
    fn kinds(&self) -> EventKinds {
        EventKinds::of(&[EventKind::Decide])
    }

    fn emit(&self, event: &Event<'_>) {
        if let Some(verdict) = event.verdict {
            let agent = event.principal.map(|principal| principal.id().clone());
            self.set(Some(Decided { by: verdict.by(), agent }));
        }
    }
}
