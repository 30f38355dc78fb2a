//! The fold (§3.2, §3.4) against a naive reference, and each of its rules by itself.

use std::sync::Arc;

use fak_abi::{Act, Desk, Gate, Opinion, Reason, Ref, RungName, ShareScope, Site, Taint, ToolCall, Verdict};
use fak_adjudicate::{Kernel, Rank};
use proptest::prelude::*;

use crate::support::{ByWord, Says, attach, claim, id, quiet};

/// What a rung of the reference model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Allow,
    Defer,
    Indeterminate,
    Deny(Reason),
    Quarantine,
    Rewrite,
    Launder,
    Witness(&'static str),
    Panic,
}

const NAMES: [RungName; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];

fn speak(word: Word, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
    match word {
        Word::Allow => Opinion::Allow,
        Word::Defer => Opinion::Defer,
        Word::Indeterminate => Opinion::Indeterminate,
        Word::Deny(reason) => Opinion::deny(reason, Site::new("test/deny")),
        Word::Quarantine => Opinion::Quarantine,
        Word::Rewrite => Opinion::Transform(
            desk.resolver.rewrite(call.body().unwrap(), bytes::Bytes::from_static(b"new")).unwrap(),
        ),
        // A trusted value in place of a tainted one.
        Word::Launder => Opinion::Transform(LAUNDERED.with(|slot| slot.borrow().clone().unwrap())),
        Word::Witness(word) => Opinion::RequireWitness(Box::new(claim(word))),
        Word::Panic => panic!("the rung broke"),
    }
}

thread_local! {
    static LAUNDERED: std::cell::RefCell<Option<Ref>> = const { std::cell::RefCell::new(None) };
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Allow(RungName),
    Transform(RungName),
    Deny(Reason, RungName),
}

fn of(verdict: &Verdict) -> Answer {
    match verdict {
        Verdict::Allow { by } => Answer::Allow(by),
        Verdict::Transform { by, .. } => Answer::Transform(by),
        Verdict::Deny { refusal, by } => Answer::Deny(refusal.reason, by),
        other => panic!("a kernel hands out no {other}"),
    }
}

/// §3.2 and §3.4 as a list of rules over the whole list of answers, nothing clever.
fn reference(words: &[Word]) -> Answer {
    use Answer::{Allow, Deny, Transform};
    if words.is_empty() {
        return Deny(Reason::DefaultDeny, "empty-policy");
    }
    let all: Vec<_> = NAMES.into_iter().zip(words.iter().copied()).collect();
    let first = |wanted: &dyn Fn(Word) -> bool| all.iter().find(|(_, w)| wanted(*w)).map(|(by, _)| *by);
    // A denial ends the walk: what comes after it was never asked.
    let mut rewrites = 0;
    for (by, word) in &all {
        match word {
            Word::Deny(reason) => return Deny(*reason, by),
            Word::Panic => return Deny(Reason::DefaultDeny, by),
            Word::Launder if rewrites > 0 => return Deny(Reason::Malformed, by),
            Word::Launder => return Deny(Reason::TrustViolation, by),
            Word::Rewrite if rewrites > 0 => return Deny(Reason::Malformed, by),
            Word::Rewrite => rewrites += 1,
            _ => {}
        }
    }
    if let Some(by) = first(&|w| w == Word::Witness("refuted")) {
        return Deny(Reason::TrustViolation, by);
    }
    if let Some(by) = first(&|w| w == Word::Witness("nobody-knows")) {
        return Deny(Reason::Unwitnessed, by);
    }
    if let Some(by) = first(&|w| w == Word::Quarantine) {
        return Deny(Reason::TrustViolation, by);
    }
    if let Some(by) = first(&|w| w == Word::Rewrite) {
        return Transform(by);
    }
    if let Some(by) = first(&|w| w == Word::Allow).or(first(&|w| w == Word::Witness("confirmed"))) {
        return Allow(by);
    }
    match first(&|w| w == Word::Indeterminate) {
        Some(by) => Deny(Reason::DefaultDeny, by),
        None => Deny(Reason::DefaultDeny, "all-defer"),
    }
}

