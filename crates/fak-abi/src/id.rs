//! Identifiers: the one shape that every name in the protocol has (§4.1, §8).
//! What a name addresses lives in `address`.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// The longest identifier, in bytes of UTF-8.
pub const MAX_ID_BYTES: usize = 256;

/// A name: 1 to 256 bytes of UTF-8 without control or bidirectional-control characters (§4.1).
///
/// Principals, fleets, tenants, traces, channels, cells, lanes and groups are all named by one.
/// Cloning bumps a count and copies no text. `Display` writes the raw text; people are shown
/// [`Id::quoted`], which cannot run into the text around it.
///
/// ```
/// use fak_abi::Id;
/// let id: Id = "engineer".parse()?;
/// assert_eq!(&*id, "engineer");
/// assert!("two\nlines".parse::<Id>().is_err());
/// # Ok::<(), fak_abi::IdError>(())
/// ```
#[derive(Clone, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "equal names hash alike: both are of the text")]
pub struct Id(Arc<str>);

impl PartialEq for Id {
    /// Names are handed about by counts, so the text is seldom looked at.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

/// Text that cannot name anything (§4.1). It never repeats the text: the text is what cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// No text at all.
    #[error("an id must have at least one byte")]
    Empty,
    /// More than [`MAX_ID_BYTES`].
    #[error("an id may have at most {MAX_ID_BYTES} bytes, this one has {0}")]
    Long(usize),
    /// A control or bidirectional-control character, which could forge what a person reads.
    #[error("an id may not hold the control character U+{0:04X} (at byte {1})")]
    Control(u32, usize),
}

impl Id {
    /// Checks `text` and keeps a copy of it. Linear in its length, which is bounded.
    ///
    /// # Errors
    /// [`IdError`] says which rule the text breaks and where.
    pub fn new(text: &str) -> Result<Self, IdError> {
        check(text)?;
        Ok(Self(text.into()))
    }

    /// The raw text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text in double quotes, `"` and `\` escaped, for people and logs (§4.1).
    #[must_use]
    pub fn quoted(&self) -> Quoted<'_> {
        Quoted(&self.0)
    }
}

fn check(text: &str) -> Result<(), IdError> {
    match text.len() {
        0 => return Err(IdError::Empty),
        n if n > MAX_ID_BYTES => return Err(IdError::Long(n)),
        _ => {}
    }
    match text.char_indices().find(|(_, c)| c.is_control() || reorders(*c)) {
        Some((at, c)) => Err(IdError::Control(c.into(), at)),
        None => Ok(()),
    }
}

/// Characters that change how their neighbours are laid out, and the line breaks that are not
/// in the control category.
const fn reorders(c: char) -> bool {
    matches!(
        c,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Text shown between quotes; see [`Id::quoted`] (§4.1).
#[derive(Clone, Copy)]
pub struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        f.write_char('"')?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

impl Deref for Id {
    type Target = str;
    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Id {
    #[inline]
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Id {
    #[inline]
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.quoted(), f)
    }
}

impl FromStr for Id {
    type Err = IdError;
    fn from_str(s: &str) -> Result<Self, IdError> {
        Self::new(s)
    }
}

impl TryFrom<&str> for Id {
    type Error = IdError;
    fn try_from(s: &str) -> Result<Self, IdError> {
        Self::new(s)
    }
}

impl TryFrom<String> for Id {
    type Error = IdError;
    fn try_from(s: String) -> Result<Self, IdError> {
        check(&s)?;
        Ok(Self(s.into()))
    }
}

impl serde::Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_refused_with_their_place() {
        assert_eq!(Id::new("a\nb").unwrap_err(), IdError::Control(10, 1));
        for bad in ['\u{0}', '\u{7f}', '\u{85}', '\u{202e}', '\u{2066}', '\u{200f}', '\u{2028}'] {
            let text = format!("é{bad}");
            assert_eq!(Id::new(&text).unwrap_err(), IdError::Control(bad.into(), 2), "{bad:?}");
        }
    }

    #[test]
    fn length_is_counted_in_bytes() {
        assert_eq!(Id::new("").unwrap_err(), IdError::Empty);
        assert!(Id::new(&"é".repeat(128)).is_ok());
        assert_eq!(Id::new(&"é".repeat(129)).unwrap_err(), IdError::Long(258));
    }

    #[test]
    fn quoting_cannot_be_closed_from_inside() {
        let id = Id::new(r#"x" ] from "root\"#).unwrap();
        assert_eq!(id.quoted().to_string(), r#""x\" ] from \"root\\""#);
        assert_eq!(format!("{id}"), r#"x" ] from "root\"#);
    }
}
