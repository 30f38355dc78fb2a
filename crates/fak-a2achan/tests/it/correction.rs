//! §4.9: corrections; I02, I26. The peer's envelopes, byte for byte.

use fak_a2achan::{
    Correction, CorrectionAck, CorrectionRequest, Delivery, Endpoint, NextAction, ReceivedCorrection,
    WorkerStatus,
};
use fak_abi::{Capability, PrincipalSpec, Reason};
use std::sync::Arc;

use crate::support::*;

struct Pair {
    world: World,
    lead: Endpoint,
    worker: Endpoint,
}

fn pair() -> Pair {
    let world = World::new();
    let (lead, worker) = (world.agent("lead"), world.agent("worker"));
    Pair { world, lead, worker }
}

pub(crate) fn status(seq: i64) -> WorkerStatus {
    let text = str::to_owned;
    WorkerStatus {
        worker_id: text("worker"),
        issue: 7,
        task_id: text("t1"),
        lane: text("docs"),
        live: true,
        seq,
        last_action: text("edit"),
    }
}

pub(crate) fn request(status: &WorkerStatus, message: &str) -> CorrectionRequest {
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

fn received(delivery: Delivery<ReceivedCorrection>) -> ReceivedCorrection {
    match delivery {
        Delivery::Message(received) => received,
        other => panic!("expected a correction, got {other:?}"),
    }
}

#[track_caller]
fn unfit(delivery: Delivery<ReceivedCorrection>, reason: Reason, site: &str) {
    match delivery {
        Delivery::Refuse(verdict) => denied(&verdict, reason, site),
        other => panic!("expected {reason} at {site}, got {other:?}"),
    }
}

fn ack_of(correction: &Correction) -> CorrectionAck {
    correction.ack(correction.next_action("revert"))
}

/// §4.9: an id may be too long to follow a prefix; its keys are its own all the same.
#[test]
fn the_act_only_keys_of_a_long_id_are_its_own() {
    for length in [245, 246, 249, 250, 256] {
        let world = World::new();
        let name = "w".repeat(length);
        let spec = || PrincipalSpec::agent(id(&name)).fleet(id("f1")).trace(id("t")).caps(caps());
        let (lead, worker) = (world.agent("lead"), world.spec(spec()));
        let at = |prefix: &str| match format!("{prefix}:{name}") {
            short if short.len() <= 256 => key(&format!("in_kernel:{short}")),
            _ => key(&format!("in_kernel:{prefix}#{}", fak_abi::Digest::of(name.as_bytes()).hex())),
        };
        let mut posts = lead.subscribe(&at("status")).allowed().unwrap();
        allowed(&worker.post_status(&WorkerStatus { worker_id: name.clone(), ..status(1) }).verdict);
        message(posts.try_recv());
        let body = shared(&lead, "x");
        for only in [at("status"), at("correction"), at("ack")] {
            denied(&lead.publish(&only, &body).verdict, Reason::TrustViolation, "a2achan/act-only");
            denied(&lead.send(&only, &body), Reason::TrustViolation, "a2achan/act-only");
        }
        world.kernel.detach(&id(&name)).unwrap();
        allowed(&lead.publish(&at("status"), &body).verdict);
    }
}

#[test]
fn corrected_acknowledged_observed() {
    let Pair { world, lead, worker } = pair();
    let mut posts = lead.subscribe(&key("in_kernel:status:worker")).allowed().unwrap();
    let posted = worker.post_status(&status(4));
    allowed(&posted.verdict);
    assert_eq!(message(posts.try_recv()).body().digest(), posted.digest);
    let seen = lead.who().into_iter().find(|peer| peer.peer.id == id("worker")).unwrap();
    assert_eq!(seen.status, Some((status(4), posted.digest)));
    assert!(world.stranger("zulu", "f2").who().iter().all(|peer| peer.status.is_none()));

    let receipt = lead.correct(&request(&status(4), "stop"));
    allowed(&receipt.verdict);
    assert_eq!((receipt.audit.verdict.as_str(), receipt.audit.by.as_str()), ("ALLOW", "a2achan/gate"));
    let correction = receipt.correction.unwrap();
    let observed = lead.observe(&correction.correction_id);
    denied(&observed.verdict, Reason::Unwitnessed, "a2achan/observe");
    let got = received(worker.try_receive_correction());
    assert_eq!(got.correction, correction);
    allowed(&worker.ack(&ack_of(&correction)).verdict);
    denied(
        &worker.observe(&correction.correction_id).verdict,
        Reason::TrustViolation,
        "a2achan/observe-other",
    );
    let observed = lead.observe(&correction.correction_id);
    allowed(&observed.verdict);
    assert!(observed.acked && observed.reflected);
    denied(&lead.observe("corr_unknown").verdict, Reason::Unwitnessed, "a2achan/observe");
    drop(posts);
    let stats = world.bus.stats();
    assert_eq!((stats.sent, stats.received, stats.queued), (3, 3, 0));
    assert!(stats.is_conserved());
}

#[test]
fn checks_in_order() {
    let Pair { world, lead, worker } = pair();
    let (live, good) = (status(1), request(&status(1), "stop"));
    let refuse = |change: &dyn Fn(&mut CorrectionRequest), reason, site: &str| {
        let mut request = good.clone();
        change(&mut request);
        let receipt = lead.correct(&request);
        denied(&receipt.verdict, reason, site);
        assert_eq!(
            (receipt.audit.verdict.as_str(), receipt.audit.by.as_str()),
            ("DENY", "a2achan/correction")
        );
        assert_eq!(receipt.audit.reason, reason.name());
        assert!(receipt.audit.correction_id.is_empty());
    };
    refuse(&|_| {}, Reason::Unwitnessed, "a2achan/correction-unwitnessed");
    allowed(&worker.post_status(&live).verdict);
    for blank in ["", " \t"] {
        let site = "a2achan/correction-malformed";
        refuse(&|it| it.orchestrator_id = blank.into(), Reason::Malformed, site);
        refuse(&|it| it.worker_id = blank.into(), Reason::Malformed, site);
        refuse(&|it| it.lane = blank.into(), Reason::Malformed, site);
        refuse(&|it| it.message = blank.into(), Reason::Malformed, site);
    }
    refuse(&|it| it.issue = 0, Reason::Malformed, "a2achan/correction-malformed");
    refuse(&|it| it.message = "x".repeat(1025), Reason::Oversize, "a2achan/correction-oversize");
    // So is what is too large to be read at all.
    refuse(&|it| it.message = "x".repeat(5 << 20), Reason::Oversize, "a2achan/correction-oversize");
    refuse(&|it| it.max_bytes = Some(3), Reason::Oversize, "a2achan/correction-oversize");
    refuse(
        &|it| (it.message, it.max_bytes) = ("x".repeat(1025), Some(4096)),
        Reason::Oversize,
        "a2achan/correction-oversize",
    );
    // Oversize comes before the status, the status before the scope.
    refuse(
        &|it| (it.status_digest, it.max_bytes) = (String::new(), Some(1)),
        Reason::Oversize,
        "a2achan/correction-oversize",
    );
    refuse(
        &|it| (it.status_digest, it.issue) = ("sha256:00".into(), 9),
        Reason::Unwitnessed,
        "a2achan/correction-unwitnessed",
    );
    let site = "a2achan/correction-scope";
    refuse(&|it| it.worker_id = "lead".into(), Reason::TrustViolation, site);
    refuse(&|it| it.issue = 8, Reason::TrustViolation, site);
    refuse(&|it| it.task_id = "t2".into(), Reason::TrustViolation, site);
    refuse(&|it| it.lane = "code".into(), Reason::TrustViolation, site);
    refuse(&|it| it.orchestrator_id = "worker".into(), Reason::TrustViolation, "a2achan/correction-other");
    // Then the send verdict.
    let mute = world.spec(PrincipalSpec::agent(id("mute")).fleet(id("f1")).caps([Capability::A2aRecv]));
    let receipt = mute.correct(&CorrectionRequest { orchestrator_id: "mute".into(), ..good.clone() });
    denied(&receipt.verdict, Reason::DefaultDeny, "a2achan/no-send");
    assert!(!receipt.audit.correction_id.is_empty());
    let zulu = world.stranger("zulu", "f2");
    let receipt = zulu.correct(&CorrectionRequest { orchestrator_id: "zulu".into(), ..good.clone() });
    denied(&receipt.verdict, Reason::TrustViolation, "a2achan/correction-apart");
    allowed(&lead.correct(&good).verdict);
    // A status that is not live cannot be corrected, one that does not rise is none.
    denied(&worker.post_status(&status(1)).verdict, Reason::Malformed, "a2achan/status-stale");
    let idle = WorkerStatus { live: false, ..status(2) };
    allowed(&worker.post_status(&idle).verdict);
    denied(
        &lead.correct(&request(&idle, "stop")).verdict,
        Reason::Unwitnessed,
        "a2achan/correction-unwitnessed",
    );
    denied(&lead.post_status(&status(9)).verdict, Reason::TrustViolation, "a2achan/status-other");
    denied(&worker.post_status(&status(0)).verdict, Reason::Malformed, "a2achan/status-malformed");
}

/// I02: a late stop order does not stop the next task.
#[test]
fn a_stale_correction_is_refused_on_receipt() {
    let Pair { world, lead, worker } = pair();
    allowed(&worker.post_status(&status(4)).verdict);
    allowed(&lead.correct(&request(&status(4), "stop")).verdict);
    allowed(&worker.post_status(&status(5)).verdict);
    unfit(worker.try_receive_correction(), Reason::Unwitnessed, "a2achan/correction-stale");
    assert!(matches!(worker.try_receive_correction(), Delivery::Empty));
    assert_eq!(world.bus.dead_letters()[0].cause.name(), "superseded");
    assert!(world.bus.stats().is_conserved());
}

/// I26.
#[test]
fn a_superseded_correction_is_refused() {
    let Pair { lead, worker, .. } = pair();
    allowed(&worker.post_status(&status(4)).verdict);
    let go = lead.correct(&request(&status(4), "go")).correction.unwrap();
    let got = received(worker.try_receive_correction());
    let hold = lead.correct(&request(&status(4), "hold")).correction.unwrap();
    denied(&worker.ack(&ack_of(&go)).verdict, Reason::Unwitnessed, "a2achan/correction-stale");
    assert_eq!(got.correction, go);
    received(worker.try_receive_correction());
    allowed(&worker.ack(&ack_of(&hold)).verdict);
    denied(&lead.observe(&go.correction_id).verdict, Reason::Unwitnessed, "a2achan/observe");
    allowed(&lead.observe(&hold.correction_id).verdict);
}

#[test]
fn replays_forgeries_and_unreflected_acknowledgements() {
    let Pair { world, lead, worker } = pair();
    allowed(&worker.post_status(&status(4)).verdict);
    let correction = lead.correct(&request(&status(4), "stop")).correction.unwrap();
    denied(
        &lead.correct(&request(&status(4), "stop")).verdict,
        Reason::Unwitnessed,
        "a2achan/correction-stale",
    );
    let id_of = &correction.correction_id;
    // Nobody acknowledges for the worker, nor the worker what it has not received.
    let mallory = world.agent("mallory");
    denied(&mallory.ack(&ack_of(&correction)).verdict, Reason::TrustViolation, "a2achan/ack-other");
    denied(&lead.ack(&ack_of(&correction)).verdict, Reason::TrustViolation, "a2achan/ack-other");
    denied(&worker.ack(&ack_of(&correction)).verdict, Reason::Unwitnessed, "a2achan/correction-stale");
    received(worker.try_receive_correction());
    let elsewhere = NextAction { correction_id: "corr_other".into(), ..correction.next_action("go on") };
    allowed(&worker.ack(&correction.ack(elsewhere)).verdict);
    let observed = lead.observe(id_of);
    denied(&observed.verdict, Reason::Unwitnessed, "a2achan/observe");
    assert!(observed.acked && !observed.reflected);
    denied(&worker.ack(&ack_of(&correction)).verdict, Reason::Unwitnessed, "a2achan/correction-stale");
    assert!(world.bus.stats().is_conserved());
}

/// Altered on the way by a rung that rewrites bodies.
#[test]
fn an_altered_correction_is_malformed() {
    let rule = Rule {
        tools: vec!["a2a.correct"],
        opinion: |call, desk| {
            let body = call.body().unwrap();
            let text = String::from_utf8(desk.resolver.bytes(body).unwrap().to_vec()).unwrap();
            if !text.contains("stop") {
                return fak_abi::Opinion::Defer;
            }
            fak_abi::Opinion::Transform(
                desk.resolver.rewrite(body, text.replace("stop", "go").into()).unwrap(),
            )
        },
    };
    let world =
        World::with(fak_a2achan::BusConfig::default(), |b| b.rung(fak_adjudicate::Rank(10), Arc::new(rule)));
    let (lead, worker) = (world.agent("lead"), world.agent("worker"));
    allowed(&worker.post_status(&status(4)).verdict);
    allowed(&lead.correct(&request(&status(4), "stop")).verdict);
    unfit(worker.try_receive_correction(), Reason::Malformed, "a2achan/correction-altered");
}

#[test]
fn a_waiting_worker_is_woken() {
    let Pair { lead, worker, .. } = pair();
    allowed(&worker.post_status(&status(4)).verdict);
    let mut wait = Hand::new(worker.receive_correction());
    wait.pending();
    allowed(&lead.correct(&request(&status(4), "stop")).verdict);
    assert_eq!(wait.wakes(), 1);
    received(wait.ready());
}

/// §7.1: the exact bytes and digests of the public implementation.
#[test]
fn the_peers_envelopes_byte_for_byte() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/peer/corrections.json");
    let cases: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let str_of = |name: &str| case[name].as_str().unwrap_or_default();
        let bytes = |name: &str| str_of(name).as_bytes();
        let status = WorkerStatus::parse(bytes("status_preimage_json")).unwrap();
        assert_eq!(status.to_json(), bytes("status_preimage_json"));
        assert_eq!(status.digest().to_string(), str_of("status_digest"));
        let request = CorrectionRequest::parse(bytes("request_json")).unwrap();
        assert_eq!(request.to_json(), bytes("request_json"));
        if !str_of("correction_json").is_empty() {
            let correction = request.correction();
            assert_eq!(correction.to_json(), bytes("correction_json"));
            assert_eq!(Correction::parse(bytes("correction_json")).unwrap(), correction);
            assert_eq!(correction.correction_id, correction.computed_id());
            if !str_of("ack_json").is_empty() {
                let ack = CorrectionAck::parse(bytes("ack_json")).unwrap();
                assert_eq!(ack.to_json(), bytes("ack_json"));
                assert_eq!(ack, correction.ack(correction.next_action(&ack.next_action.summary)));
            }
        }
        perform(case, &status, &request);
    }
}

