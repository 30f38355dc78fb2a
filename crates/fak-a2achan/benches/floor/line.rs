//! What the machine takes to hand a cache line from one core to the other: no floor of ours, but below all of them. Where
//! cores are virtual it changes from second to second, and what is shared by cores changes with it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Hands one line over `iters` times, back and forth between two threads.
pub(crate) fn hand_over(iters: u64) -> Duration {
    let turn = AtomicU64::new(0);
    let play = |mine: u64| {
        for at in (mine..iters).step_by(2) {
            while turn.load(Ordering::Acquire) != at {
                spin_loop();
            }
            turn.store(at + 1, Ordering::Release);
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| play(1));
        play(0);
    });
    begun.elapsed()
}
