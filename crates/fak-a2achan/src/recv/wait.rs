//! Receiving what may still have to come (§4.4). Nothing is settled while a receive waits: each
//! attempt is folded anew, so a policy that was reloaded meanwhile counts.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fak_abi::{Act, Address, ChannelKey, Pass, Reason, Refusal, Rider, ToolCall};

use super::Incoming;
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::mailbox::{Found, Mailbox, Quick, Try, WaitState};
use crate::message::Message;
use crate::send::refusal;
use crate::sites;

/// Why a wait does not go on.
enum Stop {
    Refuse(Refusal),
    End(End),
}

impl Endpoint {
    /// One attempt of a receive that waits. The number is the token of a lease.
    pub(crate) fn poll_take(
        &self,
        mailbox: &Arc<Mailbox>,
        incoming: &Incoming<'_>,
        state: &mut WaitState,
        cx: &mut Context<'_>,
    ) -> Poll<(Delivery, u64)> {
        let begun = state.is_begun();
        if begun && let Some(end) = self.end_of_wait(incoming.rider) {
            return Poll::Ready((Delivery::End(end), 0));
        }
        let call = incoming.call(self);
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Poll::Ready((Delivery::Refuse(verdict), 0)),
        };
        let quick = if self.is_plain(mailbox, incoming) {
            self.glance(mailbox, Try::All, state, cx)
        } else {
            Quick::Look
        };
        match quick {
            Quick::Trial(entry) => {
                return Poll::Ready(self.hand_over(&call, permit, mailbox, (entry, 0)));
            }
            Quick::Empty => {}
            Quick::Entry(..) | Quick::Look => {
                let (sought, unlinked) = self.look(mailbox, incoming, Some((state, cx)));
                match sought.found {
                    Found::Nothing if begun || !unlinked => {}
                    // The mailbox was retired for want of use: the wait goes on at the one that takes
                    // its place, because nobody else's end is this waiter's.
                    Found::End(End::Close) if begun && !self.core().is_closed() => {
                        return Poll::Ready((Delivery::Empty, 0));
                    }
                    Found::End(end) if begun => return Poll::Ready((Delivery::End(end), 0)),
                    found => return Poll::Ready(self.conclude(&call, permit, mailbox, found, unlinked)),
                }
            }
        }
        // A permit that is dropped leaves no audit entry: the act has not happened yet.
        match self.stop_waiting(mailbox, incoming.rider, state, cx) {
            None => Poll::Pending,
            Some(Stop::End(end)) => Poll::Ready((Delivery::End(end), 0)),
            Some(Stop::Refuse(refusal)) => Poll::Ready((Delivery::Refuse(self.refuse(permit, refusal)), 0)),
        }
    }

    /// Why a wait that has begun is over, if nothing at the mailbox says so.
    #[inline]
    fn end_of_wait(&self, rider: Option<&Rider>) -> Option<End> {
        if !self.me().is_attached() {
            return Some(End::Detach);
        }
        let rider = rider?;
        if rider.cancel.as_ref().is_some_and(fak_abi::Cancel::is_cancelled) {
            return Some(End::Cancel);
        }
        rider.deadline.is_some_and(|deadline| self.core().now() >= deadline).then_some(End::Timeout)
    }

    /// A look at the front of the queue, which puts a receiver that is new here on the list.
    #[inline]
    fn glance(&self, mailbox: &Mailbox, tries: Try, state: &mut WaitState, cx: &Context<'_>) -> Quick {
        if state.is_begun() {
            mailbox.pop_woken(self.me(), tries, state)
        } else {
            mailbox.pop_or_wait(self.me(), tries, state, cx.waker())
        }
    }

    /// The receiver is on the mailbox's list. Why it may not wait after all, if it may not.
    #[inline]
    fn stop_waiting(
        &self,
        mailbox: &Mailbox,
        rider: Option<&Rider>,
        state: &mut WaitState,
        cx: &Context<'_>,
    ) -> Option<Stop> {
        if !state.counted
            && let Some(account) = self.account()
        {
            if !account.waits.take(account.limits().waits) {
                mailbox.leave(state);
                return Some(Stop::Refuse(refusal(Reason::RateLimited, sites::WAITS)));
            }
            state.counted = true;
        }
        // Detached since it was admitted, and perhaps since those who waited were told.
        if !self.me().is_attached() {
            return Some(Stop::End(End::Detach));
        }
        // Anew at each poll: the task that waits may have changed since the last.
        if let Some(deadline) = rider.and_then(|rider| rider.deadline)
            && let Some(link) = self.core().link()
        {
            state.timer = Some(link.timer().wake_at(deadline, cx.waker().clone()));
        }
        None
    }

    /// The wait is over, one way or the other.
    pub(crate) fn end_wait(&self, mailbox: &Mailbox, state: &mut WaitState) {
        mailbox.leave(state);
        if std::mem::take(&mut state.counted)
            && let Some(account) = self.account()
        {
            account.waits.give();
        }
    }
}

