//! One mailbox (§4.1–4.4): two locks on separate lines, so that senders and receivers meet only
//! when the receiving side has run dry. No user code runs under either. Adjudication, dead letters
//! and wake-ups are the callers' business.
//!
//! Lock order: output, then input. A queued message is in exactly one of the two queues; all in
//! `output` are older than all in `input`. Messages move to `output` only while both are locked, so
//! whoever holds `input` knows whether there is anything before it.

mod guard;
mod lease;
mod offer;
mod peek;
mod plain;
mod seek;
#[cfg(test)]
mod shuttled;
mod trial;
mod wait;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use fak_abi::{OwnedAddress, Principal};
use smallvec::SmallVec;

use crate::account::Account;
use crate::delivery::End;
use crate::entry::Entry;
use crate::hash::Numbers;
use crate::route::Route;
use crate::stats::Tally;
use crate::sync::{Line, Lock, Locks, Native};

pub(crate) use guard::{Bind, Purge};
pub(crate) use lease::Terms;
pub(crate) use offer::{Block, Offer};
pub(crate) use plain::{Quick, Try};
pub(crate) use seek::{Found, Seek, Sought};
pub(crate) use trial::{Fate, Settlement};
pub(crate) use wait::{SpaceState, WaitState};

/// Wakers to be called once every lock is released.
pub(crate) type Wakes = SmallVec<[Waker; 2]>;

/// See the module.
pub(crate) struct Mailbox<L: Locks = Native> {
    to: Arc<OwnedAddress>,
    capacity: u64,
    share: u64,
    /// Who is charged for it.
    creator: Option<Arc<Account>>,
    /// One principal's alone: every message in it was decided with that as its recipient.
    private: bool,
    /// Some principal is bound: look before the fold.
    bound: AtomicBool,
    /// It accepts one act only: a send has to be looked at closely.
    act_only: AtomicBool,
    /// The host opened it: it is not retired for want of use.
    kept: AtomicBool,
    /// Something in it depends on the time.
    timed: AtomicBool,
    input: Line<L::Lock<Input>>,
    output: Line<Outlet<L>>,
}

struct Outlet<L: Locks> {
    lock: L::Lock<Output>,
    /// Messages that left, ever. Written only under the lock; senders compare it with what came in.
    gone: AtomicU64,
    /// Something may be queued on this side. Written only under the input lock, and taken back only
    /// under both; without a lock it is a hint.
    ahead: AtomicBool,
}

/// The senders' side.
struct Input {
    /// The message here, where it is the only one: it need not pass the queue.
    single: Option<Entry>,
    queue: VecDeque<Entry>,
    /// Messages that came in, ever, but for `direct`.
    accepted: u64,
    /// Messages that came in and were taken from this side, without passing the other.
    direct: u64,
    /// Somebody may wait for room.
    crowded: bool,
    /// What was last seen of [`Outlet::gone`]: a lower bound, so fullness is checked without
    /// touching the receivers' line until it matters.
    gone_seen: u64,
    /// Slots promised to somebody.
    reserved: u64,
    waiters: VecDeque<wait::Waiter>,
    /// The principal that was woken last.
    spare: Option<Arc<Principal>>,
    next_waiter: u64,
    /// Counts arrivals, put-backs included: what a waiter has seen is a prefix of them.
    version: u64,
    /// Counts changes of who may receive here.
    epoch: u32,
    binder: Option<Arc<Principal>>,
    binding: u64,
    reserved_for: Option<Arc<Principal>>,
    routes: HashMap<u64, Arc<Route>, Numbers>,
    /// The one of `routes` that was asked for last, so that a sender by key need not search.
    recent: Option<(u64, Arc<Route>)>,
    end: Option<End>,
}

/// The receivers' side.
#[derive(Default)]
struct Output {
    queue: VecDeque<Entry>,
    leased: Vec<lease::Leased>,
    space: VecDeque<wait::SpaceWaiter>,
    next_token: u64,
    /// How often something was put back.
    returns: u64,
    /// All was purged when the key was freed: up to this number, and why. What was on trial then is
    /// dead as well, once it is settled.
    purged: Option<(u64, End)>,
    /// Who alone may receive here.
    only: Option<Arc<Principal>>,
    tally: Tally,
    /// The tallies were taken over by somebody else.
    booked: bool,
}

/// How a mailbox is made.
pub(crate) struct Shape {
    pub(crate) capacity: u64,
    pub(crate) share: u64,
    pub(crate) creator: Option<Arc<Account>>,
    pub(crate) private: bool,
}

