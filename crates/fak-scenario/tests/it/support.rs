//! A small scenario, what is said of it when it is read, and what comes of it.

use std::path::Path;

use expect_test::Expect;
use fak_scenario::{Explaining, Performance, Reach, Report, Scenario, ScenarioError};

pub(crate) fn scenario(agents: &str, steps: &str) -> Result<Scenario, ScenarioError> {
    let text = format!(
        "{{\"schema\": \"fak.scenario.v1\", \"name\": \"n\",\n\"agents\": {{{agents}}},\n\"steps\": [\n{steps}]}}"
    );
    Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder)
}

pub(crate) const TWO: &str = r#""alpha": {"fleet": "f1", "caps": ["a2a.send", "ref.widen"]}, "bravo": {"fleet": "f1", "caps": ["a2a.recv"]}"#;

pub(crate) fn said(steps: &str) -> String {
    match scenario(TWO, steps) {
        Ok(_) => "read".to_owned(),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn performed(agents: &str, steps: &str) -> Report {
    scenario(agents, steps).unwrap().perform(&Performance::default()).unwrap()
}

pub(crate) fn check(got: &str, expected: &Expect) {
    expected.assert_eq(got);
}

/// The hint of the one step that is explained.
pub(crate) fn hint(agents: &str, steps: &str, step: usize) -> String {
    let how = Performance::default().explain(Explaining::Step(step));
    let report = scenario(agents, steps).unwrap().perform(&how).unwrap();
    report.steps[step - 1].hint.clone().unwrap_or_default()
}
