//! The acts of a scenario as types that cannot be wrong: one struct an act, each with exactly the arguments its row of the
//! act table has. Reading them is `parse`, doing them is `perform`.

mod channel;
mod kernel;
mod record;
mod shape;
mod wave;

use fak_abi::json::{Document, Limits, Value};

pub use self::shape::{ActInfo, acts};
pub(crate) use self::{channel::*, kernel::*, record::*, shape::*, wave::*};
use crate::expect::Expectations;

/// Who performs an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// An agent of the scenario, by name.
    Agent(String),
    /// `"?name"`: a principal that was never attached; its acts must be refused.
    Stranger(String),
    /// A step without `by`.
    Host,
}

/// A channel as written: the locale is checked when read, the id when the act is performed, because a malformed id is an
/// audited refusal (§4.1) and not an unreadable file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The locale's name.
    pub(crate) locale: fak_abi::Locale,
    /// The id, unchecked.
    pub(crate) id: String,
}

impl RawJson {
    /// The id of the task, if it is a record that has one.
    pub(crate) fn task_id(&self) -> Option<String> {
        let document = Document::parse(self.text.as_bytes(), &Limits::default()).ok()?;
        Some(document.root().value().member("task_id").and_then(Value::as_str)?.to_owned())
    }
}

impl Address {
    /// The key it names.
    ///
    /// # Errors
    ///
    /// [`fak_abi::AddressError`] if the id is none.
    pub(crate) fn key(&self) -> Result<fak_abi::ChannelKey, fak_abi::AddressError> {
        fak_abi::ChannelKey::new(self.locale, &self.id)
    }
}

impl std::fmt::Display for Address {
    /// With the id quoted and escaped, so that it cannot fake the text around it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{:?}", self.locale, self.id)
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Agent(name) => write!(f, "{name}"),
            Self::Stranger(name) => write!(f, "?{name}"),
            Self::Host => write!(f, "(host)"),
        }
    }
}

/// Where the bytes of a body come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `text` or `base64`.
    Bytes(Vec<u8>),
    /// `ref`: what an earlier step kept with `save`.
    Saved(String),
}

/// `{text | base64 | ref, scope?, taint?, owner?}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// The bytes.
    pub(crate) source: Source,
    /// A scope to be reached by a real widening.
    pub(crate) scope: Option<fak_abi::ShareScope>,
    /// A taint the host sets, last.
    pub(crate) taint: Option<fak_abi::Taint>,
    /// The agent that makes the body, if it is not the acting one.
    pub(crate) owner: Option<String>,
}

/// What an act works on: a new body or a kept one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// `body`.
    Body(Body),
    /// `ref`.
    Saved(String),
}

/// Where a message is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Inbox {
    /// `at`: a mailbox.
    At(Address),
    /// `inbox`: a subscription's or request's `as`, or a group.
    Named(String),
}

/// A piece of JSON as it stands in the file, for the crate that knows its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawJson {
    /// The exact text.
    pub(crate) text: String,
    /// The line it starts on.
    pub(crate) line: usize,
}

/// One step: where it stands, what it does, what it must answer.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Counted from 1.
    pub(crate) number: usize,
    /// The line its object starts on.
    pub(crate) line: usize,
    /// Its row of the table.
    pub(crate) shape: &'static ActShape,
    /// Who performs it.
    pub(crate) by: Actor,
    /// What is done.
    pub(crate) act: Act,
    /// The name under which what it yields is kept.
    pub(crate) save: Option<String>,
    /// What it must answer.
    pub(crate) expect: Expectations,
    /// The names it gives or goes on with, as written under `as`, `save`, `ref` and the like.
    pub(crate) names: Vec<String>,
}

/// What a step does, by family.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// §4: channels.
    Channel(ChannelAct),
    /// §2–§3: the kernel, its pool and its log.
    Kernel(KernelAct),
    /// §5: the shared record and the space.
    Record(RecordAct),
    /// §6: groups, collectives, barriers and lanes.
    Wave(WaveAct),
    /// `explain`: what an act would answer, without doing it (§3.5).
    Explain {
        /// Who would perform it.
        by: Actor,
        /// The act in question.
        of: Box<Act>,
    },
}
