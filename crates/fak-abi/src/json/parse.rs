//! From text to tree: the limits, the duplicate check, and the document that knows its own text.

use super::cursor::Cursor;
use super::error::{Error, Place, Problem, push_step};
use super::lexer::{Failure, Lexer, TokenKind};
use super::value::{Kind, Member, Value};

/// How large a JSON text may be (§8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text; default 4 MiB.
    pub bytes: usize,
    /// Containers open at once; default 64, never above [`Limits::MAX_NESTING`].
    pub nesting: usize,
}

impl Limits {
    /// The most nesting that can be allowed.
    pub const MAX_NESTING: usize = 128;
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 4 << 20, nesting: 64 }
    }
}

/// A JSON text and the value it holds (§8).
#[derive(Debug, Clone)]
pub struct Document<'t> {
    text: &'t [u8],
    root: Value,
}

impl<'t> Document<'t> {
    /// Reads a whole text. Time and memory are linear in it (objects of many members: n log n).
    ///
    /// # Errors
    /// [`Error`] for anything that is not one JSON value of UTF-8 within `limits`, every object naming a member once.
    pub fn parse(text: &'t [u8], limits: &Limits) -> Result<Self, Error> {
        if text.len() > limits.bytes {
            let limit = limits.bytes;
            return Err(Error::new(Place::START, "", Problem::TooLarge { limit }));
        }
        let utf8 = std::str::from_utf8(text)
            .map_err(|error| Error::new(Place::of(text, error.valid_up_to()), "", Problem::InvalidUtf8))?;
        let mut open: Vec<Open> = Vec::new();
        match build(utf8, limits, &mut open) {
            Ok(root) => Ok(Self { text, root }),
            Err(failure) => {
                Err(Error::new(Place::of(text, failure.offset), open_path(&open), failure.problem))
            }
        }
    }

    /// The value, with the document behind it, so that what is wrong with it can be placed.
    #[must_use]
    pub fn root(&self) -> Cursor<'_> {
        Cursor::new(self, &self.root)
    }

    /// The value alone.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.root
    }

    /// An error at the value that starts at `offset`: its line and column come from the text, its path from the tree.
    pub(super) fn error_at(&self, offset: usize, problem: Problem) -> Error {
        Error::new(Place::of(self.text, offset), self.path_to(offset), problem)
    }

    /// The JSON pointer of the value that starts at `offset`. Children stand in order, so each level is one scan.
    fn path_to(&self, offset: usize) -> String {
        let mut path = String::new();
        let mut at = &self.root;
        while at.offset() < offset {
            let next = match at.kind() {
                Kind::Array(elements) => {
                    let after = elements.partition_point(|v| v.offset() <= offset);
                    let Some(index) = after.checked_sub(1) else {
                        break;
                    };
                    push_step(&mut path, &index.to_string());
                    elements.get(index)
                }
                Kind::Object(members) => {
                    let after = members.partition_point(|m| m.value.offset() <= offset);
                    let Some(member) = after.checked_sub(1).and_then(|i| members.get(i)) else {
                        break;
                    };
                    push_step(&mut path, &member.name);
                    Some(&member.value)
                }
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        path
    }
}

/// A container whose end has not been read.
enum Open {
    Array {
        at: usize,
        elements: Vec<Value>,
    },
    Object {
        at: usize,
        members: Vec<Member>,
        /// Where each name stands, for the duplicate check.
        names: Vec<usize>,
        name: Box<str>,
    },
}

fn build(text: &str, limits: &Limits, open: &mut Vec<Open>) -> Result<Value, Failure> {
    let mut lexer = Lexer::new(text, limits);
    let mut root = None;
    while let Some(token) = lexer.next_token()? {
        let kind = match token.kind {
            TokenKind::ObjectStart => {
                open.push(Open::Object {
                    at: token.at,
                    members: Vec::new(),
                    names: Vec::new(),
                    name: Box::default(),
                });
                continue;
            }
            TokenKind::ArrayStart => {
                open.push(Open::Array { at: token.at, elements: Vec::new() });
                continue;
            }
            TokenKind::Name(raw) => {
                if let Some(Open::Object { names, name, .. }) = open.last_mut() {
                    names.push(token.at);
                    *name = raw.decode().into();
                }
                continue;
            }
            TokenKind::ObjectEnd | TokenKind::ArrayEnd => match open.pop() {
                Some(Open::Object { at, members, names, .. }) => {
                    unique(&members, &names)?;
                    Value::read(Kind::Object(members), at)
                }
                Some(Open::Array { at, elements }) => Value::read(Kind::Array(elements), at),
                None => continue,
            },
            TokenKind::String(raw) => Value::read(Kind::String(raw.decode().into()), token.at),
            TokenKind::Number(number) => Value::read(Kind::Number(number), token.at),
            TokenKind::Bool(value) => Value::read(Kind::Bool(value), token.at),
            TokenKind::Null => Value::read(Kind::Null, token.at),
        };
        match open.last_mut() {
            Some(Open::Array { elements, .. }) => elements.push(kind),
            Some(Open::Object { members, name, .. }) => {
                members.push(Member { name: std::mem::take(name), value: kind });
            }
            None => root = Some(kind),
        }
    }
    root.ok_or(Failure { offset: text.len(), problem: Problem::EndOfText { expected: "a value" } })
}

/// Refuses the first repeated name of an object.
fn unique(members: &[Member], names: &[usize]) -> Result<(), Failure> {
    let duplicate = |index: usize| Failure {
        offset: names.get(index).copied().unwrap_or_default(),
        problem: Problem::DuplicateMember {
            name: members.get(index).map(|m| m.name.to_string()).unwrap_or_default(),
        },
    };
    if members.len() <= 16 {
        for (index, member) in members.iter().enumerate() {
            if members.iter().take(index).any(|earlier| earlier.name == member.name) {
                return Err(duplicate(index));
            }
        }
        return Ok(());
    }
    let mut order: Vec<(&str, usize)> = members.iter().enumerate().map(|(i, m)| (&*m.name, i)).collect();
    order.sort_unstable();
    let repeated = order.iter().zip(order.iter().skip(1)).filter(|(a, b)| a.0 == b.0).map(|(_, b)| b.1).min();
    match repeated {
        Some(index) => Err(duplicate(index)),
        None => Ok(()),
    }
}

/// The JSON pointer of what is being read, from the containers still open.
fn open_path(open: &[Open]) -> String {
    let mut path = String::new();
    for container in open {
        match container {
            Open::Array { elements, .. } => push_step(&mut path, &elements.len().to_string()),
            Open::Object { name, .. } if !name.is_empty() => push_step(&mut path, name),
            Open::Object { .. } => {}
        }
    }
    path
}
