//! `cargo xtask growth [CURVE…]`: what an act costs in worlds of growing size, and the exponent of the power law fitted to it by
//! least squares over the logarithms. Each point is the least of several measurements in a process of its own.

use serde::Serialize;

use super::Program;
use crate::{error::TaskError, out, repo::Repo};

/// Where the whole of it is written.
const REPORT: &str = "target/growth.json";

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Words: only curves whose name or description has one of them
    curves: Vec<String>,
}

/// A curve.
struct Curve {
    path: &'static str,
    /// The act.
    what: &'static str,
    /// What there is more and more of.
    of: &'static str,
    sizes: &'static [u64],
    steep: Steep,
}

/// How steep a curve may be.
#[derive(Clone, Copy, Debug)]
enum Steep {
    /// The exponent is at most this.
    To(f64),
    /// The exponent is at most a tenth above that of another path over the same sizes, which meets the same caches.
    As(&'static str),
}

/// Cost that does not depend on the size, but for what the processor's caches make of more memory.
const FLAT: f64 = 0.15;
/// Cost in proportion to the size.
const LINEAR: f64 = 1.1;

/// Every curve.
const CURVES: &[Curve] = &[
    Curve {
        path: "decide",
        what: "decide",
        of: "rungs",
        sizes: &[1, 2, 4, 8, 16, 32, 64],
        steep: Steep::To(LINEAR),
    },
    Curve {
        path: "decide-elsewhere",
        what: "decide",
        of: "rungs for other tools",
        sizes: &[1, 10, 100, 1_000, 10_000],
        steep: Steep::To(FLAT),
    },
    Curve {
        path: "policy",
        what: "decide by policy",
        of: "rules for other tools",
        sizes: &[1, 10, 100, 1_000, 10_000],
        steep: Steep::To(FLAT),
    },
    Curve {
        path: "send-recv-by-key",
        what: "send and receive by key",
        of: "mailboxes, all in use",
        sizes: &[1, 10, 100, 1_000, 10_000, 100_000],
        // Above some thousand, what each mailbox keeps is no longer in the caches.
        steep: Steep::To(0.25),
    },
    Curve {
        path: "send-recv-one-of",
        what: "the same at one key",
        of: "mailboxes, the others idle",
        sizes: &[1, 10, 100, 1_000, 10_000, 100_000],
        steep: Steep::To(FLAT),
    },
    Curve {
        path: "publish",
        what: "publish, every copy taken",
        of: "subscribers",
        sizes: &[1, 10, 100, 1_000, 10_000],
        steep: Steep::To(LINEAR),
    },
    Curve {
        path: "append",
        what: "append a note",
        of: "notes there",
        sizes: &[10, 100, 1_000, 10_000],
        steep: Steep::To(FLAT),
    },
    Curve {
        path: "view",
        what: "view a record",
        of: "notes there",
        sizes: &[10, 100, 1_000, 10_000],
        steep: Steep::To(LINEAR),
    },
    Curve {
        path: "group",
        what: "make a group",
        of: "members",
        sizes: &[100, 1_000, 10_000, 100_000, 1_000_000],
        steep: Steep::As("sort"),
    },
    Curve {
        path: "barrier",
        what: "every rank arrives",
        of: "ranks",
        sizes: &[10, 100, 1_000, 10_000, 100_000],
        steep: Steep::To(1.2),
    },
    Curve {
        path: "declare",
        what: "declare a topology",
        of: "edges",
        sizes: &[1_000, 10_000, 100_000, 1_000_000],
        steep: Steep::As("petgraph"),
    },
];

/// A curve measured.
#[derive(Clone, Debug, Serialize)]
struct Grown {
    what: &'static str,
    of: &'static str,
    /// Size, and nanoseconds of one act.
    points: Vec<(u64, f64)>,
    exponent: f64,
    at_most: f64,
}

/// Measures; `false` if a curve is steeper than it should be.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<bool, TaskError> {
    let program = Program::build(repo, "path")?;
    let wanted = |curve: &&Curve| {
        let asked = |word: &String| {
            [curve.path, curve.what, curve.of].iter().any(|text| text.contains(word.as_str()))
        };
        options.curves.is_empty() || options.curves.iter().any(asked)
    };
    let mut all = Vec::new();
    for curve in CURVES.iter().filter(wanted) {
        let Curve { path, what, of, sizes, steep } = *curve;
        let measure = |path: &str| {
            let point = |size: &u64| Ok((*size, program.number(repo, &["time", path, &size.to_string()])?));
            sizes.iter().map(point).collect::<Result<Vec<_>, TaskError>>()
        };
        let points = measure(path)?;
        let at_most = match steep {
            Steep::To(most) => most,
            Steep::As(other) => exponent(&measure(other)?) + 0.1,
        };
        let grown = Grown { what, of, exponent: exponent(&points), points, at_most };
        print(&grown)?;
        all.push(grown);
    }
    let path = repo.write_json(REPORT, &all)?;
    let held = all.iter().filter(|grown| grown.exponent <= grown.at_most).count();
    out::line(&format!("\ngrowth: {held} of {} curves as they should be ({})", all.len(), repo.show(&path)))?;
    Ok(held == all.len())
}

fn print(grown: &Grown) -> Result<(), TaskError> {
    let Grown { what, of, points, exponent, at_most } = grown;
    let verdict = if exponent <= at_most { "" } else { ": TOO STEEP" };
    out::line(&format!("{what}, by {of}: exponent {exponent:.2}, at most {at_most:.2}{verdict}"))?;
    let cost = |(size, cost): &(u64, f64)| format!("{} {}", number(*size), time(*cost));
    let costs: Vec<String> = points.iter().map(cost).collect();
    out::line(&format!("    {}", costs.join(" · ")))
}

/// The slope of the line that lies nearest to the points on logarithmic paper.
fn exponent(points: &[(u64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, cost)| ((*size as f64).ln(), cost.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let along: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
    let across: f64 = logs.iter().map(|log| (log.0 - x).powi(2)).sum();
    along / across
}

/// A size as people write it.
fn number(size: u64) -> String {
    let digits = size.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time in the unit it is read in.
fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        few if few < 1e3 => format!("{few:.0} ns"),
        more if more < 1e6 => format!("{:.1} µs", more / 1e3),
        many => format!("{:.1} ms", many / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_found() {
        for power in [0.0, 0.5, 1.0, 2.0] {
            let points: Vec<(u64, f64)> =
                [1, 10, 100, 5_000].map(|size| (size, 7.0 * (size as f64).powf(power))).to_vec();
            assert!((exponent(&points) - power).abs() < 1e-9);
        }
    }

    #[test]
    fn sizes_and_times_are_readable() {
        assert_eq!([1, 999, 1_000, 1_000_000].map(number), ["1", "999", "1,000", "1,000,000"]);
        assert_eq!([7.4, 1_500.0, 2e6].map(time), ["7 ns", "1.5 µs", "2.0 ms"]);
    }
}
