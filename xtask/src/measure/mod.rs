//! Measurements beside the rows: instructions, growth and memory. The paths themselves are in the package `measure`; here they
//! are built and run, each measurement in a process of its own, and what came out is set in tables.

mod instructions;

use std::path::PathBuf;

pub(crate) use self::instructions::{Options as InstructionsOptions, run as instructions};
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
}

/// What a program said, or how it failed.
fn said(program: &std::path::Path, arguments: &[String], repo: &Repo) -> Result<String, TaskError> {
    let output = cargo::output(program, arguments, repo.root())?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let command = cargo::shown(program, arguments);
        return Err(TaskError::Command { command, status: output.status.to_string(), stderr });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &stderr)
}
