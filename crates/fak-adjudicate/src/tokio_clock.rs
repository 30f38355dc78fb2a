//! A clock and timer on tokio's time, for hosts that run on tokio. Follows `tokio::time::pause`,
//! so that tests with paused time run at once.

use std::fmt;
use std::task::Waker;

use fak_abi::{Clock, Timer, Timestamp, WakeUp};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// Time as one tokio runtime counts it, from an instant the host names (§2.9).
#[derive(Clone)]
pub struct TokioClock {
    runtime: Handle,
    start: Timestamp,
    began: Instant,
}

/// Ends the waiting task when dropped.
struct Abort(AbortHandle);

impl TokioClock {
    /// A clock that stands at `start` now and runs with the time of `runtime`, whose time driver
    /// must be enabled.
    #[must_use]
    pub fn new(runtime: Handle, start: Timestamp) -> Self {
        let began = within(&runtime);
        Self { runtime, start, began }
    }
}

/// The runtime's present instant; paused time is known only inside it.
fn within(runtime: &Handle) -> Instant {
    let _inside = runtime.enter();
    Instant::now()
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.start.after(within(&self.runtime).saturating_duration_since(self.began))
    }
}

impl Timer for TokioClock {
    /// One task a wait. On a runtime that has shut down nothing is ever woken.
    fn wake_at(&self, at: Timestamp, waker: Waker) -> WakeUp {
        let when = self.began.checked_add(self.start.until(at));
        if at <= self.now() {
            waker.wake();
            return WakeUp::done();
        }
        // An instant this machine cannot count to never comes.
        let Some(when) = when else { return WakeUp::done() };
        let task = self.runtime.spawn(async move {
            sleep_until(when).await;
            waker.wake();
        });
        WakeUp::new(Abort(task.abort_handle()))
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for TokioClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokioClock({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    use super::*;

    async fn until(clock: &TokioClock, at: Timestamp) {
        let mut held = None;
        poll_fn(|cx| {
            if clock.now() >= at {
                return Poll::Ready(());
            }
            held = Some(clock.wake_at(at, cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn paused_time_moves_it_and_wakes_its_waiters() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = TokioClock::new(Handle::current(), start);
        let hour = start.after(Duration::from_secs(3600));
        until(&clock, hour).await;
        // tokio's timer counts in milliseconds.
        assert!(clock.now() >= hour && clock.now() <= hour.after(Duration::from_millis(2)));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(clock.now() >= hour.after(Duration::from_secs(5)));
        until(&clock, start).await;
    }
}
