//! Explaining an act without doing it (§3.5).

use fak_abi::{Act as Verb, Explanation, Gate as _, Ref, ToolCall};

use super::{done::Done, world::World};
use crate::act::{Act, Actor, ChannelAct, Inbox, KernelAct, Step, Subject};

impl World {
    /// Every rung's opinion of an act, as an act of the scenario.
    pub(super) fn explain(&mut self, by: &Actor, of: &Act) -> Done {
        match self.explanation(by, of) {
            Ok(explanation) => Done::explained(&explanation),
            Err(done) => done,
        }
    }

    /// Every rung's opinion of a step as text, if it is an act that rungs have an opinion of.
    pub(super) fn explained(&mut self, step: &Step) -> Option<String> {
        let of = match &step.act {
            Act::Explain { by, of, .. } => (by.clone(), (**of).clone()),
            act => (step.by.clone(), act.clone()),
        };
        self.explanation(&of.0, &of.1).ok().map(|explanation| explanation.to_string())
    }

    fn explanation(&mut self, by: &Actor, of: &Act) -> Result<Explanation, Done> {
        match of {
            Act::Channel(act) => self.explain_channel(by, act),
            Act::Kernel(act) => self.explain_kernel(by, act),
            _ => Err(Done::failed("an act that rungs have an opinion of")),
        }
    }

    fn explain_channel(&mut self, by: &Actor, act: &ChannelAct) -> Result<Explanation, Done> {
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
            _ => return Err(Done::failed("an act with an address")),
        };
        let body = match body {
            Some(body) => Some(self.body(by, body)?),
            None => None,
        };
        let endpoint = self.channels.bus.endpoint(&handle);
        Ok(match at.map(crate::act::Address::key) {
            Some(Ok(key)) => endpoint.explain(verb, &key, body.as_ref()),
            Some(Err(_)) => endpoint.explain_malformed(verb),
            None => {
                let call = ToolCall::new(&handle, verb);
                self.kernel.explain(&body.as_ref().map_or(call, |body| call.args(body)))
            }
        })
    }

    fn explain_kernel(&mut self, by: &Actor, act: &KernelAct) -> Result<Explanation, Done> {
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
            _ => Err(Done::failed("an act that rungs have an opinion of")),
        }
    }
}
