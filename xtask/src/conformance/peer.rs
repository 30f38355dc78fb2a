//! The peer's journals through the `fak` program: the good one verifies, and each tampered copy is refused.

use crate::{
    cargo::{self, Program},
    error::TaskError,
    repo::Repo,
    report::Report,
    schemas::PEER,
};

/// The journal that must verify.
const GOOD: &str = "journal-a.json";

/// Verifies them.
pub(super) fn check(repo: &Repo, fak: Option<&Program>, report: &mut Report) -> Result<(), TaskError> {
    let Some(fak) = fak else {
        report.missing("the `fak` program");
        return Ok(());
    };
    let mut refused = 0;
    let mut good = 0;
    for path in repo.files(&format!("{PEER}/journals"), "json")? {
        let file = repo.show(&path);
        let wanted = file.ends_with(GOOD);
        let arguments = ["journal", "verify", &file].map(str::to_owned);
        let output = cargo::output(&fak.path, &arguments, repo.root())?;
        // 1 is the answer "no"; anything else is no answer.
        match (wanted, output.status.code()) {
            (true, Some(0)) => good += 1,
            (false, Some(1)) => refused += 1,
            (_, code) => {
                let said =
                    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
                let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("status {code}"));
                let verb = if wanted { "verify (0)" } else { "be refused (1)" };
                report.finding(
                    file.clone(),
                    format!("should {verb}, ended with {code}: {said}"),
                    format!("see `fak journal verify {file}`"),
                );
            }
        }
    }
    report.fact(format!("{good} journal verifies, {refused} tampered copies are refused"));
    Ok(())
}
