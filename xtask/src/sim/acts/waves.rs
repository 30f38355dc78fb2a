//! Groups (§6): hand-overs that are completed, withdrawn or overtaken by a detach; gathers; barriers.

use fak_abi::{Id, Timestamp};
use fak_comm::{Collective, Reduction, Witness};

use super::Sim;
use super::compare::{outcome, said, verdict};
use crate::sim::fault::{Fault, Step, ensure, same};
use crate::sim::model::channels::What;
use crate::sim::model::groups::PARENT;
use crate::sim::model::host::Act;
use crate::sim::model::waves::{Forged, Slot};
use crate::sim::model::{Body, Key, Wait, Who};
use crate::sim::real::broken;
use crate::sim::real::task::{Done, Task};

impl Sim {
    /// A group, mostly one of those that there were from the beginning or the newest.
    pub(super) fn group(&self, n: u8) -> (usize, Vec<String>) {
        let count = self.model.groups.len();
        let at = if n < 128 { usize::from(n) % 2 } else { count - 1 - usize::from(n / 2) % count };
        (at, self.model.members(at))
    }

    /// Mostly a member of the group.
    pub(super) fn member(&self, n: u8, members: &[String]) -> Option<Who> {
        let member = members.get(usize::from(n / 4) % members.len().max(1));
        let known = member.and_then(|id| self.model.attached(id));
        if n.is_multiple_of(4) { self.agent(n) } else { known.or_else(|| self.agent(n)) }
    }

    pub(super) fn hand(&mut self, agent: u8, group: u8, body: u8, how: u8) -> Step {
        let (at, members) = self.group(group);
        let Some(who) = self.member(agent, &members) else { return Ok(()) };
        if self.real.pending.len() >= 24 {
            return Ok(());
        }
        let scatter = how.is_multiple_of(4);
        let one = self.shared_body(body);
        let chosen: Vec<(usize, Body)> = (0..members.len())
            .filter_map(|n| if scatter { self.shared_body(body.wrapping_add(n as u8)) } else { one.clone() })
            .collect();
        if chosen.len() < members.len() {
            return Ok(());
        }
        let refs: Vec<_> = chosen.iter().filter_map(|(at, _)| self.real.bodies.get(*at).cloned()).collect();
        let bodies: Vec<Body> = chosen.into_iter().map(|(_, body)| body).collect();
        let act = if scatter { Act::Scatter } else { Act::Broadcast };
        let model = self.model.hand(act, who, at, &bodies);
        let (Some(endpoint), Some(comm)) = (self.real.agents.get(who), self.real.groups.get(at)) else {
            return Ok(());
        };
        let product = match refs.first() {
            _ if scatter => comm.iscatter(endpoint.agent(), &refs).map_err(broken)?,
            Some(body) => comm.ibroadcast(endpoint.agent(), body),
            None => return Ok(()),
        };
        let what = format!("§6.3: {act:?} by {who} to {members:?}");
        match (product, model) {
            (Collective::Allow { value, .. }, Ok(number)) => {
                self.real.pending.push((number, value));
                // Most are completed at once.
                if how % 8 < 5 { self.complete(255) } else { Ok(()) }
            }
            (Collective::Refuse(refusal), Err((rank, reason))) => {
                same(&format!("{what}: the rank"), &refusal.rank, &rank)?;
                verdict(&what, &refusal.verdict, Err(reason))
            }
            (product, model) => Err(Fault::new(format!(
                "{what}: the product says {}, the model {model:?}",
                product.verdict()
            ))),
        }
    }

    pub(super) fn complete(&mut self, pending: u8) -> Step {
        let count = self.real.pending.len();
        if count == 0 {
            return Ok(());
        }
        // The newest, or any.
        let at = if pending == 255 { count - 1 } else { usize::from(pending) % count };
        let (number, mut value) = self.real.pending.remove(at);
        let Some(delivery) = value.try_complete() else {
            return Err(Fault::new("§6.2: a hand-over waits for something"));
        };
        let lost: Vec<usize> = delivery.lost.iter().map(|lost| lost.rank).collect();
        let model = self.model.complete(number);
        same("§6.2: the ranks that a hand-over was lost on", &lost, &model)
    }

    pub(super) fn withdraw(&mut self, pending: u8) -> Step {
        let count = self.real.pending.len();
        if count > 0 {
            let (number, value) = self.real.pending.remove(usize::from(pending) % count);
            drop(value);
            self.model.take_back(number);
        }
        Ok(())
    }

