//! The rows of docs/performance.md as data: which benchmark is compared with which, and how far apart they may be. A group holds
//! the subject and its rival, so that both are measured in one run.

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
    pub(super) measure: Measure,
    pub(super) bound: Bound,
}

impl Comparison {
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

/// How many rows docs/performance.md has; one without a comparison here is not measured, and says so.
pub(super) const LAST: u32 = 19;

/// Every comparison, by row.
pub(super) const ROWS: &[Comparison] = &[
    KERNEL.row(1, "decide, 1 rung", "row1_decide_1").costs("decide", "bare", 2.5),
    KERNEL.row(1, "decide, 8 rungs", "row1_decide_8").costs("decide", "bare", 2.5),
    KERNEL.row(2, "decide with 1,000 rungs scoped to other tools", "row2_scoped_elsewhere").costs(
        "elsewhere_1000",
        "elsewhere_0",
        1.1,
    ),
    KERNEL.row(3, "decide on 2 threads at once", "row3_threads").carries("threads_2", "threads_1", 2.0, 1.8),
    WAVES.row(17, "group of 100,000", "row17_group_100000").costs("group", "sort", 2.0),
    WAVES.row(17, "barrier of 1,000, a rank", "row17_barrier_1000").takes(
        "barrier",
        1_000.0,
        "ns a rank",
        3_000.0,
    ),
    TOPOLOGY
        .row(17, "declare 20,000 nodes, 100,000 edges", "row17_declare_100000")
        .costs("declare", "petgraph", 3.0),
    TOPOLOGY.row(17, "the same, by rank", "row17_declare_ranks_100000").costs("declare", "petgraph", 3.0),
];

const WAVES: Bench = Bench { package: "fak-comm", bench: "waves" };
const TOPOLOGY: Bench = Bench { package: "fak-agenttopo", bench: "declare" };
const KERNEL: Bench = Bench { package: "fak-adjudicate", bench: "decide" };

/// A bench target.
#[derive(Clone, Copy, Debug)]
struct Bench {
    package: &'static str,
    bench: &'static str,
}

/// A row without its comparison.
struct Row {
    row: u32,
    what: &'static str,
    bench: Bench,
    group: &'static str,
}

impl Bench {
    const fn row(self, row: u32, what: &'static str, group: &'static str) -> Row {
        Row { row, what, bench: self, group }
    }
}

impl Row {
    /// The subject takes at most so many times the rival's time.
    const fn costs(self, subject: &'static str, rival: &'static str, most: f64) -> Comparison {
        self.compare(subject, rival, Measure::Cost, Bound::AtMost(most))
    }

    /// The subject, doing so many times the work an iteration, has at least so many times the rival's throughput.
    const fn carries(self, subject: &'static str, rival: &'static str, work: f64, least: f64) -> Comparison {
        self.compare(subject, rival, Measure::Rate(work), Bound::AtLeast(least))
    }

    /// The subject takes at most so many of a unit that has so many nanoseconds.
    const fn takes(self, subject: &'static str, each: f64, unit: &'static str, most: f64) -> Comparison {
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
        Comparison { row, what, package, bench, group, subject, rival, measure, bound }
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

    #[test]
    fn rows_are_in_order() {
        assert!(ROWS.is_sorted_by_key(|comparison| comparison.row));
    }
}
