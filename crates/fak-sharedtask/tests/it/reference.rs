//! A naive store: whole records in a list, every rule written down once more in the plainest way (§5.3, §5.5). It shares
//! the envelopes with the product and nothing of its merge, its incremental digests or its redaction.

use fak_abi::{ShareScope, Taint, Timestamp};
use fak_sharedtask::{ArtifactRef, BodyRef, Decision, Hash, Limits, Note, OpKind, Patch, Record};
use serde_json::Value;

/// Who patches: rights are the store's fleet and tenant.
#[derive(Clone, Copy)]
pub(crate) struct Rights {
    pub(crate) fleet: bool,
    pub(crate) tenant: bool,
}

impl Rights {
    fn holds(self, scope: ShareScope) -> bool {
        match scope {
            ShareScope::Fleet => self.fleet,
            ShareScope::Tenant => self.tenant,
            ShareScope::Agent | ShareScope::Public => true,
        }
    }
}

pub(crate) struct Naive {
    pub(crate) history: Vec<Record>,
    body_authors: Vec<(String, String)>,
    max_scope: ShareScope,
}

/// `accepted`, `conflict STALE_BASE`, …, or `refused` where the act itself is.
pub(crate) type Answer = String;

impl Naive {
    pub(crate) fn new(record: Record, max_scope: ShareScope) -> Self {
        let author = (record.updated_by.kind.to_string(), record.updated_by.id.to_string());
        Self { history: vec![record], body_authors: vec![author], max_scope }
    }

    pub(crate) fn current(&self) -> &Record {
        self.history.last().unwrap()
    }

    pub(crate) fn apply(&mut self, patch: &Patch, rights: Rights, now: Timestamp) -> Answer {
        match self.merged(patch, rights) {
            Err(answer) => answer.to_owned(),
            Ok(mut next) => {
                let last: Timestamp = self.current().updated_at.parse().unwrap();
                next.updated_at = now.max(Timestamp::from_micros(last.as_micros() + 1)).to_string().into();
                next.updated_by = patch.actor.clone();
                next.rev = next.computed_rev();
                let author = if next.body_ref == self.current().body_ref && !sets_body(patch) {
                    self.body_authors.last().unwrap().clone()
                } else {
                    (patch.actor.kind.to_string(), patch.actor.id.to_string())
                };
                self.body_authors.push(author);
                self.history.push(next);
                "accepted".to_owned()
            }
        }
    }

