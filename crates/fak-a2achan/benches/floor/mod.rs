//! Floors: what the least channel costs on which each act is still folded over two rungs. A ring behind a lock, the calls, the
//! walks of the rungs through `dyn`, and nothing else: no capability, no flow rule, no choice among messages, no statistics, no
//! limits, no sequence, no verdict. Where a row is short, the distance to its floor is what the protocol costs, and the floor's
//! distance to the rival is what folding costs at all.

mod line;
mod listed;
mod refusing;
mod runs;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::hint::black_box;
use std::sync::Arc;
use std::task::{Poll, Waker};

use fak_a2achan::Endpoint;
use fak_abi::{Act, Address, Adjudicator, ChannelKey, Desk, Opinion, Ref, ToolCall};
use fak_adjudicate::{Kernel, SystemClock};
use parking_lot::Mutex;

pub(crate) use self::line::hand_over;
pub(crate) use self::listed::Listed;
pub(crate) use self::refusing::Refusing;
pub(crate) use self::runs::{fan_in, ping_pong, requests};
use crate::{Plain, plain};

/// What every act is folded over.
#[derive(Clone)]
pub(crate) struct Walk {
    kernel: Arc<Kernel>,
    rungs: [Arc<dyn Adjudicator>; 2],
}

impl Walk {
    pub(crate) fn new(kernel: &Arc<Kernel>, rung: impl Fn() -> Arc<dyn Adjudicator>) -> Self {
        Self { kernel: Arc::clone(kernel), rungs: [rung(), rung()] }
    }

    fn allows(&self, by: &Endpoint, act: Act, at: &ChannelKey, body: Option<&Ref>) -> bool {
        let mut call = ToolCall::new(by.agent(), act).address(Address::Channel(at));
        if let Some(body) = body {
            call = call.args(body);
        }
        let desk = Desk { resolver: &*self.kernel, clock: &SystemClock };
        self.rungs.iter().all(|rung| matches!(rung.judge(black_box(&call), &desk), Opinion::Allow))
    }
}

/// A bounded channel with one receiver.
pub(crate) struct Floor<M = Plain> {
    walk: Walk,
    key: ChannelKey,
    capacity: usize,
    ring: Mutex<Ring<M>>,
}

struct Ring<M> {
    queue: VecDeque<M>,
    receiver: Option<Waker>,
    senders: VecDeque<Waker>,
}

/// A question, and the channel that its answer alone comes by.
pub(crate) struct Question {
    asked: Plain,
    back: Arc<Floor>,
}

impl<M> Floor<M> {
    pub(crate) fn new(walk: &Walk, key: &ChannelKey, capacity: usize) -> Arc<Self> {
        let ring = Ring { queue: VecDeque::new(), receiver: None, senders: VecDeque::new() };
        Arc::new(Self { walk: walk.clone(), key: key.clone(), capacity, ring: Mutex::new(ring) })
    }

    fn put(&self, message: M, sender: Option<&Waker>) -> Result<(), M> {
        let mut ring = self.ring.lock();
        if ring.queue.len() == self.capacity {
            ring.senders.extend(sender.cloned());
            return Err(message);
        }
        ring.queue.push_back(message);
        let receiver = ring.receiver.take();
        drop(ring);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Ok(())
    }

    pub(crate) fn try_recv(&self, by: &Endpoint) -> Option<M> {
        self.walk.allows(by, Act::Recv, &self.key, None).then(|| self.take(None)).flatten()
    }

    fn take(&self, receiver: Option<&Waker>) -> Option<M> {
        let mut ring = self.ring.lock();
        let taken = ring.queue.pop_front();
        if taken.is_none() {
            ring.receiver = receiver.cloned();
        }
        let sender = ring.senders.pop_front();
        drop(ring);
        if let Some(sender) = sender {
            sender.wake();
        }
        taken
    }

    pub(crate) async fn recv(&self, by: &Endpoint) -> M {
        assert!(self.walk.allows(by, Act::Recv, &self.key, None));
        poll_fn(|cx| self.take(Some(cx.waker())).map_or(Poll::Pending, Poll::Ready)).await
    }
}

impl Floor {
    pub(crate) fn send(&self, by: &Endpoint, body: &Ref) -> bool {
        self.walk.allows(by, Act::Send, &self.key, Some(body)) && self.put(plain(by, body), None).is_ok()
    }

    /// Waits for room, and is folded once.
    pub(crate) async fn send_wait(&self, by: &Endpoint, body: &Ref) {
        assert!(self.walk.allows(by, Act::Send, &self.key, Some(body)));
        let mut message = Some(plain(by, body));
        poll_fn(|cx| match message.take().map(|message| self.put(message, Some(cx.waker()))) {
            Some(Err(back)) => {
                message = Some(back);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
        .await;
    }
}

impl Floor<Question> {
    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, by: &Endpoint, body: &Ref) -> Plain {
        assert!(self.walk.allows(by, Act::Request, &self.key, Some(body)));
        let back = Floor::new(&self.walk, &self.key, 1);
        let question = Question { asked: plain(by, body), back: Arc::clone(&back) };
        assert!(self.put(question, None).is_ok());
        back.recv(by).await
    }
}

impl Question {
    pub(crate) fn reply(&self, by: &Endpoint, body: &Ref) -> bool {
        black_box(&self.asked);
        let Floor { walk, key, .. } = &*self.back;
        walk.allows(by, Act::Reply, key, Some(body)) && self.back.put(plain(by, body), None).is_ok()
    }
}

/// A topic: one walk a publication, which is kept once for sixteen inboxes, and one walk each time an inbox is drained.
pub(crate) struct Topic {
    walk: Walk,
    key: ChannelKey,
    logs: Vec<Mutex<Log>>,
}

/// What some of sixteen have yet to read.
#[derive(Default)]
struct Log {
    queue: VecDeque<(Arc<Plain>, u32)>,
    first: u64,
    next: Vec<u64>,
}

/// How many inboxes share a log.
const SEATS: usize = 16;

impl Topic {
    pub(crate) fn new(walk: &Walk, key: &ChannelKey, inboxes: usize) -> Self {
        let log = |n: usize| Log { next: vec![0; SEATS.min(inboxes - n)], ..Log::default() };
        let logs = (0..inboxes).step_by(SEATS).map(|n| Mutex::new(log(n))).collect();
        Self { walk: walk.clone(), key: key.clone(), logs }
    }

    pub(crate) fn publish(&self, by: &Endpoint, body: &Ref) -> bool {
        let copy = Arc::new(plain(by, body));
        for log in &self.logs {
            let mut log = log.lock();
            let readers = log.next.len() as u32;
            log.queue.push_back((Arc::clone(&copy), readers));
        }
        self.walk.allows(by, Act::Publish, &self.key, Some(body))
    }

    /// Everything that is there for an inbox; folded, unless nobody asks.
    pub(crate) fn drain(&self, inbox: usize, by: Option<&Endpoint>, into: &mut Vec<Arc<Plain>>) {
        if by.is_some_and(|by| !self.walk.allows(by, Act::Recv, &self.key, None)) {
            return;
        }
        let log = &mut *self.logs[inbox / SEATS].lock();
        let next = &mut log.next[inbox % SEATS];
        let read = (*next - log.first) as usize;
        *next = log.first + log.queue.len() as u64;
        into.extend(log.queue.range_mut(read..).map(|(copy, left)| {
            *left -= 1;
            Arc::clone(copy)
        }));
        while log.queue.front().is_some_and(|(_, left)| *left == 0) {
            log.queue.pop_front();
            log.first += 1;
        }
    }
}