fn decide(words: &[Word]) -> Answer {
    if words.contains(&Word::Panic) {
        quiet();
    }
    let mut builder = Kernel::builder().witness(ByWord);
    for (name, word) in NAMES.into_iter().zip(words.iter().copied()) {
        builder = builder
            .rung(Rank(0), Arc::new(Says::new(name, move |call, desk| speak(word, call, desk)).only("x")));
    }
    let kernel = builder.build().unwrap();
    let agent = attach(&kernel, "alpha");
    let body = agent.mint(&b"body"[..]);
    LAUNDERED.with(|slot| *slot.borrow_mut() = kernel.label(&body, Taint::Trusted));
    let tool = kernel.tool(&id("x"));
    let answer = of(&agent.decide(&ToolCall::new(&agent, &tool).args(&body)));
    LAUNDERED.with(|slot| slot.borrow_mut().take());
    answer
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        4 => Just(Word::Allow),
        4 => Just(Word::Defer),
        1 => Just(Word::Indeterminate),
        1 => prop::sample::select(Reason::ALL).prop_map(Word::Deny),
        1 => Just(Word::Quarantine),
        2 => Just(Word::Rewrite),
        1 => Just(Word::Launder),
        2 => prop::sample::select(vec!["confirmed", "refuted", "nobody-knows"]).prop_map(Word::Witness),
        1 => Just(Word::Panic),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    /// §3.2, §3.4: the kernel and the list of rules agree on every chain.
    #[test]
    fn the_fold_is_the_reference(words in prop::collection::vec(word(), 0..=6)) {
        prop_assert_eq!(decide(&words), reference(&words));
    }
}

/// §3.4: a refutation outweighs a claim that nobody knows of, wherever either stands; of equals the first is named.
#[test]
fn a_refutation_outweighs_what_is_unconfirmed() {
    use Answer::{Allow, Deny};
    const REFUTED: Word = Word::Witness("refuted");
    const UNHEARD: Word = Word::Witness("nobody-knows");
    const CONFIRMED: Word = Word::Witness("confirmed");
    for (words, expected) in [
        (&[UNHEARD, REFUTED][..], Deny(Reason::TrustViolation, "r1")),
        (&[REFUTED, UNHEARD], Deny(Reason::TrustViolation, "r0")),
        (&[REFUTED, REFUTED], Deny(Reason::TrustViolation, "r0")),
        (&[CONFIRMED, UNHEARD, REFUTED, CONFIRMED], Deny(Reason::TrustViolation, "r2")),
        (&[Word::Allow, UNHEARD, UNHEARD], Deny(Reason::Unwitnessed, "r1")),
        (&[CONFIRMED, Word::Allow], Allow("r1")),
        (&[CONFIRMED, Word::Indeterminate], Allow("r0")),
    ] {
        assert_eq!(decide(words), expected, "{words:?}");
        assert_eq!(reference(words), expected, "{words:?}");
    }
}

/// A layer whose floor says something about bodies of nine bytes and more.
struct Floored(fn() -> Opinion);

impl fak_abi::Driver for Floored {
    fn name(&self) -> RungName {
        "floored"
    }
    fn capabilities(&self) -> fak_abi::CapSet {
        fak_abi::CapSet::NONE
    }
    fn floor(&self) -> Vec<Arc<dyn fak_abi::Adjudicator>> {
        let says = self.0;
        let judge = move |call: &ToolCall<'_>, _: &Desk<'_>| match call.body() {
            Some(body) if body.len() > 8 => says(),
            _ => Opinion::Allow,
        };
        vec![Arc::new(Says::new("floor", judge).only("x"))]
    }
    fn install(&self, _: fak_abi::DriverLink) -> Result<(), fak_abi::InstallError> {
        Ok(())
    }
}

