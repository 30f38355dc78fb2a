//! Which groups are open on a layer, and so may be named in the address of a collective (§6.3). An address alone gives
//! no right: its name and rank have to be those of a group that the host has opened.

use std::collections::HashMap;
use std::sync::Arc;

use fak_abi::Id;
use parking_lot::RwLock;

use crate::comm::Inner;
use crate::group::Group;

/// A group that is open for as long as this is alive: what all clones of a communicator share.
pub(crate) struct Open {
    group: Group,
    number: u64,
    inner: Arc<Inner>,
}

impl Open {
    pub(crate) const fn group(&self) -> &Group {
        &self.group
    }

    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.inner.groups.close(self.group.name(), self.number);
    }
}

/// The open groups of a layer by name. Several may have one name; one that was opened twice is listed once.
#[derive(Default)]
pub(crate) struct Groups(RwLock<Listed>);

#[derive(Default)]
struct Listed {
    by_name: HashMap<Id, Vec<Listing>>,
    opened: u64,
}

struct Listing {
    group: Group,
    number: u64,
    /// How many `Open` there are of it.
    count: usize,
}

/// What an address of a group stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    /// Nothing: no group of that name is open.
    Unknown,
    /// Some open group of that name, but not one that has that member in that rank.
    Other,
    /// That member, or any where none was asked for.
    Taken,
}

impl Groups {
    /// Opens a group on the layer that these are the groups of.
    pub(crate) fn open(group: Group, inner: &Arc<Inner>) -> Open {
        let mut listed = inner.groups.0.write();
        listed.opened += 1;
        let number = listed.opened;
        let same = listed.by_name.entry(group.name().clone()).or_default();
        let number = match same.iter_mut().find(|listing| listing.group.is(&group)) {
            Some(listing) => {
                listing.count += 1;
                listing.number
            }
            None => {
                same.push(Listing { group: group.clone(), number, count: 1 });
                number
            }
        };
        drop(listed);
        Open { group, number, inner: Arc::clone(inner) }
    }

    fn close(&self, name: &Id, number: u64) {
        let mut listed = self.0.write();
        let Some(same) = listed.by_name.get_mut(name) else { return };
        if let Some(at) = same.iter().position(|listing| listing.number == number)
            && let Some(listing) = same.get_mut(at)
        {
            listing.count -= 1;
            if listing.count == 0 {
                same.swap_remove(at);
            }
        }
        if same.is_empty() {
            listed.by_name.remove(name);
        }
    }

    /// Who is in a rank of an open group. One look-up by name; linear in the groups that share it.
    pub(crate) fn seat(&self, name: &Id, rank: u32, member: Option<&Id>) -> Seat {
        let listed = self.0.read();
        let Some(same) = listed.by_name.get(name) else { return Seat::Unknown };
        let Ok(rank) = usize::try_from(rank) else { return Seat::Other };
        let sits = |listing: &Listing| {
            let found = listing.group.member(rank);
            found.is_some_and(|found| member.is_none_or(|member| found.id() == member))
        };
        if same.iter().any(sits) { Seat::Taken } else { Seat::Other }
    }
}
