//! `cargo xtask sim --planted [NAME]`: plants each bug of `xtask/bugs` alone in a copy of the workspace, and says after how many
//! steps it is found from three seeds. A bug that is not found is a hole in what the simulation plays or checks.
//!
//! The copy and its build stay in `target/planted`, so that the next bug is a change of one file. Not part of a merge; that every
//! patch still applies is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{cargo::cargo, error::TaskError, out, repo::Repo};

/// Where the bugs are.
const BUGS: &str = "xtask/bugs";
/// From where each is looked for.
const SEEDS: [u64; 3] = [1, 2, 3];

/// One bug: a patch whose first line says what is wrong.
struct Bug {
    name: String,
    title: String,
    patch: PathBuf,
}

/// What looking for a bug from one seed came to.
struct Sought {
    /// Steps until it was found, if it was.
    steps: Option<u64>,
    /// How few steps show it.
    fewest: Option<u64>,
    replay: Option<String>,
}

/// Plants each bug whose name contains `wanted` and looks for it for so many steps; `false` if one is not found.
pub(super) fn run(repo: &Repo, wanted: &str, steps: u64) -> Result<bool, TaskError> {
    let bugs = bugs(repo)?;
    if !bugs.iter().any(|bug| bug.name.contains(wanted)) {
        let known = bugs.iter().map(|bug| bug.name.clone()).collect::<Vec<_>>().join(", ");
        return Err(TaskError::Unknown { kind: "bug", name: wanted.to_owned(), known });
    }
    let heads = SEEDS.iter().map(|seed| format!("seed {seed}"));
    let heads = std::iter::once("bug".to_owned()).chain(heads);
    let mut rows = vec![heads.chain(["fewest".to_owned(), "replay".to_owned()]).collect::<Vec<_>>()];
    let mut all = true;
    for bug in bugs.iter().filter(|bug| bug.name.contains(wanted)) {
        let root = refresh(repo)?;
        let row = match planted(repo, &root, bug)? {
            Ok(program) => {
                let sought = SEEDS.iter().map(|seed| seek(&program, *seed, steps));
                row(&sought.collect::<Result<Vec<_>, _>>()?, steps)
            }
            Err(why) => vec![why],
        };
        all &= row.len() > 1 && row.last().is_some_and(|replay| !replay.is_empty());
        out::line(&format!("{}: {}: {}", bug.name, bug.title, row.join(", ")))?;
        rows.push(std::iter::once(bug.title.clone()).chain(row).collect());
    }
    // As it was, for whoever looks at it.
    refresh(repo)?;
    out::table(&rows)?;
    Ok(all)
}

fn row(sought: &[Sought], steps: u64) -> Vec<String> {
    let found = |sought: &Sought| sought.steps.map_or_else(|| format!("not in {steps}"), |n| n.to_string());
    let mut row: Vec<String> = sought.iter().map(found).collect();
    row.push(
        sought.iter().filter_map(|sought| sought.fewest).min().map_or_else(String::new, |n| n.to_string()),
    );
    row.push(sought.iter().find_map(|sought| sought.replay.clone()).unwrap_or_default());
    row
}

/// The bugs, in the order of their files.
fn bugs(repo: &Repo) -> Result<Vec<Bug>, TaskError> {
    let bug = |patch: PathBuf| {
        let text = repo.text(&patch)?;
        let name = patch.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let title = text.lines().next().unwrap_or_default().to_owned();
        Ok(Bug { name, title, patch })
    };
    repo.files(BUGS, "patch")?.into_iter().map(bug).collect()
}

/// The copy of the workspace, as the workspace is now. Files that are the same are left alone, so that little is built anew.
fn refresh(repo: &Repo) -> Result<PathBuf, TaskError> {
    let copy = repo.path("target/planted/workspace");
    let skipped = |name: &str| name.starts_with('.') || ["target", "fuzz"].contains(&name);
    let files = below(repo.root(), &skipped)?;
    for path in below(&copy, &skipped)?.difference(&files) {
        let path = copy.join(path);
        fs::remove_file(&path).map_err(|source| TaskError::Io { verb: "remove", path, source })?;
    }
    for file in &files {
        let (from, to) = (repo.path(&file.to_string_lossy()), copy.join(file));
        let bytes = fs::read(&from).map_err(|source| TaskError::Io { verb: "read", path: from, source })?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        let folder = to.parent().map_or_else(|| copy.clone(), Path::to_path_buf);
        fs::create_dir_all(&folder).map_err(|source| TaskError::Io { verb: "make", path: folder, source })?;
        fs::write(&to, bytes).map_err(|source| TaskError::Io { verb: "write", path: to, source })?;
    }
    Ok(copy)
}

