//! `cargo xtask sim`: many agents perform random acts against the real crates, on a clock that is moved by hand and a
//! scheduler that is a seed, and every answer is compared with a naive model of the protocol.
//!
//! A failure prints the seed, a trace with every step taken out that is not needed, and the command that replays it.
//! What happens is `acts`, what must come of it `model`, what must hold after every step `check`; the product, its rungs
//! and its futures are in `real`. Nothing here sleeps, and there is one thread.

mod acts;
mod check;
mod episode;
mod fault;
mod model;
mod op;
mod planted;
mod real;
mod rng;
mod setup;
mod shrink;

use std::time::{Duration, Instant};

use clap::Args;

use crate::{error::TaskError, out, repo::Repo};
use episode::Episode;

/// What every body begins with: text that may show up where its reader may see it, and nowhere else.
pub(crate) const MARK: &str = "MARK-";
/// What a transform puts before a body.
pub(crate) const TRANSFORMED: &str = "MARK-T:";
/// What rungs say that fall over on purpose.
pub(crate) const PANIC: &str = "a rung of the simulation falls over";

/// The agent whose private values differ between two runs that are compared (issue 9, non-interference).
pub(crate) const SECRETIVE: &str = "a0";

/// How `cargo xtask sim` is asked.
#[derive(Args)]
pub(crate) struct Options {
    /// Where the choices come from; printed by a failure. By default the time of day
    #[arg(long)]
    seed: Option<u64>,
    /// How many steps in all
    #[arg(long, default_value_t = 100_000)]
    steps: u64,
    /// Go on until so many seconds have passed, whatever the number of steps
    #[arg(long)]
    seconds: Option<u64>,
    /// Print every step of the first episode
    #[arg(long)]
    trace: bool,
    /// Plant the bugs of `xtask/bugs`, or those whose name has this in it, one by one, and say how soon each is found
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    planted: Option<String>,
}

/// Runs episodes until the budget is used up; `false` if one found something.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<bool, TaskError> {
    if let Some(wanted) = &options.planted {
        return planted::run(repo, wanted, options.steps);
    }
    quiet();
    let seed = options.seed.unwrap_or_else(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        since.as_secs().wrapping_mul(1_000_003) % 1_000_000_000
    });
    let until = options.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let begun = Instant::now();
    let (mut episodes, mut left, mut done) = (0_u64, options.steps, 0_u64);
    for episode in Episode::series(seed) {
        let is_over = match until {
            Some(until) => Instant::now() >= until,
            None => left == 0,
        };
        if is_over {
            break;
        }
        let episode = if until.is_some() { episode } else { episode.cut(left) };
        if options.trace && episodes == 0 {
            out::line(&format!("{:?}", episode.setup()))?;
            for (at, op) in episode.ops().iter().enumerate() {
                out::line(&format!("{at:5} {op:?}"))?;
            }
        }
        // Now and then twice, to see whether what is private shows.
        let compared = if episodes.is_multiple_of(8) { episode.compare().err() } else { None };
        if let Some((at, fault)) = episode.run().or(compared) {
            out::line(&format!("sim: found after {} steps", done + at as u64 + 1))?;
            report(&episode, at, &fault)?;
            return Ok(false);
        }
        episodes += 1;
        done += episode.len();
        left = left.saturating_sub(episode.len());
    }
    let seconds = begun.elapsed().as_secs_f64();
    out::line(&format!("sim: ok: seed {seed}, {done} steps in {episodes} episodes, {seconds:.1} s"))?;
    Ok(true)
}

fn report(episode: &Episode, at: usize, fault: &fault::Fault) -> Result<(), TaskError> {
    out::line(&format!("sim: FAILED at step {} of the episode with seed {}", at + 1, episode.seed()))?;
    out::line(&format!("  {fault}"))?;
    out::line(&format!("  replay: cargo xtask sim --seed {} --steps {}", episode.seed(), at + 1))?;
    let (small, fault) = shrink::smallest(episode, at, fault);
    out::line(&format!("  setup: {:?}", episode.setup()))?;
    out::line(&format!("  the {} steps that it takes:", small.len()))?;
    for op in &small {
        out::line(&format!("    {op:?}"))?;
    }
    out::line(&format!("  with them: {fault}"))
}

/// Rungs that fall over on purpose do so quietly.
fn quiet() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let said = info.payload_as_str().unwrap_or_default();
        if said != PANIC {
            before(info);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 9: the fixed budget that every build runs.
    #[test]
    fn a_fixed_budget_of_random_acts_agrees_with_the_model() {
        quiet();
        let mut left = 40_000;
        for episode in Episode::series(1) {
            let episode = episode.cut(left);
            if let Some((at, fault)) = episode.run() {
                panic!(
                    "step {}: {fault}\nreplay: cargo xtask sim --seed {} --steps {}",
                    at + 1,
                    episode.seed(),
                    at + 1
                );
            }
            left -= episode.len();
            if left == 0 {
                return;
            }
        }
    }

    /// Issue 9: two runs that differ only in what one agent holds privately look the same to everybody else.
    #[test]
    fn what_is_private_changes_nothing_for_others() {
        quiet();
        let compared = Episode::series(11).take(12).map(|episode| {
            episode
                .compare()
                .unwrap_or_else(|(at, fault)| panic!("seed {}, step {at}: {fault}", episode.seed()))
        });
        assert!(compared.sum::<usize>() > 500, "too little was compared");
    }

    /// A run is a function of its seed.
    #[test]
    fn a_seed_names_one_run() {
        let once: Vec<_> = Episode::series(7).take(3).map(|episode| format!("{episode:?}")).collect();
        let again: Vec<_> = Episode::series(7).take(3).map(|episode| format!("{episode:?}")).collect();
        assert_eq!(once, again);
    }
}
