//! A kernel with a store and a space, and short ways to write records and patches.

use std::sync::Arc;

use fak_abi::{AgentHandle, CapSet, Id, Outcome, PrincipalKind, PrincipalSpec, Reason};
use fak_adjudicate::{Kernel, KernelBuilder, ManualClock};
use fak_sharedtask::{
    ApprovalRule, Domain, Envelope, Hash, Limits, Patch, Patched, Record, Rules, Space, SpaceConfig,
    StoreConfig, TaskId, TaskStore,
};
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) clock: ManualClock,
    pub(crate) store: TaskStore,
    pub(crate) space: Space,
}

pub(crate) fn id(text: &str) -> Id {
    Id::new(text).unwrap()
}

pub(crate) fn task() -> TaskId {
    TaskId::new("task_t").unwrap()
}

/// A store of fleet `f` and tenant `t`, whose patches may bring tenant scope.
pub(crate) fn config() -> StoreConfig {
    StoreConfig {
        domain: Domain { fleet: Some(id("f")), tenant: Some(id("t")) },
        rules: Rules { max_scope: fak_abi::ShareScope::Tenant, ..Rules::default() },
        ..StoreConfig::default()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(config(), |builder| builder)
    }

    pub(crate) fn with(config: StoreConfig, build: impl FnOnce(KernelBuilder) -> KernelBuilder) -> Self {
        let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        let (store, space) = (TaskStore::new(config), Space::new(SpaceConfig::default()));
        let builder =
            Kernel::builder().time(Arc::new(clock.clone())).driver(store.driver()).driver(space.driver());
        let kernel = build(builder).build().unwrap();
        Self { kernel, clock, store, space }
    }

    /// A world with one record: title `first`, state `working`, a fleet-scoped body, two open decisions.
    pub(crate) fn with_task() -> Self {
        let world = Self::new();
        world.store.create_json(record().to_string().as_bytes()).unwrap();
        world
    }

    /// Attaches `name`: `fleet` and `tenant` say whether it belongs to the store's.
    pub(crate) fn attach(&self, name: &str, kind: PrincipalKind, fleet: bool, tenant: bool) -> AgentHandle {
        let spec = match kind {
            PrincipalKind::Agent => PrincipalSpec::agent(id(name)),
            PrincipalKind::Human => PrincipalSpec::human(id(name)),
        };
        let spec = if fleet { spec.fleet(id("f")) } else { spec };
        let spec = if tenant { spec.tenant(id("t")) } else { spec };
        self.kernel.attach(spec.caps(CapSet::ALL)).unwrap()
    }

    /// An agent of both fleet and tenant.
    pub(crate) fn agent(&self, name: &str) -> AgentHandle {
        self.attach(name, PrincipalKind::Agent, true, true)
    }

    /// A human of both fleet and tenant.
    pub(crate) fn human(&self, name: &str) -> AgentHandle {
        self.attach(name, PrincipalKind::Human, true, true)
    }

    pub(crate) fn rev(&self) -> Hash {
        self.store.revision(&task()).unwrap().1
    }

    /// Patches on the current base; the act must be allowed.
    pub(crate) fn patch(&self, agent: &AgentHandle, scope: &str, ops: Value) -> Patched {
        self.patch_on(agent, &self.rev(), scope, ops)
    }

    pub(crate) fn patch_on(&self, agent: &AgentHandle, base: &Hash, scope: &str, ops: Value) -> Patched {
        let patch = patch(agent, base, scope, ops);
        self.store.patch(agent, &patch, None).allowed().expect("the act is allowed")
    }
}

/// The merge verdict and reason of a result, as `accepted` or `conflict STALE_BASE`.
pub(crate) fn answer(patched: &Patched) -> String {
    let result = &patched.result;
    format!("{} {}", result.verdict, result.reason).trim_end().to_owned()
}

/// Why an act was refused.
pub(crate) fn refused<T>(outcome: &Outcome<T>) -> Option<Reason> {
    match outcome {
        Outcome::Allow { .. } => None,
        Outcome::Refuse(verdict) => verdict.reason(),
    }
}

pub(crate) fn record() -> Value {
    json!({
        "schema": "fak.shared-task.v1", "task_id": "task_t", "rev": "sha256:ignored", "state": "working",
        "title": "first", "body_ref": body("tainted", "fleet"), "artifacts": [], "notes": [],
        "open_decisions": [decision("dec_a"), decision("dec_b")],
        "updated_by": {"kind": "agent", "id": "host"}, "updated_at": "2026-01-01T00:00:00Z"
    })
}

pub(crate) fn parsed(record: &Value) -> Record {
    Record::draft(record.to_string().as_bytes(), &Limits::default()).unwrap()
}

pub(crate) fn body(taint: &str, scope: &str) -> Value {
    json!({"kind": "cas", "digest": "sha256:body001", "bytes": 5, "taint": taint, "scope": scope,
        "durability": "session"})
}

pub(crate) fn decision(name: &str) -> Value {
    json!({"decision_id": name, "state": "open", "reason": "who decides"})
}

/// A patch by `agent`.
pub(crate) fn patch(agent: &AgentHandle, base: &Hash, scope: &str, ops: Value) -> Patch {
    let principal = agent.principal();
    let text = json!({
        "schema": "fak.shared-patch.v1", "task_id": "task_t", "base_rev": base.to_string(),
        "actor": {"kind": principal.kind().name(), "id": principal.id().as_str()},
        "scope": scope, "durability": "session", "ops": ops, "message": "why"
    });
    Patch::parse(text.to_string().as_bytes(), &Limits::default()).unwrap()
}

/// An op that appends a note by `agent`.
pub(crate) fn note(agent: &AgentHandle, name: &str, scope: &str) -> Value {
    note_of(agent, name, body("tainted", scope))
}

pub(crate) fn note_of(agent: &AgentHandle, name: &str, body: Value) -> Value {
    let principal = agent.principal();
    json!({"op": "append", "path": "/notes", "value": {"note_id": name, "kind": "comment", "body_ref": body,
        "author": {"kind": principal.kind().name(), "id": principal.id().as_str()},
        "created_at": "2026-01-01T00:00:00Z"}})
}

pub(crate) fn artifact(name: &str, taint: &str, scope: &str) -> Value {
    json!({"op": "append", "path": "/artifacts", "value": {"artifact_id": name, "ref": "sha256:a1",
        "media_type": "text/plain", "taint": taint, "scope": scope, "store": "local-cas"}})
}

pub(crate) fn replace(path: &str, value: impl Into<Value>) -> Value {
    json!({"op": "replace", "path": path, "value": value.into()})
}

pub(crate) fn append_decision(name: &str) -> Value {
    json!({"op": "append", "path": "/open_decisions", "value": decision(name)})
}

/// A world with one record whose patches need approval by that rule.
pub(crate) fn with_approval(rule: ApprovalRule) -> World {
    let mut config = config();
    config.rules.approval = vec![rule];
    let world = World::with(config, |builder| builder);
    world.store.create_json(record().to_string().as_bytes()).unwrap();
    world
}

/// The decision under which a patch is held.
pub(crate) fn decision_of(patched: &Patched) -> String {
    patched.result.approval.as_ref().unwrap().decision_id.to_string()
}
