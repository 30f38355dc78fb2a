//! What the help of each verb says after its options: examples, and how it ends. Pinned by the tests.

pub(super) const EXITS: &str = "\
Exit status:
  0  everything held
  1  an expectation did not hold, or something was refused, was found or does not verify
  2  an argument or a file could not be read or written; the message says what was expected";

pub(super) const POLICY: &str = "\
Example:
  fak policy lint policy.toml

Exit status: 0 nothing is found and every expectation held, 1 something is or one did not, 2 a file cannot be read.";

pub(super) const LANES: &str = "\
Example:
  fak lanes check lanes.toml --lane docs --lane code

Exit status: 0 nothing is found and they may run together, 1 something is or they may not, 2 the table cannot be read.";

pub(super) const TOPO: &str = "\
Example:
  fak topo render wave.json --format mermaid

Exit status: 0, or 2 if the topology cannot be read or declared.";

pub(super) const AUDIT: &str = "\
Example:
  fak audit verify run.jsonl

Exit status: 0 it verifies, 1 it does not, 2 it cannot be read.";

pub(super) const TASK: &str = "\
Example:
  fak task view task.journal.json --as runner --fleet f1

Exit status: 0, 1 if it is refused or in conflict, 2 if a file cannot be read.";

pub(super) const JOURNAL: &str = "\
Example:
  fak journal verify journal.json

Exit status: 0 it verifies, 1 it does not, 2 it cannot be read.";

pub(super) const POLICY_LINT: &str = "\
A policy, which allows nothing that its rules do not:
  version = 1
  [[allow]]
  tool = \"*\"
  [[deny]]
  tool = \"a2a.send\"
  agent = \"intern*\"

Example:
  fak policy lint policy.toml

Exit status: 0 nothing is found, 1 something is, 2 the policy cannot be read.";

pub(super) const POLICY_TEST: &str = "\
Example:
  fak policy test policy.toml my-scenarios/

Exit status: 0 every expectation held, 1 one did not, 2 a file could not be read.";