/// §3.2, §4.3 row 7: what a transform leaves is held to the floor once more, and to nothing else.
#[test]
fn a_transformed_body_is_held_to_the_floor() {
    quiet();
    let deny = || Opinion::deny(Reason::Oversize, Site::new("floor/size"));
    for (floor, expected) in [
        (deny as fn() -> Opinion, Some(Reason::Oversize)),
        (|| panic!("the floor broke"), Some(Reason::DefaultDeny)),
        (|| Opinion::Allow, None),
    ] {
        let rewriter = |call: &ToolCall<'_>, desk: &Desk<'_>| {
            Opinion::Transform(desk.resolver.rewrite(call.body().unwrap(), "seventeen".into()).unwrap())
        };
        // A rung of the host would refuse the new body; it has had its say of the old one.
        let strict = move |call: &ToolCall<'_>, _: &Desk<'_>| match call.body().unwrap().len() {
            0..9 => Opinion::Allow,
            _ => Opinion::deny(Reason::PolicyBlock, Site::new("strict/size")),
        };
        let kernel = Kernel::builder()
            .driver(Arc::new(Floored(floor)))
            .rung(Rank(0), Arc::new(Says::new("rewriter", rewriter).only("x")))
            .rung(Rank(1), Arc::new(Says::new("strict", strict).only("x")))
            .build()
            .unwrap();
        let agent = attach(&kernel, "alpha");
        let (tool, body) = (kernel.tool(&id("x")), agent.mint("short"));
        let verdict = agent.decide(&ToolCall::new(&agent, &tool).args(&body));
        assert_eq!(verdict.reason(), expected, "{verdict}");
        match (expected, of(&verdict)) {
            (Some(Reason::Oversize), answer) => assert_eq!(answer, Answer::Deny(Reason::Oversize, "floor")),
            (None, answer) => assert_eq!(answer, Answer::Transform("rewriter")),
            (Some(_), _) => assert_eq!(verdict.by(), "floor"),
        }
    }
}

/// §3.2: rank orders host rungs, registration breaks ties, and the earlier rung wins them.
#[test]
fn rank_orders_the_walk() {
    let kernel = Kernel::builder()
        .rung(Rank(5), Arc::new(Says::new("late", |_, _| Opinion::Allow)))
        .rung(Rank(-1), Arc::new(Says::new("early", |_, _| Opinion::Allow)))
        .rung(Rank(-1), Arc::new(Says::new("twin", |_, _| Opinion::Allow)))
        .build()
        .unwrap();
    let agent = attach(&kernel, "alpha");
    let tool = kernel.tool(&id("anything"));
    assert_eq!(agent.decide(&ToolCall::new(&agent, &tool)).by(), "early");
}

/// §3.2: the floor comes first whatever rank a host chooses.
#[test]
fn no_rank_gets_before_the_floor() {
    let kernel = Kernel::builder()
        .rung(
            Rank(i32::MIN),
            Arc::new(Says::new("host", |_, _| Opinion::deny(Reason::PolicyBlock, Site::new("x")))),
        )
        .build()
        .unwrap();
    let poor = kernel.attach(fak_abi::PrincipalSpec::agent(id("poor")).fleet(id("f1"))).unwrap();
    let body = poor.mint(&b"x"[..]);
    let verdict = poor.widen(&body, ShareScope::Fleet).verdict();
    assert_eq!((verdict.reason(), verdict.by()), (Some(Reason::DefaultDeny), "refs"));
}

/// §3.2: what a transform may not do, one limit at a time.
#[test]
fn a_transform_keeps_taint_scope_and_owner() {
    let kernel = Kernel::builder().build().unwrap();
    let alpha = attach(&kernel, "alpha");
    let bravo = attach(&kernel, "bravo");
    let body = alpha.widen(&alpha.mint(&b"x"[..]), ShareScope::Fleet).allowed().unwrap();
    let tenant = alpha.widen(&alpha.mint(&b"x"[..]), ShareScope::Tenant).allowed().unwrap();
    let own = alpha.mint(&b"y"[..]);
    drop(kernel);
    for (offer, fits) in [
        (own.clone(), true),
        (alpha.raise(&own, Taint::Quarantined), true),
        (tenant, false),
        (bravo.mint(&b"y"[..]), false),
    ] {
        // The same rung in the kernel that made the values.
        let rung = Says::new("rewriter", move |_, _| Opinion::Transform(offer.clone()));
        let verdict = fold_in_place(&alpha, &body, rung);
        assert_eq!(verdict.is_allow(), fits, "{verdict}");
        if !fits {
            assert_eq!(verdict.reason(), Some(Reason::TrustViolation));
        }
    }
}

/// Decides with a rung whose kernel is another: only the limits of transforms matter here, and
/// those look at the values alone.
fn fold_in_place(agent: &fak_abi::AgentHandle, body: &Ref, rung: Says) -> Verdict {
    let kernel = Kernel::builder().rung(Rank(0), Arc::new(rung)).build().unwrap();
    let twin = attach(&kernel, agent.principal().id());
    let tool = kernel.tool(&id("x"));
    twin.decide(&ToolCall::new(&twin, &tool).args(body))
}

