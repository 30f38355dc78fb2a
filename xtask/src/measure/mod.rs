//! Measurements beside the rows: instructions, growth and memory. The paths themselves are in the package `measure`; here they
//! are built and run, each measurement in a process of its own, and what came out is set in tables.

mod growth;
mod instructions;
mod memory;

use std::path::{Path, PathBuf};

pub(crate) use self::growth::{Options as GrowthOptions, run as growth};
pub(crate) use self::instructions::{Options as InstructionsOptions, run as instructions};
pub(crate) use self::memory::{Scales, run as memory};
use crate::{cargo, error::TaskError, repo::Repo};

/// A program of `measure`, built as benches are.
struct Program(PathBuf);

impl Program {
    fn build(repo: &Repo, name: &str) -> Result<Self, TaskError> {
        let arguments = ["build", "--profile", "bench", "--package", "measure", "--bin", name];
        let programs = cargo::build(repo, &arguments)?;
        let made = programs.into_iter().find(|program| program.target == name).map(|program| program.path);
        made.map(Self).ok_or_else(|| TaskError::Unknown {
            kind: "program",
            name: name.to_owned(),
            known: "one that cargo says it made".to_owned(),
        })
    }

    /// What it says.
    fn say(&self, repo: &Repo, arguments: &[&str]) -> Result<String, TaskError> {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        said(&self.0, &arguments, repo)
    }

    /// The number it says.
    fn number(&self, repo: &Repo, arguments: &[&str]) -> Result<f64, TaskError> {
        let text = self.say(repo, arguments)?;
        let number = text.trim().parse();
        number.map_err(|_| TaskError::Unknown { kind: "answer", name: text, known: "a number".to_owned() })
    }
}

/// What a program said, or how it failed.
fn said(program: &Path, arguments: &[String], repo: &Repo) -> Result<String, TaskError> {
    let output = cargo::output(program, arguments, repo.root())?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let command = cargo::shown(program, arguments);
        return Err(TaskError::Command { command, status: output.status.to_string(), stderr });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &stderr)
}
