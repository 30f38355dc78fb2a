//! A trace without the steps that are not needed: whole runs of them first, then ever smaller ones.

use super::episode::{Episode, play};
use super::fault::Fault;
use super::op::Op;

/// The steps of an episode up to the one that failed, as few as still fail, and how they fail.
pub(crate) fn smallest(episode: &Episode, at: usize, fault: &Fault) -> (Vec<Op>, Fault) {
    let mut ops: Vec<Op> = episode.ops().iter().take(at + 1).copied().collect();
    let mut last = fault.clone();
    let mut chunk = ops.len().div_ceil(2);
    let mut before = ops.len();
    while chunk > 0 {
        let mut from = 0;
        while from < ops.len() {
            let rest = ops.iter().enumerate();
            let without: Vec<Op> =
                rest.filter(|(at, _)| *at < from || *at >= from + chunk).map(|(_, op)| *op).collect();
            match play(episode.setup(), &without) {
                Some((at, fault)) if kind(&fault) == kind(&last) => {
                    ops = without;
                    ops.truncate(at + 1);
                    last = fault;
                }
                _ => from += chunk,
            }
        }
        chunk /= 2;
        // What a step touches may have changed with those before it: once more, while that is of use.
        if chunk == 0 && ops.len() < before {
            (chunk, before) = (4, ops.len());
        }
    }
    (ops, last)
}

/// What a fault is about: its first words, numbers aside.
fn kind(fault: &Fault) -> String {
    fault.0.chars().take(24).filter(|c| !c.is_ascii_digit()).collect()
}