/// A plain receive that waits. A future by hand, because this is a hot path: what it hands over is
/// written once, where the caller wants it.
///
/// Dropping it loses nothing: no message has been taken, and a wake-up it had got goes to the next
/// waiter.
pub(crate) struct Receiving<'a> {
    endpoint: &'a Endpoint,
    key: &'a ChannelKey,
    at: At<'a>,
    state: WaitState,
}

/// The mailbox that is waited at, once it is known.
enum At<'a> {
    Nowhere,
    Hand(&'a Arc<Mailbox>),
    Own(Arc<Mailbox>),
}

impl At<'_> {
    #[inline]
    fn mailbox(&self) -> Option<&Arc<Mailbox>> {
        match self {
            Self::Nowhere => None,
            Self::Hand(mailbox) => Some(mailbox),
            Self::Own(mailbox) => Some(mailbox),
        }
    }
}

impl<'a> Receiving<'a> {
    /// At `at_hand`, if that is known, or wherever the key leads.
    pub(crate) fn new(
        endpoint: &'a Endpoint,
        key: &'a ChannelKey,
        at_hand: Option<&'a Arc<Mailbox>>,
    ) -> Self {
        let at = at_hand.map_or(At::Nowhere, At::Hand);
        Self { endpoint, key, at, state: WaitState::default() }
    }

    #[cold]
    fn poll_closely(&mut self, cx: &mut Context<'_>) -> Poll<Delivery> {
        let incoming = Incoming::plain(self.key);
        loop {
            let found;
            let mailbox = match self.at.mailbox() {
                Some(mailbox) => mailbox,
                None => match self.endpoint.box_to_wait_at(self.key, &incoming) {
                    Ok(mailbox) => {
                        found = mailbox;
                        &found
                    }
                    Err(delivery) => return Poll::Ready(delivery),
                },
            };
            match self.endpoint.poll_take(mailbox, &incoming, &mut self.state, cx) {
                // A wait finds nothing only where the mailbox was retired before it began.
                Poll::Ready((Delivery::Empty, _)) => {
                    self.endpoint.end_wait(mailbox, &mut self.state);
                    self.state = WaitState::default();
                    self.at = At::Nowhere;
                }
                Poll::Ready((delivery, _)) => {
                    // So that the wait is ended where it was, whether or not it had begun.
                    self.endpoint.end_wait(mailbox, &mut self.state);
                    return Poll::Ready(delivery);
                }
                Poll::Pending => {
                    if self.at.mailbox().is_none() {
                        self.at = At::Own(Arc::clone(mailbox));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Future for Receiving<'_> {
    type Output = Delivery;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Delivery> {
        let this = self.get_mut();
        let Self { endpoint, key, at, state } = this;
        let Some(mailbox) = at.mailbox() else { return this.poll_closely(cx) };
        if state.is_begun() && !endpoint.me().is_attached() || !endpoint.is_free(mailbox) {
            return this.poll_closely(cx);
        }
        let call = ToolCall::new(endpoint.agent(), Act::Recv).address(Address::Channel(key));
        match endpoint.pass(&call) {
            Pass::Allow(_) => {}
            Pass::Refuse(verdict) => return Poll::Ready(Delivery::Refuse(verdict)),
            Pass::Closely => return this.poll_closely(cx),
        }
        match endpoint.glance(mailbox, Try::Requests, state, cx) {
            Quick::Entry(entry, None) => {
                Poll::Ready(Delivery::Message(Message::new(entry, endpoint.me(), 0)))
            }
            Quick::Entry(entry, wake) => Poll::Ready(endpoint.wake_and_hand_over(entry, wake)),
            Quick::Trial(entry) => Poll::Ready(endpoint.hand_over_request(mailbox, entry)),
            Quick::Empty => match endpoint.stop_waiting(mailbox, None, state, cx) {
                None => Poll::Pending,
                Some(Stop::End(end)) => Poll::Ready(Delivery::End(end)),
                Some(Stop::Refuse(refusal)) => Poll::Ready(Delivery::Refuse(endpoint.refuse_freely(refusal))),
            },
            Quick::Look => this.poll_closely(cx),
        }
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        if let Some(mailbox) = self.at.mailbox() {
            self.endpoint.end_wait(mailbox, &mut self.state);
        }
    }
}
