//! Reading typed envelopes out of a document: a member is asked for by name and type, and whatever is wrong is placed.

use std::borrow::Cow;

use super::error::{Error, Place, Problem};
use super::nearest::nearest;
use super::number::Number;
use super::parse::Document;
use super::value::{Kind, Member, Value};

/// A value and, where it was read from a text, the document it stands in.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'d> {
    document: Option<&'d Document<'d>>,
    value: &'d Value,
}

impl<'d> Cursor<'d> {
    pub(super) fn new(document: &'d Document<'_>, value: &'d Value) -> Self {
        Self { document: Some(document), value }
    }

    /// A value outside its document: what is wrong with it can be named but not placed.
    #[must_use]
    pub fn bare(value: &'d Value) -> Self {
        Self { document: None, value }
    }

    /// The value.
    #[must_use]
    pub fn value(self) -> &'d Value {
        self.value
    }

    /// An error at this value.
    #[must_use]
    pub fn error(self, problem: Problem) -> Error {
        self.error_at(self.value.offset(), problem)
    }

    fn error_at(self, offset: usize, problem: Problem) -> Error {
        match self.document {
            Some(document) => document.error_at(offset, problem),
            None => Error::new(Place::START, "", problem),
        }
    }

    /// An error at this value: it has the right type but is not `expected`.
    #[must_use]
    pub fn invalid(self, expected: impl Into<Cow<'static, str>>) -> Error {
        self.error(Problem::Invalid { expected: expected.into() })
    }

    fn wrong_type(self, expected: &'static str) -> Error {
        self.error(Problem::WrongType { expected, found: self.value.type_name() })
    }

    /// The string.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn string(self) -> Result<&'d str, Error> {
        self.value.as_str().ok_or_else(|| self.wrong_type("a string"))
    }

    /// The string, which must not be empty.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn non_empty(self) -> Result<&'d str, Error> {
        match self.string()? {
            "" => Err(self.invalid("a string that is not empty")),
            text => Ok(text),
        }
    }

    /// What the string stands for, out of a closed list.
    ///
    /// # Errors
    /// If it is not one of the names; the error lists them and does not repeat what was written.
    pub fn one_of<T: Copy>(self, known: &[(&'static str, T)]) -> Result<T, Error> {
        let text = self.string()?;
        match known.iter().find(|(name, _)| *name == text) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let names: Vec<_> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
                let mut expected = format!("one of {}", names.join(", "));
                if let Some(near) = nearest(text, known.iter().map(|(name, _)| *name)) {
                    expected.push_str(&format!(" (did you mean {near:?}?)"));
                }
                Err(self.invalid(expected))
            }
        }
    }

    /// The integer from 0 up, exact.
    ///
    /// # Errors
    /// If it is anything else, a fraction or an exponent included.
    pub fn u64(self) -> Result<u64, Error> {
        match self.value.kind() {
            Kind::Number(Number::U64(n)) => Ok(*n),
            Kind::Number(_) => Err(self.invalid("an integer from 0 to 18446744073709551615")),
            _ => Err(self.wrong_type("an integer")),
        }
    }

    /// The integer, exact.
    ///
    /// # Errors
    /// If it is anything else, a fraction or an exponent included.
    pub fn i64(self) -> Result<i64, Error> {
        let exact = match self.value.kind() {
            Kind::Number(Number::U64(n)) => i64::try_from(*n).ok(),
            Kind::Number(Number::I64(n)) => Some(*n),
            Kind::Number(Number::F64(_)) => None,
            _ => return Err(self.wrong_type("an integer")),
        };
        exact.ok_or_else(|| self.invalid("an integer from -9223372036854775808 to 9223372036854775807"))
    }

    /// The number as a double.
    ///
    /// # Errors
    /// If it is not a number.
    pub fn f64(self) -> Result<f64, Error> {
        match self.value.kind() {
            Kind::Number(number) => Ok(number.as_f64()),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// The boolean.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn boolean(self) -> Result<bool, Error> {
        match self.value.kind() {
            Kind::Bool(value) => Ok(*value),
            _ => Err(self.wrong_type("a boolean")),
        }
    }

    /// The elements of the array.
    ///
    /// # Errors
    /// If it is not an array.
    pub fn array(self) -> Result<impl ExactSizeIterator<Item = Cursor<'d>>, Error> {
        let elements = self.value.as_array().ok_or_else(|| self.wrong_type("an array"))?;
        Ok(elements.iter().map(move |value| Cursor { document: self.document, value }))
    }

    /// The members of an object whose names are data, in the order written.
    ///
    /// # Errors
    /// If it is not an object.
    pub fn entries(self) -> Result<impl ExactSizeIterator<Item = (&'d str, Cursor<'d>)>, Error> {
        let members = self.value.as_object().ok_or_else(|| self.wrong_type("an object"))?;
        Ok(members
            .iter()
            .map(move |member| (&*member.name, Cursor { document: self.document, value: &member.value })))
    }

    /// The members of the object, to be asked for by name.
    ///
    /// # Errors
    /// If it is not an object.
    pub fn object(self) -> Result<Fields<'d>, Error> {
        let members = self.value.as_object().ok_or_else(|| self.wrong_type("an object"))?;
        Ok(Fields { cursor: self, members, asked: Vec::with_capacity(members.len()) })
    }
}

