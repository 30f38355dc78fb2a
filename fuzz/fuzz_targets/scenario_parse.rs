//! Scenario documents: read and checked, not performed (SCENARIO, §8).

#![no_main]

use std::path::Path;

use fak_fuzz::frugal;
use fak_scenario::{Reach, Scenario, ScenarioError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path = Path::new("no-such-folder/fuzz.json");
    match frugal(data.len(), 4_000, || Scenario::parse(data, path, Reach::Folder)) {
        Ok(scenario) => assert!(scenario.len() <= data.len()),
        Err(error) => {
            let said = error.to_string();
            assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
            if let ScenarioError::Invalid { place, .. } = &error {
                assert!(place.line >= 1 && place.line <= 1 + data.iter().filter(|b| **b == b'\n').count());
            }
        }
    }
});
