//! Window hand-offs (§4.8): by their own, by others, once, and again.

use fak_abi::{ChannelKey, Locale, Outcome};

use super::Sim;
use super::compare::verdict;
use crate::sim::fault::{Fault, Step, ensure};
use crate::sim::model::{Body, Model};
use crate::sim::real::broken;

impl Sim {
    pub(super) fn compact(&mut self, agent: u8, body: u8, tasks: u8) -> Step {
        let (Some(mut who), Some((at, summary))) = (self.agent(agent), self.body(body)) else {
            return Ok(());
        };
        if !agent.is_multiple_of(8) && self.model.is_live(summary.owner) {
            who = summary.owner;
        }
        let tasks: Vec<(usize, Body)> =
            (0..tasks % 3).filter_map(|n| self.shared_body(tasks.wrapping_add(n))).collect();
        let (Some(endpoint), Some(real)) = (self.real.agents.get(who), self.real.bodies.get(at)) else {
            return Ok(());
        };
        let refs: Vec<_> = tasks.iter().filter_map(|(at, _)| self.real.bodies.get(*at).cloned()).collect();
        let product = endpoint.compact(real, &refs);
        // Its name is nobody's to foresee.
        let name = match &product {
            Outcome::Allow { value, .. } => value.as_str().to_owned(),
            Outcome::Refuse(_) => "refused".to_owned(),
        };
        let tasks: Vec<Body> = tasks.into_iter().map(|(_, body)| body).collect();
        let model = self.model.compact(who, &summary, &tasks, &name);
        verdict(&format!("§4.8: {who} compacts"), &product.verdict(), model)?;
        if let Outcome::Allow { value, .. } = product {
            self.real.windows.push(value);
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, agent: u8, window: u8) -> Step {
        let count = self.real.windows.len();
        let Some(at) = count.checked_sub(1 + usize::from(window) % count.clamp(1, 4)) else { return Ok(()) };
        let (Some(id), Some(known)) =
            (self.real.windows.get(at).cloned(), self.model.windows.get(at).cloned())
        else {
            return Ok(());
        };
        let Some(who) = (if agent.is_multiple_of(4) { self.agent(agent) } else { Some(known.minter) }) else {
            return Ok(());
        };
        let Some(endpoint) = self.real.agents.get(who).cloned() else { return Ok(()) };
        if agent % 16 == 4 && who != known.minter && self.model.is_live(known.minter) && !known.over {
            // Not by the plain way either: its name is its minter's.
            let key = ChannelKey::new(Locale::Window, id.as_str()).map_err(broken)?;
            let got = endpoint.try_recv(&key);
            ensure!(got.refusal().is_some(), "§4.8: {who} receives at another's window: {got:?}");
            return Ok(());
        }
        let model = self.model.resume(who, at);
        let product = endpoint.resume(&id);
        self.delivery(who, product, 0, &model).map_err(|fault| {
            Fault::new(format!("{fault} (§4.8: resume of {})", Model::window_key("it").text()))
        })
    }
}
