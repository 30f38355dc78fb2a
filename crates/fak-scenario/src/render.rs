//! Reports as text for people and as JSON for programs. Nothing here prints; a caller does.

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::{
    error::ScenarioError,
    report::{Report, StepReport, Summary},
};

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    #[default]
    Plain,
    /// With ANSI colours, for a terminal.
    Colour,
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy)]
enum Tone {
    Good,
    Refused,
    Bad,
    Faint,
}

impl Style {
    fn paint(self, tone: Tone, text: &str) -> String {
        let code = match (self, tone) {
            (Self::Plain, _) => return text.to_owned(),
            (Self::Colour, Tone::Good) => "32",
            (Self::Colour, Tone::Refused) => "33",
            (Self::Colour, Tone::Bad) => "1;31",
            (Self::Colour, Tone::Faint) => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

impl Report {
    /// The report as text: the scenario, a line per act, and every expectation that did not hold.
    #[must_use]
    pub fn to_text(&self, style: Style) -> String {
        let mut out =
            format!("{}  {}\n", printable(&self.name), style.paint(Tone::Faint, &printable(&self.file)));
        for step in &self.steps {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", step.to_text(style));
            for line in
                step.faults(&format!("{}: step {} (line {}): ", self.file, step.number, step.line), style)
            {
                let _ = writeln!(out, "     {line}");
            }
        }
        out
    }
}

impl StepReport {
    /// A line for each expectation that did not hold, each with where it is before it, and what to look at. What may only follow
    /// from an earlier failure says so.
    #[must_use]
    pub fn faults(&self, place: &str, style: Style) -> Vec<String> {
        let follows = self
            .follows
            .map_or_else(String::new, |first| format!(" (perhaps only because step {first} failed)"));
        let mark = style.paint(if self.follows.is_some() { Tone::Faint } else { Tone::Bad }, "FAIL");
        let mut lines: Vec<String> = self
            .mismatches
            .iter()
            .map(|wrong| format!("{mark} {}", printable(&format!("{place}{wrong}{follows}"))))
            .collect();
        if !lines.is_empty() {
            lines.extend(self.hint.as_deref().map(|hint| format!("hint: {}", printable(hint))));
        }
        lines
    }

    /// One line: act, agent, address, verdict, reason, rung.
    #[must_use]
    pub fn to_text(&self, style: Style) -> String {
        let tone = match self.verdict.as_str() {
            "allow" | "accepted" | "done" | "transform" => Tone::Good,
            "empty" => Tone::Faint,
            _ => Tone::Refused,
        };
        let mut line = format!(
            "{:>4} {:<18} {:<10} {:<24} {}",
            self.number,
            self.act,
            self.by.as_deref().unwrap_or("(host)"),
            printable(self.address.as_deref().unwrap_or("-")),
            style.paint(tone, &self.verdict)
        );
        if let Some(reason) = &self.reason {
            let _ = write!(line, " {}", style.paint(tone, reason));
        }
        if let Some(rung) = &self.rung {
            let _ = write!(line, " {}", style.paint(Tone::Faint, &format!("by {rung}")));
        }
        if let Some(site) = &self.at {
            let _ = write!(line, " {}", style.paint(Tone::Faint, &format!("at {site}")));
        }
        if let Some(capability) = self.lacks {
            let _ = write!(line, ", lacks {capability}");
        }
        if let Some(note) = &self.note {
            let _ = write!(line, "  {}", printable(note));
        }
        line
    }
}

/// A text from outside, with what could move a terminal's cursor or turn its text around escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// A count and its noun: `1 entry`, `2 entries`.
#[must_use]
pub fn counted(count: impl fmt::Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, unreadable, acts } = *self;
        let all = passed + failed + unreadable;
        if unreadable > 0 && unreadable == all {
            return write!(f, "nothing was performed: {unreadable} could not be read");
        }
        write!(f, "{} ({}): ", counted(all, "scenario", "scenarios"), counted(acts, "act", "acts"))?;
        if passed == all {
            return f.write_str(if all == 1 { "passed" } else { "all passed" });
        }
        let parts = [(passed, "passed"), (failed, "failed"), (unreadable, "could not be read")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| if all == 1 { (*what).to_owned() } else { format!("{count} {what}") })
            .collect();
        f.write_str(&parts.join(", "))
    }
}

/// A whole run, for programs (`fak.run-report.v1`).
#[derive(Debug, Serialize)]
pub struct RunReport<'r> {
    schema: &'static str,
    #[serde(flatten)]
    summary: Summary,
    scenarios: &'r [Report],
    errors: Vec<ErrorEntry>,
}

/// One thing that is wrong, for programs: an entry of the `errors` that `--json` writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorEntry {
    /// The file it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in bytes, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The step of a scenario, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The member, as a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// What is wrong, as it is said to people.
    pub message: String,
}