    pub(super) fn recv_group(&mut self, agent: u8, group: u8) -> Step {
        let (at, members) = self.group(group);
        let Some(who) = self.member(agent, &members) else { return Ok(()) };
        let model = self.model.recv_group(who, at, None);
        let name = self.model.groups.get(at).map(|group| group.name.clone()).unwrap_or_default();
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = endpoint.try_recv_group(&Id::new(&name).map_err(broken)?);
        self.delivery(who, product, 0, &model)
            .map_err(|fault| Fault::new(format!("{fault} (group inbox of {name})")))
    }

    /// §6.4: what a gather makes carries the taint of every part, and may be widened only if all of it is one's own.
    pub(super) fn gather(&mut self, agent: u8, group: u8, body: u8, how: u8) -> Step {
        let (at, members) = self.group(group);
        let Some(who) = self.member(agent, &members) else { return Ok(()) };
        let parts: Vec<(usize, Body)> = (0..members.len())
            .filter_map(|n| {
                let n = body.wrapping_add(n as u8);
                if how.is_multiple_of(8) { self.body(n) } else { self.shared_body(n) }
            })
            .collect();
        if parts.len() < members.len() {
            return Ok(());
        }
        let refs: Vec<_> = parts.iter().filter_map(|(at, _)| self.real.bodies.get(*at).cloned()).collect();
        let bodies: Vec<Body> = parts.into_iter().map(|(_, body)| body).collect();
        let model = self.model.gather(who, at, &bodies);
        let (Some(endpoint), Some(comm)) = (self.real.agents.get(who), self.real.groups.get(at)) else {
            return Ok(());
        };
        let first = how.is_multiple_of(2);
        let reduction = if first { Reduction::First } else { Reduction::Concat };
        let pending = comm.igather(endpoint.agent(), &refs, reduction, &[]).map_err(broken)?;
        let gathered = match pending {
            Collective::Allow { mut value, .. } => value.try_complete(),
            Collective::Refuse(refusal) => Some(Collective::Refuse(refusal)),
        };
        let what = format!("§6.4: gather by {who} from {members:?}");
        match (gathered, model) {
            (Some(Collective::Allow { value, .. }), Ok(())) => {
                let made = if first {
                    bodies.first().cloned().unwrap_or_default()
                } else {
                    let texts: Vec<&str> = bodies.iter().map(|body| body.text.as_str()).collect();
                    Body {
                        text: texts.join("\n"),
                        owner: who,
                        derived: bodies.iter().any(|body| body.derived || body.owner != who),
                        ..Body::default()
                    }
                };
                let read = endpoint.agent().read(&value.output).allowed();
                ensure!(
                    read.as_deref() == Some(made.text.as_bytes()),
                    "{what}: it came to {read:?}, the model says {:?}",
                    made.text
                );
                ensure!(
                    value.output.scope() == super::compare::scope(made.scope),
                    "{what}: the scope is {:?}",
                    value.output.scope()
                );
                self.keep_body(made, value.output);
                Ok(())
            }
            (Some(Collective::Refuse(refusal)), Err((rank, reason))) => {
                same(&format!("{what}: the rank"), &refusal.rank, &rank)?;
                ensure!(
                    said(&refusal.verdict) == Err(reason),
                    "{what}: the product says {}, the model {reason:?}",
                    refusal.verdict
                );
                Ok(())
            }
            (product, model) => {
                Err(Fault::new(format!("{what}: the product says {product:?}, the model {model:?}")))
            }
        }
    }

    pub(super) fn open_barrier(&mut self, agent: u8, group: u8) -> Step {
        let (at, members) = self.group(group);
        let Some(who) = self.member(agent, &members) else { return Ok(()) };
        if self.real.barriers.len() >= 64 {
            return Ok(());
        }
        let model = self.model.open_barrier(who, at);
        let (Some(endpoint), Some(comm)) = (self.real.agents.get(who), self.real.groups.get(at)) else {
            return Ok(());
        };
        let product = comm.barrier(endpoint.agent());
        if let Some((barrier, _)) = outcome(&format!("§6.5: barrier by {who}"), product, model)? {
            self.real.barriers.push(barrier);
        }
        Ok(())
    }

    /// One of the newest barriers.
    fn barrier_at(&self, n: u8) -> Option<usize> {
        let count = self.real.barriers.len();
        count.checked_sub(1 + usize::from(n) % count.clamp(1, 2))
    }

