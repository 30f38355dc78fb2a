//! The canonical writer (§7.1): the bytes that are digested. It depends on no JSON library's order or number format.

use sha2::{Digest as _, Sha256};

use super::lexer::ByteSet;
use super::number::write_ecmascript;
use super::value::{Kind, Member, Value};

/// Where canonical bytes go: a buffer, or straight into a hash, so that digesting allocates no document (§7.1).
pub trait Sink {
    /// Takes the next bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Sink for Sha256 {
    fn put(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }
}

static NEEDS_ESCAPE: ByteSet = ByteSet::controls_and(b"\"\\<>&\xE2");

/// Writes a string with its quotes. Escaped: `"`, `\`, controls, `<`, `>`, `&`, U+2028 and U+2029; all else raw UTF-8.
pub fn write_string<S: Sink>(sink: &mut S, text: &str) {
    sink.put(b"\"");
    let mut rest = text.as_bytes();
    while let Some(stop) = rest.iter().position(|b| NEEDS_ESCAPE.contains(*b)) {
        let (plain, tail) = rest.split_at_checked(stop).unwrap_or((rest, &[]));
        sink.put(plain);
        let taken = match tail {
            [0xE2, 0x80, 0xA8, ..] => {
                sink.put(b"\\u2028");
                3
            }
            [0xE2, 0x80, 0xA9, ..] => {
                sink.put(b"\\u2029");
                3
            }
            [byte, ..] => {
                escape(sink, *byte);
                1
            }
            [] => 0,
        };
        rest = tail.get(taken..).unwrap_or_default();
    }
    sink.put(rest);
    sink.put(b"\"");
}

fn escape<S: Sink>(sink: &mut S, byte: u8) {
    match byte {
        b'"' => sink.put(b"\\\""),
        b'\\' => sink.put(b"\\\\"),
        b'\n' => sink.put(b"\\n"),
        b'\r' => sink.put(b"\\r"),
        b'\t' => sink.put(b"\\t"),
        0x08 => sink.put(b"\\b"),
        0x0C => sink.put(b"\\f"),
        0x00..0x20 | b'<' | b'>' | b'&' => {
            let digit = |n: u8| if n < 10 { b'0' + n } else { b'a' + n - 10 };
            sink.put(b"\\u00");
            sink.put(&[digit(byte >> 4), digit(byte & 15)]);
        }
        // The first byte of some other character that starts as U+2028 does.
        _ => sink.put(&[byte]),
    }
}

/// Writes an open value: members sorted by name (byte-wise), numbers as ECMAScript prints the double. Iterative.
pub fn write_value<S: Sink>(sink: &mut S, value: &Value) {
    enum Rest<'v> {
        Array(std::slice::Iter<'v, Value>),
        Object(std::vec::IntoIter<&'v Member>),
    }
    let mut open: Vec<Rest<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next.take() {
            match value.kind() {
                Kind::Null => sink.put(b"null"),
                Kind::Bool(true) => sink.put(b"true"),
                Kind::Bool(false) => sink.put(b"false"),
                Kind::Number(number) => write_ecmascript(sink, number.as_f64()),
                Kind::String(text) => write_string(sink, text),
                Kind::Array(elements) => {
                    let mut elements = elements.iter();
                    sink.put(b"[");
                    next = elements.next();
                    open.push(Rest::Array(elements));
                }
                Kind::Object(members) => {
                    let mut members = sorted(members).into_iter();
                    sink.put(b"{");
                    next = members.next().map(|member| name(sink, member));
                    open.push(Rest::Object(members));
                }
            }
            if next.is_some() {
                continue;
            }
        }
        // A value is complete: go on with its container, or close it.
        next = match open.last_mut() {
            None => return,
            Some(Rest::Array(elements)) => elements.next().inspect(|_| sink.put(b",")),
            Some(Rest::Object(members)) => members.next().map(|member| {
                sink.put(b",");
                name(sink, member)
            }),
        };
        if next.is_none() {
            match open.pop() {
                Some(Rest::Array(_)) => sink.put(b"]"),
                Some(Rest::Object(_)) => sink.put(b"}"),
                None => return,
            }
        }
    }
}

fn sorted(members: &[Member]) -> Vec<&Member> {
    let mut members: Vec<&Member> = members.iter().collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    members
}

fn name<'v, S: Sink>(sink: &mut S, member: &'v Member) -> &'v Value {
    write_string(sink, &member.name);
    sink.put(b":");
    &member.value
}

