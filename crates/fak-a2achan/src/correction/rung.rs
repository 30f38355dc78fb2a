//! The floor rung `a2achan/correction`: what §4.9 checks before a correction or an acknowledgement
//! is a send like any other.

use std::sync::Arc;

use fak_abi::json::Limits;
use fak_abi::{
    Act, Adjudicator, Desk, Opinion, Principal, Reason, RungName, ShareScope, SiteInfo, ToolCall, ToolScope,
};

use super::book::{Phase, Record};
use super::envelope::{Correction, CorrectionAck, MAX_CORRECTION_BYTES};
use crate::core::Core;
use crate::sites;

/// The name that verdicts of these checks carry.
pub(crate) const BY: RungName = "a2achan/correction";

/// See the module.
pub(crate) struct CorrectionRung(pub(crate) Arc<Core>);

/// Why one of these acts is refused.
pub(super) type Unfit = (Reason, &'static SiteInfo);

/// The scope of a body that is shared explicitly between two sides: their fleet, else their tenant.
pub(super) fn shared_scope(a: &Principal, b: &Principal) -> Option<ShareScope> {
    if a.fleet().is_some() && a.fleet() == b.fleet() {
        Some(ShareScope::Fleet)
    } else if a.tenant().is_some() && a.tenant() == b.tenant() {
        Some(ShareScope::Tenant)
    } else {
        None
    }
}

impl CorrectionRung {
    fn correct(&self, call: &ToolCall<'_>, correction: &Correction) -> Result<(), Unfit> {
        let blank = |text: &str| text.trim().is_empty();
        let Correction { orchestrator_id, worker_id, lane, message, .. } = correction;
        if [orchestrator_id, worker_id, lane, message].iter().any(|text| blank(text)) || correction.issue <= 0
        {
            return Err((Reason::Malformed, sites::CORRECTION_MALFORMED));
        }
        if message.len() as u64 > correction.max_bytes.min(MAX_CORRECTION_BYTES) {
            return Err((Reason::Oversize, sites::CORRECTION_OVERSIZE));
        }
        let book = self.0.book.lock();
        let Some((status, worker)) = book.cited(&correction.status_digest) else {
            return Err((Reason::Unwitnessed, sites::CORRECTION_UNWITNESSED));
        };
        let described =
            (status.worker_id.as_str(), status.issue, status.task_id.as_str(), status.lane.as_str());
        let asked = (worker_id.as_str(), correction.issue, correction.task_id.as_str(), lane.as_str());
        if described != asked {
            return Err((Reason::TrustViolation, sites::CORRECTION_SCOPE));
        }
        if orchestrator_id.as_str() != call.principal().id().as_str() {
            return Err((Reason::TrustViolation, sites::CORRECTION_OTHER));
        }
        if shared_scope(call.principal(), worker).is_none() {
            return Err((Reason::TrustViolation, sites::CORRECTION_APART));
        }
        if book.record(&correction.correction_id).is_some() {
            return Err((Reason::Unwitnessed, sites::CORRECTION_STALE));
        }
        Ok(())
    }

    fn ack(&self, call: &ToolCall<'_>, ack: &CorrectionAck) -> Result<(), Unfit> {
        let book = self.0.book.lock();
        let Some(record) = book.record(&ack.correction_id) else {
            return Err((Reason::Unwitnessed, sites::CORRECTION_STALE));
        };
        let Record { worker, correction, phase, .. } = record;
        if !Arc::ptr_eq(worker, call.principal()) || ack.worker_id != correction.worker_id {
            return Err((Reason::TrustViolation, sites::ACK_OTHER));
        }
        let fits = matches!(phase, Phase::Received) && ack.status_digest == correction.status_digest;
        if !fits || !book.is_current(record) {
            return Err((Reason::Unwitnessed, sites::CORRECTION_STALE));
        }
        Ok(())
    }
}

impl Adjudicator for CorrectionRung {
    fn name(&self) -> RungName {
        BY
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["a2a.correct", "a2a.ack"])
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        let Some(bytes) = call.body().and_then(|body| desk.resolver.bytes(body).ok()) else {
            return Opinion::Defer;
        };
        let checked = match call.tool().act() {
            Some(Act::Correct) => match Correction::parse(&bytes) {
                Ok(correction) => self.correct(call, &correction),
                // Too large to be read is far above the ceiling.
                Err(_) if bytes.len() > Limits::default().bytes => {
                    Err((Reason::Oversize, sites::CORRECTION_OVERSIZE))
                }
                Err(_) => Err((Reason::Malformed, sites::CORRECTION_MALFORMED)),
            },
            Some(Act::Ack) => match CorrectionAck::parse(&bytes) {
                Ok(ack) => self.ack(call, &ack),
                Err(_) => Err((Reason::Malformed, sites::CORRECTION_MALFORMED)),
            },
            _ => Ok(()),
        };
        match checked {
            // It may still be no send that the floor allows.
            Ok(()) => Opinion::Defer,
            Err((reason, site)) => Opinion::deny(reason, site.site()),
        }
    }

    fn sites(&self) -> &'static [SiteInfo] {
        sites::SITES
    }
}
