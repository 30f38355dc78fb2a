//! An orchestrator steers a running worker (§4.9): a correction cites the status it answers, acts once, and counts only if the
//! worker acknowledges it and its next action shows it. An order that comes late does not stop the next task.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::error::Error;

use fak_a2achan::{Bus, BusConfig, CorrectionRequest, Delivery, Endpoint, WorkerStatus};
use fak_abi::{AgentHandle, Capability::*, Id, PrincipalSpec};
use fak_adjudicate::Kernel;

fn main() -> Result<(), Box<dyn Error>> {
    let bus = Bus::new(BusConfig::default())?;
    let kernel = Kernel::builder().driver(bus.driver()).build()?;
    let attach = |name| -> Result<AgentHandle, Box<dyn Error>> {
        let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("f1")?);
        Ok(kernel.attach(spec.caps([A2aSend, A2aRecv]))?)
    };
    let [lead, worker, rival] =
        [attach("lead")?, attach("worker")?, attach("rival")?].map(|agent| bus.endpoint(&agent));

    // The worker says what it does. Nobody else can say it.
    let first = status(1, "writing chapter 2");
    println!("worker posts: {}", worker.post_status(&first).verdict);
    println!("rival posts for the worker: {}", rival.post_status(&status(9, "gone home")).verdict);

    // The lead corrects it, citing what it saw.
    let order = lead.correct(&request(&first, "stop after this chapter"));
    println!("lead corrects: {}", order.verdict);
    let correction = order.correction.ok_or("refused")?;
    println!("worker gets: {}", take(&worker)?);
    let stopping = correction.ack(correction.next_action("stopping after chapter 2"));
    println!("rival acknowledges: {}", rival.ack(&stopping).verdict);
    println!("lead observes: {}", lead.observe(&correction.correction_id).verdict);
    println!("worker acknowledges: {}", worker.ack(&stopping).verdict);
    let seen = lead.observe(&correction.correction_id);
    println!("lead observes: {}, acknowledged {}, reflected {}", seen.verdict, seen.acked, seen.reflected);
    println!("worker acknowledges again: {}", worker.ack(&stopping).verdict);

    // An order that crosses with the worker's next step is stale, and the next step is untouched.
    println!("lead corrects: {}", lead.correct(&request(&first, "no, stop at once")).verdict);
    println!("worker posts: {}", worker.post_status(&status(2, "writing chapter 3")).verdict);
    println!("worker gets: {}", take(&worker)?);

    // What a request cannot do: cite nothing, be somebody else, say too much.
    let second = status(2, "writing chapter 3");
    let unseen = CorrectionRequest { status_digest: String::new(), ..request(&second, "stop") };
    println!("lead cites no status: {}", lead.correct(&unseen).verdict);
    println!("rival as the lead: {}", rival.correct(&request(&second, "delete it all")).verdict);
    let receipt = lead.correct(&request(&second, &"very ".repeat(300)));
    println!("lead at length: {}", receipt.verdict);
    println!("every attempt has a row: {}", String::from_utf8_lossy(&receipt.audit.to_json()));
    Ok(())
}

fn status(seq: i64, action: &str) -> WorkerStatus {
    WorkerStatus {
        worker_id: "worker".to_owned(),
        issue: 7,
        task_id: "task_book".to_owned(),
        lane: "docs".to_owned(),
        live: true,
        seq,
        last_action: action.to_owned(),
    }
}

fn request(status: &WorkerStatus, message: &str) -> CorrectionRequest {
    CorrectionRequest {
        orchestrator_id: "lead".to_owned(),
        worker_id: status.worker_id.clone(),
        issue: status.issue,
        task_id: status.task_id.clone(),
        lane: status.lane.clone(),
        message: message.to_owned(),
        status_digest: status.digest().to_string(),
        max_bytes: None,
    }
}

fn take(worker: &Endpoint) -> Result<String, Box<dyn Error>> {
    Ok(match worker.try_receive_correction() {
        Delivery::Message(received) => format!("{:?}", received.correction.message),
        Delivery::Refuse(verdict) => verdict.to_string(),
        other => return Err(format!("expected a correction, got {other:?}").into()),
    })
}
