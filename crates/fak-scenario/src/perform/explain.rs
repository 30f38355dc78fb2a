//! Explaining an act without doing it (§3.5).

use std::time::Duration;

use fak_abi::{
    Act as Verb, Address, AgentHandle, ChannelKey, Digest, Explanation, Gate as _, Id, Locale, ShareScope,
    ToolCall,
};
use fak_comm::LaneRequest;
use fak_sharedtask::{Record, TaskId};

use super::{
    done::{Done, Stop},
    kernel::claim,
    world::World,
};
use crate::act::{
    Act, Actor, Body, ChannelAct, Claim, Inbox, KernelAct, RecordAct, Step, Subject, Watched, WaveAct,
};

impl World {
    /// Every rung's opinion of an act, as an act of the scenario.
    pub(super) fn explain(&mut self, by: &Actor, of: &Act) -> Done {
        match self.explanation(by, of) {
            Ok(explanation) => Done::explained(&explanation),
            Err(stop) => stop.into(),
        }
    }

    /// Every rung's opinion of a step, if it is an act that rungs have an opinion of.
    pub(super) fn explained(&mut self, step: &Step) -> Option<Explanation> {
        let of = match &step.act {
            Act::Explain { by, of } => (by.clone(), (**of).clone()),
            act => (step.by.clone(), act.clone()),
        };
        match self.explanation(&of.0, &of.1) {
            Ok(explanation) => Some(self.placed(explanation)),
            // The act itself was not reached.
            Err(Stop::Unshared(_, _, explanation)) => Some(self.placed(*explanation)),
            Err(_) => None,
        }
    }

    /// An agent is told the line of a policy's rule and not its file, which is the host's; the author of a scenario is told both,
    /// as a policy inside it has its lines.
    fn placed(&self, mut explanation: Explanation) -> Explanation {
        let site = explanation.verdict.refusal().map(|refusal| refusal.site);
        let rule = site.and_then(|site| self.policy.as_ref()?.rule_at(site));
        if let Some((file, line)) = rule {
            let told = format!("line {line} of the policy");
            explanation.next = explanation.next.replace(&told, &format!("line {line} of {file}"));
        }
        explanation
    }

    fn explanation(&mut self, by: &Actor, of: &Act) -> Result<Explanation, Stop> {
        match of {
            Act::Channel(act) => self.explain_channel(by, act),
            Act::Kernel(act) => self.explain_kernel(by, act),
            Act::Record(act) => self.explain_record(by, act),
            Act::Wave(act) => self.explain_wave(by, act),
            Act::Explain { .. } => Err(nothing()),
        }
    }

    fn explain_channel(&mut self, by: &Actor, act: &ChannelAct) -> Result<Explanation, Stop> {
        let handle = self.handle(by)?;
        let (verb, at, body) = match act {
            ChannelAct::Send { to, body, .. } => (Verb::Send, Some(to), Some(body)),
            ChannelAct::Publish { topic, body } => (Verb::Publish, Some(topic), Some(body)),
            ChannelAct::Request { to, body, .. } => (Verb::Request, Some(to), Some(body)),
            ChannelAct::Recv { from: Inbox::At(at) } => (Verb::Recv, Some(at), None),
            ChannelAct::RecvLeased { from: Inbox::At(at), .. } => (Verb::RecvLeased, Some(at), None),
            ChannelAct::Subscribe { topic, .. } => (Verb::Subscribe, Some(topic), None),
            ChannelAct::Bind { at } => (Verb::Bind, Some(at), None),
            ChannelAct::Unbind { at } => (Verb::Unbind, Some(at), None),
            ChannelAct::Compact { body, .. } => (Verb::Compact, None, Some(body)),
            _ => return Err(nothing()),
        };
        let body = match body {
            Some(body) => Some(self.body(by, body)?),
            None => None,
        };
        let endpoint = self.channels.bus.endpoint(&handle);
        Ok(match at.map(crate::act::Address::key) {
            Some(Ok(key)) if matches!(act, ChannelAct::Request { blocking: true, .. }) => {
                endpoint.explain_blocking(&key, body.as_ref())
            }
            Some(Ok(key)) => endpoint.explain(verb, &key, body.as_ref()),
            Some(Err(_)) => endpoint.explain_malformed(verb),
            // The window's key is made by the act; it is as much the agent's own as the window of its name.
            None => {
                let own = ChannelKey::with_id(Locale::Window, handle.principal().id().clone());
                endpoint.explain(verb, &own, body.as_ref())
            }
        })
    }

