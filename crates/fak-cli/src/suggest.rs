//! What is said of arguments that are none: the verb or the option that was meant, where clap does not know.

use std::env;

use clap::{
    Command, CommandFactory as _,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::args::Cli;

/// Verbs, and what they are elsewhere called.
const CALLED: &[(&str, &[&str])] = &[
    ("run", &["test", "validate", "check", "exec", "play", "perform"]),
    ("policy lint", &["lint"]),
    ("audit verify", &["verify"]),
    ("explain", &["why", "describe", "info", "list", "checks", "reasons"]),
    ("demo", &["example", "examples", "tour", "start", "init", "new"]),
];

/// The same error, with a better tip where there is one.
pub(crate) fn better(error: clap::Error) -> clap::Error {
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb(error),
        ErrorKind::UnknownArgument => option(error),
        _ => error,
    }
}

/// Names the verb that was meant where a swap or a slip makes it unlike for clap, but not for us.
fn verb(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let command = Cli::command();
    let called = CALLED.iter().find(|(_, names)| names.contains(&&**given)).map(|(verb, _)| *verb);
    let near = called
        .or_else(|| fak_abi::json::nearest(given, command.get_subcommands().map(Command::get_name)))
        .map(str::to_owned);
    let near = if given.ends_with(".json") { Some(format!("run {given}")) } else { near };
    if let (Some(near), None) = (near, error.get(ContextKind::SuggestedSubcommand)) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
    }
    error
}

/// Names the verb that has the option, or what this verb has; not how to pass it as a value, which nobody wants of these.
fn option(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.get(ContextKind::SuggestedArg).is_some() {
        return error;
    }
    let command = Cli::command();
    let (path, here) = asked(&command);
    let tip = if path == "fak explain" && given.parse::<usize>().is_ok() {
        format!("one step of a scenario is --step {given}")
    } else if given.starts_with('-') {
        let name = given.trim_start_matches('-');
        let elsewhere =
            verbs(&command).into_iter().filter(|(_, verb)| options(verb).any(|long| long == name));
        let elsewhere: Vec<String> = elsewhere.map(|(path, _)| format!("`{path}`")).collect();
        if elsewhere.is_empty() {
            let all: Vec<String> = options(here).chain(["json"]).map(|long| format!("--{long}")).collect();
            format!("the options of `{path}`: {}", all.join(", "))
        } else {
            format!("{given} is an option of {}", elsewhere.join(", "))
        }
    } else {
        return error;
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    error
}

/// The verb that was asked for, as far as there is one.
fn asked(command: &Command) -> (String, &Command) {
    let (mut path, mut here) = (command.get_name().to_owned(), command);
    for argument in env::args().skip(1) {
        let Some(verb) = here.find_subcommand(&argument) else { continue };
        path = format!("{path} {}", verb.get_name());
        here = verb;
    }
    (path, here)
}

/// The verbs that have no verbs of their own, each with how it is called.
fn verbs(command: &Command) -> Vec<(String, &Command)> {
    let mut found = Vec::new();
    for verb in command.get_subcommands() {
        let of_it = |verb: &Command| format!("{} {}", command.get_name(), verb.get_name());
        found.push((of_it(verb), verb));
        found.extend(
            verb.get_subcommands().map(|below| (format!("{} {}", of_it(verb), below.get_name()), below)),
        );
    }
    found
}

/// The long options of a verb, without those that every verb has.
fn options(command: &Command) -> impl Iterator<Item = &str> {
    command.get_arguments().filter_map(clap::Arg::get_long)
}
