//! The kernel's half of the audit: a bounded queue whose slots are reserved before an act is
//! allowed (§3.6). No act waits here for anything but a lock that is held for one push.
//!
//! The queue is split by thread, so that acting threads do not share a counter. A slot may be
//! reserved on one thread and used or given back on another: the shards' counts then drift apart,
//! even below zero, but their sum is exact, and a shard without a slot borrows from the next.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use fak_abi::{Event, EventKind, KernelTag, Principal, RungName, Timestamp, Tool, ToolCall, Verdict};
use parking_lot::{Condvar, Mutex};

use super::batch::Batch;
use super::entry::{AuditEntry, LAZY_BYTES};
use crate::kernel::about;
use crate::seams::{Auditor, Reservation};
use crate::shard::{SHARDS, here};

/// Principals whose incarnations differ by a multiple of this share one allowance.
const ALLOWANCES: usize = 4096;

/// Whoever asks gets a slot, if there is one.
const OPEN: u8 = 0;
/// The log cannot be written: acts get none. What only cites an act still does.
const FAILED: u8 = 1;
/// The log was closed: nothing does.
const CLOSED: u8 = 2;

/// No incarnation: those of a kernel begin at 1.
const STRANGERS: u64 = 0;

/// What found no slot since the last drain: entries that were lost, but not silently (§3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// How many.
    pub count: u64,
    /// The smallest number of an act among them.
    pub first: u64,
    /// The greatest.
    pub last: u64,
    /// When the last of them was missed.
    pub at: Timestamp,
}

/// The kernel's half of an audit log (§3.6). Made by [`AuditLog::open`](super::AuditLog::open); belongs to
/// one kernel. [`Audit::close`], or dropping it with the kernel, lets a thread in
/// [`AuditLog::drain_blocking`](super::AuditLog::drain_blocking) write the rest and end.
#[derive(Debug)]
pub struct Audit(Arc<Queue>);

#[derive(Debug)]
pub(super) struct Queue {
    shards: [Shard; SHARDS],
    /// Queued entries by incarnation.
    held: Box<[AtomicU32]>,
    share: u32,
    tag: OnceLock<KernelTag>,
    /// [`OPEN`], or who gets no slot any more.
    state: AtomicU8,
    gap: Mutex<Option<Gap>>,
    signal: Mutex<Signal>,
    changed: Condvar,
}

/// Empty batches with room, one for each shard to go on with.
pub(super) type Spares = [Batch; SHARDS];

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    capacity: i64,
    /// Slots reserved here less slots given back here.
    used: AtomicI64,
    batch: Mutex<Batch>,
}

#[derive(Debug, Default)]
struct Signal {
    dirty: bool,
    /// The last write failed.
    failed: bool,
    /// The host closed the log: what has a slot is still written.
    closed: bool,
    /// The kernel's half is dropped: nothing has a slot that is not queued.
    gone: bool,
}

impl Shard {
    #[inline]
    fn reserve(&self) -> bool {
        let more = |used| (used < self.capacity).then_some(used + 1);
        // Ordered against the state, see `Queue::stands_below`.
        self.used.fetch_update(Ordering::SeqCst, Ordering::Relaxed, more).is_ok()
    }
}

