//! The scenarios this project ships: readable, each citing the clauses it shows.

use std::path::{Path, PathBuf};

use fak_scenario::{Explaining, Performance, Reach, Scenario, Style, find};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn all(name: &str) -> Vec<Scenario> {
    let mut wrong = Vec::new();
    let mut read = Vec::new();
    for path in find(&folder(name)).unwrap() {
        match Scenario::load(&path, Reach::Folder) {
            Ok(scenario) => read.push(scenario),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    read
}

#[test]
fn every_example_is_read_and_cites_its_clauses() {
    for scenario in all("scenarios").iter().chain(&all("incidents")) {
        assert!(
            scenario.about().is_some_and(|about| about.contains('§')),
            "{}: \"about\" cites no clause",
            scenario.path().display()
        );
        assert!(!scenario.is_empty(), "{}", scenario.path().display());
    }
}

#[test]
fn every_example_holds() {
    let mut wrong = String::new();
    for scenario in all("scenarios").iter().chain(&all("incidents")) {
        let report = scenario.perform(&Performance::default()).unwrap();
        if !report.held() {
            wrong.push_str(&report.to_text(Style::Plain));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_scenario_of_the_manual_holds() {
    let manual = include_str!("../../../../docs/scenarios.md");
    // A block may have a file's name after its language.
    let blocks = manual.split("```json").skip(1).map(|rest| rest.split_once('\n').unwrap().1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for text in blocks {
        let scenario = Scenario::parse(text.as_bytes(), Path::new("scenarios.md"), Reach::Folder).unwrap();
        let report = scenario.perform(&Performance::default()).unwrap();
        assert!(report.held(), "{}", report.to_text(Style::Plain));
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn a_record_that_lacks_a_member_fails_and_says_which() {
    let text = r#"{"schema": "fak.scenario.v1", "name": "n", "agents": {"alpha": {"caps": ["sharedtask.write"]}},
        "steps": [{"do": "create", "by": "alpha", "record": {"schema": "fak.shared-task.v1", "task_id": "task_t"}, "expect": {"ok": true}}]}"#;
    let scenario = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap();
    let report = scenario.perform(&Performance::default()).unwrap();
    let step = &report.steps[0];
    assert_eq!(
        (step.verdict.as_str(), step.note.as_deref()),
        ("failed", Some("json: missing member \"title\""))
    );
    // A place is one of the scenario, not of the record in it.
    let text = text.replace("\"task_id\": \"task_t\"", "\"title\": \"t\",\n\n\"task_id\": \"t\"");
    let scenario = Scenario::parse(text.as_bytes(), Path::new("x.json"), Reach::Folder).unwrap();
    let report = scenario.perform(&Performance::default()).unwrap();
    let note = report.steps[0].note.as_deref().unwrap();
    assert!(note.starts_with("json: line 4, at \"/task_id\": expected \"task_\""), "{note}");
}

/// §3.5: whatever an act of the examples is answered by the kernel, explaining it just before says the same.
#[test]
fn explanations_agree_with_what_is_answered() {
    // What the act itself takes, and what its key remembers, is learnt by the act.
    const LEARNT: [&str; 3] = ["a2achan/full", "a2achan/key-reused", "kernel/pending"];
    let mut differ = Vec::new();
    let mut compared = 0;
    for scenario in all("scenarios").into_iter().chain(all("incidents")) {
        let report = scenario.perform(&Performance::default().explain(Explaining::Everything)).unwrap();
        for step in &report.steps {
            let Some(explained) = &step.explanation else {
                continue;
            };
            let said = explained.reason.filter(|_| explained.verdict == "deny");
            if step.at.as_deref().is_some_and(|site| LEARNT.contains(&site)) {
                continue;
            }
            let answered = step.reason.as_deref().filter(|_| step.verdict == "deny");
            compared += 1;
            if said != answered {
                differ.push(format!(
                    "{} step {} ({}): {said:?} {answered:?} at {:?}",
                    report.file, step.number, step.act, step.at
                ));
            }
        }
    }
    assert!(compared > 500, "{compared}");
    assert!(differ.is_empty(), "{} of {compared}:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn a_run_can_be_repeated() {
    for scenario in all("scenarios") {
        let once = scenario.perform(&Performance::default()).unwrap();
        assert_eq!(once, scenario.perform(&Performance::default()).unwrap());
    }
}

/// I24, §3.6, §3.5: no log line and no explanation holds a byte of any body.
#[test]
fn neither_log_nor_explanation_quotes_a_body() {
    const MARKER: &str = "xyzzy-secret";
    let folder = std::env::temp_dir().join(format!("fak-scenario-i24-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let how = |log: &str| Performance::default().explain(Explaining::Everything).audit(folder.join(log));
    for (number, scenario) in all("scenarios").iter().chain(&all("incidents")).enumerate() {
        let text = std::fs::read_to_string(scenario.path()).unwrap();
        let marked = text.replace("{\"text\": \"", &format!("{{\"text\": \"{MARKER}"));
        let scenario = Scenario::parse(marked.as_bytes(), scenario.path(), Reach::Folder).unwrap();
        let report = scenario.perform(&how(&format!("{number}.jsonl"))).unwrap();
        for step in &report.steps {
            let explanation = step.explanation.as_ref().map(ToString::to_string).unwrap_or_default();
            assert!(!explanation.contains(MARKER), "{}: {explanation}", scenario.path().display());
            if step.verdict == "deny" {
                assert!(!step.to_text(Style::Plain).contains(MARKER), "{}", step.to_text(Style::Plain));
            }
        }
        let log = std::fs::read_to_string(folder.join(format!("{number}.jsonl"))).unwrap();
        assert!(!log.contains(MARKER), "{}", scenario.path().display());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What the schema refuses, the reader refuses.
#[test]
fn every_negative_scenario_is_refused() {
    let mut seen = 0;
    for path in find(&folder("negative")).unwrap() {
        let fixture: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        if fixture["schema"] == "fak.scenario.v1" {
            let text = fixture["value"].to_string();
            let read = Scenario::parse(text.as_bytes(), &path, Reach::Folder);
            assert!(read.is_err(), "{} is read", path.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// §8: whatever is cut out of or written over a scenario, reading it answers, and what still reads can be performed.
#[test]
fn mutilated_scenarios_are_answered() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    let junk = [b'"', b'{', b'}', b'[', b']', b',', b':', b'0', b'-', b'\\', b' ', 0xff, b'@', b'?'];
    let mut read = 0;
    for scenario in all("scenarios").iter().chain(&all("incidents")) {
        let text = std::fs::read(scenario.path()).unwrap();
        for _ in 0..20 {
            let mut text = text.clone();
            match next(3) {
                0 => text.truncate(next(text.len())),
                1 => {
                    let at = next(text.len());
                    text[at] = junk[next(junk.len())];
                }
                _ => {
                    let (from, length) = (next(text.len()), next(40));
                    text.drain(from..(from + length).min(text.len()));
                }
            }
            if let Ok(scenario) = Scenario::parse(&text, scenario.path(), Reach::Folder) {
                read += 1;
                scenario.perform(&Performance::default()).ok();
            }
        }
    }
    assert!(read > 100, "{read}: the mutilations are too coarse");
}