impl<'r> RunReport<'r> {
    /// The report of a run over many files.
    #[must_use]
    pub fn new(summary: Summary, scenarios: &'r [Report], errors: &[ScenarioError]) -> Self {
        Self {
            schema: "fak.run-report.v1",
            summary,
            scenarios,
            errors: errors.iter().flat_map(ScenarioError::entries).collect(),
        }
    }

    /// The report as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists only: it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl ScenarioError {
    /// Each thing that is wrong, for programs.
    pub fn entries(&self) -> impl Iterator<Item = ErrorEntry> {
        self.each().map(ErrorEntry::of)
    }
}

impl ErrorEntry {
    fn of(error: &ScenarioError) -> Self {
        let place = error.place();
        let policy = match error {
            ScenarioError::Policy(error) => Some(error.place()),
            _ => None,
        };
        Self {
            file: error.path().map(|path| path.display().to_string()),
            line: place.map(|place| place.line).or(policy.map(|place| place.line)),
            column: place.map(|place| place.column).or(policy.map(|place| place.column)),
            step: place.and_then(|place| place.step.as_ref()).map(|(number, _)| *number),
            member: match error {
                ScenarioError::Policy(error) => Some(error.key().to_owned()),
                _ => place.map(|place| place.member.clone()),
            }
            .filter(|member| !member.is_empty()),
            message: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;
    use crate::expect::Mismatch;

    fn report() -> Report {
        Report {
            file: "a.json".into(),
            name: "a private body cannot cross agents".into(),
            steps: vec![
                StepReport {
                    number: 1,
                    line: 8,
                    act: "send",
                    by: Some("alpha".into()),
                    address: Some("in_kernel:\"work\"".into()),
                    verdict: "deny".into(),
                    reason: Some("TRUST_VIOLATION".into()),
                    rung: Some("a2achan/gate".into()),
                    at: Some("a2achan/private".into()),
                    lacks: None,
                    answers: BTreeMap::from([("retry_after", 3.into())]),
                    note: None,
                    explanation: None,
                    hint: Some("is one of them misspelt?".into()),
                    follows: None,
                    mismatches: vec![Mismatch {
                        member: "verdict".into(),
                        expected: Some("allow".into()),
                        got: Some("deny".into()),
                        message: "expected verdict \"allow\", got \"deny\"".into(),
                    }],
                },
                StepReport {
                    number: 2,
                    line: 9,
                    act: "tick",
                    by: None,
                    address: None,
                    verdict: "done".into(),
                    reason: None,
                    rung: None,
                    at: None,
                    lacks: None,
                    answers: BTreeMap::new(),
                    note: None,
                    explanation: None,
                    hint: None,
                    follows: None,
                    mismatches: vec![],
                },
            ],
        }
    }

    #[test]
    fn text_has_a_line_per_act_and_names_what_failed() {
        expect![[r#"
            a private body cannot cross agents  a.json
               1 send               alpha      in_kernel:"work"         deny TRUST_VIOLATION by a2achan/gate at a2achan/private
                 FAIL a.json: step 1 (line 8): expected verdict "allow", got "deny"
                 hint: is one of them misspelt?
               2 tick               (host)     -                        done
        "#]]
        .assert_eq(&report().to_text(Style::Plain));
        assert!(report().to_text(Style::Colour).contains("\u{1b}[33mdeny\u{1b}[0m"));
    }

    #[test]
    fn one_is_not_many() {
        let entries = |count: u64| counted(count, "entry", "entries");
        assert_eq!([entries(0), entries(1), entries(2)], ["0 entries", "1 entry", "2 entries"]);
    }

    #[test]
    fn nothing_from_outside_moves_the_cursor() {
        assert_eq!(printable("é 漢"), "é 漢");
        assert_eq!(printable("a\u{1b}[2J\n\u{202e}"), "a\\u{1b}[2J\\u{a}\\u{202e}");
        let mut report = report();
        report.name = "\u{1b}[2Jall held".into();
        report.steps[0].note = Some("\u{202e}".into());
        assert!(!report.to_text(Style::Plain).contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn json_says_the_same() {
        let mut summary = Summary::default();
        let reports = [report()];
        summary.add(&reports[0]);
        let json = RunReport::new(summary, &reports, &[]).to_json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["failed"], 1);
        let step = &json["scenarios"][0]["steps"][0];
        assert_eq!(step["mismatches"][0]["got"], "deny");
        assert_eq!((&step["at"], &step["answers"]["retry_after"]), (&"a2achan/private".into(), &3.into()));
        assert_eq!(summary.to_string(), "1 scenario (2 acts): failed");
        assert_eq!(summary.exit_status(), 1);
    }
}
