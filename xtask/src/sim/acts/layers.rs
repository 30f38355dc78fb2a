//! Cells and lanes (§5.11, §6.7).

use std::time::Duration;

use fak_abi::Outcome;
use fak_comm::{LaneRequest, Lease, Leased};
use fak_sharedtask::CellWrite;

use super::Sim;
use super::compare::{outcome, said, scope, verdict};
use crate::sim::fault::{Step, ensure, same};
use crate::sim::model::Scope;
use crate::sim::model::host::Act;
use crate::sim::model::layers::{LANES, PATHS};

const SCOPES: [Scope; 3] = [Scope::Fleet, Scope::Tenant, Scope::Agent];

pub(super) fn scope_of(n: u8) -> Scope {
    SCOPES.get(usize::from(n % 3)).copied().unwrap_or(Scope::Fleet)
}

impl Sim {
    pub(super) fn cell_write(&mut self, agent: u8, cell: u8, body: u8, expected: u8) -> Step {
        let chosen = if body.is_multiple_of(4) { self.body(body) } else { self.shared_body(body) };
        let (Some(mut who), Some((at, body))) = (self.agent(agent), chosen) else { return Ok(()) };
        if agent % 4 < 2 && self.model.is_live(body.owner) {
            who = body.owner;
        }
        let cell = cell % 3;
        let known = self.model.version_of(who, cell, body.scope);
        // The version it has, mostly; sometimes one that it had, or none.
        let expected = match expected % 8 {
            0 => Some(self.model.versions.saturating_sub(u64::from(expected / 8))),
            1 => None,
            _ => known,
        };
        let act = if expected.is_some() { Act::CellCas } else { Act::CellPut };
        let model = self.model.write_cell(act, who, cell, &body, expected);
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let (name, agent, space) = (format!("cell-{cell}"), endpoint.agent(), &self.real.space);
        let product = match expected {
            None => space.put(agent, &name, real),
            Some(version) => space.cas(agent, &name, scope(body.scope), version, real),
        };
        self.cell_written(product, model)
    }

    fn cell_written(
        &mut self,
        product: Outcome<CellWrite>,
        model: Result<Result<u64, Option<u64>>, fak_abi::Reason>,
    ) -> Step {
        if let Some((product, model)) = outcome("§5.11: a write", product, model)? {
            let product = match product {
                CellWrite::Done { version } => Ok(version),
                CellWrite::Conflict { current } => Err(current),
            };
            same("§5.11: what a write came to", &product, &model)?;
        }
        Ok(())
    }

    pub(super) fn cell_delete(&mut self, agent: u8, cell: u8, at: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let (cell, at) = (cell % 3, scope_of(at));
        let expected = self.model.version_of(who, cell, at).unwrap_or(1);
        let model = self.model.delete_cell(who, cell, at, expected);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.space.delete(endpoint.agent(), &format!("cell-{cell}"), scope(at), expected);
        self.cell_written(product, model)
    }

    pub(super) fn cell_get(&mut self, agent: u8, cell: u8, at: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let (cell, at) = (cell % 3, scope_of(at));
        let model = self.model.read_cell(who, cell, at);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.space.get(endpoint.agent(), &format!("cell-{cell}"), scope(at));
        let answer = product.verdict();
        ensure!(
            said(&answer) == model.as_ref().map(|_| ()).map_err(|reason| *reason),
            "§5.11: get by {who} answers {answer}, the model {model:?}"
        );
        let (Some(product), Ok(model)) = (product.allowed(), model) else { return Ok(()) };
        ensure!(product.is_some() == model.is_some(), "§5.11: get finds {product:?}, the model {model:?}");
        if let (Some(product), Some(model)) = (product, model) {
            same("§5.11: the version", &product.version, &model.version)?;
            let text = endpoint.agent().read(&product.body).allowed();
            ensure!(
                text.as_deref() == Some(model.body.text.as_bytes()),
                "§5.11: a cell holds {text:?}, the model says {:?}",
                model.body.text
            );
        }
        Ok(())
    }

    pub(super) fn lane_lease(&mut self, agent: u8, lane: u8, time: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        let lane = usize::from(lane) % (LANES.len() + 1);
        let ttl = u64::from(time) * 50_000 + 1;
        let model = self.model.lease_lane(who, lane, ttl);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let name = LANES.get(lane).map_or("nowhere", |(name, ..)| name);
        let request = LaneRequest::Lane(name);
        let product = self.real.arbiter.lease(endpoint.agent(), request, Duration::from_micros(ttl));
        verdict(&format!("§6.7: lease of {name} by {who}"), &product.verdict(), model.map(|_| ()))?;
        if let (Leased::Allow { value, .. }, Ok(fence)) = (product, model) {
            same("§6.7: the fence", &value.fence(), &fence)?;
            self.real.tokens.push(value);
        }
        Ok(())
    }

    pub(super) fn lane_token(&mut self, agent: u8, token: u8, what: u8) -> Step {
        let count = self.real.tokens.len();
        // The newest most often.
        let Some(at) = count.checked_sub(1 + usize::from(token) % count.clamp(1, 6)) else { return Ok(()) };
        let Some(token) = self.real.tokens.get(at).cloned() else { return Ok(()) };
        let fence = token.fence();
        let holder = self.model.lane_mut(fence).map(|lease| lease.holder);
        let Some(who) = (if agent.is_multiple_of(8) { self.agent(agent) } else { holder }) else {
            return Ok(());
        };
        let ttl = u64::from(what) * 10_000 + 1;
        let path = PATHS.get(usize::from(what / 4) % PATHS.len()).copied().unwrap_or_default();
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let (agent, arbiter) = (endpoint.agent(), &self.real.arbiter);
        match what % 4 {
            0 => {
                let model = self.model.stands(Act::Renew, who, fence, None);
                let product: Leased<Lease> = arbiter.renew(agent, &token, Duration::from_micros(ttl));
                let until = self.model.now + ttl;
                if let (Ok(()), Some(lease)) = (model, self.model.lane_mut(fence)) {
                    lease.until = until;
                }
                verdict("§6.7: renew", &product.verdict(), model)
            }
            1 => {
                let model = self.model.stands(Act::Release, who, fence, None);
                let product = arbiter.release(agent, &token);
                if let (Ok(()), Some(lease)) = (model, self.model.lane_mut(fence)) {
                    lease.over = true;
                }
                verdict("§6.7: release", &product.verdict(), model)
            }
            _ => {
                let model = self.model.stands(Act::Check, who, fence, Some(path));
                let product = arbiter.check(agent, &token, path);
                verdict(&format!("§6.7: check of {path} under fence {fence}"), &product.verdict(), model)
            }
        }
    }
}
