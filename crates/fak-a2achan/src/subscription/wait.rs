//! A wait at a subscription (§4.5): until there is a copy, or it is over.

use std::task::{Context, Poll};

use fak_abi::WakeUp;

use super::{How, Subscription};
use crate::delivery::{Delivery, End};

/// A wait at a subscription: takes its waker away when it is dropped.
pub(super) struct Pause<'a> {
    subscription: &'a mut Subscription,
    begun: bool,
    timer: Option<WakeUp>,
}

impl<'a> Pause<'a> {
    pub(super) const fn new(subscription: &'a mut Subscription) -> Self {
        Self { subscription, begun: false, timer: None }
    }

    pub(super) fn poll(&mut self, how: How<'_>, cx: &mut Context<'_>) -> Poll<(Delivery, u64)> {
        let Self { subscription, begun, timer } = self;
        let endpoint = &subscription.endpoint;
        let deadline = how.rider.and_then(|rider| rider.deadline);
        if *begun {
            let cancel = how.rider.and_then(|rider| rider.cancel.as_ref());
            let end = if !endpoint.me().is_attached() {
                Some(End::Detach)
            } else if cancel.is_some_and(fak_abi::Cancel::is_cancelled) {
                Some(End::Cancel)
            } else if deadline.is_some_and(|deadline| endpoint.core().now() >= deadline) {
                Some(End::Timeout)
            } else {
                None
            };
            if let Some(end) = end {
                return Poll::Ready((Delivery::End(end), 0));
            }
        }
        let (delivery, token) = subscription.attempt(how, Some(cx));
        if !delivery.is_empty() {
            return Poll::Ready((delivery, token));
        }
        if !*begun && let Some(account) = endpoint.account() {
            if !account.waits.take(account.limits().waits) {
                return Poll::Ready((subscription.too_many(how), 0));
            }
            *begun = true;
        }
        // Anew at each poll: the task that waits may have changed since the last.
        if let Some(deadline) = deadline
            && let Some(link) = endpoint.core().link()
        {
            *timer = Some(link.timer().wake_at(deadline, cx.waker().clone()));
        }
        Poll::Pending
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.subscription.inbox.stop_waiting();
        if self.begun
            && let Some(account) = self.subscription.endpoint.account()
        {
            account.waits.give();
        }
    }
}
