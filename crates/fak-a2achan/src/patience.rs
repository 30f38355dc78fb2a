//! Sending where there is no room yet (§4.3): waiting for some is no act, so a patient sender burns
//! no folds and no audit entries on retries.

use std::sync::Arc;
use std::task::{Context, Poll};

use fak_abi::{ChannelKey, Ref, Timestamp, Verdict};

use crate::channel::Channel;
use crate::endpoint::Endpoint;
use crate::mailbox::{Mailbox, SpaceState};
use crate::sites;

/// Refused for want of room, which may come.
fn is_full(verdict: &Verdict) -> bool {
    verdict
        .refusal()
        .is_some_and(|refusal| [sites::FULL, sites::SHARE].iter().any(|site| site.site() == refusal.site))
}

/// What a wait for room has come to.
enum Room {
    /// There may be some, or waiting for it is over: try.
    Try,
    /// The deadline came first, or the agent has as many waits as it may (§4.12).
    Late,
    Wait,
}

/// A wait for room: passes its wake-up on when it is over, unless the room was used up.
struct Wait<'a> {
    endpoint: &'a Endpoint,
    mailbox: &'a Arc<Mailbox>,
    deadline: Option<Timestamp>,
    state: SpaceState,
    /// It is counted against its principal (§4.12).
    counted: bool,
}

impl<'a> Wait<'a> {
    fn new(endpoint: &'a Endpoint, mailbox: &'a Arc<Mailbox>, deadline: Option<Timestamp>) -> Self {
        Self { endpoint, mailbox, deadline, state: SpaceState::default(), counted: false }
    }

    fn poll(&mut self, cx: &Context<'_>) -> Room {
        let Self { endpoint, mailbox, deadline, state, counted } = self;
        let Some(account) = endpoint.account() else { return Room::Try };
        // What has had its time takes no room, whether or not anybody has looked.
        endpoint.core().sweep(mailbox);
        if !endpoint.me().is_attached() || mailbox.has_space_or(state, account, cx.waker()) {
            return Room::Try;
        }
        if deadline.is_some_and(|deadline| endpoint.core().now() >= deadline) {
            return Room::Late;
        }
        *counted = *counted || account.waits.take(account.limits().waits);
        if !*counted {
            return Room::Late;
        }
        // Detached while the waker was being left: nobody wakes it any more.
        if !endpoint.me().is_attached() {
            return Room::Try;
        }
        // Anew at each poll: the task that waits may have changed since the last.
        let next = deadline.iter().copied().chain(mailbox.next_expiry()).min();
        if let (Some(next), Some(link)) = (next, endpoint.core().link()) {
            state.timer = Some(link.timer().wake_at(next, cx.waker().clone()));
        }
        Room::Wait
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.mailbox.leave_space(&mut self.state);
        if self.counted
            && let Some(account) = self.endpoint.account()
        {
            account.waits.give();
        }
    }
}

impl Endpoint {
    /// Waits until a send of this agent to `key` would find room, so that a patient sender burns
    /// no folds and no audit entries on retries (§4.3). Not an act; promises nothing. Over at once for an
    /// agent that has as many waits as it may (§4.12).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; a wake-up it had got goes to the next that waits.
    pub async fn ready(&self, key: &ChannelKey) {
        let _ = self.ready_by(key, None).await;
    }

    /// As [`Endpoint::ready`], but no longer than until `deadline`; false if that came first, or there may
    /// be no more waits.
    ///
    /// # Cancel safety
    /// As [`Endpoint::ready`].
    pub async fn ready_by(&self, key: &ChannelKey, deadline: Option<Timestamp>) -> bool {
        let Some(mailbox) = self.core().find(key) else { return true };
        let mut wait = Wait::new(self, &mailbox, deadline);
        std::future::poll_fn(|cx| match wait.poll(cx) {
            Room::Try => Poll::Ready(true),
            Room::Late => Poll::Ready(false),
            Room::Wait => Poll::Pending,
        })
        .await
    }

    /// Sends as soon as there is room, or until `deadline` has passed: the verdict is then the
    /// refusal of the last attempt (§4.3 row 10), as it is at once for an agent that has as many waits as
    /// it may (§4.12). Only attempts with a chance are folded.
    ///
    /// # Cancel safety
    /// Dropping the future sends nothing. Once it is ready, the message is sent or refused.
    pub async fn send_wait(&self, key: &ChannelKey, body: &Ref, deadline: Option<Timestamp>) -> Verdict {
        loop {
            let verdict = self.send(key, body);
            if !is_full(&verdict) || !self.ready_by(key, deadline).await {
                return verdict;
            }
        }
    }
}

impl Channel {
    /// Sends as soon as there is room, or until `deadline` has passed; see [`Endpoint::send_wait`].
    ///
    /// # Cancel safety
    /// As [`Endpoint::send_wait`].
    pub async fn send_wait(&self, body: &Ref, deadline: Option<Timestamp>) -> Verdict {
        // Apart from the waiting, so that what is answered at once is not kept in between.
        let verdict = self.send(body);
        if !is_full(&verdict) {
            return verdict;
        }
        self.send_with_room(body, deadline, verdict).await
    }

    /// As [`Self::send_wait`], after an attempt that was refused for want of room.
    async fn send_with_room(&self, body: &Ref, deadline: Option<Timestamp>, mut verdict: Verdict) -> Verdict {
        if let Some(mailbox) = self.mailbox() {
            let mut wait = Wait::new(self.endpoint(), mailbox, deadline);
            let sent = std::future::poll_fn(|cx| {
                loop {
                    match wait.poll(cx) {
                        // The key leads elsewhere by now.
                        Room::Try if mailbox.has_ended() => return Poll::Ready(None),
                        Room::Try => verdict = self.send(body),
                        Room::Late => return Poll::Ready(Some(verdict.clone())),
                        Room::Wait => return Poll::Pending,
                    }
                    if !is_full(&verdict) {
                        return Poll::Ready(Some(verdict.clone()));
                    }
                }
            });
            if let Some(verdict) = sent.await {
                return verdict;
            }
        }
        self.endpoint().send_wait(self.key(), body, deadline).await
    }
}
