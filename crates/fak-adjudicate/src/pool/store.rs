//! What a pool holds: bytes once by digest, provenance by owner and scope, and who made room for
//! whom. Knows nothing of acts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use fak_abi::{Digest, Host, Location, Principal, Reason, Ref, Refusal, ShareScope, Taint};

use super::floor;

/// What a value and each of its entries count besides its bytes.
pub(super) const ENTRY: usize = 256;

pub(super) struct Store {
    capacity: usize,
    share: usize,
    blobs: HashMap<Digest, Blob>,
    /// Digests by when they were last used.
    order: BTreeMap<u64, Digest>,
    tick: u64,
    bytes: usize,
    /// What each principal's puts take, by incarnation.
    taken: HashMap<u64, usize>,
}

/// One value.
struct Blob {
    /// Refs that were handed out hold this count.
    bytes: Arc<Bytes>,
    /// One for each owner and scope. They share the bytes and are no pins.
    entries: Vec<Ref>,
    used: u64,
    /// Whose share it counts against: who put it first.
    payer: u64,
}

/// Bytes as a Ref that was handed out holds them: counted, so that the store sees the pin.
struct Pin(Arc<Bytes>);

impl AsRef<[u8]> for Pin {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What was dropped to make room; freed by the caller, outside the lock.
pub(super) struct Evicted(#[expect(dead_code, reason = "held for its drop")] Blob);

impl Blob {
    fn cost(&self) -> usize {
        self.bytes.len() + ENTRY * (1 + self.entries.len())
    }

    fn is_pinned(&self) -> bool {
        Arc::strong_count(&self.bytes) > 1
    }

    /// The entry as a Ref of its own, which pins the value.
    fn hand_out(&self, host: &dyn Host, entry: &Ref) -> Option<Ref> {
        host.relocate(entry, Location::Blob, Bytes::from_owner(Pin(Arc::clone(&self.bytes))))
    }
}

fn same_owner(a: &Ref, b: &Ref) -> bool {
    a.is_owned_by(b.owner())
}

impl Store {
    pub(super) fn new(capacity: usize, share: usize) -> Self {
        Self {
            capacity,
            share,
            blobs: HashMap::new(),
            order: BTreeMap::new(),
            tick: 0,
            bytes: 0,
            taken: HashMap::new(),
        }
    }

    pub(super) fn put(
        &mut self,
        host: &dyn Host,
        by: &Principal,
        body: &Ref,
        (digest, bytes): (Digest, Bytes),
        evicted: &mut Vec<Evicted>,
    ) -> Result<Ref, Refusal> {
        self.touch(digest);
        let place = match self.place(body, digest) {
            Some(place) => place,
            None => self.add(host, by, body, (digest, bytes), evicted)?,
        };
        let blob = self.blobs.get_mut(&digest).ok_or_else(floor::flow)?;
        let entry = blob.entries.get_mut(place).ok_or_else(floor::flow)?;
        // Only the owner's word raises the taint of its entry.
        if body.is_owned_by(by) {
            *entry = entry.tainted_at_least(body.taint());
        }
        let entry = entry.clone();
        blob.hand_out(host, &entry).ok_or_else(floor::flow)
    }

    /// The place of the entry that a value has already.
    fn place(&self, body: &Ref, digest: Digest) -> Option<usize> {
        let entries = &self.blobs.get(&digest)?.entries;
        entries.iter().position(|entry| same_owner(entry, body) && entry.scope() == body.scope())
    }

    /// Adds an entry, and the value if it is new; answers the entry's place.
    fn add(
        &mut self,
        host: &dyn Host,
        by: &Principal,
        body: &Ref,
        (digest, bytes): (Digest, Bytes),
        evicted: &mut Vec<Evicted>,
    ) -> Result<usize, Refusal> {
        let (payer, need) = self.need(by, digest, bytes.len());
        let victims = self.room(need, payer, digest)?;
        evicted.extend(victims.iter().filter_map(|digest| self.remove(digest)).map(Evicted));
        let known = self.blobs.get(&digest).map(|blob| Bytes::clone(&blob.bytes));
        let bytes = match known {
            Some(bytes) => bytes,
            // A slice would keep all of what it was cut from alive.
            None if body.location() == Location::Region => Bytes::copy_from_slice(&bytes),
            None => bytes,
        };
        // Refuses bytes that are not the value's: the digest is of what is kept.
        let entry = host.relocate(body, Location::Blob, bytes.clone()).ok_or_else(floor::flow)?;
        self.bytes += need;
        *self.taken.entry(payer).or_default() += need;
        let tick = self.tick;
        let blob = self.blobs.entry(digest).or_insert_with(|| {
            self.order.insert(tick, digest);
            Blob { bytes: Arc::new(bytes), entries: Vec::new(), used: tick, payer }
        });
        blob.entries.push(entry);
        Ok(blob.entries.len() - 1)
    }

    pub(super) fn get(
        &mut self,
        host: &dyn Host,
        reader: &Principal,
        digest: Digest,
    ) -> Result<Ref, Refusal> {
        let value = self.find(host, reader, digest)?;
        self.touch(digest);
        Ok(value)
    }

    /// What a get would answer.
    pub(super) fn find(&self, host: &dyn Host, reader: &Principal, digest: Digest) -> Result<Ref, Refusal> {
        let refuse = |reason, site: &'static fak_abi::SiteInfo| Refusal::new(reason, site.site());
        let blob = self.blobs.get(&digest).ok_or_else(|| refuse(Reason::Misroute, floor::UNKNOWN))?;
        let flows = || blob.entries.iter().filter(|entry| entry.may_flow_to(reader));
        // One's own first, then by owner; of one owner the narrowest scope.
        let rank = |entry: &&Ref| {
            let owner = entry.owner();
            (!entry.is_owned_by(reader), owner.id().clone(), entry.scope(), owner.incarnation())
        };
        let pick = flows().min_by_key(rank).ok_or_else(|| refuse(Reason::TrustViolation, floor::CLOSED))?;
        let taint = flows().map(Ref::taint).fold(Taint::Trusted, Taint::join);
        let value = blob.hand_out(host, pick).ok_or_else(floor::flow)?;
        Ok(value.tainted_at_least(taint))
    }

    fn touch(&mut self, digest: Digest) {
        self.tick += 1;
        if let Some(blob) = self.blobs.get_mut(&digest) {
            self.order.remove(&blob.used);
            blob.used = self.tick;
            self.order.insert(self.tick, digest);
        }
    }

    /// Whose share a put counts against, and how much it takes.
    fn need(&self, by: &Principal, digest: Digest, len: usize) -> (u64, usize) {
        match self.blobs.get(&digest) {
            Some(blob) => (blob.payer, ENTRY),
            None => (by.incarnation(), len.saturating_add(2 * ENTRY)),
        }
    }

    /// Why a put would be refused for want of room, if it would.
    pub(super) fn check_put(&self, by: &Principal, body: &Ref) -> Result<(), Refusal> {
        if self.place(body, body.digest()).is_some() {
            return Ok(());
        }
        let (payer, need) = self.need(by, body.digest(), body.len());
        self.room(need, payer, body.digest()).map(drop)
    }

    /// The values that make room: the least recently used that are not pinned; of the payer's alone while
    /// it is above its share, of all then. Refused if they cannot.
    fn room(&self, need: usize, payer: u64, keep: Digest) -> Result<Vec<Digest>, Refusal> {
        let mine = self.taken.get(&payer).copied().unwrap_or_default();
        if need > self.share || need > self.capacity {
            return Err(Refusal::new(Reason::Oversize, floor::SIZE.site()));
        }
        let mut over = self.bytes.saturating_add(need).saturating_sub(self.capacity);
        let mut over_share = mine.saturating_add(need).saturating_sub(self.share);
        let mut victims = Vec::new();
        let free = || self.order.values().filter_map(|digest| Some((*digest, self.blobs.get(digest)?)));
        let free = || free().filter(|(digest, blob)| *digest != keep && !blob.is_pinned());
        for (digest, blob) in free().filter(|(_, blob)| blob.payer == payer) {
            if over_share == 0 {
                break;
            }
            over_share = over_share.saturating_sub(blob.cost());
            over = over.saturating_sub(blob.cost());
            victims.push(digest);
        }
        let own: HashSet<Digest> = victims.iter().copied().collect();
        for (digest, blob) in free() {
            if over == 0 || over_share > 0 {
                break;
            }
            if !own.contains(&digest) {
                over = over.saturating_sub(blob.cost());
                victims.push(digest);
            }
        }
        if over > 0 || over_share > 0 {
            return Err(Refusal::new(Reason::RateLimited, floor::FULL.site()));
        }
        Ok(victims)
    }

    fn remove(&mut self, digest: &Digest) -> Option<Blob> {
        let blob = self.blobs.remove(digest)?;
        self.order.remove(&blob.used);
        self.give_back(blob.payer, blob.cost());
        Some(blob)
    }

    fn give_back(&mut self, payer: u64, cost: usize) {
        self.bytes = self.bytes.saturating_sub(cost);
        if let Some(taken) = self.taken.get_mut(&payer) {
            *taken = taken.saturating_sub(cost);
            if *taken == 0 {
                self.taken.remove(&payer);
            }
        }
    }

    /// Drops the private entries of an owner, and the values nobody else has an entry of. Answers
    /// what is to be freed outside the lock.
    pub(super) fn forget(&mut self, owner: &Principal) -> Vec<Evicted> {
        let mut emptied = Vec::new();
        let mut freed = Vec::new();
        for (digest, blob) in &mut self.blobs {
            let before = blob.entries.len();
            blob.entries.retain(|entry| !(entry.is_owned_by(owner) && entry.scope() == ShareScope::Agent));
            if blob.entries.is_empty() {
                emptied.push(*digest);
            }
            freed.push((blob.payer, ENTRY * (before - blob.entries.len())));
        }
        for (payer, cost) in freed {
            self.give_back(payer, cost);
        }
        emptied.iter().filter_map(|digest| self.remove(digest)).map(Evicted).collect()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.blobs.len()
    }

    pub(super) fn pinned(&self) -> usize {
        self.blobs.values().filter(|blob| blob.is_pinned()).count()
    }
}
