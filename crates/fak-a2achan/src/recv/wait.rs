//! Receiving what may still have to come (§4.4). Nothing is settled while a receive waits: each
//! attempt is folded anew, so a policy that was reloaded meanwhile counts.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use fak_abi::{Pass, Reason};

use super::Incoming;
use crate::delivery::{Delivery, End};
use crate::endpoint::Endpoint;
use crate::mailbox::{Found, Mailbox, Quick, WaitState};
use crate::send::refusal;
use crate::sites;

/// A wait has begun, or goes on; or it may not.
type Patience = Result<Poll<(Delivery, u64)>, fak_abi::Refusal>;

impl Endpoint {
    /// One attempt of a receive that waits. The number is the token of a lease.
    pub(crate) fn poll_take(
        &self,
        mailbox: &Arc<Mailbox>,
        incoming: &Incoming<'_>,
        state: &mut WaitState,
        cx: &mut Context<'_>,
    ) -> Poll<(Delivery, u64)> {
        if state.is_begun()
            && let Some(end) = self.end_of_wait(incoming)
        {
            return Poll::Ready((Delivery::End(end), 0));
        }
        if !self.is_free(mailbox, incoming) {
            return self.poll_closely(mailbox, incoming, state, cx);
        }
        match self.pass(&incoming.call(self)) {
            Pass::Allow(_) => match self.glance(mailbox, state, cx) {
                Quick::Entry(entry, wake) => Poll::Ready((self.hand_over_freely(mailbox, entry, wake), 0)),
                Quick::Empty => self.go_on(mailbox, incoming, state, cx).unwrap_or_else(|refusal| {
                    Poll::Ready((Delivery::Refuse(self.refuse_freely(refusal)), 0))
                }),
                Quick::Look => self.poll_closely(mailbox, incoming, state, cx),
            },
            Pass::Refuse(verdict) => Poll::Ready((Delivery::Refuse(verdict), 0)),
            Pass::Closely => self.poll_closely(mailbox, incoming, state, cx),
        }
    }

    /// Why a wait that has begun is over, if nothing at the mailbox says so.
    fn end_of_wait(&self, incoming: &Incoming<'_>) -> Option<End> {
        if !self.me().is_attached() {
            return Some(End::Detach);
        }
        let rider = incoming.rider?;
        if rider.cancel.as_ref().is_some_and(fak_abi::Cancel::is_cancelled) {
            return Some(End::Cancel);
        }
        rider.deadline.is_some_and(|deadline| self.core().now() >= deadline).then_some(End::Timeout)
    }

    /// A look at the front of the queue, which puts a receiver that is new here on the list.
    #[inline]
    fn glance(&self, mailbox: &Mailbox, state: &mut WaitState, cx: &Context<'_>) -> Quick {
        if !state.is_begun() {
            return mailbox.pop_or_wait(self.me(), state, cx.waker());
        }
        match mailbox.pop_woken(self.me(), state) {
            Some((entry, wakes)) => {
                wakes.into_iter().for_each(Waker::wake);
                Quick::Entry(entry, None)
            }
            None => Quick::Look,
        }
    }

    fn poll_closely(
        &self,
        mailbox: &Arc<Mailbox>,
        incoming: &Incoming<'_>,
        state: &mut WaitState,
        cx: &mut Context<'_>,
    ) -> Poll<(Delivery, u64)> {
        let begun = state.is_begun();
        let call = incoming.call(self);
        let permit = match self.admit(&call) {
            Ok(permit) => permit,
            Err(verdict) => return Poll::Ready((Delivery::Refuse(verdict), 0)),
        };
        let quick = if self.is_plain(mailbox, incoming) && !state.is_begun() {
            self.glance(mailbox, state, cx)
        } else {
            Quick::Look
        };
        match quick {
            Quick::Entry(entry, wake) => {
                wake.into_iter().for_each(Waker::wake);
                return Poll::Ready(self.hand_over(&call, permit, mailbox, (entry, 0)));
            }
            Quick::Empty => {}
            Quick::Look => {
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
        match self.go_on(mailbox, incoming, state, cx) {
            Ok(poll) => {
                // Without an audit entry: the act has not happened yet.
                drop(permit);
                poll
            }
            Err(refusal) => Poll::Ready((Delivery::Refuse(self.refuse(permit, refusal)), 0)),
        }
    }

    /// Waits: the receiver is on the mailbox's list.
    fn go_on(
        &self,
        mailbox: &Mailbox,
        incoming: &Incoming<'_>,
        state: &mut WaitState,
        cx: &Context<'_>,
    ) -> Patience {
        if !state.counted
            && let Some(account) = self.account()
        {
            if !account.waits.take(account.limits().waits) {
                mailbox.leave(state);
                return Err(refusal(Reason::RateLimited, sites::WAITS));
            }
            state.counted = true;
        }
        // Detached since it was admitted, and perhaps since those who waited were told.
        if !self.me().is_attached() {
            return Ok(Poll::Ready((Delivery::End(End::Detach), 0)));
        }
        // Anew at each poll: the task that waits may have changed since the last.
        if let Some(deadline) = incoming.rider.and_then(|rider| rider.deadline)
            && let Some(link) = self.core().link()
        {
            state.timer = Some(link.timer().wake_at(deadline, cx.waker().clone()));
        }
        Ok(Poll::Pending)
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
