//! The last decision of a step, for what its answer itself does not say: who permitted what was handed over.

use std::sync::{Arc, Mutex, PoisonError};

use fak_abi::{Emitter, Event, EventKind, EventKinds, RungName};

/// The rung of the last act that was decided since it was forgotten.
#[derive(Clone, Default)]
pub(super) struct LastDecision(Arc<Mutex<Option<RungName>>>);

impl LastDecision {
    /// Before a step.
    pub(super) fn forget(&self) {
        self.set(None);
    }

    /// Who decided, if anything was.
    pub(super) fn by(&self) -> Option<RungName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).filter(|by| !by.is_empty())
    }

    fn set(&self, by: Option<RungName>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }
}

impl Emitter for LastDecision {
    fn kinds(&self) -> EventKinds {
        EventKinds::of(&[EventKind::Decide])
    }

    fn emit(&self, event: &Event<'_>) {
        if let Some(verdict) = event.verdict {
            self.set(Some(verdict.by()));
        }
    }
}
