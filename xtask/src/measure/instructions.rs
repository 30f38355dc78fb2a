//! `cargo xtask instructions [PATH…]`: how many instructions each hot path takes, by callgrind. Unlike time it hardly moves with
//! what else the machine does, so a change can be judged on a busy one. Each path runs twice, doing its act less and more often:
//! the difference is the act's own, without process and set-up.

use std::path::Path;

use serde::Serialize;

use super::{Program, said};
use crate::{error::TaskError, out, repo::Repo};

/// Where the whole of it is written.
const REPORT: &str = "target/instructions.json";
/// What callgrind leaves for `callgrind_annotate`, a file a path.
const PROFILES: &str = "target/callgrind";

/// What to count.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Words: only paths whose name or description has one of them
    paths: Vec<String>,
    /// Set the last report beside this one
    #[arg(long)]
    compare: bool,
}

/// A path to count.
struct Counted {
    what: &'static str,
    path: &'static str,
    size: u64,
    /// What does the same without a gate.
    rival: Option<&'static str>,
    /// How often it is done, over the fewer times.
    times: u64,
    /// What one act is made of.
    parts: u64,
}

const fn one(what: &'static str, path: &'static str, size: u64, rival: Option<&'static str>) -> Counted {
    Counted { what, path, size, rival, times: 500, parts: 1 }
}

const fn large(
    what: &'static str,
    path: &'static str,
    size: u64,
    parts: u64,
    rival: Option<&'static str>,
) -> Counted {
    Counted { what, path, size, rival, times: 10, parts }
}

/// Everything that is counted.
const COUNTED: &[Counted] = &[
    one("decide, 1 rung", "decide", 1, Some("bare")),
    one("decide, 8 rungs", "decide", 8, Some("bare")),
    one("decide, 1,000 rungs for other tools", "decide-elsewhere", 1_000, None),
    one("policy of 10 rules", "policy", 0, None),
    one("send refused: no capability", "refused-capability", 1, None),
    one("send refused: a private body", "refused-private", 1, None),
    one("send and try_recv", "send-recv", 1, Some("tokio-send-recv")),
    one("send alone", "send", 1, None),
    one("try_recv alone", "recv", 1, None),
    one("send and try_recv, 1,000 channels", "send-recv", 1_000, None),
    one("the same by key", "send-recv-by-key", 1_000, None),
    one("send and try_recv, audit on", "audited-send-recv", 1, None),
    one("ping-pong, there and back", "ping-pong", 1, Some("tokio-ping-pong")),
    large("publish to 100 and drain, a copy", "publish", 100, 100, Some("tokio-publish")),
    one("request and reply", "request", 1, Some("tokio-request")),
    one("append a note to 10", "append", 10, None),
    one("append a note to 1,000", "append", 1_000, None),
    large("view of 1,000 notes, a note", "view", 1_000, 1_000, None),
    Counted {
        times: 1,
        ..large("verify a journal of 100, an entry", "verify", 100, 100, Some("sha256-journal"))
    },
    large("barrier of 100, a rank", "barrier", 100, 100, None),
    Counted { times: 1, ..large("group of 1,000, a member", "group", 1_000, 1_000, Some("sort")) },
    Counted { times: 1, ..large("declare 1,000 edges, an edge", "declare", 1_000, 1_000, Some("petgraph")) },
];

/// One path counted.
#[derive(Clone, Debug, Serialize, serde::Deserialize)]
struct Count {
    what: String,
    instructions: f64,
    rival: Option<f64>,
}

/// Counts.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<bool, TaskError> {
    let before: Vec<Count> = match repo.text_if_there(&repo.path(REPORT))? {
        Some(text) if options.compare => serde_json::from_str(&text)
            .map_err(|source| TaskError::Json { path: repo.path(REPORT), source })?,
        _ => Vec::new(),
    };
    let program = Program::build(repo, "path")?;
    let folder = repo.path(PROFILES);
    std::fs::create_dir_all(&folder).map_err(|source| TaskError::Io {
        verb: "make",
        path: folder.clone(),
        source,
    })?;
    let wanted = |counted: &&Counted| {
        let asked =
            |word: &String| counted.path.contains(word.as_str()) || counted.what.contains(word.as_str());
        options.paths.is_empty() || options.paths.iter().any(asked)
    };
    let mut counts = Vec::new();
    for counted in COUNTED.iter().filter(wanted) {
        let each = |path: &str| {
            let fewer = collected(repo, &program, &folder, path, counted.size, 1 + counted.times / 10)?;
            let more = collected(
                repo,
                &program,
                &folder,
                path,
                counted.size,
                1 + counted.times / 10 + counted.times,
            )?;
            Ok::<f64, TaskError>((more - fewer) / (counted.times * counted.parts) as f64)
        };
        let rival = counted.rival.map(each).transpose()?;
        counts.push(Count { what: counted.what.to_owned(), instructions: each(counted.path)?, rival });
    }
    print(&counts, &before)?;
    let path = repo.write_json(REPORT, &counts)?;
    out::line(&format!("\ninstructions: {} paths ({})", counts.len(), repo.show(&path)))?;
    Ok(true)
}

/// The instructions of a whole process.
fn collected(
    repo: &Repo,
    program: &Program,
    folder: &Path,
    path: &str,
    size: u64,
    times: u64,
) -> Result<f64, TaskError> {
    let profile = folder.join(format!("{path}-{size}.out"));
    let arguments = [
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", profile.display()),
        program.0.display().to_string(),
        "run".to_owned(),
        path.to_owned(),
        size.to_string(),
        times.to_string(),
    ];
    let text = said(Path::new("valgrind"), &arguments, repo)?;
    count(&text).ok_or_else(|| TaskError::Unknown {
        kind: "answer of valgrind",
        name: text.lines().last().unwrap_or_default().to_owned(),
        known: "a line \"Collected : NUMBER\"".to_owned(),
    })
}

fn count(text: &str) -> Option<f64> {
    let (_, rest) = text.lines().rev().find_map(|line| line.split_once("Collected :"))?;
    rest.trim().parse().ok()
}

fn print(counts: &[Count], before: &[Count]) -> Result<(), TaskError> {
    let mut rows = vec![["instructions", "rival", "ratio", "before", "path"].map(str::to_owned).to_vec()];
    if before.is_empty() {
        rows.iter_mut().for_each(|row| drop(row.remove(3)));
    }
    for count in counts {
        let mut row = vec![format!("{:.0}", count.instructions)];
        row.push(count.rival.map_or_else(String::new, |rival| format!("{rival:.0}")));
        row.push(count.rival.map_or_else(String::new, |rival| format!("{:.2}", count.instructions / rival)));
        if !before.is_empty() {
            let same = before.iter().find(|other| other.what == count.what);
            row.push(same.map_or_else(String::new, |other| format!("{:.0}", other.instructions)));
        }
        row.push(count.what.clone());
        rows.push(row);
    }
    out::line("")?;
    out::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        assert_eq!(count("==7== \n==7== Collected : 1402\n"), Some(1402.0));
        assert_eq!(count("valgrind: no such file"), None);
    }
}
