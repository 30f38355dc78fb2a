//! Strict JSON in, canonical JSON out (§7.1, §8).
//!
//! Here live a reader that refuses what the protocol refuses (duplicate members, lone surrogates, trailing data, deep
//! nesting, non-finite numbers) and says where; the closed-member layer that typed envelopes are read with; a
//! pull reader over [`std::io::Read`] for documents too large to hold; and the writer whose bytes are digested. What an
//! envelope *means* is not here: each crate reads and writes its own.
//!
//! ```
//! use fak_abi::json::{self, Document, Limits};
//!
//! # fn main() -> Result<(), json::Error> {
//! let document = Document::parse(br#"{"worker_id": "w", "issue": 7}"#, &Limits::default())?;
//! let mut fields = document.root().object()?;
//! let worker = fields.required("worker_id")?.string()?;
//! let issue = fields.required("issue")?.u64()?;
//! fields.finish()?;
//!
//! let mut out = Vec::new();
//! json::object(&mut out, |o| {
//!     o.string("worker_id", worker).u64("issue", issue);
//! });
//! assert_eq!(out, br#"{"worker_id":"w","issue":7}"#);
//! # Ok(())
//! # }
//! ```

mod cursor;
#[cfg(test)]
mod differential;
mod error;
mod lexer;
mod nearest;
mod number;
mod parse;
mod stream;
mod value;
mod write;

pub use cursor::{Cursor, Fields};
pub use error::{Error, Place, Problem};
pub use lexer::{Failure, Lexer, RawStr, Token, TokenKind};
pub use nearest::nearest;
pub use number::{Number, write_ecmascript};
pub use parse::{Document, Limits};
pub use stream::{Captured, Stream, StreamError};
pub use value::{Kind, Member, Value};
pub use write::{ArrayWriter, ObjectWriter, Sink, array, object, write_string, write_value};
