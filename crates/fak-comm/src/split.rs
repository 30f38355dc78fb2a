//! Splitting a group by colour (§6.6). Leasing the parts' lanes is an act and lives with the leases.

use fak_abi::Id;
use std::collections::BTreeMap;

use crate::error::CommError;
use crate::group::{Group, GroupSpec, Member};

/// One part of a split: the members of one colour, ranked anew from 0 in the order they had (§6.6). The colour is the
/// lane the part is bound to.
#[derive(Clone, Debug)]
pub struct Part {
    /// The colour, and so the lane.
    pub colour: Id,
    /// The members of that colour. Its name is the group's, a slash, and the colour.
    pub group: Group,
}

impl Group {
    /// Partitions the group by colour, the parts sorted by colour. A member without a colour is in no part.
    ///
    /// # Errors
    ///
    /// [`CommError::Id`] if a part's name is longer than an id may be.
    pub fn split<'a>(
        &'a self,
        mut colour: impl FnMut(&'a Member) -> Option<&'a Id>,
    ) -> Result<Vec<Part>, CommError> {
        let mut parts: BTreeMap<&Id, Vec<Member>> = BTreeMap::new();
        for member in self.members() {
            if let Some(colour) = colour(member) {
                parts.entry(colour).or_default().push(member.clone());
            }
        }
        let mut split = Vec::with_capacity(parts.len());
        for (colour, members) in parts {
            let name = Id::try_from(format!("{}/{colour}", self.name()))
                .map_err(|source| CommError::Id { what: "name of a part", source })?;
            let (wave, parent) = (self.wave().clone(), self.parent().cloned());
            let group = Group::new(GroupSpec { name, wave, parent, members })?;
            split.push(Part { colour: colour.clone(), group });
        }
        Ok(split)
    }

    /// [`Group::split`] by the lane each member works in.
    ///
    /// # Errors
    ///
    /// As [`Group::split`].
    pub fn split_lane(&self) -> Result<Vec<Part>, CommError> {
        self.split(Member::lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text).unwrap()
    }

    #[test]
    fn parts_rank_from_zero_and_who_has_no_colour_is_in_none() {
        let members = vec![
            Member::new(id("d")).in_lane(id("x")),
            Member::new(id("a")).in_lane(id("y")),
            Member::new(id("c")),
            Member::new(id("b")).in_lane(id("x")),
        ];
        let parts = Group::new(GroupSpec::new(id("g"), members)).unwrap().split_lane().unwrap();
        let ids = |part: &Part| part.group.members().iter().map(|m| m.id().clone()).collect::<Vec<_>>();
        let seen: Vec<_> = parts.iter().map(|part| (part.colour.as_str(), ids(part))).collect();
        assert_eq!(seen, [("x", vec![id("b"), id("d")]), ("y", vec![id("a")])]);
        let first = &parts.first().unwrap().group;
        assert_eq!(first.rank("d"), Some(1));
        assert_eq!(first.name().as_str(), "g/x");
        assert_eq!(first.wave().as_str(), "g");
    }

    #[test]
    fn a_part_whose_name_would_be_too_long_is_an_error() {
        let (long, name) = (id(&"l".repeat(200)), id(&"g".repeat(100)));
        let group = Group::new(GroupSpec::new(name, vec![Member::new(id("a")).in_lane(long)])).unwrap();
        assert_eq!(group.split_lane().unwrap_err().kind(), "id");
    }
}
