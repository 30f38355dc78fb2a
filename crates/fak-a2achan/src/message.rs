//! What a receiver gets: the message, with its provenance unchanged (§4.2).

use std::fmt;
use std::sync::Arc;

use fak_abi::{Address, Digest, Principal, Ref, ShareScope, Taint, Timestamp, Verdict};

use crate::delivery::End;
use crate::entry::Entry;
use crate::topic::Issue;

/// A message that was received (§4.2).
pub struct Message {
    content: Content,
    /// The incarnation that received it.
    receiver: u64,
    missed: u64,
    /// The request it answers; 0 for none.
    answers: u64,
}

/// A message of a mailbox, or one copy of a publication.
enum Content {
    Own(Entry),
    /// And how often it was put back.
    Shared(Arc<Issue>, u32),
}

impl Message {
    #[inline]
    pub(crate) const fn new(entry: Entry, receiver: &Principal, missed: u64) -> Self {
        Self { content: Content::Own(entry), receiver: receiver.incarnation(), missed, answers: 0 }
    }

    pub(crate) const fn shared(
        issue: Arc<Issue>,
        receiver: &Principal,
        (missed, returns): (u64, u32),
    ) -> Self {
        let content = Content::Shared(issue, returns);
        Self { content, receiver: receiver.incarnation(), missed, answers: 0 }
    }

    /// The answer to the request of that number.
    #[inline]
    pub(crate) const fn answer(entry: Entry, receiver: &Principal, request: u64) -> Self {
        Self { content: Content::Own(entry), receiver: receiver.incarnation(), missed: 0, answers: request }
    }

    pub(crate) fn entry(&self) -> &Entry {
        match &self.content {
            Content::Own(entry) => entry,
            Content::Shared(issue, _) => issue.entry(),
        }
    }

    pub(crate) const fn receiver(&self) -> u64 {
        self.receiver
    }

    /// Who sent it.
    #[must_use]
    pub fn from(&self) -> &Arc<Principal> {
        self.entry().route.from()
    }

    /// Where it was sent or published.
    #[must_use]
    pub fn to(&self) -> Address<'_> {
        self.entry().route.to().view()
    }

    /// What it says. Read it with the receiver's handle.
    #[must_use]
    pub fn body(&self) -> &Ref {
        &self.entry().body
    }

    /// What else rides along: the open tasks of a window that was handed over (§4.8).
    #[must_use]
    pub fn parts(&self) -> &[Ref] {
        self.entry().extra.as_ref().map_or(&[], |extra| &extra.parts)
    }

    /// Its number: later messages of a mailbox have higher ones.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.entry().seq
    }

    /// The number of the request it answers.
    #[must_use]
    pub fn in_reply_to(&self) -> Option<u64> {
        (self.answers != 0).then_some(self.answers)
    }

    /// When it would have become a dead letter, if it had a time to live.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.entry().expires()
    }

    /// True if it is a request, so that it can be answered (§4.7).
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.entry().extra.as_ref().is_some_and(|extra| extra.answer.is_some())
    }

    /// How many copies this subscription lost since the last one it received (§4.5).
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// How often it was put back before, for a leased message (§4.4).
    #[must_use]
    pub fn redeliveries(&self) -> u32 {
        match &self.content {
            Content::Own(entry) => entry.extra.as_ref().map_or(0, |extra| extra.returns),
            Content::Shared(_, returns) => *returns,
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("seq", &self.seq())
            .field("from", self.from().id())
            .field("to", &self.to())
            .field("body", self.body())
            .finish_non_exhaustive()
    }
}

/// What the receiver of a message that was held is told: everything but the body (§4.4).
#[derive(Debug, Clone)]
pub struct HeldNotice {
    /// Who sent it.
    pub from: Arc<Principal>,
    /// The number of the message.
    pub seq: u64,
    /// The digest of the body.
    pub digest: Digest,
    /// The length of the body, in bytes.
    pub len: usize,
    /// The taint of the body.
    pub taint: Taint,
    /// The scope of the body.
    pub scope: ShareScope,
    /// `quarantine`, by whoever held it.
    pub verdict: Verdict,
}

/// A message that could not be delivered (§4.10).
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// Who sent it.
    pub from: Arc<Principal>,
    /// Where it was sent or published.
    pub to: fak_abi::OwnedAddress,
    /// Its number.
    pub seq: u64,
    /// What it said.
    pub body: Ref,
    /// Why it could not be delivered.
    pub cause: Cause,
}

/// Why a message became a dead letter (§4.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its time to live was over.
    Expire,
    /// The answer came when nobody waited any more.
    Late,
    /// Whoever bound the key may not read it.
    Bind,
    /// It was put back too often.
    Wear,
    /// What it was queued at ended.
    End(End),
    /// The member it was for was gone (§6.2).
    Gone,
    /// It was superseded, or acted on already (§4.9).
    Supersede,
}

impl Cause {
    /// The word that audit entries carry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expire => "expired",
            Self::Late => "late",
            Self::Bind => "bound",
            Self::Wear => "redelivered",
            Self::End(end) => end.name(),
            Self::Gone => "gone",
            Self::Supersede => "superseded",
        }
    }
}