    fn explain_kernel(&mut self, by: &Actor, act: &KernelAct) -> Result<Explanation, Stop> {
        let handle = self.handle(by)?;
        match act {
            KernelAct::Widen { what, scope, .. } => {
                let body = self.subject(by, what)?;
                Ok(self.kernel.explain_widen(&handle, &body, *scope))
            }
            KernelAct::Trust { what, evidence, .. } => {
                let body = self.subject(by, what)?;
                Ok(self.kernel.explain_trust(&handle, &body, &claim(&body, *evidence)?))
            }
            KernelAct::PoolPut { body } => {
                let body = self.subject(by, &Subject::Body(body.clone()))?;
                Ok(self.pool.explain_put(&handle, &body))
            }
            KernelAct::PoolGet { text } => Ok(self.pool.explain_get(&handle, Digest::of(text.as_bytes()))),
            KernelAct::Call { tool, args, meta, address } => {
                self.with_call(by, (tool, args.as_ref(), meta.as_ref()), address.as_ref(), |kernel, call| {
                    kernel.explain(call)
                })
            }
            _ => Err(nothing()),
        }
    }

    /// An act on the record or the space: what its store would say after the rungs too.
    fn explain_record(&mut self, by: &Actor, act: &RecordAct) -> Result<Explanation, Stop> {
        let handle = self.handle(by)?;
        match act {
            RecordAct::Create { record } => {
                let store = &self.records.store;
                let record = Record::draft(record.text.as_bytes(), &store.config().rules.limits);
                Ok(store.explain_create(&handle, &record.map_err(|_| nothing())?))
            }
            RecordAct::Patch { patch, base, key } => {
                let patch = self.based(patch, *base);
                let key = key.as_deref().and_then(|key| Id::new(key).ok());
                Ok(self.records.store.explain_patch(&handle, &patch, key.as_ref()))
            }
            RecordAct::Approve { task, decision } => self.explain_decision(&handle, task, decision, true),
            RecordAct::Reject { task, decision } => self.explain_decision(&handle, task, decision, false),
            RecordAct::View { task } => self.explain_read(&handle, Verb::TaskView, task),
            RecordAct::Events { task } => self.explain_read(&handle, Verb::TaskEvents, task),
            RecordAct::Journal { task } => self.explain_read(&handle, Verb::TaskJournal, task),
            RecordAct::Watch { what: Watched::Task(task), .. } => {
                self.explain_read(&handle, Verb::TaskWatch, task)
            }
            RecordAct::Watch { what: Watched::Prefix(prefix), .. } => {
                Ok(self.records.space.explain(&handle, Verb::CellWatch, prefix, ShareScope::Fleet, None))
            }
            RecordAct::Put { key, body } => self.explain_cell(by, Verb::CellPut, key, None, Some(body)),
            RecordAct::Cas { key, body, scope, .. } => {
                self.explain_cell(by, Verb::CellCas, key, scope.or(body.scope), Some(body))
            }
            RecordAct::Get { key, scope } => self.explain_cell(by, Verb::CellGet, key, *scope, None),
            RecordAct::Delete { key, scope, .. } => {
                self.explain_cell(by, Verb::CellDelete, key, *scope, None)
            }
            RecordAct::List { prefix, scope } => self.explain_cell(by, Verb::CellList, prefix, *scope, None),
            RecordAct::Next { .. } | RecordAct::Load { .. } => Err(nothing()),
        }
    }

    fn explain_read(&self, handle: &AgentHandle, verb: Verb, task: &str) -> Result<Explanation, Stop> {
        match TaskId::new(task) {
            Some(task) => Ok(self.records.store.explain_read(handle, verb, &task)),
            None => Ok(self.malformed(handle, verb)),
        }
    }

    fn explain_decision(
        &self,
        handle: &AgentHandle,
        task: &str,
        decision: &str,
        approve: bool,
    ) -> Result<Explanation, Stop> {
        let decision = self.decision(decision)?;
        let verb = if approve { Verb::TaskApprove } else { Verb::TaskReject };
        match TaskId::new(task) {
            Some(task) => Ok(self.records.store.explain_decision(handle, &task, &decision, approve)),
            None => Ok(self.malformed(handle, verb)),
        }
    }

