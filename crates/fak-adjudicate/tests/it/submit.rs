//! Submit, reap and withdraw (§3.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use fak_abi::{
    AgentHandle, Claiming, Engine, EngineClaim, Gate, Opinion, OwnedCall, Reason, Refusal, RungName, Site,
    Status, Ticket, TicketError, ToolCall, ToolResult,
};
use fak_adjudicate::{Kernel, KernelLimits, Rank};

use crate::support::{Says, attach, id};

/// An engine with `slots` places, which runs on the second poll.
struct Slots {
    free: Arc<AtomicUsize>,
    polls: AtomicUsize,
}

struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Engine for Slots {
    fn name(&self) -> RungName {
        "slots"
    }
    fn serves(&self) -> Vec<String> {
        vec!["run".into()]
    }
    fn claim(&self, _call: &ToolCall<'_>) -> Claiming {
        match self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(_) => Claiming::Held(EngineClaim::new(Slot(Arc::clone(&self.free)))),
            Err(_) => Claiming::Refuse(Refusal::new(Reason::RateLimited, Site::new("slots/full"))),
        }
    }
    fn poll_run(
        &self,
        call: &OwnedCall,
        claim: &mut Option<EngineClaim>,
        _: &mut Context<'_>,
    ) -> Poll<ToolResult> {
        assert_ne!(call.view().tool().name(), "break", "unreachable");
        if self.polls.fetch_add(1, Ordering::SeqCst) == 0 {
            return Poll::Pending;
        }
        claim.take();
        Poll::Ready(ToolResult::ok(None))
    }
}

fn kernel(slots: usize, pending: usize) -> (Arc<Kernel>, Arc<AtomicUsize>) {
    let free = Arc::new(AtomicUsize::new(slots));
    let engine = Slots { free: Arc::clone(&free), polls: AtomicUsize::new(0) };
    let kernel = Kernel::builder()
        .engine(Arc::new(engine))
        .limits(KernelLimits { pending, pending_each: 2 })
        .rung(
            Rank(0),
            Arc::new(Says::new("rule", |call, _| match call.tool().name() {
                "forbidden" => Opinion::deny(Reason::PolicyBlock, Site::new("rule/x")),
                _ => Opinion::Allow,
            })),
        )
        .build()
        .unwrap();
    (kernel, free)
}

fn submit(kernel: &Kernel, agent: &AgentHandle, tool: &str) -> Ticket {
    let token = kernel.tool(&id(tool));
    agent.submit(&ToolCall::new(agent, &token))
}

fn reap(agent: &AgentHandle, ticket: &Ticket) -> Poll<Result<ToolResult, TicketError>> {
    agent.gate().poll_reap(agent, ticket, &mut Context::from_waker(Waker::noop()))
}

/// Submitting claims, reaping runs as far as it can come, and a ticket is good once.
#[test]
fn a_call_is_reaped_once() {
    let (kernel, free) = kernel(1, 8);
    let alpha = attach(&kernel, "alpha");
    let ticket = submit(&kernel, &alpha, "run");
    assert!(ticket.verdict().is_allow());
    assert_eq!(free.load(Ordering::SeqCst), 0);
    assert!(reap(&alpha, &ticket).is_pending());
    let Poll::Ready(Ok(result)) = reap(&alpha, &ticket) else { panic!("not ready") };
    assert_eq!(result.status, Status::Ok);
    assert_eq!(free.load(Ordering::SeqCst), 1);
    assert!(matches!(reap(&alpha, &ticket), Poll::Ready(Err(TicketError::Spent))));
    assert_eq!(alpha.withdraw(&ticket), Err(TicketError::Spent));
}

