//! SHA-256 digests in their one written form, `sha256:` and 64 lower-case hex digits (§2.1).
//! What is hashed, and how envelopes are encoded for it, lives elsewhere.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

const PREFIX: &str = "sha256:";

/// The SHA-256 digest of some bytes (§2.1).
///
/// ```
/// use fak_abi::Digest;
/// let digest = Digest::of(b"abc");
/// assert_eq!(digest.to_string().parse::<Digest>(), Ok(digest));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Text that is not a digest (§2.1).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a digest: expected \"sha256:\" and 64 lower-case hex digits")]
pub struct DigestError;

impl Digest {
    /// Hashes `bytes`. Linear in their number.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Wraps a digest that was computed elsewhere.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 raw bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hex digits without the prefix.
    #[must_use]
    pub fn hex(&self) -> String {
        let mut out = String::with_capacity(64);
        // Writing to a String cannot fail.
        let _ = write_hex(&mut out, &self.0);
        out
    }
}

fn write_hex(out: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.write_char(char::from_digit(u32::from(nibble), 16).unwrap_or('0'))?;
        }
    }
    Ok(())
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let hex = s.strip_prefix(PREFIX).ok_or(DigestError)?.as_bytes();
        if hex.len() != 64 {
            return Err(DigestError);
        }
        let mut out = [0_u8; 32];
        for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
            let mut value = 0_u8;
            for digit in pair {
                let digit = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return Err(DigestError),
                };
                value = value * 16 + digit;
            }
            *byte = value;
        }
        Ok(Self(out))
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §2.1: the form of a digest.
    #[test]
    fn the_known_vector_and_its_round_trip() {
        let digest = Digest::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(format!("sha256:{}", digest.hex()), text);
    }

    /// §2.1, §8.
    #[test]
    fn other_forms_are_refused() {
        let good = Digest::of(b"").to_string();
        let upper = good.to_uppercase();
        let short = good.strip_suffix(|_: char| true).unwrap();
        let long = format!("{good}0");
        for bad in ["", "sha256:", "ba7816bf", "md5:00", &upper, short, &long] {
            assert_eq!(bad.parse::<Digest>(), Err(DigestError), "{bad}");
        }
        let not_ascii = format!("sha256:{}", "é".repeat(32));
        assert_eq!(not_ascii.parse::<Digest>(), Err(DigestError));
    }
}
