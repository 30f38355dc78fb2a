//! The documents keep their word: each JSON block is JSON, valid if it declares a schema, and holds if it is a scenario; each TOML
//! block is TOML, and valid if it is a policy; each shell block runs, but for those that only build, test or check this
//! project with cargo; each link to a file leads to one. Rust blocks are compiled by `cargo test --doc`.
//!
//! A block with a file's name after its language (`json mine.json`) is there for the shell blocks of its document, which then
//! run beside it; otherwise they run at the root.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fak_scenario::{Performance, Reach, Scenario};

use serde_json::Value;

use crate::{
    cargo::{self, Program},
    error::TaskError,
    fixtures,
    repo::Repo,
    report::Report,
    schemas::Schemas,
};

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    /// What stands after the fence.
    info: String,
    /// The line of the fence, from 1.
    line: usize,
    text: String,
}

/// Looks at every document.
pub(super) fn check(repo: &Repo, fak: Option<&Program>, report: &mut Report) -> Result<(), TaskError> {
    let schemas = Schemas::load(repo, "schemas", report)?;
    let mut files = repo.files("docs", "md")?;
    if files.is_empty() {
        report.missing("documents in docs/");
    }
    for folder in ["crates", "examples"] {
        files.extend(repo.files(folder, "md")?);
    }
    for name in ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        if repo.path(name).is_file() {
            files.push(repo.path(name));
        } else {
            report.missing(name);
        }
    }
    let (mut json, mut toml, mut validated, mut ran, mut links) = (0, 0, 0, 0, 0);
    for path in &files {
        let file = repo.show(path);
        let text = repo.text(path)?;
        let blocks = blocks(&text);
        let folder = laid_out(repo, &file, &blocks)?;
        for block in blocks {
            let place = format!("{file}:{}", block.line);
            match block.info.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["json", ..] => {
                    json += 1;
                    validated += usize::from(judge_json(&place, &block.text, &schemas, report));
                }
                ["toml", ..] => {
                    toml += 1;
                    validated += usize::from(judge_toml(&place, &block.text, &schemas, report));
                }
                ["sh", "run"] => {
                    ran += 1;
                    run(&folder, fak, &place, &block.text, report)?;
                }
                ["sh"] => only_cargo(&place, &block.text, report),
                _ => {}
            }
        }
        links += follow(path, &file, &text, report);
    }
    report.fact(format!(
        "{} documents: {json} JSON and {toml} TOML blocks ({validated} validated), {ran} shell blocks ran, {links} links lead somewhere",
        files.len()
    ));
    Ok(())
}

/// Whether a block declares a schema; if so it is held to it.
fn judge_json(place: &str, text: &str, schemas: &Schemas, report: &mut Report) -> bool {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            report.finding(place, format!("is not JSON: {error}"), "mend it, or mark the block `text`");
            return false;
        }
    };
    if value.get("schema").is_none() {
        return false;
    }
    let Some(schema) = schemas.of(&value) else {
        report.finding(place, "declares a schema that is not in schemas/", "name one that is");
        return false;
    };
    let faults = schema.faults(&value);
    for fault in &faults {
        report.finding(
            place,
            format!("at \"{}\": {}", fault.path, fault.message),
            format!("make it valid: {}", schema.file),
        );
    }
    if faults.is_empty() && value.get("schema").and_then(Value::as_str) == Some("fak.scenario.v1") {
        let performed = Scenario::parse(text.as_bytes(), Path::new(place), Reach::Folder)
            .and_then(|scenario| scenario.perform(&Performance::default()));
        match performed {
            Ok(report) if report.held() => {}
            Ok(_) => {
                report.finding(place, "is a scenario that does not hold", "see what `fak run` says of it");
            }
            Err(error) => report.finding(place, error.to_string(), "mend the scenario"),
        }
    }
    true
}

/// Where the shell blocks of a document run: in a folder with its named blocks, or at the root if it has none.
fn laid_out(repo: &Repo, file: &str, blocks: &[Block]) -> Result<PathBuf, TaskError> {
    let named: Vec<(&str, &str)> = blocks
        .iter()
        .filter_map(|block| Some((block.info.split_whitespace().nth(1)?, &*block.text)))
        .filter(|(name, _)| name.contains('.') && !name.contains('/'))
        .collect();
    if named.is_empty() {
        return Ok(repo.root().to_owned());
    }
    let folder = repo.path("target/conformance/documents").join(file.replace('/', "-"));
    let failed = |source| TaskError::Io { verb: "write", path: folder.clone(), source };
    fs::create_dir_all(&folder).map_err(failed)?;
    for (name, text) in named {
        fs::write(folder.join(name), text).map_err(failed)?;
    }
    Ok(folder)
}