/// Writes an object whose members the closure gives in their order.
///
/// ```
/// use fak_abi::json;
/// let mut out = Vec::new();
/// json::object(&mut out, |o| {
///     o.string("schema", "fak.example.v1")
///         .string_unless_empty("task_id", "")
///         .array("parts", |a| {
///             a.object(|o| {
///                 o.u64("bytes", 9007199254740993);
///             });
///         });
/// });
/// assert_eq!(out, br#"{"schema":"fak.example.v1","parts":[{"bytes":9007199254740993}]}"#);
/// ```
pub fn object<S: Sink>(sink: &mut S, members: impl FnOnce(&mut ObjectWriter<'_, S>)) {
    sink.put(b"{");
    members(&mut ObjectWriter { sink, first: true });
    sink.put(b"}");
}

/// Writes an array whose elements the closure gives in their order.
pub fn array<S: Sink>(sink: &mut S, elements: impl FnOnce(&mut ArrayWriter<'_, S>)) {
    sink.put(b"[");
    elements(&mut ArrayWriter { sink, first: true });
    sink.put(b"]");
}

/// Writes the members of one object, in the order they are given (§7.1).
pub struct ObjectWriter<'s, S> {
    sink: &'s mut S,
    first: bool,
}

impl<S: Sink> ObjectWriter<'_, S> {
    /// Starts a member; what is put into the sink next must be exactly one value.
    pub fn member(&mut self, name: &str) -> &mut S {
        if !std::mem::take(&mut self.first) {
            self.sink.put(b",");
        }
        write_string(self.sink, name);
        self.sink.put(b":");
        self.sink
    }

    /// A string.
    pub fn string(&mut self, name: &str, text: &str) -> &mut Self {
        write_string(self.member(name), text);
        self
    }

    /// A string, left out when empty.
    pub fn string_unless_empty(&mut self, name: &str, text: &str) -> &mut Self {
        if !text.is_empty() {
            self.string(name, text);
        }
        self
    }

    /// A typed integer, exact.
    pub fn u64(&mut self, name: &str, number: u64) -> &mut Self {
        self.member(name).put(number.to_string().as_bytes());
        self
    }

    /// A typed integer, exact.
    pub fn i64(&mut self, name: &str, number: i64) -> &mut Self {
        self.member(name).put(number.to_string().as_bytes());
        self
    }

    /// A double, in the ECMAScript form.
    pub fn f64(&mut self, name: &str, number: f64) -> &mut Self {
        write_ecmascript(self.member(name), number);
        self
    }

    /// A boolean.
    pub fn boolean(&mut self, name: &str, value: bool) -> &mut Self {
        self.member(name).put(if value { b"true" } else { b"false" });
        self
    }

    /// `null`.
    pub fn null(&mut self, name: &str) -> &mut Self {
        self.member(name).put(b"null");
        self
    }

    /// An open value.
    pub fn value(&mut self, name: &str, value: &Value) -> &mut Self {
        write_value(self.member(name), value);
        self
    }

    /// An object.
    pub fn object(&mut self, name: &str, members: impl FnOnce(&mut ObjectWriter<'_, S>)) -> &mut Self {
        object(self.member(name), members);
        self
    }

    /// An array.
    pub fn array(&mut self, name: &str, elements: impl FnOnce(&mut ArrayWriter<'_, S>)) -> &mut Self {
        array(self.member(name), elements);
        self
    }

    /// Unknown members that were kept: last, sorted by name.
    pub fn rest(&mut self, members: &[Member]) -> &mut Self {
        for member in sorted(members) {
            self.value(&member.name, &member.value);
        }
        self
    }
}

/// Writes the elements of one array, in the order they are given.
pub struct ArrayWriter<'s, S> {
    sink: &'s mut S,
    first: bool,
}

impl<S: Sink> ArrayWriter<'_, S> {
    /// Starts an element; what is put into the sink next must be exactly one value.
    pub fn element(&mut self) -> &mut S {
        if !std::mem::take(&mut self.first) {
            self.sink.put(b",");
        }
        self.sink
    }

    /// A string.
    pub fn string(&mut self, text: &str) -> &mut Self {
        write_string(self.element(), text);
        self
    }

    /// An open value.
    pub fn value(&mut self, value: &Value) -> &mut Self {
        write_value(self.element(), value);
        self
    }

    /// An object.
    pub fn object(&mut self, members: impl FnOnce(&mut ObjectWriter<'_, S>)) -> &mut Self {
        object(self.element(), members);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Document, Limits};
    use super::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        write_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_as_specified() {
        assert_eq!(string("a<b>&c"), r#""a\u003cb\u003e\u0026c""#);
        assert_eq!(string("\u{2028}\u{2029}\u{2027}€â"), "\"\\u2028\\u2029\u{2027}€â\"");
        assert_eq!(string("\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}"), "\"\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}\"");
        assert_eq!(string("\"\\/"), r#""\"\\/""#);
        assert_eq!(string("e\u{301} é 漢 😀"), "\"e\u{301} é 漢 😀\"");
    }

    #[test]
    fn open_values_are_sorted_and_their_numbers_are_doubles() {
        let text = br#" {"b": [1.0, 1e-7, 9007199254740993, -0], "a": {"y": {}, "x": []}, "": null} "#;
        let value = Document::parse(text, &Limits::default()).unwrap().into_value();
        let mut out = Vec::new();
        write_value(&mut out, &value);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"":null,"a":{"x":[],"y":{}},"b":[1,1e-7,9007199254740992,0]}"#
        );
    }

    #[test]
    fn a_hash_takes_what_a_buffer_takes() {
        let write = |o: &mut ObjectWriter<'_, Vec<u8>>| {
            o.string("s", "<").i64("i", -5).f64("f", 0.5).boolean("b", true).null("n");
        };
        let mut buffer = Vec::new();
        object(&mut buffer, write);
        assert_eq!(buffer, br#"{"s":"\u003c","i":-5,"f":0.5,"b":true,"n":null}"#);
        let mut hash = Sha256::new();
        object(&mut hash, |o| {
            o.string("s", "<").i64("i", -5).f64("f", 0.5).boolean("b", true).null("n");
        });
        assert_eq!(hash.finalize(), Sha256::digest(&buffer));
    }
}
