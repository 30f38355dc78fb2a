//! The acts on the kernel: widening, trusting, reading, calls, attachment, time and counters.

use std::{collections::BTreeMap, time::Duration};

use fak_abi::{
    Address, AgentHandle, Claim, Digest, Gate, Id, MetaValue, Outcome, Ref, Rider, ShareScope, Tool, ToolCall,
};
use fak_adjudicate::Kernel;
use serde_json::Value;

use super::{
    done::{Done, Stop},
    world::{Kept, World},
};
use crate::{
    act::{Actor, Body, CallArgs, Evidence, KernelAct, RawJson, Subject},
    render::counted,
};

impl World {
    pub(super) fn kernel(&mut self, by: &Actor, act: &KernelAct) -> Done {
        match act {
            KernelAct::Widen { what, scope } => self.widen(by, what, *scope).unwrap_or_else(Done::from),
            KernelAct::Trust { what, evidence } => self.trust(by, what, *evidence).unwrap_or_else(Done::from),
            KernelAct::Read { name } => self.read(by, name).unwrap_or_else(Done::from),
            KernelAct::Call { tool, args, meta, address } => self
                .call(by, (tool, args.as_ref(), meta.as_ref()), address.as_ref())
                .unwrap_or_else(Done::from),
            KernelAct::Detach { agent } => hosted(self.detach(agent)),
            KernelAct::Attach { agent } => hosted(self.attach(agent)),
            KernelAct::Who => self.who(by).unwrap_or_else(Done::from),
            KernelAct::Tick { ms } => {
                self.clock.advance(Duration::from_millis(*ms));
                Done { note: Some(format!("{ms} ms later")), ..Done::host() }
            }
            KernelAct::Audit => self.audit(),
            KernelAct::Held => self.held_messages(by).unwrap_or_else(Done::from),
            KernelAct::Stats => self.stats(),
            KernelAct::PoolPut { body } => self.pool_put(by, body).unwrap_or_else(Done::from),
            KernelAct::PoolGet { text } => self.pool_get(by, text).unwrap_or_else(Done::from),
        }
    }

    fn widen(&mut self, by: &Actor, what: &Subject, scope: ShareScope) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let body = self.subject(by, what)?;
        Ok(Done::outcome(self.kernel.widen(&handle, &body, scope)))
    }

    fn trust(&mut self, by: &Actor, what: &Subject, evidence: Evidence) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let body = self.subject(by, what)?;
        let claim = claim(&body, evidence)?;
        Ok(Done::outcome(self.kernel.trust(&handle, &body, claim)))
    }

    fn pool_put(&mut self, by: &Actor, body: &Body) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let body = self.body(by, body)?;
        Ok(pooled(&handle, self.pool.put(&handle, &body)))
    }

    /// By the digest of the text: whoever asks must know what it asks for.
    fn pool_get(&mut self, by: &Actor, text: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        Ok(pooled(&handle, self.pool.get(&handle, Digest::of(text.as_bytes()))))
    }

    fn read(&mut self, by: &Actor, name: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let body = self.value(name).map_err(Stop::missing)?;
        let read = handle.read(&body);
        let mut done = Done::decided(&read.verdict());
        if let Outcome::Allow { value, .. } = read {
            done.text(&value);
        }
        Ok(done)
    }

    fn call(
        &mut self,
        by: &Actor,
        what: (&str, Option<&CallArgs>, Option<&RawJson>),
        address: Option<&crate::act::Address>,
    ) -> Result<Done, Stop> {
        let ticket = self.with_call(by, what, address, Gate::submit)?;
        let done = Done::decided(ticket.verdict()).at(what.0);
        if ticket.verdict().is_allow() {
            self.tickets.push(ticket);
        }
        Ok(done)
    }

    /// Makes a call of any tool and hands it to `use_it`.
    pub(super) fn with_call<T>(
        &mut self,
        by: &Actor,
        (tool, args, meta): (&str, Option<&CallArgs>, Option<&RawJson>),
        address: Option<&crate::act::Address>,
        use_it: impl FnOnce(&Kernel, &ToolCall<'_>) -> T,
    ) -> Result<T, Stop> {
        let handle = self.handle(by)?;
        let args = match args {
            Some(CallArgs::Body(body)) => Some(self.body(by, body)?),
            Some(CallArgs::Json(json)) => Some(handle.mint(json.text.clone())),
            None => None,
        };
        let rider = rider(meta);
        let key = address.map(crate::act::Address::key);
        let token = match Id::new(tool) {
            Ok(id) => self.kernel.tool(&id),
            Err(error) => return Err(Stop::missing(format!("a tool's name: {error}"))),
        };
        let mut call = ToolCall::new(&handle, Tool::Outside(&token)).rider(Some(&rider));
        if let Some(args) = &args {
            call = call.args(args);
        }
        match &key {
            Some(Ok(key)) => call = call.address(Address::Channel(key)),
            Some(Err(_)) => call = call.address(Address::Malformed),
            None => {}
        }
        Ok(use_it(&self.kernel, &call))
    }

    fn who(&mut self, by: &Actor) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        if handle.tag() != self.kernel.tag() || !handle.principal().is_attached() {
            // It is no act that rungs judge, but nobody is told anything who is not here.
            return self.call(by, ("who", None, None), None);
        }
        let agents: Vec<String> =
            self.kernel.who(&handle).into_iter().map(|peer| peer.id.as_str().to_owned()).collect();
        let mut done = Done::host();
        done.note = Some(agents.join(", "));
        done.answers.set("agents", agents);
        Ok(done)
    }

    fn audit(&mut self) -> Done {
        match self.tally() {
            Ok(tally) => {
                let mut done = Done::host();
                done.note =
                    Some(format!("{}, {} denied", counted(tally.entries, "entry", "entries"), tally.denied));
                done.answers.set("verifies", tally.verifies);
                done.answers.set("entries", tally.entries);
                done.answers.set("denied", tally.denied);
                done
            }
            Err(error) => Done::failed(error.to_string()),
        }
    }
}

