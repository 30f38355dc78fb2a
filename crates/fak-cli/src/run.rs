//! `fak run`: performs scenarios, each on a fresh kernel, and says what did not hold.

use std::path::PathBuf;

use fak_scenario::{
    Explaining, Performance, Reach, Report, RunReport, Scenario, ScenarioError, Summary, find,
};

use crate::{
    args::RunArgs,
    failure::Failure,
    kind::{Kind, mistaken},
    merge,
    output::Output,
};

/// What is performed, and what is shown of it.
pub(crate) struct Run<'a> {
    pub(crate) paths: &'a [PathBuf],
    pub(crate) reach: Reach,
    pub(crate) how: Performance,
    pub(crate) quiet: bool,
    /// Whether to say at the end how to go on.
    pub(crate) next: bool,
}

pub(crate) fn run(args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let how = match &args.audit {
        Some(path) => Performance::default().audit(path.clone()),
        None => Performance::default(),
    };
    let reach = reach(args.allow_outside);
    perform(&Run { paths: &args.paths, reach, how, quiet: args.quiet, next: true }, output)
}

/// The reach that `--allow-outside` stands for.
pub(crate) fn reach(allow_outside: bool) -> Reach {
    if allow_outside { Reach::Anywhere } else { Reach::Folder }
}

pub(crate) fn perform(run: &Run<'_>, output: &mut Output) -> Result<u8, Failure> {
    let mut summary = Summary::default();
    let (mut reports, mut errors) = (Vec::new(), Vec::new());
    let mut paths = Vec::new();
    let (mut ask, mut failed) = (None, false);
    for path in run.paths {
        match find(path) {
            Ok(found) => paths.extend(found),
            Err(error) => unreadable(Failure::not_there(error), &mut summary, &mut errors, output),
        }
    }
    let bar = output.progress(paths.len(), run.quiet);
    for path in paths {
        bar.set_message(path.display().to_string());
        let performed = Scenario::load(&path, run.reach).and_then(|scenario| {
            let report = scenario.perform(&run.how)?;
            Ok((scenario, report))
        });
        match performed {
            Ok((scenario, report)) => {
                summary.add(&report);
                if run.next && !failed && !report.held() {
                    failed = true;
                    ask = next(&scenario, &report)?;
                }
                show(&report, run.quiet, output)?;
                if output.json() {
                    reports.push(report);
                }
            }
            // The log is of the whole run: without it nothing more is performed.
            Err(ScenarioError::AuditFile { path, source }) if !output.json() => {
                bar.finish_and_clear();
                return Err(match mistaken(&path, Kind::AuditLog) {
                    Some(mistaken) => Failure::file(&path, mistaken),
                    None => Failure::Scenario(ScenarioError::AuditFile { path, source }),
                });
            }
            Err(error) => {
                unreadable(Failure::scenario(&path, error), &mut summary, &mut errors, output);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if output.json() {
        output.text(RunReport::new(summary, &reports, &errors).to_json())?;
    } else {
        output.text(summary.to_string())?;
        if let Some(ask) = ask {
            output.error(&format!("fak: {ask}"));
        }
    }
    Ok(summary.exit_status())
}

/// How to go on after a failed step: what explains it, if anything does.
fn next(scenario: &Scenario, report: &Report) -> Result<Option<String>, Failure> {
    let Some(step) = report.first_failed() else { return Ok(None) };
    if let Some(outcome) = step.reason.as_deref().and_then(merge::find) {
        let reason = outcome.reason;
        return Ok(Some(format!(
            "every rung permitted that act, and the merge did not accept it; what that means: fak explain {reason}"
        )));
    }
    // What came of an act that was decided as expected (a fence, a count) no rung explains.
    let decided = ["verdict", "reason", "rung", "at", "empty", "timeout", "act"];
    if !step.mismatches.iter().any(|mismatch| decided.contains(&&*mismatch.member)) {
        return Ok(None);
    }
    // Performed again, and logged nowhere.
    let again = scenario.perform(&Performance::default().explain(Explaining::Step(step.number)))?;
    let explained = again
        .steps
        .iter()
        .any(|again| again.number == step.number && (again.explanation.is_some() || again.at.is_some()));
    let file = report.file.as_str();
    Ok(explained
        .then(|| format!("to ask why that act was decided so: fak explain {file} --step {}", step.number)))
}

fn unreadable(
    error: ScenarioError,
    summary: &mut Summary,
    errors: &mut Vec<ScenarioError>,
    output: &mut Output,
) {
    summary.unreadable += 1;
    if !output.json() {
        output.complain(&error);
    }
    errors.push(error);
}

fn show(report: &Report, quiet: bool, output: &mut Output) -> Result<(), Failure> {
    if output.json() || quiet && report.held() {
        return Ok(());
    }
    output.text(report.to_text(output.style()))
}