impl Queue {
    pub(super) fn new(capacity: usize, share: usize) -> Arc<Self> {
        // A batch numbers what it keeps in 32 bits.
        let capacity = i64::try_from(capacity).unwrap_or(i64::MAX).min(u32::MAX.into());
        let shards = SHARDS as i64;
        Arc::new(Self {
            shards: std::array::from_fn(|index| Shard {
                capacity: capacity / shards + i64::from((index as i64) < capacity % shards),
                ..Shard::default()
            }),
            held: (0..ALLOWANCES).map(|_| AtomicU32::new(0)).collect(),
            share: u32::try_from(share).unwrap_or(u32::MAX),
            tag: OnceLock::new(),
            state: AtomicU8::new(OPEN),
            gap: Mutex::default(),
            signal: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// This thread's shard first, then the others.
    fn around(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().cycle().skip(here()).take(SHARDS)
    }

    fn allowance(&self, incarnation: u64) -> Option<&AtomicU32> {
        self.held.get(incarnation as usize % ALLOWANCES)
    }

    /// Whose allowance an act of `who` counts against. Whoever mints handles of its own names any
    /// incarnation it likes, so strangers have one between them.
    fn holder(&self, who: &Principal) -> u64 {
        if self.tag.get().is_none_or(|tag| tag == who.tag()) { who.incarnation() } else { STRANGERS }
    }

    /// This thread's shard.
    #[inline]
    fn own(&self) -> Option<&Shard> {
        self.shards.get(here())
    }

    /// Takes a slot; where.
    #[inline]
    fn reserve(&self) -> Option<&Shard> {
        self.own().filter(|shard| shard.reserve()).or_else(|| self.borrow())
    }

    /// After a slot was taken: false, and it is given back, if the log has come to `state` meanwhile. Whoever closes the log looks at
    /// the slots after setting the state: one of the two sees the other, so that nothing is queued behind a drain that has ended.
    /// It goes back where it was taken: so no shard is ever seen to owe for a slot that was not seen, and the sum is never too small.
    #[inline]
    fn stands_below(&self, state: u8, shard: &Shard) -> bool {
        let stands = self.state.load(Ordering::SeqCst) < state;
        if !stands {
            self.release(shard);
        }
        stands
    }

    #[inline]
    fn release(&self, shard: &Shard) {
        shard.used.fetch_sub(1, Ordering::SeqCst);
        if self.state.load(Ordering::SeqCst) == CLOSED {
            self.wake();
        }
    }

    fn used(&self) -> i64 {
        self.shards.iter().map(|shard| shard.used.load(Ordering::SeqCst)).sum()
    }

    #[cold]
    fn borrow(&self) -> Option<&Shard> {
        self.around().find(|shard| shard.reserve())
    }

    fn push(&self, event: &Event<'_>) {
        let holder = event.principal.map_or(STRANGERS, |who| self.holder(who));
        let entry = AuditEntry::new(event, holder);
        self.put(holder, |batch| batch.push(entry));
    }

    #[inline(always)]
    fn put(&self, holder: u64, into: impl FnOnce(&mut Batch)) {
        if let Some(held) = self.allowance(holder) {
            held.fetch_add(1, Ordering::Relaxed);
        }
        let Some(shard) = self.own() else { return };
        let first = {
            let mut batch = shard.batch.lock();
            into(&mut batch);
            batch.len() == 1
        };
        // Later ones are taken together with the first.
        if first {
            self.wake();
        }
    }

    #[cold]
    fn tell(&self, call: &ToolCall<'_>, by: RungName, at: Timestamp, seq: u64) {
        let verdict = Verdict::allow(by);
        self.push(&Event { verdict: Some(&verdict), ..about(call, EventKind::Decide, at, seq) });
    }

    #[cold]
    fn wake(&self) {
        self.signal.lock().dirty = true;
        self.changed.notify_one();
    }

    /// Moves everything queued into `out`, in order, with what was missed meanwhile. The slots stay
    /// taken until [`Queue::give_back`].
    pub(super) fn take(&self, out: &mut Vec<AuditEntry>, spares: &mut Spares) -> Option<Gap> {
        let before = out.len();
        for (shard, spare) in self.shards.iter().zip(spares) {
            // Only the swap is under the lock; the emptied batch goes back in the next time.
            std::mem::swap(&mut *shard.batch.lock(), spare);
            spare.unpack(out, |who| self.holder(who));
        }
        let gap = self.gap.lock().take();
        out.extend(gap.map(AuditEntry::gap));
        if let Some(new) = out.get_mut(before..) {
            new.sort_by_key(AuditEntry::order);
        }
        gap
    }

    /// These entries are in the log: their slots are free.
    pub(super) fn give_back(&self, written: &[AuditEntry]) {
        let mut slots = 0;
        for entry in written.iter().filter(|entry| entry.kind.takes_slot()) {
            slots += 1;
            if let Some(held) = self.allowance(entry.holder) {
                held.fetch_sub(1, Ordering::Relaxed);
            }
        }
        // Where they were reserved is not known; a shard that owes most is paid first.
        for shard in &self.shards {
            let part = shard.used.load(Ordering::Relaxed).clamp(0, slots);
            shard.used.fetch_sub(part, Ordering::Relaxed);
            slots -= part;
        }
        if let Some(shard) = self.shards.first() {
            shard.used.fetch_sub(slots, Ordering::Relaxed);
        }
    }

    pub(super) fn set_failed(&self, failed: bool) {
        let mut signal = self.signal.lock();
        signal.failed = failed;
        let state = if failed { FAILED } else { OPEN };
        self.state.store(if signal.closed { CLOSED } else { state }, Ordering::SeqCst);
    }

    /// Waits until something is queued; false once the kernel's half is gone as well, or the log is closed and nothing has a slot.
    pub(super) fn wait(&self) -> bool {
        let mut signal = self.signal.lock();
        loop {
            if std::mem::take(&mut signal.dirty) {
                return true;
            }
            if signal.gone || (signal.closed && self.used() == 0) {
                return false;
            }
            self.changed.wait(&mut signal);
        }
    }
}

impl Audit {
    pub(super) const fn new(queue: Arc<Queue>) -> Self {
        Self(queue)
    }

    /// How many slots are reserved or hold an entry that is not written.
    #[must_use]
    pub fn pending(&self) -> usize {
        usize::try_from(self.0.used()).unwrap_or_default()
    }

    /// True while the log cannot be written, so that every act is refused.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.signal.lock().failed
    }

    /// Ends the log while the kernel still stands (§3.6): from now on every act is refused DEFAULT_DENY by `audit`, acts that have a
    /// slot finish and are written, and then [`AuditLog::drain_blocking`](super::AuditLog::drain_blocking) answers `None`,
    /// whatever still keeps the kernel alive. What is refused or dies after that is counted, and summed in the gap entry that one
    /// more [`AuditLog::drain`](super::AuditLog::drain) writes. Closing twice is closing once.
    pub fn close(&self) {
        {
            let mut signal = self.0.signal.lock();
            signal.closed = true;
            self.0.state.store(CLOSED, Ordering::SeqCst);
        }
        self.0.changed.notify_one();
    }
}

impl Auditor for Audit {
    fn adopt(&self, tag: &KernelTag) {
        // The first kernel's; a log that two kernels share takes the second's for strangers.
        let _ = self.0.tag.set(tag.clone());
    }

    fn reserve(&self, who: &Principal) -> Reservation {
        if self.0.state.load(Ordering::Relaxed) != OPEN {
            return Reservation::Failed;
        }
        let held = self.0.allowance(self.0.holder(who)).map_or(0, |held| held.load(Ordering::Relaxed));
        if held >= self.0.share {
            return Reservation::Share;
        }
        let Some(shard) = self.0.reserve() else { return Reservation::Full };
        if self.0.stands_below(FAILED, shard) { Reservation::Reserved } else { Reservation::Failed }
    }

    fn release(&self) {
        if let Some(shard) = self.0.own() {
            self.0.release(shard);
        }
    }

    fn record(&self, event: &Event<'_>) {
        self.0.push(event);
    }

    #[inline]
    fn book(&self, call: &ToolCall<'_>, by: RungName, at: Timestamp, seq: u64) {
        let Tool::Act(act) = call.tool() else { return self.0.tell(call, by, at, seq) };
        // The queue must not keep a large body alive: it is hashed at once.
        if call.body().is_some_and(|body| body.len() > LAZY_BYTES) {
            return self.0.tell(call, by, at, seq);
        }
        let holder = self.0.holder(call.principal());
        self.0.put(holder, |batch| batch.book(act, call, by, at, seq));
    }

    fn note(&self, event: &Event<'_>) {
        if self.0.reserve().is_some_and(|shard| self.0.stands_below(CLOSED, shard)) {
            self.0.push(event);
        } else {
            self.miss(event.at, event.seq);
        }
    }

    fn miss(&self, at: Timestamp, seq: u64) {
        {
            let mut gap = self.0.gap.lock();
            *gap = Some(gap.map_or(Gap { count: 1, first: seq, last: seq, at }, |gap| Gap {
                count: gap.count.saturating_add(1),
                first: gap.first.min(seq),
                last: gap.last.max(seq),
                at: gap.at.max(at),
            }));
        }
        self.0.wake();
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.0.signal.lock().gone = true;
        self.0.changed.notify_one();
    }
}
