//! Futures that are polled by hand: which are woken is known, which of them goes next is the seed's choice.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use fak_a2achan::{Delivery, LeasedMessage, Subscription};
use fak_abi::{Cancel, Outcome, Verdict};
use fak_comm::BarrierReport;
use fak_sharedtask::{TaskWatch, Watched};

use crate::sim::model::Wait;

/// What a future gives back.
pub(crate) enum Done {
    Recv(Delivery),
    Leased(Delivery<LeasedMessage>),
    Sub(Box<Subscription>, Delivery),
    LeasedSub(Box<Subscription>, Delivery<LeasedMessage>),
    Sent(Verdict),
    Barrier(Outcome<BarrierReport>),
    Watched(Box<TaskWatch>, Outcome<Watched>),
}

/// Says that its future was woken.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A future under way, and what the model says of it.
pub(crate) struct Task {
    future: Pin<Box<dyn Future<Output = Done>>>,
    flag: Arc<Flag>,
    pub(crate) cancel: Cancel,
    pub(crate) wait: Wait,
}

impl Task {
    /// A future that has not been polled: it is runnable.
    pub(crate) fn new(future: impl Future<Output = Done> + 'static, cancel: Cancel, wait: Wait) -> Self {
        Self { future: Box::pin(future), flag: Arc::new(Flag(AtomicBool::new(true))), cancel, wait }
    }

    /// True once it was woken, until it is polled.
    pub(crate) fn is_woken(&self) -> bool {
        self.flag.0.load(Ordering::Relaxed)
    }

    /// Polls it.
    pub(crate) fn poll(&mut self) -> Poll<Done> {
        self.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.flag));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}