/// A value out of the pool, as its reader sees it.
fn pooled(handle: &AgentHandle, outcome: Outcome<Ref>) -> Done {
    let mut done = Done::outcome(outcome);
    if let Some(Kept::Ref(body)) = &done.yields {
        let (taint, read) = (body.taint(), handle.read(body).allowed());
        done.answers.set("taint", taint.name());
        if let Some(bytes) = read {
            done.text(&bytes);
        }
    }
    done
}

/// What the host did, or why it could not.
fn hosted(result: Result<(), String>) -> Done {
    let mut done = match &result {
        Ok(()) => Done::host(),
        Err(_) => Done::default(),
    };
    done.answers.set("ok", result.is_ok());
    if let Err(error) = result {
        done.note = Some(error.clone());
        done.answers.set("error", error);
    }
    done
}

fn word(text: &str) -> Result<Id, Stop> {
    Id::new(text).map_err(|error| Stop::missing(error.to_string()))
}

/// Metadata as the kernel takes it; members of other types are ignored, as every rung ignores what it does not know (§2.5).
fn rider(meta: Option<&RawJson>) -> Rider {
    let mut rider = Rider::default();
    let parsed = meta.and_then(|meta| serde_json::from_str::<BTreeMap<String, Value>>(&meta.text).ok());
    for (name, value) in parsed.unwrap_or_default() {
        let Ok(name) = Id::new(&name) else { continue };
        let value = match &value {
            Value::Number(number) => number.as_f64().map(MetaValue::Number),
            Value::Bool(flag) => Some(MetaValue::Flag(*flag)),
            Value::String(text) => Id::new(text).ok().map(MetaValue::Text),
            _ => None,
        };
        if let Some(value) = value {
            rider.meta.insert(name, value);
        }
    }
    rider
}

/// What is claimed of a value that is to be trusted, with what the step says the host's witness knows of it.
pub(super) fn claim(body: &Ref, evidence: Evidence) -> Result<Claim, Stop> {
    let evidence = match evidence {
        Evidence::Confirmed => Some(word("confirmed")?),
        Evidence::Refuted => Some(word("refuted")?),
        Evidence::None => None,
    };
    Ok(Claim { statement: word("trusted")?, subject: Some(body.digest()), evidence })
}
