//! The groups that there are, and what a split makes of one (§6.1, §6.6).

use fak_abi::Reason;

use super::channels::Key;
use super::host::Act;
use super::layers::{LANES, LaneLease};
use super::{Model, Who};

/// The trace of whoever spawned the first group and what was split off it.
pub(crate) const PARENT: &str = "trace-h0";

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) wave: String,
    /// Members in rank order, and the lane of each.
    pub(crate) members: Vec<(String, Option<String>)>,
    /// It was spawned by [`PARENT`].
    pub(crate) has_parent: bool,
}

/// The groups that there are from the beginning.
pub(crate) fn first() -> Vec<Group> {
    let group = |name: &str, members: &[(&str, &str)], has_parent| {
        let lane = |lane: &str| (!lane.is_empty()).then(|| lane.to_owned());
        let members = members.iter().map(|(id, at)| ((*id).to_owned(), lane(at))).collect();
        Group { name: name.to_owned(), wave: name.to_owned(), members, has_parent }
    };
    vec![
        group("crew", &[("a0", "docs"), ("a1", "src"), ("a2", "docs")], true),
        group("pair", &[("a1", "guide"), ("a3", "")], false),
    ]
}

impl Group {
    /// §6.6: the parts of a split, in the order of their colours: who has none is in no part, and ranks are those of
    /// before, closed up.
    pub(crate) fn split(&self, colour: impl Fn(usize) -> Option<String>) -> Vec<(String, Self)> {
        let mut colours: Vec<String> = (0..self.members.len()).filter_map(&colour).collect();
        colours.sort();
        colours.dedup();
        let part = |name: String| {
            let own = self.members.iter().enumerate().filter(|(at, _)| colour(*at).as_ref() == Some(&name));
            let members = own.map(|(_, member)| member.clone()).collect();
            let whole = format!("{}/{name}", self.name);
            (name, Self { name: whole, members, ..self.clone() })
        };
        colours.into_iter().map(part).collect()
    }
}

impl Model {
    /// The ids of a group's members, in rank order.
    pub(crate) fn members(&self, group: usize) -> Vec<String> {
        let group = self.groups.get(group);
        group.map_or_else(Vec::new, |group| group.members.iter().map(|(id, _)| id.clone()).collect())
    }

    pub(super) fn has_parent(&self, group: usize) -> bool {
        self.groups.get(group).is_some_and(|group| group.has_parent)
    }

    fn group_name(&self, group: usize) -> &str {
        self.groups.get(group).map_or("", |group| &group.name)
    }

    /// A member's inbox of a group.
    pub(crate) fn group_key(&self, group: usize, who: Who) -> Key {
        Key { locale: "inbox", id: format!("{}/{who}", self.group_name(group)) }
    }

    pub(super) fn group_address(&self, group: usize) -> String {
        format!("group:{}", self.group_name(group))
    }

    /// §6.6: whether somebody may split a group.
    pub(crate) fn may_split(&self, who: Who, group: usize) -> Result<(), Reason> {
        self.admit_at(Act::Split, who, &self.group_address(group), None).map(drop)
    }

    /// §6.6: a lease over the lane of every colour, all or none. The fence of the first; or which was refused, and why.
    pub(crate) fn lease_parts(
        &mut self,
        who: Who,
        colours: &[String],
        ttl: u64,
    ) -> Result<u64, (usize, Reason)> {
        for (at, colour) in colours.iter().enumerate() {
            self.admit_at(Act::Lease, who, &format!("lane:{colour}"), None).map_err(|reason| (at, reason))?;
        }
        let mut taken = Vec::new();
        for (at, colour) in colours.iter().enumerate() {
            let lane = LANES.iter().position(|(name, ..)| name == colour).ok_or((at, Reason::Misroute))?;
            if self.is_in_the_way(lane) || taken.iter().any(|other| Self::meet(*other, lane)) {
                return Err((at, Reason::LeaseHeld));
            }
            taken.push(lane);
        }
        let first = self.fences + 1;
        for lane in taken {
            self.fences += 1;
            let until = self.now + ttl;
            self.lanes.push(LaneLease { fence: self.fences, lane, holder: who, until, over: false });
        }
        Ok(first)
    }
}
