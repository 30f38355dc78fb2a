//! `fak policy`: policies checked, and tried before they are deployed (§3.7).

use std::path::Path;

use fak_adjudicate::Policy;
use fak_scenario::{Performance, read_policy};
use serde_json::json;

use crate::{
    args::{PolicyLintArgs, PolicyTestArgs, PolicyVerb},
    failure::{Failure, read_text},
    kind::{Kind, mistaken},
    output::Output,
    run::{Run, perform, reach},
};

pub(crate) fn policy(verb: &PolicyVerb, output: &mut Output) -> Result<u8, Failure> {
    match verb {
        PolicyVerb::Lint(args) => lint(args, output),
        PolicyVerb::Test(args) => test(args, output),
    }
}

/// Reads a policy, whose format its name tells.
pub(crate) fn load(path: &Path) -> Result<Policy, Failure> {
    read_policy(path, &read_text(path)?).map_err(|error| match mistaken(path, Kind::Policy) {
        Some(mistaken) => Failure::file(path, mistaken),
        None => Failure::Scenario(error.into()),
    })
}

fn lint(args: &PolicyLintArgs, output: &mut Output) -> Result<u8, Failure> {
    let tools: Vec<&str> = args.tools.iter().map(String::as_str).collect();
    let findings = load(&args.file)?.lint((!tools.is_empty()).then_some(&tools[..]));
    if output.json() {
        let json: Vec<_> = findings
            .iter()
            .map(|found| json!({"line": found.line, "rule": found.rule, "text": found.text}))
            .collect();
        output.json_of(&json)?;
    } else {
        for found in &findings {
            output.text(format!("{}:{}: {}: {}", args.file.display(), found.line, found.rule, found.text))?;
        }
        if findings.is_empty() {
            output.text("no findings")?;
        }
    }
    Ok(u8::from(!findings.is_empty()))
}

fn test(args: &PolicyTestArgs, output: &mut Output) -> Result<u8, Failure> {
    let how = Performance::default().policy(load(&args.file)?);
    let reach = reach(args.allow_outside);
    perform(&Run { paths: &args.paths, reach, how, quiet: args.quiet, next: false }, output)
}
