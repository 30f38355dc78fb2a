//! Pulling JSON out of a reader: the outer structure is walked member by member, and only one inner value at a time is
//! held. For documents too large to hold, such as journals (§5.10).

use std::io::Read;

use super::error::{Error, Place, Problem, push_step};
use super::lexer::{ByteSet, Lexer, TokenKind};
use super::parse::{Document, Limits};

/// Why a stream could not be read on (§8).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The text is wrong.
    #[error(transparent)]
    Json(#[from] Error),
    /// The reader failed.
    #[error("cannot read on after byte {offset}: {source}")]
    Io {
        /// Bytes read before the failure.
        offset: usize,
        /// The reader's error.
        source: std::io::Error,
    },
}

/// One value of a stream, whole, not yet parsed.
#[derive(Debug)]
pub struct Captured<'s> {
    text: &'s [u8],
    place: Place,
    path: &'s str,
    limits: &'s Limits,
}

impl<'s> Captured<'s> {
    /// The bytes of the value.
    #[must_use]
    pub fn text(&self) -> &'s [u8] {
        self.text
    }

    /// Parses the value.
    ///
    /// # Errors
    /// As [`Document::parse`]; see [`Captured::place`] to say where in the stream.
    pub fn parse(&self) -> Result<Document<'s>, Error> {
        Document::parse(self.text, self.limits).map_err(|error| self.place(error))
    }

    /// An error in this value, as an error of the stream.
    #[must_use]
    pub fn place(&self, error: Error) -> Error {
        error.within(self.place, self.path)
    }
}

/// One open container of the outer structure.
#[derive(Debug)]
struct Level {
    object: bool,
    first: bool,
    /// Index of the next element.
    index: usize,
    names: Vec<Box<str>>,
    /// Length of the path before the current step.
    path: usize,
}

/// A pull reader (§8). Memory is one captured value (at most [`Limits::bytes`]) and one chunk of 64 KiB.
#[derive(Debug)]
pub struct Stream<R> {
    input: R,
    limits: Limits,
    buffer: Vec<u8>,
    /// Consumed bytes at the front of the buffer.
    start: usize,
    /// Bytes of the value last handed out, consumed at the next call.
    pending: usize,
    place: Place,
    ended: bool,
    levels: Vec<Level>,
    path: String,
    name_bytes: usize,
}

const CHUNK: usize = 64 << 10;

static STRUCTURE: ByteSet = ByteSet::of(b"\"{}[]");
static AFTER_SCALAR: ByteSet = ByteSet::of(b",]} \t\n\r");

impl<R: Read> Stream<R> {
    /// A stream at the start of `input`. `limits` hold for each captured value, not for the whole.
    pub fn new(input: R, limits: Limits) -> Self {
        Self {
            input,
            limits,
            buffer: Vec::new(),
            start: 0,
            pending: 0,
            place: Place::START,
            ended: false,
            levels: Vec::new(),
            path: String::new(),
            name_bytes: 0,
        }
    }

