//! `fak completions`: scripts that complete verbs and options.

use clap::CommandFactory as _;
use serde_json::json;

use crate::{
    args::{Cli, CompletionsArgs},
    failure::Failure,
    output::Output,
};

pub(crate) fn write(args: &CompletionsArgs, output: &mut Output) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fak", &mut script);
    let script = String::from_utf8_lossy(&script);
    if output.json() {
        output.json_of(&json!({"shell": args.shell.to_string(), "script": script}))?;
    } else {
        output.text(script)?;
    }
    Ok(0)
}
