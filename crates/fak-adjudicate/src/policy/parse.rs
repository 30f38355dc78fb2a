//! From the tree of a text to rules. Keys are closed; whatever is wrong is placed.

use std::cell::RefCell;
use std::ops::Range;

use fak_abi::json::{self, nearest};
use fak_abi::{Capability, Reason, ShareScope, Taint};

use super::error::{PolicyError, PolicyProblem};
use super::glob::{AddressGlob, Glob};
use super::rule::{Effect, Grant, Policy, Rule, Who};
use super::source::{self, Entry, Kind, Node};

/// How many rules a policy may have.
const MAX_RULES: usize = 16_384;
/// How long a glob may be, in bytes.
const MAX_GLOB: usize = 1024;
/// How many things that are wrong with a text are told at once.
const MAX_TOLD: usize = 20;

impl Policy {
    /// Reads a policy from TOML (§3.7). `file` names the text in errors and is not opened.
    ///
    /// ```
    /// use fak_adjudicate::Policy;
    /// let error = Policy::from_toml("p.toml", "version = 1\n[[deny]]\ntol = \"a2a.send\"\n").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "p.toml:3:1: deny[1].tol: unknown key \"tol\", did you mean \"tool\"?\n \
    ///      3 | tol = \"a2a.send\"\n   | ^^^"
    /// );
    /// ```
    ///
    /// # Errors
    /// [`PolicyError`] for text that is not TOML, an unknown key or word, a missing key; all that is wrong, at most 20 things.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, PolicyError> {
        Reader::new(file, text).policy(&source::toml(file, text)?)
    }

    /// Reads a policy from JSON, of the same shape.
    ///
    /// # Errors
    /// As [`Policy::from_toml`].
    pub fn from_json(file: &str, text: &str) -> Result<Self, PolicyError> {
        Reader::new(file, text).policy(&source::json(file, text)?)
    }

    /// Reads a policy that stands inside a JSON text, such as a scenario: `value` was read out of
    /// `text`, so that errors are placed in it.
    ///
    /// # Errors
    /// As [`Policy::from_toml`].
    pub fn from_value(file: &str, text: &str, value: &json::Value) -> Result<Self, PolicyError> {
        Reader::new(file, text).policy(&source::from_value(text, value))
    }
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    /// Where each line ends.
    lines: Vec<usize>,
    /// What is wrong so far, in the order it was found.
    faults: RefCell<Vec<PolicyError>>,
}

/// The keys of one table, by name.
struct Table<'r, 'n> {
    reader: &'r Reader<'r>,
    /// Such as `deny[2]`, counted from 1; empty for the policy itself.
    path: String,
    span: Range<usize>,
    entries: &'n [Entry<'n>],
    /// Whether it has a key that it may not have: what it lacks is then most likely that one, misspelt.
    misspelt: bool,
}

const TOP: &[&str] = &["version", "allow", "deny", "quarantine", "grant"];
const WHO: [&str; 3] = ["agent", "fleet", "tenant"];
const RULE: &[&str] = &["tool", WHO[0], WHO[1], WHO[2], "address", "taint", "scope", "max_bytes"];
const DENY: &[&str] = &["tool", WHO[0], WHO[1], WHO[2], "address", "taint", "scope", "max_bytes", "reason"];
const GRANT: &[&str] = &["capability", WHO[0], WHO[1], WHO[2]];

impl<'a> Reader<'a> {
    fn new(file: &'a str, text: &'a str) -> Self {
        let lines = text.match_indices('\n').map(|(at, _)| at).collect();
        Self { file, text, lines, faults: RefCell::default() }
    }

    /// What was read; or nothing, and why is kept.
    fn keep<T>(&self, read: Result<T, PolicyError>) -> Option<T> {
        read.map_err(|error| {
            let mut faults = self.faults.borrow_mut();
            if faults.len() < MAX_TOLD {
                faults.push(error);
            }
        })
        .ok()
    }

    fn error(&self, span: &Range<usize>, key: impl Into<String>, problem: PolicyProblem) -> PolicyError {
        PolicyError::new(self.file, self.text, span.clone(), key, problem)
    }

