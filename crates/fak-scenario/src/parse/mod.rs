//! From text to a [`Scenario`]: strict about every member, and precise about where one is wrong (§8). What the parts mean is
//! not here.

mod body_text;
mod channel;
mod envelope;
mod expect;
mod faults;
mod form;
mod kernel;
mod names;
mod parts;
mod record;
mod step;
mod tasks;
mod top;
mod wave;

use std::path::{Path, PathBuf};

use fak_abi::{
    ShareScope,
    json::{self, Cursor, Document, Fields},
};

pub use self::body_text::spell_out;
pub(crate) use self::{envelope::of_act as envelope_of, expect::to_serde};
use self::{
    faults::{Fault, Faults, Parsed},
    names::Names,
};
use crate::{
    act::{ActShape, RawJson},
    error::{Place, Problem, ScenarioError},
    load::{self, FILE_LIMIT, Reach},
    model::Scenario,
    words::meant,
};

/// What reading needs besides the text.
struct Source<'t> {
    text: &'t str,
    path: &'t Path,
    reach: Reach,
    /// Where each line but the last ends.
    line_ends: Vec<usize>,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] if the file cannot be read or is no scenario; it says where and what was expected. Things that are wrong
    /// independently of each other are all named, up to twenty, as [`ScenarioError::Several`].
    pub fn load(path: &Path, reach: Reach) -> Result<Self, ScenarioError> {
        Self::parse(&load::read(path)?, path, reach)
    }

    /// Reads a scenario's text. `path` is where it stands: errors name it, and files are looked up beside it.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(text: &[u8], path: &Path, reach: Reach) -> Result<Self, ScenarioError> {
        let limits = json::Limits {
            bytes: usize::try_from(FILE_LIMIT).unwrap_or(usize::MAX),
            ..json::Limits::default()
        };
        let document = Document::parse(text, &limits).map_err(|error| {
            let slip = slip(text, &error);
            placed(path, error, slip, None)
        })?;
        // The document is UTF-8, or it would not have been read.
        let source = Source::new(std::str::from_utf8(text).unwrap_or_default(), path, reach);
        let root = document.root();
        read(&source, root).map_err(|fault| fault.into_error(path, root))
    }
}

fn read(source: &Source<'_>, root: Cursor<'_>) -> Parsed<Scenario> {
    let mut fields = root.object()?;
    top::of_another_schema(&mut fields)?;
    let mut faults = Faults::of(root, top::MEMBERS);
    let header = top::header(&mut faults, &mut fields);
    let mut names = Names::new(agent_names(&faults, root));
    let setup = top::setup(source, &mut faults, &mut fields);
    let mut steps = Vec::new();
    let listed = fields.required("steps").map_err(Fault::from).and_then(|at| {
        form::formed("steps", at)?;
        Ok(at.array()?)
    });
    for (index, cursor) in faults.keep(root, listed).into_iter().flatten().enumerate() {
        match faults.keep(cursor, step::step(source, &mut names, index + 1, cursor)) {
            Some(step) => steps.push(step),
            // What it would have named is no fault of the steps that go on with it.
            None => names.presume(cursor),
        }
    }
    let scenario = header.zip(setup).map(|(header, setup)| Scenario {
        path: PathBuf::from(source.path),
        name: header.name,
        about: header.about,
        setup,
        steps,
    });
    faults.settle(scenario)
}

/// The agents by name, also those that are not written as they must be. `None` where they are not to be told: under a
/// misspelt member.
fn agent_names(faults: &Faults, root: Cursor<'_>) -> Option<Vec<String>> {
    match root.value().member("agents") {
        Some(agents) => Some(agents.as_object()?.iter().map(|agent| agent.name.to_string()).collect()),
        None if faults.misspelt() => None,
        None => Some(Vec::new()),
    }
}

/// The error of a file: the step is read off the path of the place.
fn placed(
    path: &Path,
    error: json::Error,
    problem: Option<Problem>,
    root: Option<Cursor<'_>>,
) -> ScenarioError {
    let mut parts = error.path().split('/').skip(1);
    let step =
        (parts.next() == Some("steps")).then(|| parts.next()?.parse::<usize>().ok()).flatten().map(|index| {
            let act = root.and_then(|root| {
                root.value().member("steps")?.as_array()?.get(index)?.member("do")?.as_str()
            });
            let act = act.and_then(ActShape::named).map_or("", |shape| shape.name);
            (index + 1, act.to_owned())
        });
    let member = match (&step, error.path().splitn(4, '/').nth(3)) {
        (Some(_), Some(rest)) => rest.to_owned(),
        (Some(_), None) => String::new(),
        (None, _) => error.path().trim_start_matches('/').to_owned(),
    };
    ScenarioError::Invalid {
        place: Box::new(Place {
            path: path.to_owned(),
            line: error.place().line,
            column: error.place().column,
            step,
            member,
        }),
        problem: problem
            .unwrap_or_else(|| Problem::Json { problem: error.problem().clone(), known: Vec::new() }),
    }
}