    fn merged(&self, patch: &Patch, rights: Rights) -> Result<Record, &'static str> {
        const UNSUPPORTED: &str = "denied UNSUPPORTED_PATCH";
        const SCOPE: &str = "denied SCOPE_WIDEN_FORBIDDEN";
        if patch.ops.items.is_empty() || patch.base_rev.is_none() {
            return Err(UNSUPPORTED);
        }
        if patch.scope > self.max_scope || !rights.holds(patch.scope) {
            return Err(SCOPE);
        }
        let steps: Vec<Step> =
            patch.ops.items.iter().map(|op| step(op.kind, &op.path, op.value.as_ref())).collect();
        for step in &steps {
            let brought = match step {
                Step::Note(note) => Some(note.body_ref.scope),
                Step::Body(body) => Some(body.scope),
                Step::Artifact(artifact) => Some(artifact.scope),
                Step::Title(_) | Step::State(_) | Step::Decision(_) | Step::Settle(..) => {
                    if patch.scope == ShareScope::Agent {
                        return Err(SCOPE);
                    }
                    None
                }
                Step::Unknown => None,
            };
            if brought.is_some_and(|scope| scope > patch.scope || !rights.holds(scope)) {
                return Err(SCOPE);
            }
        }
        for step in &steps {
            match step {
                Step::Artifact(artifact) if artifact.taint == Taint::Quarantined => {
                    return Err("quarantined ARTIFACT_QUARANTINED");
                }
                Step::Artifact(artifact) if artifact.taint == Taint::Trusted || !artifact.is_certified() => {
                    return Err("quarantined ARTIFACT_WITNESS_MISSING");
                }
                Step::Note(Note { body_ref: body, .. }) | Step::Body(body) => {
                    if body.taint == Taint::Quarantined {
                        return Err("quarantined BODY_QUARANTINED");
                    }
                    if body.taint == Taint::Trusted || !body.is_certified() {
                        return Err("quarantined BODY_WITNESS_MISSING");
                    }
                }
                _ => {}
            }
        }
        let base = self.history.iter().position(|record| Some(&record.rev) == patch.base_rev.as_ref());
        let current = base == Some(self.history.len() - 1);
        let mut next = self.current().clone();
        for step in steps {
            const STALE: &str = "conflict STALE_BASE";
            match step {
                Step::Unknown => return Err(UNSUPPORTED),
                Step::Note(note) => {
                    if (&note.author.kind, &note.author.id) != (&patch.actor.kind, &patch.actor.id) {
                        return Err(UNSUPPORTED);
                    }
                    base.ok_or(STALE)?;
                    if next.notes.items.iter().any(|there| there.note_id == note.note_id) {
                        return Err("conflict DUPLICATE_NOTE");
                    }
                    next.notes.items.push(note);
                }
                Step::Artifact(artifact) => {
                    base.ok_or(STALE)?;
                    if next.artifacts.items.iter().any(|there| there.artifact_id == artifact.artifact_id) {
                        return Err("conflict DUPLICATE_ARTIFACT");
                    }
                    next.artifacts.items.push(artifact);
                }
                Step::Decision(decision) => {
                    base.ok_or(STALE)?;
                    if next.open_decisions.items.iter().any(|there| there.decision_id == decision.decision_id)
                    {
                        return Err("conflict DUPLICATE_DECISION");
                    }
                    next.open_decisions.items.push(decision);
                }
                Step::Title(title) if current => next.title = title.into(),
                Step::State(state) if current => next.state = state.into(),
                Step::Body(body) => {
                    let author = self.body_authors.last().unwrap();
                    let visible = match self.current().body_ref.scope {
                        ShareScope::Agent => {
                            (author.0.as_str(), author.1.as_str()) == (&*patch.actor.kind, &*patch.actor.id)
                        }
                        scope => rights.holds(scope),
                    };
                    if !visible {
                        return Err("refused");
                    }
                    if !current {
                        return Err(STALE);
                    }
                    next.body_ref = body;
                }
                Step::Settle(name, state) => {
                    let Some(decision) =
                        next.open_decisions.items.iter_mut().find(|d| *d.decision_id == *name)
                    else {
                        return Err(if base.is_some() { "conflict MISSING_DECISION" } else { STALE });
                    };
                    if !current {
                        return Err(STALE);
                    }
                    decision.state = state.into();
                }
                Step::Title(_) | Step::State(_) => return Err(STALE),
            }
        }
        Ok(next)
    }
}

fn sets_body(patch: &Patch) -> bool {
    patch.ops.items.iter().any(|op| &*op.path == "/body_ref")
}

enum Step {
    Note(Note),
    Artifact(ArtifactRef),
    Decision(Decision),
    Title(String),
    State(String),
    Body(BodyRef),
    Settle(String, String),
    Unknown,
}

/// Reads an entry by putting it into a record of its own.
fn in_record(member: &str, value: &Value) -> Option<Record> {
    let mut record = crate::support::record();
    record[member] = value.clone();
    Record::draft(record.to_string().as_bytes(), &Limits::default()).ok()
}

fn step(kind: OpKind, path: &str, value: Option<&fak_abi::json::Value>) -> Step {
    let Some(value) = value else { return Step::Unknown };
    let mut text = Vec::new();
    fak_abi::json::write_value(&mut text, value);
    let value: Value = serde_json::from_slice(&text).unwrap();
    let list = Value::from(vec![value.clone()]);
    let word = value.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
    let step = match (kind, path) {
        (OpKind::Append, "/notes") => {
            in_record("notes", &list).map(|mut r| Step::Note(r.notes.items.remove(0)))
        }
        (OpKind::Append, "/artifacts") => {
            in_record("artifacts", &list).map(|mut r| Step::Artifact(r.artifacts.items.remove(0)))
        }
        (OpKind::Append, "/open_decisions") => {
            in_record("open_decisions", &list).map(|mut r| Step::Decision(r.open_decisions.items.remove(0)))
        }
        (OpKind::Replace, "/title") => word.map(Step::Title),
        (OpKind::Replace, "/state") => word.map(Step::State),
        (OpKind::Replace, "/body_ref") => in_record("body_ref", &value).map(|r| Step::Body(r.body_ref)),
        (OpKind::Replace, path) => path
            .strip_prefix("/open_decisions/")
            .and_then(|path| path.strip_suffix("/state"))
            .and_then(|name| word.map(|word| Step::Settle(name.to_owned(), word))),
        _ => None,
    };
    step.unwrap_or(Step::Unknown)
}

/// The revision a base of that number means to the naive store; one it never had, if out of range.
pub(crate) fn base(naive: &Naive, number: usize) -> Hash {
    let never = || Hash::parse(&format!("sha256:{}", "ab".repeat(32))).unwrap();
    naive.history.get(number).map_or_else(never, |record| record.rev.clone())
}
