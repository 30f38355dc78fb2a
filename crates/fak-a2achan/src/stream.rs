//! Messages as a stream, and several at once: conveniences over `recv`, each message its own act.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fak_abi::{ChannelKey, Rider};
use futures_core::Stream;

use crate::delivery::Delivery;
use crate::endpoint::Endpoint;
use crate::mailbox::{Mailbox, WaitState};
use crate::recv::Incoming;

/// The messages of a channel, one after the other; see [`Endpoint::messages`] (§4.4).
///
/// # Cancel safety
/// Dropping it, or a future that polls it, loses nothing: what it has not yielded is still queued.
#[must_use = "streams do nothing unless polled"]
pub struct Messages {
    endpoint: Endpoint,
    key: ChannelKey,
    rider: Option<Rider>,
    wait: Option<(Arc<Mailbox>, WaitState)>,
    done: bool,
}

impl Endpoint {
    /// The messages of a channel as a stream. It yields what each receive answers and ends after a
    /// refusal or the end of the wait, which it yields.
    pub fn messages(&self, key: &ChannelKey, rider: Option<&Rider>) -> Messages {
        let (endpoint, key) = (self.clone(), key.clone());
        Messages { endpoint, key, rider: rider.cloned(), wait: None, done: false }
    }

    /// Waits for a message and takes those behind it as well, up to `limit`: what a receive answers,
    /// for each (§4.4). The last may be a refusal. Empty only for a limit of zero.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: it takes nothing before it is ready.
    pub async fn recv_batch(&self, key: &ChannelKey, limit: usize) -> Vec<Delivery> {
        let mut batch = Vec::new();
        if limit == 0 {
            return batch;
        }
        batch.push(self.recv(key).await);
        while batch.len() < limit && matches!(batch.last(), Some(Delivery::Message(_) | Delivery::Hold(_))) {
            // An attempt that can find nothing is not made: it would be an act.
            if self.core().find(key).is_none_or(|mailbox| mailbox.depth() == 0) {
                break;
            }
            match self.try_recv(key) {
                Delivery::Empty => break,
                delivery => batch.push(delivery),
            }
        }
        batch
    }
}

impl Messages {
    fn stop_waiting(&mut self) {
        if let Some((mailbox, mut state)) = self.wait.take() {
            self.endpoint.end_wait(&mailbox, &mut state);
        }
    }
}

impl Stream for Messages {
    type Item = Delivery;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        let this = self.get_mut();
        if this.done {
            return Poll::Ready(None);
        }
        let Messages { endpoint, key, rider, wait, .. } = this;
        let incoming = Incoming { rider: rider.as_ref(), ..Incoming::plain(key) };
        if wait.is_none() {
            match endpoint.box_to_wait_at(key, &incoming) {
                Ok(mailbox) => *wait = Some((mailbox, WaitState::default())),
                Err(delivery) => {
                    this.done = true;
                    return Poll::Ready(Some(delivery));
                }
            }
        }
        let Some((mailbox, state)) = wait else { return Poll::Ready(None) };
        let Poll::Ready((delivery, _)) = endpoint.poll_take(mailbox, &incoming, state, cx) else {
            return Poll::Pending;
        };
        this.stop_waiting();
        if delivery.is_empty() {
            // The mailbox was retired before the wait began: look for the one in its place.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        this.done = matches!(delivery, Delivery::Refuse(_) | Delivery::End(_));
        Poll::Ready(Some(delivery))
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.stop_waiting();
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({} of {:?})", self.key, self.endpoint.me())
    }
}
