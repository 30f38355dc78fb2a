//! Splitting a group by colour (§6.6). Leasing the parts' lanes is an act and lives with the leases.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::CommError;
use crate::group::{Group, GroupSpec, Member};

/// One part of a split: the members of one colour, ranked anew from 0 in the order they had. The colour is the
/// lane the part is bound to.
#[derive(Clone, Debug)]
pub struct Part {
    /// The colour, and so the lane.
    pub colour: Arc<str>,
    /// The members of that colour. Its name is the group's, a slash, and the colour.
    pub group: Group,
}

impl Group {
    /// Partitions the group by colour, the parts sorted by colour. A member without a colour is in no part.
    ///
    /// # Errors
    ///
    /// [`CommError::Id`] if a colour, or a part's name, is not an id.
    pub fn split<'a>(
        &'a self,
        mut colour: impl FnMut(&'a Member) -> Option<&'a str>,
    ) -> Result<Vec<Part>, CommError> {
        let mut parts: BTreeMap<&str, Vec<Member>> = BTreeMap::new();
        for member in self.members() {
            if let Some(colour) = colour(member) {
                parts.entry(colour).or_default().push(member.clone());
            }
        }
        let mut split = Vec::with_capacity(parts.len());
        for (at, (colour, members)) in parts.into_iter().enumerate() {
            crate::id::check_id("colour", at, colour)?;
            let spec = GroupSpec {
                name: format!("{}/{colour}", self.name()).into(),
                wave: Arc::clone(self.wave()),
                parent: Arc::clone(self.parent()),
                members,
            };
            split.push(Part { colour: colour.into(), group: Group::new(spec)? });
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

    #[test]
    fn parts_rank_from_zero_and_who_has_no_colour_is_in_none() {
        let g = Group::new(GroupSpec::new(
            "g",
            vec![
                Member::new("d").in_lane("x"),
                Member::new("a").in_lane("y"),
                Member::new("c"),
                Member::new("b").in_lane("x"),
            ],
        ))
        .unwrap();
        let parts = g.split_lane().unwrap();
        let seen: Vec<_> = parts
            .iter()
            .map(|p| (p.colour.as_ref(), p.group.members().iter().map(Member::id).collect::<Vec<_>>()))
            .collect();
        assert_eq!(seen, [("x", vec!["b", "d"]), ("y", vec!["a"])]);
        assert_eq!(parts.first().unwrap().group.rank("d"), Some(1));
        assert_eq!(parts.first().unwrap().group.name().as_ref(), "g/x");
        assert_eq!(parts.first().unwrap().group.wave().as_ref(), "g");
    }

    #[test]
    fn a_blank_colour_is_an_error() {
        let g = Group::new(GroupSpec::new("g", vec![Member::new("a")])).unwrap();
        assert_eq!(g.split(|_| Some("")).unwrap_err().kind(), "id");
    }
}
