//! Patches merged into a record: whatever they say, the record is patched as a whole or not at all, its revision is the
//! digest of its bytes, and its journal verifies and loads (§5.3–§5.5, §5.10). Several patches are told apart by a byte that
//! is in no text, 0xFF; a lower-case letter before the first brace says what a writer does with each.

#![no_main]

use std::sync::Arc;

use fak_abi::{AgentHandle, CapSet, Id, Outcome, PrincipalSpec};
use fak_adjudicate::{Kernel, ManualClock};
use fak_fuzz::{MARKER, keeps_quiet};
use fak_sharedtask::{
    Actor, ApprovalRule, Domain, Envelope, Limits, Patch, Rules, StoreConfig, TaskId, TaskStore,
    VerifyOptions, verify_journal,
};
use libfuzzer_sys::fuzz_target;

const RECORD: &str = r#"{"schema":"fak.shared-task.v1","task_id":"task_t","rev":"sha256:x","state":"working",
"title":"Qz7-planted-body","body_ref":{"kind":"cas","digest":"sha256:b","bytes":1,"taint":"tainted","scope":"fleet",
"durability":"session"},"artifacts":[],"notes":[],"open_decisions":[{"decision_id":"dec_a","state":"open","reason":""}],
"updated_by":{"kind":"agent","id":"host"},"updated_at":"2026-01-01T00:00:00Z"}"#;

struct World {
    _kernel: Arc<Kernel>,
    store: TaskStore,
    agent: AgentHandle,
    human: AgentHandle,
    task: TaskId,
}

fn id(text: &str) -> Id {
    Id::new(text).expect("an id")
}

fn domain() -> Domain {
    Domain { fleet: Some(id("f")), tenant: None }
}

impl World {
    fn new(approval: Vec<ApprovalRule>) -> Self {
        let rules = Rules { approval, ..Rules::default() };
        let store = TaskStore::new(StoreConfig { domain: domain(), rules, ..StoreConfig::default() });
        let clock = ManualClock::at("2026-01-02T00:00:00Z".parse().expect("a time"));
        let kernel =
            Kernel::builder().time(Arc::new(clock)).driver(store.driver()).build().expect("a kernel");
        let agent = PrincipalSpec::agent(id("agent")).fleet(id("f")).caps(CapSet::ALL);
        let human = PrincipalSpec::human(id("human")).fleet(id("f")).caps(CapSet::ALL);
        let (agent, human) =
            (kernel.attach(agent).expect("attached"), kernel.attach(human).expect("attached"));
        store.create_json(RECORD.as_bytes()).expect("a record");
        Self { _kernel: kernel, store, agent, human, task: TaskId::new("task_t").expect("an id") }
    }
}

fuzz_target!(|data: &[u8]| {
    let held = data.first() == Some(&b'h');
    let world = World::new(if held { vec![ApprovalRule::Always] } else { Vec::new() });
    for part in data.split(|byte| *byte == 0xFF).take(6) {
        step(&world, part);
    }
    ends_well(&world);
});

fn step(world: &World, part: &[u8]) {
    let at = part.iter().position(|byte| *byte == b'{').unwrap_or(part.len());
    let (flags, text) = part.split_at(at);
    let Ok(mut patch) = Patch::parse(text, &Limits::default()) else {
        if let Err(error) = world.store.patch_json(&world.agent, text, None) {
            keeps_quiet(&error);
        }
        return;
    };
    let by = if flags.contains(&b'm') { &world.human } else { &world.agent };
    if !flags.contains(&b'b') {
        let (number, current) = world.store.revision(&world.task).expect("a revision");
        let base =
            if flags.contains(&b's') { world.store.revision_at(&world.task, number / 2) } else { None };
        patch.base_rev = Some(base.unwrap_or(current));
    }
    if !flags.contains(&b'a') {
        patch.actor = Actor::of(by.principal());
        patch.task_id = world.task.clone();
    }
    let before = (world.store.record(&world.task), world.store.revision(&world.task));
    let _ = world.store.explain_patch(by, &patch, None);
    let done = world.store.patch(by, &patch, None);
    let after = (world.store.record(&world.task), world.store.revision(&world.task));
    let number = |of: &(_, Option<(usize, _)>)| of.1.as_ref().map_or(0, |(number, _)| *number);
    match &done {
        Outcome::Allow { value, .. } if value.result.is_accepted() => {
            assert_eq!(number(&after), number(&before) + 1)
        }
        _ => assert_eq!(after, before),
    }
    if let Outcome::Refuse(verdict) = &done {
        keeps_quiet(verdict);
    }
    if let Outcome::Allow { value, .. } = &done
        && let Some(approval) = &value.result.approval
    {
        let decided = if flags.contains(&b'r') {
            world.store.reject(&world.human, &world.task, &approval.decision_id)
        } else {
            world.store.approve(&world.human, &world.task, &approval.decision_id)
        };
        let again = world.store.approve(&world.human, &world.task, &approval.decision_id);
        assert!(decided.verdict().is_allow() || !again.verdict().is_allow(), "{decided:?} then {again:?}");
        assert!(
            again.allowed().is_none_or(|again| !again.result.is_accepted()),
            "held bytes were merged twice"
        );
    }
}

fn ends_well(world: &World) {
    let (number, rev) = world.store.revision(&world.task).expect("a revision");
    let record = world.store.record(&world.task).expect("a record");
    assert_eq!(world.store.recomputed_rev(&world.task).as_ref(), Some(&rev));
    assert_eq!(record.computed_rev(), rev);
    assert!(world.store.events(&world.agent, &world.task).allowed().expect("events").verifies());
    let view = world.store.view(&world.agent, &world.task).allowed().expect("a view");
    assert!(view.notes().len() + view.redacted_notes == record.notes.items.len());
    let mut journal = Vec::new();
    let digest = world.store.journal(&world.task, &mut journal).expect("a journal");
    let summary = verify_journal(&journal[..], &VerifyOptions::default()).expect("it verifies");
    assert_eq!((summary.entries, &summary.rev, summary.digest.full()), (number, &rev, Some(digest)));
    let copy = TaskStore::new(StoreConfig { domain: domain(), ..StoreConfig::default() });
    let loaded = copy.load(&journal[..]).expect("it loads");
    assert_eq!(copy.revision(&loaded).as_ref().map(|(n, rev)| (*n, rev)), Some((number, &rev)));
    let mut again = Vec::new();
    copy.journal(&loaded, &mut again).expect("a journal");
    assert_eq!(journal, again);
    let _ = MARKER;
}
