//! `fak explain`: what a reason means, what a check refuses, or every rung's opinion of a scenario's acts (§3.5).

use std::path::Path;

use fak_abi::{Reason, SiteInfo, json::nearest};
use fak_scenario::{Explaining, Performance, Scenario, StepReport, check, checks, meant, printable};
use serde_json::{Value, json};

use crate::{
    args::ExplainArgs,
    failure::{Failure, beside},
    merge,
    output::Output,
    policy,
    run::reach,
    word::{self, Word},
};

pub(crate) fn explain(args: &ExplainArgs, output: &mut Output) -> Result<u8, Failure> {
    let Some(what) = &args.what else {
        return match (args.checks, args.acts) {
            (true, _) => list_checks(&checks(), output),
            (_, true) => word::list_acts(output),
            _ => reasons(output),
        };
    };
    // What is said of a scenario's steps is asked of a scenario.
    let option = args.policy.as_ref().map(|_| "--policy").or(args.step.as_ref().map(|_| "--step"));
    if option.is_none() {
        if let Some(reason) = Reason::ALL.iter().find(|reason| reason.name().eq_ignore_ascii_case(what)) {
            return one_reason(*reason, output);
        }
        if let Some(outcome) = merge::find(what) {
            return one_outcome(outcome, output);
        }
        if let Some(site) = check(what) {
            return one_site(&site, word::rung(what), output);
        }
        if let Some(word) = word::find(what) {
            return word.show(output);
        }
    }
    let path = Path::new(what);
    if path.exists() || path.extension().is_some_and(|end| end == "json") {
        return scenario(path, args, output);
    }
    if let Some(option) = option {
        return Err(Failure::Usage(format!("{option} is for a scenario, and {what:?} is no file")));
    }
    // The layer that a check belongs to stands before its name.
    let of_it = |name: &str| name.split_once('/').is_some_and(|(layer, _)| layer.eq_ignore_ascii_case(what));
    let sites: Vec<SiteInfo> = checks().into_iter().filter(|site| of_it(site.check)).collect();
    if !sites.is_empty() && option.is_none() {
        return list_checks(&sites, output);
    }
    Err(unknown(what))
}

/// Every word that is explained.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    let reasons = Reason::ALL.iter().map(|reason| reason.name()).chain(merge::names());
    let checks: Vec<&'static str> = checks().iter().map(|site| site.check).collect();
    reasons.chain(checks).chain(word::names())
}

fn unknown(what: &str) -> Failure {
    let checks = checks();
    let names = names();
    // Other spellings first: another word for it is a guess.
    if let Some(file) = beside(Path::new(what)).filter(|_| what.contains(['.', '/'])) {
        let hint = format!("did you mean the file {:?}?", file.display().to_string());
        return Failure::Unknown { name: what.to_owned(), hint };
    }
    let near = nearest(what, names.clone())
        .or_else(|| meant(what, checks.iter().map(|site| site.check)))
        .or_else(|| meant(what, names));
    let hint = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            let own = if what.contains('/') {
                "; a rung or check of your own program is not known here"
            } else {
                ""
            };
            format!(
                "give a reason, a check, an act, a capability or a scenario file; `fak explain` lists the reasons, \
                 `fak explain --checks` the checks, `fak explain --acts` the acts{own}"
            )
        }
    };
    Failure::Unknown { name: what.to_owned(), hint }
}

fn reason_json(reason: Reason) -> Value {
    json!({
        "reason": reason.name(),
        "code": reason.code(),
        "disposition": reason.disposition().name(),
        "advice": reason.advice(),
    })
}

fn reasons(output: &mut Output) -> Result<u8, Failure> {
    if output.json() {
        output.text(Reason::ALL.iter().copied().map(reason_json).collect::<Value>().to_string())?;
        return Ok(0);
    }
    output.text(
        "The twelve reasons of a refusal, what to do about each, and whether it is worth trying again:\n",
    )?;
    for reason in Reason::ALL {
        output.text(format!(
            "  {:<16} {:<10} {}",
            reason.name(),
            reason.disposition().name(),
            reason.advice()
        ))?;
    }
    output.text("\n  wait: later may do    retryable: another call may do    escalate: ask a person    terminal: never")?;
    Ok(0)
}

fn list_checks(sites: &[SiteInfo], output: &mut Output) -> Result<u8, Failure> {
    if output.json() {
        output.json_of(&sites.iter().map(site_json).collect::<Vec<_>>())?;
        return Ok(0);
    }
    for site in sites {
        output.text(format!("  {:<30} {:<14} {}", site.check, site.clause, site.refuses))?;
    }
    Ok(0)
}

