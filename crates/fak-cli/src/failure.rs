//! What ends a verb early: each says what to do next, and carries its exit status.

use std::{io, process::ExitCode};

use fak_scenario::ScenarioError;

use crate::output::Output;

/// The exit status of something that could not be read.
pub(crate) const UNREADABLE: u8 = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Standard output is closed or full.
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// A scenario that cannot be read.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A file that cannot be opened for writing.
    #[error("cannot write {path:?}: {source}")]
    Write { path: String, source: io::Error },
    /// Nothing is known by that name.
    #[error("nothing is known of {name:?}: {hint}")]
    Unknown { name: String, hint: String },
}

impl Failure {
    /// Says it, and ends with its status.
    pub(crate) fn report(self, output: &mut Output) -> ExitCode {
        output.error(&format!("fak: {self}"));
        ExitCode::from(match self {
            Self::Output(_) => 1,
            Self::Scenario(_) | Self::Write { .. } | Self::Unknown { .. } => UNREADABLE,
        })
    }
}
