//! Splitting groups by colour, and leasing the lanes of the parts (§6.6).

use std::time::Duration;

use fak_abi::{Id, Outcome};
use fak_comm::{Answer, Member, Part};

use super::Sim;
use super::compare::{said, verdict};
use super::guards::guard_time;
use crate::sim::fault::{Fault, Step, ensure, same};
use crate::sim::model::Who;
use crate::sim::model::groups::Group;
use crate::sim::real::broken;

/// The colours of a split that is not by lane: two lanes that meet, and what is no lane.
const COLOURS: [&str; 3] = ["docs", "guide", "red"];

impl Sim {
    pub(super) fn split(&mut self, agent: u8, group: u8, how: u8, time: u8) -> Step {
        let (at, members) = self.group(group);
        let Some(who) = self.member(agent, &members) else { return Ok(()) };
        let Some(whole) = self.model.groups.get(at).cloned() else { return Ok(()) };
        let colours = colours(&whole, how);
        let ids = colours.iter().map(|colour| colour.as_deref().map(Id::new).transpose().map_err(broken));
        let ids = ids.collect::<Result<Vec<_>, Fault>>()?;
        let model = self.model.may_split(who, at);
        let (Some(endpoint), Some(comm)) = (self.real.agents.get(who), self.real.groups.get(at)) else {
            return Ok(());
        };
        let of = |member: &Member| {
            comm.group().rank(member.id().as_str()).and_then(|rank| ids.get(rank)?.as_ref())
        };
        let product = comm.split(endpoint.agent(), of).map_err(broken)?;
        verdict(&format!("§6.6: split of {} by {who}", whole.name), &product.verdict(), model)?;
        let Outcome::Allow { value: parts, .. } = product else { return Ok(()) };
        let expected = whole.split(|rank| colours.get(rank).cloned().flatten());
        let seen: Vec<_> = parts.iter().map(seen).collect();
        same("§6.6: the parts", &seen, &expected)?;
        if how.is_multiple_of(2) {
            self.lease_parts(who, &parts, time)?;
        }
        for (part, (_, group)) in parts.into_iter().zip(expected) {
            if self.model.groups.len() < 10 {
                self.real.groups.push(self.real.comm.open(part.group));
                self.model.groups.push(group);
            }
        }
        Ok(())
    }

    /// §6.6: one lease for each colour, all or none.
    fn lease_parts(&mut self, who: Who, parts: &[Part], time: u8) -> Step {
        if parts.is_empty() {
            return Ok(());
        }
        let (names, ttl) = (parts.iter().map(|part| part.colour.as_str().to_owned()), guard_time(time));
        let names: Vec<String> = names.collect();
        let model = self.model.lease_parts(who, &names, ttl);
        let Some(endpoint) = self.real.agents.get(who) else { return Ok(()) };
        let product = self.real.arbiter.lease_split(endpoint.agent(), parts, Duration::from_micros(ttl));
        match (product, model) {
            (Answer::Allow { value, .. }, Ok(first)) => {
                let fences: Vec<u64> = value.iter().map(fak_comm::Lease::fence).collect();
                same("§6.6: the fences", &fences, &(first..).take(names.len()).collect())?;
                self.real.tokens.extend(value);
                Ok(())
            }
            (Answer::Refuse(refusal), Err((at, reason))) => {
                same("§6.6: which lane was refused", &refusal.at, &Some(at))?;
                ensure!(
                    said(&refusal.verdict) == Err(Some(reason)),
                    "§6.6: lanes {names:?}: the product says {}, the model {reason:?}",
                    refusal.verdict
                );
                Ok(())
            }
            (product, model) => Err(Fault::new(format!(
                "§6.6: lanes {names:?}: the product says {}, the model {model:?}",
                product.verdict()
            ))),
        }
    }
}

/// The colour of each rank: its lane, or one that is drawn, or none.
fn colours(group: &Group, how: u8) -> Vec<Option<String>> {
    let drawn = |rank: usize| {
        let n = usize::from(how >> (2 * (rank % 4))) % (COLOURS.len() + 1);
        COLOURS.get(n).map(|colour| (*colour).to_owned())
    };
    let colour = |(rank, (_, lane)): (usize, &(String, Option<String>))| {
        if how.is_multiple_of(3) { lane.clone() } else { drawn(rank) }
    };
    group.members.iter().enumerate().map(colour).collect()
}

/// A part, as the model would say it. Its ranks have to be where its members are.
fn seen(part: &Part) -> (String, Group) {
    let text = |id: &Id| id.as_str().to_owned();
    let group = &part.group;
    let mut members: Vec<_> = group
        .members()
        .iter()
        .filter_map(|member| Some((group.rank(member.id().as_str())?, member)))
        .collect();
    members.sort_by_key(|(rank, _)| *rank);
    let members = members.into_iter().map(|(_, member)| (text(member.id()), member.lane().map(text)));
    let group = Group {
        name: text(group.name()),
        wave: text(group.wave()),
        members: members.collect(),
        has_parent: group.parent().is_some(),
    };
    (text(&part.colour), group)
}