/// A block that is not run has nothing but cargo's own work in it, and the tasks it names are there.
fn only_cargo(place: &str, text: &str, report: &mut Report) {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["cargo", "xtask", task, ..] if !crate::tasks().contains(&(*task).to_owned()) => {
                report.finding(place, format!("there is no task \"{task}\""), "name one that is there");
            }
            ["cargo", ..] | ["bash", ".ci/run", ..] => {}
            _ => report.finding(place, format!("is not run: {line}"), "mark the block `sh run`"),
        }
    }
}

/// Whether a block is a policy; if so it is held to the schema of policies.
fn judge_toml(place: &str, text: &str, schemas: &Schemas, report: &mut Report) -> bool {
    let value: Value = match toml::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            report.finding(
                place,
                format!("is not TOML: {}", error.message()),
                "mend it, or mark the block `text`",
            );
            return false;
        }
    };
    if !fixtures::is_policy(&value) {
        return false;
    }
    for fault in schemas.named(fixtures::POLICY).into_iter().flat_map(|schema| schema.faults(&value)) {
        report.finding(place, format!("at \"{}\": {}", fault.path, fault.message), "make it a valid policy");
    }
    true
}

/// Runs a shell block, with the `fak` that was built before everything else of that name.
fn run(
    folder: &Path,
    fak: Option<&Program>,
    place: &str,
    text: &str,
    report: &mut Report,
) -> Result<(), TaskError> {
    let mut script = String::new();
    if let Some(folder) = fak.and_then(|fak| fak.path.parent()) {
        script = format!("PATH='{}':$PATH\n", folder.display());
    }
    script.push_str(text);
    let arguments = ["-euo", "pipefail", "-c", &script].map(str::to_owned);
    let output = cargo::output(Path::new("bash"), &arguments, folder)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = stderr.lines().last().unwrap_or_default();
        report.finding(
            place,
            format!("does not run ({}): {said}", output.status),
            "mend the block, or mark it `sh`",
        );
    }
    Ok(())
}

/// The fenced blocks of a document.
fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<(String, Block)> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        match open.take() {
            None => {
                let fence: String = trimmed.chars().take_while(|character| *character == '`').collect();
                if fence.len() >= 3 {
                    let info = trimmed.trim_start_matches('`').trim().to_owned();
                    open = Some((fence, Block { info, line: index + 1, text: String::new() }));
                }
            }
            Some((fence, block)) if trimmed.trim_end() == fence => found.push(block),
            Some((fence, mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some((fence, block));
            }
        }
    }
    found
}

/// How many links of a document lead to files; those that lead nowhere are findings.
fn follow(path: &Path, file: &str, text: &str, report: &mut Report) -> usize {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut followed = 0;
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            // Intra-doc links of crate pages name items, not files.
            if !target.contains(['.', '/']) || target.contains("::") {
                continue;
            }
            followed += 1;
            if !folder.join(target).exists() {
                report.finding(
                    format!("{file}:{}", index + 1),
                    format!("links to \"{target}\", which is not there"),
                    "mend the link",
                );
            }
        }
    }
    followed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_their_line() {
        let found = blocks("a\n```json\n{}\n```\n````md\n```sh run\n```\n````\n```sh run\nx\ny\n```");
        let shown: Vec<_> =
            found.iter().map(|block| (block.info.as_str(), block.line, block.text.as_str())).collect();
        assert_eq!(shown, [("json", 2, "{}\n"), ("md", 5, "```sh run\n```\n"), ("sh run", 9, "x\ny\n")]);
    }

    #[test]
    fn what_is_not_run_is_cargos_own_work() {
        let mut report = Report::new("x");
        only_cargo(
            "a.md:1",
            "# why\ncargo test  # the tests\ncargo xtask tidy\n\nbash .ci/run\n",
            &mut report,
        );
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        only_cargo("a.md:1", "fak demo\ncargo xtask tidi\n", &mut report);
        assert_eq!(report.findings.len(), 2);
    }

    #[test]
    fn links_to_files_that_are_not_there_are_found() {
        let mut report = Report::new("x");
        let text = "[a](Cargo.toml) [b](nothing.md#c) [c](https://x/y.md) [d](#e) [f](crate::X)";
        assert_eq!(follow(Path::new("README.md"), "README.md", text, &mut report), 2);
        assert_eq!(report.findings.len(), 1);
    }
}
