//! `cargo xtask load`: many agents, mailboxes, messages and records in one process, and proof that nothing was lost.
//!
//! Messages are in `messages`, records in `records`, the audit log in `trail`; what is printed is in `report`. Every act
//! goes through the kernel as any other would: nothing here reaches past the public interface.

mod messages;
mod plan;
mod records;
mod report;
mod trail;

use std::time::Instant;

use clap::{Args, value_parser};

use self::messages::Ledger;
use self::plan::{Plan, World};
use self::report::{Phase, Report};
use self::trail::Trail;
use crate::{error::TaskError, out};

/// How much of everything, and how it is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Agents that send, receive and write notes
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    agents: u32,
    /// Mailboxes, each bound by one of the agents
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1..))]
    mailboxes: u32,
    /// Messages in all
    #[arg(long, default_value_t = 1_000_000)]
    messages: u64,
    /// Shared records
    #[arg(long, default_value_t = 100)]
    tasks: u32,
    /// Notes appended to each record
    #[arg(long, default_value_t = 2_000)]
    notes: u32,
    /// Journals written out and verified: each grows with the square of its notes
    #[arg(long, default_value_t = 1)]
    journals: u32,
    /// Threads that act
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Keep no audit log
    #[arg(long)]
    no_audit: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Performs the load and prints its report; `false` if anything was lost.
pub(crate) fn run(options: &Options) -> Result<bool, TaskError> {
    let report = perform(options)?;
    if options.json {
        let text = serde_json::to_string_pretty(&report).map_err(TaskError::Encode)?;
        out::line(&text)?;
    } else {
        for line in report.lines() {
            out::line(&line)?;
        }
    }
    Ok(report.passed())
}

fn perform(options: &Options) -> Result<Report, TaskError> {
    let begun = Instant::now();
    let plan = Plan::new(options);
    let mut report = Report::new(options);
    let trail = if options.no_audit { None } else { Some(Trail::start()?) };
    let (audit, trail) = trail.map(|(audit, trail)| (Some(audit), Some(trail))).unwrap_or_default();
    let world = report.phase(Phase::new("attach agents", plan.agents), |_| World::new(&plan, audit))?;
    let ledger = Ledger::new(plan.messages);
    let phase = Phase::new("bind mailboxes", plan.mailboxes);
    report.phase(phase, |bar| messages::bind(&world, &plan, &ledger, bar))?;
    let phase = Phase::new("send and receive messages", plan.messages);
    report.phase(phase, |bar| messages::exchange(&world, &plan, &ledger, bar))?;
    let phase = Phase::new("append notes", plan.tasks * plan.notes);
    report.phase(phase, |bar| records::append(&world, &plan, &ledger, bar))?;
    ledger.check(&world, &plan, &mut report);
    let phase = Phase::new("look at records", plan.tasks);
    let sound = report.phase(phase, |bar| records::check(&world, &plan, &ledger, bar))?;
    report.check("every note is in its record, every revision is the digest of what it names", sound);
    let phase = Phase::new("verify journals", plan.journals);
    let sound = report.phase(phase, |bar| records::verify(&world, &plan, bar))?;
    report.check("the journals verify", sound);
    // The log ends with its kernel.
    drop(world);
    let retried = ledger.retried();
    if let Some(trail) = trail {
        let verified = trail.finish();
        // What found no slot is in its gaps: the acts that were tried again, and nothing else.
        let missed = verified.as_ref().map_or(0, |verified| verified.missed);
        report.check_equal(
            "acts in gaps of the audit log, each of them tried again",
            missed,
            retried,
        );
        report.audited(verified);
    }
    report.finish(begun.elapsed(), retried);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Options {
        Options {
            agents: 30,
            mailboxes: 70,
            messages: 3_000,
            tasks: 3,
            notes: 20,
            journals: 3,
            threads: 3,
            no_audit: false,
            json: false,
        }
    }

    /// Issue 9: a small load loses nothing, and its records verify.
    #[test]
    fn a_small_load_loses_nothing() {
        let report = perform(&small()).unwrap();
        assert!(report.passed(), "{:#?}", report.lines());
    }

    /// As many mailboxes as a prime, fewer mailboxes than agents, one thread, and no log.
    #[test]
    fn odd_shapes_are_loads_too() {
        let options =
            Options { agents: 11, mailboxes: 7, messages: 500, threads: 1, no_audit: true, ..small() };
        let report = perform(&options).unwrap();
        assert!(report.passed(), "{:#?}", report.lines());
    }
}