    fn malformed(&self, handle: &AgentHandle, verb: Verb) -> Explanation {
        self.kernel.explain(&ToolCall::new(handle, verb).address(Address::Malformed))
    }

    fn explain_cell(
        &mut self,
        by: &Actor,
        verb: Verb,
        key: &str,
        scope: Option<ShareScope>,
        body: Option<&Body>,
    ) -> Result<Explanation, Stop> {
        let handle = self.handle(by)?;
        let body = body.map(|body| self.body(by, body)).transpose()?;
        let scope = scope.unwrap_or(ShareScope::Fleet);
        Ok(self.records.space.explain(&handle, verb, key, scope, body.as_ref()))
    }

    /// A collective is explained at the lowest rank that would refuse it.
    fn explain_wave(&mut self, by: &Actor, act: &WaveAct) -> Result<Explanation, Stop> {
        match act {
            WaveAct::Arrive { barrier, member, by, evidence } => {
                let handle = self.handle(by)?;
                let (barrier, witness) = self.witness(barrier, member, evidence.as_deref())?;
                return Ok(barrier.explain(&handle, &witness));
            }
            WaveAct::Depart { barrier, member, by } => {
                let handle = self.handle(by)?;
                let barrier = self.opened(barrier)?;
                let rank = barrier.group().rank(member).and_then(|rank| u32::try_from(rank).ok());
                let address = Address::Group(barrier.group().name(), rank.unwrap_or(u32::MAX));
                return Ok(self.kernel.explain(&ToolCall::new(&handle, Verb::Depart).address(address)));
            }
            WaveAct::Renew { name } => return self.explain_lease(by, name, Verb::Renew),
            WaveAct::Release { name } => return self.explain_lease(by, name, Verb::Release),
            WaveAct::Check { name, .. } => return self.explain_lease(by, name, Verb::Check),
            _ => {}
        }
        let handle = self.handle(by)?;
        let (verb, group, bodies) = match act {
            WaveAct::Lease { claim: Claim::Lane(lane), ttl_ms, .. } => {
                let ttl = Duration::from_millis(*ttl_ms);
                return Ok(self.waves.arbiter.explain(&handle, LaneRequest::Lane(lane), ttl));
            }
            WaveAct::Lease { claim: Claim::Tree(tree), ttl_ms, .. } => {
                let globs: Vec<&str> = tree.iter().map(String::as_str).collect();
                let ttl = Duration::from_millis(*ttl_ms);
                return Ok(self.waves.arbiter.explain(&handle, LaneRequest::Tree(&globs), ttl));
            }
            WaveAct::Barrier { group, .. } => {
                return Ok(self.communicator(group)?.explain(&handle, Verb::Barrier, 0, None));
            }
            WaveAct::Split { group, lease: None, .. } => {
                return Ok(self.communicator(group)?.explain(&handle, Verb::Split, 0, None));
            }
            WaveAct::Broadcast { group, body } => (Verb::Broadcast, group, std::slice::from_ref(body)),
            WaveAct::Scatter { group, bodies } => (Verb::Scatter, group, bodies.as_slice()),
            WaveAct::Gather { group, outputs, .. } => (Verb::Gather, group, outputs.as_slice()),
            _ => return Err(nothing()),
        };
        let made = bodies.iter().map(|body| self.body(by, body)).collect::<Result<Vec<_>, _>>()?;
        let group = self.communicator(group)?;
        let mut first = None;
        for rank in 0..group.group().size() {
            let body = made.get(rank).or_else(|| made.first());
            let explanation = group.explain(&handle, verb, rank, body);
            if !explanation.verdict.is_allow() {
                return Ok(explanation);
            }
            first.get_or_insert(explanation);
        }
        first.ok_or_else(nothing)
    }
}

impl World {
    /// What the rungs say of going on with a lease. What its arbiter says after them shows when it is done.
    fn explain_lease(&mut self, by: &Actor, name: &str, verb: Verb) -> Result<Explanation, Stop> {
        let (held, handle) = self.held(by, name)?;
        let address = held.lease.lane().map_or(Address::None, Address::Lane);
        Ok(self.kernel.explain(&ToolCall::new(&handle, verb).address(address)))
    }
}

/// The host's acts, and those that only use what another act has opened.
fn nothing() -> Stop {
    Stop::missing("no rung has an opinion of such an act")
}
