//! Which part of a split structure a thread works on, so that acting threads share no cache line.

/// How many parts there are.
pub(crate) const SHARDS: usize = 8;

// tidy: allow(global): a constant, whose address alone is used
thread_local! {
    /// Never read: its address tells threads apart.
    static SPOT: u8 = const { 0 };
}

/// The part of this thread, below [`SHARDS`]. Two threads may have the same.
#[inline]
pub(crate) fn here() -> usize {
    let address = SPOT.with(|spot| std::ptr::from_ref(spot).addr() as u64);
    // Fibonacci hashing; the top three bits.
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize
}
