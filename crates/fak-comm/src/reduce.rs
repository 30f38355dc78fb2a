//! Reductions: how the outputs of a group become one (§6.4). Pure: bytes in, a winner or new bytes out. Who may
//! read the bytes, and what the result's provenance is, is the gather's business.

use std::collections::BTreeMap;
use std::str::FromStr;

use fak_abi::Id;
use fak_abi::json::write_ecmascript;

use crate::error::CommError;

/// The closed set of reductions (§6.4).
///
/// ```
/// use fak_abi::Id;
/// use fak_comm::{Output, Reduced, Reduction};
///
/// let (ann, bob) = (Id::new("ann")?, Id::new("bob")?);
/// let output = |member, bytes| Output { member, weight: 1.0, bytes };
/// let votes = [output(&ann, &b"merge"[..]), output(&bob, &b"hold"[..])];
/// // A tie goes to the smaller output.
/// let Reduced::Winner { index, tally } = Reduction::Vote.fold(&votes, &[])? else { return Err("made".into()) };
/// assert_eq!((index, tally.len()), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reduction {
    /// The output of the first rank.
    First,
    /// All outputs in rank order, one newline between.
    Concat,
    /// The output with the greatest sum of weights.
    Vote,
    /// The output with the greatest score.
    BestOf,
    /// The weighted mean of the outputs, which are numbers.
    AllReduce,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Self; 5] = [Self::First, Self::Concat, Self::Vote, Self::BestOf, Self::AllReduce];

    /// Its name, as scenarios write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Concat => "concat",
            Self::Vote => "vote",
            Self::BestOf => "best_of",
            Self::AllReduce => "all_reduce",
        }
    }

    /// What can be checked without an output: how many there are, and the scores (§6.4). `members` are the
    /// ids in the order of the outputs.
    ///
    /// # Errors
    ///
    /// `empty`, `arity` and `nan_score` of [`CommError`].
    pub fn check<'a>(
        self,
        mut members: impl ExactSizeIterator<Item = &'a Id>,
        outputs: usize,
        scores: &[f64],
    ) -> Result<(), CommError> {
        let expected = members.len();
        if outputs == 0 || expected == 0 {
            return Err(CommError::Empty { what: "outputs" });
        }
        if outputs != expected {
            return Err(CommError::Arity { what: "outputs", expected, got: outputs });
        }
        if self == Self::BestOf {
            if scores.len() != expected {
                return Err(CommError::Arity { what: "scores", expected, got: scores.len() });
            }
            if let Some((_, member)) = scores.iter().zip(&mut members).find(|(score, _)| score.is_nan()) {
                return Err(CommError::NanScore { member: member.clone() });
            }
        }
        Ok(())
    }

    /// Folds `outputs`. `scores`, one an output, are read by `best_of` alone.
    ///
    /// # Errors
    ///
    /// `empty`, `arity`, `not_numeric`, `not_finite` and `nan_score` of [`CommError`].
    ///
    /// # Complexity
    ///
    /// Linear in the bytes; `vote` sorts the outputs.
    pub fn fold(self, outputs: &[Output<'_>], scores: &[f64]) -> Result<Reduced, CommError> {
        self.check(outputs.iter().map(|o| o.member), outputs.len(), scores)?;
        match self {
            Self::First => Ok(Reduced::Winner { index: 0, tally: Vec::new() }),
            Self::Concat => Ok(Reduced::Made(concat(outputs))),
            Self::Vote => vote(outputs),
            Self::BestOf => Ok(best_of(outputs, scores)),
            Self::AllReduce => mean(outputs).map(|mean| Reduced::Made(number(mean))),
        }
    }
}

impl FromStr for Reduction {
    type Err = CommError;

    fn from_str(name: &str) -> Result<Self, CommError> {
        Self::ALL
            .into_iter()
            .find(|r| r.name() == name)
            .ok_or_else(|| CommError::UnknownReduction { name: name.to_owned() })
    }
}

/// One member's output, as a reduction sees it (§6.4).
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// Whose it is.
    pub member: &'a Id,
    /// That member's weight, finite and above zero.
    pub weight: f64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// What a reduction came to (§6.4).
#[derive(Clone, Debug, PartialEq)]
pub enum Reduced {
    /// One of the outputs, by its index among those given; with the tally of a vote.
    Winner {
        /// Index of the winning output.
        index: usize,
        /// The vote's count, by output in byte order; empty for other reductions.
        tally: Vec<Tally>,
    },
    /// Bytes that no member wrote.
    Made(Vec<u8>),
}

