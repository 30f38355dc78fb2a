//! What ends a verb early: each says what to do next, and carries its exit status.

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind},
    path::{Path, PathBuf},
    process::ExitCode,
};

use fak_abi::json::nearest;
use fak_scenario::{ErrorEntry, ScenarioError};
use serde_json::json;

use crate::{
    kind::{Kind, mistaken},
    output::Output,
};

/// The exit status of something that could not be read or written.
pub(crate) const UNREADABLE: u8 = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Standard output is closed or full.
    #[error("cannot write: {0}")]
    Output(io::Error),
    /// A scenario that cannot be read.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A file that is not what the verb reads: the text has the place in it.
    #[error("{path}: {problem}")]
    File { path: String, problem: String },
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    /// Arguments that are none of those there are.
    #[error("{}", one_line(.0))]
    Arguments(clap::Error),
    /// Nothing is known by that name.
    #[error("nothing is known of {name:?}: {hint}")]
    Unknown { name: String, hint: String },
}

impl Failure {
    /// What is wrong with a file.
    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File { path: path.display().to_string(), problem: problem.to_string() }
    }

    /// What is wrong with a file that a verb reads as one of this kind: if it is one of another, that.
    pub(crate) fn of_kind(path: &Path, wanted: Kind, problem: impl ToString) -> Self {
        match mistaken(path, wanted) {
            Some(mistaken) => Self::file(path, mistaken),
            None => Self::file(path, problem),
        }
    }

    /// A scenario that cannot be read: if the file is something else, that.
    pub(crate) fn scenario(path: &Path, error: ScenarioError) -> ScenarioError {
        match mistaken(path, Kind::Scenario).filter(|_| error.path() == Some(path)) {
            Some(problem) => ScenarioError::File { path: path.to_owned(), problem },
            None => Self::not_there(error),
        }
    }

    /// A file that is not there, with one beside it that may be meant.
    pub(crate) fn not_there(error: ScenarioError) -> ScenarioError {
        match error {
            ScenarioError::Read { path, source } if source.kind() == ErrorKind::NotFound => {
                match beside(&path) {
                    Some(near) => {
                        let problem = format!("is not there; did you mean {:?}?", near.display().to_string());
                        ScenarioError::File { path, problem }
                    }
                    None => ScenarioError::Read { path, source },
                }
            }
            other => other,
        }
    }

    /// Says it: to people on standard error, to programs as `errors` on standard output.
    pub(crate) fn tell(&self, output: &mut Output) {
        let told = output.json() && !matches!(self, Self::Output(_));
        if told && output.json_of(&json!({"errors": self.entries()})).is_ok() {
            return;
        }
        match self {
            Self::Scenario(error) => output.complain(error),
            Self::Arguments(error) => {
                let text = error.to_string();
                let text = text.strip_prefix("error: ").map_or(text.clone(), |text| format!("fak: {text}"));
                output.error(text.trim_end());
            }
            other => output.error(&format!("fak: {other}")),
        }
    }

    /// Each thing that is wrong, for programs.
    fn entries(&self) -> Vec<ErrorEntry> {
        match self {
            Self::Scenario(error) => error.entries().collect(),
            Self::File { path, .. } => {
                let file = Some(path.clone());
                vec![ErrorEntry { file, message: self.to_string(), ..ErrorEntry::default() }]
            }
            other => vec![ErrorEntry { message: other.to_string(), ..ErrorEntry::default() }],
        }
    }

    /// Says it, and ends with its status.
    pub(crate) fn report(self, output: &mut Output) -> ExitCode {
        self.tell(output);
        ExitCode::from(UNREADABLE)
    }
}

/// What is wrong with arguments and what is meant, without how the verb is used.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a verb is missing: see --help".to_owned();
    }
    let text = error.to_string();
    let said = text.strip_prefix("error: ").unwrap_or(&text);
    let said = said.split("\n\nUsage:").next().unwrap_or_default();
    let said = said.split("\n\nFor more information").next().unwrap_or_default();
    said.split("\n\n")
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("; ")
}

/// What is in the folder of a path and has nearly its name, or its name with another ending.
pub(crate) fn beside(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = folder.unwrap_or(Path::new(".")).read_dir().ok()?;
    let names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let stem = |name: &str| Path::new(name).file_stem().map(ToOwned::to_owned);
    // In a short name one letter is much: what begins otherwise is another name.
    let alike = names.iter().map(String::as_str).filter(|name| name.chars().next() == wanted.chars().next());
    let near = nearest(wanted, alike)
        .or_else(|| names.iter().map(String::as_str).find(|name| stem(name) == stem(wanted)))?;
    Some(folder.map_or_else(|| PathBuf::from(near), |folder| folder.join(near)))
}

/// The bytes of a file of at most 4 MiB, the most any file that is read whole may have (§8).
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fak_scenario::read(path).map_err(|error| Failure::Scenario(Failure::not_there(error)))
}

/// The text of such a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path)?).map_err(|error| {
        let line = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to())
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        Failure::file(path, format!("line {line}: invalid UTF-8"))
    })
}

/// A file opened for reading as a stream: one that may be larger than what is read whole.
pub(crate) fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    match File::open(path) {
        Ok(file) => Ok(BufReader::new(file)),
        Err(source) => {
            let error = ScenarioError::Read { path: path.to_owned(), source };
            Err(Failure::Scenario(Failure::not_there(error)))
        }
    }
}
