//! The tokens of a JSON text, in order: grammar and limits are checked here, names and types are not.

use std::borrow::Cow;

use super::error::Problem;
use super::number::Number;
use super::parse::Limits;

/// What the lexer refused, and the byte where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Byte offset in the text.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// A string as it stands between its quotes, with escapes checked but not yet resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStr<'t> {
    raw: &'t str,
    escaped: bool,
}

impl<'t> RawStr<'t> {
    /// The text between the quotes, escapes and all.
    #[must_use]
    pub fn raw(self) -> &'t str {
        self.raw
    }

    /// The string itself; allocates only if it holds an escape.
    #[must_use]
    pub fn decode(self) -> Cow<'t, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut out = String::with_capacity(self.raw.len());
        // The lexer has walked this text already, so it cannot fail here.
        let _ = unescape(self.raw, |piece| out.push_str(piece), 0);
        Cow::Owned(out)
    }
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TokenKind<'t> {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// The name of a member; its colon is consumed with it.
    Name(RawStr<'t>),
    /// A string value.
    String(RawStr<'t>),
    /// A number.
    Number(Number),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// A token and the byte it starts at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Token<'t> {
    /// Byte offset in the text.
    pub at: usize,
    /// The token.
    pub kind: TokenKind<'t>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ElementOrEnd,
    NameOrEnd,
    CommaOrEnd,
    Nothing,
}

/// A pull lexer over a text (§8). Iterative: open containers are one bit each, at most [`Limits::MAX_NESTING`] of them.
#[derive(Debug, Clone)]
pub struct Lexer<'t> {
    text: &'t str,
    at: usize,
    expect: Expect,
    /// One bit a level, 1 for an object; the innermost is the lowest.
    levels: u128,
    depth: usize,
    nesting: usize,
}

impl<'t> Lexer<'t> {
    /// A lexer at the start of `text`. [`Limits::bytes`] is the parser's to check.
    #[must_use]
    pub fn new(text: &'t str, limits: &Limits) -> Self {
        Self {
            text,
            at: 0,
            expect: Expect::Value,
            levels: 0,
            depth: 0,
            nesting: limits.nesting.min(Limits::MAX_NESTING),
        }
    }

