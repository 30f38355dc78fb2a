//! What a step must answer and what it answered: stating, comparing, and saying the difference. Nothing here knows how an act
//! is performed.

use std::collections::BTreeMap;

use serde_json::Value;

/// One answer, expected or given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// A word or an exact text.
    Text(String),
    /// A check, or one of its instances.
    Check(String),
    /// A text to be found inside the answer.
    Contains(String),
    /// A whole number.
    Count(u64),
    /// True or false.
    Flag(bool),
    /// Texts, in order.
    List(Vec<String>),
    /// Any JSON.
    Json(Value),
}

/// What a step expects: nothing said, or a list of members.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expectations {
    /// No `expect`: the act must be allowed, and a patch accepted. With the verdict's word for that.
    Success(&'static str),
    /// The members of `expect`, as written.
    Members(Vec<(&'static str, Answer)>),
}

/// A member that was expected otherwise.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mismatch {
    /// The member of `expect`; `act` where the act could not be tried at all.
    pub member: String,
    /// What had to be answered; nothing where the member had to be absent, or the act could not be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// What was answered, if the act answered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<Value>,
    /// The same in a sentence, without the place.
    pub message: String,
}

impl Mismatch {
    /// An act that could not be tried at all.
    pub(crate) fn untried(why: &str) -> Self {
        let message = format!("could not be tried: {why}");
        Self { member: "act".to_owned(), expected: None, got: None, message }
    }

    /// What is expected in words, as it follows the member in the sentence.
    fn new(member: &str, (expected, words): (Option<Value>, &str), got: Option<&Answer>) -> Self {
        let answered = got.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        let message = format!("expected {member} {words}, got {answered}");
        Self { member: member.to_owned(), expected, got: got.map(Answer::to_json), message }
    }
}

/// What an act answered: the members its row of the table has and that applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(Vec<(&'static str, Answer)>);

impl Answers {
    /// Forgets an answer that its act does not give.
    pub(crate) fn unset(&mut self, member: &str) {
        self.0.retain(|(name, _)| *name != member);
    }

    /// Notes an answer; a later one of the same member replaces it.
    pub(crate) fn set(&mut self, member: &'static str, answer: impl Into<Answer>) {
        let answer = answer.into();
        match self.0.iter_mut().find(|(name, _)| *name == member) {
            Some(slot) => slot.1 = answer,
            None => self.0.push((member, answer)),
        }
    }

    /// The answers by member, as JSON, without those that stand in a report under their own names.
    pub(crate) fn besides(&self, own: &[&str]) -> BTreeMap<&'static str, Value> {
        let besides = self.0.iter().filter(|(name, _)| !own.contains(name));
        besides.map(|(name, answer)| (*name, answer.to_json())).collect()
    }

    /// The answer to a member.
    pub(crate) fn of(&self, member: &str) -> Option<&Answer> {
        self.0.iter().find(|(name, _)| *name == member).map(|(_, answer)| answer)
    }

    /// The text of a member, for the line a step prints.
    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        match self.of(member)? {
            Answer::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What of `expected` these answers do not meet.
    pub(crate) fn mismatches(&self, expected: &Expectations) -> Vec<Mismatch> {
        match expected {
            Expectations::Success(word) => self.unsuccessful(word).into_iter().collect(),
            Expectations::Members(members) => members
                .iter()
                .filter_map(|(member, want)| {
                    let got = self.of(member);
                    (!got.is_some_and(|got| want.met_by(got)))
                        .then(|| Mismatch::new(member, (Some(want.to_json()), &want.to_string()), got))
                })
                .collect(),
        }
    }

    /// Without `expect`: every verdict must be one of success, `ok` true and no error.
    fn unsuccessful(&self, success: &str) -> Option<Mismatch> {
        let word = |member: &'static str, success: &str| {
            let got = self.text(member)?;
            (!["allow", "transform", "accepted"].contains(&got)).then(|| {
                let words = unstated(&format!("\"{success}\""));
                Mismatch::new(member, (Some(success.into()), &words), self.of(member))
            })
        };
        word("verdict", success)
            .or_else(|| word("act", "allow"))
            .or_else(|| {
                ["error", "conflict"].into_iter().find_map(|member| {
                    let got = self.of(member)?;
                    Some(Mismatch::new(member, (None, &unstated("to be absent")), Some(got)))
                })
            })
            .or_else(|| {
                let got = self.of("ok").filter(|ok| **ok == Answer::Flag(false))?;
                Some(Mismatch::new("ok", (Some(true.into()), &unstated("true")), Some(got)))
            })
    }
}

/// What a step without `expect` needs, as it follows the member in a sentence.
fn unstated(need: &str) -> String {
    format!("{need}, as the step has no \"expect\"")
}

