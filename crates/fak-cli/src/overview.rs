//! What `fak` shows without arguments: where to begin.

use std::path::Path;

use crate::{failure::Failure, output::Output};

const BEGIN: &str = "\
fak: multi-agent coordination in which every act is an adjudicated tool call

Begin here
  fak demo                          watch agents coordinate under the floor, act by act
  fak explain TRUST_VIOLATION       what a refusal means and what to do about it
";

/// Where a checkout keeps its scenarios: suggested where it is there.
const EXAMPLES: &str = "examples/scenarios";

const GO_ON: &str = "
Write a scenario of your own: save this as mine.json, then
  fak run mine.json                 perform it, and check what it expects
  fak explain mine.json --step 1    every rung's opinion of its first act

  {
    \"schema\": \"fak.scenario.v1\",
    \"name\": \"a private body cannot cross agents\",
    \"agents\": {
      \"alpha\": {\"fleet\": \"f1\", \"caps\": [\"a2a.send\"]},
      \"bravo\": {\"fleet\": \"f1\", \"caps\": [\"a2a.recv\"]}
    },
    \"steps\": [
      {\"do\": \"send\", \"by\": \"alpha\", \"to\": \"in_kernel:work\", \"body\": {\"text\": \"secret\"},
       \"expect\": {\"verdict\": \"deny\", \"reason\": \"TRUST_VIOLATION\"}}
    ]
  }

More
  fak explain send                  what an act of a scenario may be told, and asked
  fak explain --checks              every check there is
  fak --help                        every verb
  fak VERB --help                   one verb, with examples
";

pub(crate) fn show(output: &mut Output) -> Result<u8, Failure> {
    if output.json() {
        let verbs: Vec<String> = <crate::args::Cli as clap::CommandFactory>::command()
            .get_subcommands()
            .map(|verb| verb.get_name().to_owned())
            .collect();
        output.text(serde_json::json!({ "verbs": verbs }).to_string())?;
    } else {
        output.text(BEGIN)?;
        if Path::new(EXAMPLES).is_dir() {
            output.text(format!(
                "  fak run {EXAMPLES:<25} perform a folder of scenarios and check what they expect"
            ))?;
        }
        output.text(GO_ON)?;
    }
    Ok(0)
}
