//! A body reference of a record or patch by its text: `"body_ref": {"text": "hello"}` stands for the reference whose digest and
//! length are those of the text. Nobody has to hash by hand; what is performed is the reference.

use fak_abi::{
    Digest, ShareScope,
    json::{self, Cursor, Document, Lexer, Value},
};

use super::{Parsed, rule};

/// What a text that stands for a reference may not be.
const WRONG: &str = "a body's \"text\" is a string, and stands for its \"bytes\": leave \"bytes\" out";

/// A record or a patch with every body reference that is written as `{"text": …}` spelled out, as in scenarios. Without such a
/// one, and where the text is no JSON, it is as it was: whoever reads it says what is wrong. Lines stay the lines they are.
///
/// # Errors
///
/// A `text` that is no string, or has `bytes` beside it.
///
/// ```
/// let record = br#"{"body_ref": {"text": "hello"}}"#.to_vec();
/// let spelled = String::from_utf8(fak_scenario::spell_out(record)?)?;
/// assert!(spelled.contains("sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn spell_out(text: Vec<u8>) -> Result<Vec<u8>, json::Error> {
    let Ok(document) = Document::parse(&text, &json::Limits::default()) else { return Ok(text) };
    let root = document.root();
    let scope = root.value().member("ops").and_then(|_| root.value().member("scope")?.as_str());
    let spelled = std::str::from_utf8(&text)
        .map_or(Ok(None), |text| spelled(text, root.value(), scope.unwrap_or(ShareScope::Fleet.name())))
        .map_err(|()| root.invalid(WRONG))?;
    Ok(spelled.map_or(text, String::into_bytes))
}

/// The same of a value in a scenario, if it has such references. `scope` is for those that name none.
pub(super) fn spelled_out(text: &str, cursor: Cursor<'_>, scope: &str) -> Parsed<Option<String>> {
    spelled(text, cursor.value(), scope).map_err(|()| rule(cursor, WRONG))
}

fn spelled(text: &str, value: &Value, scope: &str) -> Result<Option<String>, ()> {
    let origin = value.offset();
    let mut found: Vec<&Value> = body_refs(value).into_iter().filter(|body| is_short(body)).collect();
    if found.is_empty() {
        return Ok(None);
    }
    found.sort_by_key(|body| body.offset());
    let (mut out, mut done) = (String::with_capacity(text.len() + 256 * found.len()), 0);
    for body in found {
        let start = body.offset().saturating_sub(origin);
        let length = length(text.get(start..).unwrap_or_default());
        out.push_str(text.get(done..start).unwrap_or_default());
        out.push_str(&reference(body, scope).ok_or(())?);
        let lines = text.get(start..start + length).unwrap_or_default().matches('\n').count();
        out.extend(std::iter::repeat_n('\n', lines));
        done = start + length;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(Some(out))
}

/// Where a record or a patch has references: its own, those of its notes, and those that its ops bring.
fn body_refs(value: &Value) -> Vec<&Value> {
    let list = |name| value.member(name).and_then(Value::as_array).unwrap_or_default();
    let mut found: Vec<&Value> = value.member("body_ref").into_iter().collect();
    found.extend(list("notes").iter().filter_map(|note| note.member("body_ref")));
    for op in list("ops") {
        let Some(value) = op.member("value") else { continue };
        if op.member("path").and_then(Value::as_str) == Some("/body_ref") {
            found.push(value);
        } else {
            found.extend(value.member("body_ref"));
        }
    }
    found
}

/// With a digest it is a reference as it stands, whatever else it has.
fn is_short(body: &Value) -> bool {
    body.member("text").is_some() && body.member("digest").is_none()
}

/// The reference of a text, with what the scenario says of it and what it leaves out.
fn reference(body: &Value, scope: &str) -> Option<String> {
    let text = body.member("text")?.as_str()?;
    if body.member("bytes").is_some() {
        return None;
    }
    let mut out = Vec::new();
    json::object(&mut out, |o| {
        for (name, default) in
            [("kind", "cas"), ("taint", "tainted"), ("scope", scope), ("durability", "session")]
        {
            if body.member(name).is_none() {
                o.string(name, default);
            }
        }
        o.string("digest", &Digest::of(text.as_bytes()).to_string());
        o.value("bytes", &Value::from(u64::try_from(text.len()).unwrap_or(u64::MAX)));
        for member in body.as_object().unwrap_or_default() {
            if &*member.name != "text" {
                o.value(&member.name, &member.value);
            }
        }
    });
    String::from_utf8(out).ok()
}

/// How long the value is that a text begins with.
pub(super) fn length(text: &str) -> usize {
    let mut lexer = Lexer::new(text, &json::Limits::default());
    while let Ok(Some(_)) = lexer.next_token() {
        if lexer.depth() == 0 {
            break;
        }
    }
    lexer.offset()
}

/// The value a path leads to, or as far as it leads.
pub(super) fn along<'v>(value: &'v Value, path: &str) -> &'v Value {
    let mut at = value;
    for part in path.split('/').skip(1) {
        let next = match at.as_array() {
            Some(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            None => at.member(&part.replace("~1", "/").replace("~0", "~")),
        };
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use fak_abi::json::{Document, Limits};

    use super::*;

    fn spelled(text: &str) -> Option<String> {
        let document = Document::parse(text.as_bytes(), &Limits::default()).unwrap();
        spelled_out(text, document.root(), "fleet").unwrap()
    }

    #[test]
    fn a_text_becomes_its_reference_and_lines_stay_lines() {
        let hello = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let text = "{\"body_ref\": {\n\"text\": \"hello\",\n\"scope\": \"tenant\"}, \"x\": 1}";
        let expected = format!(
            "{{\"body_ref\": {{\"kind\":\"cas\",\"taint\":\"tainted\",\"durability\":\"session\",\"digest\":\"{hello}\",\"bytes\":5,\"scope\":\"tenant\"}}\n\n, \"x\": 1}}"
        );
        assert_eq!(spelled(text).unwrap(), expected);
        let op = |op: &str| spelled(&format!("{{\"ops\": [{op}]}}")).is_some();
        assert!(op("{\"path\": \"/body_ref\", \"value\": {\"text\": \"x\"}}"));
        assert!(op("{\"path\": \"/notes\", \"value\": {\"body_ref\": {\"text\": \"x\"}}}"));
        assert!(!op("{\"path\": \"/title\", \"value\": {\"text\": \"x\"}}"));
        assert_eq!(spelled("{\"body_ref\": {\"text\": \"x\", \"digest\": \"sha256:a\"}}"), None);
    }

    #[test]
    fn a_length_beside_a_text_is_refused() {
        let text = "{\"body_ref\": {\"text\": \"x\", \"bytes\": 1}}";
        let document = Document::parse(text.as_bytes(), &Limits::default()).unwrap();
        assert!(spelled_out(text, document.root(), "fleet").is_err());
    }
}
