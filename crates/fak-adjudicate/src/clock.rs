//! Clocks and timers a host can inject (§2.9): the system's, and one that only moves when told.
//! The one on tokio's clock is in `tokio_clock`; reading time for a purpose is elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fak_abi::{Clock, Timer, Timestamp, WakeUp};
use parking_lot::{Condvar, Mutex};

/// The system's wall clock (§2.9). Not monotonic: whoever sets the system's time moves it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// Wakes waiters by the [`SystemClock`], on one thread that is started by the first wait and ends
/// when the timer is dropped (§2.9). For hosts without an async runtime; on tokio use its clock instead.
#[derive(Default)]
pub struct SystemTimer(Arc<Shared>);

/// A clock, and its timer, that stand still until [`ManualClock::advance`] moves them: for
/// scenarios and tests, where every run must be the same (§2.9). Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use fak_abi::{Clock, Timestamp};
/// use fak_adjudicate::ManualClock;
///
/// let clock = ManualClock::at("2026-01-01T00:00:00Z".parse()?);
/// clock.advance(Duration::from_millis(1500));
/// assert_eq!(clock.now().to_string(), "2026-01-01T00:00:01.500000Z");
/// # Ok::<(), fak_abi::TimestampError>(())
/// ```
#[derive(Clone)]
pub struct ManualClock(Arc<Manual>);

struct Manual {
    micros: AtomicU64,
    queue: Arc<Mutex<WakeQueue>>,
}

/// Wakers by the instant they wait for; those of one instant in the order they came.
#[derive(Default)]
struct WakeQueue {
    entries: BTreeMap<(Timestamp, u64), Waker>,
    last: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<ThreadState>,
    queue: Arc<Mutex<WakeQueue>>,
    changed: Condvar,
}

#[derive(Default)]
struct ThreadState {
    started: bool,
    closed: bool,
    /// Something was queued since the thread last looked.
    dirty: bool,
}

/// Cancels its entry when dropped.
struct Entry {
    queue: Arc<Mutex<WakeQueue>>,
    key: (Timestamp, u64),
}

/// How long the timer's thread sleeps at most while somebody waits, so that a system clock set
/// forward is noticed.
const NAP: Duration = Duration::from_secs(5);

impl WakeQueue {
    fn add(&mut self, at: Timestamp, waker: Waker) -> (Timestamp, u64) {
        self.last += 1;
        self.entries.insert((at, self.last), waker);
        (at, self.last)
    }

    /// Takes out what is due at `now`, in order.
    fn take_due(&mut self, now: Timestamp) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(first) = self.entries.first_entry() {
            if first.key().0 > now {
                break;
            }
            due.push(first.remove());
        }
        due
    }

    fn next(&self) -> Option<Timestamp> {
        self.entries.keys().next().map(|(at, _)| *at)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // A waker's drop is foreign code: it runs after the lock is released.
        let cancelled = self.queue.lock().entries.remove(&self.key);
        drop(cancelled);
    }
}

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        let micros = AtomicU64::new(start.as_micros());
        Self(Arc::new(Manual { micros, queue: Arc::default() }))
    }

    /// Moves the time on by `span` and wakes, on this thread and in order, everybody whose instant
    /// has come. Waits that begin while waking see the new time.
    pub fn advance(&self, span: Duration) {
        let due = {
            let mut queue = self.0.queue.lock();
            let now = self.now().after(span);
            self.0.micros.store(now.as_micros(), Ordering::Release);
            queue.take_due(now)
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// How many waits are pending: zero once everybody who waited has been woken or has given up.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.queue.lock().entries.len()
    }
}

/// Sleeps until something is due, wakes it, and ends once the timer is dropped.
fn run(shared: &Shared) {
    loop {
        let (due, next) = {
            let mut queue = shared.queue.lock();
            (queue.take_due(SystemClock.now()), queue.next())
        };
        for waker in due {
            // One waiter's panic must not cost all others their deadlines.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        let mut state = shared.state.lock();
        if state.closed {
            return;
        }
        if !state.dirty {
            match next {
                None => shared.changed.wait(&mut state),
                Some(at) => {
                    let span = SystemClock.now().until(at).min(NAP);
                    let _ = shared.changed.wait_for(&mut state, span);
                }
            }
        }
        if state.closed {
            return;
        }
        state.dirty = false;
    }
}

impl SystemTimer {
    /// A timer whose thread is not started yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::default().after(since)
    }
}