    /// The byte the next token is looked for from.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// How many containers are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next token, or `None` after a whole value and nothing else.
    ///
    /// # Errors
    /// A [`Failure`] at the first byte that breaks the grammar or a limit; the lexer is then of no further use.
    #[inline]
    pub fn next_token(&mut self) -> Result<Option<Token<'t>>, Failure> {
        let mut byte = self.skip_space();
        if self.expect == Expect::CommaOrEnd {
            match (byte, self.in_object()) {
                (Some(b','), object) => {
                    self.at += 1;
                    byte = self.skip_space();
                    if object {
                        return self.name(byte).map(Some);
                    }
                }
                (Some(b'}'), true) => return Ok(Some(self.close(TokenKind::ObjectEnd))),
                (Some(b']'), false) => return Ok(Some(self.close(TokenKind::ArrayEnd))),
                (found, true) => return Err(self.wrong(found, "a comma or a closing brace")),
                (found, false) => return Err(self.wrong(found, "a comma or a closing bracket")),
            }
        } else if self.expect == Expect::NameOrEnd {
            if byte == Some(b'}') {
                return Ok(Some(self.close(TokenKind::ObjectEnd)));
            }
            return self.name(byte).map(Some);
        } else if self.expect == Expect::ElementOrEnd {
            if byte == Some(b']') {
                return Ok(Some(self.close(TokenKind::ArrayEnd)));
            }
        } else if self.expect == Expect::Nothing {
            return match byte {
                None => Ok(None),
                Some(_) => Err(self.failure(self.at, Problem::TrailingData)),
            };
        }
        self.value(byte).map(Some)
    }

    fn value(&mut self, byte: Option<u8>) -> Result<Token<'t>, Failure> {
        let at = self.at;
        let kind = match byte {
            Some(b'"') => TokenKind::String(self.string()?),
            Some(b'{') => return self.open(true),
            Some(b'[') => return self.open(false),
            Some(b'-' | b'0'..=b'9') => TokenKind::Number(self.number()?),
            Some(b't') => self.word("true", TokenKind::Bool(true))?,
            Some(b'f') => self.word("false", TokenKind::Bool(false))?,
            Some(b'n') => self.word("null", TokenKind::Null)?,
            found => return Err(self.wrong(found, "a value")),
        };
        self.expect = self.after_value();
        Ok(Token { at, kind })
    }

    fn open(&mut self, object: bool) -> Result<Token<'t>, Failure> {
        let at = self.at;
        if self.depth >= self.nesting {
            let limit = self.nesting;
            return Err(self.failure(at, Problem::TooDeep { limit }));
        }
        self.at += 1;
        self.depth += 1;
        self.levels = (self.levels << 1) | u128::from(object);
        let (expect, kind) = if object {
            (Expect::NameOrEnd, TokenKind::ObjectStart)
        } else {
            (Expect::ElementOrEnd, TokenKind::ArrayStart)
        };
        self.expect = expect;
        Ok(Token { at, kind })
    }

    fn close(&mut self, kind: TokenKind<'t>) -> Token<'t> {
        let at = self.at;
        self.at += 1;
        self.depth -= 1;
        self.levels >>= 1;
        self.expect = self.after_value();
        Token { at, kind }
    }

    fn name(&mut self, byte: Option<u8>) -> Result<Token<'t>, Failure> {
        let at = self.at;
        if byte != Some(b'"') {
            return Err(self.wrong(byte, "a member name"));
        }
        let kind = TokenKind::Name(self.string()?);
        match self.skip_space() {
            Some(b':') => self.at += 1,
            found => return Err(self.wrong(found, "a colon")),
        }
        self.expect = Expect::Value;
        Ok(Token { at, kind })
    }

    fn string(&mut self) -> Result<RawStr<'t>, Failure> {
        let start = self.at + 1;
        let mut end = start;
        let mut escaped = false;
        loop {
            let rest = self.text.as_bytes().get(end..).unwrap_or_default();
            end += rest.iter().position(|b| STOPS_A_STRING.contains(*b)).unwrap_or(rest.len());
            match self.text.as_bytes().get(end) {
                Some(b'"') => break,
                // What is escaped is checked below; here only a quote must not be taken for the end.
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(_) => return Err(self.failure(end, Problem::ControlCharacter)),
                None => return Err(self.wrong_at(self.text.len(), None, "a closing quote")),
            }
        }
        let raw = self.text.get(start..end).unwrap_or_default();
        if escaped {
            unescape(raw, |_| (), start)?;
        }
        self.at = end + 1;
        Ok(RawStr { raw, escaped })
    }

    fn number(&mut self) -> Result<Number, Failure> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        Number::from_literal(literal).ok_or_else(|| self.failure(start, Problem::NumberOutOfRange))
    }

    fn digits(&mut self) -> Result<(), Failure> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            found => return Err(self.wrong(found, "a digit")),
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &'static str, kind: TokenKind<'t>) -> Result<TokenKind<'t>, Failure> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(kind)
        } else {
            Err(self.wrong(self.peek(), "a value"))
        }
    }

    fn in_object(&self) -> bool {
        self.levels & 1 == 1
    }

    fn after_value(&self) -> Expect {
        if self.depth == 0 { Expect::Nothing } else { Expect::CommaOrEnd }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                found => return found,
            }
        }
    }

    fn failure(&self, offset: usize, problem: Problem) -> Failure {
        Failure { offset, problem }
    }

    fn wrong(&self, found: Option<u8>, expected: &'static str) -> Failure {
        self.wrong_at(self.at, found, expected)
    }

    fn wrong_at(&self, offset: usize, found: Option<u8>, expected: &'static str) -> Failure {
        let problem = match found {
            Some(_) => Problem::Syntax { expected },
            None => Problem::EndOfText { expected },
        };
        Failure { offset, problem }
    }
}

/// A set of bytes, tested by one table look-up.
pub(super) struct ByteSet([bool; 256]);

impl ByteSet {
    /// The given bytes.
    pub(super) const fn of(bytes: &[u8]) -> Self {
        Self([false; 256]).with(bytes)
    }

    /// The controls (below 0x20) and the given bytes.
    pub(super) const fn controls_and(bytes: &[u8]) -> Self {
        let mut controls = [0; 0x20];
        let mut byte = 0;
        while byte < 0x20 {
            #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
            {
                controls[byte as usize] = byte;
            }
            byte += 1;
        }
        Self::of(&controls).with(bytes)
    }

    const fn with(mut self, bytes: &[u8]) -> Self {
        let mut i = 0;
        while i < bytes.len() {
            #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
            {
                self.0[bytes[i] as usize] = true;
            }
            i += 1;
        }
        self
    }

