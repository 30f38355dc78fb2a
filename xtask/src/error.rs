//! What can stop a task from giving an answer. A check that answers "no" is a [`Finding`](crate::report::Finding), not an
//! error.

use std::path::PathBuf;

/// A task could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// A file or folder could not be read or written.
    #[error("cannot {verb} \"{}\": {source}", path.display())]
    Io { verb: &'static str, path: PathBuf, source: std::io::Error },
    /// A program could not be started.
    #[error("cannot run `{command}`: {source}")]
    Start { command: String, source: std::io::Error },
    /// A program that a task depends on failed.
    #[error("`{command}` failed ({status})\n{stderr}")]
    Command { command: String, status: String, stderr: String },
    /// Cargo's description of the workspace could not be had.
    #[error("cannot read the workspace: {0}")]
    Metadata(#[from] cargo_metadata::Error),
    /// A file is not the JSON it should be.
    #[error("\"{}\" is not JSON: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    /// A report could not be encoded.
    #[error("cannot encode a report: {0}")]
    Encode(serde_json::Error),
    /// Standard output is gone.
    #[error("cannot write to standard output: {0}")]
    Output(std::io::Error),
    /// A step of a load was not done.
    #[error("the load stopped: {0}")]
    Load(String),
    /// A name given on the command line is not known.
    #[error("unknown {kind} \"{name}\": expected {known}")]
    Unknown { kind: &'static str, name: String, known: String },
}
