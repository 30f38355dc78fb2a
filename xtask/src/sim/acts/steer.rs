//! Corrections (§4.9): statuses that rise or not, requests that fit or not, acknowledgements from the worker or not.

use fak_a2achan::{CorrectionAck, CorrectionRequest, Delivery, WorkerStatus};
use fak_abi::Reason;

use super::Sim;
use super::compare::{said, verdict};
use crate::sim::MARK;
use crate::sim::fault::{Fault, Step, ensure};
use crate::sim::model::Who;
use crate::sim::model::channels::Got;
use crate::sim::model::steer::{Ack, Asked, Status};

impl Sim {
    fn id_of(&self, who: Who) -> String {
        self.model.agent(who).map(|agent| agent.id.clone()).unwrap_or_default()
    }

    pub(super) fn post_status(&mut self, agent: u8, what: u8, how: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let last = self.model.statuses.iter().find(|status| status.who == who).map(|status| status.seq);
        let status = WorkerStatus {
            worker_id: if how == 255 { "a9".to_owned() } else { self.id_of(who) },
            issue: if how == 254 { 0 } else { i64::from(what % 2) + 1 },
            task_id: if what % 8 < 4 { String::new() } else { "task_t".to_owned() },
            lane: if how == 253 { " ".to_owned() } else { "docs".to_owned() },
            live: how % 16 != 3,
            seq: if how % 16 == 5 { last.unwrap_or(0) } else { last.unwrap_or(0) + 1 },
            last_action: "edit".to_owned(),
        };
        let model = Status {
            who,
            worker: status.worker_id.clone(),
            issue: status.issue,
            task: status.task_id.clone(),
            lane: status.lane.clone(),
            live: status.live,
            seq: status.seq,
            digest: status.digest().to_string(),
        };
        let json = String::from_utf8(status.to_json()).unwrap_or_default();
        let model = self.model.post(who, model, &json);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.post_status(&status);
        verdict(&format!("§4.9: status of {who}, {status:?}"), &product.verdict, model)?;
        self.who_shows()
    }

    /// §4.9: `who` shows statuses to those alone who share the worker's fleet or tenant.
    fn who_shows(&self) -> Step {
        for (who, endpoint) in self.real.agents.iter().enumerate() {
            for seen in endpoint.who() {
                let Some((status, digest)) = seen.status else { continue };
                let worker = self.model.attached(seen.peer.id.as_str());
                let model =
                    worker.and_then(|worker| self.model.statuses.iter().find(|status| status.who == worker));
                ensure!(
                    model.is_some_and(|model| model.digest == digest.to_string()),
                    "§4.9: {who} is shown {status:?}, which is not the live one"
                );
                ensure!(
                    worker.is_some_and(|worker| worker == who || self.model.shared_scope(who, worker).is_some()),
                    "§4.9: {who} is shown the status of somebody it shares nothing with"
                );
            }
        }
        Ok(())
    }

    pub(super) fn correct(&mut self, agent: u8, worker: u8, how: u8) -> Step {
        let (Some(who), Some(status)) = (self.agent(agent), {
            let count = self.model.statuses.len().max(1);
            self.model.statuses.get(usize::from(worker) % count).cloned()
        }) else {
            return Ok(());
        };
        self.model.marks += 1;
        let mut text = format!("{MARK}steer-{}", self.model.marks);
        if how % 32 == 9 {
            text = "x".repeat(1_025);
        }
        let me = self.id_of(who);
        let request = CorrectionRequest {
            orchestrator_id: if how % 32 == 1 { "a9".to_owned() } else { me },
            worker_id: status.worker.clone(),
            issue: if how % 32 == 2 { status.issue + 1 } else { status.issue },
            task_id: status.task.clone(),
            lane: if how % 32 == 3 { String::new() } else { status.lane.clone() },
            message: text,
            status_digest: if how % 32 == 4 { format!("sha256:{:064x}", 7) } else { status.digest },
            max_bytes: if how % 32 == 5 { Some(4) } else { None },
        };
        self.send_correction(who, &request)?;
        // Now and then once more: a replay.
        if how % 32 == 6 { self.send_correction(who, &request) } else { Ok(()) }
    }