impl std::fmt::Display for Mismatch {
    /// In a sentence, without the place.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Answer {
    /// Whether `got` is what this expects.
    pub(crate) fn met_by(&self, got: &Self) -> bool {
        match (self, got) {
            (Self::Contains(part), Self::Text(text) | Self::Contains(text)) => text.contains(part),
            (Self::Check(want), Self::Text(got)) => {
                got == want || got.strip_prefix(&**want).is_some_and(|rest| rest.starts_with('#'))
            }
            // `true` for something that has members: it is there.
            (Self::Json(Value::Bool(true)), Self::Json(Value::Object(_))) => true,
            (Self::Json(want), got) => covers(want, &got.to_json()),
            (want, got) => want == got,
        }
    }

    /// As JSON, for reports.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Text(text) | Self::Check(text) | Self::Contains(text) => Value::from(text.as_str()),
            Self::Count(count) => Value::from(*count),
            Self::Flag(flag) => Value::from(*flag),
            Self::List(list) => Value::from(list.clone()),
            Self::Json(value) => value.clone(),
        }
    }
}

/// Whether every member `want` lists is in `got`; lists must agree in length. The depth is that of the scenario file, which is
/// bounded when it is read (§8).
fn covers(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            want.iter().all(|(name, want)| got.get(name).is_some_and(|got| covers(want, got)))
        }
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(want, got)| covers(want, got))
        }
        (Value::Number(want), Value::Number(got)) => {
            want == got || want.as_f64().is_some() && want.as_f64() == got.as_f64()
        }
        (want, got) => want == got,
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Self::Contains(_) = self {
            f.write_str("a text with ")?;
        }
        write!(f, "{}", self.to_json())
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Answer {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Answer {
    fn from(count: usize) -> Self {
        Self::Count(u64::try_from(count).unwrap_or(u64::MAX))
    }
}

impl From<bool> for Answer {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Vec<String>> for Answer {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answers(list: Vec<(&'static str, Answer)>) -> Answers {
        let mut answers = Answers::default();
        for (member, answer) in list {
            answers.set(member, answer);
        }
        answers
    }

    #[test]
    fn only_the_members_listed_are_compared() {
        let got = answers(vec![("verdict", "deny".into()), ("reason", "MISROUTE".into())]);
        assert!(got.mismatches(&Expectations::Members(vec![("verdict", "deny".into())])).is_empty());
        let wrong = got.mismatches(&Expectations::Members(vec![("text", "x".into())]));
        assert_eq!((&wrong[0].expected, &wrong[0].got), (&Some("x".into()), &None));
        assert_eq!(wrong[0].to_string(), "expected text \"x\", got nothing");
    }

    #[test]
    fn nested_members_match_what_they_list() {
        let want = Answer::Json(json!({"path": "/title", "base_value": null}));
        let got = Answer::Json(json!({"path": "/title", "base_value": null, "current_value": "x"}));
        assert!(want.met_by(&got));
        assert!(!got.met_by(&want));
        assert!(!Answer::Json(json!([1])).met_by(&Answer::Json(json!([1, 2]))));
        assert!(Answer::Json(json!({"a": 1})).met_by(&Answer::Json(json!({"a": 1.0}))));
    }

    #[test]
    fn without_expect_an_act_must_succeed() {
        let success = Expectations::Success("allow");
        assert!(answers(vec![("verdict", "allow".into())]).mismatches(&success).is_empty());
        assert!(answers(vec![("count", 3_u64.into())]).mismatches(&success).is_empty());
        for bad in [
            ("verdict", Answer::from("deny")),
            ("verdict", "empty".into()),
            ("act", "deny".into()),
            ("verdict", "conflict".into()),
            ("ok", false.into()),
            ("error", "x".into()),
        ] {
            let wrong = answers(vec![bad]).mismatches(&success);
            assert_eq!(wrong.len(), 1);
            assert!(wrong[0].message.contains("the step has no \"expect\""), "{wrong:?}");
        }
        let denied = answers(vec![("verdict", "deny".into())]).mismatches(&success);
        assert_eq!((&denied[0].expected, &denied[0].got), (&Some("allow".into()), &Some("deny".into())));
        let merge = vec![("act", "allow".into()), ("verdict", "conflict".into())];
        let merged = answers(merge).mismatches(&Expectations::Success("accepted"));
        assert_eq!(
            merged[0].to_string(),
            "expected verdict \"accepted\", as the step has no \"expect\", got \"conflict\""
        );
    }

    #[test]
    fn an_error_holds_if_it_occurs_in_the_text() {
        assert!(Answer::Contains("cycle".into()).met_by(&"cycle: a -> b".into()));
        assert!(!Answer::Contains("loop".into()).met_by(&"cycle: a -> b".into()));
    }
}
