//! Making, labelling and reading values (§2.1, §2.4).

use fak_abi::{Outcome, Reason, Taint};

use super::Sim;
use super::compare::{outcome, scope};
use crate::sim::SECRETIVE;
use crate::sim::fault::{Step, ensure};
use crate::sim::model::host::Act;
use crate::sim::model::{Body, Scope, Who};

impl Sim {
    pub(super) fn mint(&mut self, agent: u8, padding: u8) -> Step {
        let Some(who) = self.agent(agent) else { return Ok(()) };
        self.mint_by(who, padding)
    }

    pub(super) fn mint_by(&mut self, who: Who, padding: u8) -> Step {
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let text = self.model.fresh_text(who, padding);
        let made = endpoint.agent().mint(text.clone());
        ensure!(made.scope() == scope(Scope::Agent), "§1.1: a new value is not private: {made:?}");
        ensure!(made.taint() == Taint::Tainted, "§1.1: a new value is not tainted: {made:?}");
        let body = Body { text, owner: who, scope: Scope::Agent, ..Body::default() };
        self.keep_body(body, made);
        Ok(())
    }

    pub(super) fn widen(&mut self, agent: u8, body: u8, to: u8) -> Step {
        let private = self.body_that(body, |body| body.scope == Scope::Agent && !body.derived);
        let (Some(who), Some((at, body))) = (self.agent(agent), private) else { return Ok(()) };
        // Mostly its owner, or nothing would ever be shared.
        let who = if agent < 200 && self.model.is_live(body.owner) { body.owner } else { who };
        let to = match to % 8 {
            0..5 => Scope::Fleet,
            5..7 => Scope::Tenant,
            _ => Scope::Agent,
        };
        self.widen_by(who, at, to)
    }

    pub(super) fn widen_by(&mut self, who: Who, at: usize, to: Scope) -> Step {
        let Some(body) = self.model.bodies.get(at).cloned() else { return Ok(()) };
        let is_secret = self.model.agent(who).is_some_and(|agent| agent.id == SECRETIVE);
        if self.model.setup.secret.is_some() && is_secret {
            return Ok(());
        }
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let model = self.model.admit(Act::Widen, who, None, Some(&body)).and_then(|changed| {
            let body = changed.unwrap_or(body);
            let there = match to {
                Scope::Agent => None,
                Scope::Fleet => self.model.fleet(who),
                Scope::Tenant => self.model.tenant(who),
            };
            let fits = body.owner == who && !body.quarantined && !body.derived && body.scope == Scope::Agent;
            if fits && there.is_some() { Ok(Body { scope: to, ..body }) } else { Err(Reason::TrustViolation) }
        });
        let product: Outcome<_> = endpoint.agent().widen(real, scope(to));
        if let Some((value, body)) = outcome("§2.4: widen", product, model)? {
            ensure!(value.scope() == scope(to), "§2.4: widened to {:?}", value.scope());
            self.keep_body(body, value);
        }
        Ok(())
    }

    pub(super) fn raise(&mut self, agent: u8, body: u8) -> Step {
        let (Some(who), Some((at, body))) = (self.agent(agent), self.body(body)) else { return Ok(()) };
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let value = endpoint.agent().raise(real, Taint::Quarantined);
        ensure!(value.taint() == Taint::Quarantined, "§2.4: raised to {:?}", value.taint());
        self.keep_body(Body { quarantined: true, ..body }, value);
        Ok(())
    }

    pub(super) fn derive(&mut self, agent: u8, first: u8, second: u8) -> Step {
        let (Some(who), Some(first), Some(second)) = (self.agent(agent), self.body(first), self.body(second))
        else {
            return Ok(());
        };
        let (Some(endpoint), Some(one), Some(two)) =
            (self.real.agents.get(who), self.real.bodies.get(first.0), self.real.bodies.get(second.0))
        else {
            return Ok(());
        };
        let text = self.model.fresh_text(who, first.1.text.len().to_le_bytes()[0]);
        let value = endpoint.agent().derive(text.clone(), [one, two]);
        let parts = [&first.1, &second.1];
        let body = Body {
            text,
            owner: who,
            scope: Scope::Agent,
            quarantined: parts.iter().any(|part| part.quarantined),
            derived: parts.iter().any(|part| part.derived || part.owner != who),
            pooled: false,
        };
        ensure!(
            (value.taint() == Taint::Quarantined) == body.quarantined,
            "§6.4: the taint of a derived value is {:?}",
            value.taint()
        );
        self.keep_body(body, value);
        Ok(())
    }

    pub(super) fn read(&mut self, agent: u8, body: u8) -> Step {
        let (Some(who), Some((at, body))) = (self.agent(agent), self.body(body)) else { return Ok(()) };
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let model = if !self.model.is_live(who) {
            Err(Reason::DefaultDeny)
        } else if !self.model.flows(&body, who) {
            Err(Reason::TrustViolation)
        } else {
            Ok(body.text)
        };
        if let Some((bytes, text)) = outcome("§2.4: read", endpoint.agent().read(real), model)? {
            ensure!(bytes.as_ref() == text.as_bytes(), "§2.1: other bytes were read");
        }
        self.real.leak.look("a Ref", &format!("{real:?}"));
        Ok(())
    }
}
