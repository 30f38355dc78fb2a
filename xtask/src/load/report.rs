//! What a load says of itself: how long each phase took, what was checked, and the most memory the process ever held.

use std::time::{Duration, Instant};

use fak_adjudicate::Verified;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::Options;
use crate::error::TaskError;

/// Something that is done so many times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    name: &'static str,
    count: u64,
}

impl Phase {
    pub(super) const fn new(name: &'static str, count: u64) -> Self {
        Self { name, count }
    }
}

/// How long a phase took.
#[derive(Debug, Serialize)]
struct Timed {
    phase: &'static str,
    count: u64,
    seconds: f64,
}

/// What was checked.
#[derive(Debug, Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    /// What was found.
    detail: String,
}

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    agents: u32,
    mailboxes: u32,
    messages: u64,
    tasks: u32,
    notes: u32,
    threads: u32,
    audit: bool,
    audit_lines: Option<u64>,
    phases: Vec<Timed>,
    checks: Vec<Check>,
    /// Acts that were tried again because the audit queue was full.
    retried: u64,
    seconds: f64,
    /// The most memory that the process held at once, in bytes; absent where the system does not say.
    peak_bytes: Option<u64>,
}

impl Report {
    pub(super) const fn new(options: &Options) -> Self {
        Self {
            agents: options.agents,
            mailboxes: options.mailboxes,
            messages: options.messages,
            tasks: options.tasks,
            notes: options.notes,
            threads: options.threads,
            audit: !options.no_audit,
            audit_lines: None,
            phases: Vec::new(),
            checks: Vec::new(),
            retried: 0,
            seconds: 0.0,
            peak_bytes: None,
        }
    }

    /// Performs a phase, with a bar that shows on a terminal alone.
    pub(super) fn phase<T>(
        &mut self,
        phase: Phase,
        work: impl FnOnce(&ProgressBar) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let begun = Instant::now();
        let bar = ProgressBar::new(phase.count).with_message(phase.name);
        if let Ok(style) = ProgressStyle::with_template("{msg:26} {bar:30} {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        let done = work(&bar);
        bar.finish_and_clear();
        let seconds = begun.elapsed().as_secs_f64();
        self.phases.push(Timed { phase: phase.name, count: phase.count, seconds });
        done
    }

    pub(super) fn check(&mut self, what: &'static str, found: Result<(), String>) {
        let (ok, detail) = (found.is_ok(), found.err().unwrap_or_default());
        self.checks.push(Check { what, ok, detail });
    }

    pub(super) fn check_equal(&mut self, what: &'static str, found: u64, expected: u64) {
        let detail = if found == expected { found.to_string() } else { format!("{found}, not {expected}") };
        self.checks.push(Check { what, ok: found == expected, detail });
    }

    /// What came of verifying the audit log.
    pub(super) fn audited(&mut self, verified: Result<Verified, String>) {
        self.audit_lines = verified.as_ref().ok().map(|verified| verified.end.count);
        self.check("the audit log verifies", verified.map(drop));
    }

    pub(super) fn finish(&mut self, elapsed: Duration, retried: u64) {
        (self.seconds, self.retried, self.peak_bytes) = (elapsed.as_secs_f64(), retried, peak());
    }

    /// True if nothing was lost.
    pub(super) fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let Self { agents, mailboxes, messages, tasks, notes, threads, .. } = self;
        let audit = if self.audit { "with an audit log" } else { "without an audit log" };
        let mut lines = vec![format!(
            "load: {agents} agents, {mailboxes} mailboxes, {messages} messages, {tasks} tasks of {notes} notes, \
             {threads} threads, {audit}"
        )];
        for Timed { phase, count, seconds } in &self.phases {
            let rate = if *seconds > 0.0 {
                format!("{:.0} a second", *count as f64 / seconds)
            } else {
                String::new()
            };
            lines.push(format!("  {phase:26} {count:>9}  {seconds:>7.1} s  {rate}").trim_end().to_owned());
        }
        for Check { what, ok, detail } in &self.checks {
            let mark = if *ok { "ok    " } else { "FAILED" };
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            lines.push(format!("  {mark} {what}{detail}"));
        }
        let peak = self.peak_bytes.map_or_else(
            || "not available".to_owned(),
            |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        );
        if let Some(count) = self.audit_lines {
            lines.push(format!("  lines of the audit log: {count}"));
        }
        lines.push(format!("  tried again because the audit queue was full: {}", self.retried));
        lines.push(format!("  peak memory: {peak}"));
        let passed = if self.passed() { "ok: nothing was lost" } else { "FAILED" };
        lines.push(format!("load: {passed}, {:.1} s", self.seconds));
        lines
    }
}

/// The most memory this process ever held, where the system says so (`VmHWM` of Linux).
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}
