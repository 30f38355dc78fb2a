//! The acts on channels.

use fak_abi::Explanation;

use super::{done::Done, world::World};
use crate::act::{Act, Actor, ChannelAct, Step};

impl World {
    pub(super) fn channel(&mut self, _by: &Actor, _act: &ChannelAct) -> Done {
        Done::failed("not yet")
    }
    pub(super) fn explanation(&mut self, _by: &Actor, _of: &Act) -> Result<Explanation, Done> {
        Err(Done::failed("not yet"))
    }
    pub(super) fn explained(&mut self, _step: &Step) -> Option<String> {
        None
    }
}