/// The members of an object, some already asked for. End with [`Fields::finish`] where members are closed, or with
/// [`Fields::rest`] where unknown ones are kept (§5.1).
#[derive(Debug)]
pub struct Fields<'d> {
    cursor: Cursor<'d>,
    members: &'d [Member],
    asked: Vec<&'static str>,
}

impl<'d> Fields<'d> {
    /// The object itself, to place an error about all of it.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'d> {
        self.cursor
    }

    /// The member, if it is there. A member that is `null` is there.
    pub fn optional(&mut self, name: &'static str) -> Option<Cursor<'d>> {
        self.asked.push(name);
        let member = self.members.iter().find(|member| &*member.name == name)?;
        Some(Cursor { document: self.cursor.document, value: &member.value })
    }

    /// The member.
    ///
    /// # Errors
    /// If it is absent. When a member of a similar name stands there instead, that one is named.
    pub fn required(&mut self, name: &'static str) -> Result<Cursor<'d>, Error> {
        self.optional(name).ok_or_else(|| self.cursor.error(Problem::MissingMember { name: name.into() }))
    }

    /// Refuses members nobody asked for.
    ///
    /// # Errors
    /// For the first such member: its name, its place, and the nearest name that was asked for.
    pub fn finish(self) -> Result<(), Error> {
        match self.unknown().next() {
            None => Ok(()),
            Some(member) => {
                let nearest = nearest(&member.name, self.asked.iter().copied());
                Err(self.cursor.error_at(
                    member.value.offset(),
                    Problem::UnknownMember {
                        name: member.name.to_string(),
                        nearest: nearest.map(str::to_owned),
                    },
                ))
            }
        }
    }

    /// The members nobody asked for, sorted by name, to be kept and written again.
    #[must_use]
    pub fn rest(self) -> Vec<Member> {
        let mut rest: Vec<Member> = self.unknown().cloned().collect();
        rest.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        rest
    }

    fn unknown(&self) -> impl Iterator<Item = &'d Member> {
        self.members.iter().filter(|member| !self.asked.contains(&&*member.name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::Limits;
    use super::*;

    fn doc(text: &str) -> Document<'_> {
        Document::parse(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn a_mistyped_member_is_named_with_its_place_and_its_neighbour() {
        let doc = doc("{\"ops\": [\n  {\"op\": \"replace\", \"path\": \"/title\", \"vlaue\": \"secret\"}]}");
        let mut root = doc.root().object().unwrap();
        let op = root.required("ops").unwrap().array().unwrap().next().unwrap();
        let mut fields = op.object().unwrap();
        fields.required("op").unwrap();
        fields.required("path").unwrap();
        assert!(fields.optional("value").is_none());
        let error = fields.finish().unwrap_err();
        assert_eq!(error.path(), "/ops/0/vlaue");
        assert_eq!(
            error.to_string(),
            "line 2, column 48, at \"/ops/0/vlaue\": unknown member \"vlaue\", did you mean \"value\"?"
        );
    }

    #[test]
    fn types_are_checked_and_values_are_not_repeated() {
        let doc = doc(r#"{"a": "secret", "n": 1.5, "i": 9007199254740993, "neg": -1}"#);
        let mut root = doc.root().object().unwrap();
        let a = root.required("a").unwrap();
        for error in [
            a.u64().unwrap_err(),
            a.boolean().unwrap_err(),
            a.one_of(&[("sacred", 1)]).unwrap_err(),
            a.object().map(|_| ()).unwrap_err(),
        ] {
            assert_eq!(error.path(), "/a");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert!(root.required("n").unwrap().u64().is_err());
        assert_eq!(root.required("i").unwrap().u64(), Ok(9007199254740993));
        assert_eq!(root.required("neg").unwrap().i64(), Ok(-1));
        assert!(root.required("neg").unwrap().u64().is_err());
        let missing = root.required("b").unwrap_err();
        assert!(matches!(missing.problem(), Problem::MissingMember { name } if name == "b"));
    }

    #[test]
    fn the_rest_is_sorted() {
        let doc = doc(r#"{"z": 1, "known": 2, "b": 3}"#);
        let mut root = doc.root().object().unwrap();
        root.required("known").unwrap();
        let names: Vec<_> = root.rest().into_iter().map(|m| m.name).collect();
        assert_eq!(names, ["b".into(), Box::<str>::from("z")]);
    }
}
