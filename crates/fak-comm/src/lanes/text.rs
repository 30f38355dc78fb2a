//! Reading a lane table from TOML text. Which file the text came from is the caller's to say.

use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::taxonomy::{LaneSpec, Listing, Note, Taxonomy, fault};
use crate::error::CommError;

/// Longest lane table, in bytes (§8).
const MAX_BYTES: usize = 4 << 20;

impl FromStr for Taxonomy {
    type Err = CommError;

    /// Reads a lane table (§6.7): `[lanes]` with `concurrent` and `exclusive`, `[lanes.trees]` with globs by
    /// lane. Other keys are kept as [`Taxonomy::notes`].
    ///
    /// # Errors
    ///
    /// [`CommError::Toml`], and those of [`Taxonomy::new`], with the line.
    fn from_str(text: &str) -> Result<Self, CommError> {
        if text.len() > MAX_BYTES {
            return Err(fault(None, "lanes", format!("{} bytes, expected at most {MAX_BYTES}", text.len())));
        }
        let lines = Lines::of(text);
        let root = DeTable::parse(text).map_err(|err| CommError::Toml {
            line: err.span().map_or(1, |span| lines.of_offset(span.start)),
            message: err.message().to_owned(),
        })?;
        let mut notes = Vec::new();
        let mut lanes = None;
        for (key, value) in root.get_ref() {
            if key.get_ref() == "lanes" {
                lanes = Some(value);
            } else {
                notes.push(Note { key: key.get_ref().to_string(), line: lines.of_span(key) });
            }
        }
        let lanes = lanes
            .ok_or_else(|| fault(None, "lanes", "the table is missing, expected `[lanes]`".to_owned()))?;
        let mut spec = LaneSpec::default();
        for (key, value) in table(lanes, "lanes", &lines)? {
            match key.get_ref().as_ref() {
                "concurrent" => spec.concurrent = strings(value, "lanes.concurrent", &lines)?,
                "exclusive" => spec.exclusive = strings(value, "lanes.exclusive", &lines)?,
                "trees" => {
                    for (name, globs) in table(value, "lanes.trees", &lines)? {
                        let globs = strings(globs, &format!("lanes.trees.{}", name.get_ref()), &lines)?;
                        spec.trees.push((listing(name.get_ref(), lines.of_span(name)), globs));
                    }
                }
                other => notes.push(Note { key: format!("lanes.{other}"), line: lines.of_span(key) }),
            }
        }
        // The reader hands members over by name; the text's own order reads better in reports.
        spec.trees.sort_by_key(|(name, _)| name.line);
        notes.sort_by_key(|note| note.line);
        let mut taxonomy = Self::new(spec)?;
        taxonomy.notes = notes;
        Ok(taxonomy)
    }
}

fn listing(name: &str, line: usize) -> Listing {
    Listing { name: name.into(), line: Some(line) }
}

fn table<'a, 'i>(
    value: &'a Spanned<DeValue<'i>>,
    key: &str,
    lines: &Lines,
) -> Result<&'a DeTable<'i>, CommError> {
    let found = value.get_ref();
    found.as_table().ok_or_else(|| wrong(value, key, "a table", lines))
}

fn strings(value: &Spanned<DeValue<'_>>, key: &str, lines: &Lines) -> Result<Vec<Listing>, CommError> {
    let items = value.get_ref().as_array().ok_or_else(|| wrong(value, key, "an array of strings", lines))?;
    items
        .iter()
        .map(|item| {
            let text = item.get_ref().as_str().ok_or_else(|| wrong(item, key, "a string", lines))?;
            Ok(listing(text, lines.of_span(item)))
        })
        .collect()
}

fn wrong(value: &Spanned<DeValue<'_>>, key: &str, expected: &str, lines: &Lines) -> CommError {
    fault(
        Some(lines.of_span(value)),
        key,
        format!("expected {expected}, found {}", value.get_ref().type_str()),
    )
}

/// Where each line of the text begins.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at + 1).collect())
    }

    fn of_offset(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }

    fn of_span<T>(&self, spanned: &Spanned<T>) -> usize {
        self.of_offset(spanned.span().start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Taxonomy>().unwrap_err().to_string()
    }

    #[test]
    fn a_table_is_read_with_its_notes() {
        let text = "title = 1\n[lanes]\nconcurrent = [\n  \"b\",\n  \"a\"]\nautopick = []\n[lanes.trees]\nb = [\"src/b/**\"]\n";
        let taxonomy: Taxonomy = text.parse().unwrap();
        assert_eq!(taxonomy.lanes().map(|l| l.name().as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(taxonomy.lane("b").unwrap().tree().globs().len(), 1);
        let notes: Vec<_> = taxonomy.notes().iter().map(|n| (n.key.as_str(), n.line)).collect();
        assert_eq!(notes, [("title", 1), ("lanes.autopick", 6)]);
        assert_eq!(taxonomy.listings.first().unwrap().line, Some(4));
    }

    #[test]
    fn errors_say_what_where_and_what_was_expected() {
        assert!(error("[lanes]\nconcurrent = [\n").starts_with("line "));
        assert_eq!(error(""), "key \"lanes\": the table is missing, expected `[lanes]`");
        assert_eq!(error("lanes = 3"), "line 1, key \"lanes\": expected a table, found integer");
        assert_eq!(
            error("[lanes]\nconcurrent = \"a\""),
            "line 2, key \"lanes.concurrent\": expected an array of strings, found string"
        );
        assert_eq!(
            error("[lanes]\nexclusive = [\"a\",\n 7]"),
            "line 3, key \"lanes.exclusive\": expected a string, found integer"
        );
        assert_eq!(
            error("[lanes]\n[lanes.trees]\n\na = [\"/etc\"]"),
            "line 4, key \"lanes.trees.a\": path \"/etc\" is absolute, expected one relative to the workspace"
        );
        assert_eq!(
            error("[lanes]\nconcurrent = [\"\"]"),
            "line 2, key \"lanes.concurrent\": expected a lane name: an id must have at least one byte"
        );
        assert!(error("[lanes]\na = 1\na = 2").starts_with("line 3"));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        assert_eq!(format!("x = {}", "[".repeat(100_000)).parse::<Taxonomy>().unwrap_err().kind(), "toml");
        assert_eq!("#".repeat(MAX_BYTES + 1).parse::<Taxonomy>().unwrap_err().kind(), "lanes");
    }
}
