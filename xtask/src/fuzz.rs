//! `cargo xtask fuzz [TARGET…] --runs N`: runs the fuzz targets of `fuzz/` a stated number of executions each, and sums up.
//! Needs the nightly toolchain and cargo-fuzz, so it is no part of what a merge has to pass. What a target checks is in its
//! source.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::Value;

use crate::{error::TaskError, out, repo::Repo};

/// Each target, and the folders of examples that it starts from besides its own in `fuzz/corpus`.
const TARGETS: &[(&str, &[&str])] = &[
    ("audit", &[]),
    ("audit_edit", &[]),
    ("corrections", &["examples/negative"]),
    ("envelopes", &["examples/peer/shared-task-record", "examples/peer/shared-task-record-verdicts"]),
    ("journal", &["examples/journals", "examples/peer/journals", "examples/peer/shared-task-record"]),
    ("journal_edit", &[]),
    ("json_document", &["examples/negative", "examples/peer/shared-task-record"]),
    ("json_stream", &["examples/journals", "examples/peer/shared-task-record"]),
    ("lane_paths", &[]),
    ("lanes", &["examples/lanes"]),
    ("names", &[]),
    ("patch_apply", &["examples/peer/shared-task-record"]),
    ("policy", &["examples/policy"]),
    ("reduce", &[]),
    ("render", &[]),
    ("scenario_parse", &["examples/scenarios", "examples/incidents"]),
    ("scenario_perform", &["examples/scenarios", "examples/incidents"]),
    ("topology", &[]),
];

/// How long to fuzz what.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Targets; all of them if none is given
    targets: Vec<String>,
    /// Executions of each target
    #[arg(long, default_value_t = 100_000)]
    runs: u64,
    /// No longer than so many seconds for each target, however few executions that is
    #[arg(long)]
    seconds: Option<u64>,
    /// The longest input that is tried, in bytes
    #[arg(long, default_value_t = 8_192)]
    longest: u32,
}

/// What a run of one target came to.
struct Done {
    executions: u64,
    corpus: String,
    coverage: String,
    seconds: u64,
    /// Where an input was kept that broke a target, or what else went wrong.
    finding: Option<String>,
}

/// Runs the targets asked for, one after the other; `false` if one found something.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<bool, TaskError> {
    let known = || TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    for name in &options.targets {
        if !TARGETS.iter().any(|(known, _)| known == name) {
            return Err(TaskError::Unknown { kind: "target", name: name.clone(), known: known() });
        }
    }
    let dictionary = dictionary(repo)?;
    let mut rows = vec![
        ["target", "executions", "corpus", "coverage", "seconds", "finding"].map(str::to_owned).to_vec(),
    ];
    let mut clean = true;
    for (name, seeds) in TARGETS {
        if !options.targets.is_empty() && !options.targets.iter().any(|wanted| wanted == name) {
            continue;
        }
        let done = fuzz(repo, options, name, seeds, &dictionary)?;
        out::line(&format!(
            "{name}: {} executions, {}",
            done.executions,
            done.finding.as_deref().unwrap_or("clean")
        ))?;
        clean &= done.finding.is_none();
        rows.push(vec![
            (*name).to_owned(),
            done.executions.to_string(),
            done.corpus,
            done.coverage,
            done.seconds.to_string(),
            done.finding.unwrap_or_else(|| "none".to_owned()),
        ]);
    }
    out::table(&rows)?;
    Ok(clean)
}

fn fuzz(
    repo: &Repo,
    options: &Options,
    name: &str,
    seeds: &[&str],
    dictionary: &Path,
) -> Result<Done, TaskError> {
    // What is found grows beside the build output; only what a person adds to `fuzz/corpus` is kept.
    let grown = repo.path(&format!("target/fuzz/corpus/{name}"));
    fs::create_dir_all(&grown).map_err(|source| TaskError::Io {
        verb: "make",
        path: grown.clone(),
        source,
    })?;
    let mut corpora = vec![grown, repo.path(&format!("fuzz/corpus/{name}"))];
    corpora.extend(seeds.iter().map(|seed| repo.path(seed)));
    let mut command = Command::new("rustup");
    // No unsafe code of ours is there for a sanitizer to watch.
    command.args(["run", "nightly", "cargo", "fuzz", "run", "--sanitizer", "none", name]);
    command.args(corpora.iter().filter(|path| path.is_dir()));
    command.arg("--").args([
        format!("-runs={}", options.runs),
        format!("-max_len={}", options.longest),
        format!("-dict={}", dictionary.display()),
        "-timeout=20".to_owned(),
        "-rss_limit_mb=2048".to_owned(),
        "-print_final_stats=1".to_owned(),
    ]);
    command.args(options.seconds.map(|seconds| format!("-max_total_time={seconds}")));
    command.current_dir(repo.root()).env_remove("RUSTUP_TOOLCHAIN").stdin(Stdio::null());
    let shown = format!("cargo +nightly fuzz run --sanitizer none {name}");
    let start = Instant::now();
    let output = command.output().map_err(|source| TaskError::Start { command: shown.clone(), source })?;
    let said = String::from_utf8_lossy(&output.stderr);
    let number = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    let Some(executions) = number("stat::number_of_executed_units:") else {
        let stderr = said.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>();
        return Err(TaskError::Command {
            command: shown,
            status: output.status.to_string(),
            stderr: stderr.join("\n"),
        });
    };
    let kept = said.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path);
    let finding = (!output.status.success()).then(|| match kept {
        Some(path) => repo.show(Path::new(path)),
        None => output.status.to_string(),
    });
    let last =
        said.lines().rev().find(|line| line.starts_with('#') && line.contains(" corp: ")).unwrap_or("");
    let after = |label: &str| {
        last.split_once(label).and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("?")
    };
    Ok(Done {
        executions,
        corpus: after(" corp: ").to_owned(),
        coverage: after(" cov: ").to_owned(),
        seconds: start.elapsed().as_secs(),
        finding,
    })
}

/// The words of the schemas: what a fuzzer would take long to guess.
fn dictionary(repo: &Repo) -> Result<PathBuf, TaskError> {
    let folder = repo.path("target/fuzz");
    fs::create_dir_all(&folder).map_err(|source| TaskError::Io {
        verb: "make",
        path: folder.clone(),
        source,
    })?;
    let mut words = std::collections::BTreeSet::new();
    for path in repo.files("schemas", "json")? {
        let mut open = vec![repo.json(&path)?];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        if let ("properties", Value::Object(named)) = (name.as_str(), &value) {
                            words.extend(named.keys().cloned());
                        }
                        if let ("enum" | "const", value) = (name.as_str(), &value) {
                            let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                            words.extend(listed.iter().filter_map(|word| Some(word.as_str()?.to_owned())));
                        }
                        open.push(value);
                    }
                }
                Value::Array(elements) => open.extend(elements),
                _ => {}
            }
        }
    }
    let plain = |word: &&String| word.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
    let text: String = words.iter().filter(plain).map(|word| format!("\"\\\"{word}\\\"\"\n")).collect();
    let path = folder.join("words.dict");
    fs::write(&path, text).map_err(|source| TaskError::Io { verb: "write", path: path.clone(), source })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_listed_and_every_seed_is_there() {
        let repo = Repo::locate().unwrap();
        let files = repo.files("fuzz/fuzz_targets", "rs").unwrap();
        let names: Vec<String> =
            files.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for seed in TARGETS.iter().flat_map(|(_, seeds)| *seeds) {
            assert!(repo.path(seed).is_dir(), "{seed}");
        }
    }
}