    fn policy(&self, root: &Node<'_>) -> Result<Policy, PolicyError> {
        let top = self.table(root, String::new(), TOP)?;
        if let Some(version) = top.required("version").filter(|node| !matches!(node.kind, Kind::Whole(1))) {
            let problem = PolicyProblem::Invalid("the integer 1");
            self.keep::<()>(Err(self.error(&version.span, "version", problem)));
        }
        let mut policy = Policy { file: self.file.to_owned(), ..Policy::default() };
        for (kind, keys) in [("allow", RULE), ("deny", DENY), ("quarantine", RULE)] {
            for Numbered { index, table } in self.tables(&top, kind, keys) {
                policy.rules.extend(rule(&table, kind, index));
            }
        }
        for Numbered { table, .. } in self.tables(&top, "grant", GRANT) {
            policy.grants.extend(grant(&table));
        }
        if let Some(error) = PolicyError::of_all(self.faults.take()) {
            return Err(error);
        }
        if policy.len() > MAX_RULES {
            return Err(self.error(&(0..0), "", PolicyProblem::TooMany(MAX_RULES)));
        }
        Ok(policy)
    }

    fn table<'n>(
        &self,
        node: &'n Node<'n>,
        path: String,
        known: &'static [&'static str],
    ) -> Result<Table<'_, 'n>, PolicyError> {
        let Kind::Table(entries) = &node.kind else {
            let problem = PolicyProblem::WrongType { expected: "a table", found: node.kind.name() };
            return Err(self.error(&node.span, path, problem));
        };
        let mut table = Table { reader: self, path, span: node.span.clone(), entries, misspelt: false };
        for entry in entries.iter().filter(|entry| !known.contains(&&*entry.name)) {
            let name = entry.name.chars().take(64).collect::<String>();
            let near = nearest(&entry.name, known.iter().copied());
            let nearest = known.iter().copied().find(|key| Some(*key) == near);
            let key = table.key(&name);
            self.keep::<()>(Err(self.error(&entry.span, key, PolicyProblem::UnknownKey { name, nearest })));
            table.misspelt = true;
        }
        Ok(table)
    }

    fn tables<'n>(
        &self,
        top: &Table<'_, 'n>,
        kind: &'static str,
        known: &'static [&'static str],
    ) -> Vec<Numbered<'_, 'n>> {
        let Some(node) = top.optional(kind) else { return Vec::new() };
        let Kind::List(nodes) = &node.kind else {
            let problem =
                PolicyProblem::WrongType { expected: "an array of tables", found: node.kind.name() };
            self.keep::<()>(Err(self.error(&node.span, kind, problem)));
            return Vec::new();
        };
        (0_u32..)
            .zip(nodes)
            .filter_map(|(index, node)| {
                let table = self.keep(self.table(node, format!("{kind}[{}]", index + 1), known))?;
                Some(Numbered { index, table })
            })
            .collect()
    }
}

struct Numbered<'r, 'n> {
    index: u32,
    table: Table<'r, 'n>,
}

/// A rule; nothing if something of it is wrong, which then is kept.
fn rule(table: &Table<'_, '_>, kind: &'static str, index: u32) -> Option<Rule> {
    let reader = table.reader;
    let tool = table.required("tool").and_then(|node| reader.keep(table.glob(node, "tool")));
    let who = table.who();
    let address = reader.keep(table.optional_glob("address"));
    let taint = reader.keep(table.word("taint", "taint", Taint::ALL, Taint::name));
    let scope = reader.keep(table.word("scope", "scope", ShareScope::ALL, ShareScope::name));
    let max_bytes = reader.keep(table.number("max_bytes"));
    let effect = match kind {
        "allow" => Effect::Allow,
        "quarantine" => Effect::Quarantine,
        _ => {
            let reason = reader.keep(table.word("reason", "reason", Reason::ALL, Reason::name))?;
            Effect::Deny(reason.unwrap_or(Reason::PolicyBlock))
        }
    };
    Some(Rule {
        effect,
        index,
        line: table.line(),
        tool: Glob::new(tool?),
        who: who?,
        address: address?.map(AddressGlob::new),
        taint: taint?,
        scope: scope?,
        max_bytes: max_bytes?,
    })
}

