//! `fak lanes`: what a lane table holds, and what may run together (§6.7).

use std::path::Path;

use fak_comm::{CommError, Taxonomy, run_together};

use crate::{
    args::{LanesCheckArgs, LanesVerb},
    failure::{Failure, read_text},
    kind::Kind,
    output::Output,
};

pub(crate) fn lanes(verb: &LanesVerb, output: &mut Output) -> Result<u8, Failure> {
    match verb {
        LanesVerb::Lint(args) => lint(&args.file, output),
        LanesVerb::Check(args) => check(args, output),
    }
}

fn table(path: &Path) -> Result<Taxonomy, Failure> {
    read_text(path)?.parse().map_err(|error: CommError| Failure::of_kind(path, Kind::LaneTable, error))
}

fn lint(path: &Path, output: &mut Output) -> Result<u8, Failure> {
    let lint = table(path)?.lint();
    let found = u8::from(lint.findings() > 0);
    if output.json() {
        output.json_of(&lint)?;
        return Ok(found);
    }
    output.text(lint.to_string())?;
    output.text(match lint.findings() {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    })?;
    Ok(found)
}

fn check(args: &LanesCheckArgs, output: &mut Output) -> Result<u8, Failure> {
    let taxonomy = table(&args.file)?;
    let names: Vec<&str> = args.lanes.iter().map(String::as_str).collect();
    let together = run_together(&taxonomy, &names);
    if let Some((name, near)) = together.unknown.first() {
        let hint = match near {
            Some(near) => format!("did you mean the lane \"{near}\"?"),
            None => format!("it is no lane of {}", args.file.display()),
        };
        return Err(Failure::Unknown { name: name.clone(), hint });
    }
    if output.json() {
        output.json_of(&together)?;
    } else if let [alone] = names.as_slice() {
        output.text(format!("{alone} is a lane; give another to ask whether they may run together"))?;
    } else if together.is_clear() {
        output.text(format!("{} may run together", names.join(", ")))?;
    } else {
        output.text(together.to_string())?;
    }
    Ok(u8::from(!together.is_clear()))
}
