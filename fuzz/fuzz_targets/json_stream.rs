//! The pull reader, against the reader of whole texts: the same members whatever a read hands out (§5.10, §8).

#![no_main]

use fak_abi::json::{Document, Kind, Limits, Member, Problem, Stream, StreamError, Value};
use fak_fuzz::{Drip, frugal};
use libfuzzer_sys::fuzz_target;

const CHUNK: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    check(data, 1 + data.len() % 7);
    // Once more with what follows the first brace across the border of two chunks.
    if let Some(rest) = data.strip_prefix(b"{") {
        let before = CHUNK - (rest.len() % 64) - 12;
        let pad = "x".repeat(before);
        check(&[format!("{{\" pad\":\"{pad}\",").as_bytes(), rest].concat(), usize::MAX);
    }
});

fn check(text: &[u8], step: usize) {
    let limits = Limits { bytes: 1 << 20, nesting: 64 };
    let whole = Document::parse(text, &limits).map(Document::into_value);
    let streamed = frugal(text.len(), 400, || walk(text, step, limits));
    match (whole, streamed) {
        (Ok(value), Ok(members)) => assert!(value.as_object().is_none_or(|object| *object == members)),
        (Ok(value), Err(error)) => {
            let many = value.as_object().is_some_and(|object| object.len() > 1024);
            let entries = value.member("entries").is_some_and(|entries| entries.as_array().is_none());
            assert!(many || entries || value.as_object().is_none(), "{error}");
        }
        // The outer object is no level of a captured value.
        (Err(error), Ok(_)) => assert!(matches!(error.problem(), Problem::TooDeep { .. }), "{error}"),
        (Err(_), Err(StreamError::Json(error))) => assert!(error.place().offset <= text.len()),
        (Err(_), Err(error)) => panic!("{error}"),
    }
}

/// Arrays under "entries" element by element, everything else whole.
fn walk(text: &[u8], step: usize, limits: Limits) -> Result<Vec<Member>, StreamError> {
    let mut members = Vec::new();
    let mut stream = Stream::new(Drip(text, step), limits);
    stream.begin_object()?;
    while let Some(name) = stream.next_member()? {
        let value = if &*name == "entries" {
            stream.begin_array()?;
            let mut elements = Vec::new();
            while stream.next_element()? {
                elements.push(stream.capture()?.parse()?.into_value());
            }
            Value::new(Kind::Array(elements))
        } else {
            stream.capture()?.parse()?.into_value()
        };
        members.push(Member { name, value });
    }
    stream.end()?;
    Ok(members)
}
