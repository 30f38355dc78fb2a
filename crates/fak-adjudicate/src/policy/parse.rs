//! From the tree of a text to rules. Keys are closed; whatever is wrong is placed.

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
    /// [`PolicyError`] for text that is not TOML, an unknown key or word, a missing key.
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
}

/// The keys of one table, by name.
struct Table<'r, 'n> {
    reader: &'r Reader<'r>,
    /// Such as `deny[2]`, counted from 1; empty for the policy itself.
    path: String,
    span: Range<usize>,
    entries: &'n [Entry<'n>],
}

const TOP: &[&str] = &["version", "allow", "deny", "quarantine", "grant"];
const WHO: [&str; 3] = ["agent", "fleet", "tenant"];
const RULE: &[&str] = &["tool", WHO[0], WHO[1], WHO[2], "address", "taint", "scope", "max_bytes"];
const DENY: &[&str] = &["tool", WHO[0], WHO[1], WHO[2], "address", "taint", "scope", "max_bytes", "reason"];
const GRANT: &[&str] = &["capability", WHO[0], WHO[1], WHO[2]];

impl<'a> Reader<'a> {
    fn new(file: &'a str, text: &'a str) -> Self {
        let lines = text.match_indices('\n').map(|(at, _)| at).collect();
        Self { file, text, lines }
    }

    fn error(&self, span: &Range<usize>, key: impl Into<String>, problem: PolicyProblem) -> PolicyError {
        PolicyError::new(self.file, self.text, span.clone(), key, problem)
    }

    fn policy(&self, root: &Node<'_>) -> Result<Policy, PolicyError> {
        let top = self.table(root, String::new(), TOP)?;
        let version = top.required("version")?;
        if !matches!(version.kind, Kind::Whole(1)) {
            return Err(self.error(&version.span, "version", PolicyProblem::Invalid("the integer 1")));
        }
        let mut policy = Policy { file: self.file.to_owned(), ..Policy::default() };
        for (kind, keys) in [("allow", RULE), ("deny", DENY), ("quarantine", RULE)] {
            for table in self.tables(&top, kind, keys)? {
                let index = table.index;
                policy.rules.push(rule(&table.table, kind, index)?);
            }
        }
        for table in self.tables(&top, "grant", GRANT)? {
            policy.grants.push(grant(&table.table)?);
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
        let table = Table { reader: self, path, span: node.span.clone(), entries };
        match entries.iter().find(|entry| !known.contains(&&*entry.name)) {
            None => Ok(table),
            Some(entry) => {
                let name = entry.name.chars().take(64).collect::<String>();
                let near = nearest(&entry.name, known.iter().copied());
                let nearest = known.iter().copied().find(|key| Some(*key) == near);
                let key = table.key(&name);
                Err(self.error(&entry.span, key, PolicyProblem::UnknownKey { name, nearest }))
            }
        }
    }

    fn tables<'n>(
        &self,
        top: &Table<'_, 'n>,
        kind: &'static str,
        known: &'static [&'static str],
    ) -> Result<Vec<Numbered<'_, 'n>>, PolicyError> {
        let Some(node) = top.optional(kind) else { return Ok(Vec::new()) };
        let Kind::List(nodes) = &node.kind else {
            let problem =
                PolicyProblem::WrongType { expected: "an array of tables", found: node.kind.name() };
            return Err(self.error(&node.span, kind, problem));
        };
        (0_u32..)
            .zip(nodes)
            .map(|(index, node)| {
                let table = self.table(node, format!("{kind}[{}]", index + 1), known)?;
                Ok(Numbered { index, table })
            })
            .collect()
    }
}

struct Numbered<'r, 'n> {
    index: u32,
    table: Table<'r, 'n>,
}

fn rule(table: &Table<'_, '_>, kind: &'static str, index: u32) -> Result<Rule, PolicyError> {
    let effect = match kind {
        "allow" => Effect::Allow,
        "quarantine" => Effect::Quarantine,
        _ => Effect::Deny(
            table.word("reason", "reason", Reason::ALL, Reason::name)?.unwrap_or(Reason::PolicyBlock),
        ),
    };
    Ok(Rule {
        effect,
        index,
        line: table.line(),
        tool: Glob::new(table.glob(table.required("tool")?, "tool")?),
        who: table.who()?,
        address: table.optional_glob("address")?.map(AddressGlob::new),
        taint: table.word("taint", "taint", Taint::ALL, Taint::name)?,
        scope: table.word("scope", "scope", ShareScope::ALL, ShareScope::name)?,
        max_bytes: table.number("max_bytes")?,
    })
}

fn grant(table: &Table<'_, '_>) -> Result<Grant, PolicyError> {
    let node = table.required("capability")?;
    let text = table.glob(node, "capability")?;
    let capability = Glob::new(text);
    if !Capability::ALL.iter().any(|cap| capability.matches(cap.name())) {
        return Err(table.unknown(node, "capability", "capability", text, Capability::ALL, Capability::name));
    }
    Ok(Grant { line: table.line(), capability, who: table.who()? })
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

    fn required(&self, name: &'static str) -> Result<&'n Node<'n>, PolicyError> {
        self.optional(name).ok_or_else(|| self.error(&self.span, name, PolicyProblem::MissingKey(name)))
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

    fn who(&self) -> Result<Who, PolicyError> {
        let [agent, fleet, tenant] = WHO.map(|name| self.optional_glob(name).map(|text| text.map(Glob::new)));
        Ok(Who { agent: agent?, fleet: fleet?, tenant: tenant? })
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
