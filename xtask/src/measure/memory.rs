//! `cargo xtask memory`: bytes that one of a thing keeps alive, and the peak of verifying a large journal. Each is measured in a
//! process of its own with a counting allocator; the peak also as the system saw it.

use serde::Serialize;

use super::Program;
use crate::{error::TaskError, out, repo::Repo};

/// Where the whole of it is written.
const REPORT: &str = "target/memory.json";
/// The journal that is verified: 1,000 entries, 150 MB.
const JOURNAL: &str = "target/memory-journal.json";
const ENTRIES: u64 = 1_000;

/// Everything that is weighed: its name for the program, and what one of it is.
const THINGS: &[(&str, &str)] = &[
    ("agent", "attached agent, with its handle and endpoint"),
    ("mailbox", "idle mailbox that was used"),
    ("channel", "channel handle that was used"),
    ("message", "queued message, its body others' as well"),
    ("body", "body of 64 bytes, as minted"),
    ("subscriber", "idle subscriber of one topic"),
    ("copy", "published copy that waits in an inbox, of 20"),
    ("waiter", "receive that waits, its future boxed"),
    ("leased-message", "leased message, beyond its place in the queue"),
    ("lane-lease", "lease of a lane, with its token"),
    ("note", "note of 300 bytes appended, with revision and event"),
];

/// One thing weighed.
#[derive(Clone, Debug, Serialize)]
struct Weight {
    what: &'static str,
    bytes: f64,
}

/// The program that weighs.
pub(crate) struct Scales<'a> {
    repo: &'a Repo,
    program: Program,
}

/// What verifying a journal took at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peak {
    /// Bytes it had allocated.
    pub(crate) allocated: f64,
    /// Bytes the process had resident, its program included.
    pub(crate) resident: f64,
}

impl<'a> Scales<'a> {
    /// Builds it.
    pub(crate) fn new(repo: &'a Repo) -> Result<Self, TaskError> {
        Ok(Self { repo, program: Program::build(repo, "memory")? })
    }

    /// Bytes that one of a thing keeps alive.
    pub(crate) fn weigh(&self, thing: &str) -> Result<f64, TaskError> {
        self.program.number(self.repo, &[thing])
    }

    /// Writes a journal of 150 MB and verifies it.
    pub(crate) fn verify(&self) -> Result<Peak, TaskError> {
        let file = self.repo.path(JOURNAL).display().to_string();
        self.program.say(self.repo, &["journal", &ENTRIES.to_string(), &file])?;
        let answer = self.program.say(self.repo, &["verify", &file])?;
        let mut numbers = answer.split_whitespace().map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(allocated)), Some(Ok(resident))) => Ok(Peak { allocated, resident }),
            _ => Err(TaskError::Unknown { kind: "answer", name: answer, known: "two numbers".to_owned() }),
        }
    }
}

/// Weighs everything.
pub(crate) fn run(repo: &Repo) -> Result<bool, TaskError> {
    let scales = Scales::new(repo)?;
    let mut weights = Vec::new();
    for (thing, what) in THINGS {
        weights.push(Weight { what, bytes: scales.weigh(thing)? });
    }
    let peak = scales.verify()?;
    weights.push(Weight { what: "verifying 1,000 entries (150 MB), peak allocated", bytes: peak.allocated });
    weights.push(Weight { what: "the same, peak resident, the program included", bytes: peak.resident });
    let mut rows = vec![["bytes", "of"].map(str::to_owned).to_vec()];
    rows.extend(weights.iter().map(|weight| vec![format!("{:.0}", weight.bytes), weight.what.to_owned()]));
    out::table(&rows)?;
    let path = repo.write_json(REPORT, &weights)?;
    out::line(&format!("\nmemory: {} things weighed ({})", weights.len(), repo.show(&path)))?;
    Ok(true)
}