/// Every file below a folder, relative to it; none if it is not there.
fn below(root: &Path, skipped: &impl Fn(&str) -> bool) -> Result<BTreeSet<PathBuf>, TaskError> {
    let (mut files, mut open) = (BTreeSet::new(), vec![root.to_path_buf()]);
    while let Some(folder) = open.pop().filter(|folder| folder.is_dir()) {
        let unreadable = |source| TaskError::Io { verb: "list", path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if skipped(&entry.file_name().to_string_lossy()) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(path.strip_prefix(root).unwrap_or(&path).to_path_buf());
            }
        }
    }
    Ok(files)
}

/// Plants a bug and builds the simulation with it. Why not, if that is the patch's fault.
fn planted(repo: &Repo, root: &Path, bug: &Bug) -> Result<Result<PathBuf, String>, TaskError> {
    if let Err(why) = apply(root, bug, &[])? {
        return Ok(Err(format!("does not apply: {why}")));
    }
    let build = repo.path("target/planted/build");
    let mut command = Command::new(cargo());
    command
        .current_dir(root)
        .args(["build", "--quiet", "--locked", "--package", "xtask", "--target-dir"])
        .arg(&build);
    let said = output(&mut command, "cargo build --package xtask")?;
    let error = said.1.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
    Ok(if said.0 { Ok(build.join("debug/xtask")) } else { Err(format!("does not build: {error}")) })
}

/// Applies a patch with `git apply`, whether or not there is a repository. What it says if it cannot.
fn apply(root: &Path, bug: &Bug, how: &[&str]) -> Result<Result<(), String>, TaskError> {
    let mut command = Command::new("git");
    // Of a repository further up it would take the paths to be that one's.
    command.current_dir(root).env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root));
    command.args(["apply", "-C1"]).args(how).arg(&bug.patch);
    let (is_done, said) = output(&mut command, "git apply")?;
    Ok(if is_done { Ok(()) } else { Err(said.trim().to_owned()) })
}

/// Whether a program succeeded, and what it wrote: to standard error, then to standard output.
fn output(command: &mut Command, shown: &str) -> Result<(bool, String), TaskError> {
    let start = |source| TaskError::Start { command: shown.to_owned(), source };
    let output = command.stdin(Stdio::null()).output().map_err(start)?;
    let said = [output.stderr, output.stdout].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// Looks for whatever is wrong, from one seed.
fn seek(program: &Path, seed: u64, steps: u64) -> Result<Sought, TaskError> {
    let mut command = Command::new(program);
    command.args(["sim", "--seed", &seed.to_string(), "--steps", &steps.to_string()]);
    let (is_clean, said) = output(&mut command, "xtask sim")?;
    let after = |text: &str| said.lines().find_map(|line| Some(line.split_once(text)?.1.to_owned()));
    let number = |text: &str| after(text)?.split_whitespace().next()?.parse().ok();
    Ok(match number("found after ") {
        Some(found) if !is_clean => Sought {
            steps: Some(found),
            fewest: said.lines().find_map(|line| {
                line.trim().strip_prefix("the ")?.strip_suffix(" steps that it takes:")?.parse().ok()
            }),
            replay: after("replay: cargo xtask sim "),
        },
        _ => Sought { steps: None, fewest: None, replay: None },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 9: the bugs that the simulation is known to find can be planted still.
    #[test]
    fn every_planted_bug_still_applies() {
        let repo = Repo::locate().unwrap();
        let bugs = bugs(&repo).unwrap();
        assert!(bugs.len() >= 40, "{}", bugs.len());
        for bug in bugs {
            match apply(repo.root(), &bug, &["--check"]) {
                // Without git there is nothing to apply it with.
                Err(TaskError::Start { .. }) => return,
                applied => assert_eq!(applied.unwrap(), Ok(()), "{}", bug.name),
            }
        }
    }
}
