//! The least send by key: the name is hashed, the channel at hand found in a concurrent map, and sent to.

use std::hash::{BuildHasherDefault, Hasher};

use dashmap::DashMap;
use fak_a2achan::Channel;
use fak_abi::{ChannelKey, Ref};

/// Channels at hand, by key.
pub(crate) struct Listed(DashMap<ChannelKey, Channel, BuildHasherDefault<Words>>);

impl Listed {
    pub(crate) fn new(channels: impl Iterator<Item = Channel>) -> Self {
        Self(channels.map(|channel| (channel.key().clone(), channel)).collect())
    }

    pub(crate) fn send(&self, key: &ChannelKey, body: &Ref) -> bool {
        self.0.get(key).is_some_and(|channel| channel.send(body).is_allow())
    }
}

/// A multiplication for eight bytes, and no seed: as little as a hash of a name can be.
#[derive(Default)]
pub(crate) struct Words(u64);

impl Words {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.mix(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }
    fn write_u8(&mut self, byte: u8) {
        self.mix(byte.into());
    }
    fn write_isize(&mut self, number: isize) {
        self.mix(number as u64);
    }
    fn finish(&self) -> u64 {
        // The map takes the upper bits for its shards and the lower ones within.
        self.0 ^ self.0 >> 32
    }
}