impl Timer for SystemTimer {
    fn wake_at(&self, at: Timestamp, waker: Waker) -> WakeUp {
        if at <= SystemClock.now() {
            waker.wake();
            return WakeUp::done();
        }
        let key = self.0.queue.lock().add(at, waker.clone());
        let entry = Entry { queue: Arc::clone(&self.0.queue), key };
        let mut state = self.0.state.lock();
        if !state.started {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("fak-timer".to_owned());
            if thread.spawn(move || run(&shared)).is_err() {
                // Without a thread a waiter polls; it does not hang.
                drop(state);
                waker.wake();
                return WakeUp::done();
            }
            state.started = true;
        }
        state.dirty = true;
        drop(state);
        self.0.changed.notify_one();
        WakeUp::new(entry)
    }
}

impl Drop for SystemTimer {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.micros.load(Ordering::Acquire))
    }
}

impl Timer for ManualClock {
    fn wake_at(&self, at: Timestamp, waker: Waker) -> WakeUp {
        let mut queue = self.0.queue.lock();
        // Under the lock that `advance` moves the time under: no wake-up falls between.
        if at <= self.now() {
            drop(queue);
            waker.wake();
            return WakeUp::done();
        }
        let key = queue.add(at, waker);
        WakeUp::new(Entry { queue: Arc::clone(&self.0.queue), key })
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({})", self.now())
    }
}

impl fmt::Debug for SystemTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemTimer")
    }
}

/// A kernel's clock, as rungs are shown it: handing it out reads nothing of the kernel.
pub(crate) struct KernelClock(pub(crate) Arc<dyn Clock>);

impl Clock for KernelClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;

    use super::*;

    struct Note(&'static str, mpsc::Sender<&'static str>);

    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            let _ = self.1.send(self.0);
        }
    }

    fn waker(name: &'static str, to: &mpsc::Sender<&'static str>) -> Waker {
        Arc::new(Note(name, to.clone())).into()
    }

    #[test]
    fn a_manual_clock_wakes_in_order_and_only_what_is_due() {
        let clock = ManualClock::at(Timestamp::from_micros(1000));
        let (to, woken) = mpsc::channel();
        let at = |micros| Timestamp::from_micros(micros);
        let _late = clock.wake_at(at(5000), waker("late", &to));
        let _second = clock.wake_at(at(3000), waker("second", &to));
        let _third = clock.wake_at(at(3000), waker("third", &to));
        let cancelled = clock.wake_at(at(2000), waker("cancelled", &to));
        let _past = clock.wake_at(at(1000), waker("past", &to));
        drop(cancelled);
        clock.advance(Duration::from_micros(1999));
        assert_eq!(woken.try_iter().collect::<Vec<_>>(), ["past"]);
        clock.advance(Duration::from_micros(1));
        assert_eq!(woken.try_iter().collect::<Vec<_>>(), ["second", "third"]);
        assert_eq!((clock.waiting(), clock.clone().now()), (1, at(3000)));
    }

    /// A waker may itself start a wait: it runs outside the lock.
    #[test]
    fn waking_may_wait_again() {
        struct Again(ManualClock, mpsc::Sender<&'static str>);
        impl Wake for Again {
            fn wake(self: Arc<Self>) {
                let _entry = self.0.wake_at(self.0.now(), waker("again", &self.1));
            }
        }
        let clock = ManualClock::at(Timestamp::default());
        let (to, woken) = mpsc::channel();
        let _entry = clock.wake_at(Timestamp::from_micros(1), Arc::new(Again(clock.clone(), to)).into());
        clock.advance(Duration::from_secs(1));
        assert_eq!(woken.try_iter().collect::<Vec<_>>(), ["again"]);
    }

    #[test]
    fn the_system_timer_wakes_on_its_thread_and_ends_with_its_owner() {
        let timer = SystemTimer::new();
        let (to, woken) = mpsc::channel();
        let soon = SystemClock.now().after(Duration::from_millis(2));
        let _far = timer.wake_at(soon.after(Duration::from_secs(3600)), waker("far", &to));
        let _soon = timer.wake_at(soon, waker("soon", &to));
        assert_eq!(woken.recv(), Ok("soon"));
        let _past = timer.wake_at(soon, waker("past", &to));
        assert_eq!(woken.recv(), Ok("past"));
        let shared = Arc::downgrade(&timer.0);
        drop(timer);
        // The thread holds the last count; it lets go without anybody waking it again.
        while shared.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
