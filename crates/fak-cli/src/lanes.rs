//! `fak lanes`: what a lane table holds, and what may run together (§6.7).

use std::path::Path;

use fak_abi::json::nearest;
use fak_comm::{Lint, Taxonomy, Together, Why, run_together};
use serde_json::{Value, json};

use crate::{
    args::{LanesCheckArgs, LanesVerb},
    failure::{Failure, read_text},
    output::Output,
};

pub(crate) fn lanes(verb: &LanesVerb, output: &mut Output) -> Result<u8, Failure> {
    match verb {
        LanesVerb::Lint(args) => lint(&args.file, output),
        LanesVerb::Check(args) => check(args, output),
    }
}

fn table(path: &Path) -> Result<Taxonomy, Failure> {
    read_text(path)?.parse().map_err(|error: fak_comm::CommError| Failure::file(path, error))
}

fn lint(path: &Path, output: &mut Output) -> Result<u8, Failure> {
    let lint = table(path)?.lint();
    if output.json() {
        output.text(lint_json(&lint).to_string())?;
        return Ok(0);
    }
    output.text(lint.to_string())?;
    output.text(match lint.findings() {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    })?;
    Ok(0)
}

fn lint_json(lint: &Lint) -> Value {
    let names = |ids: &[fak_abi::Id]| ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
    json!({
        "findings": lint.findings(),
        "duplicates": lint.duplicates.iter().map(|found| json!({
            "lane": &*found.lane, "times": found.times, "lines": found.lines,
        })).collect::<Vec<_>>(),
        "without_tree": names(&lint.without_tree),
        "without_lane": lint.without_lane.iter().map(|tree| json!({
            "name": &*tree.name, "line": tree.line,
        })).collect::<Vec<_>>(),
        "cover_all": names(&lint.cover_all),
        "overlaps": lint.overlaps.iter().map(|found| json!({
            "lanes": [found.lanes.0.as_str(), found.lanes.1.as_str()],
            "globs": [&*found.globs.0, &*found.globs.1],
        })).collect::<Vec<_>>(),
        "more_overlaps": lint.more_overlaps,
        "notes": lint.notes.iter().map(|note| json!({"key": note.key, "line": note.line})).collect::<Vec<_>>(),
    })
}

fn check(args: &LanesCheckArgs, output: &mut Output) -> Result<u8, Failure> {
    let taxonomy = table(&args.file)?;
    let names: Vec<&str> = args.lanes.iter().map(String::as_str).collect();
    let together = run_together(&taxonomy, &names);
    if let Some(name) = together.unknown.first() {
        let known = taxonomy.lanes().map(|lane| lane.name().as_str());
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean the lane \"{near}\"?"),
            None => format!("it is no lane of {}", args.file.display()),
        };
        return Err(Failure::Unknown { name: name.clone(), hint });
    }
    if output.json() {
        output.text(together_json(&together).to_string())?;
    } else if together.is_clear() {
        output.text(format!("{} may run together", names.join(", ")))?;
    } else {
        for (one, other, why) in &together.conflicts {
            output.text(format!("\"{one}\" and \"{other}\" may not run together: {}", because(why)))?;
        }
    }
    Ok(u8::from(!together.is_clear()))
}

fn together_json(together: &Together) -> Value {
    json!({
        "together": together.is_clear(),
        "conflicts": together.conflicts.iter().map(|(one, other, why)| json!({
            "lanes": [one.as_str(), other.as_str()], "why": because(why),
        })).collect::<Vec<_>>(),
    })
}

fn because(why: &Why) -> String {
    let side = |glob: &Option<std::sync::Arc<str>>| match glob {
        Some(glob) => format!("\"{glob}\""),
        None => "everything".to_owned(),
    };
    match why {
        Why::SameLane => "they are the same lane".to_owned(),
        Why::Exclusive => "one of them runs alone".to_owned(),
        Why::Overlap { ours, theirs } => format!("their trees overlap, {} and {}", side(ours), side(theirs)),
    }
}
