//! `fak run`: performs scenarios, each on a fresh kernel, and says what did not hold.

use std::path::PathBuf;

use fak_scenario::{Performance, Reach, Report, RunReport, Scenario, ScenarioError, Summary, find};

use crate::{args::RunArgs, failure::Failure, output::Output};

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
    let mut ask = None;
    for path in run.paths {
        match find(path) {
            Ok(found) => paths.extend(found),
            Err(error) => unreadable(Failure::not_there(error), &mut summary, &mut errors, output),
        }
    }
    let bar = output.progress(paths.len(), run.quiet);
    for path in paths {
        bar.set_message(path.display().to_string());
        let performed = Scenario::load(&path, run.reach).and_then(|scenario| scenario.perform(&run.how));
        match performed {
            Ok(report) => {
                summary.add(&report);
                if let (None, Some(step)) = (&ask, report.first_failed()) {
                    ask = Some(format!("fak explain {} --step {}", path.display(), step.number));
                }
                show(&report, run.quiet, output)?;
                if output.json() {
                    reports.push(report);
                }
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
        if let Some(ask) = ask.filter(|_| run.next) {
            output.error(&format!("fak: to ask why that act was decided so: {ask}"));
        }
    }
    Ok(summary.exit_status())
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
