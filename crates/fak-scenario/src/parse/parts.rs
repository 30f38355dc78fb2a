//! The parts that many acts share: channels, bodies, names, lists.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fak_abi::{
    Locale, ShareScope, Taint,
    json::{Cursor, Fields},
};

use super::{
    Fault, Faults, Parsed, QUOTED, fault,
    names::{Kept, Names},
    rule, unfit,
};
use crate::{
    act::{Address, Body, Inbox, Source, Subject},
    error::Problem,
    words::meant,
};

/// The members a body may have.
pub(super) const BODY: &[&str] = &["text", "base64", "ref", "scope", "taint", "owner"];

/// A channel, `locale:id`. The id is judged when the act is performed (§4.1).
pub(super) fn address(names: &Names, cursor: Cursor<'_>) -> Parsed<Address> {
    let parts = cursor.string()?.split_once(':');
    match parts.and_then(|(locale, id)| Some((locale.parse::<Locale>().ok()?, id))) {
        Some((locale, id)) => Ok(Address { locale, id: id.to_owned() }),
        None => Err(no_channel(names, cursor)),
    }
}

/// A text that is no channel, with one that it may be meant to be.
fn no_channel(names: &Names, cursor: Cursor<'_>) -> Fault {
    const EXPECTED: &str =
        "a channel as \"locale:id\", such as \"in_kernel:news\"; the locale is in_kernel, session or window";
    let given = cursor.value().as_str().unwrap_or_default();
    if names.has_agent(given) {
        let text = format!(
            "{given:?} is an agent, not a channel; its session is \"session:trace-{given}\", unless it has another \"trace_id\""
        );
        return rule(cursor, text);
    }
    let locales = Locale::ALL.iter().map(|locale| locale.name());
    let near = match given.split_once(':') {
        Some((locale, id)) => meant(locale, locales).map(|locale| (locale, id)),
        None => Some((Locale::InKernel.name(), given)),
    };
    match near.filter(|_| given.len() <= QUOTED) {
        Some((locale, id)) if fak_abi::Id::new(id).is_ok() => {
            rule(cursor, format!("expected {EXPECTED}; found {given:?}, did you mean \"{locale}:{id}\"?"))
        }
        _ => unfit(cursor, EXPECTED),
    }
}

/// `{text | base64 | ref, scope?, taint?, owner?}`.
pub(super) fn body(names: &Names, cursor: Cursor<'_>) -> Parsed<Body> {
    if cursor.value().as_object().is_none() {
        return Err(rule(cursor, "a body is an object: {\"text\": …}, with \"scope\" if it is to be shared"));
    }
    let mut fields = cursor.object()?;
    let mut faults = Faults::of(cursor, BODY);
    let source = faults.keep(cursor, bytes_of(names, &mut fields));
    let owner_at = fields.optional("owner");
    if let (Some(_), Some(owner)) = (fields.optional("ref"), owner_at) {
        faults
            .keep::<()>(owner, Err(rule(owner, "a kept \"ref\" has its owner already; leave \"owner\" out")));
    }
    let scope = faults.keep(cursor, scope(&mut fields)).flatten();
    let taint = fields.optional("taint").map(|at| word(at, "taint", Taint::ALL, Taint::name)).transpose();
    let taint = faults.keep(cursor, taint).flatten();
    let owner = faults.keep(cursor, owner_at.map(|owner| names.agent(owner)).transpose()).flatten();
    faults.settle(source.map(|source| Body { source, scope, taint, owner }))
}

/// The one of `text`, `base64` and `ref` that a body has.
fn bytes_of(names: &Names, fields: &mut Fields<'_>) -> Parsed<Source> {
    match (fields.optional("text"), fields.optional("base64"), fields.optional("ref")) {
        (Some(text), None, None) => Ok(Source::Bytes(text.string()?.as_bytes().to_vec())),
        (None, Some(base64), None) => Ok(Source::Bytes(
            STANDARD
                .decode(base64.string()?)
                .map_err(|_| base64.invalid("standard base64 with its padding"))?,
        )),
        (None, None, Some(saved)) => Ok(Source::Saved(names.kept(Kept::Saved, saved)?)),
        _ => Err(rule(fields.cursor(), "a body has exactly one of \"text\", \"base64\" and \"ref\"")),
    }
}

/// `scope`, if it is there.
pub(super) fn scope(fields: &mut Fields<'_>) -> Parsed<Option<ShareScope>> {
    fields.optional("scope").map(|at| word(at, "scope", ShareScope::ALL, ShareScope::name)).transpose()
}

/// `body` or `ref`.
pub(super) fn subject(names: &Names, fields: &mut Fields<'_>) -> Parsed<Subject> {
    match (fields.optional("body"), fields.optional("ref")) {
        (Some(cursor), None) => Ok(Subject::Body(body(names, cursor)?)),
        (None, Some(saved)) => Ok(Subject::Saved(names.kept(Kept::Saved, saved)?)),
        _ => Err(rule(fields.cursor(), "exactly one of \"body\" and \"ref\" is needed")),
    }
}

/// `at` or `inbox`.
pub(super) fn inbox(names: &Names, fields: &mut Fields<'_>) -> Parsed<Inbox> {
    match (fields.optional("at"), fields.optional("inbox")) {
        (Some(at), None) => Ok(Inbox::At(address(names, at)?)),
        (None, Some(inbox)) => Ok(Inbox::Named(names.kept(Kept::Inbox, inbox)?)),
        _ => Err(rule(fields.cursor(), "exactly one of \"at\" and \"inbox\" is needed")),
    }
}

/// A word of a closed vocabulary; `what` says which.
pub(super) fn word<T: Copy>(
    cursor: Cursor<'_>,
    what: &'static str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Parsed<T> {
    let given = cursor.string()?;
    let names = || all.iter().map(|word| name(*word));
    all.iter().copied().find(|word| name(*word) == given).ok_or_else(|| {
        let problem = Problem::UnknownName {
            what,
            name: given.chars().take(QUOTED).collect(),
            nearest: meant(given, names()).map(str::to_owned),
            known: names().map(str::to_owned).collect(),
        };
        fault(cursor, problem)
    })
}

/// A member that must be a text.
pub(super) fn text(fields: &mut Fields<'_>, name: &'static str) -> Parsed<String> {
    Ok(fields.required(name)?.string()?.to_owned())
}

/// A member that may be a text.
pub(super) fn optional_text(fields: &mut Fields<'_>, name: &'static str) -> Parsed<Option<String>> {
    Ok(fields.optional(name).map(|cursor| cursor.string().map(str::to_owned)).transpose()?)
}

/// A member that may be a whole number from 0 up.
pub(super) fn optional_count(fields: &mut Fields<'_>, name: &'static str) -> Parsed<Option<u64>> {
    Ok(fields.optional(name).map(Cursor::u64).transpose()?)
}

/// A list of texts.
pub(super) fn texts(cursor: Cursor<'_>) -> Parsed<Vec<String>> {
    let mut list = Vec::new();
    for element in cursor.array()? {
        list.push(element.string()?.to_owned());
    }
    Ok(list)
}

/// A list of bodies; a plain text is a body of it.
pub(super) fn bodies(names: &Names, cursor: Cursor<'_>) -> Parsed<Vec<Body>> {
    let mut list = Vec::new();
    for element in cursor.array()? {
        list.push(match element.value().as_str() {
            Some(text) => Body {
                source: Source::Bytes(text.as_bytes().to_vec()),
                scope: None,
                taint: None,
                owner: None,
            },
            None => body(names, element)?,
        });
    }
    Ok(list)
}
