//! Explaining an act without doing it (§3.5).

use std::time::Duration;

use fak_abi::{Act as Verb, Address, Explanation, Gate as _, Id, Ref, ToolCall};
use fak_comm::LaneRequest;

use super::{
    done::{Done, Stop},
    world::World,
};
use crate::act::{Act, Actor, ChannelAct, Claim, Inbox, KernelAct, RecordAct, Step, Subject, WaveAct};

impl World {
    /// Every rung's opinion of an act, as an act of the scenario.
    pub(super) fn explain(&mut self, by: &Actor, of: &Act) -> Done {
        match self.explanation(by, of) {
            Ok(explanation) => Done::explained(&explanation),
            Err(stop) => stop.into(),
        }
    }

    /// Every rung's opinion of a step as text, if it is an act that rungs have an opinion of.
    pub(super) fn explained(&mut self, step: &Step) -> Option<String> {
        let of = match &step.act {
            Act::Explain { by, of } => (by.clone(), (**of).clone()),
            act => (step.by.clone(), act.clone()),
        };
        self.explanation(&of.0, &of.1).ok().map(|explanation| explanation.to_string())
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
            None => {
                let call = ToolCall::new(&handle, verb);
                self.kernel.explain(&body.as_ref().map_or(call, |body| call.args(body)))
            }
        })
    }

    fn explain_kernel(&mut self, by: &Actor, act: &KernelAct) -> Result<Explanation, Stop> {
        let handle = self.handle(by)?;
        let explain = |world: &Self, verb: Verb, body: &Ref| {
            world.kernel.explain(&ToolCall::new(&handle, verb).args(body))
        };
        match act {
            KernelAct::Widen { what, .. } => {
                let body = self.subject(by, what)?;
                Ok(explain(self, Verb::Widen, &body))
            }
            KernelAct::Trust { what, .. } => {
                let body = self.subject(by, what)?;
                Ok(explain(self, Verb::Trust, &body))
            }
            KernelAct::PoolPut { body } => {
                let body = self.subject(by, &Subject::Body(body.clone()))?;
                Ok(explain(self, Verb::PoolPut, &body))
            }
            KernelAct::Call { tool, args, meta, address } => {
                self.with_call(by, (tool, args.as_ref(), meta.as_ref()), address.as_ref(), |kernel, call| {
                    kernel.explain(call)
                })
            }
            _ => Err(nothing()),
        }
    }

    /// An act on the record or the space, by what it addresses and the body it brings.
    fn explain_record(&mut self, by: &Actor, act: &RecordAct) -> Result<Explanation, Stop> {
        let handle = self.handle(by)?;
        let (verb, task, key, body) = match act {
            RecordAct::Patch { patch, .. } => (Verb::TaskPatch, Some(patch.task_id.as_str()), None, None),
            RecordAct::Approve { task, .. } => (Verb::TaskApprove, Some(task.as_str()), None, None),
            RecordAct::Reject { task, .. } => (Verb::TaskReject, Some(task.as_str()), None, None),
            RecordAct::View { task } => (Verb::TaskView, Some(task.as_str()), None, None),
            RecordAct::Events { task } => (Verb::TaskEvents, Some(task.as_str()), None, None),
            RecordAct::Journal { task } => (Verb::TaskJournal, Some(task.as_str()), None, None),
            RecordAct::Put { key, body } => (Verb::CellPut, None, Some(key.as_str()), Some(body)),
            RecordAct::Cas { key, body, .. } => (Verb::CellCas, None, Some(key.as_str()), Some(body)),
            RecordAct::Get { key, .. } => (Verb::CellGet, None, Some(key.as_str()), None),
            RecordAct::Delete { key, .. } => (Verb::CellDelete, None, Some(key.as_str()), None),
            _ => return Err(nothing()),
        };
        let body = match body {
            Some(body) => Some(self.body(by, body)?),
            None => None,
        };
        let id = task.or(key).map(Id::new);
        let address = match &id {
            None => Address::None,
            Some(Ok(id)) if task.is_some() => Address::Task(id),
            Some(Ok(id)) => Address::Cell(id),
            Some(Err(_)) => Address::Malformed,
        };
        let call = ToolCall::new(&handle, verb).address(address);
        Ok(self.kernel.explain(&body.as_ref().map_or(call, |body| call.args(body))))
    }

    /// A collective is explained at the lowest rank that would refuse it.
    fn explain_wave(&mut self, by: &Actor, act: &WaveAct) -> Result<Explanation, Stop> {
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

/// The host's acts, and those that only use what another act has opened.
fn nothing() -> Stop {
    Stop::missing("no rung has an opinion of such an act")
}