/// The members of an object that has no others. Unknown ones are refused before a missing one, because it is most often the
/// missing one misspelt.
fn closed<'d>(cursor: Cursor<'d>, known: &[&'static str]) -> Parsed<Fields<'d>> {
    closed_but(cursor, known, |_| None)
}

/// The same, where something better may be known of a member than the name that is nearest.
fn closed_but<'d>(
    cursor: Cursor<'d>,
    known: &[&'static str],
    better: impl Fn(&str) -> Option<String>,
) -> Parsed<Fields<'d>> {
    let mut faults = Faults::default();
    for (name, member) in cursor.entries()? {
        if !known.contains(&name) {
            let fault =
                better(name).map_or_else(|| strange(cursor, member, name, known), |text| rule(member, text));
            faults.keep::<()>(member, Err(fault));
        }
    }
    faults.settle(Some(cursor.object()?))
}

/// A member that an object cannot have. One that it can have and has not is rather meant than one that is there.
fn strange(object: Cursor<'_>, member: Cursor<'_>, name: &str, known: &[&'static str]) -> Fault {
    let absent = known.iter().copied().filter(|known| object.value().member(known).is_none());
    // Of very short names every other one is near.
    let there = || meant(name, known.iter().copied()).filter(|_| name.len() > 2);
    let nearest = meant(name, absent).or_else(there).map(str::to_owned);
    let listed = nearest.is_none().then(|| known.iter().map(|name| (*name).to_owned()).collect());
    let problem = json::Problem::UnknownMember { name: name.to_owned(), nearest };
    Fault::here(
        member.error(problem.clone()),
        Some(Problem::Json { problem, known: listed.unwrap_or_default() }),
    )
}

/// A fault of this value's own.
fn fault(cursor: Cursor<'_>, problem: Problem) -> Fault {
    Fault::here(cursor.invalid(""), Some(problem))
}

/// Characters of a word from the scenario that an error repeats.
const QUOTED: usize = 64;

/// A text that is not what its member needs, quoted. Not for bodies: their text is in no error (§8).
fn unfit(cursor: Cursor<'_>, expected: &str) -> Fault {
    let found: String = cursor.value().as_str().unwrap_or_default().chars().take(QUOTED).collect();
    rule(cursor, format!("expected {expected}; found {found:?}"))
}

/// What a text that is no JSON has in it of other notations, if that is where it breaks.
fn slip(text: &[u8], error: &json::Error) -> Option<Problem> {
    let at = error.place().offset;
    let before = text.get(..at).unwrap_or_default().iter().rfind(|byte| !byte.is_ascii_whitespace());
    let hint = match (before, text.get(at)?) {
        (_, b'/' | b'#') => "JSON has no comments",
        (_, b'\'') => "JSON quotes with \"",
        (Some(b','), b'}' | b']') => "leave out the comma before it",
        (None, byte) if byte.is_ascii_alphabetic() => "a scenario is JSON, and begins with {",
        _ => return None,
    };
    matches!(error.problem(), json::Problem::Syntax { .. })
        .then(|| Problem::Rule(format!("{}; {hint}", error.problem())))
}

/// A broken rule, in words.
fn rule(cursor: Cursor<'_>, text: impl Into<String>) -> Fault {
    fault(cursor, Problem::Rule(text.into()))
}

impl<'t> Source<'t> {
    fn new(text: &'t str, path: &'t Path, reach: Reach) -> Self {
        Self { text, path, reach, line_ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// The line a value starts on, from 1.
    fn line(&self, cursor: Cursor<'_>) -> usize {
        self.line_ends.partition_point(|end| *end < cursor.value().offset()) + 1
    }

    /// A value's exact text, for the crate that knows its type.
    fn raw(&self, cursor: Cursor<'_>) -> RawJson {
        let start = cursor.value().offset();
        let rest = self.text.get(start..).unwrap_or_default();
        let text = rest.get(..body_text::length(rest)).unwrap_or(rest).to_owned();
        RawJson { text, line: self.line(cursor) }
    }

    /// A record's text, with its body references spelled out.
    fn record(&self, cursor: Cursor<'_>) -> Parsed<RawJson> {
        let RawJson { text, line } = self.raw(cursor);
        let spelled = body_text::spelled_out(&text, cursor, ShareScope::Fleet.name())?;
        Ok(RawJson { text: spelled.unwrap_or(text), line })
    }

    /// The text of a file a member names.
    fn file(&self, cursor: Cursor<'_>) -> Parsed<(PathBuf, String)> {
        let wanted = cursor.non_empty()?;
        let place = match placed(self.path, cursor.invalid(""), None, None) {
            ScenarioError::Invalid { place, .. } => place,
            other => return Err(Fault::elsewhere(other)),
        };
        let path = load::resolve(self.path, wanted, self.reach, &place).map_err(Fault::elsewhere)?;
        // Said where the file is named: that is where it can be mended.
        let bytes = load::read_named(&path).map_err(|error| rule(cursor, error.to_string()))?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok((path, text)),
            Err(error) => {
                let place = json::Place::of(error.as_bytes(), error.utf8_error().valid_up_to());
                let error = json::Error::new(place, "", json::Problem::InvalidUtf8);
                Err(Fault::elsewhere(placed(&path, error, None, None)))
            }
        }
    }
}

/// The members of every part that has a fixed list, for the tests of the words.
#[cfg(test)]
pub(crate) fn members_of_parts() -> Vec<&'static str> {
    [top::MEMBERS, top::AGENT, top::LIMITS, parts::BODY].concat()
}
