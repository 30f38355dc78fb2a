//! What criterion left behind: for each benchmark the median and its confidence interval, in nanoseconds an iteration.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::{error::TaskError, repo::Repo};

/// A value and the span it is in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Span {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Span {
    /// A value without doubt.
    pub(super) fn exactly(value: f64) -> Self {
        Self { low: value, median: value, high: value }
    }

    /// The median of several measurements, as wide as all of them together; of one, itself.
    pub(super) fn middle(spans: &[Self]) -> Option<Self> {
        let mut sorted = spans.to_vec();
        sorted.sort_by(|one, other| one.median.total_cmp(&other.median));
        let middle = sorted.get(sorted.len() / 2)?;
        let low = sorted.iter().map(|span| span.low).fold(f64::INFINITY, f64::min);
        let high = sorted.iter().map(|span| span.high).fold(f64::NEG_INFINITY, f64::max);
        Some(Self { low, median: middle.median, high })
    }

    /// The quotient, as wide as the two spans make it.
    pub(super) fn over(self, other: Self) -> Self {
        Self { low: self.low / other.high, median: self.median / other.median, high: self.high / other.low }
    }

    /// The same in another unit.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { low: self.low * factor, median: self.median * factor, high: self.high * factor }
    }
}

/// Criterion's folder.
pub(super) struct Estimates<'a> {
    repo: &'a Repo,
}

impl<'a> Estimates<'a> {
    /// Of the workspace's own target folder.
    pub(super) fn new(repo: &'a Repo) -> Self {
        Self { repo }
    }

    /// The median of a benchmark, if it was measured.
    pub(super) fn median(&self, group: &str, bench: &str) -> Result<Option<Span>, TaskError> {
        for path in self.paths(group, bench) {
            if let Some(text) = self.repo.text_if_there(&path)? {
                let value = serde_json::from_str(&text).map_err(|source| TaskError::Json { path, source })?;
                return Ok(span(&value));
            }
        }
        Ok(None)
    }

    /// `BenchmarkId::new("a", 8)` is the folder `a/8`, a function called `a/8` the folder `a_8`.
    fn paths(&self, group: &str, bench: &str) -> [PathBuf; 2] {
        let folder = self.repo.path("target/criterion").join(file_name(group));
        let end = |folder: PathBuf| folder.join("new").join("estimates.json");
        let nested = bench.split('/').map(file_name).fold(folder.clone(), |path, part| path.join(part));
        [end(nested), end(folder.join(file_name(bench)))]
    }
}

fn span(estimates: &Value) -> Option<Span> {
    let of = |pointer: &str| estimates.pointer(pointer).and_then(Value::as_f64);
    Some(Span {
        low: of("/median/confidence_interval/lower_bound")?,
        median: of("/median/point_estimate")?,
        high: of("/median/confidence_interval/upper_bound")?,
    })
}

/// The folder name criterion gives a name.
fn file_name(name: &str) -> String {
    name.chars().map(|character| if "?\"/\\*<>:|^".contains(character) { '_' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_as_wide_as_its_parts_make_it() {
        let (one, two) =
            (Span { low: 1.0, median: 2.0, high: 4.0 }, Span { low: 1.0, median: 2.0, high: 2.0 });
        assert_eq!(one.over(two), Span { low: 0.5, median: 1.0, high: 4.0 });
    }

    #[test]
    fn several_measurements_have_a_middle() {
        let span = |median: f64| Span { low: median - 1.0, median, high: median + 1.0 };
        assert_eq!(Span::middle(&[]), None);
        assert_eq!(Span::middle(&[span(5.0)]), Some(span(5.0)));
        let spans = [span(9.0), span(2.0), span(5.0)];
        assert_eq!(Span::middle(&spans), Some(Span { low: 1.0, median: 5.0, high: 10.0 }));
    }

    #[test]
    fn estimates_are_read() {
        let text = r#"{"median":{"confidence_interval":{"confidence_level":0.95,"lower_bound":1.0,"upper_bound":3.0},"point_estimate":2.0,"standard_error":0.1}}"#;
        assert_eq!(
            span(&serde_json::from_str(text).unwrap()),
            Some(Span { low: 1.0, median: 2.0, high: 3.0 })
        );
        assert_eq!(span(&Value::Null), None);
    }
}
