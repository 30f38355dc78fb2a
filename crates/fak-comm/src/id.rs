//! The form of ids (§4.1), with this crate's error.

use crate::error::CommError;

/// Longest id, in bytes (§8).
const MAX_ID_BYTES: usize = 256;

/// Checks that `id` is 1 to 256 bytes without control or bidirectional-control characters.
pub(crate) fn check_id(what: &'static str, at: usize, id: &str) -> Result<(), CommError> {
    let why = if id.is_empty() {
        "the id is empty"
    } else if id.len() > MAX_ID_BYTES {
        "the id is longer than 256 bytes"
    } else if id.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        "the id has a control or bidirectional-control character"
    } else {
        return Ok(());
    };
    Err(CommError::Id { what, at, why: why.to_owned() })
}

const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
