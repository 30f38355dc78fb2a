//! The messages: each is sent once, and each must arrive once, where it was sent, from whom it was sent, unchanged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fak_a2achan::{Delivery, Endpoint, Message};
use fak_abi::{Outcome, Reason, ShareScope, Verdict};
use indicatif::ProgressBar;

use super::plan::{Plan, World, failed};
use super::report::Report;
use crate::error::TaskError;

/// How often an agent looks into its mailboxes while it sends.
const LOOKS: u64 = 4;

/// What became of every message.
pub(super) struct Ledger {
    /// One bit for each message that arrived.
    seen: Vec<AtomicU64>,
    received: AtomicU64,
    again: AtomicU64,
    wrong: AtomicU64,
    retried: AtomicU64,
}

impl Ledger {
    pub(super) fn new(messages: u64) -> Self {
        let words = usize::try_from(messages.div_ceil(64)).unwrap_or_default();
        let seen = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        let zero = AtomicU64::default;
        Self { seen, received: zero(), again: zero(), wrong: zero(), retried: zero() }
    }

    /// How often an act was tried again because the audit queue was full.
    pub(super) fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    /// A message arrived at a mailbox.
    fn enter(&self, plan: &Plan, mailbox: u64, receiver: &Endpoint, message: &Message) {
        self.received.fetch_add(1, Ordering::Relaxed);
        let text = receiver.agent().read(message.body()).allowed();
        let number = text.as_deref().and_then(|text| std::str::from_utf8(text).ok()?.parse::<u64>().ok());
        let sent = number.filter(|number| {
            let from = format!("agent-{}", plan.sender(*number));
            *number < plan.messages
                && plan.mailbox(*number) == mailbox
                && message.from().id().as_str() == from
        });
        let Some(number) = sent else {
            self.wrong.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let bit = 1 << (number % 64);
        let word = usize::try_from(number / 64).ok().and_then(|at| self.seen.get(at));
        if word.is_none_or(|word| word.fetch_or(bit, Ordering::Relaxed) & bit != 0) {
            self.again.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An act that is tried again while the audit queue is full: acts do not wait for the disk, their callers may.
    pub(super) fn patiently<T>(&self, verdict: impl Fn(&T) -> Verdict, mut act: impl FnMut() -> T) -> T {
        loop {
            let answer = act();
            let verdict = verdict(&answer);
            if verdict.reason() != Some(Reason::RateLimited) || verdict.by() != "audit" {
                return answer;
            }
            self.retried.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    }

    /// Holds the books of the bus against what was sent and seen.
    pub(super) fn check(&self, world: &World, plan: &Plan, report: &mut Report) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let seen: u64 = self.seen.iter().map(|word| u64::from(count(word).count_ones())).sum();
        report.check_equal("messages that arrived", seen, plan.messages);
        report.check_equal("messages that arrived twice", count(&self.again), 0);
        report.check_equal("messages that were not those that were sent", count(&self.wrong), 0);
        let books = world.bus.stats();
        report.check_equal("sent, by the books", books.sent, plan.messages);
        report.check_equal("received, by the books", books.received, plan.messages);
        let rest = books.queued + books.held + books.dropped + books.dead;
        report.check_equal("queued, held, dropped or dead, by the books", rest, 0);
        report.check(
            "the books balance",
            if books.is_conserved() { Ok(()) } else { Err(format!("{books:?}")) },
        );
    }
}

/// Every mailbox is bound by its owner.
pub(super) fn bind(world: &World, plan: &Plan, ledger: &Ledger, bar: &ProgressBar) -> Result<(), TaskError> {
    for mailbox in 0..plan.mailboxes {
        let (owner, key) = (world.agent(plan.owner(mailbox))?, Plan::key(mailbox)?);
        match ledger.patiently(Outcome::verdict, || owner.bind(&key)) {
            Outcome::Allow { value, .. } => value.keep(),
            Outcome::Refuse(verdict) => return Err(failed(format!("binding {key} is answered {verdict}"))),
        }
        bar.inc(1);
    }
    Ok(())
}

/// Sends and receives everything. Each thread acts for the agents that are its own.
pub(super) fn exchange(
    world: &World,
    plan: &Plan,
    ledger: &Ledger,
    bar: &ProgressBar,
) -> Result<(), TaskError> {
    each_thread(plan, |thread| Worker { world, plan, ledger, bar, thread }.send())?;
    // What was sent after its receiver had looked for the last time.
    each_thread(plan, |thread| Worker { world, plan, ledger, bar, thread }.receive())
}

/// Runs `work` on every thread; the first error of any.
pub(super) fn each_thread(
    plan: &Plan,
    work: impl Fn(u64) -> Result<(), TaskError> + Sync,
) -> Result<(), TaskError> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads).map(|n| scope.spawn(move || work(n))).collect();
        let mut ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err(failed("a thread of the load panicked"))))
    })
}

struct Worker<'a> {
    world: &'a World,
    plan: &'a Plan,
    ledger: &'a Ledger,
    bar: &'a ProgressBar,
    thread: u64,
}

impl Worker<'_> {
    const fn is_mine(&self, agent: u64) -> bool {
        agent % self.plan.threads == self.thread
    }

    fn send(&self) -> Result<(), TaskError> {
        let look = self.plan.messages.div_ceil(LOOKS).max(1);
        for message in 0..self.plan.messages {
            if message > 0 && message.is_multiple_of(look) {
                self.receive()?;
            }
            if self.is_mine(self.plan.sender(message)) {
                self.send_one(message)?;
            }
        }
        Ok(())
    }

    fn send_one(&self, message: u64) -> Result<(), TaskError> {
        let sender = self.world.agent(self.plan.sender(message))?;
        let key = Plan::key(self.plan.mailbox(message))?;
        let body = sender.agent().mint(message.to_string());
        let widen = || sender.agent().widen(&body, ShareScope::Fleet);
        let widened = match self.ledger.patiently(Outcome::verdict, widen) {
            Outcome::Allow { value, .. } => value,
            Outcome::Refuse(verdict) => return Err(failed(format!("widening is answered {verdict}"))),
        };
        let verdict = self.ledger.patiently(Verdict::clone, || sender.send(&key, &widened));
        if !verdict.is_allow() {
            return Err(failed(format!("sending to {key} is answered {verdict}")));
        }
        Ok(())
    }

    /// Takes everything out of the mailboxes of its agents.
    fn receive(&self) -> Result<(), TaskError> {
        for mailbox in 0..self.plan.mailboxes {
            let owner = self.plan.owner(mailbox);
            if !self.is_mine(owner) {
                continue;
            }
            let (receiver, key) = (self.world.agent(owner)?, Plan::key(mailbox)?);
            let refusal = |delivery: &Delivery| match delivery {
                Delivery::Refuse(verdict) => verdict.clone(),
                _ => Verdict::allow("load"),
            };
            loop {
                match self.ledger.patiently(refusal, || receiver.try_recv(&key)) {
                    Delivery::Message(message) => {
                        self.ledger.enter(self.plan, mailbox, receiver, &message);
                        self.bar.inc(1);
                    }
                    Delivery::Empty => break,
                    other => return Err(failed(format!("receiving at {key} is answered {other:?}"))),
                }
            }
        }
        Ok(())
    }
}