/// The same verdicts, and the same audit rows.
fn perform(case: &serde_json::Value, status: &WorkerStatus, request: &CorrectionRequest) {
    let world = World::new();
    let may_send = case["label"] != "no send cap";
    let caps = if may_send { caps() } else { [Capability::A2aRecv].into() };
    let lead = world.spec(PrincipalSpec::agent(id(&request.orchestrator_id)).fleet(id("f1")).caps(caps));
    let worker = world.agent(&status.worker_id);
    allowed(&worker.post_status(status).verdict);
    let receipt = lead.correct(request);
    let expected: serde_json::Value = case["receipt"]["audit"].clone();
    let audit: serde_json::Value = serde_json::from_slice(&receipt.audit.to_json()).unwrap();
    assert_eq!(audit, expected, "{}", case["label"]);
    let reason = receipt.verdict.reason().map_or("NONE", Reason::name);
    assert_eq!(reason, case["reason"]);
}

#[test]
fn wrong_envelopes_are_typed_errors() {
    let good = String::from_utf8(status(1).to_json()).unwrap();
    for (from, to, part) in [
        ("\"lane\"", "\"lain\"", "lane"),
        ("worker-status.v1", "worker-status.v2", "schema"),
        ("\"issue\":7", "\"issue\":7.5", "integer"),
        ("\"live\":true", "\"live\":\"yes\"", "live"),
        ("}", ",\"lane\":\"x\"}", "lane"),
    ] {
        let error = WorkerStatus::parse(good.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// §4.9: up to the ceiling and no further; a request may lower it, to the byte.
#[test]
fn the_ceiling_of_a_correction_is_met_exactly() {
    let Pair { lead, worker, .. } = pair();
    for (seq, (length, max_bytes, fits)) in
        [(1_024, None, true), (1_025, None, false), (16, Some(16), true), (17, Some(16), false)]
            .into_iter()
            .enumerate()
    {
        let status = status(i64::try_from(seq).unwrap() + 1);
        allowed(&worker.post_status(&status).verdict);
        let asked = CorrectionRequest { max_bytes, ..request(&status, &"x".repeat(length)) };
        let verdict = lead.correct(&asked).verdict;
        if fits {
            allowed(&verdict);
        } else {
            denied(&verdict, Reason::Oversize, "a2achan/correction-oversize");
        }
    }
}

/// §4.9: what these acts make is shared with the fleet that both sides are of, else with their tenant.
#[test]
fn a_correction_is_shared_as_far_as_both_sides_are() {
    let world = World::new();
    let spec = |name: &str, fleet: &str, tenant: &str| {
        world.spec(PrincipalSpec::agent(id(name)).fleet(id(fleet)).tenant(id(tenant)).caps(caps()))
    };
    let lead = spec("lead", "f1", "t1");
    for (seq, (fleet, tenant, scope)) in [
        ("f1", "t2", Some("fleet")),
        ("f2", "t1", Some("tenant")),
        ("f1", "t1", Some("fleet")),
        ("f2", "t2", None),
    ]
    .into_iter()
    .enumerate()
    {
        let worker = spec("worker", fleet, tenant);
        let status = status(i64::try_from(seq).unwrap() + 1);
        allowed(&worker.post_status(&status).verdict);
        let verdict = lead.correct(&request(&status, "stop")).verdict;
        match scope {
            Some(scope) => {
                allowed(&verdict);
                let got = received(worker.try_receive_correction());
                assert_eq!(got.message.body().scope().name(), scope);
                assert_eq!(got.message.to().to_string(), "in_kernel:\"correction:worker\"");
            }
            None => denied(&verdict, Reason::TrustViolation, "a2achan/correction-apart"),
        }
        world.kernel.detach(&id("worker")).unwrap();
        // Nothing is left of whoever is gone: its last status cannot be cited.
        let verdict = lead.correct(&request(&status, "again")).verdict;
        denied(&verdict, Reason::Unwitnessed, "a2achan/correction-unwitnessed");
    }
}

/// §3.2, §4.9: a receipt that a rung refuses is none: the correction can be received yet.
#[test]
fn a_refused_receipt_does_not_use_a_correction_up() {
    let meter = Arc::new(Meter { limit: 1, ..Meter::default() });
    let world = World::with(fak_a2achan::BusConfig::default(), |b| {
        b.rung(fak_adjudicate::Rank(0), Arc::clone(&meter) as _)
    });
    meter.counts.lock().insert("a2a.receive_correction".to_owned(), 1);
    let (lead, worker) = (world.agent("lead"), world.agent("worker"));
    allowed(&worker.post_status(&status(1)).verdict);
    meter.counts.lock().insert("a2a.correct".to_owned(), 0);
    allowed(&lead.correct(&request(&status(1), "stop")).verdict);
    unfit(worker.try_receive_correction(), Reason::RateLimited, "meter");
    meter.counts.lock().insert("a2a.receive_correction".to_owned(), 0);
    assert_eq!(received(worker.try_receive_correction()).correction.message, "stop");
    assert!(world.bus.stats().is_conserved());
}

/// §4.9: what became of a correction can be observed after others of other tasks.
#[test]
fn corrections_of_several_tasks_are_told_apart() {
    let Pair { lead, worker, .. } = pair();
    let mut ids = Vec::new();
    for (seq, task) in ["t1", "t2", "t3"].into_iter().enumerate() {
        let status = WorkerStatus { task_id: task.to_owned(), ..status(i64::try_from(seq).unwrap() + 1) };
        allowed(&worker.post_status(&status).verdict);
        allowed(&lead.correct(&request(&status, task)).verdict);
        let got = received(worker.try_receive_correction());
        allowed(&worker.ack(&ack_of(&got.correction)).verdict);
        ids.push(got.correction.correction_id);
    }
    for id in ids {
        allowed(&lead.observe(&id).verdict);
    }
}

/// An acknowledgement on its way to whoever watches for it.
fn acknowledged(lead: &Endpoint, worker: &Endpoint) -> Correction {
    allowed(&worker.post_status(&status(1)).verdict);
    allowed(&lead.correct(&request(&status(1), "stop")).verdict);
    let correction = received(worker.try_receive_correction()).correction;
    allowed(&worker.ack(&ack_of(&correction)).verdict);
    correction
}

/// §4.4: an acknowledgement that was held is out of reach, however often it is asked for.
#[test]
fn a_held_acknowledgement_is_never_observed() {
    let world = World::with(fak_a2achan::BusConfig::default(), |b| {
        b.admitter(fak_adjudicate::Rank(0), Arc::new(Hold("next_action")))
    });
    let (lead, worker) = (world.agent("lead"), world.agent("worker"));
    let correction = acknowledged(&lead, &worker);
    let held = lead.observe(&correction.correction_id);
    assert_eq!(held.verdict.kind(), fak_abi::VerdictKind::Quarantine, "{}", held.verdict);
    for _ in 0..2 {
        let again = lead.observe(&correction.correction_id);
        denied(&again.verdict, Reason::Unwitnessed, "a2achan/observe");
        assert!(again.ack.is_none() && !again.acked && !again.reflected);
    }
    // It was acknowledged all the same: not once more.
    denied(&worker.ack(&ack_of(&correction)).verdict, Reason::Unwitnessed, "a2achan/correction-stale");
    let stats = world.bus.stats();
    assert_eq!((stats.held, stats.queued), (1, 0));
    assert!(stats.is_conserved());
}

/// §3.2: what a rung refuses to let be observed is not received.
#[test]
fn a_refused_observation_does_not_use_an_acknowledgement_up() {
    let meter = Arc::new(Meter { limit: 1, ..Meter::default() });
    let world = World::with(fak_a2achan::BusConfig::default(), |b| {
        b.rung(fak_adjudicate::Rank(0), Arc::clone(&meter) as _)
    });
    let (lead, worker) = (world.agent("lead"), world.agent("worker"));
    let correction = acknowledged(&lead, &worker);
    meter.counts.lock().insert("a2a.observe".to_owned(), 1);
    let queued = world.bus.stats().queued;
    denied(&lead.observe(&correction.correction_id).verdict, Reason::RateLimited, "meter");
    assert_eq!(world.bus.stats().queued, queued);
    meter.counts.lock().insert("a2a.observe".to_owned(), 0);
    allowed(&lead.observe(&correction.correction_id).verdict);
    let stats = world.bus.stats();
    assert_eq!((stats.queued, stats.held), (0, 0));
    assert!(stats.is_conserved());
}

/// §2.3, §4.12: what a worker that is gone had acknowledged takes no room of its orchestrator's.
#[test]
fn an_acknowledgement_nobody_can_observe_any_more_is_a_dead_letter() {
    let config = fak_a2achan::BusConfig { capacity: 1, ..fak_a2achan::BusConfig::default() };
    let world = World::with(config, |b| b);
    let lead = world.agent("lead");
    for round in 1..=3 {
        let worker = world.agent("worker");
        let correction = acknowledged(&lead, &worker);
        world.kernel.detach(&id("worker")).unwrap();
        denied(&lead.observe(&correction.correction_id).verdict, Reason::Unwitnessed, "a2achan/observe");
        let stats = world.bus.stats();
        assert_eq!((stats.queued, stats.dead), (0, round));
        assert!(stats.is_conserved());
    }
}

/// Detaches whoever posts a status.
#[derive(Default)]
struct Overtakes(std::sync::OnceLock<std::sync::Weak<fak_adjudicate::Kernel>>);

impl fak_abi::Adjudicator for Overtakes {
    fn name(&self) -> fak_abi::RungName {
        "overtakes"
    }
    fn tools(&self) -> fak_abi::ToolScope {
        fak_abi::ToolScope::only(["a2a.status"])
    }
    fn counts(&self) -> bool {
        true
    }
    fn judge(&self, _: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        fak_abi::Opinion::Defer
    }
    fn commit(&self, call: &fak_abi::ToolCall<'_>, _: &fak_abi::Desk<'_>) -> fak_abi::Opinion {
        self.0.get().and_then(std::sync::Weak::upgrade).unwrap().detach(call.principal().id()).unwrap();
        fak_abi::Opinion::Defer
    }
}

/// §2.3, §4.9: a status that its worker's detach overtook is nobody's, and not the next incarnation's.
#[test]
fn a_status_that_a_detach_overtakes_is_not_live() {
    let overtakes = Arc::new(Overtakes::default());
    let world = World::with(fak_a2achan::BusConfig::default(), |b| {
        b.rung(fak_adjudicate::Rank(0), Arc::clone(&overtakes) as _)
    });
    overtakes.0.set(Arc::downgrade(&world.kernel)).unwrap();
    let (lead, worker) = (world.agent("lead"), world.agent("worker"));
    assert_eq!(worker.post_status(&status(1)).verdict.reason(), Some(Reason::DefaultDeny));
    let _again = world.agent("worker");
    let receipt = lead.correct(&request(&status(1), "stop"));
    assert_eq!(receipt.verdict.reason(), Some(Reason::Unwitnessed), "{}", receipt.verdict);
}
