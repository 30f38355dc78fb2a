//! Attaching, detaching, and what the host does to the bus (§2.3, §4.6, §4.11).

use fak_abi::{ChannelKey, Id, OwnedAddress};

use super::Sim;
use crate::sim::fault::{Step, ensure};
use crate::sim::model::channels::{Own, What};
use crate::sim::model::{Agent, Cap, Key, Wait, Who};
use crate::sim::op::Op;
use crate::sim::real::{World, broken};

impl Sim {
    pub(super) fn attach(&mut self, name: u8, shape: u8) -> Step {
        let name = name % 6;
        let id = if name == 5 { "h0".to_owned() } else { format!("a{name}") };
        let trace = if shape % 16 == 15 { "shared".to_owned() } else { format!("trace-{id}") };
        let pick = |of: [Option<u8>; 4], at: u8| of.get(usize::from(at % 4)).copied().flatten();
        let mut caps = Cap::ALL.to_vec();
        if shape % 8 == 6 {
            let missing = usize::from(shape / 8) % caps.len();
            caps.remove(missing);
        }
        let agent = Agent {
            fleet: if shape % 8 == 5 { None } else { pick([Some(0), Some(0), Some(1), Some(0)], shape) },
            tenant: pick([None, Some(0), Some(0), Some(1)], shape / 4),
            human: name == 5,
            caps,
            live: true,
            made: 0,
            id,
            trace,
        };
        let is_taken = self.model.attached(&agent.id).is_some() || self.model.session(&agent.trace).is_some();
        let attached = self.real.kernel.attach(World::spec(&agent)?);
        ensure!(attached.is_err() == is_taken, "§2.3: attaching {agent:?} gave {:?}", attached.err());
        let Ok(handle) = attached else { return Ok(()) };
        self.real.agents.push(self.real.bus.endpoint(&handle));
        let who: Who = self.model.agents.len();
        self.model.agents.push(agent);
        let ended = self.model.attached_keys(who);
        for task in &mut self.real.tasks {
            let waits = task.wait.is_at_mailbox() && task.wait.begun.is_some();
            task.wait.displaced |= waits && ended.contains(&task.wait.key);
        }
        Ok(())
    }

    pub(super) fn detach(&mut self, name: u8) -> Step {
        let name = name % 6;
        let id = if name == 5 { "h0".to_owned() } else { format!("a{name}") };
        let who = self.model.attached(&id);
        let detached = self.real.kernel.detach(&Id::new(&id).map_err(broken)?);
        ensure!(detached.is_ok() == who.is_some(), "§2.3: detaching {id} gave {detached:?}");
        let Some(who) = who else { return Ok(()) };
        let unused = self.model.detached(who);
        let depths = if unused.is_empty() { Vec::new() } else { self.real.bus.depths() };
        for key in unused {
            let waits = |woken: bool| {
                // Who waits for room waits there as well.
                let there = |wait: &Wait| wait.is_at_mailbox() || matches!(wait.what, What::Room(_));
                let tasks = self.real.tasks.iter().filter(|task| there(&task.wait) && task.wait.key == key);
                let others =
                    tasks.filter(|task| task.wait.begun.is_some() && self.model.is_live(task.wait.who));
                others.filter(|task| task.is_woken() == woken).count() > 0
            };
            let real = key.text().parse().map_err(broken)?;
            let is_kept =
                depths.iter().any(|depth| depth.at == OwnedAddress::Channel(ChannelKey::clone(&real)));
            // Whether one who was woken still waits is nobody's to say.
            if !(waits(false) || waits(true) && is_kept) {
                self.model.forget_box(&key);
            }
        }
        Ok(())
    }

    /// What one that is gone tries takes a mailbox along that is of no use, or not.
    pub(super) fn tidied(&mut self, who: Who, key: &Key) {
        if !self.model.is_live(who) && self.model.is_unused(key) {
            let depths = self.real.bus.depths();
            let named = |at: &OwnedAddress| at.to_string().replace('"', "") == key.text();
            if !depths.iter().any(|depth| named(&depth.at)) {
                self.model.forget_box(key);
            }
        }
    }

    pub(super) fn open(&mut self, key: u8) -> Step {
        let (key, real) = Self::key(key)?;
        if matches!(self.model.owner_of(&key), Own::OneActOnly(_)) {
            ensure!(!self.real.bus.open(&real), "§4.9: {key:?} is for one act alone and was opened");
            return Ok(());
        }
        let is_new = !self.model.boxes.contains_key(&key);
        let opened = self.real.bus.open(&real);
        ensure!(opened == is_new, "opening {key:?} says new: {opened}");
        if is_new {
            self.model.make_box(&key, None);
        }
        self.model.known.insert(key.clone());
        if let Some(mailbox) = self.model.boxes.get_mut(&key) {
            mailbox.kept = true;
        }
        Ok(())
    }

    /// §4.11: every waiter wakes and is told.
    pub(super) fn close(&mut self) -> Step {
        self.real.bus.close();
        self.model.close();
        let receives = |wait: &Wait| wait.is_receive() || matches!(wait.what, What::Room(_));
        let tasks = self.real.tasks.iter().filter(|task| receives(&task.wait));
        let begun = tasks.filter(|task| task.wait.begun.is_some());
        let asleep = begun.filter(|task| !task.is_woken()).count();
        ensure!(asleep == 0, "§4.11: {asleep} waits sleep on after the bus was closed");
        self.settle(0)
    }

    /// A bus that was closed refuses everything, whatever else there would be to say.
    pub(super) fn after_close(&mut self, op: Op) -> Step {
        let (refused, what) = match op {
            Op::Send { agent, key, body, .. } => {
                let (Some(who), Some((at, _))) = (self.agent(agent), self.body(body)) else { return Ok(()) };
                let (Some(endpoint), Some(body)) = (self.real.agents.get(who), self.real.bodies.get(at))
                else {
                    return Ok(());
                };
                (!endpoint.send(&Self::key(key)?.1, body).is_allow(), "send")
            }
            Op::TryRecv { agent, key } => {
                let Some(endpoint) = self.agent(agent).and_then(|who| self.real.agents.get(who)) else {
                    return Ok(());
                };
                (endpoint.try_recv(&Self::key(key)?.1).refusal().is_some(), "receive")
            }
            Op::Bind { agent, key } => {
                let Some(endpoint) = self.agent(agent).and_then(|who| self.real.agents.get(who)) else {
                    return Ok(());
                };
                (!endpoint.bind(&Self::key(key)?.1).is_allow(), "bind")
            }
            Op::Subscribe { agent, key } => {
                let Some(endpoint) = self.agent(agent).and_then(|who| self.real.agents.get(who)) else {
                    return Ok(());
                };
                (!endpoint.subscribe(&Self::key(key)?.1).is_allow(), "subscribe")
            }
            _ => return Ok(()),
        };
        ensure!(refused, "§4.11: a {what} was allowed on a bus that was closed");
        Ok(())
    }
}
