//! Which part of a split structure a thread works on, so that acting threads share no cache line.

/// How many parts there are.
pub(crate) const SHARDS: usize = 8;

/// Stacks of two threads lie at least this many bits apart, as a rule.
const STACK_BITS: u32 = 21;

/// The part of this thread, below [`SHARDS`]: a guess from where its stack lies, which costs nothing
/// and needs no state. Two threads may have the same, and one thread two; nothing rests on it but
/// speed.
#[inline]
pub(crate) fn here() -> usize {
    let local = 0_u8;
    let stack = std::ptr::from_ref(&local).addr() as u64 >> STACK_BITS;
    // Fibonacci hashing; the top three bits.
    (stack.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_spread_and_each_stays_where_it_is() {
        let held = std::sync::Barrier::new(16);
        let places: std::collections::HashSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        let first = here();
                        assert!(first < SHARDS && (0..100).all(|_| here() == first));
                        // All stacks are there at once.
                        held.wait();
                        first
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(places.len() > 1, "{places:?}");
    }
}