pub(super) const TASK_NEW: &str = "\
A record:
  {\"schema\": \"fak.shared-task.v1\", \"task_id\": \"task_notes\", \"state\": \"working\",
   \"title\": \"Release notes\", \"artifacts\": [], \"notes\": [], \"open_decisions\": [],
   \"body_ref\": {\"text\": \"what has to be in them\"},
   \"updated_by\": {\"kind\": \"agent\", \"id\": \"planner\"}, \"updated_at\": \"2026-01-01T00:00:00Z\"}

A body_ref has a digest and a length; {\"text\": …} stands for those of the text.

Example:
  fak task new record.json --journal task.journal.json

Exit status: 0, or 2 if the record cannot be read or created, or the journal is there already.";

pub(super) const TASK_APPLY: &str = "\
A patch, whose actor is who applies it:
  {\"schema\": \"fak.shared-patch.v1\", \"task_id\": \"task_notes\", \"base_rev\": \"\",
   \"actor\": {\"kind\": \"agent\", \"id\": \"planner\"}, \"scope\": \"fleet\", \"durability\": \"session\",
   \"ops\": [{\"op\": \"replace\", \"path\": \"/title\", \"value\": \"Notes\"}], \"message\": \"shorter\"}

Examples:
  fak task apply task.journal.json patch.json --as planner --fleet f1 --base current
  fak task apply task.journal.json patch.json --as hana --human --fleet f1 --base current

Exit status: 0 accepted, 1 refused or in conflict (base, current and proposed value are shown), 2 a file cannot be read.";

pub(super) const TASK_VIEW: &str = "\
Example:
  fak task view task.journal.json --as runner --fleet f1

Exit status: 0, 1 if the reader is refused, 2 if the journal cannot be read.";

pub(super) const TASK_LOG: &str = "\
Example:
  fak task log task.journal.json --as runner --fleet f1

The number of an event is that of the revision it made.

Exit status: 0, 1 if the reader is refused, 2 if the journal cannot be read.";

pub(super) const JOURNAL_LOAD: &str = "\
Example:
  fak journal load journal.json

Exit status: 0, 1 if it does not verify or is no history that patches make, 2 if it cannot be read.";

pub(super) const AUDIT_VERIFY: &str = "\
Examples:
  fak audit verify run.jsonl --write-checkpoint run.check
  fak audit verify run.jsonl --checkpoint run.check     also shows a tail that was cut off
  fak audit verify run.jsonl --checkpoint 12:sha256:…   the same, as verify printed it
  zcat run.jsonl.gz | fak audit verify -                from standard input

Exit status: 0 it verifies, 1 it does not, 2 it cannot be read.";

pub(super) const AUDIT_SHOW: &str = "\
Examples:
  fak audit show run.jsonl --agent alpha --verdict deny
  fak audit show run.jsonl --reason TRUST_VIOLATION --since 2026-01-01T00:00:00Z --json

Exit status: 0, or 1 if a line does not verify (what stands before it is shown), 2 if it cannot be read.";

pub(super) const JOURNAL_VERIFY: &str = "\
Examples:
  fak journal verify journal.json
  fak journal verify journals/*.json                          with --json an object a line
  fak journal verify journal.json --checkpoint 12:sha256:…    as an earlier verify printed it

Exit status: 0 all verify, 1 one does not, 2 one cannot be read.";

pub(super) const JOURNAL_SHOW: &str = "\
Example:
  fak journal show journal.json

Entries are numbered from 0, as verify names them: entry 0 made revision 1.

Exit status: 0, or 2 if it cannot be read.";

pub(super) const LANES_LINT: &str = "\
A lane table:
  [lanes]
  concurrent = [\"docs\", \"code\"]
  exclusive = [\"release\"]
  [lanes.trees]
  docs = [\"docs/**\"]
  code = [\"src/**\", \"tests/**\"]

Example:
  fak lanes lint lanes.toml

Exit status: 0 nothing is found, 1 something is, 2 the table cannot be read.";

pub(super) const LANES_CHECK: &str = "\
Example:
  fak lanes check lanes.toml --lane docs --lane code

Exit status: 0 they may run together, 1 they may not, 2 the table cannot be read or has no such lane.";

pub(super) const TOPO_RENDER: &str = "\
The file is JSON: {\"name\": …, \"edges\": [[from, to], …], \"members\": […]}, where members are optional;
or a scenario with a topology.

Example:
  fak topo render wave.json --format mermaid

Exit status: 0, or 2 if the topology cannot be read or declared.";

pub(super) const RUN: &str = "\
Examples:
  fak run mine.json                      what an act answers otherwise than expected is a FAIL
  fak run my-scenarios/                  every scenario of a folder
  fak run mine.json --audit run.jsonl    and keep the audit log
  fak run mine.json --json | jq .failed  for programs

Exit status: 0 every expectation held, 1 one did not, 2 a file could not be read.";

pub(super) const DEMO: &str = "\
Example:
  fak demo

Exit status: 0 if every leg went as it must, 1 otherwise.";

pub(super) const EXPLAIN: &str = "\
Examples:
  fak explain TRUST_VIOLATION            what a reason means and what to do about it
  fak explain a2achan/private            what a check refuses: the name after \"at\"
  fak explain a2achan/gate               what a rung decides: the name after \"by\"
  fak explain STALE_BASE                 what the outcome of a merge means
  fak explain send                       what an act of a scenario may be told, and asked
  fak explain a2a.send                   what a capability opens
  fak explain mine.json --step 3         every rung's opinion of a step, before it is performed
  fak explain mine.json --policy p.toml  the same of all its steps, under another policy
  fak explain                            the twelve reasons
  fak explain --checks                   every check there is
  fak explain --acts                     every act of scenarios

Exit status: 0, or 2 if nothing of that name is known, or the scenario cannot be read.";

pub(super) const COMPLETIONS: &str = "\
Example:
  fak completions bash > ~/.local/share/bash-completion/completions/fak

Exit status: 0, or 2 if there is no such shell.";
