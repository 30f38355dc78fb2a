//! What one shard of the queue holds until it is drained: acts that happened in a short form, the
//! rest as whole entries. No entry is written here, and none is numbered.
//!
//! Acts come from few principals and go to few addresses. Each of these is kept once in a batch, and
//! an act names it by its place: nothing is counted anew for an act but its body.

use std::sync::Arc;

use fak_abi::{Act, Address, OwnedAddress, Principal, Ref, RungName, Timestamp, ToolCall};

use super::entry::{AuditEntry, Booked};

/// How many values of a table are found again. Others are kept anew.
const NEAR: usize = 32;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The first so many of these are acts, the others room. An act is written where it stays: put
    /// together first and moved then, it is read back before its parts have reached memory.
    slots: Vec<Packed>,
    acts: usize,
    whos: Table<Arc<Principal>>,
    addresses: Table<OwnedAddress>,
    /// Each with how many acts came before it.
    rest: Vec<(usize, AuditEntry)>,
}

/// The entry of an act that happened, with nothing more to say than who, what, where and when.
#[derive(Debug, Default)]
struct Packed {
    at: Timestamp,
    seq: u64,
    by: RungName,
    body: Option<Ref>,
    who: u32,
    address: u32,
    act: Option<Act>,
}

/// Values in the order they came, each once as long as it is remembered where.
#[derive(Debug)]
struct Table<T> {
    kept: Vec<T>,
    /// Places by hash: hints, compared before they are used.
    near: [u32; NEAR],
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), near: [0; NEAR] }
    }
}

impl<T> Table<T> {
    /// The place of the value that is `same`, or of what `make` answers.
    #[inline]
    fn place(&mut self, hash: usize, same: impl FnOnce(&T) -> bool, make: impl FnOnce() -> T) -> u32 {
        let hint = self.near.get(hash % NEAR).copied().unwrap_or_default();
        if self.kept.get(hint as usize).is_some_and(same) { hint } else { self.keep(hash, make()) }
    }

    #[cold]
    fn keep(&mut self, hash: usize, value: T) -> u32 {
        // As many as acts at most, of which a queue has room for fewer.
        let place = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        self.kept.push(value);
        if let Some(hint) = self.near.get_mut(hash % NEAR) {
            *hint = place;
        }
        place
    }

    fn get(&self, place: u32) -> Option<&T> {
        self.kept.get(place as usize)
    }
}

/// A number of a place in memory that tells its neighbours apart.
#[inline]
fn hash<T: ?Sized>(of: *const T) -> usize {
    // Fibonacci hashing; the top five bits.
    ((of.addr() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59) as usize
}

#[inline]
fn hash_of(address: Address<'_>) -> usize {
    match address {
        Address::None | Address::Malformed => 0,
        Address::Channel(key) => hash(key.id().as_ptr()),
        Address::Task(id) | Address::Cell(id) | Address::Lane(id) | Address::Group(id, _) => {
            hash(id.as_ptr())
        }
    }
}

impl Batch {
    /// How many entries.
    pub(super) fn len(&self) -> usize {
        self.acts + self.rest.len()
    }

    pub(super) fn push(&mut self, entry: AuditEntry) {
        self.rest.push((self.acts, entry));
    }

    /// An act that happened.
    #[inline]
    pub(super) fn book(&mut self, act: Act, call: &ToolCall<'_>, by: RungName, at: Timestamp, seq: u64) {
        let (who, address) = (call.principal(), call.target());
        let who = self.whos.place(hash(Arc::as_ptr(who)), |kept| Arc::ptr_eq(kept, who), || Arc::clone(who));
        let address =
            self.addresses.place(hash_of(address), |kept| kept.view() == address, || address.to_owned());
        if self.acts == self.slots.len() {
            self.grow();
        }
        let Some(slot) = self.slots.get_mut(self.acts) else { return };
        (slot.at, slot.seq, slot.by) = (at, seq, by);
        slot.body = call.body().cloned();
        (slot.who, slot.address, slot.act) = (who, address, Some(act));
        self.acts += 1;
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.push(Packed::default());
        // All that was allocated with it.
        self.slots.resize_with(self.slots.capacity(), Packed::default);
    }

    /// Moves everything into `out` as whole entries, in the order they came. `holder` says whose
    /// allowance an act of this principal took.
    pub(super) fn unpack(&mut self, out: &mut Vec<AuditEntry>, holder: impl Fn(&Principal) -> u64) {
        let Self { slots, acts, whos, addresses, rest } = self;
        let mut rest = rest.drain(..).peekable();
        for (place, slot) in slots.iter_mut().take(std::mem::take(acts)).enumerate() {
            while let Some((_, entry)) = rest.next_if(|(before, _)| *before <= place) {
                out.push(entry);
            }
            out.extend(slot.unpack(whos, addresses, &holder));
        }
        out.extend(rest.map(|(_, entry)| entry));
        whos.kept.clear();
        addresses.kept.clear();
    }
}

impl Packed {
    /// The whole entry. `None` if this is room.
    fn unpack(
        &mut self,
        whos: &Table<Arc<Principal>>,
        addresses: &Table<OwnedAddress>,
        holder: impl Fn(&Principal) -> u64,
    ) -> Option<AuditEntry> {
        let body = self.body.take();
        let &mut Self { at, seq, by, who, address, act, .. } = self;
        let (who, address, act) = (whos.get(who)?, addresses.get(address)?, act?);
        Some(AuditEntry::booked(Booked { act, by, holder: holder(who), who, address, body, at, seq }))
    }
}
