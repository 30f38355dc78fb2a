//! Senders that wait for room (§4.3).

use fak_abi::{ChannelKey, Timestamp};

use super::Sim;
use crate::sim::fault::Step;
use crate::sim::model::channels::What;
use crate::sim::model::{Key, Wait, Who};
use crate::sim::real::task::{Done, Task};

impl Sim {
    pub(super) fn send_wait(&mut self, agent: u8, key: u8, body: u8, deadline: u8) -> Step {
        let (Some(mut who), Some((at, body))) = (self.agent(agent), self.shared_body(body)) else {
            return Ok(());
        };
        if !agent.is_multiple_of(8) && self.model.is_live(body.owner) {
            who = body.owner;
        }
        if self.real.tasks.len() >= 40 {
            return Ok(());
        }
        if self.model.setup.urged && !deadline.is_multiple_of(4) {
            return self.crowd(agent, key);
        }
        let (key, real_key) = Self::key(key % 128)?;
        self.wait_for_room(who, key, real_key, at, deadline)
    }

    /// Has somebody wait for room for a body.
    pub(super) fn wait_for_room(
        &mut self,
        who: Who,
        key: Key,
        real_key: ChannelKey,
        at: usize,
        deadline: u8,
    ) -> Step {
        let (_, cancel, until) = self.rider(deadline);
        let (Some(endpoint), Some(real)) =
            (self.real.agents.get(who).cloned(), self.real.bodies.get(at).cloned())
        else {
            return Ok(());
        };
        let wait = Wait { deadline: until, ..Wait::new(who, key, What::Room(at)) };
        let until = until.map(Timestamp::from_micros);
        let future = async move { Done::Sent(endpoint.send_wait(&real_key, &real, until).await) };
        self.real.tasks.push(Task::new(future, cancel, wait));
        Ok(())
    }
}