impl<L: Locks> Mailbox<L> {
    pub(crate) fn new(to: Arc<OwnedAddress>, shape: Shape) -> Self {
        let Shape { capacity, share, creator, private } = shape;
        let input = Input {
            single: None,
            queue: VecDeque::new(),
            accepted: 0,
            direct: 0,
            crowded: false,
            gone_seen: 0,
            reserved: 0,
            waiters: VecDeque::new(),
            spare: None,
            next_waiter: 0,
            version: 0,
            epoch: 0,
            binder: None,
            binding: 0,
            reserved_for: None,
            routes: HashMap::default(),
            recent: None,
            end: None,
        };
        let (gone, ahead) = (AtomicU64::new(0), AtomicBool::new(false));
        let outlet = Outlet { lock: Lock::new(Output::default()), gone, ahead };
        Self {
            to,
            capacity,
            share,
            creator,
            private,
            bound: AtomicBool::new(false),
            act_only: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            timed: AtomicBool::new(false),
            input: Line::new(Lock::new(input)),
            output: Line::new(outlet),
        }
    }

    pub(crate) const fn address(&self) -> &Arc<OwnedAddress> {
        &self.to
    }

    /// It is under a key that accepts one act only (§4.9).
    pub(crate) fn set_act_only(&self) {
        self.act_only.store(true, Ordering::Release);
    }

    /// True if a send may just be placed: it resolves to nobody, and no act is singled out.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_bound() && !self.act_only.load(Ordering::Acquire)
    }

    /// True if somebody has bound it.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound.load(Ordering::Acquire)
    }

    /// True if nothing comes in or out any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.input.lock().end.is_some()
    }

    /// True if the rungs knew the recipient of everything in it.
    pub(crate) const fn is_private(&self) -> bool {
        self.private
    }

    /// It is not retired for want of use.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// True if the host opened it.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    /// True if a look at it needs the time.
    pub(crate) fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }

    fn note_timed(&self) {
        self.timed.store(true, Ordering::Relaxed);
    }

    /// Messages queued, leased ones counted.
    pub(crate) fn depth(&self) -> u64 {
        let _out = self.output.lock.lock();
        let input = self.input.lock();
        input.accepted.saturating_sub(self.gone())
    }

    fn gone(&self) -> u64 {
        self.output.gone.load(Ordering::Acquire)
    }

    /// Under the output lock: `count` messages left.
    fn add_gone(&self, out: &mut Output, count: u64, wakes: &mut Wakes) {
        let gone = self.output.gone.load(Ordering::Relaxed);
        self.output.gone.store(gone.wrapping_add(count), Ordering::Release);
        if !out.space.is_empty() {
            for _ in 0..count {
                wakes.extend(out.rouse_space(self.share));
            }
        }
    }

    /// What became of everything that ever came in.
    pub(crate) fn tally(&self) -> Tally {
        let mut out = self.output.lock.lock();
        let mut input = self.input.lock();
        self.fold_direct(&mut input, &mut out);
        self.sum(&input, &out)
    }

    /// Books what was taken from the senders' side as if it had passed the receivers'.
    fn fold_direct(&self, input: &mut Input, out: &mut Output) {
        let count = std::mem::take(&mut input.direct);
        let gone = self.output.gone.load(Ordering::Relaxed).wrapping_add(count);
        self.output.gone.store(gone, Ordering::Release);
        input.accepted += count;
        input.gone_seen += count;
        out.tally.received += count;
    }

    /// Moves everything to the receivers' side; cheap when that has run dry.
    #[inline]
    fn drain(&self, input: &mut Input, out: &mut Output) {
        input.queue.extend(input.single.take());
        if out.queue.is_empty() {
            std::mem::swap(&mut input.queue, &mut out.queue);
        } else {
            out.queue.append(&mut input.queue);
        }
        input.gone_seen = self.output.gone.load(Ordering::Relaxed);
        input.crowded = !out.space.is_empty();
        self.output.ahead.store(!out.queue.is_empty(), Ordering::Relaxed);
    }

    /// Who is charged for it.
    pub(crate) const fn creator(&self) -> Option<&Arc<Account>> {
        self.creator.as_ref()
    }
}

impl Input {
    /// True if nothing is queued on this side.
    #[inline]
    fn is_empty(&self) -> bool {
        self.single.is_none() && self.queue.is_empty()
    }

    /// Whom sends here resolve to (§2.5).
    #[inline]
    const fn recipient(&self) -> Option<&Arc<Principal>> {
        self.binder.as_ref()
    }

    #[inline]
    fn only(&self) -> Option<&Arc<Principal>> {
        self.binder.as_ref().or(self.reserved_for.as_ref())
    }

    /// True if somebody else alone may receive here.
    #[inline]
    fn is_others(&self, reader: &Arc<Principal>) -> bool {
        self.only().is_some_and(|only| !Arc::ptr_eq(only, reader))
    }

    /// True if a wait of the reader that has begun goes on.
    #[inline]
    fn is_waited_at(&self, reader: &Arc<Principal>, state: &WaitState) -> bool {
        self.end.is_none() && state.epoch == Some(self.epoch) && !self.is_others(reader)
    }
}
