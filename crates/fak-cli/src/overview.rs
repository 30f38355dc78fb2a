//! What `fak` shows without arguments: where to begin.

use crate::{failure::Failure, output::Output};

const TEXT: &str = "\
fak: multi-agent coordination in which every act is an adjudicated tool call

Begin here
  fak demo                          watch agents coordinate under the floor, act by act
  fak run examples/scenarios        perform a folder of scenarios and check what they expect
  fak explain TRUST_VIOLATION       what a refusal means and what to do about it

Write a scenario of your own
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
  fak run mine.json

More
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
        output.text(TEXT)?;
    }
    Ok(0)
}
