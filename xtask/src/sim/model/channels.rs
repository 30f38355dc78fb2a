//! What the model of the channels is made of: mailboxes, messages, subscriptions, waits and requests, as lists.

use fak_abi::Reason;

use super::{Body, Who};

/// A key: locale and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) locale: &'static str,
    pub(crate) id: String,
}

impl Key {
    pub(crate) fn text(&self) -> String {
        format!("{}:{}", self.locale, self.id)
    }
}

/// Whose key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Nobody,
    Session(Who),
    Reserved(Who),
    /// For one act, and for nobody else to receive at.
    OneActOnly(Who),
}

/// A message that was accepted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Msg {
    pub(crate) order: u64,
    pub(crate) from: Who,
    pub(crate) body: Body,
    pub(crate) expires: Option<u64>,
    /// How often it was put back (§4.4).
    pub(crate) returns: u32,
    /// The request that it is (§4.7).
    pub(crate) request: Option<usize>,
    /// The texts of what rides along (§4.8).
    pub(crate) parts: Vec<String>,
}

/// A request and its private inbox (§4.7).
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) who: Who,
    pub(crate) key: Key,
    pub(crate) deadline: Option<u64>,
    /// The right to answer is used up.
    pub(crate) answered: bool,
    /// How often it was received under a guard and went back.
    pub(crate) returns: u32,
    pub(crate) answer: Option<Msg>,
    /// It was taken under a guard.
    pub(crate) leased: Option<Lease>,
    pub(crate) taken: bool,
    pub(crate) end: Option<&'static str>,
    /// Its requester does nothing until it is answered: whom it waits for, once that is known.
    pub(crate) blocking: Option<Option<Who>>,
    /// Who alone can receive it.
    pub(crate) only: Option<Who>,
}

/// What a message that was received under a guard goes back to (§4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Mailbox(Key),
    Sub(usize),
    Answer(usize),
}

/// A message that somebody received and has not acknowledged (§4.4).
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) token: usize,
    pub(crate) holder: Who,
    pub(crate) until: u64,
    pub(crate) msg: Msg,
}

/// A mailbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct Box {
    pub(crate) queue: Vec<Msg>,
    /// Received under a guard: they keep their slots.
    pub(crate) leased: Vec<Lease>,
    pub(crate) binder: Option<Who>,
    /// The number of the binding, among all there ever were.
    pub(crate) binding: u64,
    pub(crate) reserved: Option<Who>,
    /// Counts changes of who may receive here.
    pub(crate) epoch: u32,
    pub(crate) creator: Option<Who>,
    pub(crate) kept: bool,
    pub(crate) received: u64,
    /// Which of all mailboxes that ever were.
    pub(crate) serial: u64,
    /// Slots that are promised to somebody: to whom, and for how many bytes (§6.2).
    pub(crate) promised: Vec<(usize, Who, u64)>,
}

/// A message that could not be delivered.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) from: Who,
    pub(crate) cause: &'static str,
}

/// A subscription.
#[derive(Debug, Clone)]
pub(crate) struct Sub {
    pub(crate) who: Who,
    pub(crate) key: Key,
    pub(crate) queue: Vec<Msg>,
    /// Received under a guard: they keep their slots.
    pub(crate) leased: Vec<Lease>,
    pub(crate) missed: u64,
    pub(crate) open: bool,
    /// Why it ended.
    pub(crate) end: &'static str,
}

/// A receive that waits, at a mailbox or a subscription.
#[derive(Debug, Clone)]
pub(crate) struct Wait {
    pub(crate) who: Who,
    pub(crate) key: Key,
    pub(crate) sub: Option<usize>,
    pub(crate) deadline: Option<u64>,
    pub(crate) cancelled: bool,
    /// The mailbox and its epoch when it was last polled, once it waits.
    pub(crate) begun: Option<(u64, u32)>,
    /// Its mailbox is no more.
    pub(crate) displaced: bool,
    /// It receives under a guard of so many microseconds.
    pub(crate) lease: Option<u64>,
    /// It waits for something else than a message.
    pub(crate) what: What,
}

/// What a future waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum What {
    #[default]
    Message,
    /// Room for this body (§4.3).
    Room(usize),
    /// The end of this barrier (§6.5).
    Barrier(usize),
    /// The next event of this watch (§5.9).
    Watch(usize),
}

impl Wait {
    /// A wait that has not begun.
    pub(crate) const fn new(who: Who, key: Key, what: What) -> Self {
        Self {
            who,
            key,
            sub: None,
            deadline: None,
            cancelled: false,
            begun: None,
            displaced: false,
            lease: None,
            what,
        }
    }

    /// True if it waits for a message, at a mailbox or a subscription.
    pub(crate) fn is_receive(&self) -> bool {
        self.what == What::Message
    }

    /// True if it waits for a message at a mailbox.
    pub(crate) fn is_at_mailbox(&self) -> bool {
        self.is_receive() && self.sub.is_none()
    }
}

impl Box {
    /// Slots that are taken or promised.
    pub(crate) fn taken(&self) -> usize {
        self.all().count() + self.promised.len()
    }

    /// Every message that has a slot here.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Msg> {
        self.queue.iter().chain(self.leased.iter().map(|lease| &lease.msg))
    }

    /// Puts a message back at its place.
    pub(super) fn put_back(&mut self, msg: Msg) {
        put_back(&mut self.queue, msg);
    }
}

/// Puts a message back at its place.
pub(super) fn put_back(queue: &mut Vec<Msg>, msg: Msg) {
    let at = queue.partition_point(|other| other.order < msg.order);
    queue.insert(at, msg);
}

impl Sub {
    /// Every copy that has a slot here.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Msg> {
        self.queue.iter().chain(self.leased.iter().map(|lease| &lease.msg))
    }
}

/// What a receive comes to.
#[derive(Debug, Clone)]
pub(crate) enum Got {
    Message(Msg),
    /// Held at the door.
    Held(Msg),
    Empty,
    Refused(Reason),
    End(&'static str),
    /// It waits on.
    Waits,
    /// A send that waited was answered so.
    Sent(Result<(), Reason>),
    /// A barrier that was waited for came to this, or its deadline passed.
    Stands,
    /// A watch has something to say.
    Watched,
}

/// What a publication comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Receipt {
    pub(crate) fanout: u64,
    pub(crate) skipped: u64,
    pub(crate) dropped: u64,
}