/// A refused call reaps as the structured refusal, once; one without an engine as an error.
#[test]
fn refusals_and_missing_engines_reap_as_errors() {
    let (kernel, _) = kernel(1, 8);
    let alpha = attach(&kernel, "alpha");
    let refused = submit(&kernel, &alpha, "forbidden");
    let Poll::Ready(Ok(result)) = reap(&alpha, &refused) else { panic!("not ready") };
    assert_eq!(result.status, Status::Error);
    let verdict = result.refused.unwrap();
    assert_eq!((verdict.reason(), verdict.by()), (Some(Reason::PolicyBlock), "rule"));
    assert!(matches!(reap(&alpha, &refused), Poll::Ready(Err(TicketError::Spent))));

    let orphan = submit(&kernel, &alpha, "nobody-serves-this");
    let Poll::Ready(Ok(result)) = reap(&alpha, &orphan) else { panic!("not ready") };
    assert_eq!((result.status, result.refused.is_none()), (Status::Error, true));
}

/// Nobody can reap or withdraw a submission that is not theirs.
#[test]
fn tickets_belong_to_their_principal() {
    let (here, free) = kernel(1, 8);
    let (there, _) = kernel(1, 8);
    let alpha = attach(&here, "alpha");
    let bravo = attach(&here, "bravo");
    let ticket = submit(&here, &alpha, "run");
    assert!(matches!(reap(&bravo, &ticket), Poll::Ready(Err(TicketError::Foreign))));
    assert_eq!(bravo.withdraw(&ticket), Err(TicketError::Foreign));
    let stranger = attach(&there, "alpha");
    assert!(matches!(reap(&stranger, &ticket), Poll::Ready(Err(TicketError::Foreign))));
    assert_eq!(free.load(Ordering::SeqCst), 0, "still claimed");
    alpha.withdraw(&ticket).unwrap();
    assert_eq!(free.load(Ordering::SeqCst), 1, "withdrawing releases the claim");
    assert!(matches!(reap(&alpha, &ticket), Poll::Ready(Err(TicketError::Spent))));
}

/// Pending calls are bounded, in all and per principal; so are engines' claims.
#[test]
fn the_pending_set_is_bounded() {
    let (kernel, free) = kernel(9, 3);
    let alpha = attach(&kernel, "alpha");
    let bravo = attach(&kernel, "bravo");
    let reasons: Vec<_> = [&alpha, &alpha, &alpha, &bravo, &bravo]
        .map(|agent| submit(&kernel, agent, "run").verdict().reason())
        .into();
    let full = Some(Reason::RateLimited);
    assert_eq!(reasons, [None, None, full, None, full], "two each, three in all");
    assert_eq!(free.load(Ordering::SeqCst), 6, "a refused submission claims nothing");
    kernel.detach(&id("alpha")).unwrap();
    assert_eq!((free.load(Ordering::SeqCst), kernel.pending()), (8, 1), "detaching drops what was pending");
}

/// §3.3: a place that a call has left is its principal's again, whichever way it left.
#[test]
fn a_place_that_was_left_is_free() {
    let (kernel, _) = kernel(9, 8);
    let alpha = attach(&kernel, "alpha");
    let keeps = submit(&kernel, &alpha, "run");
    for round in 0..6 {
        let ticket = submit(&kernel, &alpha, "nobody-serves-this");
        assert!(ticket.verdict().is_allow(), "{round}");
        assert_eq!(submit(&kernel, &alpha, "run").verdict().reason(), Some(Reason::RateLimited), "two each");
        match round % 2 {
            0 => alpha.withdraw(&ticket).unwrap(),
            _ => assert!(matches!(reap(&alpha, &ticket), Poll::Ready(Ok(_)))),
        }
        assert_eq!(kernel.pending(), 1);
    }
    alpha.withdraw(&keeps).unwrap();
    let [first, second, third] = ["run"; 3].map(|tool| submit(&kernel, &alpha, tool).verdict().reason());
    assert_eq!([first, second, third], [None, None, Some(Reason::RateLimited)]);
}

