//! `fak run`: performs scenarios, each on a fresh kernel, and says what did not hold.

use std::fs::{File, OpenOptions};

use fak_scenario::{Performance, Reach, Report, RunReport, Scenario, ScenarioError, Summary, find};

use crate::{args::RunArgs, failure::Failure, output::Output};

pub(crate) fn run(args: &RunArgs, output: &mut Output) -> Result<u8, Failure> {
    let reach = if args.allow_outside { Reach::Anywhere } else { Reach::Folder };
    let audit = args.audit.as_ref().map(|path| audit_file(path)).transpose()?;
    let mut summary = Summary::default();
    let (mut reports, mut errors) = (Vec::new(), Vec::new());
    let mut paths = Vec::new();
    for path in &args.paths {
        match find(path) {
            Ok(found) => paths.extend(found),
            Err(error) => unreadable(error, &mut summary, &mut errors, output),
        }
    }
    let bar = output.progress(paths.len());
    for path in paths {
        bar.set_message(path.display().to_string());
        let performed = Scenario::load(&path, reach).and_then(|scenario| scenario.perform(performance(audit.as_ref())?));
        match performed {
            Ok(report) => {
                summary.add(&report);
                show(&report, args.quiet, output)?;
                if output.json() {
                    reports.push(report);
                }
            }
            Err(error) => unreadable(error, &mut summary, &mut errors, output),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if output.json() {
        output.text(RunReport::new(summary, &reports, &errors).to_json())?;
    } else {
        output.text(summary.to_string())?;
    }
    Ok(summary.exit_status())
}

/// A new log; one that exists is not overwritten, because it is evidence.
fn audit_file(path: &std::path::Path) -> Result<File, Failure> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|source| Failure::Write { path: path.display().to_string(), source })
}

fn performance(audit: Option<&File>) -> Result<Performance, ScenarioError> {
    Ok(match audit {
        Some(file) => Performance::default().audit(file.try_clone().map_err(ScenarioError::Audit)?),
        None => Performance::default(),
    })
}

fn unreadable(error: ScenarioError, summary: &mut Summary, errors: &mut Vec<ScenarioError>, output: &mut Output) {
    summary.unreadable += 1;
    if !output.json() {
        output.error(&format!("fak: {error}"));
    }
    errors.push(error);
}

fn show(report: &Report, quiet: bool, output: &mut Output) -> Result<(), Failure> {
    if output.json() || quiet && report.held() {
        return Ok(());
    }
    output.text(report.to_text(output.style()))
}
