//! What is wrong with a JSON text, and where: never what a value in it says.

use std::borrow::Cow;
use std::fmt;

/// What a JSON reader found wrong (§8). No variant carries the text of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Something else was expected at this byte.
    Syntax {
        /// What would have been right here.
        expected: &'static str,
    },
    /// The text ends inside a value.
    EndOfText {
        /// What would have been right here.
        expected: &'static str,
    },
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// A control character stands unescaped in a string.
    ControlCharacter,
    /// A backslash is followed by something that is no escape.
    InvalidEscape,
    /// A `\u` escape names half of a surrogate pair.
    LoneSurrogate,
    /// A number that no finite double can hold.
    NumberOutOfRange,
    /// Something follows the value.
    TrailingData,
    /// Values are nested deeper than the limit.
    TooDeep {
        /// The limit, in levels.
        limit: usize,
    },
    /// The text is longer than the limit.
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// An object names a member twice.
    DuplicateMember {
        /// The name, as written.
        name: String,
    },
    /// A value of another type was expected.
    WrongType {
        /// The type expected.
        expected: &'static str,
        /// The type found.
        found: &'static str,
    },
    /// A required member is absent.
    MissingMember {
        /// Its name.
        name: Cow<'static, str>,
    },
    /// A member that this object cannot have.
    UnknownMember {
        /// The name, as written.
        name: String,
        /// The nearest name it can have.
        nearest: Option<String>,
    },
    /// The value has the right type but is not acceptable.
    Invalid {
        /// What would be acceptable.
        expected: Cow<'static, str>,
    },
}

/// Quotes a name taken from outside: escaped, and cut at 64 characters.
struct Quoted<'n>(&'n str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(64) {
            Some((cut, _)) => write!(f, "{:?}…", self.0.get(..cut).unwrap_or_default()),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { expected } => write!(f, "expected {expected}"),
            Self::EndOfText { expected } => {
                write!(f, "the text ends where {expected} was expected")
            }
            Self::InvalidUtf8 => f.write_str("invalid UTF-8, expected UTF-8 text"),
            Self::ControlCharacter => f.write_str("control character in a string, expected its escape"),
            Self::InvalidEscape => {
                f.write_str("invalid escape, expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")
            }
            Self::LoneSurrogate => f.write_str("lone surrogate, expected a surrogate pair"),
            Self::NumberOutOfRange => f.write_str("number out of range, expected a finite double"),
            Self::TrailingData => f.write_str("trailing data, expected the end of the text"),
            Self::TooDeep { limit } => {
                write!(f, "nested too deep, expected at most {limit} levels")
            }
            Self::TooLarge { limit } => write!(f, "too large, expected at most {limit} bytes"),
            Self::DuplicateMember { name } => {
                write!(f, "duplicate member {}, expected it once", Quoted(name))
            }
            Self::WrongType { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::MissingMember { name } => write!(f, "missing member {}", Quoted(name)),
            Self::UnknownMember { name, nearest } => {
                write!(f, "unknown member {}", Quoted(name))?;
                match nearest {
                    Some(nearest) => write!(f, ", did you mean {nearest:?}?"),
                    None => Ok(()),
                }
            }
            Self::Invalid { expected } => write!(f, "expected {expected}"),
        }
    }
}

/// A place in a JSON text (§8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Byte offset from the start of the text.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

impl Place {
    /// The first byte of a text.
    pub const START: Self = Self { offset: 0, line: 1, column: 1 };

    /// The place `offset` bytes into `text`; past its end, the end. Linear in `offset`.
    #[must_use]
    pub fn of(text: &[u8], offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        Self::START.after(before)
    }

    /// The place reached by passing over `bytes` from here.
    #[must_use]
    pub fn after(self, bytes: &[u8]) -> Self {
        // Counting is much faster than searching, and most texts are one line; in a byte, sixteen are counted at once.
        let in_a_byte = |few: &[u8]| few.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>();
        let newlines =
            bytes.chunks(usize::from(u8::MAX)).map(|few| usize::from(in_a_byte(few))).sum::<usize>();
        let column = match newlines {
            0 => self.column + bytes.len(),
            _ => bytes.len() - bytes.iter().rposition(|b| *b == b'\n').unwrap_or_default(),
        };
        Self { offset: self.offset + bytes.len(), line: self.line + newlines, column }
    }
}

/// A JSON text that was refused: what, where, and what was expected (§8).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", Whereabouts(*place, path))]
pub struct Error {
    place: Place,
    path: String,
    problem: Problem,
}

/// Where an error stands, as its message begins; nothing of it that would only say "the whole text".
struct Whereabouts<'e>(Place, &'e str);

impl fmt::Display for Whereabouts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(place, path) = self;
        if path.is_empty() && *place == Place::START {
            return Ok(());
        }
        write!(f, "line {}, column {}", place.line, place.column)?;
        if !path.is_empty() {
            write!(f, ", at {path:?}")?;
        }
        f.write_str(": ")
    }
}

impl Error {
    /// An error at a place, under a JSON pointer (`""` is the whole text).
    #[must_use]
    pub fn new(place: Place, path: impl Into<String>, problem: Problem) -> Self {
        Self { place, path: path.into(), problem }
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Where in the text.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Where in the value, as a JSON pointer (`/ops/0/path`).
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same error seen from a text that contains this one at `origin`, under the pointer `parent`.
    #[must_use]
    pub fn within(self, origin: Place, parent: &str) -> Self {
        let place = Place {
            offset: origin.offset + self.place.offset,
            line: origin.line + self.place.line - 1,
            column: if self.place.line == 1 {
                origin.column + self.place.column - 1
            } else {
                self.place.column
            },
        };
        Self { place, path: format!("{parent}{}", self.path), problem: self.problem }
    }
}

/// Appends one step of a JSON pointer; a long or odd name is cut and escaped, so that a path stays one readable line.
pub(super) fn push_step(path: &mut String, name: &str) {
    path.push('/');
    for c in name.chars().take(64) {
        match c {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            c => path.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_columns() {
        let text = b"{\n  \"a\": 1\n}";
        assert_eq!(Place::of(text, 0), Place::START);
        let at = Place::of(text, 4);
        assert_eq!((at.line, at.column), (2, 3));
        assert_eq!(Place::of(text, 99).offset, text.len());
    }

    #[test]
    fn an_error_moves_into_its_container() {
        let inner = Error::new(Place::of(b"ab", 1), "/x", Problem::Syntax { expected: "a comma" });
        let origin = Place::of(b"\n123456", 5);
        let outer = inner.within(origin, "/entries/3");
        assert_eq!(outer.path(), "/entries/3/x");
        assert_eq!(outer.place(), Place { offset: 6, line: 2, column: 6 });
        assert_eq!(outer.to_string(), "line 2, column 6, at \"/entries/3/x\": expected a comma");
        let whole = |place| Error::new(place, "", Problem::Syntax { expected: "a comma" }).to_string();
        assert_eq!(whole(Place::START), "expected a comma");
        assert_eq!(whole(Place::of(b"a\nbc", 3)), "line 2, column 2: expected a comma");
    }

    #[test]
    fn a_long_name_is_cut_and_escaped() {
        let text = Problem::DuplicateMember { name: "\n".repeat(100) }.to_string();
        assert!(text.contains('…') && !text.contains('\n'));
    }
}
