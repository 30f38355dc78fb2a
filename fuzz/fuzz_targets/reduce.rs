//! Reductions over outputs from outside, one a line: bounded by their inputs, independent of the order they arrive in, and
//! quiet about what they say when they cannot be folded (§6.4, §8).

#![no_main]

use fak_abi::Id;
use fak_comm::{Output, Reduced, Reduction};
use fak_fuzz::{frugal, keeps_quiet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let ids: Vec<Id> = (0..8).map(|n| Id::new(&format!("m{n}")).expect("an id")).collect();
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').take(8).collect();
    let outputs: Vec<Output<'_>> = ids
        .iter()
        .zip(&lines)
        .map(|(member, bytes)| Output { member, weight: 1.0 + (bytes.len() % 3) as f64, bytes })
        .collect();
    let scores: Vec<f64> = lines.iter().map(|line| f64::from(line.first().copied().unwrap_or(0))).collect();
    for reduction in Reduction::ALL {
        let found = frugal(data.len(), 16, || reduction.fold(&outputs, &scores));
        match &found {
            Ok(Reduced::Winner { index, tally }) => {
                assert!(*index < outputs.len());
                let total: f64 = outputs.iter().map(|output| output.weight).sum();
                if reduction == Reduction::Vote {
                    assert_eq!(tally.iter().map(|of| of.weight).sum::<f64>(), total);
                    assert_eq!(tally.iter().map(|of| of.votes).sum::<usize>(), outputs.len());
                    let most = tally.iter().map(|of| of.weight).fold(0.0, f64::max);
                    assert!(tally.iter().any(|of| of.index == *index && of.weight == most));
                }
            }
            Ok(Reduced::Made(bytes)) if reduction == Reduction::Concat => {
                assert_eq!(*bytes, lines.join(&b'\n'))
            }
            Ok(Reduced::Made(bytes)) => {
                let mean: f64 = std::str::from_utf8(bytes).expect("text").parse().expect("a number");
                assert!(mean.is_finite());
                let one = Output { bytes, weight: 1.0, ..outputs[0] };
                assert_eq!(reduction.fold(&[one], &[]).expect("its own form"), Reduced::Made(bytes.clone()));
            }
            Err(error) => keeps_quiet(error),
        }
    }
    let planted = [Output { bytes: fak_fuzz::MARKER.as_bytes(), ..outputs[0] }];
    if let Err(error) = Reduction::AllReduce.fold(&planted, &[]) {
        keeps_quiet(&error);
    }
});
