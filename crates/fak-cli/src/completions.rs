//! `fak completions`: scripts that complete verbs and options.

use clap::{Command, CommandFactory as _, builder::PossibleValuesParser};
use clap_complete::Shell;
use fak_abi::{Reason, VerdictKind};
use serde_json::json;

use crate::{
    args::{Cli, CompletionsArgs},
    explain,
    failure::Failure,
    output::Output,
};

/// The command with the words that its arguments take: they are read in any case and with better advice than clap's.
fn words(command: Command, shell: Shell) -> Command {
    let verdicts = PossibleValuesParser::new(VerdictKind::ALL.iter().map(|verdict| verdict.name()));
    let reasons = PossibleValuesParser::new(Reason::ALL.iter().map(|reason| reason.name()));
    let command = command.mut_subcommand("audit", |audit| {
        audit.mut_subcommand("show", |show| {
            show.mut_arg("verdict", |arg| arg.value_parser(verdicts))
                .mut_arg("reason", |arg| arg.value_parser(reasons))
        })
    });
    // Of these shells' scripts those that offer files besides.
    if !matches!(shell, Shell::Bash | Shell::Fish) {
        return command;
    }
    let known: Vec<&'static str> = explain::names().collect();
    command.mut_subcommand("explain", |verb| {
        verb.mut_arg("what", |arg| arg.value_parser(PossibleValuesParser::new(known)))
    })
}

pub(crate) fn write(args: &CompletionsArgs, output: &mut Output) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut words(Cli::command(), args.shell), "fak", &mut script);
    let script = String::from_utf8_lossy(&script);
    if output.json() {
        output.json_of(&json!({"shell": args.shell.to_string(), "script": script}))?;
    } else {
        output.text(script)?;
    }
    Ok(0)
}
