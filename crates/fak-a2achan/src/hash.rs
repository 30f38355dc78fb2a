//! A fast hasher for keys that no outsider can choose freely enough to matter: multiply and mix,
//! seeded per bus so that colliding ids cannot be prepared.

use std::hash::{BuildHasher, Hasher};

/// For keys that are numbers given out in order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Numbers;

/// For keys that are names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names(u64);

impl Names {
    /// Seeded at random; by a constant where there is no randomness.
    pub(crate) fn seeded() -> Self {
        let mut seed = [0; 8];
        let seed = getrandom::fill(&mut seed).map_or(SEED, |()| u64::from_le_bytes(seed));
        Self(seed)
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;

/// Folded multiplication over words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fold(u64);

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a).wrapping_mul(u128::from(b));
    #[expect(clippy::cast_possible_truncation, reason = "both halves are wanted")]
    {
        (product as u64) ^ ((product >> 64) as u64)
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            if let Ok(word) = word.try_into() {
                self.write_u64(u64::from_le_bytes(word));
            }
        }
        let tail = words.remainder();
        if !tail.is_empty() {
            let last = tail.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.write_u64(last ^ (tail.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n.cast_unsigned() as u64);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = fold(self.0 ^ n, MULTIPLIER);
    }

    fn finish(&self) -> u64 {
        fold(self.0, SEED)
    }
}

impl BuildHasher for Numbers {
    type Hasher = Fold;
    fn build_hasher(&self) -> Fold {
        Fold(SEED)
    }
}

impl BuildHasher for Names {
    type Hasher = Fold;
    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_names_spread() {
        let names = Names::seeded();
        let mut buckets = [0_u32; 64];
        for n in 0..6_400 {
            let hash = names.hash_one(format!("agent-{n}"));
            buckets[usize::try_from(hash % 64).unwrap()] += 1;
        }
        assert!(buckets.iter().all(|n| (40..180).contains(n)), "{buckets:?}");
    }
}