    #[inline]
    pub(super) fn contains(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)).copied().unwrap_or(true)
    }
}

static STOPS_A_STRING: ByteSet = ByteSet::controls_and(b"\"\\");

/// Walks the escapes of a raw string, handing out the decoded pieces in order. `base` is where the text stands in its
/// document.
fn unescape(raw: &str, mut piece: impl FnMut(&str), base: usize) -> Result<(), Failure> {
    let fail = |rest: &str, problem| Failure { offset: base + raw.len() - rest.len(), problem };
    let mut rest = raw;
    while let Some((plain, tail)) = rest.split_once('\\') {
        piece(plain);
        let escape = rest.get(plain.len()..).unwrap_or_default();
        let (simple, length) = match tail.bytes().next() {
            Some(b'"') => ("\"", 1),
            Some(b'\\') => ("\\", 1),
            Some(b'/') => ("/", 1),
            Some(b'b') => ("\u{8}", 1),
            Some(b'f') => ("\u{c}", 1),
            Some(b'n') => ("\n", 1),
            Some(b'r') => ("\r", 1),
            Some(b't') => ("\t", 1),
            Some(b'u') => ("", 5),
            _ => return Err(fail(escape, Problem::InvalidEscape)),
        };
        rest = tail.get(length..).unwrap_or_default();
        if length == 1 {
            piece(simple);
            continue;
        }
        let unit = hex4(tail.get(1..5)).ok_or_else(|| fail(escape, Problem::InvalidEscape))?;
        let mut code = u32::from(unit);
        if (0xD800..0xDC00).contains(&unit) {
            // A high half must be followed by the escape of a low half.
            let low = rest.strip_prefix("\\u").and_then(|after| hex4(after.get(..4)));
            match low {
                Some(low) if (0xDC00..0xE000).contains(&low) => {
                    code = 0x10000 + ((code - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                    rest = rest.get(6..).unwrap_or_default();
                }
                _ => return Err(fail(escape, Problem::LoneSurrogate)),
            }
        }
        let Some(c) = char::from_u32(code) else {
            return Err(fail(escape, Problem::LoneSurrogate));
        };
        piece(c.encode_utf8(&mut [0; 4]));
    }
    piece(rest);
    Ok(())
}

fn hex4(digits: Option<&str>) -> Option<u16> {
    let digits = digits?;
    if digits.bytes().all(|b| b.is_ascii_hexdigit()) { u16::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> Result<Vec<TokenKind<'_>>, Failure> {
        let mut lexer = Lexer::new(text, &Limits::default());
        let mut out = Vec::new();
        while let Some(token) = lexer.next_token()? {
            out.push(token.kind);
        }
        Ok(out)
    }

    #[test]
    fn tokens_in_order() {
        let kinds = lex(" {\"a\" : [1, null,\"x\\n\"]} ").unwrap();
        assert_eq!(kinds.len(), 8);
        let TokenKind::String(s) = kinds[5] else { panic!("not a string") };
        assert_eq!((s.raw(), &*s.decode()), ("x\\n", "x\n"));
    }

    #[test]
    fn refusals_name_the_byte() {
        for (text, offset) in [
            ("", 0),
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("{,}", 1),
            ("[1 2]", 3),
            ("01", 1),
            ("1.", 2),
            ("-", 1),
            ("1e+", 3),
            ("tru", 0),
            ("\"a\nb\"", 2),
            ("\"\\x\"", 1),
            ("\"ab\\u12g4\"", 3),
            ("\"\\ud800\"", 1),
            ("\"\\ud800\\u0041\"", 1),
            ("\"\\udc00\"", 1),
            ("\"abc", 4),
            ("\"abc\\", 5),
            ("1 1", 2),
            ("}", 0),
        ] {
            assert_eq!(lex(text).unwrap_err().offset, offset, "{text:?}");
        }
    }

    #[test]
    fn a_pair_of_halves_is_one_character() {
        let kinds = lex("\"\\uD83D\\ude00\"").unwrap();
        let TokenKind::String(s) = kinds[0] else { panic!("not a string") };
        assert_eq!(s.decode(), "😀");
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(lex(&deep(64)).is_ok());
        assert_eq!(lex(&deep(65)).unwrap_err().problem, Problem::TooDeep { limit: 64 });
        assert!(lex(&"[".repeat(1_000_000)).is_err());
    }
}
