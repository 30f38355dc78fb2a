//! What an act is compared by, as a few numbers: the first bytes of each name, and what is known of
//! the body in bits. Most conditions that do not hold are refuted by one comparison of one of them.
//!
//! Names are ids: between 1 and 256 bytes of UTF-8 without a zero byte (§4.1). So a short name's
//! number is the name, and no name's number has a byte of all ones.

use fak_abi::{Address, Id, Ref, ToolCall};

use super::glob::Glob;
use super::program::Family;

/// Which number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Word {
    Agent = 0,
    Fleet = 1,
    Tenant = 2,
    /// The family of the address in the lowest byte, the first bytes of its id above.
    Address = 3,
    Body = 4,
}

/// The numbers of an act.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words([u64; COUNT]);

/// A power of two, so that looking one up needs no check.
const COUNT: usize = 8;

/// The number of a name that is not there: no beginning of a name is like it.
const ABSENT: u64 = u64::MAX;

/// Of the body's number: that there is one.
pub(super) const BODY: u64 = 1;
/// Where its taint is.
pub(super) const TAINT: u32 = 8;
/// Where its scope is.
pub(super) const SCOPE: u32 = 16;

/// A condition on some bits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) mask: u64,
    pub(super) want: u64,
}

impl Bits {
    pub(super) const ANY: Self = Self { mask: 0, want: 0 };
    pub(super) const NONE: Self = Self { mask: 0, want: 1 };

    #[inline]
    pub(super) const fn hold(self, word: u64) -> bool {
        word & self.mask == self.want
    }

    /// Moved up by a byte, the lowest of which then is `byte`.
    pub(super) const fn above(self, byte: u8) -> Self {
        Self { mask: self.mask << 8 | 0xFF, want: self.want << 8 | byte as u64 }
    }

    /// What every text that the glob matches has in its first `room` bytes, 8 at most. `true` if no
    /// other text has it.
    pub(super) fn of(glob: &Glob, room: usize) -> (Self, bool) {
        let literal = glob.literal().as_bytes();
        let known = literal.get(..room).unwrap_or(literal);
        // A zero byte is in no name, and looks like the end of one.
        let is_plain = !literal.is_empty() && !literal.contains(&0);
        // A short name ends with zeros: they are part of what is compared.
        let (bytes, is_enough) = match (glob.is_exact(), glob.is_prefix()) {
            (true, _) => (room, is_plain && literal.len() < room),
            (_, true) => (known.len(), is_plain && literal.len() <= room),
            _ => (known.len(), false),
        };
        let mask = if bytes == 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
        (Self { mask, want: start(known) }, is_enough)
    }
}

/// The first eight bytes, or all and zeros, as a number.
#[inline]
fn start(text: &[u8]) -> u64 {
    if let Some(bytes) = text.first_chunk() {
        return u64::from_le_bytes(*bytes);
    }
    // Four to seven bytes are two overlapping fours.
    if let (Some(low), Some(high)) = (text.first_chunk(), text.last_chunk()) {
        let (low, high) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
        return u64::from(low) | u64::from(high) << (8 * (text.len() - 4));
    }
    text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn start_of(id: Option<&Id>) -> u64 {
    id.map_or(ABSENT, |id| start(id.as_bytes()))
}

#[inline]
fn of_address(address: Address<'_>) -> u64 {
    match Family::of(address) {
        Some((family, id)) => start(id.as_bytes()) << 8 | u64::from(family.code()),
        None => ABSENT,
    }
}

#[inline]
fn of_body(body: &Ref) -> u64 {
    BODY | u64::from(body.taint().code()) << TAINT | u64::from(body.scope().code()) << SCOPE
}

impl Words {
    #[inline]
    pub(super) fn of(call: &ToolCall<'_>, body: Option<&Ref>) -> Self {
        let who = call.principal();
        Self([
            start(who.id().as_bytes()),
            start_of(who.fleet()),
            start_of(who.tenant()),
            of_address(call.target()),
            body.map_or(0, of_body),
            0,
            0,
            0,
        ])
    }

    #[inline]
    pub(super) fn get(&self, word: Word) -> u64 {
        self.0.get(word as usize % COUNT).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The number refutes no text that the glob matches, and where it is enough it is the glob.
        #[test]
        fn a_beginning_says_what_the_glob_says(
            pattern in "[ab]{0,10}[*]{0,1}[ab]{0,2}|[aé*\u{0}]{1,9}|[ab]{5,9}",
            text in "[ab]{1,12}|[aé]{1,9}",
            room in 7..=8_usize,
        ) {
            // Texts near the pattern as well, which seldom come by chance.
            let literal: String = pattern.chars().filter(|c| *c != '*' && *c != '\0').collect();
            let near = [literal.clone(), format!("{literal}{text}"), text];
            let glob = Glob::new(&pattern);
            let (bits, is_enough) = Bits::of(&glob, room);
            for text in near.iter().filter(|text| !text.is_empty()) {
                let word = start(text.as_bytes()) & (u64::MAX >> (8 * (8 - room)));
                let (held, matches) = (bits.hold(word), glob.matches(text));
                prop_assert!(held || !matches, "{pattern:?} and {text:?}");
                prop_assert!(!is_enough || held == matches, "{pattern:?} and {text:?}");
            }
            prop_assert!(!is_enough || bits == Bits::ANY || !bits.hold(ABSENT), "{pattern:?} and nothing");
        }

        #[test]
        fn a_beginning_is_the_first_bytes(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut first = [0; 8];
            first.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
            prop_assert_eq!(start(&bytes), u64::from_le_bytes(first));
        }
    }
}