/// §2.9: a rung is asked about its own tools only; a capability's name reaches all its acts (§1.4).
#[test]
fn a_rung_is_skipped_for_other_tools() {
    let says = Arc::new(
        Says::new("block", |_, _| Opinion::deny(Reason::PolicyBlock, Site::new("x"))).only("a2a.send"),
    );
    let kernel = Kernel::builder().rung(Rank(0), says).build().unwrap();
    let agent = attach(&kernel, "alpha");
    for (act, reason) in [
        (Act::Send, Reason::PolicyBlock),
        (Act::Publish, Reason::PolicyBlock),
        (Act::Depart, Reason::PolicyBlock),
        (Act::Recv, Reason::DefaultDeny),
    ] {
        assert_eq!(agent.decide(&ToolCall::new(&agent, act)).reason(), Some(reason), "{act}");
    }
    // A token that carries an act's name is the act: no second way in.
    let token = kernel.tool(&id("a2a.publish"));
    assert_eq!(agent.decide(&ToolCall::new(&agent, &token)).reason(), Some(Reason::PolicyBlock));
}

/// §3.3: a kernel built with a list of tools refuses others, and foreign tokens mean nothing.
#[test]
fn unknown_and_foreign_tools() {
    let allow = || Arc::new(Says::new("yes", |_, _| Opinion::Allow));
    let kernel = Kernel::builder().tools([id("build")]).rung(Rank(0), allow()).build().unwrap();
    let other = Kernel::builder().tools([id("build")]).rung(Rank(0), allow()).build().unwrap();
    let agent = attach(&kernel, "alpha");
    let decide = |token: fak_abi::ToolToken| agent.decide(&ToolCall::new(&agent, &token));
    assert!(decide(kernel.tool(&id("build"))).is_allow());
    assert_eq!(decide(kernel.tool(&id("biuld"))).reason(), Some(Reason::UnknownTool));
    assert_eq!(decide(other.tool(&id("build"))).reason(), Some(Reason::UnknownTool));
    let typo = kernel.tool(&id("biuld"));
    let explanation = kernel.explain(&ToolCall::new(&agent, &typo));
    assert!(explanation.next.contains("\"build\""), "{explanation}");
}

/// §2.9: `commit` is called once when the act is finally allowed, and taken back if a later rung
/// refuses after all.
#[test]
fn counting_is_all_or_nothing() {
    let first = Arc::new(Says::new("first", |_, _| Opinion::Allow).counting(Opinion::Defer));
    let last = Arc::new(
        Says::new("last", |_, _| Opinion::Allow)
            .only("x")
            .counting(Opinion::deny(Reason::RateLimited, Site::new("b"))),
    );
    let kernel = Kernel::builder()
        .rung(Rank(0), Arc::clone(&first) as _)
        .rung(Rank(1), Arc::clone(&last) as _)
        .build()
        .unwrap();
    let agent = attach(&kernel, "alpha");
    let (x, y) = (kernel.tool(&id("x")), kernel.tool(&id("y")));
    assert!(agent.decide(&ToolCall::new(&agent, &y)).is_allow());
    assert_eq!(first.counts_now(), 1);
    let verdict = agent.decide(&ToolCall::new(&agent, &x));
    assert_eq!((verdict.reason(), verdict.by()), (Some(Reason::RateLimited), "last"));
    assert_eq!(first.counts_now(), 1, "the charge of an act that did not happen was kept");
    // Explaining counts nothing.
    let _ = kernel.explain(&ToolCall::new(&agent, &y));
    assert_eq!(first.counts_now(), 1);
}

/// §3.5: the explanation shows every rung, also those after the one that decided.
#[test]
fn explain_asks_everyone() {
    let kernel = Kernel::builder()
        .rung(Rank(0), Arc::new(Says::new("no", |_, _| Opinion::deny(Reason::SecretExfil, Site::new("x/y")))))
        .rung(Rank(1), Arc::new(Says::new("yes", |_, _| Opinion::Allow)))
        .build()
        .unwrap();
    let agent = attach(&kernel, "alpha");
    let tool = kernel.tool(&id("x"));
    let explanation = kernel.explain(&ToolCall::new(&agent, &tool));
    let rungs: Vec<_> = explanation.rungs.iter().map(|r| (r.by, r.verdict.name())).collect();
    assert_eq!(rungs, [("no", "deny"), ("yes", "allow")]);
    assert_eq!(explanation.verdict.reason(), Some(Reason::SecretExfil));
}