/// An engine that has no room refuses at submit, and a claimed run cannot be refused at reap.
#[test]
fn an_engine_claims_at_submit() {
    let (kernel, _) = kernel(1, 8);
    let alpha = attach(&kernel, "alpha");
    let first = submit(&kernel, &alpha, "run");
    let second = submit(&kernel, &alpha, "run");
    assert_eq!((second.verdict().reason(), second.verdict().by()), (Some(Reason::RateLimited), "slots"));
    let _ = reap(&alpha, &first);
    assert!(matches!(reap(&alpha, &first), Poll::Ready(Ok(result)) if result.status == Status::Ok));
}

/// Dropping a system call that was not answered takes it back.
#[test]
fn a_dropped_system_call_is_withdrawn() {
    let (kernel, free) = kernel(1, 8);
    let alpha = attach(&kernel, "alpha");
    let token = kernel.tool(&id("run"));
    drop(alpha.syscall(&ToolCall::new(&alpha, &token)));
    assert_eq!((free.load(Ordering::SeqCst), kernel.pending()), (1, 0));
}

/// Detaches the actor while its act is being judged.
#[derive(Default)]
struct Late(std::sync::OnceLock<std::sync::Weak<Kernel>>);

impl fak_abi::Adjudicator for Late {
    fn name(&self) -> RungName {
        "late"
    }
    fn judge(&self, call: &ToolCall<'_>, _: &fak_abi::Desk<'_>) -> Opinion {
        let kernel = self.0.get().and_then(std::sync::Weak::upgrade).unwrap();
        kernel.detach(call.principal().id()).unwrap();
        Opinion::Allow
    }
}

/// §2.3: what is admitted while its principal is being detached holds no slot for ever.
#[test]
fn a_submission_that_comes_too_late_is_forgotten() {
    let free = Arc::new(AtomicUsize::new(1));
    let late = Arc::new(Late::default());
    let engine = Slots { free: Arc::clone(&free), polls: AtomicUsize::new(0) };
    let kernel = Kernel::builder().engine(Arc::new(engine)).rung(Rank(0), late.clone()).build().unwrap();
    late.0.set(Arc::downgrade(&kernel)).unwrap();
    let alpha = attach(&kernel, "alpha");
    let _ticket = submit(&kernel, &alpha, "run");
    assert_eq!((kernel.pending(), free.load(Ordering::SeqCst)), (0, 1));
}

/// §1.4, §3.1: a token with the name of an act is that act; where it is not taken as that, nothing.
#[test]
fn a_token_named_as_an_act_passes_no_floor_by() {
    let (kernel, _) = kernel(1, 1);
    let alpha = attach(&kernel, "alpha");
    let token = kernel.tool(&id("a2a.publish"));
    match fak_abi::Host::admit_any(&*kernel, &ToolCall::new(&alpha, &token)) {
        fak_abi::Admission::Refuse(verdict) => assert_eq!(verdict.reason(), Some(Reason::UnknownTool)),
        fak_abi::Admission::Permit(permit) => panic!("admitted by {}", permit.by()),
    }
}

/// §3.2, §3.3: the ticket of a submission that a rung transformed says so, with what it made of the body; a reap runs that.
#[test]
fn a_transformed_submission_says_so() {
    let kernel = Kernel::builder()
        .rung(
            Rank(0),
            Arc::new(Says::new("rewriter", |call, desk| match call.body() {
                Some(body) => Opinion::Transform(desk.resolver.rewrite(body, "new".into()).unwrap()),
                None => Opinion::Allow,
            })),
        )
        .build()
        .unwrap();
    let agent = attach(&kernel, "a");
    let (tool, body) = (kernel.tool(&id("run")), agent.mint("old"));
    let ticket = kernel.submit(&ToolCall::new(&agent, &tool).args(&body));
    let fak_abi::Verdict::Transform { args, by } = ticket.verdict() else {
        panic!("{}", ticket.verdict());
    };
    assert_eq!((*by, agent.read(args).allowed().unwrap()), ("rewriter", "new".into()));
    assert!(submit(&kernel, &agent, "run").verdict().is_allow());
}
