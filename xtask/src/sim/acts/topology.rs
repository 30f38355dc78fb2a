//! Declaring topologies, and putting one in the place of another (§6.8, §6.9).

use fak_agenttopo::TopoError;

use super::Sim;
use crate::sim::fault::{Fault, Step, same};
use crate::sim::model::topology::{Edge, NAMES, Wrong, waves};
use crate::sim::real::topology::declared;
use crate::sim::rng::Rng;

impl Sim {
    /// Declares edges; if they make a topology, it is the one that holds from here on.
    pub(super) fn topology(&mut self, seed: u8) -> Step {
        let edges = drawn(seed);
        let (product, model) = (declared(&edges)?, waves(&edges));
        let topology = match (product, model) {
            (Ok(topology), Ok(model)) => {
                let names = |wave: Vec<&fak_comm::Member>| {
                    wave.into_iter().map(|member| member.id().as_str().to_owned()).collect::<Vec<_>>()
                };
                let product: Vec<_> = topology.waves().into_iter().map(names).collect();
                same("§6.8: the waves", &format!("{product:?}"), &format!("{model:?}"))?;
                topology
            }
            (Err(error), Err(wrong)) => {
                return same(&format!("§6.8: {error}, of {edges:?}"), &kind(&error), &Some(wrong));
            }
            (product, model) => {
                return Err(Fault::new(format!(
                    "§6.8: the edges {edges:?} are {product:?}, the model says {model:?}"
                )));
            }
        };
        let Some(edged) = &self.real.edges else { return Ok(()) };
        edged.replace(topology);
        self.real.kernel.reloaded();
        self.model.topology = Some(edges);
        // Nobody is woken by that: the host that does it has everybody look anew.
        let mut at = 0;
        while let Some(task) = self.real.tasks.get(at) {
            let left = self.real.tasks.len();
            if task.wait.is_at_mailbox() && task.wait.begun.is_some() {
                self.poll_at(at)?;
            }
            at += usize::from(self.real.tasks.len() == left);
        }
        Ok(())
    }
}

/// Up to seven edges. Mostly all of them go one way, so that they make a topology.
fn drawn(seed: u8) -> Vec<Edge> {
    let mut rng = Rng::new(u64::from(seed));
    let (wild, backward) = (rng.one_in(5), rng.one_in(3));
    let count = rng.below(8) + u64::from(!wild);
    let mut edges: Vec<Edge> = Vec::new();
    let names = NAMES.len() as u64;
    for _ in 0..count {
        let (one, other) = (rng.below(names) as usize, rng.below(names) as usize);
        let edge = if backward { (one.max(other), one.min(other)) } else { (one.min(other), one.max(other)) };
        if wild {
            edges.push((one, other));
        } else if one != other && !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    edges
}

fn kind(error: &TopoError) -> Option<Wrong> {
    match error {
        TopoError::SelfEdge { .. } => Some(Wrong::ToItself),
        TopoError::DuplicateEdge { .. } => Some(Wrong::Twice),
        TopoError::Cycle { .. } => Some(Wrong::Round),
        TopoError::Comm(_) => Some(Wrong::Nothing),
        _ => None,
    }
}
