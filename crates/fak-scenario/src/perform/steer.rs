//! Corrections: statuses posted, workers steered, acknowledgements observed (§4.9).

use std::collections::HashMap;

use fak_a2achan::{Correction, CorrectionRequest, Delivery, NextAction, WorkerStatus};
use fak_abi::Digest;

use super::{
    done::{Done, Stop},
    world::World,
};
use crate::act::{ActionSpec, Actor, CorrectionSpec, StatusSpec};

/// What steps have kept of corrections.
#[derive(Default)]
pub(super) struct Steering {
    /// The digest of each worker's status in force.
    statuses: HashMap<String, Digest>,
    /// Corrections by the name that `as` gave them.
    corrections: HashMap<String, Correction>,
}

impl World {
    pub(super) fn status_of(&mut self, by: &Actor, spec: &StatusSpec) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let me = endpoint.agent().principal().id().as_str().to_owned();
        let status = WorkerStatus {
            worker_id: spec.worker_id.clone().unwrap_or(me),
            issue: spec.issue,
            task_id: spec.task_id.clone(),
            lane: spec.lane.clone(),
            live: spec.live,
            seq: spec.seq,
            last_action: spec.last_action.clone(),
        };
        let posted = endpoint.post_status(&status);
        if posted.verdict.is_allow() {
            self.steering.statuses.insert(status.worker_id.clone(), posted.digest);
        }
        let mut done = Done::decided(&posted.verdict);
        done.note = Some(format!("seq {}", status.seq));
        Ok(done)
    }

    pub(super) fn correct(&mut self, by: &Actor, spec: &CorrectionSpec, name: &str) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let me = endpoint.agent().principal().id().as_str().to_owned();
        let current = || self.steering.statuses.get(&spec.worker_id).map(Digest::to_string);
        let request = CorrectionRequest {
            orchestrator_id: spec.orchestrator_id.clone().unwrap_or(me),
            worker_id: spec.worker_id.clone(),
            issue: spec.issue,
            task_id: spec.task_id.clone(),
            lane: spec.lane.clone(),
            message: spec.message.clone(),
            status_digest: spec.status_digest.clone().or_else(current).unwrap_or_default(),
            max_bytes: spec.max_bytes,
        };
        let receipt = endpoint.correct(&request);
        let mut done = Done::decided(&receipt.verdict).at(format!("worker:{:?}", spec.worker_id));
        if let Some(correction) = receipt.correction {
            done.note = Some(correction.correction_id.clone());
            self.steering.corrections.insert(name.to_owned(), correction);
        }
        Ok(done)
    }

    pub(super) fn receive_correction(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        Ok(match endpoint.try_receive_correction() {
            Delivery::Message(received) => {
                let mut done = Self::describe(endpoint.agent(), &received.message);
                done.note = Some(received.correction.correction_id.clone());
                self.steering.corrections.insert(name.to_owned(), received.correction);
                done
            }
            other => Self::nothing_received(&other),
        })
    }

    /// Acknowledges a correction with what the worker does next.
    pub(super) fn ack(&mut self, by: &Actor, action: &ActionSpec, name: &str) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let correction = self.correction(name)?;
        let next = correction.next_action(&action.summary);
        let said = |said: &Option<String>, else_: String| said.clone().unwrap_or(else_);
        let next = NextAction {
            worker_id: said(&action.worker_id, next.worker_id),
            issue: action.issue.unwrap_or(next.issue),
            task_id: said(&action.task_id, next.task_id),
            lane: said(&action.lane, next.lane),
            correction_id: said(&action.correction_id, next.correction_id),
            status_digest: said(&action.status_digest, next.status_digest),
            summary: next.summary,
        };
        let receipt = endpoint.ack(&correction.ack(next));
        Ok(Done::decided(&receipt.verdict).at(correction.correction_id.clone()))
    }

    pub(super) fn observe(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let endpoint = self.endpoint(by)?;
        let correction = self.correction(name)?;
        let observation = endpoint.observe(&correction.correction_id);
        let mut done = Done::decided(&observation.verdict).at(correction.correction_id.clone());
        done.note =
            Some(format!("acknowledged: {}, reflected: {}", observation.acked, observation.reflected));
        Ok(done)
    }

    fn correction(&self, name: &str) -> Result<Correction, Stop> {
        self.steering.corrections.get(name).cloned().ok_or_else(|| match name {
            "" => Stop::missing("no correction was received without a name: say which with \"as\""),
            name => Stop::missing(format!("no correction is known as \"{name}\"")),
        })
    }
}