fn grant(table: &Table<'_, '_>) -> Option<Grant> {
    let capability = table.required("capability").and_then(|node| table.reader.keep(capability(table, node)));
    let who = table.who();
    Some(Grant { line: table.line(), capability: capability?, who: who? })
}

fn capability<'n>(table: &Table<'_, 'n>, node: &'n Node<'n>) -> Result<Glob, PolicyError> {
    let text = table.glob(node, "capability")?;
    let capability = Glob::new(text);
    if !Capability::ALL.iter().any(|cap| capability.matches(cap.name())) {
        return Err(table.unknown(node, "capability", "capability", text, Capability::ALL, Capability::name));
    }
    Ok(capability)
}

impl<'n> Table<'_, 'n> {
    fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn error(&self, span: &Range<usize>, name: &str, problem: PolicyProblem) -> PolicyError {
        self.reader.error(span, self.key(name), problem)
    }

    /// The line it starts on.
    fn line(&self) -> usize {
        self.reader.lines.partition_point(|end| *end < self.span.start) + 1
    }

    fn optional(&self, name: &str) -> Option<&'n Node<'n>> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.value)
    }

    /// The value of a key that must be there; nothing if it is not, which then is kept.
    fn required(&self, name: &'static str) -> Option<&'n Node<'n>> {
        let node = self.optional(name);
        if node.is_none() && !self.misspelt {
            self.reader.keep::<()>(Err(self.error(&self.span, name, PolicyProblem::MissingKey(name))));
        }
        node
    }

    fn text(&self, node: &'n Node<'n>, name: &str) -> Result<&'n str, PolicyError> {
        match &node.kind {
            Kind::Text(text) => Ok(text),
            other => {
                let problem = PolicyProblem::WrongType { expected: "a string", found: other.name() };
                Err(self.error(&node.span, name, problem))
            }
        }
    }

    fn glob(&self, node: &'n Node<'n>, name: &str) -> Result<&'n str, PolicyError> {
        match self.text(node, name)? {
            "" => Err(self.error(&node.span, name, PolicyProblem::Invalid("a glob that is not empty"))),
            text if text.len() > MAX_GLOB => {
                Err(self.error(&node.span, name, PolicyProblem::Invalid("a glob of at most 1024 bytes")))
            }
            text => Ok(text),
        }
    }

    fn optional_glob(&self, name: &str) -> Result<Option<&'n str>, PolicyError> {
        self.optional(name).map(|node| self.glob(node, name)).transpose()
    }

    fn who(&self) -> Option<Who> {
        let [agent, fleet, tenant] =
            WHO.map(|name| self.reader.keep(self.optional_glob(name)).map(|text| text.map(Glob::new)));
        Some(Who { agent: agent?, fleet: fleet?, tenant: tenant? })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, PolicyError> {
        match self.optional(name) {
            None => Ok(None),
            Some(Node { kind: Kind::Whole(number), .. }) => Ok(Some(*number)),
            Some(node) => {
                let expected = "a whole number of bytes, 0 or more";
                let problem = PolicyProblem::WrongType { expected, found: node.kind.name() };
                Err(self.error(&node.span, name, problem))
            }
        }
    }

    /// A word of a closed vocabulary.
    fn word<T: Copy>(
        &self,
        name: &str,
        what: &'static str,
        all: &'static [T],
        spell: fn(T) -> &'static str,
    ) -> Result<Option<T>, PolicyError> {
        let Some(node) = self.optional(name) else { return Ok(None) };
        let text = self.text(node, name)?;
        match all.iter().find(|word| spell(**word) == text) {
            Some(word) => Ok(Some(*word)),
            None => Err(self.unknown(node, name, what, text, all, spell)),
        }
    }

    fn unknown<T: Copy>(
        &self,
        node: &Node<'_>,
        name: &str,
        what: &'static str,
        text: &str,
        all: &'static [T],
        spell: fn(T) -> &'static str,
    ) -> PolicyError {
        let words: Vec<_> = all.iter().map(|word| spell(*word)).collect();
        let problem = PolicyProblem::UnknownWord {
            what,
            given: text.chars().take(64).collect(),
            nearest: nearest(text, words.iter().copied()),
            expected: words.join(", "),
        };
        self.error(&node.span, name, problem)
    }
}