    pub(super) fn arrive(&mut self, agent: u8, barrier: u8, how: u8) -> Step {
        let Some(at) = self.barrier_at(barrier) else { return Ok(()) };
        let Some(members) = self.model.barriers.get(at).map(|barrier| barrier.members.clone()) else {
            return Ok(());
        };
        let Some(who) = self.member(agent, &members) else { return Ok(()) };
        let me = self.model.agent(who).map(|agent| agent.id.clone()).unwrap_or_default();
        let own = members.iter().position(|member| *member == me).unwrap_or(0);
        let rank = if how % 16 == 1 { (own + 1) % members.len() } else { own };
        let forged = match how % 32 {
            2 => Forged::Wave,
            3 => Forged::Id,
            4 => Forged::Size,
            _ => Forged::Nothing,
        };
        let model = self.model.arrive(who, at, rank, forged);
        let (Some(endpoint), Some(barrier)) = (self.real.agents.get(who), self.real.barriers.get(at)) else {
            return Ok(());
        };
        let Some(mut witness) = Witness::of(barrier.group(), rank) else { return Ok(()) };
        match forged {
            Forged::Nothing => {}
            Forged::Wave => witness.wave = Id::new("another").map_err(broken)?,
            Forged::Id => witness.id = Id::new("a9").map_err(broken)?,
            Forged::Size => witness.size += 1,
        }
        let product = barrier.arrive(endpoint.agent(), &witness);
        verdict(&format!("§6.5: {who} arrives at {at} for rank {rank}, {forged:?}"), &product, model)?;
        self.barrier_stands(at)
    }

    pub(super) fn depart(&mut self, agent: u8, barrier: u8, member: u8) -> Step {
        let Some(at) = self.barrier_at(barrier) else { return Ok(()) };
        let Some(members) = self.model.barriers.get(at).map(|barrier| barrier.members.clone()) else {
            return Ok(());
        };
        let Some(member) = members.get(usize::from(member) % members.len().max(1)) else { return Ok(()) };
        let id = Id::new(member).map_err(broken)?;
        let Some(barrier) = self.real.barriers.get(at).cloned() else { return Ok(()) };
        if agent >= 240 {
            // The host's own word.
            let model = self.model.gone(at, member);
            same("§6.5: declared gone by the host", &self.real.comm.declare_gone(&barrier, &id), &model)?;
            return self.barrier_stands(at);
        }
        let by = self.model.session(PARENT);
        let by = if agent % 4 == 1 { by } else { self.model.attached(member) };
        let Some(who) = (if agent.is_multiple_of(4) { self.agent(agent) } else { by }) else { return Ok(()) };
        let model = self.model.depart(who, at, member);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = barrier.depart(endpoint.agent(), &id);
        verdict(&format!("§6.5: {who} declares {member} gone from {at}"), &product, model)?;
        self.barrier_stands(at)
    }

    /// §6.5: who is missing and who is gone is the model's.
    pub(crate) fn barrier_stands(&self, at: usize) -> Step {
        let (Some(product), Some(model)) = (self.real.barriers.get(at), self.model.barriers.get(at)) else {
            return Ok(());
        };
        let report = product.report();
        let names = |ids: &[Id]| ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
        same("§6.5: complete", &report.complete, &model.is_complete())?;
        let own = |how| model.who(how);
        same("§6.5: the missing", &names(&report.missing), &own(Slot::Missing))?;
        same("§6.5: the gone", &names(&report.gone), &own(Slot::Gone))
    }

    pub(super) fn wait_barrier(&mut self, agent: u8, barrier: u8, deadline: u8) -> Step {
        let (Some(at), Some(who)) = (self.barrier_at(barrier), self.agent(agent)) else { return Ok(()) };
        let (_, cancel, until) = self.rider(deadline);
        let (Some(endpoint), Some(barrier)) = (self.real.agents.get(who), self.real.barriers.get(at)) else {
            return Ok(());
        };
        if self.real.tasks.len() >= 40 {
            return Ok(());
        }
        let key = Key { locale: "group", id: at.to_string() };
        let wait = Wait { deadline: until, ..Wait::new(who, key, What::Barrier(at)) };
        let waits = barrier.wait(endpoint.agent(), until.map(Timestamp::from_micros));
        self.real.tasks.push(Task::new(async move { Done::Barrier(waits.await) }, cancel, wait));
        Ok(())
    }
}
