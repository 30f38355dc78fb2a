//! `fak completions`: scripts that complete verbs and options.

use clap::CommandFactory as _;

use crate::{
    args::{Cli, CompletionsArgs},
    failure::Failure,
    output::Output,
};

pub(crate) fn write(args: &CompletionsArgs, output: &mut Output) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fak", &mut script);
    output.text(String::from_utf8_lossy(&script))?;
    Ok(0)
}
