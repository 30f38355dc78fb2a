//! The pool (§3.9), and values that are written anew by somebody who may read them (§9).

use fak_abi::{Digest, Taint};

use super::Sim;
use super::compare::{outcome, said, scope, verdict};
use crate::sim::fault::{Step, ensure, same};
use crate::sim::model::{Body, Who};
use crate::sim::real::broken;

impl Sim {
    /// Whoever may read bytes can write them anew as its own, and keep them: equal contents of two owners.
    pub(super) fn copy(&mut self, agent: u8, body: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let kept = self.in_pool(body).filter(|text| self.model.find_pooled(who, text).is_ok());
        let text = match kept {
            Some(text) => text,
            None => match self.shared_body(body) {
                Some((_, body)) if self.model.flows(&body, who) => body.text,
                _ => return Ok(()),
            },
        };
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let made = endpoint.agent().mint(text.clone());
        self.keep_body(Body { text, owner: who, ..Body::default() }, made);
        self.put_as(who, self.real.bodies.len() - 1)
    }

    /// The text of something that is kept, if anything is and the number says so.
    fn in_pool(&self, n: u8) -> Option<String> {
        let count = self.model.pool.len();
        let at = usize::from(n / 4) % count.max(1);
        self.model.pool.get(at).filter(|_| !n.is_multiple_of(4)).map(|blob| blob.text.clone())
    }

    pub(super) fn pool_put(&mut self, agent: u8, body: u8) -> Step {
        let (Some(mut who), Some((at, body))) = (self.agent(agent), self.body(body)) else { return Ok(()) };
        if agent % 4 < 2 && self.model.is_live(body.owner) {
            who = body.owner;
        }
        self.put_as(who, at)
    }

    fn put_as(&mut self, who: Who, at: usize) -> Step {
        self.write_audit()?;
        let Some(body) = self.model.bodies.get(at).cloned() else { return Ok(()) };
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let explained = self.real.pool.explain_put(endpoint.agent(), real);
        let model = self.model.pool_put(who, &body);
        let product = self.real.pool.put(endpoint.agent(), real);
        if self.model.audit_says().is_ok() {
            let model = model.as_ref().map(drop).map_err(|reason| *reason);
            verdict("§3.5: explaining a put", &explained.verdict, model)?;
        }
        if let Some((value, kept)) = outcome(&format!("§3.9: put by {who}"), product, model)? {
            self.pooled(&value, &kept)?;
        }
        self.pool_stands()
    }

    /// A line that is not written yet may hold on to a small value.
    fn write_audit(&mut self) -> Step {
        if self.model.audit_says().is_err() {
            return Ok(());
        }
        self.real.audit.drain().map(drop).map_err(broken)
    }

    /// §3.9: bounded in bytes; what is kept, and what of it is pinned, is the model's.
    fn pool_stands(&mut self) -> Step {
        self.write_audit()?;
        let pool = &self.real.pool;
        let product = (pool.bytes(), pool.len(), pool.pinned());
        ensure!(product.0 <= self.model.setup.pool, "§3.9: the pool takes {} bytes", product.0);
        same("§3.9: bytes, values and pins", &product, &self.model.pool_books())
    }

    /// A Ref is dropped: what it pinned may make room.
    pub(super) fn unpin(&mut self, pin: u8) -> Step {
        let count = self.real.pins.len();
        if count > 0 {
            let (serial, value) = self.real.pins.remove(usize::from(pin) % count);
            drop(value);
            let blob = self.model.pool.iter_mut().find(|blob| blob.serial == serial);
            blob.into_iter().for_each(|blob| blob.pins -= 1);
        }
        self.pool_stands()
    }

    pub(super) fn pool_get(&mut self, agent: u8, body: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let text = self.in_pool(body).or_else(|| self.body(body).map(|(_, body)| body.text));
        let Some(text) = text else { return Ok(()) };
        self.write_audit()?;
        let model = self.model.pool_get(who, &text);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.pool.get(endpoint.agent(), Digest::of(text.as_bytes()));
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
        let blob = self.model.pool.iter_mut().find(|blob| blob.text == kept.text);
        let serial = blob.map(|blob| {
            blob.pins += 1;
            blob.serial
        });
        match serial {
            // Whatever comes of it: it is pinned for good.
            None => {}
            Some(_) if body.is_multiple_of(16) => self.keep_body(kept, value),
            Some(serial) => {
                self.real.pins.push((serial, value));
                if self.real.pins.len() > 6 {
                    self.unpin(0)?;
                }
            }
        }
        self.pool_stands()
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
