//! Scenarios performed: whatever is accepted runs to its end, twice the same, explained or not (SCENARIO, §3.5, §8).

#![no_main]

use std::path::Path;

use fak_fuzz::frugal;
use fak_scenario::{Explaining, Performance, Reach, Scenario, Style};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path = Path::new("no-such-folder/fuzz.json");
    let Ok(scenario) = Scenario::parse(data, path, Reach::Folder) else { return };
    if scenario.len() > 64 {
        return;
    }
    // A kernel, a bus and their tables are there whatever the scenario says.
    let run = |how: &Performance| frugal(data.len() + 1024, 8_000, || scenario.perform(how));
    let (Ok(first), Ok(second)) = (run(&Performance::default()), run(&Performance::default())) else {
        return;
    };
    assert_eq!(first.to_text(Style::Plain), second.to_text(Style::Plain));
    let explained =
        run(&Performance::default().explain(Explaining::Everything)).expect("it was performed before");
    for (plain, explained) in first.steps.iter().zip(&explained.steps) {
        assert_eq!(
            (&plain.verdict, &plain.reason, &plain.at),
            (&explained.verdict, &explained.reason, &explained.at)
        );
    }
});