    /// Where the stream stands, as a JSON pointer.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Bytes passed so far, what was handed out last included.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.place.offset + self.pending
    }

    /// An error where the stream stands.
    #[must_use]
    pub fn error(&self, problem: Problem) -> Error {
        Error::new(self.place, self.path.clone(), problem)
    }

    /// Enters the object that comes next.
    ///
    /// # Errors
    /// If something else does, or the reader fails.
    pub fn begin_object(&mut self) -> Result<(), StreamError> {
        self.begin(b'{', "an object")
    }

    /// Enters the array that comes next.
    ///
    /// # Errors
    /// If something else does, or the reader fails.
    pub fn begin_array(&mut self) -> Result<(), StreamError> {
        self.begin(b'[', "an array")
    }

    fn begin(&mut self, bracket: u8, expected: &'static str) -> Result<(), StreamError> {
        match self.peek()? {
            Some(found) if found == bracket => self.consume(1),
            found => return Err(self.wrong(found, expected)),
        }
        self.levels.push(Level {
            object: bracket == b'{',
            first: true,
            index: 0,
            names: Vec::new(),
            path: self.path.len(),
        });
        Ok(())
    }

    /// The name of the next member of the object entered last; `None` leaves the object.
    ///
    /// # Errors
    /// If the text is no member, the name was there before, or the reader fails.
    pub fn next_member(&mut self) -> Result<Option<Box<str>>, StreamError> {
        if !self.advance(b'}', "a comma or a closing brace")? {
            return Ok(None);
        }
        let found = self.peek()?;
        if found != Some(b'"') {
            return Err(self.wrong(found, "a member name"));
        }
        let length = self.measure()?;
        let name = self.name(length)?;
        self.consume(length);
        match self.peek()? {
            Some(b':') => self.consume(1),
            found => return Err(self.wrong(found, "a colon")),
        }
        self.name_bytes += name.len();
        let limit = self.limits.bytes;
        let Some(level) = self.levels.last_mut() else {
            return Ok(None);
        };
        if level.names.contains(&name) {
            let name = name.into();
            return Err(self.error(Problem::DuplicateMember { name }).into());
        }
        if self.name_bytes > limit || level.names.len() >= 1024 {
            return Err(self.error(Problem::TooLarge { limit }).into());
        }
        level.names.push(name.clone());
        push_step(&mut self.path, &name);
        Ok(Some(name))
    }

    /// Whether the array entered last has another element; `false` leaves the array.
    ///
    /// # Errors
    /// If the text is no element, or the reader fails.
    pub fn next_element(&mut self) -> Result<bool, StreamError> {
        if !self.advance(b']', "a comma or a closing bracket")? {
            return Ok(false);
        }
        if let Some(level) = self.levels.last_mut() {
            let index = level.index;
            level.index += 1;
            push_step(&mut self.path, &index.to_string());
        }
        Ok(true)
    }

    /// Whether the value that comes next is `null`; it is still to be captured.
    ///
    /// # Errors
    /// If the reader fails.
    pub fn peek_null(&mut self) -> Result<bool, StreamError> {
        Ok(self.peek()? == Some(b'n'))
    }

    /// The value that comes next, whole. It is checked by parsing it, not here.
    ///
    /// # Errors
    /// If the text ends inside it, it is longer than the limit, or the reader fails.
    pub fn capture(&mut self) -> Result<Captured<'_>, StreamError> {
        match self.peek()? {
            None | Some(b',' | b':' | b']' | b'}') => {
                let found = self.peek()?;
                return Err(self.wrong(found, "a value"));
            }
            Some(_) => {}
        }
        let length = self.measure()?;
        self.pending = length;
        Ok(Captured {
            text: self.buffer.get(self.start..self.start + length).unwrap_or_default(),
            place: self.place,
            path: &self.path,
            limits: &self.limits,
        })
    }

    /// What comes next, at least so many bytes of it if the input has them: for a caller that knows by its shape where the
    /// value ends, so that it need not be measured first. [`Stream::pass`] says where.
    ///
    /// # Errors
    /// If the reader fails.
    pub fn ahead(&mut self, least: usize) -> Result<&[u8], StreamError> {
        self.peek()?;
        while self.buffer.len() - self.start < least && self.fill()? {}
        Ok(self.buffer.get(self.start..).unwrap_or_default())
    }

    /// Passes the value that comes next, which is the first `length` bytes of what [`Stream::ahead`] returned last. That they
    /// are one value, whole and within the limits, is the caller's to know.
    pub fn pass(&mut self, length: usize) {
        self.pending = length.min(self.buffer.len() - self.start);
    }

    /// Checks that nothing follows.
    ///
    /// # Errors
    /// If something does, or the reader fails.
    pub fn end(&mut self) -> Result<(), StreamError> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.error(Problem::TrailingData).into()),
        }
    }

    /// Passes the comma before the next item, or the bracket after the last.
    fn advance(&mut self, close: u8, expected: &'static str) -> Result<bool, StreamError> {
        let mut found = self.peek()?;
        let Some(level) = self.levels.last_mut() else {
            return Ok(false);
        };
        debug_assert_eq!(level.object, close == b'}', "the container entered last is of the other kind");
        self.path.truncate(level.path);
        let first = std::mem::take(&mut level.first);
        if found == Some(close) {
            self.consume(1);
            self.levels.pop();
            return Ok(false);
        }
        if !first {
            if found != Some(b',') {
                return Err(self.wrong(found, expected));
            }
            self.consume(1);
            found = self.peek()?;
        }
        match found {
            None | Some(b',' | b'}' | b']') => Err(self.wrong(found, "another item")),
            Some(_) => Ok(true),
        }
    }

    fn name(&self, length: usize) -> Result<Box<str>, StreamError> {
        let text = self.buffer.get(self.start..self.start + length).unwrap_or_default();
        let here = |offset| Place::of(text, offset);
        let error = |offset, problem| {
            let error = Error::new(here(offset), "", problem);
            StreamError::from(error.within(self.place, &self.path))
        };
        let utf8 = std::str::from_utf8(text).map_err(|e| error(e.valid_up_to(), Problem::InvalidUtf8))?;
        match Lexer::new(utf8, &self.limits).next_token() {
            Ok(Some(token)) => match token.kind {
                TokenKind::String(raw) => Ok(raw.decode().into()),
                _ => Err(error(0, Problem::Syntax { expected: "a member name" })),
            },
            Ok(None) => Err(error(0, Problem::Syntax { expected: "a member name" })),
            Err(failure) => Err(error(failure.offset, failure.problem)),
        }
    }

    /// The length of the value at `start`, which is then buffered whole.
    fn measure(&mut self) -> Result<usize, StreamError> {
        let mut at = 0;
        let mut depth = 0usize;
        let mut in_string = false;
        let scalar = !matches!(self.peek_here(), Some(b'"' | b'{' | b'['));
        loop {
            let limit = self.limits.bytes;
            if at > limit {
                return Err(self.error(Problem::TooLarge { limit }).into());
            }
            let rest = self.buffer.get(self.start + at..).unwrap_or_default();
            let stop = match (scalar, in_string) {
                (true, _) => rest.iter().position(|b| AFTER_SCALAR.contains(*b)),
                (_, true) => quote_or_backslash(rest),
                (_, false) => rest.iter().position(|b| STRUCTURE.contains(*b)),
            };
            let Some(stop) = stop else {
                at = at.max(self.buffer.len().saturating_sub(self.start));
                if self.ended && scalar {
                    return Ok(at);
                }
                if !self.fill()? {
                    self.consume(self.buffer.len() - self.start);
                    return Err(self.wrong(None, "the end of a value"));
                }
                continue;
            };
            if scalar {
                return Ok(at + stop);
            }
            let byte = rest.get(stop).copied();
            at += stop + 1;
            match byte {
                Some(b'\\') => {
                    // The escaped byte, which may not be buffered yet, is passed over.
                    while self.start + at >= self.buffer.len() {
                        if !self.fill()? {
                            self.consume(self.buffer.len() - self.start);
                            return Err(self.wrong(None, "the end of a value"));
                        }
                    }
                    at += 1;
                }
                Some(b'"') => in_string = !in_string,
                Some(b'{' | b'[') => depth += 1,
                _ => depth = depth.saturating_sub(1),
            }
            if depth == 0 && !in_string {
                return if at > limit { Err(self.error(Problem::TooLarge { limit }).into()) } else { Ok(at) };
            }
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Result<Option<u8>, StreamError> {
        self.consume(self.pending);
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            let space = rest.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
            match space {
                Some(space) => {
                    self.consume(space);
                    return Ok(self.peek_here());
                }
                None => {
                    self.consume(rest.len());
                    if !self.fill()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn peek_here(&self) -> Option<u8> {
        self.buffer.get(self.start).copied()
    }

    fn consume(&mut self, length: usize) {
        let passed = self.buffer.get(self.start..self.start + length).unwrap_or_default();
        self.place = self.place.after(passed);
        self.start += passed.len();
        self.pending = 0;
    }

    /// Reads another chunk; `false` at the end of the input.
    fn fill(&mut self) -> Result<bool, StreamError> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let before = self.buffer.len();
        let read = self.input.by_ref().take(CHUNK as u64).read_to_end(&mut self.buffer);
        read.map_err(|source| StreamError::Io { offset: self.place.offset + self.buffer.len(), source })?;
        self.ended = self.buffer.len() - before < CHUNK;
        Ok(self.buffer.len() > before)
    }

    fn wrong(&self, found: Option<u8>, expected: &'static str) -> StreamError {
        let problem = match found {
            Some(_) => Problem::Syntax { expected },
            None => Problem::EndOfText { expected },
        };
        self.error(problem).into()
    }
}

/// The first `"` or `\`, eight bytes at a time: most of a large document is strings.
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // Which bytes of a word are zero: exact for the lowest such byte, and only that one is used.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let (words, tail) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(at * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let at = tail.iter().position(|b| matches!(b, b'"' | b'\\'))?;
    Some(bytes.len() - tail.len() + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte a read, so that every boundary is met.
    struct Drip<'t>(&'t [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(buf.len()).min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn walk(text: &[u8]) -> Result<Vec<String>, StreamError> {
        let mut out = Vec::new();
        let mut stream = Stream::new(Drip(text), Limits { bytes: 64, nesting: 8 });
        stream.begin_object()?;
        while let Some(name) = stream.next_member()? {
            if &*name == "entries" {
                stream.begin_array()?;
                while stream.next_element()? {
                    let value = stream.capture()?;
                    value.parse()?;
                    out.push(String::from_utf8_lossy(value.text()).into_owned());
                }
            } else {
                let value = stream.capture()?;
                value.parse()?;
                out.push(format!("{name}={}", String::from_utf8_lossy(value.text())));
            }
        }
        stream.end()?;
        Ok(out)
    }

    #[test]
    fn members_and_elements_in_order() {
        let text = br#" { "a\u0062" : 12 , "entries" : [ {"x":"\"}]"} , [ ] , true ] , "z":null } "#;
        assert_eq!(walk(text).unwrap(), ["ab=12", r#"{"x":"\"}]"}"#, "[ ]", "true", "z=null"]);
        assert!(walk(br#"{"entries":[]}"#).unwrap().is_empty());
        assert!(walk(b"{}").unwrap().is_empty());
    }

    #[test]
    fn refusals_are_placed() {
        for (text, path) in [
            (&b"{\"a\":1,\"a\":2}"[..], ""),
            (b"{\"entries\":[1,,2]}", "/entries"),
            (b"{\"entries\":[1,]}", "/entries"),
            (b"{\"entries\":[{\"a\":1,\"a\":2}]}", "/entries/0"),
            (b"{\"entries\":[1] \"b\":1}", ""),
            (b"{\"a\":1} x", ""),
            (b"{\"a\":1,}", ""),
            (b"{\"a\":", "/a"),
            (b"{\"a\":\"\\", "/a"),
            (b"{\"a\" 1}", ""),
            (b"[1]", ""),
            (b"", ""),
            (b"{\"\xff\":1}", ""),
        ] {
            match walk(text) {
                Err(StreamError::Json(error)) => assert_eq!(error.path(), path, "{error}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_value_whose_end_is_known_is_passed() {
        let mut stream = Stream::new(Drip(b"[ {\"a\":1} , 2]"), Limits { bytes: 64, nesting: 8 });
        stream.begin_array().unwrap();
        assert!(stream.next_element().unwrap());
        assert!(stream.ahead(7).unwrap().starts_with(b"{\"a\":1}"));
        stream.pass(7);
        assert_eq!(stream.offset(), 9);
        assert!(stream.next_element().unwrap());
        assert_eq!(stream.ahead(100).unwrap(), b"2]");
        assert_eq!(stream.capture().unwrap().text(), b"2");
        assert!(!stream.next_element().unwrap());
        assert_eq!(stream.ahead(1).unwrap(), b"");
        stream.pass(1);
        stream.end().unwrap();
    }

    #[test]
    fn a_value_above_the_limit_is_refused_before_it_is_held() {
        let mut text = b"{\"a\":\"".to_vec();
        text.extend(std::iter::repeat_n(b'x', 1 << 20));
        let mut stream = Stream::new(&text[..], Limits { bytes: 1000, nesting: 8 });
        stream.begin_object().unwrap();
        stream.next_member().unwrap();
        assert!(matches!(
            stream.capture(),
            Err(StreamError::Json(e)) if *e.problem() == Problem::TooLarge { limit: 1000 }
        ));
        assert!(stream.buffer.len() <= 2 * CHUNK);
    }

    #[test]
    fn eight_bytes_at_a_time_finds_what_one_does() {
        for length in 0..40 {
            for at in 0..=length {
                for (stop, around) in [(b'"', b'a'), (b'\\', 0xff), (b'"', b'!'), (b'\\', b']'), (b'"', 0xa2)]
                {
                    let mut bytes = vec![around; length];
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = stop;
                    }
                    let slow = bytes.iter().position(|b| matches!(b, b'"' | b'\\'));
                    assert_eq!(quote_or_backslash(&bytes), slow, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn a_cut_anywhere_is_an_error() {
        let text = br#"{"a":"x\n","entries":[{"b":[1,2]},3],"d":"e"}"#;
        for end in 0..text.len() {
            assert!(walk(&text[..end]).is_err(), "cut at {end}");
        }
    }
}
