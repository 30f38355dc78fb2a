//! The protocol in naive form: what may happen and what must come of it, written from the specification's text and
//! not from the code. Plain lists, linear searches, no cleverness.

pub(crate) mod cast;
pub(crate) mod channels;
mod floor;
pub(crate) mod groups;
mod guards;
pub(crate) mod host;
pub(crate) mod layers;
mod owners;
mod pool;
mod receive;
mod requests;
mod room;
mod send;
pub(crate) mod steer;
mod topics;
pub(crate) mod topology;
pub(crate) mod watch;
pub(crate) mod waves;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use super::setup::Setup;
pub(crate) use cast::{Agent, Body, Cap, Scope, Who};
pub(crate) use channels::{Box as Mailbox, Key, Letter, Msg, Sub, Wait};
use host::HostRungs;

/// Everything the model knows.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) setup: Setup,
    pub(crate) now: u64,
    pub(crate) agents: Vec<Agent>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) marks: u64,
    pub(crate) boxes: BTreeMap<Key, Mailbox>,
    /// Keys that somebody made known, ever (§4.3 row 9).
    pub(crate) known: BTreeSet<Key>,
    pub(crate) topics: BTreeMap<Key, Vec<usize>>,
    pub(crate) subs: Vec<Sub>,
    pub(crate) closed: bool,
    /// How many messages were ever placed: a message's order.
    pub(crate) placed: u64,
    /// The product's number for an order, as far as it was seen.
    pub(crate) seqs: BTreeMap<u64, u64>,
    pub(crate) bindings: u64,
    pub(crate) serials: u64,
    pub(crate) books: Books,
    pub(crate) dead: Vec<Letter>,
    pub(crate) memory: Vec<(String, u8, Key, Scope, String)>,
    pub(crate) host: HostRungs,
    pub(crate) cells: Vec<layers::Cell>,
    pub(crate) versions: u64,
    pub(crate) lanes: Vec<layers::LaneLease>,
    pub(crate) fences: u64,
    pub(crate) record: layers::Record,
    /// Guards that were handed out: holder, where it goes back to, and whether they are still held.
    pub(crate) asked: Vec<channels::Asked>,
    /// Requests that were received: by whom, which, and how often each had gone back by then.
    pub(crate) inbox: Vec<(Who, usize, u32)>,
    pub(crate) guards: Vec<(Who, channels::Origin, bool)>,
    pub(crate) statuses: Vec<steer::Status>,
    pub(crate) steers: Vec<steer::Steer>,
    pub(crate) windows: Vec<windows::Window>,
    pub(crate) barriers: Vec<waves::Barrier>,
    pub(crate) groups: Vec<groups::Group>,
    pub(crate) topology: Option<Vec<topology::Edge>>,
    pub(crate) pool: Vec<pool::Blob>,
    pub(crate) pending: Vec<waves::Pending>,
    /// Promises of inboxes that are no more: they count for their senders still.
    pub(crate) orphans: Vec<(usize, Who, u64)>,
    pub(crate) task_watches: Vec<watch::TaskWatching>,
    pub(crate) cell_watches: Vec<watch::CellWatching>,
}

/// What became of every message (§4.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Books {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) held: u64,
    pub(crate) dropped: u64,
    pub(crate) skipped: u64,
    pub(crate) dead: u64,
    pub(crate) queued: u64,
}

impl Model {
    pub(crate) fn new(setup: Setup, now: u64) -> Self {
        Self {
            host: HostRungs::new(&setup),
            topology: setup.edges.then(|| topology::FIRST.to_vec()),
            groups: groups::first(),
            setup,
            now,
            agents: Vec::new(),
            bodies: Vec::new(),
            marks: 0,
            boxes: BTreeMap::new(),
            known: BTreeSet::new(),
            topics: BTreeMap::new(),
            subs: Vec::new(),
            closed: false,
            placed: 0,
            seqs: BTreeMap::new(),
            bindings: 0,
            serials: 0,
            books: Books::default(),
            dead: Vec::new(),
            memory: Vec::new(),
            asked: Vec::new(),
            inbox: Vec::new(),
            guards: Vec::new(),
            statuses: Vec::new(),
            steers: Vec::new(),
            windows: Vec::new(),
            barriers: Vec::new(),
            pool: Vec::new(),
            pending: Vec::new(),
            orphans: Vec::new(),
            task_watches: Vec::new(),
            cell_watches: Vec::new(),
            cells: Vec::new(),
            versions: 0,
            lanes: Vec::new(),
            fences: 0,
            record: layers::Record::default(),
        }
    }
}
