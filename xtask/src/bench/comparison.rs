//! What a row of docs/performance.md compares, and how it is judged. The rows themselves are in `rows`.

use super::estimates::Span;

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// The subject's time over the rival's.
    Cost,
    /// How many times the rival's throughput the subject has when it does this many times the work an iteration.
    Rate(f64),
    /// The subject's own time, this many nanoseconds making one of the unit; there is no rival.
    Own(f64, &'static str),
}

/// How far apart they may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One comparison of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    /// Its number in the table of targets.
    pub(super) row: u32,
    pub(super) what: &'static str,
    pub(super) package: &'static str,
    /// The bench target.
    pub(super) bench: &'static str,
    /// The criterion group.
    pub(super) group: &'static str,
    /// The benchmark in it; `name/parameter` where it has one.
    pub(super) subject: &'static str,
    /// What it is compared with.
    pub(super) rival: Option<&'static str>,
    /// The least that could do it, set beside it: a prototype without most of the features.
    pub(super) floor: Option<&'static str>,
    /// What one cache line costs between two cores in the same minute, where that decides: it is the machine's.
    pub(super) line: Option<&'static str>,
    pub(super) measure: Measure,
    pub(super) bound: Bound,
}

impl Comparison {
    /// With the benchmark `floor` of the group beside it.
    pub(super) const fn beside_floor(self) -> Self {
        self.beside("floor")
    }

    /// With that benchmark of the group beside it, as its floor.
    pub(super) const fn beside(self, floor: &'static str) -> Self {
        Self { floor: Some(floor), ..self }
    }

    /// With the benchmark `line` of the group beside it: what the machine takes to hand a cache line over.
    pub(super) const fn across_cores(self) -> Self {
        Self { line: Some("line"), ..self }
    }

    /// The measured value.
    pub(super) fn value(&self, subject: Span, rival: Span) -> Span {
        match self.measure {
            Measure::Cost => subject.over(rival),
            Measure::Rate(work) => rival.over(subject).times(work),
            Measure::Own(each, _) => subject.times(1.0 / each),
        }
    }

    /// Whether a value meets the target.
    pub(super) fn met(&self, value: f64) -> bool {
        match self.bound {
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
        }
    }

    /// The target as people write it.
    pub(super) fn target(&self) -> String {
        let (sign, value) = match self.bound {
            Bound::AtMost(most) => ("≤", most),
            Bound::AtLeast(least) => ("≥", least),
        };
        match self.measure {
            Measure::Own(_, unit) => format!("{sign} {value} {unit}"),
            _ => format!("{sign} {value}×"),
        }
    }
}

/// A bench target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench {
    pub(super) package: &'static str,
    pub(super) bench: &'static str,
}

/// A row without its comparison.
pub(super) struct Row {
    row: u32,
    what: &'static str,
    bench: Bench,
    group: &'static str,
}

impl Bench {
    pub(super) const fn row(self, row: u32, what: &'static str, group: &'static str) -> Row {
        Row { row, what, bench: self, group }
    }
}

impl Row {
    /// The subject takes at most so many times the rival's time.
    pub(super) const fn costs(self, subject: &'static str, rival: &'static str, most: f64) -> Comparison {
        self.compare(subject, rival, Measure::Cost, Bound::AtMost(most))
    }

    /// The subject, doing so many times the work an iteration, has at least so many times the rival's throughput.
    pub(super) const fn carries(
        self,
        subject: &'static str,
        rival: &'static str,
        work: f64,
        least: f64,
    ) -> Comparison {
        self.compare(subject, rival, Measure::Rate(work), Bound::AtLeast(least))
    }

    /// The subject takes at most so many of a unit that has so many nanoseconds.
    pub(super) const fn takes(
        self,
        subject: &'static str,
        each: f64,
        unit: &'static str,
        most: f64,
    ) -> Comparison {
        let bound = Bound::AtMost(most);
        Comparison { rival: None, ..self.compare(subject, subject, Measure::Own(each, unit), bound) }
    }

    const fn compare(
        self,
        subject: &'static str,
        rival: &'static str,
        measure: Measure,
        bound: Bound,
    ) -> Comparison {
        let Row { row, what, bench: Bench { package, bench }, group } = self;
        let rival = Some(rival);
        Comparison {
            row,
            what,
            package,
            bench,
            group,
            subject,
            rival,
            floor: None,
            line: None,
            measure,
            bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(measure: Measure, bound: Bound) -> Comparison {
        Comparison {
            row: 1,
            what: "",
            package: "",
            bench: "",
            group: "",
            subject: "",
            rival: None,
            floor: None,
            line: None,
            measure,
            bound,
        }
    }

    #[test]
    fn values_are_computed_and_judged() {
        let (subject, rival) = (Span::exactly(10.0), Span::exactly(5.0));
        for (measure, bound, value, met) in [
            (Measure::Cost, Bound::AtMost(2.0), 2.0, true),
            (Measure::Cost, Bound::AtMost(1.9), 2.0, false),
            (Measure::Rate(4.0), Bound::AtLeast(1.8), 2.0, true),
            (Measure::Own(100.0, "things"), Bound::AtMost(0.05), 0.1, false),
        ] {
            let comparison = comparison(measure, bound);
            let got = comparison.value(subject, rival).median;
            assert!((got - value).abs() < 1e-9, "{got}");
            assert_eq!(comparison.met(got), met);
        }
    }
}