fn site_json(site: &SiteInfo) -> Value {
    json!({"check": site.check, "clause": site.clause, "refuses": site.refuses, "next": site.next})
}

fn one_reason(reason: Reason, output: &mut Output) -> Result<u8, Failure> {
    if output.json() {
        output.text(reason_json(reason).to_string())?;
        return Ok(0);
    }
    output.text(format!("{} ({}): {}", reason.name(), reason.disposition().name(), reason.advice()))?;
    Ok(0)
}

fn one_outcome(outcome: &merge::Outcome, output: &mut Output) -> Result<u8, Failure> {
    let merge::Outcome { reason, means, next } = outcome;
    if output.json() {
        let verdict = reason.verdict().name();
        output.json_of(&json!({"reason": reason.name(), "merge": verdict, "means": means, "next": next}))?;
        return Ok(0);
    }
    output.text(format!(
        "{reason} (a merge's outcome, {})\n  means: {means}\n  next:  {next}",
        reason.verdict()
    ))?;
    Ok(0)
}

/// A check, and the rung of the same name if there is one.
fn one_site(site: &SiteInfo, rung: Option<Word>, output: &mut Output) -> Result<u8, Failure> {
    if output.json() {
        let mut json = site_json(site);
        if let (Some(rung), Some(json)) = (&rung, json.as_object_mut()) {
            json.insert("rung".to_owned(), rung.to_json());
        }
        output.json_of(&json)?;
        return Ok(0);
    }
    output.text(format!(
        "{} (protocol {})\n  refuses: {}\n  next:    {}",
        site.check, site.clause, site.refuses, site.next
    ))?;
    rung.map_or(Ok(0), |rung| rung.show(output))
}

/// Every rung's opinion of each act, at the moment before it is performed.
fn scenario(path: &Path, args: &ExplainArgs, output: &mut Output) -> Result<u8, Failure> {
    let scenario =
        Scenario::load(path, reach(args.allow_outside)).map_err(|error| Failure::scenario(path, error))?;
    let only = args.step.as_deref().map(|given| step_number(given, &scenario)).transpose()?;
    let explaining = only.map_or(Explaining::Everything, Explaining::Step);
    let how = match &args.policy {
        Some(policy) => Performance::default().policy(policy::load(policy)?),
        None => Performance::default(),
    };
    let mut report = scenario.perform(&how.explain(explaining))?;
    report.steps.retain(|step| only.is_none_or(|number| number == step.number));
    if output.json() {
        output.text(serde_json::to_string_pretty(&report).unwrap_or_default())?;
        return Ok(0);
    }
    for step in &report.steps {
        output.text(step.to_text(output.style()))?;
        match &step.explanation {
            Some(explanation) => {
                for line in explanation.to_string().lines() {
                    output.text(format!("       {line}"))?;
                }
            }
            None => output.text(format!("       {}", unexplained(step)))?,
        }
        if let Some(hint) = &step.hint {
            output.text(format!("       hint: {}", printable(hint)))?;
        }
        if let Some(outcome) = step.reason.as_deref().and_then(merge::find) {
            output.text(format!("       the merge: {}\n         next: {}", outcome.means, outcome.next))?;
        }
    }
    Ok(0)
}

/// The step that `--step` names.
fn step_number(given: &str, scenario: &Scenario) -> Result<usize, Failure> {
    let last = scenario.len();
    if let Some(number) = given.parse().ok().filter(|number| (1..=last).contains(number)) {
        return Ok(number);
    }
    let expected = match last {
        0 => "but the scenario has no steps".to_owned(),
        1 => "expected 1, the number of its only step".to_owned(),
        _ => format!("expected the number of a step, 1 to {last}"),
    };
    Err(Failure::Usage(format!("--step {given:?}: {expected}")))
}

/// Why no rung has an opinion of a step, and what is known of its refusal all the same.
fn unexplained(step: &StepReport) -> String {
    match (step.at.as_deref().and_then(check), step.rung.as_deref()) {
        (Some(site), _) => format!("refuses: {} ({})\n       next: {}", site.refuses, site.clause, site.next),
        (None, Some(rung)) => format!(
            "{rung} decided it; what the other rungs say of such an act is not to be asked beforehand"
        ),
        (None, None) if step.by.is_none() => "an act of the host: nothing to explain".to_owned(),
        (None, None) => "no rung is asked about it: nothing to explain".to_owned(),
    }
}
