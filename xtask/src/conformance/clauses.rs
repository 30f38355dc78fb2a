//! The clauses of docs/protocol.md, and citations of them. A clause is a heading or paragraph that begins with its number
//! (`4.4`, `§4.4`, `**4.4**`); a section without such parts (`## 8. …`) is one clause itself. Witnesses are elsewhere.

use crate::report::Report;

/// Where the clauses are written down.
pub(super) const FILE: &str = "docs/protocol.md";

/// A clause's number: section, and part unless the section has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    pub(super) section: u32,
    pub(super) part: Option<u32>,
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part {
            Some(part) => write!(f, "§{}.{part}", self.section),
            None => write!(f, "§{}", self.section),
        }
    }
}

impl serde::Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    pub(super) number: Number,
    /// Its first words.
    pub(super) title: String,
    /// Where it begins, from 1.
    pub(super) line: usize,
}

/// The clauses of a protocol document, in order. Numbers out of order, twice or left out are findings.
pub(super) fn clauses(text: &str, report: &mut Report) -> Vec<Clause> {
    let mut numbered: Vec<Clause> = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let Some((number, title)) = (!fenced).then(|| begins(line)).flatten() else { continue };
        numbered.push(Clause { number, title, line: index + 1 });
    }
    for (before, after) in numbered.iter().zip(numbered.iter().skip(1)) {
        let (from, to) = (before.number, after.number);
        let follows = match to.part {
            None => to.section == from.section + 1,
            Some(part) => to.section == from.section && part == from.part.unwrap_or(0) + 1,
        };
        if !follows {
            report.finding(
                format!("{FILE}:{}", after.line),
                format!("{to} follows {from}"),
                "number the clauses one after the other, each once; a line of prose must not begin with such a number",
            );
        }
    }
    let has_parts = |section: u32| {
        numbered.iter().any(|other| other.number.section == section && other.number.part.is_some())
    };
    numbered
        .iter()
        .filter(|clause| clause.number.part.is_some() || !has_parts(clause.number.section))
        .cloned()
        .collect()
}

/// The number and first words of a line that begins a section or a clause.
fn begins(line: &str) -> Option<(Number, String)> {
    let heading = line.starts_with('#');
    let rest = line.trim_start_matches('#').trim_start().trim_start_matches(['*', '_', '§']);
    // Indented lines are parts of a list or of a clause.
    if line.starts_with([' ', '\t', '|']) {
        return None;
    }
    let (section, rest) = number(rest)?;
    let (part, rest) = match rest.strip_prefix('.').and_then(number) {
        Some((part, rest)) => (Some(part), rest),
        None => (None, rest),
    };
    // A section is a heading; a bare `8.` at the start of a line is an item of a list.
    if part.is_none() && !heading {
        return None;
    }
    let ended = rest.is_empty() || rest.starts_with([' ', '.', ':', '*', '_', '—', '–']);
    // `1.5 ms` in prose is no clause, but `1.5. ` or `1.5 **Title**` may be: the order of numbers tells.
    ended.then(|| (Number { section, part }, words(rest)))
}

/// A number at the start of a text, and what follows.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    // Longer numbers are years and sizes.
    (1..=2).contains(&digits.len()).then(|| digits.parse().ok()).flatten().map(|number| (number, rest))
}

/// The first words of a clause, without markup: up to its first sentence or eight words.
fn words(text: &str) -> String {
    let plain: String = text.chars().filter(|character| !matches!(character, '*' | '`' | '#')).collect();
    let plain = plain.trim_start_matches(|character: char| !character.is_alphanumeric());
    let sentence = plain.split(['.', ':', ';']).next().unwrap_or_default();
    sentence.split_whitespace().take(8).collect::<Vec<_>>().join(" ")
}

/// The clauses a text cites as `§4.4`; a range (`§3.1–3.3`) cites each.
pub(super) fn citations(text: &str) -> Vec<Number> {
    let mut found = Vec::new();
    for (_, rest) in text.match_indices('§').filter_map(|(index, _)| text.split_at_checked(index)) {
        let Some((section, rest)) = rest.strip_prefix('§').and_then(number) else { continue };
        let Some((part, rest)) = rest.strip_prefix('.').and_then(number) else {
            found.push(Number { section, part: None });
            continue;
        };
        let end = rest
            .strip_prefix(['–', '-'])
            .map(|rest| rest.strip_prefix('§').unwrap_or(rest))
            .and_then(number)
            .filter(|(again, _)| *again == section)
            .and_then(|(_, rest)| number(rest.strip_prefix('.')?))
            .map_or(part, |(last, _)| last);
        found.extend((part..=end.max(part)).map(|part| Number { section, part: Some(part) }));
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> (Vec<String>, Vec<String>) {
        let mut report = Report::new("x");
        let clauses = clauses(text, &mut report);
        let faults = report.findings.into_iter().map(|finding| finding.what).collect();
        (clauses.iter().map(|clause| clause.number.to_string()).collect(), faults)
    }

    #[test]
    fn clauses_are_headings_and_paragraphs_that_begin_with_a_number() {
        let text = "# Protocol\n\n## 1. The invariant\nWords.\n1.1 *Fail closed.* No policy means deny.\n**1.2** Two.\n\n## 2 Spine\n### 2.1 Ref\n```\n9.9 x\n```\n  2.9 in a list\n## 3. Bad input\n1. one\n2. two";
        let (found, faults) = numbers(text);
        assert_eq!(found, ["§1.1", "§1.2", "§2.1", "§3"]);
        assert_eq!(faults, [""; 0]);
    }

    #[test]
    fn a_gap_a_repetition_and_a_number_in_prose_are_found() {
        assert_eq!(numbers("## 1. A\n1.1 a\n1.3 b").1, ["§1.3 follows §1.1"]);
        assert_eq!(numbers("## 1. A\n1.1 a\n1.1 b").1, ["§1.1 follows §1.1"]);
        assert_eq!(numbers("## 1. A\n1.1 takes\n1.8 times as long").1, ["§1.8 follows §1.1"]);
        assert_eq!(numbers("## 1. A\n1.1 a\n## 3. C").1, ["§3 follows §1.1"]);
    }

    #[test]
    fn a_clause_has_a_title() {
        assert_eq!(
            begins("4.4 **Recv** waits, is cancel safe"),
            begins("### §4.4 Recv waits, is cancel safe")
        );
        let title = begins("1.1 *Fail closed.* No policy means deny.").map(|(_, title)| title);
        assert_eq!(title.as_deref(), Some("Fail closed"));
    }

    #[test]
    fn citations_are_read_with_their_ranges() {
        let shown = |text| citations(text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown("§4.3 row 5, §4.4; and §8."), ["§4.3", "§4.4", "§8"]);
        assert_eq!(shown("§3.1–3.3"), ["§3.1", "§3.2", "§3.3"]);
        assert_eq!(shown("§2.3-§2.4 (§2.4)"), ["§2.3", "§2.4"]);
        assert_eq!(shown("§ and §x and §4.3–6.1"), ["§4.3"]);
    }
}
