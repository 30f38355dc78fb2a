//! Counters of what a kernel decided, split by thread so that counting does not contend.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fak_abi::{Act, Emitter, Event, EventKind, EventKinds, Reason, Tool, Verdict};

use crate::shard::{SHARDS, here};

/// What became of the acts that were counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Allowed, transformed ones included.
    pub allowed: u64,
    /// Held: what they would have handed over was quarantined (§4.4).
    pub held: u64,
    denied: [u64; REASONS],
}

const REASONS: usize = Reason::ALL.len();
/// Cells of one act: allowed, held, and one for each reason.
const CELLS: usize = 2 + REASONS;
/// The acts, and one for all tools of the host.
const ROWS: usize = Act::ALL.len() + 1;
const KINDS: usize = EventKind::ALL.len();

impl Tally {
    /// Refused for this reason.
    #[must_use]
    pub fn denied_for(&self, reason: Reason) -> u64 {
        self.denied.get(place(reason)).copied().unwrap_or_default()
    }

    /// Refused, for whatever reason.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.denied.iter().sum()
    }

    /// All of them.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.allowed + self.held + self.denied()
    }
}

/// The place of a reason among the reasons.
fn place(reason: Reason) -> usize {
    Reason::ALL.iter().position(|other| *other == reason).unwrap_or_default()
}

/// Counts every decision by act and outcome, and every event by kind. An observer: register a clone
/// with the kernel's builder and keep one to read.
///
/// Counting is one uncontended addition on the acting thread's own cache lines; reading sums over
/// the threads and sees each count at some moment of the reading.
///
/// ```
/// use fak_adjudicate::{Counters, Kernel};
/// use fak_abi::{Act, Id, PrincipalSpec, Reason, ToolCall};
/// let counters = Counters::new();
/// let kernel = Kernel::builder().emitter(counters.clone()).build()?;
/// let alpha = kernel.attach(PrincipalSpec::agent(Id::new("alpha")?))?;
/// let _ = alpha.decide(&ToolCall::new(&alpha, Act::Send));
/// assert_eq!(counters.of(Act::Send).denied_for(Reason::DefaultDeny), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Counters(Arc<[Shard]>);

#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    decided: Box<[AtomicU64]>,
    kinds: [AtomicU64; KINDS],
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl Counters {
    /// Counters at zero.
    #[must_use]
    pub fn new() -> Self {
        let shard = |_| Shard {
            decided: (0..ROWS * CELLS).map(|_| AtomicU64::new(0)).collect(),
            kinds: Default::default(),
        };
        Self((0..SHARDS).map(shard).collect())
    }

    /// What became of one act.
    #[must_use]
    pub fn of(&self, act: Act) -> Tally {
        self.row(usize::from(act.code()))
    }

    /// What became of the calls of the host's own tools.
    #[must_use]
    pub fn outside(&self) -> Tally {
        self.row(ROWS - 1)
    }

    /// What became of everything.
    #[must_use]
    pub fn total(&self) -> Tally {
        (0..ROWS).map(|row| self.row(row)).fold(Tally::default(), |mut sum, tally| {
            sum.allowed += tally.allowed;
            sum.held += tally.held;
            for (sum, more) in sum.denied.iter_mut().zip(tally.denied) {
                *sum += more;
            }
            sum
        })
    }

    /// How many events of this kind there were.
    #[must_use]
    pub fn events(&self, kind: EventKind) -> u64 {
        let of = |shard: &Shard| {
            shard.kinds.get(usize::from(kind.code())).map_or(0, |c| c.load(Ordering::Relaxed))
        };
        self.0.iter().map(of).sum()
    }

    fn row(&self, row: usize) -> Tally {
        let sum = |cell: usize| -> u64 {
            let of = |shard: &Shard| {
                shard.decided.get(row * CELLS + cell).map_or(0, |c| c.load(Ordering::Relaxed))
            };
            self.0.iter().map(of).sum()
        };
        Tally { allowed: sum(0), held: sum(1), denied: std::array::from_fn(|reason| sum(2 + reason)) }
    }
}

impl Emitter for Counters {
    fn kinds(&self) -> EventKinds {
        EventKinds::ALL
    }

    fn emit(&self, event: &Event<'_>) {
        let Some(shard) = self.0.get(here()) else { return };
        if let Some(count) = shard.kinds.get(usize::from(event.kind.code())) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let (EventKind::Decide, Some(verdict)) = (event.kind, event.verdict) else { return };
        let row = event.tool.and_then(Tool::act).map_or(ROWS - 1, |act| usize::from(act.code()));
        let cell = match verdict {
            Verdict::Deny { refusal, .. } => 2 + place(refusal.reason),
            verdict => usize::from(!verdict.is_allow()),
        };
        if let Some(count) = shard.decided.get(row * CELLS + cell) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
