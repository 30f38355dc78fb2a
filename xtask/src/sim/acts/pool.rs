//! The pool (§3.9), and values that are written anew by somebody who may read them (§9).

use fak_abi::{Digest, Taint};

use super::Sim;
use super::compare::{outcome, said, scope};
use crate::sim::fault::{Step, ensure};
use crate::sim::model::Body;

impl Sim {
    /// Whoever may read bytes can write them anew as its own: equal contents of two owners.
    pub(super) fn copy(&mut self, agent: u8, body: u8) -> Step {
        let (Some(who), Some((_, body))) = (self.agent(agent), self.shared_body(body)) else { return Ok(()) };
        if !self.model.flows(&body, who) {
            return Ok(());
        }
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let made = endpoint.agent().mint(body.text.clone());
        self.keep_body(Body { text: body.text, owner: who, ..Body::default() }, made);
        Ok(())
    }

    pub(super) fn pool_put(&mut self, agent: u8, body: u8) -> Step {
        let (Some(mut who), Some((at, body))) = (self.agent(agent), self.body(body)) else { return Ok(()) };
        if agent % 4 < 2 && self.model.is_live(body.owner) {
            who = body.owner;
        }
        let model = self.model.pool_put(who, &body);
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let product = self.real.pool.put(endpoint.agent(), real);
        if let Some((value, kept)) = outcome(&format!("§3.9: put by {who}"), product, model)? {
            self.pooled(&value, &kept)?;
        }
        Ok(())
    }

    pub(super) fn pool_get(&mut self, agent: u8, body: u8) -> Step {
        let (Some(who), Some((_, body))) = (self.agent(agent), self.body(body)) else { return Ok(()) };
        let model = self.model.pool_get(who, &body.text);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.pool.get(endpoint.agent(), Digest::of(body.text.as_bytes()));
        let answer = product.verdict();
        ensure!(
            said(&answer) == model.as_ref().map(|_| ()).map_err(|reason| *reason),
            "§3.9: get by {who} is answered {answer}, the model says {model:?}"
        );
        let (Some(value), Ok(kept)) = (product.allowed(), model) else { return Ok(()) };
        self.pooled(&value, &kept)?;
        let read = endpoint.agent().read(&value).allowed();
        ensure!(
            read.as_deref() == Some(kept.text.as_bytes()),
            "§3.9: the pool hands out {read:?}, the model says {:?}",
            kept.text
        );
        self.keep_body(kept, value);
        Ok(())
    }

    /// Owner, scope and taint are the entry's.
    fn pooled(&self, value: &fak_abi::Ref, kept: &Body) -> Step {
        let owner = self.model.agent(kept.owner).map(|agent| agent.id.as_str()).unwrap_or_default();
        let quarantined = value.taint() == Taint::Quarantined;
        ensure!(
            value.owner().id().as_str() == owner
                && value.scope() == scope(kept.scope)
                && quarantined == kept.quarantined,
            "§3.9: the pool answers {value:?}, the model {kept:?}"
        );
        Ok(())
    }
}
