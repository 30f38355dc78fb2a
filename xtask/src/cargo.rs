//! Runs cargo and other programs, and says which programs a build made.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use cargo_metadata::{Message, Metadata, MetadataCommand, PackageId};

use crate::{error::TaskError, repo::Repo, report::Report};

/// A program that a build made.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The package it is of.
    pub(crate) package: String,
    /// The package's folder.
    pub(crate) folder: PathBuf,
    /// Whether it is the crate's own (`src/`) or one of `tests/`.
    pub(crate) place: Place,
    /// The target's name.
    pub(crate) target: String,
    /// Whether it is a test runner and not the target itself.
    pub(crate) tests: bool,
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// Which folder of a package a target is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `src/`.
    Source,
    /// `tests/`.
    Tests,
    /// `examples/`.
    Examples,
    /// `benches/`.
    Benches,
}

/// The workspace as cargo describes it.
pub(crate) fn metadata(repo: &Repo) -> Result<Metadata, TaskError> {
    Ok(MetadataCommand::new().current_dir(repo.root()).no_deps().exec()?)
}

/// Builds, and returns the programs that were made or were there already.
pub(crate) fn build(repo: &Repo, arguments: &[&str]) -> Result<Vec<Program>, TaskError> {
    let metadata = metadata(repo)?;
    let mut command = Command::new(cargo());
    command.current_dir(repo.root()).args(arguments).args([
        "--quiet",
        "--locked",
        "--message-format=json-render-diagnostics",
    ]);
    let shown = format!("cargo {}", arguments.join(" "));
    let start = |source| TaskError::Start { command: shown.clone(), source };
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(start)?;
    let mut programs = Vec::new();
    if let Some(output) = child.stdout.take() {
        for message in Message::parse_stream(BufReader::new(output)) {
            if let Message::CompilerArtifact(artifact) = message.map_err(start)?
                && let Some(path) = artifact.executable
            {
                let Some((package, folder)) = package(&metadata, &artifact.package_id) else { continue };
                let place = if artifact.target.is_test() {
                    Place::Tests
                } else if artifact.target.is_example() {
                    Place::Examples
                } else if artifact.target.is_bench() {
                    Place::Benches
                } else {
                    Place::Source
                };
                programs.push(Program {
                    package,
                    folder,
                    place,
                    target: artifact.target.name,
                    tests: artifact.profile.test,
                    path: path.into_std_path_buf(),
                });
            }
        }
    }
    let status = child.wait().map_err(start)?;
    if status.success() {
        Ok(programs)
    } else {
        let stderr = "what the compiler said is above".to_owned();
        Err(TaskError::Command { command: shown, status: status.to_string(), stderr })
    }
}

/// Builds as [`build`] does; a build that fails is a finding and makes no programs, so that other checks still answer.
pub(crate) fn build_or_report(
    repo: &Repo,
    arguments: &[&str],
    report: &mut Report,
) -> Result<Vec<Program>, TaskError> {
    match build(repo, arguments) {
        Err(TaskError::Command { command, status, stderr }) => {
            report.finding(format!("`{command}`"), format!("failed ({status}): {stderr}"), "make it build");
            Ok(Vec::new())
        }
        other => other,
    }
}

/// Runs a program to its end, with nothing on its standard input.
pub(crate) fn output(program: &Path, arguments: &[String], folder: &Path) -> Result<Output, TaskError> {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| TaskError::Start { command: shown(program, arguments), source })
}

/// A command as a person would type it.
pub(crate) fn shown(program: &Path, arguments: &[String]) -> String {
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    std::iter::once(name).chain(arguments.iter().cloned()).collect::<Vec<_>>().join(" ")
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

fn package(metadata: &Metadata, id: &PackageId) -> Option<(String, PathBuf)> {
    let package = metadata.packages.iter().find(|package| package.id == *id)?;
    let folder = package.manifest_path.parent()?;
    Some((package.name.to_string(), folder.as_std_path().to_owned()))
}