/// What one distinct output of a vote got (§6.4).
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// Index of the output of the smallest member id that voted for it.
    pub index: usize,
    /// Sum of the weights of those who voted for it.
    pub weight: f64,
    /// How many voted for it.
    pub votes: usize,
}

fn concat(outputs: &[Output<'_>]) -> Vec<u8> {
    let bytes: usize = outputs.iter().map(|o| o.bytes.len().saturating_add(1)).sum();
    let mut made = Vec::with_capacity(bytes);
    for (at, output) in outputs.iter().enumerate() {
        if at > 0 {
            made.push(b'\n');
        }
        made.extend_from_slice(output.bytes);
    }
    made
}

fn vote(outputs: &[Output<'_>]) -> Result<Reduced, CommError> {
    let mut tallies: BTreeMap<&[u8], (Tally, &Id)> = BTreeMap::new();
    for (index, output) in outputs.iter().enumerate() {
        let (tally, smallest) =
            tallies.entry(output.bytes).or_insert((Tally { index, weight: 0.0, votes: 0 }, output.member));
        tally.weight += output.weight;
        tally.votes += 1;
        if !tally.weight.is_finite() {
            return Err(CommError::NotFinite { member: output.member.clone() });
        }
        if output.member < *smallest {
            tally.index = index;
            *smallest = output.member;
        }
    }
    // In byte order, so that the first of equals is the byte-wise smallest output.
    let tally: Vec<Tally> = tallies.into_values().map(|(tally, _)| tally).collect();
    let winner = tally.iter().reduce(|best, next| if next.weight > best.weight { next } else { best });
    Ok(Reduced::Winner { index: winner.map_or(0, |w| w.index), tally })
}

fn best_of(outputs: &[Output<'_>], scores: &[f64]) -> Reduced {
    let best = outputs.iter().zip(scores).enumerate().reduce(|best, next| {
        let (_, (best_output, best_score)) = best;
        let (_, (output, score)) = next;
        let better = score > best_score || (score == best_score && output.member < best_output.member);
        if better { next } else { best }
    });
    Reduced::Winner { index: best.map_or(0, |(index, _)| index), tally: Vec::new() }
}

/// The weighted mean, summed in the order given so that it is the same everywhere.
fn mean(outputs: &[Output<'_>]) -> Result<f64, CommError> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for output in outputs {
        let number = std::str::from_utf8(output.bytes)
            .ok()
            .and_then(|text| text.trim_ascii().parse::<f64>().ok())
            .ok_or_else(|| CommError::NotNumeric { member: output.member.clone() })?;
        sum += number * output.weight;
        weights += output.weight;
        if !(number.is_finite() && f64::is_finite(sum) && f64::is_finite(weights)) {
            return Err(CommError::NotFinite { member: output.member.clone() });
        }
    }
    Ok(sum / weights)
}

/// A finite number in the ECMAScript shortest form (§6.4).
fn number(value: f64) -> Vec<u8> {
    let mut text = Vec::new();
    write_ecmascript(&mut text, value);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Members, weights and texts, to borrow outputs from.
    struct Parts(Vec<(Id, f64, String)>);

    impl Parts {
        fn of(parts: &[(&str, f64, &str)]) -> Self {
            let part =
                |(id, weight, text): &(&str, f64, &str)| (Id::new(id).unwrap(), *weight, (*text).to_owned());
            Self(parts.iter().map(part).collect())
        }

        fn outputs(&self) -> Vec<Output<'_>> {
            let parts = self.0.iter();
            parts
                .map(|(member, weight, text)| Output { member, weight: *weight, bytes: text.as_bytes() })
                .collect()
        }
    }

    fn made(reduction: Reduction, parts: &[(&str, f64, &str)]) -> Result<String, &'static str> {
        match reduction.fold(&Parts::of(parts).outputs(), &[]) {
            Ok(Reduced::Made(bytes)) => Ok(String::from_utf8(bytes).unwrap()),
            Ok(Reduced::Winner { .. }) => panic!("a winner"),
            Err(err) => Err(err.kind()),
        }
    }

    #[test]
    fn concat_puts_one_newline_between() {
        assert_eq!(
            made(Reduction::Concat, &[("a", 1.0, "x"), ("b", 1.0, ""), ("c", 1.0, "y")]),
            Ok("x\n\ny".into())
        );
        assert_eq!(made(Reduction::Concat, &[("a", 1.0, "x")]), Ok("x".into()));
    }

    #[test]
    fn a_tied_vote_goes_to_the_smallest_output_and_its_smallest_voter() {
        let parts = Parts::of(&[("d", 1.0, "no"), ("c", 2.0, "yes"), ("a", 1.0, "no"), ("b", 0.5, "maybe")]);
        let parts = parts.outputs();
        let Reduced::Winner { index, tally } = Reduction::Vote.fold(&parts, &[]).unwrap() else {
            panic!("made")
        };
        assert_eq!(parts.get(index).unwrap().member.as_str(), "a");
        let seen: Vec<_> = tally.iter().map(|t| (t.index, t.weight, t.votes)).collect();
        assert_eq!(seen, [(3, 0.5, 1), (2, 2.0, 2), (1, 2.0, 1)]);
    }

    #[test]
    fn the_best_score_wins_and_ties_go_to_the_smallest_id() {
        let parts = Parts::of(&[("b", 1.0, "x"), ("a", 1.0, "y"), ("c", 1.0, "z")]);
        let parts = parts.outputs();
        let winner = |scores: &[f64]| Reduction::BestOf.fold(&parts, scores).map_err(|e| e.kind());
        assert_eq!(winner(&[1.0, 1.0, 0.5]), Ok(Reduced::Winner { index: 1, tally: vec![] }));
        assert_eq!(winner(&[-0.0, 0.0, 7.0]), Ok(Reduced::Winner { index: 2, tally: vec![] }));
        assert_eq!(winner(&[1.0, f64::NAN, 0.5]), Err("nan_score"));
        assert_eq!(winner(&[1.0, 1.0]), Err("arity"));
    }

    #[test]
    fn a_mean_is_weighted_and_names_what_is_no_number() {
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "1"), ("b", 3.0, " 2\n")]), Ok("1.75".into()));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "3"), ("b", 1.0, "5")]), Ok("4".into()));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "-0")]), Ok("0".into()));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "1e21")]), Ok("1e+21".into()));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "1e-7")]), Ok("1e-7".into()));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "one")]), Err("not_numeric"));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "")]), Err("not_numeric"));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "NaN")]), Err("not_finite"));
        assert_eq!(made(Reduction::AllReduce, &[("a", 1.0, "1e999")]), Err("not_finite"));
        assert_eq!(made(Reduction::AllReduce, &[("a", 10.0, "1e308"), ("b", 1.0, "1")]), Err("not_finite"));
    }

    #[test]
    fn no_error_quotes_an_output() {
        let err =
            Reduction::AllReduce.fold(&Parts::of(&[("a", 1.0, "marker-7")]).outputs(), &[]).unwrap_err();
        assert!(!err.to_string().contains("marker-7"));
    }

    #[test]
    fn nothing_is_empty_and_an_unknown_name_is_an_error() {
        assert_eq!(made(Reduction::Concat, &[]), Err("empty"));
        assert_eq!("median".parse::<Reduction>().unwrap_err().kind(), "unknown_reduction");
        for reduction in Reduction::ALL {
            assert_eq!(reduction.name().parse(), Ok(reduction));
        }
    }

    proptest! {
        /// Against a model that tries every distinct output in turn.
        #[test]
        fn a_vote_is_what_counting_by_hand_says(votes in proptest::collection::vec((0u8..4, 1u32..4), 1..9)) {
            let ids: Vec<Id> = (0..votes.len()).map(|n| Id::new(&format!("m{n}")).unwrap()).collect();
            let texts: Vec<[u8; 1]> = votes.iter().map(|(text, _)| [*text]).collect();
            let parts: Vec<Output<'_>> = ids.iter().zip(&texts).zip(&votes)
                .map(|((member, bytes), (_, weight))| Output { member, weight: f64::from(*weight), bytes })
                .collect();
            let sum = |text: u8| votes.iter().filter(|v| v.0 == text).map(|v| v.1).sum::<u32>();
            let best = (0..4).max_by_key(|text| (sum(*text), std::cmp::Reverse(*text))).unwrap();
            let winner = votes.iter().position(|v| v.0 == best).unwrap();
            let Reduced::Winner { index, tally } = Reduction::Vote.fold(&parts, &[]).unwrap() else { panic!("made") };
            prop_assert_eq!(index, winner);
            prop_assert_eq!(tally.iter().map(|t| t.votes).sum::<usize>(), votes.len());
        }
    }
}
