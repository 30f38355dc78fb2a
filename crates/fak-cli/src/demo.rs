//! `fak demo`: one scenario, shipped inside the binary, told leg by leg.

use std::path::Path;

use fak_abi::{Capability, PrincipalSpec};
use fak_scenario::{Performance, Reach, Report, RunReport, Scenario, Summary};

use crate::{failure::Failure, output::Output};

/// What is performed, by the same code as any scenario.
const SCENARIO: &str = include_str!("demo.json");

/// The legs: the step each begins with, and what it shows.
const LEGS: &[(usize, &str)] = &[
    (1, "Point to point: a body shared with the fleet, sent and received"),
    (3, "The floor: a private body, a quarantined body and a sender without the capability are refused"),
    (7, "Session handoff: a session is its principal's from attachment"),
    (10, "Window handoff to oneself: a private summary for the next window, once"),
    (13, "Publish and subscribe: one act, a copy to each subscriber that may read it"),
    (18, "Correction: the orchestrator steers a running worker, once, within its scope"),
    (23, "The tallies of the bus"),
];

/// What was attempted where something is refused or not there, by whom and with what: the line itself tells only the answer.
const ATTEMPTS: &[(usize, &str)] = &[
    (3, "alpha sends notes that it has shared with nobody: they are private, and stay with it"),
    (4, "alpha sends a text that the host has quarantined, though it is shared with the fleet"),
    (5, "mute sends a greeting that it has shared with the fleet: it may widen, but not send"),
    (6, "bravo looks for what was refused: none of it is there"),
    (8, "charlie, of another fleet, receives what alpha left for bravo's session"),
    (12, "alpha resumes the same window a second time"),
    (17, "charlie, of another fleet, looks for what alpha published for its own: it was skipped"),
];

/// How a line is read, and where to go on.
const LEGEND: &str = "
A line is: step, act, who, where, verdict and reason, \"by\" the rung that decided, \"at\" the check that refused,
and \"lacks\" the capability that was missing.
  fak explain TRUST_VIOLATION       what a reason means
  fak explain a2achan/private       what a check refuses, and what to do
  fak                               how to write a scenario of your own";

pub(crate) fn demo(output: &mut Output) -> Result<u8, Failure> {
    let scenario = Scenario::parse(SCENARIO.as_bytes(), Path::new("demo"), Reach::Folder)?;
    let report = scenario.perform(&Performance::default())?;
    let mut summary = Summary::default();
    summary.add(&report);
    if output.json() {
        output.text(RunReport::new(summary, &[report], &[]).to_json())?;
    } else {
        output.text("Who is there:")?;
        for principal in scenario.principals() {
            output.text(introduced(principal))?;
        }
        tell(&report, output)?;
    }
    Ok(summary.exit_status())
}

/// Who somebody is, of which fleet, and what it may do, in a line.
fn introduced(principal: &PrincipalSpec) -> String {
    let of = match &principal.fleet {
        Some(fleet) => format!("fleet {fleet}"),
        None => "no fleet".to_owned(),
    };
    let caps: Vec<&str> = principal.caps.iter().map(Capability::name).collect();
    format!("  {:<10} {of}, {}", principal.id.as_str(), caps.join(", "))
}

/// The acts under the title of their leg, and at the end the tallies of the bus.
fn tell(report: &Report, output: &mut Output) -> Result<(), Failure> {
    for step in &report.steps {
        if let Some((first, title)) = LEGS.iter().find(|(first, _)| *first == step.number) {
            if LEGS.last().is_some_and(|(last, _)| last == first) {
                output.text(if report.held() {
                    "\nEvery leg went as it must."
                } else {
                    "\nA leg went otherwise than it must."
                })?;
            }
            output.text(format!("\n{title}"))?;
        }
        output.text(step.to_text(output.style()))?;
        if let Some((_, attempt)) = ATTEMPTS.iter().find(|(number, _)| *number == step.number) {
            output.text(format!("     {attempt}"))?;
        }
        for line in step.faults("", output.style()) {
            output.text(format!("     {line}"))?;
        }
    }
    output.text(LEGEND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_a_scenario_and_its_legs_begin_at_its_steps() {
        let scenario = Scenario::parse(SCENARIO.as_bytes(), Path::new("demo"), Reach::Folder).unwrap();
        assert!(LEGS.iter().all(|(first, _)| (1..=scenario.len()).contains(first)));
        assert_eq!(LEGS.last().map(|(first, _)| *first), Some(scenario.len()));
    }

    /// A line that is refused, or finds nothing, is told in words, and in those of the one who did it.
    #[test]
    fn what_was_attempted_is_told_of_every_refusal() {
        let scenario = Scenario::parse(SCENARIO.as_bytes(), Path::new("demo"), Reach::Folder).unwrap();
        let report = scenario.perform(&Performance::default()).unwrap();
        let answered = report.steps.iter().filter(|step| !["allow", "done"].contains(&step.verdict.as_str()));
        let told: Vec<_> = answered.map(|step| (step.number, step.by.as_deref().unwrap())).collect();
        assert_eq!(told.len(), ATTEMPTS.len());
        for ((number, by), (told, attempt)) in told.iter().zip(ATTEMPTS) {
            assert_eq!(number, told);
            assert!(attempt.starts_with(by), "step {number}: {attempt}");
        }
    }
}
