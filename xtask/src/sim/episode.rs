//! An episode: a setup and a list of steps, both from one seed, played against a fresh product and a fresh model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::acts::Sim;
use super::check;
use super::fault::{Fault, Step};
use super::op::Op;
use super::rng::Rng;
use super::setup::Setup;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Episode {
    seed: u64,
    setup: Setup,
    ops: Vec<Op>,
}

impl Episode {
    /// The episode that a seed names.
    fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let setup = Setup { urged: seed % 8 == 7, ..Setup::of(&mut rng) };
        let length = rng.pick(&[60, 300, 300, 1500], 300);
        // Nobody acts before somebody is there.
        let first = (0..4).map(|name| Op::Attach { name, shape: rng.byte() % 8 }).collect::<Vec<_>>();
        let ops = first.into_iter().chain((0..length).map(|_| Op::random(&mut rng))).collect();
        Self { seed, setup, ops }
    }

    /// The episodes of a seed: its own, then others that follow from it.
    pub(crate) fn series(seed: u64) -> impl Iterator<Item = Self> {
        let mut seeds = Rng::new(seed ^ 0x5117_u64);
        std::iter::once(seed).chain(std::iter::repeat_with(move || seeds.next() >> 16)).map(Self::of)
    }

    /// No more than its first steps.
    pub(crate) fn cut(mut self, steps: u64) -> Self {
        self.ops.truncate(usize::try_from(steps).unwrap_or(usize::MAX));
        self
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) const fn setup(&self) -> &Setup {
        &self.setup
    }

    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    pub(crate) fn len(&self) -> u64 {
        self.ops.len() as u64
    }

    /// Plays it; the step that found something, and what.
    pub(crate) fn run(&self) -> Option<(usize, Fault)> {
        play(&self.setup, &self.ops)
    }
}

impl Episode {
    /// Plays it twice, with other private texts of one agent, and compares what everybody else is shown (issue 9). How many
    /// texts were compared; or the step that showed a difference.
    pub(crate) fn compare(&self) -> Result<usize, (usize, Fault)> {
        let unable = |fault| (0, fault);
        let begin = |secret| Sim::new(Setup { secret: Some(secret), ..self.setup.clone() });
        let (mut one, mut other) = (begin('x').map_err(unable)?, begin('y').map_err(unable)?);
        let mut texts = 0;
        for (at, op) in self.ops.iter().enumerate() {
            one.apply(*op).and_then(|()| other.apply(*op)).map_err(|fault| (at, fault))?;
            let (one, other) = (one.real.leak.kept(), other.real.leak.kept());
            if one != other {
                let words = format!("what is private shows to others: {one:?} or {other:?}");
                return Err((at, Fault::new(words)));
            }
            texts += one.len();
        }
        Ok(texts)
    }
}

/// Plays steps in a setup; the step that found something, and what.
pub(crate) fn play(setup: &Setup, ops: &[Op]) -> Option<(usize, Fault)> {
    let mut sim = match Sim::new(setup.clone()) {
        Ok(sim) => sim,
        Err(fault) => return Some((0, fault)),
    };
    for (at, op) in ops.iter().enumerate() {
        let step = guarded(|| {
            sim.apply(*op)?;
            check::after_step(&mut sim, at)
        });
        if let Err(fault) = step {
            // A world in an unknown state is not unwound through.
            std::mem::forget(sim);
            return Some((at, fault));
        }
    }
    let last = ops.len().saturating_sub(1);
    guarded(|| check::at_end(&mut sim)).err().map(|fault| (last, fault))
}

/// A panic outside the rungs that do it on purpose is a fault.
fn guarded(step: impl FnOnce() -> Step) -> Step {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| Err(Fault::new("the product panicked")))
}