    fn send_correction(&mut self, who: Who, request: &CorrectionRequest) -> Step {
        let correction = request.correction();
        let asked = Asked {
            orchestrator: request.orchestrator_id.clone(),
            worker: request.worker_id.clone(),
            issue: request.issue,
            task: request.task_id.clone(),
            lane: request.lane.clone(),
            message: request.message.clone(),
            digest: request.status_digest.clone(),
            ceiling: correction.max_bytes,
            id: correction.correction_id.clone(),
            json: String::from_utf8(correction.to_json()).unwrap_or_default(),
        };
        let model = self.model.correct(who, &asked);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.correct(request);
        self.show(who, &format!("{:?} {:?}", product.verdict, product.audit));
        verdict(&format!("§4.9: {who} corrects {}", request.worker_id), &product.verdict, model)?;
        ensure!(
            (product.audit.verdict == "ALLOW") == product.verdict.is_allow(),
            "§4.9: the audit row says {:?}",
            product.audit
        );
        if product.verdict.is_allow() {
            self.real.corrections.push(correction);
        }
        Ok(())
    }

    pub(super) fn receive_correction(&mut self, agent: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let model = self.model.receive_correction(who);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.try_receive_correction();
        let place = |fault| Fault::new(format!("{fault} (§4.9: receive_correction)"));
        match (product, &model) {
            (Delivery::Message(received), Got::Message(msg)) => {
                self.show(who, &format!("{:?}", received.message));
                let known = self.model.steers.iter().find(|steer| steer.order == msg.order);
                ensure!(
                    known.is_some_and(|known| known.id == received.correction.correction_id),
                    "§4.9: another correction is received: {:?}",
                    received.correction
                );
                self.number(msg.order, received.message.seq())
            }
            (Delivery::Message(received), _) => {
                Err(place(Fault::new(format!("{who} received {received:?}, the model says {model:?}"))))
            }
            (Delivery::Empty, _) => self.delivery(who, Delivery::Empty, 0, &model).map_err(place),
            (Delivery::Hold(notice), _) => {
                self.delivery(who, Delivery::Hold(notice), 0, &model).map_err(place)
            }
            (Delivery::Refuse(verdict), _) => {
                self.delivery(who, Delivery::Refuse(verdict), 0, &model).map_err(place)
            }
            (Delivery::End(end), _) => self.delivery(who, Delivery::End(end), 0, &model).map_err(place),
        }
    }

    fn steer_at(&self, steer: u8) -> Option<usize> {
        let count = self.model.steers.len();
        count.checked_sub(1 + usize::from(steer) % count.clamp(1, 4))
    }

    pub(super) fn ack_correction(&mut self, agent: u8, steer: u8, how: u8) -> Step {
        let Some(at) = self.steer_at(steer) else { return Ok(()) };
        let (Some(steer), Some(correction)) =
            (self.model.steers.get(at).cloned(), self.real.corrections.get(at).cloned())
        else {
            return Ok(());
        };
        // Mostly by the worker; sometimes by somebody who forges it.
        let Some(who) = (if how.is_multiple_of(8) { self.agent(agent) } else { Some(steer.worker) }) else {
            return Ok(());
        };
        let mut ack: CorrectionAck = correction.ack(correction.next_action("go on"));
        if how % 16 == 3 {
            ack.next_action.correction_id = "corr_0000000000000000".to_owned();
        }
        ack.acked = how % 16 != 5;
        if how % 32 == 7 {
            ack.worker_id = "a9".to_owned();
        }
        let model = Ack {
            worker: ack.worker_id.clone(),
            digest: ack.status_digest.clone(),
            accepted: ack.acked,
            reflected: ack.is_reflected(),
            json: String::from_utf8(ack.to_json()).unwrap_or_default(),
        };
        let model = self.model.ack_correction(who, at, &model);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.ack(&ack);
        self.show(who, &format!("{product:?}"));
        verdict(&format!("§4.9: {who} acknowledges {at}"), &product.verdict, model)
    }

    pub(super) fn observe(&mut self, agent: u8, steer: u8) -> Step {
        let Some(at) = self.steer_at(steer) else { return Ok(()) };
        let Some(steer) = self.model.steers.get(at).cloned() else { return Ok(()) };
        let Some(who) = (if agent.is_multiple_of(8) { self.agent(agent) } else { Some(steer.from) }) else {
            return Ok(());
        };
        let model: Result<(), Option<Reason>> = self.model.observe(who, at);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.observe(&steer.id);
        ensure!(
            said(&product.verdict) == model,
            "§4.9: {who} observes {at}: the product says {}, the model {model:?}",
            product.verdict
        );
        Ok(())
    }
}
